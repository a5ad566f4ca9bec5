"""saved_model: what is opwright's alone: loading in another process, user operators, files, conversion, the command."""

import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright.core.errors import OpError
from thorough import examples

pytestmark = pytest.mark.ours
errors = ow.errors


def round_trip(obj, folder, **kwargs):
    ow.saved_model.save(obj, str(folder), **kwargs)
    return ow.saved_model.load(str(folder))


def elsewhere(source, *args):
    """Return the output of a new Python process."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", source, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Everything(ow.Module):
    """Control flow, custom gradients, nested structures, random numbers, state."""

    def __init__(self):
        super().__init__()
        self.w = ow.Variable([[1.0, -2.0], [0.5, 4.0]])
        self.steps = ow.Variable(0, trainable=False)
        self.note, self.sizes = "a note", {"a": (1, 2.5), "b": [None, b"x"]}

    @ow.function(input_signature=[ow.TensorSpec([None, 2], ow.float32), ow.TensorSpec([], ow.int32)])
    def run(self, x, n):
        self.steps.assign_add(1)
        y = ow.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, ow.tanh(v @ self.w)), (ow.constant(0), x))[1]
        return ow.cond(ow.reduce_sum(y) > 0.0, lambda: clipped(y) * self.w[0, 0], lambda: -y)


@ow.custom_gradient
def clipped(x):
    def gradient(dy):
        return ow.clip_by_value(dy, -0.1, 0.1) * 3.0

    return x * 1.0, gradient


def test_another_process_without_the_program(tmp_path):
    model = Everything()
    model.extra = ow.function(lambda x: clipped(x) * 2.0, input_signature=[ow.TensorSpec([3], ow.float32)])
    ow.saved_model.save(model, tmp_path / "m")
    x, n = np.float32([[0.3, -0.7], [1.0, 2.0]]), 2
    printed = elsewhere(
        "import sys, json, opwright as ow\n"
        "m = ow.saved_model.load(sys.argv[1])\n"
        "x = ow.constant([[0.3, -0.7], [1.0, 2.0]])\n"
        "with ow.GradientTape() as t:\n"
        "    y = m.run(x, ow.constant(2))\n"
        "g = t.gradient(y, m.w)\n"
        "z = ow.constant([1., 2., 3.])\n"
        "with ow.GradientTape() as t:\n"
        "    t.watch(z)\n"
        "    s = m.extra(z)\n"
        "print(json.dumps([y.numpy().tolist(), g.numpy().tolist(), t.gradient(s, z).numpy().tolist(),\n"
        "                  int(m.steps), m.note, repr(m.sizes)]))\n",
        tmp_path / "m",
    )
    y, g, custom, steps, note, sizes = json.loads(printed)
    with ow.GradientTape() as tape:
        expected = model.run(ow.constant(x), ow.constant(n))
    np.testing.assert_allclose(y, expected.numpy(), rtol=1e-6)
    with ow.GradientTape() as tape:
        tape.watch(model.w)
        v = ow.constant(x)
        for _ in range(n):
            v = ow.tanh(v @ model.w)
        v = v * model.w[0, 0] if float(ow.reduce_sum(v)) > 0 else -v
    natural = tape.gradient(v, model.w).numpy()
    assert np.isfinite(g).all()
    assert np.shape(g) == natural.shape
    np.testing.assert_allclose(custom, [0.3, 0.3, 0.3], rtol=1e-6)  # 3 * clip(2, -0.1, 0.1)
    assert (steps, note, sizes) == (1, "a note", repr(model.sizes))


def test_plain_attributes_and_tensors(tmp_path):
    module = ow.Module()
    module.table, module.array, module.empty = ow.constant([1, 2]), np.arange(3.0), []
    module.mixed = [1, ow.Variable(2.0), "three", (ow.Variable(4), None)]
    module.dtype, module.shape = ow.float32, ow.TensorShape([None, 2])
    loaded = round_trip(module, tmp_path / "m")
    assert loaded.table.numpy().tolist() == [1, 2]
    assert isinstance(loaded.array, np.ndarray)
    assert loaded.array.tolist() == [0.0, 1.0, 2.0]
    assert loaded.empty == []
    assert loaded.mixed[0] == 1
    assert loaded.mixed[2] == "three"
    assert int(loaded.mixed[3][0]) == 4
    assert loaded.mixed[3][1] is None
    assert loaded.dtype is ow.float32
    assert loaded.shape.as_list() == [None, 2]
    assert len(loaded.variables) == 2


def test_int4(tmp_path):
    module = ow.Module()
    module.v = ow.Variable(ow.cast([-8, 7, 0], ow.int4))
    loaded = round_trip(module, tmp_path / "m")
    assert loaded.v.dtype is ow.int4
    assert loaded.v.numpy().astype(int).tolist() == [-8, 7, 0]


def test_odd_names_of_attributes(tmp_path):
    module = ow.Module()
    for name in ("variables_", "a b", "ä", "x.y/z", "__class__x"):
        setattr(module, name, ow.Variable(len(name)))
    loaded = round_trip(module, tmp_path / "m")
    for name in ("variables_", "a b", "ä", "x.y/z", "__class__x"):
        assert int(vars(loaded)[name]) == len(name)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=20) | st.complex_numbers(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(60))
@given(plain)
def test_structures_have_forms(value):
    from opwright.saved import json_files
    from opwright.saved.json_files import JsonReader

    form = json.loads(json.dumps(json_files.encode(value)))
    assert repr(json_files.Decoder(JsonReader("x")).decode(form)) == repr(value)


@settings(max_examples=examples(25))
@given(st.dictionaries(st.text(min_size=1, max_size=8), st.integers(-5, 5), min_size=1, max_size=5))
def test_dictionaries_of_variables_by_any_text(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("d")
    module = ow.Module()
    module.d = {k: ow.Variable(v) for k, v in values.items()}
    loaded = round_trip(module, folder / "m")
    assert {k: int(v) for k, v in loaded.d.items()} == values
    fresh = {k: ow.Variable(0) for k in values}
    path = ow.train.Checkpoint(d=module.d).write(folder / "c")
    ow.train.Checkpoint(d=fresh).read(path).assert_consumed()
    assert {k: int(v) for k, v in fresh.items()} == values


def test_operators_of_users(tmp_path):
    @ow.operator(name="SavedTestCube")
    class Cube:
        """.. math:: y = x^3"""

        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")

        def compute(op, x):
            return x * x * x

        def gradient(op, dy):
            return 3.0 * op.x * op.x * dy

    module = ow.Module()
    module.f = ow.function(lambda x: Cube(x), input_signature=[ow.TensorSpec([], ow.float32)])
    assert float(round_trip(module, tmp_path / "m").f(ow.constant(2.0))) == 8.0
    printed = elsewhere(
        "import sys, opwright as ow\n"
        "try:\n    ow.saved_model.load(sys.argv[1])\n"
        "except ow.errors.NotFoundError as e:\n    print(e)",
        tmp_path / "m",
    )
    assert "SavedTestCube" in printed
    assert "import the modules" in printed


def test_python_code_cannot_be_saved(tmp_path):
    module = ow.Module()
    specs = [ow.TensorSpec([], ow.float32)]
    module.f = ow.function(lambda x: ow.numpy_function(np.sin, [x], ow.float32), input_signature=specs)
    with pytest.raises(errors.InvalidArgumentError, match="cannot be saved"):
        ow.saved_model.save(module, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    assert os.listdir(tmp_path) == []


def test_arguments_without_a_form_are_left_out_with_a_note(tmp_path, caplog):
    class Thing:
        pass

    module, thing = ow.Module(), Thing()
    module.f = ow.function(lambda x, t: x)
    module.f(ow.constant(1.0), thing)
    module.f(ow.constant(1.0), 3)
    with caplog.at_level(logging.WARNING, "opwright"):
        loaded = round_trip(module, tmp_path / "m")
    assert "Thing" in caplog.text
    assert float(loaded.f(ow.constant(2.0), 3)) == 2.0


def test_files(tmp_path):
    module = ow.Module()
    module.v = ow.Variable(np.zeros(100, np.float32))
    table = ow.constant(np.arange(1000))
    module.f = ow.function(lambda: table[3] + ow.constant(np.arange(500))[4], input_signature=[])
    folder = tmp_path / "deep" / "er" / "m"
    ow.saved_model.save(module, folder)
    assert sorted(os.listdir(folder)) == ["graphs.txt", "saved_model.json", "variables.safetensors"]
    assert os.listdir(tmp_path / "deep" / "er") == ["m"]
    text = (folder / "graphs.txt").read_text()
    assert len(text) < 4000  # no constants in it
    assert str(tmp_path) not in text
    assert os.path.dirname(__file__) not in text
    (folder / "notes.txt").write_text("mine")
    module.v.assign(np.ones(100))
    ow.saved_model.save(module, folder)
    names = sorted(os.listdir(folder))
    assert len(names) == 4
    assert {"notes.txt", "saved_model.json"} < set(names)
    assert float(ow.saved_model.load(folder).v[0]) == 1.0
    assert int(ow.saved_model.load(folder).f()) == 7


def test_weights_are_read_by_the_official_library(tmp_path):
    from safetensors.numpy import load_file, save_file

    from opwright.saved.safetensors import TensorFile

    module = ow.Module()
    module.a, module.b = ow.Variable([[1.0, 2.0]]), ow.Variable([True, False])
    ow.saved_model.save(module, tmp_path / "m")
    result = load_file(tmp_path / "m" / "variables.safetensors")
    assert result["a/.ATTRIBUTES/VARIABLE_VALUE"].tolist() == [[1.0, 2.0]]
    assert result["b/.ATTRIBUTES/VARIABLE_VALUE"].tolist() == [True, False]
    save_file({"x": np.arange(6, dtype=np.int16).reshape(2, 3), "e": np.zeros((0, 2))}, tmp_path / "o.safetensors")
    file = TensorFile(str(tmp_path / "o.safetensors"))
    assert file.read("x").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert file.read("e").shape == (0, 2)


def test_a_writer_that_fails_leaves_nothing(tmp_path, monkeypatch):
    module = ow.Module()
    module.v = ow.Variable(1.0)
    ow.saved_model.save(module, tmp_path / "m")
    before = {n: (tmp_path / "m" / n).read_bytes() for n in os.listdir(tmp_path / "m")}
    from opwright.saved import json_files

    def broken(*args):
        raise OSError("disk full")

    monkeypatch.setattr(json_files.os, "fsync", broken)
    module.v.assign(2.0)
    for target in ("m", "new"):
        with pytest.raises(OSError, match="disk full"):
            ow.saved_model.save(module, tmp_path / target)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["m"]
    assert {n: (tmp_path / "m" / n).read_bytes() for n in os.listdir(tmp_path / "m")} == before


def test_conversion_of_signatures(tmp_path):
    module = ow.Module()
    module.w = ow.Variable([[1.0, 2.0], [3.0, 4.0]])
    specs = [ow.TensorSpec([1, 2], ow.float32, "x")]
    module.f = ow.function(lambda x: {"y": ow.nn.relu(x @ module.w)}, input_signature=specs)
    module.g = ow.function(lambda x: x + 1.0, input_signature=[ow.TensorSpec([2], ow.float32, "z")])
    ow.saved_model.save(module, tmp_path / "m", signatures={"f": module.f, "g": module.g})
    model = ow.lite.TFLiteConverter.from_saved_model(tmp_path / "m").convert()
    interpreter = ow.lite.Interpreter(model_content=model)
    assert set(interpreter.get_signature_list()) == {"f", "g"}
    runner = interpreter.get_signature_runner("f")
    assert runner(x=np.float32([[1, 1]]))["y"].tolist() == [[4.0, 6.0]]
    one = ow.lite.TFLiteConverter.from_saved_model(tmp_path / "m", signature_keys=["g"]).convert()
    assert list(ow.lite.Interpreter(model_content=one).get_signature_list()) == ["g"]
    with pytest.raises(ValueError, match="Invalid signature key 'h'"):
        ow.lite.TFLiteConverter.from_saved_model(tmp_path / "m", signature_keys=["h"])
    ow.saved_model.save(ow.Module(), tmp_path / "n")
    with pytest.raises(ValueError, match="at least one signature"):
        ow.lite.TFLiteConverter.from_saved_model(tmp_path / "n")


def test_models(tmp_path):
    from opwright.nn.layers import Dense
    from opwright.nn.models import Sequential
    from opwright.nn.network import Input

    model = Sequential([Input((3,)), Dense(4, activation="relu"), Dense(2)])
    loaded = round_trip(model, tmp_path / "m")
    x = ow.constant(np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3))
    np.testing.assert_allclose(loaded(x).numpy(), model(x).numpy(), rtol=1e-6)
    assert len(loaded.trainable_variables) == 4
    assert list(loaded.signatures) == ["serving_default"]
    content = ow.lite.TFLiteConverter.from_saved_model(tmp_path / "m").convert()
    runner = ow.lite.Interpreter(model_content=content).get_signature_runner()
    np.testing.assert_allclose(
        next(iter(runner(**{k: x.numpy()[:1] for k in runner.get_input_details()}).values())),
        model(x).numpy()[:1],
        rtol=1e-5,
    )
    path = ow.train.Checkpoint(model=model).write(tmp_path / "c")
    other = Sequential([Dense(4, activation="relu"), Dense(2)])
    status = ow.train.Checkpoint(model=other).read(path)
    np.testing.assert_allclose(other(x).numpy(), model(x).numpy(), rtol=1e-6)
    status.assert_existing_objects_matched()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda c: c.update(format="x"), errors.DataLossError),
        (lambda c: c.update(version=2), errors.UnimplementedError),
        (lambda c: c.update(version="1"), errors.DataLossError),
        (lambda c: c.update(graphs="../graphs.txt"), errors.DataLossError),
        (lambda c: c.update(variables="/etc/passwd"), errors.DataLossError),
        (lambda c: c.update(graphs_crc32=1), errors.DataLossError),
        (lambda c: c["operators"].update(Nonsense={"version": 1}), errors.NotFoundError),
        (lambda c: c["operators"]["Mul"].update(version=99), errors.UnimplementedError),
        (lambda c: c["objects"][0]["children"].update(v=10**9), errors.DataLossError),
        (lambda c: c["objects"][1].update(value="other"), errors.DataLossError),
        (lambda c: c["tensors"].clear(), errors.DataLossError),
        (lambda c: [t.update(type="f32[1000000000000]") for t in c["tensors"].values()], errors.DataLossError),
        (lambda c: c["functions"][0].update(captures=[]), errors.DataLossError),
        (lambda c: c["functions"][0].update(graph=77), errors.DataLossError),
        (lambda c: c["functions"][0].update(outputs={"list": []}), errors.DataLossError),
        (lambda c: c["signatures"].update(serving_default=-1), errors.DataLossError),
    ],
)
def test_damaged_manifests(tmp_path, change, error):
    module = ow.Module()
    module.v = ow.Variable([2.0])
    module.f = ow.function(lambda x: x * module.v, input_signature=[ow.TensorSpec([1], ow.float32)])
    ow.saved_model.save(module, tmp_path / "m")
    path = tmp_path / "m" / "saved_model.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(error):
        ow.saved_model.load(tmp_path / "m")


def test_containers_without_end(tmp_path):
    module = ow.Module()
    module.a = [ow.Variable(1.0)]
    ow.saved_model.save(module, tmp_path / "m")
    path = tmp_path / "m" / "saved_model.json"
    content = json.loads(path.read_text())
    content["objects"][1]["children"]["0"] = 1
    path.write_text(json.dumps(content))
    with pytest.raises(errors.DataLossError, match="without end"):
        ow.saved_model.load(tmp_path / "m")
    path.write_text("[" * 100_000)
    with pytest.raises(OpError):
        ow.saved_model.load(tmp_path / "m")
