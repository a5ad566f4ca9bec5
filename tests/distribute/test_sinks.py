"""Sinks: contents against float64, resumed runs, journals cut off anywhere, drivers killed at random times."""

from __future__ import annotations

import json
import os
import random
import signal
import warnings

import distribute_kit as kit
import numpy as np
import pytest

import opwright as ow
from opwright import distribute
from opwright.distribute import journal
from replaced_files import replace_file
from thorough import THOROUGH, sampled

KINDS = ("numpy", "parquet", "zarr")
FAILING = (7, 30)
COUNT = 60


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.tflite"
    file.write_bytes(kit.convert(kit.function()))
    return file


def sink_of(kind, folder, rows=10):
    """The sink; the test is skipped where its package is not installed."""
    if kind == "numpy":
        return distribute.NumPySink(folder, rows)
    pytest.importorskip("pyarrow" if kind == "parquet" else "zarr")
    return (distribute.ParquetSink if kind == "parquet" else distribute.ZarrSink)(folder, rows)


def rows_of(kind, folder, count=COUNT):
    """The stored rows, NaN for elements that failed."""
    if kind == "numpy":
        files = {int(file.stem): np.load(file) for file in folder.glob("*.npy")}
        assert max(files) < count
        return np.stack([files.get(i, np.full(kit.COLUMNS, np.nan)) for i in range(count)])
    if kind == "parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(folder)
        assert table["index"].to_pylist() == list(range(count))  # each once, in order
        values = [x.as_py() for x in table["output"]]
        assert [e is None for e in table["error"].to_pylist()] == [v is not None for v in values]
        return np.array([[np.nan] * kit.COLUMNS if v is None else v for v in values])
    import zarr

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group = zarr.open_group(str(folder), mode="r")
        values, failed = group["output"][:], group["failed"][:]
    assert len(values) == len(failed) == count
    assert np.isnan(values[failed]).all()
    return values


def journal_of(kind, folder):
    file = folder.with_name(folder.name + ".journal.jsonl") if kind == "zarr" else folder / journal.NAME
    return [json.loads(line) for line in file.read_text().splitlines()]


def elements(count=COUNT):
    x = list(kit.elements(count))
    for i in FAILING:
        x[i] = x[i][:3]
    return x


def expected(count=COUNT):
    values = kit.meaning(kit.elements(count))
    values[list(FAILING)] = np.nan
    return values


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sized", [True, False])
def test_contents(kind, sized, path, tmp_path):
    folder = tmp_path / "out"
    x = elements() if sized else (row for row in elements())
    summary = distribute.map(path, x, "threads:2", batch=4, ordered=sized, sink=sink_of(kind, folder)).summary()
    assert (summary.elements, summary.failed, summary.resumed) == (COUNT, 2, 0)
    np.testing.assert_allclose(rows_of(kind, folder), expected(), rtol=1e-5)
    entries = journal_of(kind, folder)
    errors = [error for entry in entries for error in entry.get("errors", [])]
    assert sorted(error["index"] for error in errors) == list(FAILING)
    assert entries[-1] == {"total": COUNT}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_was_left_is_continued(kind, path, tmp_path):
    folder = tmp_path / "out"
    sink = sink_of(kind, folder)
    taken = []

    def source():
        for index, row in enumerate(elements()):
            taken.append(index)
            yield row

    with distribute.map(path, source(), batch=3, sink=sink) as results:
        for _ in range(33):
            next(results)
    summary = distribute.map(path, source(), batch=3, sink=sink).summary()
    assert summary.elements == COUNT
    assert summary.resumed in (24, 36)  # parts of 12 rows: the batches of 3 in 10, rounded up
    np.testing.assert_allclose(rows_of(kind, folder), expected(), rtol=1e-5)
    again = distribute.map(path, source(), batch=3, sink=sink).summary()
    assert (again.resumed, again.worker_seconds) == (COUNT, 0.0)


