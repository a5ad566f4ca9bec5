"""The tuner: what it times and what not, what it remembers, the file, and that nothing is reached while it is off."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.ops import autotuner, kernels, tuning_file

SLOW_S = 0.003


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path) -> Any:
    autotuner.forget()
    tuning_file.reread()
    with ow.flags(cache_dir=tmp_path):
        yield
    autotuner.forget()
    tuning_file.reread()


def fresh(name: str = "Twice", **settings: Any) -> Any:
    def compute(op: Any, x: Any) -> Any:
        return x * 2

    body = {"x": ow.Input(dtypes=(ow.float32, ow.float64)), "y": ow.Output(like="x"), "compute": compute, **settings}
    return ow.operator(type(name, (), {"__doc__": ".. math:: y = 2 x", **body}))


def slow(op: Any, x: Any) -> Any:
    time.sleep(SLOW_S)
    return x * 2


def choices() -> dict[str, Any]:
    return json.loads(Path(tuning_file.path()).read_text())["choices"]


def test_off_it_is_not_reached_at_all() -> None:
    assert kernels.bind is autotuner.plain_bind
    with ow.flags(tune=True):
        assert kernels.bind is autotuner.bind
        with ow.flags(deterministic=True):
            assert kernels.bind is autotuner.plain_bind
    assert kernels.bind is autotuner.plain_bind


def test_the_faster_of_kernel_and_reference_is_taken_and_remembered() -> None:
    twice, seen = fresh(), []

    @ow.ops.register_kernel(twice)
    def lazy(op: Any, x: Any) -> Any:
        seen.append(x.shape)
        return slow(op, x)

    x = ow.constant([1.0, 2.0])
    twice(x)
    assert len(seen) == 1
    with ow.flags(tune=True):
        assert twice(x).numpy().tolist() == [2.0, 4.0]
        timed = len(seen)
        assert timed >= 2
        for _ in range(5):
            twice(x)
        twice(ow.constant([3.0, 4.0]))
        assert len(seen) == timed
        result = ow.ops.explain(twice, [x])
        assert (result.branch, result.measured.chosen) == ("reference", "reference")
        assert result.measured.seconds["reference"] < SLOW_S < max(result.measured.seconds.values())
        assert "measured" in str(result)
        assert "fastest" in result.reason
    twice(x)
    assert len(seen) == timed + 1  # off: the order of libraries again
    assert ow.ops.explain(twice, [x]).branch == "kernel"


def test_a_class_of_shapes_shares_a_choice_and_other_dtypes_and_attributes_do_not() -> None:
    shapes = lambda *s: autotuner.shape_class([np.empty(s, np.float32)])  # noqa: E731
    assert shapes(33) == shapes(64) != shapes(65)
    assert len({shapes(n) for n in (0, 1, 2, 3, 4, 5)}) == 6
    assert shapes(8, 1) != shapes(8, 2)
    assert autotuner.shape_class([np.empty(3, np.float32)]) != autotuner.shape_class([np.empty(3, np.float64)])
    scaled = fresh("Scaled", k=ow.Attr(float, default=1.0))
    one, two = scaled.bind({"k": 1.0}), scaled.bind({"k": 2.0})
    keys = {
        autotuner.key_of("Scaled", call, kernels.KernelKey("cpu", dtype), "c")
        for call in (one, two)
        for dtype in (ow.float32, ow.float64)
    }
    assert len(keys) == 4


def test_what_raises_or_gives_other_values_falls_out_with_a_report() -> None:
    twice = fresh()

    @ow.ops.register_kernel(twice, library="foreign")
    def broken(op: Any, x: Any) -> Any:
        raise RuntimeError("no such device")

    @ow.ops.register_kernel(twice, library="compiled")
    def wrong(op: Any, x: Any) -> Any:
        return x * 2.001

    @ow.ops.register_kernel(twice, library="reference", tolerance=1e5)
    def rough(op: Any, x: Any) -> Any:
        return x * np.float32(2.001)

    with ow.flags(tune=True), pytest.warns(RuntimeWarning, match="fell out") as caught:
        y = twice(ow.constant([1.0, 2.0]))
    assert abs(y.numpy() - [2.0, 4.0]).max() < 0.01
    texts = " ".join(str(w.message) for w in caught)
    assert "no such device" in texts
    assert "broken" in texts
    assert "not the reference's" in texts
    assert "rough" not in texts


def test_where_all_fall_out_the_caller_sees_the_error() -> None:
    def compute(op: Any, x: Any) -> Any:
        raise RuntimeError("not today")

    never = fresh("Never", compute=compute)
    ow.ops.register_kernel(never)(compute)
    with ow.flags(tune=True), pytest.warns(RuntimeWarning), pytest.raises(Exception, match="not today"):
        never(ow.constant([1.0]))


def test_what_has_effects_is_never_called_to_be_timed() -> None:
    seen: list[int] = []

    def noting(op: Any, x: Any) -> Any:
        seen.append(1)
        return x * 2

    effect = fresh("Effectful", effect="write")
    ow.ops.register_kernel(effect)(noting)
    impure = fresh("Impure")
    ow.ops.register_kernel(impure, pure=False)(noting)
    with ow.flags(tune=True):
        effect(ow.constant([1.0]))
        impure(ow.constant([1.0]))
    assert len(seen) == 2
    assert not Path(tuning_file.path()).exists()


def test_a_kernel_that_declines_is_passed_over_in_silence(recwarn: Any) -> None:
    twice = fresh()
    ow.ops.register_kernel(twice)(lambda op, x: NotImplemented)
    with ow.flags(tune=True):
        assert twice(ow.constant([1.0])).numpy().tolist() == [2.0]
    assert not [w for w in recwarn if "fell out" in str(w.message)]


def test_inputs_are_what_they_were_whatever_a_kernel_does() -> None:
    twice, x = fresh(), np.ones(3, np.float32)

    @ow.ops.register_kernel(twice)
    def writes(op: Any, x: Any) -> Any:
        x += 1
        return x

    ways = [
        autotuner.TimedAlgorithm("reference", lambda x: x * 2),
        autotuner.TimedAlgorithm("writes", lambda x: writes(None, x)),
    ]
    with pytest.warns(RuntimeWarning, match="read-only"):
        result = autotuner.measure("Twice", ways, [x], "reference")
    assert (result.chosen, x.tolist()) == ("reference", [1, 1, 1])


def test_traced_functions_take_the_fastest_and_follow_deterministic() -> None:
    twice, seen = fresh(), []
    ow.ops.register_kernel(twice)(lambda op, x: (seen.append(1), slow(op, x))[1])
    with ow.flags(tune=True):
        f = ow.function(lambda x: twice(x))
        f(ow.constant([1.0]))
        timed = len(seen)
        f(ow.constant([1.0]))
        assert len(seen) == timed
        with ow.flags(deterministic=True):
            f(ow.constant([1.0]))
        assert len(seen) == timed + 1


def test_runs_on_scopes_are_tuned_too() -> None:
    twice, seen = fresh(), []
    ow.ops.register_kernel(twice)(lambda op, x: (seen.append(1), slow(op, x))[1])
    scope = ow.Scope()
    scope.var("a").set(np.ones(3, np.float32))
    instance = twice.on({"x": "a"}, {"y": "b"})
    assert instance.run(scope).branch == "kernel"
    with ow.flags(tune=True):
        assert instance.run(scope).branch == "reference"
        timed = len(seen)
        assert instance.run(scope).branch == "reference"
        assert len(seen) == timed
    assert scope.var("b").value.numpy().tolist() == [2, 2, 2]


def test_algorithms_are_measured_too_and_give_what_they_gave() -> None:
    x = np.random.default_rng(3).standard_normal((64, 500)).astype(np.float32)
    want = ow.math.top_k(x, 3)
    with ow.flags(tune=True):
        got = ow.math.top_k(x, 3)
        result = ow.ops.explain("TopK", [x, np.int32(3)])
    np.testing.assert_array_equal(want.indices.numpy(), got.indices.numpy())
    assert ": measured" in result.algorithm  # whichever is faster
    assert any(key.startswith("TopK#algorithms") for key in choices())


# ---- the file -------------------------------------------------------------------------------------------------------


def measured(seconds: float = 1e-6) -> Any:
    return tuning_file.Measured("a", {"a": seconds, "b": 2.0})


def test_a_choice_outlives_the_process() -> None:
    tuning_file.write("key", measured())
    tuning_file.reread()
    assert autotuner.remembered("key") == measured()
    assert autotuner.remembered("other") is None


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b'{"format": 1}',
        b'{"format": 99, "machine": "m", "choices": {}}',
        b"[" * 100000,
        b"7" * 5000,
        b'{"format": 1, "machine": 5, "choices": 7}',
    ],
)
def test_damage_counts_as_empty_and_is_mended(damage: bytes) -> None:
    here = Path(tuning_file.path())
    here.parent.mkdir(parents=True, exist_ok=True)
    here.write_bytes(damage)
    assert tuning_file.read() == {}
    tuning_file.write("key", measured())
    assert list(choices()) == ["key"]


def test_entries_that_are_none_are_left_out_one_by_one() -> None:
    right = {"chosen": "a", "seconds": {"a": 1.0}}
    wrong = [
        7,
        {},
        {"chosen": "z", "seconds": {"a": 1.0}},
        {"chosen": "a", "seconds": {"a": "x"}},
        {"chosen": "a", "seconds": {"a": -1}},
        {"chosen": ["a"], "seconds": {"a": 1}},
        {"chosen": "a", "seconds": 3},
    ]
    content = {
        "format": 1,
        "machine": tuning_file.machine(),
        "choices": {"right": right} | {str(i): w for i, w in enumerate(wrong)},
    }
    Path(tuning_file.path()).write_text(json.dumps(content))
    assert list(tuning_file.read()) == ["right"]


def test_another_machines_choices_and_files_too_large_are_ignored() -> None:
    tuning_file.write("key", measured())
    content = json.loads(Path(tuning_file.path()).read_text())
    for change in ({"machine": "another"}, {"padding": "x" * (tuning_file.MOST_BYTES + 1)}):
        Path(tuning_file.path()).write_text(json.dumps(content | change))
        tuning_file.reread()
        assert tuning_file.read() == {}


def test_the_file_is_bounded_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning_file, "MOST_ENTRIES", 5)
    for i in range(9):
        tuning_file.write(str(i), measured())
    assert list(choices()) == ["4", "5", "6", "7", "8"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with ow.flags(cache_dir=tmp_path / "file" / "below"):
        tuning_file.write("key", measured())
        assert tuning_file.read()["key"] == measured()


def _write_many(folder: str, start: int) -> None:
    with ow.flags(cache_dir=folder):
        for i in range(start, start + 20):
            tuning_file.write(str(i), measured())


@pytest.mark.slow
def test_processes_and_threads_write_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write_many, args=(str(tmp_path), i * 20)) for i in range(2)]
    for p in processes:
        p.start()
    while any(p.is_alive() for p in processes):
        if Path(tuning_file.path()).exists():
            json.loads(Path(tuning_file.path()).read_text())  # never half a file
        time.sleep(0.001)
    assert [p.exitcode for p in processes] == [0, 0]
    threads = [threading.Thread(target=_write_many, args=(str(tmp_path), 100 + i * 20)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {str(i) for i in range(100, 180)} <= set(choices())
    assert [p for p in os.listdir(tmp_path) if p.endswith(".part")] == []


def test_threads_that_tune_at_once_give_right_results() -> None:
    twice, wrong = fresh(), []
    ow.ops.register_kernel(twice)(lambda op, x: x + x)

    def work(n: int) -> None:
        for size in range(1, 30):
            y = twice(ow.ones([size + n])).numpy()
            if y.shape != (size + n,) or not (y == 2).all():
                wrong.append(size)

    with ow.flags(tune=True):
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert wrong == []


AGREE = [
    ([1.0, 2.0], [1.0, 2.0 + 1e-6], None, True),
    ([1.0, 2.0], [1.0, 2.001], None, False),
    ([np.nan, 1.0], [np.nan, 1.0], 0, True),
    ([np.nan, 1.0], [1.0, np.nan], None, False),
    ([np.inf, 1.0], [-np.inf, 1.0], None, False),
    ([np.inf], [np.inf], 0, True),
    ([1.0], [1.0, 1.0], None, False),
]


@pytest.mark.parametrize(("a", "b", "tolerance", "want"), AGREE)
def test_agreement(a: Any, b: Any, tolerance: Any, want: bool) -> None:
    for dtype in (np.float32, np.complex64):
        assert autotuner.agree(np.array(a, dtype), np.array(b, dtype), tolerance) is want
    assert not autotuner.agree(np.array(a, np.float32), np.array(a, np.float64))
