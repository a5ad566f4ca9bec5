"""Event files of `ow.summary` and of the TensorBoard callback: what TensorFlow and Keras write, and errors."""

import json
import pathlib
import re
import struct
import sys
import zlib

import numpy as np
import pytest
import summary_programs
from test_tensorflow_records import array, raw

import opwright as ow
from opwright.core.errors import DataLossError
from opwright.core.protobuf_wire import fields
from opwright.core.type_protos import TYPES
from opwright.io.records import read_records
from opwright.io.tensor_protos import read_tensor

RECORDED = json.loads((pathlib.Path(__file__).parent / "summary_records.json").read_text())


def message(data):
    """The last value of each field."""
    return {number: value for number, _, value in fields(data, DataLossError)}


def events(paths):
    """The events of a run's files: pairs of step and message."""
    for path in paths:
        with open(path, "rb") as file:
            for record in read_records(file, path):
                event = message(record)
                yield event.get(2, 0), event


def pixels(png):
    """The pixels of a PNG file of 8 bits whose rows are differences to the left (filter 1)."""
    width, height, _, kind = struct.unpack(">IIBB", png[16:26])
    start = png.index(b"IDAT")
    (size,) = struct.unpack(">I", png[start - 4 : start])
    rows = np.frombuffer(zlib.decompress(png[start + 4 : start + 4 + size]), np.uint8).reshape(height, -1)
    assert (rows[:, 0] == 1).all()
    differences = rows[:, 1:].reshape(height, width, {0: 1, 4: 2, 2: 3, 6: 4}[kind])
    return np.cumsum(differences, 1, dtype=np.uint8)


def summaries(paths):
    """The summaries of a run's files: step, tag, metadata and array."""
    rows = []
    for step, event in events(paths):
        if 5 in event:
            value = message(message(event[5])[1])
            dtype = TYPES[message(value[8])[1]]
            array = read_tensor(value[8], dtype)
            if b"images" in value.get(9, b""):
                sizes, array = array[:2], np.stack([pixels(image) for image in array[2:]])
                assert [int(size) for size in sizes] == [array.shape[2], array.shape[1]]
            rows.append((step, value[1].decode(), value.get(9, b""), array))
    return rows