def test_several_outputs_are_files_and_columns(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")

    @ow.function(input_signature=[ow.TensorSpec([None, 2], ow.float32, name="x")])
    def model(x):
        return {"double": x * 2.0, "sum": ow.reduce_sum(x, axis=1)}

    x = kit.elements(10, 2)
    content = kit.convert(model)
    distribute.map(content, x, batch=4, sink=distribute.NumPySink(tmp_path / "a", names=lambda i: f"row{i}")).summary()
    np.testing.assert_array_equal(np.load(tmp_path / "a" / "row3.double.npy"), x[3] * 2)
    np.testing.assert_allclose(np.load(tmp_path / "a" / "row9.sum.npy"), x[9].sum(dtype=float), rtol=1e-6)
    distribute.map(content, x, batch=4, sink=distribute.ParquetSink(tmp_path / "b", rows=4)).summary()
    table = pq.read_table(tmp_path / "b")
    np.testing.assert_allclose(table["sum"].to_numpy(), x.sum(axis=1, dtype=float), rtol=1e-6)
    np.testing.assert_array_equal(table["double"].combine_chunks().to_numpy_ndarray(), x * 2)


@ow.function(input_signature=[ow.TensorSpec([None], ow.float32, name="x")])
def positive(x):
    return ow.boolean_mask(x, x > 0.0)


def stored_rows(kind, folder, count):
    """The stored rows, None for elements that failed."""
    if kind == "parquet":
        import pyarrow.parquet as pq

        return pq.read_table(folder)["output"].to_pylist()
    import zarr

    group = zarr.open_group(str(folder), mode="r")
    return [None if group["failed"][i] else group["output"][i].tolist() for i in range(count)]


@pytest.mark.parametrize("kind", ["parquet", "zarr"])
def test_outputs_of_another_shape_are_errors_of_their_elements(kind, tmp_path):
    """Columns have one shape; the job goes on, a resumed one has the same errors, and one that raises ends there."""
    x = [np.array(row, np.float32) for row in ([1, -1, 2], [3, 4, -2], [5, 6, 7], [-1, -2, -3], [8, 0, 9])] * 4
    content = kit.convert(positive)
    with pytest.raises(distribute.ElementError, match=r"element 2: (?s:.)*another shape"):
        list(distribute.map(content, x, on_error="raise", sink=sink_of(kind, tmp_path / "out", 2)))
    for resumed in (2, 20):
        sink = sink_of(kind, tmp_path / "out", 2)
        summary = distribute.map(content, x, "threads:2", sink=sink).summary()
        assert (summary.elements, summary.failed, summary.resumed) == (20, 8, resumed)
        assert [error.index for error in summary.errors] == [i for i in range(20) if i % 5 in (2, 3)]
    rows = [row[row > 0].tolist() for row in x]
    assert stored_rows(kind, tmp_path / "out", 20) == [row if len(row) == 2 else None for row in rows]
    with pytest.raises(distribute.ElementError, match="element 2"):
        list(distribute.map(content, x, on_error="raise", sink=sink_of(kind, tmp_path / "out", 2)))


def test_outputs_with_names_of_columns_are_prefixed(tmp_path):
    pq, zarr = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("zarr")

    @ow.function(input_signature=[ow.TensorSpec([None, 2], ow.float32, name="x")])
    def model(x):
        return {"index": ow.argmax(x, axis=1), "error": x * 2.0, "failed": x > 0.0, "a/b": x[:, :0]}

    x = kit.elements(10, 2)
    distribute.map(model, x, batch=4, sink=distribute.ParquetSink(tmp_path / "a", rows=4)).summary()
    table = pq.read_table(tmp_path / "a")
    assert set(table.column_names) == {"index", "output_index", "output_error", "failed", "a_b", "error"}
    assert table["output_index"].to_pylist() == x.argmax(1).tolist()
    assert table["error"].to_pylist() == [None] * 10
    distribute.map(model, x, batch=4, sink=distribute.ZarrSink(tmp_path / "b", rows=4)).summary()
    group = zarr.open_group(str(tmp_path / "b"), mode="r")
    np.testing.assert_array_equal(group["output_failed"][:], x > 0)
    np.testing.assert_array_equal(group["error"][:], x * 2)


@pytest.mark.parametrize("kind", ["numpy", "parquet"])
def test_texts_are_stored(kind, tmp_path):
    @ow.function(input_signature=[ow.TensorSpec([None, 2], ow.string, name="x")])
    def model(x):
        return {"row": x, "one": x[:, 0]}

    x = np.array([[b"abc", b"d"], [b"e", b""]], object)
    distribute.map(model, x, batch=2, sink=sink_of(kind, tmp_path / "out")).summary()
    if kind == "numpy":
        assert np.load(tmp_path / "out" / "000000000.one.npy") == b"abc"
        return
    import pyarrow.parquet as pq

    assert pq.read_table(tmp_path / "out")["row"].to_pylist() == x.tolist()
    assert pq.read_table(tmp_path / "out")["one"].to_pylist() == [b"abc", b"e"]


@pytest.mark.parametrize("kind", ["numpy", "parquet"])
def test_a_job_without_a_result_has_its_errors(kind, path, tmp_path):
    summary = distribute.map(
        path, [np.zeros(3, np.float32)] * 25, batch=2, sink=sink_of(kind, tmp_path / "o")
    ).summary()
    assert summary.failed == 25
    assert sum(len(entry.get("errors", [])) for entry in journal_of(kind, tmp_path / "o")) == 25
    if kind == "parquet":
        import pyarrow.parquet as pq

        assert pq.read_table(tmp_path / "o")["index"].to_pylist() == list(range(25))


def test_a_folder_belongs_to_one_job(path, tmp_path):
    x = elements()
    distribute.map(path, x, sink=distribute.NumPySink(tmp_path / "out", inputs=["a"])).summary()
    for change in ({"batch": 2}, {"signature": "serving_default"}):
        with pytest.raises(ow.errors.FailedPreconditionError, match=f"another job.*{next(iter(change))}|(?s:.)*wanted"):
            distribute.map(path, x, sink=distribute.NumPySink(tmp_path / "out", inputs=["a"]), **change).summary()
    with pytest.raises(ow.errors.FailedPreconditionError, match="another job"):
        distribute.map(path, x, sink=distribute.NumPySink(tmp_path / "out", inputs=["b"])).summary()
    with pytest.raises(ow.errors.FailedPreconditionError, match="another job"):
        distribute.map(path, x[:-1], sink=distribute.NumPySink(tmp_path / "out", inputs=["a"])).summary()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    with pytest.raises(ow.errors.FailedPreconditionError, match="no job wrote"):
        distribute.map(path, x, sink=distribute.NumPySink(tmp_path / "other")).summary()


def test_two_runs_at_once_are_refused(path, tmp_path):
    pytest.importorskip("fcntl")
    with distribute.map(path, elements(), sink=distribute.NumPySink(tmp_path / "out")) as first:
        next(first)
        with pytest.raises(ow.errors.FailedPreconditionError, match="another process"):
            distribute.map(path, elements(), sink=distribute.NumPySink(tmp_path / "out")).summary()


@pytest.mark.parametrize(
    ("module", "extra", "sink"), [("pyarrow", "arrow", "ParquetSink"), ("zarr", "zarr", "ZarrSink")]
)
def test_a_missing_package_names_its_extra(monkeypatch, module, extra, sink, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ow.errors.FailedPreconditionError, match=rf"pip install 'opwright\[{extra}\]'"):
        getattr(distribute, sink)(tmp_path)


# ---- the journal -----------------------------------------------------------------------------------------------------


def test_a_journal_cut_off_anywhere_keeps_its_whole_lines(tmp_path, monkeypatch):
    log = journal.Journal(tmp_path, {"n": 1})
    for part in range(3):
        (tmp_path / f"{part}").write_bytes(b"x" * part)
        log.commit(part, 10, [f"{part}"], [])
    log.finish(30)
    log.close()
    file = tmp_path / journal.NAME
    content = file.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    entries = [json.loads(line) for line in content.splitlines()]
    monkeypatch.setattr(journal.Journal, "sync", lambda log: None)  # 600 waits for the disk
    for length in range(len(content) + 1):
        replace_file(file, content[:length])
        log = journal.Journal(tmp_path, {"n": 1})
        whole = entries[: sum(end <= length for end in ends)]
        assert list(log.elements) == [entry["part"] for entry in whole if "part" in entry]
        assert log.total == (30 if entries[-1] in whole else None)
        log.commit(7, 1, [], [])
        log.close()
        written = [json.loads(line) for line in file.read_bytes().splitlines()]
        assert written[: len(whole)] == whole
        assert written[-1]["part"] == 7


@pytest.mark.skipif(not journal.boot_id(), reason="needs Linux")
@pytest.mark.parametrize("files", [3, 100])
def test_after_another_start_only_synchronized_parts_count(tmp_path, monkeypatch, files):
    """A power failure loses what the disk has not; a journal that was killed alone loses nothing."""
    synced = []
    for name in ("_synchronize", "_synchronize_file_system"):
        original = getattr(journal, name)
        monkeypatch.setattr(journal, name, lambda x, call=original: synced.append(x) or call(x))

    def commit(log, part):
        names = [f"{part}-{i}" for i in range(files)]
        for name in names:
            (tmp_path / name).write_bytes(b"x")
        log.commit(part, 10, names, [{"index": 10 * part, "type": "KeyError", "message": "no"}])

    monkeypatch.setattr(journal, "SYNC_SECONDS", 3600)
    log = journal.Journal(tmp_path, {"n": 1})
    for part in range(4):
        commit(log, part)  # the first one is synchronized at once, the others in an hour
    assert len(synced) == (files + 1 if files == 3 else 1)
    os.close(log._handle)  # as by kill -9
    log = journal.Journal(tmp_path, {"n": 1})
    assert list(log.elements) == [0, 1, 2, 3]
    os.close(log._handle)
    monkeypatch.setattr(journal, "boot_id", lambda: "another")
    log = journal.Journal(tmp_path, {"n": 1})
    assert list(log.elements) == list(log.errors) == [0]
    commit(log, 2)
    log.finish(40)
    log.close()
    monkeypatch.undo()
    log = journal.Journal(tmp_path, {"n": 1})
    assert sorted(log.elements) == [0, 2]
    log.close()


def test_a_part_whose_files_are_gone_is_not_complete(tmp_path):
    log = journal.Journal(tmp_path, {})
    for part in range(3):
        (tmp_path / f"{part}").write_bytes(b"abc")
        log.commit(part, 1, [f"{part}"], [])
    log.close()
    (tmp_path / "0").unlink()
    (tmp_path / "2").write_bytes(b"ab")
    log = journal.Journal(tmp_path, {})
    assert list(log.elements) == [1]
    log.close()


def test_another_file_is_no_journal(tmp_path):
    (tmp_path / journal.NAME).write_text("some text\nof somebody\n")
    with pytest.raises(ow.errors.DataLossError):
        journal.Journal(tmp_path, {})


# ---- kill -9 ---------------------------------------------------------------------------------------------------------


def killed_runs(kind, path, folder, kills, seed):
    """Kill the driver at random times until a run ends; return the kills."""
    rng = random.Random(seed)
    count = 240

    def run():
        distribute.map(path, elements(count), batch=4, sink=sink_of(kind, folder, 12)).summary()

    for number in range(kills):
        if kit.kill_after(run, rng.uniform(0.0, 0.25)):
            return number
    run()
    return kills


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("kind", sampled(KINDS, every=len(KINDS)))
def test_drivers_killed_at_random_times_lose_and_repeat_nothing(kind, path, tmp_path):
    sink_of(kind, tmp_path / "unused")
    kills = 0
    for seed in range(8 if THOROUGH else 2):
        folder = tmp_path / f"out{seed}"
        kills += killed_runs(kind, path, folder, 4, seed)
        np.testing.assert_allclose(rows_of(kind, folder, 240), expected(240), rtol=1e-5)
        parts = [entry["part"] for entry in journal_of(kind, folder) if "part" in entry]
        assert sorted(parts) == list(range(20))
        files = {name for entry in journal_of(kind, folder) if "files" in entry for name in entry["files"]}
        if kind != "zarr":
            assert {file.name for file in folder.iterdir()} == files | {journal.NAME}
    assert kills >= 1
