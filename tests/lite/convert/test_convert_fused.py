"""Functions that stand for a fused operator: one custom operator in the file, with options, arguments and captures."""

from __future__ import annotations

import numpy as np
import pytest
from convert_harness import assert_same, converter, f32, official, ours
from lite_kit import op_names

import opwright as ow
from opwright.core.errors import InvalidArgumentError
from opwright.lite.convert.custom_operators import read_implements
from opwright.lite.format import Model
from opwright.lite.format.flexbuffers import decode

# The text that the official documents give for fusing, with an attribute of every kind.
TEXT = """name: "my_op" attr {key: "tfl_fusable_op" value { b: true } }
          attr {key: "count" value { i: -10 } } attr {key: "alpha" value { f: 0.5 } }
          attr {key: 'mode' value {s: "a\\"b"}}
          attr {key: "sizes" value {list {i: 1 i: 2}}} attr {key: "T" value {type: DT_FLOAT}}
          attr {key: "flag" value: <b: false>}"""
OPTIONS = {"count": -10, "alpha": 0.5, "mode": 'a"b', "sizes": [1, 2], "T": 0, "flag": False}
X = f32(2, 3)


def model(implements):
    weight = ow.Variable(f32(3))

    @ow.function(experimental_implements=implements)
    def fused(x, y):
        return ow.nn.relu(x) * weight + y, x - y

    @ow.function(input_signature=[ow.TensorSpec([None, 3], "float32", name="x")])
    def main(x):
        a, b = fused(x, ow.exp(x))
        return a + b

    return main, weight


def content_of(implements, allow):
    main, _ = model(implements)
    return converter(main.get_concrete_function(), allow_custom_ops=allow).convert()


@pytest.mark.parametrize(("implements", "allow"), [(TEXT, False), (TEXT, True), ("my_op", True)])
def test_one_custom_operator(implements, allow):
    content = content_of(implements, allow)
    assert op_names(content) == ["EXP", "my_op", "ADD"]
    read = Model.read(content)
    operator = read.subgraphs[0].operators[1]
    assert decode(bytes(operator.custom_options)) == (OPTIONS if implements is TEXT else {})
    taken = [read.subgraphs[0].tensors[i] for i in operator.inputs]
    assert [t.name for t in taken[:2]] == ["x", read.subgraphs[0].tensors[operator.inputs[1]].name]
    np.testing.assert_array_equal(read.buffers[taken[2].buffer].data.view(np.float32), f32(3))  # what it captured
    assert len(operator.outputs) == 2


@pytest.mark.parametrize("implements", ["my_op", 'name: "my_op"', 'name: "my_op" attr {key: "n" value {i: 1}}'])
def test_what_it_does_where_custom_operators_are_not_allowed(implements):
    content = content_of(implements, False)
    assert op_names(content) == ["EXP", "RELU", "MUL", "ADD", "SUB", "ADD"]
    main, _ = model(implements)
    assert_same(ours(content, [X]), [main(X).numpy()], 1e-6)
    assert_same(official(content, [X]), [main(X).numpy()], 1e-6)


def test_the_interpreter_runs_it_with_a_definition():
    @ow.operator
    class my_op:
        x = ow.Input("float32")
        y = ow.Input("float32", like="x")
        weight = ow.Input("float32", like="x")
        a = ow.Output(like="x")
        b = ow.Output(like="x")
        count, alpha, mode = ow.Attr(int, default=0), ow.Attr(float, default=0.0), ow.Attr(str, default="")
        sizes, T, flag = ow.Attr([int], default=()), ow.Attr(int, default=0), ow.Attr(bool, default=True)

        def infer(op):
            return op.x.spec, op.x.spec

        def compute(op, x, y, weight):
            assert (op.count, op.alpha, tuple(op.sizes), op.flag) == (-10, 0.5, (1, 2), False)
            return np.maximum(x, 0) * weight + y, x - y

    main, _ = model(TEXT)
    interpreter = ow.lite.Interpreter(model_content=content_of(TEXT, True), custom_ops=[my_op])
    runner = interpreter.get_signature_runner()
    np.testing.assert_allclose(next(iter(runner(x=X).values())), main(X).numpy(), rtol=1e-6)


def test_marks_change_no_result_and_no_gradient():
    (marked, w), (plain, v) = model("my_op"), model(None)
    x = ow.constant(X)
    result = []
    for function, weight in ((marked, w), (plain, v)):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        result.append([y.numpy(), *(g.numpy() for g in tape.gradient(y, [x, weight]))])
    for a, b in zip(*result):
        np.testing.assert_array_equal(a, b)