@pytest.fixture(scope="module", params=sorted(summary_programs.PROGRAMS))
def written(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    summary_programs.PROGRAMS[request.param](ow, str(folder))
    return RECORDED[request.param], summary_programs.runs(folder)


def test_tensorflow_writes_equal_summaries(written):
    recorded, runs = written
    assert sorted(runs) == sorted(recorded)
    for run, rows in recorded.items():
        ours = summaries(runs[run])
        assert [(step, tag) for step, tag, _, _ in ours] == [(step, tag) for step, tag, _, _ in rows]
        for (_, tag, metadata, value), (*_, expected_metadata, recorded) in zip(ours, rows):
            assert metadata == raw(expected_metadata), tag
            expected = array(recorded)
            assert (value.dtype, value.shape) == (expected.dtype, expected.shape), tag
            if tag == "keras":  # the configuration of a model, whose layers are compared
                layers = [[x["class_name"] for x in json.loads(v[()])["config"]["layers"]] for v in (value, expected)]
                assert layers[0] == layers[1]
            elif expected.dtype == object:
                assert value.tolist() == expected.tolist(), tag
            else:  # numbers of training and edges of buckets, by other orders of additions
                np.testing.assert_allclose(value, expected, rtol=2e-6, atol=1e-7, err_msg=tag)


def test_files_begin_with_their_version(written):
    for paths in written[1].values():
        first = next(iter(events(paths)))[1]
        assert first[3] == b"brain.Event:2"
        assert all("out.tfevents." in path and path.endswith(".v2") for path in paths)


def test_graph_of_a_training_step(written):
    """NodeDefs by name, whose inputs are nodes."""
    graphs = [event[4] for paths in written[1].values() for _, event in events(paths) if 4 in event]
    if not any("train" in run for run in written[1]):
        assert not graphs
        return
    assert len(graphs) == 1
    nodes = [value for number, _, value in fields(graphs[0], DataLossError) if number == 1]
    names, inputs, ops = set(), set(), set()
    for node in nodes:
        for number, _, value in fields(node, DataLossError):
            {1: names, 2: ops, 3: inputs}.get(number, set()).add(value.decode() if number < 4 else None)
    assert len(names) == len(nodes) > 20
    assert {name.partition(":")[0] for name in inputs} <= names
    assert {"Placeholder", "MatMul"} <= ops


@pytest.mark.slow
def test_tensorboard_reads_the_files(written):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    keras_util = pytest.importorskip("tensorboard.plugins.graph.keras_util")
    recorded, runs = written
    for run, paths in runs.items():
        accumulator = accumulators.EventAccumulator(str(pathlib.Path(paths[0]).parent), size_guidance={"tensors": 0})
        accumulator.Reload()
        steps = {}
        for step, tag, _, _ in recorded[run]:
            steps.setdefault(tag.removeprefix("net/"), []).append(step)
        assert {tag: [e.step for e in accumulator.Tensors(tag)] for tag in accumulator.Tags()["tensors"]} == steps
        if "keras" in steps:
            stored = accumulator.Tensors("keras")[0].tensor_proto.string_val[0]
            drawn = keras_util.keras_model_to_graph_def(json.loads(stored))
            assert {node.name for node in drawn.node} >= {"net/first", "net/last"}
        if run == "train":
            assert len(accumulator.Graph().node) > 20


# ---- behaviour beyond what is recorded -----------------------------------------------------------------------------


def test_without_a_writer_nothing_is_written():
    assert not ow.summary.scalar("x", 1.0, step=0).numpy()
    assert not ow.summary.should_record_summaries().numpy()
    with ow.summary.create_noop_writer().as_default():
        assert not ow.summary.scalar("x", 1.0).numpy()


def test_a_summary_needs_a_step(tmp_path):
    with ow.summary.create_file_writer(tmp_path).as_default(), pytest.raises(ValueError, match="No step set"):
        ow.summary.scalar("x", 1.0)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s: s.scalar("x", [1.0, 2.0], step=0), "scalar.*wrong rank"),
        (lambda s: s.image("x", np.zeros((2, 2, 3)), step=0), "image.*wrong rank"),
        (lambda s: s.image("x", np.zeros((1, 2, 2, 5)), step=0), "encode_png"),
        (lambda s: s.audio("x", np.zeros((2, 2)), 8000, step=0), "audio.*wrong rank"),
        (lambda s: s.text("x", 1.0, step=0), "texts are strings"),
        (lambda s: s.create_file_writer("x", max_queue=-1), "negative max_queue"),
    ],
)
def test_wrong_arguments(tmp_path, call, says):
    with (
        ow.summary.create_file_writer(tmp_path).as_default(),
        pytest.raises(ow.errors.InvalidArgumentError, match=f"(?s){says}"),
    ):
        call(ow.summary)


def test_a_closed_writer_is_an_error(tmp_path):
    writer = ow.summary.create_file_writer(tmp_path)
    writer.close()
    with pytest.raises(RuntimeError, match="already closed"):
        writer.as_default()
    assert len(list(tmp_path.iterdir())) == 1


def test_elements_that_are_not_finite_are_left_out_of_histograms(tmp_path):
    writer = ow.summary.create_file_writer(tmp_path)
    with writer.as_default():
        ow.summary.histogram("h", [1.0, np.nan, 3.0, np.inf, -np.inf], step=0, buckets=2)
    (row,) = summaries(summary_programs.runs(tmp_path)["."])
    assert row[3].tolist() == [[1.0, 2.0, 1.0], [2.0, 3.0, 1.0]]


