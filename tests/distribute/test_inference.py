"""`ow.distribute.map`: values against float64, forms of models and elements, errors, back-pressure, lost workers."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pathlib
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import distribute_kit as kit
import numpy as np
import pytest

import opwright as ow
from opwright import distribute
from opwright.core import flags
from opwright.distribute import executors, slots, task_size, worker
from thorough import crossed, sampled

KILLS = hasattr(signal, "SIGKILL")


@pytest.fixture(scope="module")
def content():
    return kit.convert(kit.function())


@pytest.fixture(scope="module")
def path(content, tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.tflite"
    file.write_bytes(content)
    return file


def model_of(kind, content, path, folder):
    if kind == "saved model":
        ow.saved_model.save(ow.Module(), folder, signatures=kit.function())
        return folder
    return {
        "path": lambda: str(path),
        "pathlib": lambda: path,
        "bytes": lambda: content,
        "lite.Model": lambda: ow.lite.Model.read(content),
        "interpreter of a path": lambda: ow.lite.Interpreter(str(path)),
        "interpreter of bytes": lambda: ow.lite.Interpreter(model_content=content),
        "function": kit.function,
        "concrete function": lambda: kit.function().get_concrete_function(),
    }[kind]()


KINDS = (
    "path",
    "pathlib",
    "bytes",
    "lite.Model",
    "interpreter of a path",
    "interpreter of bytes",
    "function",
    "concrete function",
    "saved model",
)


@pytest.mark.parametrize("kind", KINDS)
def test_models(kind, content, path, tmp_path):
    x = kit.elements(50)
    model = model_of(kind, content, path, tmp_path / "saved")
    results = list(distribute.map(model, x, "threads:2", batch=8))
    np.testing.assert_allclose(results, kit.meaning(x), rtol=1e-5)
    assert results[0].shape == (kit.COLUMNS,)


@pytest.mark.parametrize("kind", ["bytes", "function"])
def test_the_bytes_are_sent_to_workers_that_do_not_see_the_file(kind, content, path, tmp_path):
    x = kit.elements(50)
    with kit.BlindExecutor() as executor:
        results = list(distribute.map(model_of(kind, content, path, tmp_path), x, executor, batch=4))
    np.testing.assert_allclose(results, kit.meaning(x), rtol=1e-5)
    assert 1 <= executor.sent <= 3  # of 13 batches: at most those in flight before the first was answered


def test_a_model_that_changes_meanwhile_is_an_error(content, tmp_path):
    file = tmp_path / "model.tflite"
    file.write_bytes(content)
    with kit.BlindExecutor() as executor:
        results = distribute.map(file, kit.elements(50), executor)
        file.write_bytes(content + b"\0")
        with pytest.raises(ow.errors.FailedPreconditionError, match="changed while the job runs"):
            list(results)


@pytest.mark.parametrize("source", ["array", "list", "generator", "dataset", "tensors"])
def test_sources_of_elements(source, path):
    x = kit.elements(37)
    elements = {
        "array": x,
        "list": list(x),
        "generator": (row for row in x),
        "dataset": ow.data.Dataset.from_tensor_slices(x),
        "tensors": [ow.constant(row) for row in x],
    }[source]
    np.testing.assert_allclose(list(distribute.map(path, elements, batch=5)), kit.meaning(x), rtol=1e-5)


def test_elements_with_the_batch_axis_keep_it(path):
    x = kit.elements(12).reshape(4, 3, kit.COLUMNS)
    results = list(distribute.map(path, list(x), batch=2))
    assert results[0].shape == (3, kit.COLUMNS)
    np.testing.assert_allclose(results, kit.meaning(x), rtol=1e-5)


def two_by_two():
    @ow.function(
        input_signature=[ow.TensorSpec([None, 2], ow.float32, name="a"), ow.TensorSpec([None, 2], ow.float32, name="b")]
    )
    def model(a, b):
        return {"sum": a + b, "difference": a - b}

    return model


@pytest.mark.parametrize("form", ["tuple", "dict"])
def test_several_inputs_and_outputs(form):
    a, b = kit.elements(9, 2), kit.elements(9, 4)[:, :2]
    model = kit.convert(two_by_two())
    elements = [(x, y) if form == "tuple" else {"b": y, "a": x} for x, y in zip(a, b)]
    results = list(distribute.map(model, elements, batch=4))
    np.testing.assert_array_equal([r["sum"] for r in results], a + b)
    np.testing.assert_array_equal([r["difference"] for r in results], a - b)


def test_results_as_completed_have_their_index(path):
    x = kit.elements(60)
    items = dict(distribute.map(path, x, "threads:3", batch=4, ordered=False).items())
    assert sorted(items) == list(range(60))
    np.testing.assert_allclose([items[i] for i in range(60)], kit.meaning(x), rtol=1e-5)


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_a_failing_element_is_isolated_and_has_its_index(path):
    x = list(kit.elements(40))
    x[7], x[8], x[22] = x[7][:3], np.zeros(kit.COLUMNS, np.complex128), "text"
    results = list(distribute.map(path, x, "threads:2", batch=8))
    failed = [i for i, result in enumerate(results) if isinstance(result, distribute.ElementError)]
    assert failed == [7, 8, 22] == [results[i].index for i in failed]
    assert results[7].error_type == "InvalidArgumentError"
    assert "does not fit input 'x'" in str(results[7])
    assert "Traceback" in results[22].traceback
    rest = [i for i in range(40) if i not in failed]
    np.testing.assert_allclose([results[i] for i in rest], kit.meaning([x[i] for i in rest]), rtol=1e-5)


def test_errors_end_the_job_if_asked(path):
    x = list(kit.elements(40))
    x[11] = x[11][:3]
    results = distribute.map(path, x, "threads:2", batch=4, on_error="raise")
    got = [next(results) for _ in range(11)]
    np.testing.assert_allclose(got, kit.meaning(x[:11]), rtol=1e-5)
    with pytest.raises(distribute.ElementError, match="element 11"):
        next(results)
    assert list(results) == []


def test_errors_of_reading_have_the_index_of_the_element(path):
    summary = distribute.map(path, range(100), "threads:2", batch=8, load=kit.row_or_error).summary()
    assert (summary.elements, summary.failed, summary.resumed) == (100, 10, 0)
    assert [error.index for error in summary.errors] == list(range(3, 100, 10))
    assert {error.error_type for error in summary.errors} == {"KeyError"}


def test_an_exit_while_reading_is_an_error_of_the_element(path):
    """The engine would raise it in the driver, whose program ended."""
    results = list(distribute.map(path, range(8), "threads:2", batch=4, load=kit.row_or_exit))
    assert [i for i, y in enumerate(results) if isinstance(y, distribute.ElementError)] == [3]
    assert results[3].error_type == "SystemExit"


def test_a_damaged_model_ends_the_job(content):
    with pytest.raises(ow.errors.OpError, match="a worker cannot open the model"):
        list(distribute.map(content[: len(content) // 2], kit.elements(4)))


def test_a_model_with_a_fixed_batch_runs_one_by_one_with_a_warning():
    @ow.function(input_signature=[ow.TensorSpec([1, kit.COLUMNS], ow.float32, name="x")])
    def model(x):
        return ow.reshape(ow.tanh(x) * 2.0, [1, 2, kit.COLUMNS // 2])

    x = kit.elements(20)
    with pytest.warns(RuntimeWarning, match="one by one"):
        results = list(distribute.map(kit.convert(model), x, batch=4))
    np.testing.assert_allclose(results, kit.meaning(x).reshape(20, 2, -1), rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch": 0}, "batch is out of range"),
        ({"batch": True}, "batch is out of range"),
        ({"retries": -1}, "retries is out of range"),
        ({"num_threads": 0}, "num_threads is out of range"),
        ({"window": 0}, "window is out of range"),
        ({"on_error": "ignore"}, "unknown on_error"),
        ({"executor": "clusters"}, "no executor has this name"),
        ({"signature": "other"}, "Invalid signature_key"),
    ],
)
def test_arguments(path, arguments, message):
    with pytest.raises(ow.errors.InvalidArgumentError, match=message):
        list(distribute.map(path, kit.elements(1), **arguments))


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("missing.tflite", ow.errors.NotFoundError),
        (pathlib.Path(__file__).parent, ow.errors.NotFoundError),
        (3, ow.errors.InvalidArgumentError),
        (lambda x: x, ow.errors.InvalidArgumentError),
    ],
)
def test_models_that_cannot_travel(model, error):
    with pytest.raises(error):
        distribute.map(model, [])


def test_an_element_that_cannot_be_sent_is_isolated(path):
    x = list(kit.elements(10))
    x[6] = lambda: None
    results = list(distribute.map(path, x, kit.forked, batch=4))
    assert [i for i, y in enumerate(results) if isinstance(y, distribute.ElementError)] == [6]
    assert "pickle" in str(results[6])
    del x[6], results[6]
    np.testing.assert_allclose(results, kit.meaning(x), rtol=1e-5)
    with pytest.raises(ow.errors.InvalidArgumentError, match="a function of a module"):
        distribute.map(path, x, kit.forked, load=lambda element: element)


# ---- flow ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [True, False])
def test_elements_are_read_as_results_are_consumed(path, ordered):
    taken = 0

    def source():
        nonlocal taken
        for row in kit.elements(1000):
            taken += 1
            yield row

    with distribute.map(path, source(), "threads:2", batch=4, ordered=ordered) as results:
        for consumed in range(1, 301):
            next(results)
            assert taken - consumed <= 4 * (2 * 5 + 1)  # twice the most batches in flight, 5, and the one consumed
    assert taken < 400


def test_closing_ends_the_job_and_its_executor(path):
    results = distribute.map(path, kit.elements(1000), "threads:2")
    next(results)
    executor = results._job.workers.executor
    results.close()
    with pytest.raises(RuntimeError, match="shutdown"):
        executor.submit(pow, 2, 2)
    assert list(results) == []


def test_a_slow_element_holds_nothing_up_without_order(path):
    consumed = threading.Event()

    def load(index):
        assert index or consumed.wait(60)  # element 0 takes until another one is consumed
        return kit.row_of(index)

    with distribute.map(path, range(50), "threads:2", ordered=False, load=load) as results:
        items = results.items()
        assert next(items)[0] != 0
        consumed.set()
        assert 0 in dict(items)


def test_elements_of_results_that_wait_for_their_order_are_freed(path):
    """While the first task runs, the other worker fills the window: 10 tasks of 4 elements, 5 of them in flight."""
    full, alive, most = threading.Event(), 0, 0

    class Element:
        def __init__(self, index):
            nonlocal alive, most
            self.index = index
            alive += 1
            most = max(most, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

    def load(element):
        if element.index == 39:
            full.set()
        assert element.index or full.wait(60)
        return kit.row_of(element.index)

    results = list(distribute.map(path, map(Element, range(100)), "threads:2", batch=4, load=load))
    np.testing.assert_allclose(results, kit.meaning(kit.elements(100)), rtol=1e-5)
    assert most <= 4 * (5 + 2)  # those in flight, one that was just received and one that is being taken


# ---- tasks of several batches, through shared memory -----------------------------------------------------------------


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    file = tmp_path_factory.mktemp("wide") / "model.tflite"
    file.write_bytes(kit.convert(kit.function(kit.WIDE)))
    return file


def check_wide(results, count=120):
    rows = [kit.wide_row(i) for i in range(count)]
    np.testing.assert_allclose(list(results), kit.meaning(rows), rtol=1e-5)


@pytest.mark.parametrize(
    ("source", "executor"), crossed(["array", "list", "generator", "load"], [kit.forked, kit.forked_pool])
)
def test_arrays_through_shared_memory(wide, source, executor):
    rows = [kit.wide_row(i) for i in range(120)]
    elements = {"array": np.stack(rows), "list": rows, "generator": (row for row in rows), "load": range(120)}[source]
    results = distribute.map(wide, elements, executor, batch=3, load=kit.wide_row if source == "load" else None)
    first = [next(results) for _ in range(60)]
    assert len(results._job._slots._free) + len(results._job._slot_of) >= (1 if slots_exist() else 0)
    check_wide([*first, *results])


def slots_exist():
    return hasattr(os, "memfd_create")


@pytest.mark.parametrize("form", ["tuple", "dict", "shapes"])
def test_elements_of_several_arrays_through_shared_memory(form):
    rows = kit.elements(50, 2 * kit.WIDE).reshape(50, 2, -1)
    if form == "shapes":  # which cannot be stacked, and run one by one
        rows = [row[:, : kit.WIDE - i] for i, row in enumerate(rows)]

    @ow.function(
        input_signature=[ow.TensorSpec([None, None], ow.float32, name="a"), ow.TensorSpec([None, None], name="b")]
    )
    def model(a, b):
        return {"sum": a + b, "difference": a - b}

    elements = [{"b": b, "a": a} if form == "dict" else (a, b) for a, b in rows]
    results = list(distribute.map(kit.convert(model), elements, kit.forked, batch=4))
    for (a, b), y in zip(rows, results, strict=True):
        np.testing.assert_array_equal(y["sum"], a + b)
        np.testing.assert_array_equal(y["difference"], a - b)


def test_tasks_keep_the_batches_of_the_job(monkeypatch):
    """The moments of a batch show which elements it had; a sink's part bounds tasks, too."""
    monkeypatch.setattr(task_size, "TASK_SECONDS", 10.0)
    monkeypatch.setattr(task_size, "SHARES", 1)

    @ow.function(input_signature=[ow.TensorSpec([None, 8], ow.float32, name="x")])
    def model(x):
        return x - ow.reduce_mean(x, axis=0, keepdims=True)

    x = kit.elements(203)
    expected = np.concatenate([part - part.mean(0, dtype=float) for part in np.split(x, range(5, 203, 5))])
    sizes = []
    with kit.forked() as pool:
        results = distribute.map(kit.convert(model), x, pool, batch=5)
        submit = results._dispatcher._submit
        monkeypatch.setattr(
            results._dispatcher, "_submit", lambda task: sizes.append(len(task.elements)) or submit(task)
        )
        np.testing.assert_allclose(list(results), expected, atol=1e-5)
    assert sum(sizes) == 203
    assert max(sizes) > 5
    assert [size % 5 for size in sizes[:-1]] == [0] * (len(sizes) - 1)


