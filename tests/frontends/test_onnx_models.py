"""ONNX models as functions: types, weights, names, control flow, damaged and hostile files."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest

import opwright as ow
from opwright.core import flags
from opwright.frontends.onnx.rules import control_flow
from opwright.lite.format import Model
from opwright.lite.format.schema import BuiltinOperator

onnx = pytest.importorskip("onnx")
TensorProto, helper, numpy_helper = onnx.TensorProto, onnx.helper, onnx.numpy_helper

F = TensorProto.FLOAT


def model_of(nodes, inputs, outputs, initializers=(), opset=17, **rest):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers), **rest)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def info(name, shape, dtype=F):
    return helper.make_tensor_value_info(name, dtype, shape)


def linear(weights):
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="/layer1/layer1.0/fc"),
        helper.make_node("Relu", ["h"], ["y"], name="/act"),
    ]
    return model_of(nodes, [info("x", ["batch", 3])], [info("y", ["batch", 2])], weights)


W = np.float32([[1, -2], [3, 4], [-5, 6]])
B = np.float32([0.5, -0.5])
X = np.float32([[1, 2, 3], [-1, 0, 2]])
Y = np.maximum(X @ W + B, 0)


def weights():
    return [numpy_helper.from_array(W, "w"), numpy_helper.from_array(B, "b")]


def test_a_model_runs_differentiates_saves_and_converts(tmp_path):
    path = tmp_path / "linear.onnx"
    onnx.save(linear(weights()), path)
    f = ow.from_onnx(path)
    assert [s.shape.dims for s in f.input_signature] == [(None, 3)]  # a symbolic size may be any
    np.testing.assert_allclose(f(X).numpy(), Y, 1e-6)
    np.testing.assert_allclose(f(x=X[:1]).numpy(), Y[:1], 1e-6)
    assert "layer1.0/fc" in str(f.concrete().graph)
    x = ow.constant(X)
    with ow.GradientTape() as tape:
        tape.watch(x)
        loss = ow.reduce_sum(f(x))
    np.testing.assert_allclose(tape.gradient(loss, x).numpy(), (Y > 0) @ W.T, 1e-6)
    content = ow.lite.TFLiteConverter.from_concrete_functions([f.named().get_concrete_function()]).convert()
    run = ow.lite.Interpreter(model_content=content).get_signature_runner()
    np.testing.assert_allclose(run(x=X)["y"], Y, 1e-6)
    f.save(tmp_path / "saved")
    served = ow.saved_model.load(tmp_path / "saved").signatures["serving_default"]
    np.testing.assert_allclose(served(x)["y"].numpy(), Y, 1e-6)


def test_pools_with_windows_over_the_edge_are_one_operator():
    """Windows of 3 with steps of 2 in 8 pixels, ceil_mode: a last one of two pixels, against ONNX's own reference."""
    from onnx.reference import ReferenceEvaluator

    x = np.random.default_rng(24).normal(size=(1, 2, 8, 8)).astype(np.float32)
    for kind in ("MaxPool", "AveragePool"):
        node = helper.make_node(kind, ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
        model = model_of([node], [info("x", [1, 2, 8, 8])], [info("y", [1, 2, 4, 4])], opset=19)
        f = ow.from_onnx(model, input_layout="nhwc")
        (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
        np.testing.assert_allclose(f(x.transpose(0, 2, 3, 1)).numpy(), expected, 1e-6)
        assert "pad" not in {node.op.name.lower() for node in f.concrete().graph.nodes}


def test_inverse_trigonometric_functions_have_files_and_come_out_again():
    kinds = {"Acos": np.arccos, "Asin": np.arcsin, "Atan": np.arctan}
    nodes = [helper.make_node(kind, ["x"], [kind]) for kind in kinds]
    function = ow.from_onnx(model_of(nodes, [info("x", [5])], [info(kind, [5]) for kind in kinds]))
    x = np.array([-1, -0.4, 0, 0.999, 1], np.float32)
    content = ow.lite.TFLiteConverter.from_concrete_functions([function.concrete()]).convert()
    interpreter = ow.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    results = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    for y, expected in zip(results, kinds.values()):
        np.testing.assert_allclose(y, expected(x.astype(np.float64)), rtol=1e-6, atol=1e-7)
    assert [n.op_type for n in ow.to_onnx(function).graph.node].count("Atan") == 3  # not one of atan(x) / 1 more


def test_resizing_with_aligned_corners_reaches_the_last_element_as_onnxruntime_does():
    scales = numpy_helper.from_array(np.array([1, 1, 1, 0.5], np.float32), "scales")
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear")
    node.attribute.append(helper.make_attribute("coordinate_transformation_mode", "align_corners"))
    model = model_of([node], [info("x", [1, 1, 1, 7])], [info("y", [1, 1, 1, 3])], [scales])
    x = np.array([3, 1, 4, 1, 5, 9, 2], np.float32)
    np.testing.assert_array_equal(ow.from_onnx(model)(x.reshape(1, 1, 1, 7)).numpy().reshape(-1), x[::3])


def test_weights_in_other_files_and_sparse_ones(tmp_path):
    onnx.save(linear(weights()), tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="w.bin")
    np.testing.assert_allclose(ow.from_onnx(tmp_path / "m.onnx")(X).numpy(), Y, 1e-6)
    values = helper.make_tensor("w", F, [2], [3.0, 6.0])
    indices = helper.make_tensor("w_indices", TensorProto.INT64, [2], [2, 5])
    sparse = helper.make_sparse_tensor(values, indices, [3, 2])
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = model_of([node], [info("x", [2, 3])], [info("y", [2, 2])], sparse_initializer=[sparse])
    np.testing.assert_array_equal(ow.from_onnx(model)(X).numpy(), X @ np.float32([[0, 0], [3, 0], [0, 6]]))


def products(count, size):
    """Return a model of some products with [size, size] matrices, every other one transposed."""
    names = ["x", *(f"h{i}" for i in range(count))]
    nodes = [helper.make_node("Gemm", [names[i], f"w{i}"], [names[i + 1]], transB=i % 2) for i in range(count)]
    arrays = [np.float32(np.random.default_rng(i).standard_normal((size, size)) / size) for i in range(count)]
    initializers = [numpy_helper.from_array(a, f"w{i}") for i, a in enumerate(arrays)]
    return model_of(nodes, [info("x", [1, size])], [info(names[-1], [1, size])], initializers), arrays


@pytest.mark.parametrize("external", [False, True], ids=["inside", "external"])
def test_weights_are_in_memory_once(tmp_path, external):
    """NumPy's and Python's memory is traced; protobuf has a copy of its own of what it parses, which is little."""
    path, (model, arrays) = tmp_path / "m.onnx", products(8, 512)
    onnx.save(model, path, save_as_external_data=external, location="w.bin")
    size = sum(a.nbytes for a in arrays)

    def imported_model():
        f = ow.from_onnx(path)
        return f, ow.lite.TFLiteConverter.from_concrete_functions([f.named().get_concrete_function()])

    imported_model()[1].write(
        tmp_path / "first.tflite"
    )  # modules and tables, which take 5 MB when they are loaded here
    tracemalloc.start()
    f, converter = imported_model()
    imported = tracemalloc.get_traced_memory()[1] / size
    converter.write(tmp_path / "m.tflite")
    written = tracemalloc.get_traced_memory()[1] / size
    tracemalloc.stop()
    assert imported < (0.1 if external else 1.1)
    assert written < imported + 0.3  # one at a time
    x = np.float32(np.random.default_rng(8).standard_normal((1, 512)))
    expected = x.astype(np.float64)
    for i, a in enumerate(arrays):
        expected = expected @ (a.T if i % 2 else a)
    run = ow.lite.Interpreter(str(tmp_path / "m.tflite")).get_signature_runner()
    for y in (f(x).numpy(), run(x=x)["h7"], ow.from_onnx(path.read_bytes() if not external else path)(x).numpy()):
        np.testing.assert_allclose(y, expected, 1e-4, 1e-4 * np.abs(expected).max())
    path.write_bytes(b"")  # the function needs the file no more, other than external data
    np.testing.assert_array_equal(f(x).numpy(), y)


def test_large_damaged_files(tmp_path):
    content = products(2, 64)[0].SerializeToString()
    path = tmp_path / "m.onnx"
    for part in (content[:-9000], content[:9000], b"\x0b" + content):
        path.write_bytes(part)
        for source in (part, path):
            with pytest.raises(ow.errors.InvalidArgumentError, match="no ONNX file"):
                ow.from_onnx(source)


def test_two_initializers_of_one_name(tmp_path):
    model, arrays = products(1, 64)
    model.graph.initializer.append(numpy_helper.from_array(arrays[0] + 1, "w0"))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    results = [ow.from_onnx(source)(np.eye(64)[:1].astype(np.float32)) for source in (model, tmp_path / "m.onnx")]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "link.bin", "gone.bin", "", "folder"])