def test_in_branches_and_loops():
    @ow.function(experimental_implements=TEXT)
    def fused(x):
        return x * 2.0

    @ow.function(input_signature=[ow.TensorSpec([3], "float32")])
    def main(x):
        for _ in ow.range(3):
            x = fused(x)
        return x

    content = converter(main.get_concrete_function()).convert()
    assert [n for i in range(len(Model.read(content).subgraphs)) for n in op_names(content, i)].count("my_op") == 1


def test_a_saved_model_keeps_it(tmp_path):
    module = ow.Module()
    module.main, module.weight = main, _ = model(TEXT)
    ow.saved_model.save(module, str(tmp_path), signatures=main)
    content = ow.lite.TFLiteConverter.from_saved_model(str(tmp_path)).convert()
    assert "my_op" in op_names(content)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('attr {key: "n" value {i: 1}}', "names no operator"),
        ('name: "a" name: "b"', "names no operator"),
        ('name: "a" attr {key: "n" value {i: 1}', "is missing"),
        ('name: "a" attr', "ends too early"),
        ('name: "a" attr {key: "n" value {i: what}}', "'what' is not a value"),
        ('name: "a', "is not part of it"),
        ('name: "a" attr } {', "after 'attr'"),
    ],
)
def test_text_that_cannot_be_read(text, says):
    with pytest.raises(InvalidArgumentError, match=says):
        read_implements(text)


def test_quantising_calibrates_with_the_kernels_given():
    weight = f32(3, 3)

    @ow.function(experimental_implements="my_relu")
    def fused(x):
        return ow.nn.relu(x)

    @ow.function(input_signature=[ow.TensorSpec([2, 3], "float32")])
    def main(x):
        return ow.matmul(fused(ow.matmul(x, weight)), weight)

    def invoke(context, node):
        node.outputs[0].data[...] = np.maximum(node.inputs[0].data, 0)

    def prepare(context, node):
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    kernels = {"my_relu": ow.lite.Registration(prepare=prepare, invoke=invoke)}
    made = converter(
        main.get_concrete_function(),
        allow_custom_ops=True,
        optimizations=[ow.lite.Optimize.DEFAULT],
        representative_dataset=lambda: [[X], [-X]],
    )
    with pytest.raises(ow.errors.NotFoundError, match=r"custom op: my_relu(.|\n)*calibration_custom_ops"):
        made.convert()
    made.calibration_custom_ops = kernels
    content = made.convert()
    expected = ["QUANTIZE", "FULLY_CONNECTED", "DEQUANTIZE", "my_relu", "QUANTIZE", "FULLY_CONNECTED", "DEQUANTIZE"]
    assert op_names(content) == expected
    actual = ow.lite.Interpreter(model_content=content, custom_ops=kernels).get_signature_runner()(x=X)
    answer = main(X).numpy()
    np.testing.assert_allclose(actual["output_0"], answer, atol=0.03 * np.abs(answer).max())


# ---- breadth --------------------------------------------------------------------------------------------------------


def marked(name, body, always=True, **options):
    """A function that stands for an operator. options: int or float."""
    kinds = {int: "i", float: "f", bool: "b"}
    attrs = "".join(f' attr {{key: "{k}" value {{{kinds[type(v)]}: {v}}}}}' for k, v in options.items())
    flag = ' attr {key: "tfl_fusable_op" value {b: true}}' if always else ""
    return ow.function(body, experimental_implements=f'name: "{name}"{flag}{attrs}')


def content_from(function, *specs, **settings):
    return converter(ow.function(function).get_concrete_function(*specs), **settings).convert()


X3 = ow.TensorSpec([3], "float32", name="x")


@ow.operator(name="fused_scale")
class FusedScale:
    x = ow.Input("float32")
    y = ow.Output(like="x")
    by = ow.Attr(float)

    def compute(op, x):
        return x * np.float32(op.by)


def test_two_of_one_name_with_other_options_stay_two():
    two, three = (marked("fused_scale", lambda x, by=by: x * by, by=by) for by in (2.0, 3.0))
    content = content_from(lambda x: two(x) + three(x), X3)
    assert op_names(content) == ["fused_scale", "fused_scale", "ADD"]
    result = ow.lite.Interpreter(model_content=content, custom_ops=[FusedScale]).get_signature_runner()(x=X[0])
    np.testing.assert_allclose(result["output_0"], X[0] * 5, rtol=1e-6)


def test_a_function_within_another_belongs_to_the_outer_one():
    inner = marked("fused_scale", lambda x: x * 2.0, by=2.0)
    always, perhaps = (marked("outer", lambda x: inner(x) + 1.0, always) for always in (True, False))
    assert op_names(content_from(lambda x: always(x), X3)) == ["outer"]
    assert op_names(content_from(lambda x: perhaps(x), X3)) == ["fused_scale", "ADD"]
    assert op_names(content_from(lambda x: perhaps(x), X3, allow_custom_ops=True)) == ["outer"]