def test_a_worker_that_does_not_see_the_memory_receives_the_arrays(wide, monkeypatch):
    monkeypatch.setattr(slots, "_exists", lambda reference: False)  # in the forks, too
    results = distribute.map(wide, [kit.wide_row(i) for i in range(120)], kit.forked, batch=3)
    check_wide(results)
    assert not results._job._slots.usable


@pytest.mark.skipif(not slots_exist(), reason="needs memfd_create")
@pytest.mark.parametrize("end", ["exhausted", "closed", "workers killed"])
def test_no_memory_is_left(wide, tmp_path, end):
    before = memory_files()
    with kit.forked() as pool:
        markers = [str(tmp_path / str(i)) if end == "workers killed" and i in (9, 60) else "" for i in range(120)]
        executor = kit.forked if end == "workers killed" else pool
        job = distribute.map(wide, list(enumerate(markers)), executor, batch=3, load=kit.wide_row_or_death_once)
        rows = [next(job) for _ in range(30)]
        if end == "closed":
            job.close()
        else:
            check_wide([*rows, *job])
    assert memory_files() == before
    assert len(list(tmp_path.iterdir())) == (2 if end == "workers killed" else 0)


def memory_files():
    """The shared memory that this process has open or mapped."""
    links = [
        os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")
    ]
    maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return sum("memfd:opwright" in text for text in [*links, *maps])