def test_no_file_outside_of_the_folder_is_read(tmp_path, location):
    folder = tmp_path / "model"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    tensor = numpy_helper.from_array(W, "w")
    onnx.external_data_helper.set_external_data(tensor, location or "x")
    tensor.ClearField("raw_data")
    tensor.external_data[0].value = location
    (folder / "m.onnx").write_bytes(linear([tensor, weights()[1]]).SerializeToString())
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"'w'.*external data"):
        ow.from_onnx(folder / "m.onnx")


def damaged(change):
    model = linear(weights())
    change(model)
    return model.SerializeToString()


DAMAGED = {
    "no ONNX file": b"hello",
    "has no graph": b"",
    "used before a node computes it": damaged(lambda m: m.graph.node[0].input.__setitem__(0, "y")),
    "another number of elements": damaged(lambda m: m.graph.initializer[0].dims.__setitem__(0, 4)),
    "shape is damaged": damaged(lambda m: m.graph.initializer[0].dims.__setitem__(0, 2**62)),
    r"shape is damaged\s+found +\(4611686018427387904, 0, ": damaged(
        lambda m: m.graph.initializer[0].dims.__setitem__(slice(None), [2**62, 0, 2**62])
    ),
    "no such opset": damaged(lambda m: setattr(m.opset_import[0], "version", 1000)),
    "two values of one name": damaged(lambda m: m.graph.node.append(m.graph.node[-1])),
    "two inputs of one name": damaged(lambda m: m.graph.input.append(m.graph.input[0])),
    "an output has no name": damaged(lambda m: setattr(m.graph.output[0], "name", "")),
    r"wrong number of inputs\s+found +9\s+wanted +1 to 1": damaged(lambda m: m.graph.node[1].input.extend(["h"] * 8)),
    "'x' and 'w' have different types": damaged(
        lambda m: m.graph.initializer[0].CopyFrom(numpy_helper.from_array(W.astype(np.int32), "w"))
    ),
    "not a multiple": damaged(lambda m: setattr(m.graph.initializer[0], "raw_data", b"123")),
    "has no dtype": damaged(lambda m: setattr(m.graph.initializer[0], "data_type", 77)),
    "no dtype has this number": damaged(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 99)),
    "/layer1/layer1.0/fc": damaged(lambda m: m.graph.initializer[0].CopyFrom(numpy_helper.from_array(W[:2], "w"))),
}