def test_structures_of_tensors_go_in_and_out():
    def body(pair, *, scale):
        return {"sum": pair["a"] + pair["b"], "rest": (pair["a"] * scale, ow.reduce_sum(pair["b"]))}

    fused = marked("structured", body)

    def main(x):
        result = fused({"a": x, "b": x * 2.0}, scale=ow.constant(3.0))
        return result["sum"] + result["rest"][0] + result["rest"][1]

    content = content_from(main, X3)
    assert op_names(content) == ["MUL", "structured", "ADD", "ADD"]
    (node,) = [n for n in Model.read(content).subgraphs[0].operators if len(n.outputs) == 3]
    assert len(node.inputs) == 3

    def prepare(context, node):
        x = node.inputs[0].shape
        outputs = {len(x): x, 0: ()}
        for tensor in node.outputs:
            context.resize_tensor(tensor, outputs[len(tensor.shape)])

    def invoke(context, node):
        a, b, scale = (t.data for t in node.inputs)
        # in the order of the structure: by sorted key
        node.outputs[0].data[...], node.outputs[1].data[...] = a * scale, b.sum()
        node.outputs[2].data[...] = a + b

    kernel = ow.lite.Registration(prepare=prepare, invoke=invoke)
    interpreter = ow.lite.Interpreter(model_content=content, custom_ops={"structured": kernel})
    result = interpreter.get_signature_runner()(x=X[0])
    np.testing.assert_allclose(result["output_0"], ow.function(main)(X[0]).numpy(), rtol=1e-6)


def test_a_branch_has_one_and_runs_it():
    two, three = (marked("fused_scale", lambda x, by=by: x * by, by=by) for by in (2.0, 3.0))

    def main(x):
        return two(x) if ow.reduce_sum(x) > 0.0 else three(x)

    content = content_from(main, X3)
    names = [n for i in range(len(Model.read(content).subgraphs)) for n in op_names(content, i)]
    assert names.count("fused_scale") == 2
    runner = ow.lite.Interpreter(model_content=content, custom_ops=[FusedScale]).get_signature_runner()
    for x in (np.float32([1, 2, 3]), -np.float32([1, 2, 3])):
        np.testing.assert_allclose(runner(x=x)["output_0"], x * (2 if x.sum() > 0 else 3), rtol=1e-6)


def test_what_is_differentiated_is_not_fused_away():
    """The gradient of a fused function reads inner values, which are computed in addition to the fused operator."""
    fused = marked("fused_scale", lambda x: x * 2.0, by=2.0)

    def main(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.reduce_sum(ow.exp(fused(x)))
        return y, tape.gradient(y, x)

    content = content_from(main, X3)
    assert "fused_scale" in op_names(content)
    result = ow.lite.Interpreter(model_content=content, custom_ops=[FusedScale]).get_signature_runner()(x=X[0])
    np.testing.assert_allclose(result["output_0"], np.exp(2 * X[0]).sum(), rtol=1e-5)
    np.testing.assert_allclose(result["output_1"], 2 * np.exp(2 * X[0]), rtol=1e-5)


def test_unknown_sizes_and_other_dtypes():
    @ow.operator(name="fused_count")
    class FusedCount:
        x = ow.Input("int32")
        n = ow.Output(dtype="int64")

        def infer(op):
            return ow.TensorSpec([], "int64")

        def compute(op, x):
            return np.int64(np.count_nonzero(x))

    fused = marked("fused_count", lambda x: ow.math.count_nonzero(x))
    content = content_from(lambda x: fused(x) + 1, ow.TensorSpec([None], "int32", name="x"))
    runner = ow.lite.Interpreter(model_content=content, custom_ops=[FusedCount]).get_signature_runner()
    for x in ([0, 1, 2], [5]):
        assert runner(x=np.int32(x))["output_0"] == np.count_nonzero(x) + 1


def test_a_saved_model_converts_and_runs(tmp_path):
    module = ow.Module()
    module.two = marked("fused_scale", lambda x: x * 2.0, by=2.0)
    module.main = main = ow.function(lambda x: module.two(x) + 1.0, input_signature=[X3])
    ow.saved_model.save(module, str(tmp_path), signatures=main)
    content = ow.lite.TFLiteConverter.from_saved_model(str(tmp_path)).convert()
    assert op_names(content) == ["fused_scale", "ADD"]
    result = ow.lite.Interpreter(model_content=content, custom_ops=[FusedScale]).get_signature_runner()(x=X[0])
    np.testing.assert_allclose(next(iter(result.values())), X[0] * 2 + 1, rtol=1e-6)