@pytest.mark.skipif(not slots_exist(), reason="needs memfd_create")
def test_workers_and_memory_end_with_a_driver_that_is_killed(wide, tmp_path):
    names = sorted(os.listdir("/dev/shm"))

    def run():
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(2, mp_context=context, initializer=executors.end_with_driver) as pool:
            for i, _ in enumerate(distribute.map(wide, itertools.cycle(range(100)), pool, load=kit.wide_row)):
                if i == 200:
                    (tmp_path / "pids").write_text(" ".join(map(str, pool._processes)))

    with kit.child(run):
        end = time.monotonic() + 60
        while not (pids := (tmp_path / "pids").exists() and (tmp_path / "pids").read_text().split()):
            assert time.monotonic() < end
            time.sleep(0.01)
        assert any("memfd:opwright" in pathlib.Path(f"/proc/{pid}/maps").read_text() for pid in pids)
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert sorted(os.listdir("/dev/shm")) == names


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_saved_model_has_the_threads_of_a_run():
    class Loaded:
        def __init__(self):
            self.signatures, self.structured_input_signature, self.threads = {"f": self}, ((), {}), []

        def __call__(self):
            self.threads.append(flags.num_threads)
            return {}

    loaded = Loaded()
    for threads in (1, 3, 0):
        worker._open_signature(loaded, "f", threads).run({})
    assert loaded.threads == [1, 3, flags.num_threads]