@pytest.mark.parametrize("says", DAMAGED)
def test_damaged_files_are_named(says):
    with pytest.raises(ow.errors.InvalidArgumentError, match=says):
        ow.from_onnx(DAMAGED[says])


def test_functions_that_call_themselves_end():
    node = helper.make_node("Again", ["x"], ["y"], domain="my")
    function = helper.make_function("my", "Again", ["x"], ["y"], [node], [helper.make_opsetid("my", 1)])
    graph = helper.make_graph([node], "g", [info("x", [2])], [info("y", [2])])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    model = helper.make_model(graph, functions=[function], opset_imports=imports)
    with pytest.raises(ow.errors.InvalidArgumentError, match="too deep"):
        ow.from_onnx(model)


def test_functions_that_double_are_refused_before_they_are_executed():
    """Each of 40 functions calls the one before it twice: 2**40 nodes in a file of 4 KB."""
    functions = []
    for i in range(40):
        inner = (
            helper.make_node(f"F{i - 1}", ["x"], ["h"], domain="my") if i else helper.make_node("Relu", ["x"], ["h"])
        )
        again = helper.make_node(inner.op_type, ["h"], ["y"], domain=inner.domain)
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
        functions.append(helper.make_function("my", f"F{i}", ["x"], ["y"], [inner, again], imports))
    graph = helper.make_graph(
        [helper.make_node("F39", ["x"], ["y"], domain="my")], "g", [info("x", [2])], [info("y", [2])]
    )
    model = helper.make_model(graph, functions=functions, opset_imports=imports)
    with pytest.raises(ow.errors.InvalidArgumentError, match="too often"):
        ow.from_onnx(model)


