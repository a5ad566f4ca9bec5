"""The interpreter from outside, side by side with the official one where both have an answer."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from lite_kit import Build
from small_models import atan_model, dynamic_model, sin_model

import opwright.lite as lite
from opwright.core import flags
from opwright.core.errors import (
    DataLossError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from opwright.lite.format import Model, objects, schema

X = np.float32([1, 2, 3, 4, 5])


def ready(content, **options) -> lite.Interpreter:
    interpreter = lite.Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    return interpreter


def peer(content):
    official = pytest.importorskip("ai_edge_litert.interpreter")
    return official.Interpreter(
        model_content=content, experimental_op_resolver_type=official.OpResolverType.BUILTIN_REF
    )


def both(content):
    return lite.Interpreter(model_content=content), peer(content)


def outcome(act):
    """Return the value of an action, or the class and the first line of its exception."""
    try:
        return act()
    except (ValueError, RuntimeError) as error:
        return error, str(error).splitlines()[0].strip()


def test_runs():
    interpreter = ready(sin_model())
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    interpreter.invoke()
    np.testing.assert_allclose(
        interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), np.sin(X + 1), 1e-6
    )


def test_from_a_file(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(sin_model())
    interpreter = lite.Interpreter(path)
    interpreter.allocate_tensors()
    assert lite.Interpreter(str(path)).get_signature_list() == {"serving_default": {"inputs": ["x"], "outputs": ["y"]}}


def test_details_are_the_official_ones():
    ours, theirs = both(sin_model())
    for method in ("get_input_details", "get_output_details", "get_tensor_details", "_get_ops_details"):
        mine, reference = getattr(ours, method)(), getattr(theirs, method)()
        reference = reference[: len(mine)]  # the official one counts tensors of its own
        assert len(mine) == len(reference)
        for a, b in zip(mine, reference):
            assert list(a) == list(b)
            for key, value in a.items():
                expected = b[key]
                if isinstance(value, np.ndarray):
                    assert value.dtype == expected.dtype
                    assert value.tolist() == expected.tolist()
                else:
                    assert repr(value) == repr(expected)


MISUSES = {
    "invoke before allocate": (False, lambda i: i.invoke()),
    "get before allocate": (False, lambda i: i.get_tensor(2)),
    "set before allocate": (False, lambda i: i.set_tensor(1, X)),
    "view before allocate": (False, lambda i: i.tensor(1)()),
    "wrong dtype": (True, lambda i: i.set_tensor(1, X.astype(np.float64))),
    "a list of ints": (True, lambda i: i.set_tensor(1, [1, 2, 3, 4, 5])),
    "wrong size": (True, lambda i: i.set_tensor(1, X[:2])),
    "wrong rank": (True, lambda i: i.set_tensor(1, X[None])),
    "resize of a constant": (True, lambda i: i.resize_tensor_input(0, [2])),
    "scalar shape": (True, lambda i: i.resize_tensor_input(1, 5)),
    "invoke after resize": (True, lambda i: (i.resize_tensor_input(1, [4]), i.invoke())),
    "get after resize": (True, lambda i: (i.resize_tensor_input(1, [4]), i.get_tensor(1))),
    "strict": (True, lambda i: i.resize_tensor_input(1, [7], strict=True)),
    "unknown signature": (True, lambda i: i.get_signature_runner("nobody")),
    "signature without inputs": (True, lambda i: i.get_signature_runner()()),
    "signature with another input": (True, lambda i: i.get_signature_runner()(q=X)),
}


@pytest.mark.parametrize("what", MISUSES)
def test_misuse_is_reported_in_the_official_words(what):
    allocated, act = MISUSES[what]
    results = []
    for interpreter in both(sin_model()):
        if allocated:
            interpreter.allocate_tensors()
        results.append(outcome(lambda interpreter=interpreter: act(interpreter)))
    ours, theirs = results
    assert isinstance(ours[0], type(theirs[0]))
    assert isinstance(ours[0], OpError)
    # The official one adds up its messages; ours is the newest.
    assert ours[1] in theirs[1] or theirs[1] in ours[1], results


@pytest.mark.parametrize("index", [-1, 99])
def test_an_index_that_is_none(index):
    interpreter = ready(sin_model())
    for act in (
        lambda: interpreter.get_tensor(index),
        lambda: interpreter.set_tensor(index, X),
        lambda: interpreter.tensor(index)(),
    ):
        with pytest.raises(ValueError, match=f"Invalid tensor index {index} exceeds max tensor index"):
            act()
    with pytest.raises(RuntimeError):
        interpreter.resize_tensor_input(index, [1])
    with pytest.raises(TypeError):
        interpreter.get_tensor("x")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "`model_path` or `model_content` must be specified."),
        ({"model_path": "", "model_content": b""}, "must be specified"),
        ({"model_path": "a", "model_content": b"b"}, "Can't both provide `model_path` and `model_content`"),
        ({"model_path": "/nowhere/m.tflite"}, "Could not open '/nowhere/m.tflite'.The model allocation is null/empty"),
        ({"model_path": "/"}, "Could not open '/'"),
        ({"model_content": b"short"}, "The model is not a valid Flatbuffer buffer"),
        ({"model_content": sin_model()[:200]}, "The model is not a valid Flatbuffer buffer"),
        ({"model_content": sin_model(), "num_threads": 0}, "num_threads should >= 1"),
        ({"model_content": sin_model(), "num_threads": "2"}, "type of num_threads should be int"),
        (
            {"model_content": sin_model(), "experimental_op_resolver_type": 3},
            "Unrecognized passed in op resolver type: 3",
        ),
    ],
)
def test_constructor_errors(arguments, says):
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        lite.Interpreter(**arguments)
    assert says in str(raised.value)


def test_an_empty_file(tmp_path):
    path = tmp_path / "empty.tflite"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"mmap of size 0 requested\.The model allocation is null/empty"):
        lite.Interpreter(str(path))


def test_a_damaged_file_is_data_loss_and_a_value_error():
    with pytest.raises(DataLossError) as raised:
        lite.Interpreter(model_content=sin_model()[:200])
    assert isinstance(raised.value, ValueError)


def broken(change) -> bytes:
    model = Model.read(sin_model())
    change(model)
    return model.to_bytes()


def _set(path, field, value):
    """A change of one field; path: of attributes and indices from the model."""

    def change(model):
        for step in path:
            model = model[step] if isinstance(step, int) else getattr(model, step)
        setattr(model, field, value)

    return change


NODE, TENSOR, CODE = ("subgraphs", 0, "operators", 0), ("subgraphs", 0, "tensors", 0), ("operator_codes", 0)
OLDER = "An older version of this builtin might be supported."
BROKEN = {
    "version": (_set((), "version", 2), "Model provided is schema version 2 not equal to supported version 3."),
    "no subgraph": (_set((), "subgraphs", []), "No subgraph in the model."),
    "no buffers": (_set((), "buffers", []), "No buffers in the model."),
    "opcode index": (_set(NODE, "opcode_index", 7), "Missing registration for opcode_index 7"),
    "buffer": (_set(TENSOR, "buffer", 5), "Tensor 0 specifies out of range buffer 5"),
    "type": (_set(TENSOR, "type", 99), "Unsupported data type 99 in tensor"),
    "short constant": (_set(TENSOR, "shape", [9]), "Tensor 0 is invalidly specified in schema"),
    "tensor index": (_set(NODE, "inputs", [9, 0]), "Invalid tensor index 9 in node inputs."),
    "operator version": (_set(CODE, "version", 99), f"Didn't find op for builtin opcode 'ADD' version '99'. {OLDER}"),
    "version 0": (_set(CODE, "version", 0), "Didn't find op for builtin opcode 'ADD' version '0'."),
    "no kernel": (
        _set(CODE, "builtin_code", schema.BuiltinOperator.CONCAT_EMBEDDINGS),
        "builtin opcode 'CONCAT_EMBEDDINGS' version '1'",
    ),
    "beyond the enum": (_set(CODE, "builtin_code", 300), "Op builtin_code out of range: 300."),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_models_are_reported_in_the_official_words(what):
    change, says = BROKEN[what]
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        lite.Interpreter(model_content=broken(change))
    assert isinstance(raised.value, OpError)
    assert says in str(raised.value)


def test_all_missing_builtins_are_listed():
    def change(model):
        for code in model.operator_codes:
            code.version = 77

    with pytest.raises(ValueError) as raised:  # noqa: PT011
        lite.Interpreter(model_content=broken(change))
    assert "'ADD' version '77'" in str(raised.value)
    assert "'SIN' version '77'" in str(raised.value)
    assert "SIN version 1..2" in str(raised.value)


def test_options_of_another_operator():
    def change(model):
        model.subgraphs[0].operators[0].builtin_options = objects.Conv2DOptions()

    with pytest.raises(RuntimeError, match="Conv2DOptions"):
        ready(broken(change))


def test_unresolved_custom_operators_are_all_listed():
    content = Build().custom("Atan", "x", "a").custom("Erf", "a", "b", version=3).custom("Atan", "b", "y").done()
    interpreter = lite.Interpreter(model_content=content)
    with pytest.raises(RuntimeError) as raised:
        interpreter.allocate_tensors()
    assert isinstance(raised.value, OpError)
    lines = str(raised.value).splitlines()
    assert lines[0] == "Encountered unresolved custom op: Atan."
    assert lines[1] == "Encountered unresolved custom op: Erf."
    assert "node number 0, node number 2" in str(raised.value)
    assert "custom_ops=[Atan, Erf]" in str(raised.value)
    assert "Node number 0 (Atan) failed to prepare." in str(raised.value)


def test_an_unresolved_flex_operator():
    interpreter = lite.Interpreter(model_content=Build().custom("FlexNoSuchOperator", "x", "y").done())
    with pytest.raises(
        RuntimeError, match="Select TensorFlow op\\(s\\), included in the given model, is\\(are\\) not supported"
    ):
        interpreter.allocate_tensors()


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8), lite.Model.read])
def test_a_model_in_memory_has_many_forms(form):
    assert ready(form(sin_model())).get_output_details()[0]["name"] == "y"


def test_resize_and_signature():
    interpreter = ready(sin_model())
    interpreter.resize_tensor_input(1, [2, 3])
    interpreter.allocate_tensors()
    assert interpreter.get_output_details()[0]["shape"].tolist() == [2, 3]
    runner = interpreter.get_signature_runner()
    for shape in ((4,), (2, 2), (0, 3), ()):
        x = np.full(shape, 0.5, np.float32)
        np.testing.assert_allclose(runner(x=x)["y"], np.sin(x + 1), 1e-6)
    assert list(runner.get_input_details()) == ["x"]
    assert runner.get_output_details()["y"]["name"] == "y"


def test_a_resize_that_does_not_fit_can_be_taken_back():
    b = Build()
    b.tensor("c", data=np.float32([1, 2, 3, 4, 5]))
    interpreter = ready(b.op("ADD", "x c", "y").done())
    interpreter.resize_tensor_input(1, [4])
    with pytest.raises(RuntimeError, match=r"Given shapes, \[4\] and \[5\], are not broadcastable"):
        interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.resize_tensor_input(1, [5])
    interpreter.allocate_tensors()
    interpreter.set_tensor(1, X)
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == (2 * X).tolist()


def test_views_and_copies():
    interpreter = ready(sin_model())
    x, y = interpreter.tensor(1), interpreter.tensor(3)
    x()[:] = X
    interpreter.invoke()
    np.testing.assert_allclose(y(), np.sin(X + 1), 1e-6)
    copy = interpreter.get_tensor(3)
    copy[:] = 0
    assert y()[0] != 0
    assert interpreter.get_tensor(1).tolist() == X.tolist()  # inputs keep their elements
    assert not interpreter.tensor(0)().flags.writeable
    with pytest.raises(ValueError, match="constant"):
        interpreter.set_tensor(0, np.float32(3))


def test_dynamic_shapes():
    runs = []

    def twice(context, node):
        runs.append(node.inputs[0].shape)
        np.multiply(node.inputs[0].data, 2, out=node.outputs[0].data)

    def prepare(context, node):
        runs.append("prepare")
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    interpreter = ready(dynamic_model(), custom_ops={"Twice": lite.Registration(prepare=prepare, invoke=twice)})
    x = np.arange(6, dtype=np.float32)
    for shape in ([2, 3], [2, 3], [3, 2]):
        interpreter.set_tensor(0, x)
        interpreter.set_tensor(1, np.int32(shape))
        interpreter.invoke()
        assert interpreter.get_tensor(3).tolist() == (2 * x).reshape(shape).tolist()
    assert runs == ["prepare", (2, 3), (2, 3), "prepare", (3, 2)]
    interpreter.set_tensor(1, np.int32([4, 2]))
    with pytest.raises(RuntimeError, match=r"Node number 0 .RESHAPE. failed to invoke"):
        interpreter.invoke()
    interpreter.set_tensor(1, np.int32([6, 1]))
    interpreter.invoke()
    assert interpreter.get_output_details()[0]["shape"].tolist() == [6, 1]


def test_too_much_memory_is_refused_before_it_is_taken():
    b = Build()
    b.tensor("x", (1 << 20, 1 << 20))
    b.tensor("y", (1 << 20, 1 << 20))
    content = b.op("SIN", "x", "y").done()
    with pytest.raises(ResourceExhaustedError, match="max_activation_bytes") as raised:
        ready(content)
    assert isinstance(raised.value, RuntimeError)
    with flags.override(max_activation_bytes=1024):
        ready(sin_model())
        with pytest.raises(ResourceExhaustedError):
            ready(sin_model()).resize_tensor_input(1, [300])
    with flags.override(max_model_bytes=100), pytest.raises(ResourceExhaustedError):
        lite.Interpreter(model_content=sin_model())


def test_memory_that_is_not_there_is_an_error_of_ours(monkeypatch):
    def zeros(*_):
        raise MemoryError("Unable to allocate 9 GiB")

    interpreter = lite.Interpreter(model_content=sin_model())
    monkeypatch.setattr("opwright.lite.runtime.memory.np.zeros", zeros)
    with pytest.raises(ResourceExhaustedError, match=r"Unable to allocate 9 GiB\nAllocateTensors\(\) failed"):
        interpreter.allocate_tensors()
    monkeypatch.undo()
    interpreter.allocate_tensors()


def test_a_dynamic_tensor_is_bounded_too():
    b = Build()
    b.tensor("n", (2,), "INT32")
    b.tensor("v", (), "FLOAT32")
    interpreter = ready(b.op("FILL", "n v", "y").done("n v"))
    interpreter.set_tensor(0, np.int32([1 << 20, 1 << 20]))
    with pytest.raises(ResourceExhaustedError):
        interpreter.invoke()
    interpreter.set_tensor(0, np.int32([2, 2]))
    interpreter.invoke()
    assert interpreter.get_tensor(2).shape == (2, 2)


def test_quantized_tensors_without_integer_kernel_are_refused_by_name():
    b = Build()
    q = objects.QuantizationParameters(scale=[0.5], zero_point=[0])
    b.tensor("x", (3,), "INT8", quantization=q)
    b.tensor("y", (3,), "INT8", quantization=q)
    with pytest.raises(UnimplementedError, match=r"(?s)SIN: .*no kernel for quantized tensors.*'x' INT8"):
        ready(b.op("SIN", "x", "y").done())


def test_memory_of_short_lived_tensors_is_shared():
    b = Build()
    b.tensor("x", (1000,))
    previous = "x"
    for i in range(20):
        b.op("SIN", previous, f"t{i}")
        previous = f"t{i}"
    content = b.op("SIN", previous, "y").done()
    interpreter = ready(content)
    assert interpreter._subgraphs[0].memory_usage.arena <= 4 * (4000 + 64)
    x = np.linspace(0, 1, 1000, dtype=np.float32)
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    expected = x
    for _ in range(21):
        expected = np.sin(expected)
    np.testing.assert_allclose(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), expected, 1e-6)
    preserving = lite.Interpreter(model_content=content, experimental_preserve_all_tensors=True)
    preserving.allocate_tensors()
    preserving.set_tensor(0, x)
    preserving.invoke()
    assert preserving.get_tensor(1).tolist() == np.sin(x).tolist()


def test_arrays_lie_at_64_bytes():
    with flags.override(compiled=False):  # whose plans have tensors of the arena inside
        interpreter = ready(sin_model())
    assert all(t.array.ctypes.data % 64 == 0 for t in interpreter._subgraphs[0].tensors if t.kind == "arena")


def test_weights_are_views_of_the_file():
    b = Build()
    b.tensor("c", data=np.arange(1000, dtype=np.float32))
    b.tensor("x", (1000,))
    content = b.op("ADD", "x c", "y").done()
    interpreter = ready(content)
    base = np.frombuffer(content, np.uint8)
    assert np.shares_memory(base, interpreter.tensor(0)())


def test_strings():
    b = Build()
    b.tensor("x", (3,), "STRING")
    b.tensor("i", type="INT32", data=np.int32([2, 0]))
    b.tensor("y", (2,), "STRING")
    interpreter = ready(b.op("GATHER", "x i", "y", version=4).done())
    interpreter.set_tensor(0, np.array(["a", "bé", "c"]))
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [b"c", b"a"]
    assert interpreter.get_input_details()[0]["dtype"] is np.bytes_
    with pytest.raises(ValueError, match="STRING"):
        interpreter.set_tensor(0, np.int32([1, 2, 3]))


def test_variables_are_zero_and_can_be_reset():
    def count(context, node):
        state = node.inputs[1].data
        state += node.inputs[0].data
        node.outputs[0].data[...] = state

    b = Build()
    b.tensor("state", (5,), is_variable=True)
    content = b.custom("Count", "x state", "y").done()
    interpreter = ready(content, custom_ops={"Count": lite.Registration(invoke=count)})
    index = {d["name"]: d["index"] for d in interpreter.get_tensor_details()}
    interpreter.set_tensor(index["x"], X)
    for times in (1, 2):
        interpreter.invoke()
        assert interpreter.get_tensor(index["y"]).tolist() == (times * X).tolist()
    interpreter.reset_all_variables()
    interpreter.invoke()
    assert interpreter.get_tensor(index["y"]).tolist() == X.tolist()


def test_two_signatures_in_two_subgraphs():
    model = Model.read(sin_model())
    other = Model.read(Build().op("COS", "x", "y").done(signature="cos"))
    other.subgraphs[0].operators[0].opcode_index = 2
    model.subgraphs.append(other.subgraphs[0])
    model.operator_codes += other.operator_codes
    model.signature_defs += other.signature_defs
    model.signature_defs[1].subgraph_index = 1
    interpreter = lite.Interpreter(model_content=model.to_bytes())
    assert list(interpreter.get_signature_list()) == ["serving_default", "cos"]
    with pytest.raises(ValueError, match="None is only allowed when the model has 1 SignatureDef"):
        interpreter.get_signature_runner()
    np.testing.assert_allclose(interpreter.get_signature_runner("cos")(x=X)["y"], np.cos(X), 1e-6)
    np.testing.assert_allclose(interpreter.get_signature_runner("serving_default")(x=X)["y"], np.sin(X + 1), 1e-6)
    assert interpreter.num_subgraphs() == 2
    with pytest.raises(ValueError, match="subgraph_index is out of range"):
        interpreter.get_tensor_details(2)


def test_interpreters_on_one_model_in_threads():
    content, failures = sin_model(), []

    def work(seed):
        x = np.random.default_rng(seed).uniform(-1, 1, 5).astype(np.float32)
        interpreter = ready(model)
        for _ in range(300):
            interpreter.set_tensor(1, x)
            interpreter.invoke()
            if not np.allclose(interpreter.get_tensor(3), np.sin(x + 1), 1e-6):
                failures.append(seed)

    model = Model.read(content)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_public_names_are_loaded_on_demand():
    for name in set(lite.__all__) - {"TFLiteConverter", "OpsSet", "Optimize", "TargetSpec"}:
        assert getattr(lite, name).__name__ == name
    with pytest.raises(AttributeError):
        lite.Nobody  # noqa: B018
    assert "Interpreter" in dir(lite)


def test_nothing_stays_behind():
    def references():
        return sys.getrefcount(registration)

    registration = lite.Registration(invoke=lambda context, node: None)
    interpreter = ready(atan_model(), custom_ops={"Atan": registration})
    interpreter.invoke()
    before = references()
    interpreter.close()
    del interpreter
    assert references() < before
    with pytest.raises(InvalidArgumentError):
        lite.Interpreter(model_content=b"")