# ---- lost workers ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not KILLS, reason="needs SIGKILL")
@pytest.mark.parametrize(("executor", "ordered"), crossed([kit.forked, kit.forked_pool], [True, False]))
def test_batches_of_a_killed_worker_run_again(path, tmp_path, ordered, executor):
    items = [(i, str(tmp_path / str(i)) if i in (9, 60) else "") for i in range(100)]
    job = distribute.map(path, items, executor, batch=4, ordered=ordered, load=kit.row_or_death_once)
    results = list(job.items())
    indices = [i for i, _ in results]
    assert sorted(indices) == list(range(100))
    assert indices == sorted(indices) or not ordered
    np.testing.assert_allclose(
        [y for _, y in sorted(results, key=lambda r: r[0])], kit.meaning(kit.elements(100)), rtol=1e-5
    )
    assert 1 <= job.summary().lost_workers <= 2


@pytest.mark.skipif(not KILLS, reason="needs SIGKILL")
@pytest.mark.parametrize(
    ("retries", "executor"), sampled([(1, kit.forked), (2, kit.forked), (1, kit.forked_pool)], every=3)
)
def test_only_the_element_that_kills_is_lost(path, retries, executor):
    job = distribute.map(path, range(40), executor, batch=4, retries=retries, load=kit.row_or_death)
    results = list(job)
    assert [i for i, y in enumerate(results) if isinstance(y, distribute.ElementError)] == [13]
    assert results[13].error_type == "WorkerLost"
    rest = [i for i in range(40) if i != 13]
    np.testing.assert_allclose([results[i] for i in rest], kit.meaning(kit.elements(100)[rest]), rtol=1e-5)


@pytest.mark.skipif(not KILLS, reason="needs SIGKILL")
@pytest.mark.parametrize("executor", [kit.forked, kit.forked_pool])
def test_an_executor_that_cannot_be_built_again_is_an_error(path, executor):
    with executor() as pool, pytest.raises(ow.errors.UnavailableError, match="executor='processes:4'"):
        list(distribute.map(path, range(40), pool, load=kit.row_or_death))