def doubled(times):
    """Return a model whose only constant is concatenated with itself again and again."""
    nodes = [helper.make_node("Concat", [f"c{i}"] * 2, [f"c{i + 1}"], f"twice{i}", axis=0) for i in range(times)]
    return model_of(nodes, [], [info(f"c{times}", None)], [numpy_helper.from_array(W, "c0")])


def of_constants(operator, *arrays, **attributes):
    """Return a model of one operator on constants."""
    names = [f"a{i}" for i in range(len(arrays))]
    node = helper.make_node(operator, names, ["y"], name="it", **attributes)
    constants = [numpy_helper.from_array(np.asarray(a), n) for a, n in zip(arrays, names)]
    return model_of([node], [], [info("y", None)], constants, opset=20)


LARGE = {
    "eye": model_of([helper.make_node("EyeLike", ["x"], ["y"], "it")], [info("x", [2**28, 2**28])], [info("y", None)]),
    "fill": of_constants("ConstantOfShape", np.int64([2**30, 64])),
    "tiles": of_constants("Tile", np.float32([1, 2]), np.int64([2**29])),
    "sizes": of_constants("AffineGrid", np.zeros((1, 2, 3), np.float32), np.int64([1, 1, 2**15, 2**15])),
    "window": of_constants("HannWindow", np.int64(2**40)),
}


@pytest.mark.parametrize("name", LARGE)
def test_constants_of_any_size_name_the_operator(name):
    with pytest.raises(ow.errors.ResourceExhaustedError, match=r"'it': (.|\n)*take too much memory"):
        ow.from_onnx(LARGE[name])


def test_constants_that_grow_are_limited_together():
    with flags.override(max_activation_bytes=1 << 16), pytest.raises(ow.errors.ResourceExhaustedError, match="twice"):
        ow.from_onnx(doubled(20))
    np.testing.assert_array_equal(ow.from_onnx(doubled(3))().numpy(), np.concatenate([W] * 8))