def test_another_fit_writes_to_its_own_folder(tmp_path):
    """Summaries inside of a model go to the writer of now, though the step was traced with another."""

    class Noted(ow.keras.layers.Layer):
        def call(self, inputs):
            ow.summary.scalar("noted", ow.reduce_sum(inputs))
            return inputs

    model = ow.keras.Sequential([ow.keras.Input((1,)), Noted(), ow.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.arange(8, dtype="float32")[:, None]
    for run, every in (("a", 1), ("b", 2)):
        board = ow.keras.callbacks.TensorBoard(tmp_path / run, update_freq=every, write_graph=False)
        model.fit(x, x, batch_size=2, shuffle=False, verbose=0, callbacks=[board])
    model.fit(x, x, batch_size=2, verbose=0)
    runs = summary_programs.runs(tmp_path)
    noted = {run: [(s, float(v)) for s, tag, _, v in summaries(p) if "noted" in tag] for run, p in runs.items()}
    assert noted == {"a/train": [(1, 1.0), (2, 5.0), (3, 9.0), (4, 13.0)], "b/train": [(2, 5.0), (4, 13.0)]}


def test_arguments_of_the_callback(tmp_path):
    board = ow.keras.callbacks.TensorBoard
    with pytest.raises(ValueError, match="update_freq is"):
        board(tmp_path, update_freq=0)
    with pytest.raises(ow.errors.UnimplementedError, match="profile_batch=0"):
        board(tmp_path, profile_batch=2)
    model = ow.keras.Sequential([ow.keras.layers.Embedding(4, 2, name="words")])
    model.compile("sgd", "mse")
    board(tmp_path, embeddings_freq=1, embeddings_metadata={"words": 'a "b".tsv'}).set_model(model)
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert config.startswith("embeddings {\n")
    assert '  metadata_path: "a \\"b\\".tsv"\n' in config
    with pytest.raises(ValueError, match="not Embedding layers of the model"):
        board(tmp_path, embeddings_freq=1, embeddings_metadata={"others": "x.tsv"}).set_model(model)


# ---- curves and bars ------------------------------------------------------------------------------------------------


def test_plot_of_a_history(monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    history = ow.keras.callbacks.History()
    history.epoch, history.history = [0, 1], {"loss": [2.0, 1.0], "mae": [1.0, 0.5], "val_loss": [3.0, 2.5]}
    axes = history.plot()
    drawn = [{line.get_label(): line.get_ydata().tolist() for line in axis.lines} for axis in axes]
    assert drawn == [{"loss": [2.0, 1.0], "val_loss": [3.0, 2.5]}, {"mae": [1.0, 0.5]}]


def test_plot_without_matplotlib_names_the_extra(monkeypatch):
    history = ow.keras.callbacks.History()
    with pytest.raises(ow.errors.FailedPreconditionError, match="no epoch"):
        history.plot()
    history.epoch, history.history = [0], {"loss": [2.0]}
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ow.errors.FailedPreconditionError, match=r"opwright\[plot\]"):
        history.plot()


def test_bars_in_notebooks_rewrite_their_line(monkeypatch, capsys):
    x = np.zeros((4, 1), "float32")
    model = ow.keras.Sequential([ow.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    model.fit(x, x, batch_size=2, verbose=1)
    out = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)  # colours
    assert out.startswith("\r")
    assert out.rstrip("\n").split("\r")[-1].startswith("2/2 ━━━━")


def test_bars_of_narrow_terminals_stay_in_their_row(monkeypatch, capsys):
    """A line that is longer than the terminal could not be rewritten: it is cut, but for the last one."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    bar = ow.keras.utils.Progbar(3, interval=0.0)
    monkeypatch.setattr(bar, "_terminal", True)
    values = [("loss", 0.5), ("a_long_metric", 1.0), ("another_metric", 2.0)]
    for step in (1, 2, 3):
        bar.update(step, values)
    raw = capsys.readouterr().out
    assert "\x1b[" in raw  # the bar has a colour
    *rows, last, end = re.sub(r"\x1b\[[\d;]*m", "", raw).replace("\n", "\r").split("\r")[1:]
    assert [len(row) <= 39 and row.endswith("…") for row in rows] == [True, True]
    assert "another_metric: 2.0000" in last
    assert end == ""