def test_loops_in_loops_are_written_out_only_if_they_are_short(monkeypatch):
    """Loops of 4000 steps in loops of 4000 steps would be 16 million nodes of a file of 1 KB."""
    monkeypatch.setattr(control_flow, "MAX_UNROLLED_NODES", 100)

    def nested(depth, steps, x, y):
        if not depth:
            return helper.make_node("Neg", [x], [y])
        i, more, inner, again, result = (f"{n}{depth}" for n in ("i", "more", "v", "again", "w"))
        nodes = [nested(depth - 1, steps, inner, result), helper.make_node("Identity", [more], [again])]
        inputs = [info(i, [], TensorProto.INT64), info(more, [], TensorProto.BOOL), info(inner, [2])]
        body = helper.make_graph(nodes, "body", inputs, [info(again, [], TensorProto.BOOL), info(result, [2])])
        return helper.make_node("Loop", ["n", "", x], [y], body=body)

    for depth, steps in ((3, 20), (2, 3)):
        count = numpy_helper.from_array(np.int64(steps), "n")
        f = ow.from_onnx(model_of([nested(depth, steps, "x", "y")], [info("x", [2])], [info("y", [2])], [count]))
        names = [node.op.name for node in f.concrete().graph.nodes]
        assert ("While" in names) == (depth == 3)
    np.testing.assert_array_equal(f(np.float32([1, 2])).numpy(), [-1, -2])


def foreign():
    nodes = [
        helper.make_node("Fancy", ["x"], ["h"], "f1", domain="my", alpha=2.0),
        helper.make_node("Other", ["h", "x"], ["y"], "o1", domain="my"),
    ]
    model = model_of(nodes, [info("x", [2])], [info("y", [2])])
    model.opset_import.append(helper.make_opsetid("my", 1))
    return model


def test_missing_operators_are_listed_and_may_be_defined():
    with pytest.raises(ow.errors.UnimplementedError, match=r"my::Fancy\(x: float32\[2\], alpha=2.0\) 1 times at f1"):
        ow.from_onnx(foreign())
    custom = {"my::Fancy": lambda x, alpha: x * alpha, "my::Other": ow.add}
    np.testing.assert_array_equal(ow.from_onnx(foreign(), custom=custom)(np.float32([1, 2])).numpy(), [3, 6])


def test_an_input_that_decides_about_the_graph_specialises_the_function():
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    model = model_of([node], [info("x", [2, 3]), info("axes", [1], TensorProto.INT64)], [info("y", None)])
    f = ow.from_onnx(model)
    for axis in (0, 1, 0):
        np.testing.assert_array_equal(f(X, np.int64([axis])).numpy(), X.sum(axis))
    assert f.experimental_get_tracing_count() == 2  # one trace for each value
    fixed = ow.from_onnx(model, values={"axes": np.int64([1])})
    np.testing.assert_array_equal(fixed(X).numpy(), X.sum(1))
    with pytest.raises(ow.errors.InvalidArgumentError, match="no inputs of these names"):
        ow.from_onnx(model, values={"axis": np.int64([1])})


def branches(name, operator):
    node = helper.make_node(operator, ["x", "x"], [f"{name}_y"])
    return helper.make_graph([node], name, [], [info(f"{name}_y", [2])])


def test_branches_and_loops_on_values():
    test = helper.make_node("Greater", ["s", "zero"], ["c"])
    total = helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0)
    node = helper.make_node("If", ["c"], ["y"], then_branch=branches("t", "Add"), else_branch=branches("e", "Mul"))
    zero = numpy_helper.from_array(np.float32(0), "zero")
    f = ow.from_onnx(model_of([total, test, node], [info("x", [2])], [info("y", [2])], [zero]))
    for x in (np.float32([1, 2]), np.float32([-1, -2])):
        np.testing.assert_array_equal(f(x).numpy(), x + x if x.sum() > 0 else x * x)
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "v"], ["w"]),
            helper.make_node("Identity", ["more"], ["again"]),
            helper.make_node("Identity", ["w"], ["row"]),
        ],
        "body",
        [info("i", [], TensorProto.INT64), info("more", [], TensorProto.BOOL), info("v", [2])],
        [info("again", [], TensorProto.BOOL), info("w", [2]), info("row", [2])],
    )
    count = helper.make_node("Cast", ["n"], ["trips"], to=TensorProto.INT64)
    loop = helper.make_node("Loop", ["trips", "", "x"], ["last", "rows"], body=body)
    inputs = [info("x", [2]), info("n", [])]
    f = ow.from_onnx(model_of([count, loop], inputs, [info("last", [2]), info("rows", [None, 2])]))
    last, rows = f(np.float32([1, 2]), np.float32(3))
    np.testing.assert_array_equal(last.numpy(), [8, 16])
    np.testing.assert_array_equal(rows.numpy(), [[2, 4], [4, 8], [8, 16]])


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ow.errors.FailedPreconditionError, match=r"opwright\[onnx\]"):
        ow.from_onnx(b"")


RECURRENT_ACTIVATIONS = {
    "Elu": ([0.5], [], lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    "ThresholdedRelu": ([0.25], [], lambda x: np.where(x > 0.25, x, 0)),
    "HardSigmoid": ([0.3], [0.4], lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
    "ScaledTanh": ([1.5], [0.5], lambda x: 1.5 * np.tanh(0.5 * x)),
    "Affine": ([0.2], [0.1], lambda x: 0.2 * x + 0.1),
}
"""By name: alpha, beta, the formula of the specification."""


@pytest.mark.parametrize("name", RECURRENT_ACTIVATIONS)
def test_activations_of_recurrent_operators_have_their_parameters(name):
    rng = np.random.default_rng(0)
    w, r = rng.normal(size=(1, 4, 3)).astype("f4"), rng.normal(size=(1, 4, 4)).astype("f4")
    alpha, beta, formula = RECURRENT_ACTIVATIONS[name]
    numbers = {"activation_alpha": alpha} | ({"activation_beta": beta} if beta else {})
    node = helper.make_node("RNN", ["x", "w", "r"], ["y"], hidden_size=4, activations=[name], **numbers)
    weights = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(r, "r")]
    x = rng.normal(size=(5, 2, 3)).astype("f4")
    function = ow.from_onnx(model_of([node], [info("x", x.shape)], [info("y", None)], weights))
    state, expected = np.zeros((2, 4)), []
    for step in x.astype("f8"):
        state = formula(step @ w[0].T + state @ r[0].T)
        expected.append(state)
    (actual,) = ow.nest.flatten(function(ow.constant(x)))
    np.testing.assert_allclose(actual.numpy().reshape(5, 2, 4), expected, rtol=1e-5, atol=1e-6)


def test_images_channels_last():
    """A convolutional network that takes images channels-last has no transpose in its file; the oracle is NumPy."""
    kernel = np.arange(24, dtype=np.float32).reshape(4, 3, 1, 2) % 7 - 3
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("GlobalAveragePool", ["c"], ["y"])]
    model = model_of(
        nodes, [info("x", [1, 3, 4, 5])], [info("y", [1, 4, 1, 1])], [numpy_helper.from_array(kernel, "w")]
    )
    f = ow.from_onnx(model, input_layout="nhwc")
    x = np.random.default_rng(0).standard_normal((1, 4, 5, 3)).astype(np.float32)
    means = np.stack([x[:, :, :-1].mean((1, 2)), x[:, :, 1:].mean((1, 2))], -1)
    expected = np.einsum("ncw,ocw->no", means, kernel[:, :, 0])[:, :, None, None]
    np.testing.assert_allclose(f(x), expected, 1e-5, 1e-5)
    content = ow.lite.TFLiteConverter.from_concrete_functions([f.named().get_concrete_function()]).convert()
    assert {code.builtin_code for code in Model.read(content).operator_codes} == {
        BuiltinOperator.CONV_2D,
        BuiltinOperator.MEAN,
        BuiltinOperator.RESHAPE,  # [1, 1, 1, 4] to [1, 4, 1, 1]: the layout of results stays the model's
    }
    last = ow.from_onnx(model, input_layout="nhwc", output_layout="nhwc")
    np.testing.assert_array_equal(last(x), f(x).numpy().transpose(0, 2, 3, 1))
    with pytest.raises(ow.errors.InvalidArgumentError, match="output_layout"):
        ow.from_onnx(model, output_layout="chw")


@pytest.mark.parametrize("operator", ["MatMulInteger", "ConvInteger"])
def test_integers_whose_sums_take_more_than_24_bits(operator):
    """In files, as sums of parts that float32 holds exactly: against int64, at the ends of 8 bits."""
    draw = np.random.default_rng(2)
    sizes, filters = ((2, 3, 900), (900, 4)) if operator == "MatMulInteger" else ((1, 300, 3, 2), (2, 300, 2, 2))
    x = draw.integers(200, 256, sizes).astype(np.uint8)
    w = draw.choice([-128, 127], filters, p=[0.9, 0.1]).astype(np.int8)
    arrays = [onnx.numpy_helper.from_array(v, n) for v, n in ((w, "w"), (np.uint8(3), "zx"), (np.int8(-5), "zw"))]
    node = helper.make_node(operator, ["x", "w", "zx", "zw"], ["y"])
    integers = onnx.TensorProto.UINT8, onnx.TensorProto.INT32
    model = model_of([node], [info("x", x.shape, integers[0])], [info("y", None, integers[1])], arrays)
    a, b = x.astype(np.int64) - 3, w.astype(np.int64) + 5
    if operator == "MatMulInteger":
        expected = a @ b
    else:
        windows = np.lib.stride_tricks.sliding_window_view(a, (2, 2), (2, 3))
        expected = np.einsum("nchwij,ocij->nohw", windows, b)
    assert np.abs(expected).max() > 1 << 24
    function = ow.from_onnx(model)
    content = ow.lite.TFLiteConverter.from_concrete_functions([function.named().get_concrete_function()]).convert()
    run = ow.lite.Interpreter(model_content=content).get_signature_runner()
    for actual in (function(x), run(x=x)["y"]):
        np.testing.assert_array_equal(np.asarray(actual), expected)


def test_dtypes_that_the_catalogue_lacks_are_errors():
    weights = helper.make_tensor("w", onnx.TensorProto.FLOAT8E5M2, [2], [1.0, 2.0])
    nodes = [helper.make_node("Add", ["w", "w"], ["v"]), helper.make_node("Cast", ["v"], ["y"], to=F)]
    model = model_of(nodes, [info("x", [2])], [info("y", [2])], [weights], opset=19)
    with pytest.raises(ow.errors.UnimplementedError, match="float8_e5m2"):
        ow.from_onnx(model)


def test_recurrent_operators_of_a_batch_of_any_size_and_names_of_results():
    """Without an initial state, against ONNX's own reference."""
    from onnx.reference import ReferenceEvaluator

    draw = np.random.default_rng(5)
    w, r, b = (draw.normal(size=s).astype(np.float32) for s in ((1, 16, 3), (1, 16, 4), (1, 32)))
    arrays = [onnx.numpy_helper.from_array(v, n) for n, v in (("w", w), ("r", r), ("b", b))]
    node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["Y", "Y_h"], hidden_size=4)
    outputs = [info("Y", ["steps", 1, "n", 4]), info("Y_h", [1, "n", 4])]
    model = model_of([node], [info("x", ["steps", "n", 3])], outputs, arrays)
    function = ow.from_onnx(model)
    content = ow.lite.TFLiteConverter.from_concrete_functions([function.named().get_concrete_function()]).convert()
    run = ow.lite.Interpreter(model_content=content).get_signature_runner()
    for steps, batch in ((3, 2), (20, 5)):
        x = draw.normal(size=(steps, batch, 3)).astype(np.float32)
        expected = ReferenceEvaluator(model).run(None, {"x": x})
        for actual in (function(x), list(run(x=x).values())):
            for one, other in zip(actual, expected):
                np.testing.assert_allclose(np.asarray(one), other, rtol=0, atol=2e-6)
    assert set(run(x=x)) == {"Y", "Y_h"}
