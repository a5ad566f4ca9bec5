"""Patterns of users: what is found becomes one operator that computes the same, what only looks like it does not.

The oracle is the unfused form: eagerly by this package, and for whole models by plain NumPy in float64.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from convert_harness import converter, f32
from lite_kit import op_names

import opwright as ow
from opwright import lite
from opwright.core.errors import InvalidArgumentError
from opwright.lite.format import Model
from opwright.lite.format.flexbuffers import decode
from opwright.testing.cases import check_pattern


@ow.operator
class PatternNorm:
    """Layer normalisation.   .. math:: y = (x - mean) / sqrt(var + epsilon) gamma + beta"""

    x = ow.Input(ow.floating)
    gamma = ow.Input(ow.floating, like="x")
    beta = ow.Input(ow.floating, like="x")
    y = ow.Output(like="x")
    epsilon = ow.Attr(float, default=1e-3, check=ow.attr.greater_than(0.0))

    def compute(op, x, gamma, beta):
        c = x - x.mean(-1, keepdims=True)
        return c / np.sqrt((c * c).mean(-1, keepdims=True) + op.epsilon) * gamma + beta


@lite.pattern(PatternNorm)
def norm(x, gamma, beta, *, epsilon):
    c = x - ow.reduce_mean(x, -1, keepdims=True)
    variance = ow.reduce_mean(ow.square(c), -1, keepdims=True)
    return c * ow.math.rsqrt(variance + epsilon) * gamma + beta


@norm.also
def norm_by_moments(x, gamma, beta, *, epsilon):
    mean, variance = ow.nn.moments(x, [-1], keepdims=True)
    return ow.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)


def convert(function, *specs, patterns, **settings):
    """The file, and what was made of each pattern."""
    made = converter(ow.function(function).get_concrete_function(*specs), patterns=patterns, **settings)
    return made.convert(), made.patterns_found


def run(content, *arrays, custom_ops=()):
    interpreter = lite.Interpreter(model_content=content, custom_ops=custom_ops)
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.resize_tensor_input(detail["index"], np.shape(array))
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], np.asarray(array))
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def spec(*shape, dtype="float32", name=None):
    return ow.TensorSpec(shape, dtype, name=name)


def reference(x, gamma, beta, epsilon):
    x = x.astype(np.float64)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon) * gamma + beta


# ---- one pattern in one model ---------------------------------------------------------------------------------------


def test_what_a_person_wrote_by_hand_is_one_operator():
    gamma, beta = f32(8), f32(8) * 0.5

    def model(x):
        mean = ow.reduce_mean(x, axis=[2], keepdims=True)  # the last axis by another number
        d = x - mean
        scaled = ow.math.rsqrt(1e-5 + ow.reduce_mean(ow.square(d), axis=2, keepdims=True)) * d  # other orders
        return ow.nn.relu(beta + gamma * scaled)

    content, (result,) = convert(model, spec(None, 3, 8), patterns=[norm])
    assert op_names(content) == ["PatternNorm", "RELU"]
    assert (result.pattern, result.count, len(result.at)) == ("PatternNorm", 1, 1)
    assert "test_convert_patterns.py:" in result.at[0]
    (node, _) = Model.read(content).subgraphs[0].operators
    assert decode(bytes(node.custom_options)) == {"epsilon": 1e-5}
    x = f32(2, 3, 8)
    (y,) = run(content, x, custom_ops=[PatternNorm])
    np.testing.assert_allclose(y, np.maximum(reference(x, gamma, beta, 1e-5), 0), rtol=1e-5, atol=1e-6)


def test_layers_of_this_package_are_found_by_another_form():
    ow.random.set_seed(11)
    model = ow.keras.Sequential(
        [
            ow.keras.layers.Input((3, 8)),
            ow.keras.layers.Dense(8),
            ow.keras.layers.LayerNormalization(),
            ow.keras.layers.Dense(4),
            ow.keras.layers.LayerNormalization(epsilon=0.5),
        ]
    )
    made = lite.TFLiteConverter.from_keras_model(model)
    made.patterns = [norm]
    content = made.convert()
    assert op_names(content) == ["FULLY_CONNECTED", "PatternNorm"] * 2
    options = [decode(bytes(n.custom_options)) for n in Model.read(content).subgraphs[0].operators[1::2]]
    assert options == [{"epsilon": 0.001}, {"epsilon": 0.5}]
    x = f32(2, 3, 8)
    (y,) = run(content, x[:1], custom_ops=[PatternNorm])
    np.testing.assert_allclose(y, model(x[:1]).numpy(), rtol=1e-5, atol=1e-6)


def test_the_pattern_computes_the_unfused_form():
    x, gamma, beta = f32(2, 8), f32(8), f32(8)
    y = norm(x, gamma, beta, epsilon=0.1).numpy()
    np.testing.assert_allclose(y, reference(x, gamma, beta, 0.1), rtol=1e-4, atol=1e-6)
    content, (result,) = convert(lambda x: norm(x, gamma, beta, epsilon=0.1), spec(2, 8), patterns=[norm])
    assert result.count == 1
    assert op_names(content) == ["PatternNorm"]


def test_several_in_one_model_and_in_branches_and_loops():
    gamma, beta = f32(4), f32(4)

    def model(x):
        for _ in ow.range(3):
            if ow.reduce_sum(x) > 0.0:
                x = norm(x, gamma, beta, epsilon=0.25)
            else:
                x = norm(x, beta, gamma, epsilon=0.5)
        return norm(norm(x, gamma, gamma, epsilon=0.125), beta, beta, epsilon=1.0)

    content, (result,) = convert(model, spec(2, 4), patterns=[norm])
    assert result.count == 4
    graphs = len(Model.read(content).subgraphs)
    assert sum(op_names(content, i).count("PatternNorm") for i in range(graphs)) == 4
    x = f32(2, 4)
    (y,) = run(content, x, custom_ops=[PatternNorm])
    np.testing.assert_allclose(y, ow.function(model)(x).numpy(), rtol=1e-4, atol=1e-5)


# ---- what is like it and is not -------------------------------------------------------------------------------------

X = spec(2, 8, name="x")


def used_elsewhere(x):
    mean = ow.reduce_mean(x, -1, keepdims=True)
    c = x - mean
    return c * ow.math.rsqrt(ow.reduce_mean(ow.square(c), -1, keepdims=True) + 0.1) * f32(8) + f32(8), mean


def two_epsilons(x):
    return ow.nn.relu(x + 0.5) + ow.nn.relu(x + 0.25)


DECLINED = {
    "an inner value is a result": (used_elsewhere, "is also a result of the graph"),
    "an inner value is read": (lambda x: (lambda y, m: y * m)(*used_elsewhere(x)), "is also read by"),
    "another axis": (lambda x: norm_over(x, 0), r"has axis \[?\(?0"),
    "another operator": (lambda x: norm_over(x, -1, ow.math.sqrt), "is Sqrt, the pattern has Rsqrt"),
    "epsilon is a tensor": (lambda x: norm_over(x, -1, epsilon=x[0, 0]), "is computed, the pattern has a constant"),
    "epsilon is many": (lambda x: norm_over(x, -1, epsilon=f32(1, 8)), "the pattern has one number"),
    "epsilon is none that the operator takes": (lambda x: norm_over(x, -1, epsilon=-0.5), "greater than 0"),
}


def norm_over(x, axis, root=None, epsilon=0.1):
    c = x - ow.reduce_mean(x, axis, keepdims=True)
    variance = ow.reduce_mean(ow.square(c), axis, keepdims=True)
    root = root or ow.math.rsqrt
    return c * root(variance + epsilon) * f32(8) + f32(8)


@pytest.mark.parametrize("case", DECLINED)
def test_what_is_not_the_pattern_stays(case):
    model, says = DECLINED[case]
    with pytest.warns(RuntimeWarning, match="pattern PatternNorm was not found in the model; the nearest"):
        content, (result,) = convert(model, X, patterns=[norm], allow_custom_ops=True)
    assert result.count == 0
    assert re.search(says, result.nearest), result.nearest
    assert "PatternNorm" not in op_names(content)
    x = f32(2, 8)
    for a, b in zip(run(content, x), ow.nest.flatten(ow.function(model)(x)), strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-5)


def test_where_declines_with_a_reason():
    @lite.pattern("Doubled", where=lambda m: m.x.shape.rank == 3 or f"rank {m.x.shape.rank}")
    def doubled(x, *, by):
        return ow.nn.relu(x * by)

    def model(x, y):
        return ow.nn.relu(x * 2.0), ow.nn.relu(y * 3.0)

    content, (result,) = convert(model, spec(1, 2, 3), spec(2, 3), patterns=[doubled])
    assert result.count == 1
    assert result.nearest.startswith("rank 2")
    assert sorted(op_names(content)) == ["Doubled", "MUL"]
    assert str(result).startswith("Doubled: 1 fused (")


# ---- what a pattern may be ------------------------------------------------------------------------------------------


def test_several_results_and_a_name_alone():
    @lite.pattern("SumAndDifference", attrs={"kind": "both"})
    def both(x, y):
        return x + y, x - y

    def model(x, y):
        a, b = ow.exp(x), ow.exp(y)
        return (a - b) * (b + a)

    content, (result,) = convert(model, spec(3), spec(3), patterns=[both])
    assert result.count == 1
    assert op_names(content) == ["EXP", "EXP", "SumAndDifference", "MUL"]
    node = Model.read(content).subgraphs[0].operators[2]
    assert decode(bytes(node.custom_options)) == {"kind": "both"}
    taken = {}

    def prepare(context, node):
        for output in node.outputs:
            context.resize_tensor(output, node.inputs[0].shape)

    def invoke(context, node):
        x, y = (t.data for t in node.inputs)
        taken["x"] = x.copy()
        node.outputs[0].data[...], node.outputs[1].data[...] = x + y, x - y

    x, y = f32(3), f32(3) * 2
    kernel = lite.Registration(prepare=prepare, invoke=invoke)
    (z,) = run(content, x, y, custom_ops={"SumAndDifference": kernel})
    np.testing.assert_allclose(z, np.exp(2.0 * x) - np.exp(2.0 * y), rtol=1e-4)
    np.testing.assert_allclose(taken["x"], np.exp(x), rtol=1e-6)


def test_results_that_are_read_between_the_operators_are_still_in_order():
    """The fused operator stands before the first reader of any of its results."""

    @lite.pattern("Both")
    def both(x, y):
        return ow.exp(x) * y, ow.exp(x) - y

    def model(x, y):
        e = ow.exp(x)
        first = ow.nn.relu(e * y)
        second = e - y
        return first, second

    content, (result,) = convert(model, spec(3), spec(3), patterns=[both])
    assert result.count == 1
    assert op_names(content) == ["Both", "RELU"]


def test_a_fused_operator_never_waits_for_itself():
    """y depends on the first result: as one operator the two could not run."""

    @lite.pattern("Both")
    def both(x, y):
        return ow.exp(x) * 2.0, ow.exp(x) - y

    def model(x):
        e = ow.exp(x)
        first = e * 2.0
        return e - ow.nn.relu(first)

    with pytest.warns(RuntimeWarning, match="its operands depend on its results"):
        content, (result,) = convert(model, spec(3), patterns=[both])
    assert result.count == 0
    assert "Both" not in op_names(content)


def test_attributes_of_every_kind_are_told_by_the_model():
    @ow.operator
    class PatternReduce:
        x = ow.Input("float32")
        y = ow.Output(like="x")
        axes = ow.Attr([int])
        keep = ow.Attr(bool)
        limit = ow.Attr(float)
        along = ow.Attr(int)
        mode = ow.Attr(str, check=ow.attr.one_of("SAME", "VALID"))

        def infer(op):
            return ow.TensorSpec(None, "float32")

        def compute(op, x):
            raise AssertionError

    @lite.pattern(PatternReduce)
    def reduced(x, *, axes, keep, limit, along, mode):
        x = ow.nn.max_pool2d(x, 2, 2, mode)
        return ow.nn.softmax(ow.minimum(ow.reduce_max(x, axes, keepdims=keep), limit), axis=along)

    def model(x):
        x = ow.nn.max_pool2d(x, 2, 2, "VALID")
        return ow.nn.softmax(ow.minimum(ow.reduce_max(x, [1, 2], keepdims=True), 0.1), axis=3)

    content, (result,) = convert(model, spec(1, 4, 4, 3), patterns=[reduced])
    assert result.count == 1
    (node,) = Model.read(content).subgraphs[0].operators
    assert decode(bytes(node.custom_options)) == {
        "axes": [1, 2],
        "keep": True,
        "limit": 0.1,
        "along": 3,
        "mode": "VALID",
    }


def test_one_attribute_in_two_places_is_one_number():
    @lite.pattern("Shifted")
    def shifted(x, *, by):
        return ow.nn.relu(x + by) * by

    with pytest.warns(RuntimeWarning, match=r"by is 0\.5 in one place and 0\.25|by is 0\.25 in one place and 0\.5"):
        convert(lambda x: ow.nn.relu(x + 0.5) * 0.25, spec(3), patterns=[shifted])
    _, (result,) = convert(lambda x: ow.nn.relu(x + 0.5) * 0.5, spec(3), patterns=[shifted])
    assert result.count == 1


def test_dtypes_and_shapes_that_parameters_are_annotated_with():
    @lite.pattern("Integers")
    def integers(x: ow.TensorSpec([None, 4], ow.int32)):
        return ow.maximum(x, 0) * x

    def model(x):
        return ow.maximum(x, 0) * x

    for shape, dtype, count in (
        ([2, 4], "int32", 1),
        ([None, 4], "int32", 1),
        ([4], "int32", 0),
        ([2, 3], "int32", 0),
        ([2, 4], "float32", 0),
        ([2, None], "int32", 0),
    ):
        made = converter(ow.function(model).get_concrete_function(ow.TensorSpec(shape, dtype)), patterns=[integers])
        if count:
            made.convert()
        else:
            with pytest.warns(RuntimeWarning, match="not found"):
                made.convert()
        assert made.patterns_found[0].count == count, (shape, dtype)


def test_weights_that_fold_are_matched_before_they_do():
    """A normalisation by known numbers: once folded, nothing of it would be left to find."""

    @lite.pattern("Normalised")
    def normalised(x, mean, variance, *, epsilon):
        return (x - mean) * ow.math.rsqrt(variance + epsilon)

    mean, variance = ow.Variable(f32(4)), ow.Variable(np.abs(f32(4)))

    def model(x):
        return (x - mean) * ow.math.rsqrt(variance + 1e-3)

    content, (result,) = convert(model, spec(2, 4), patterns=[normalised])
    assert op_names(content) == ["Normalised"]
    assert result.count == 1


def test_numbers_that_are_computed_from_others_are_matched_once_folded():
    small, factor = ow.constant(0.5), ow.constant(0.25)
    _, (result,) = convert(lambda x: norm_over(x, -1, epsilon=small * factor), X, patterns=[norm])
    assert result.count == 1


def test_patterns_in_order_and_patterns_of_fused_operators():
    @lite.pattern("Inner")
    def inner(x):
        return ow.exp(x) + 1.0

    @ow.operator
    class OuterOfPattern:
        x = ow.Input("float32")
        y = ow.Output(like="x")

        def compute(op, x):
            return np.log(np.exp(x) + 1)

    @lite.pattern(OuterOfPattern)
    def outer(x):
        return ow.math.log(ow.exp(x) + 1.0)

    def model(x):
        return ow.math.log(ow.exp(x) + 1.0) * (ow.exp(x * 2.0) + 1.0)

    content, result = convert(model, spec(3), patterns=[outer, inner])
    assert [f.count for f in result] == [1, 1]
    assert sorted(op_names(content)) == ["Inner", "MUL", "MUL", "OuterOfPattern"]
    with pytest.warns(RuntimeWarning, match="pattern OuterOfPattern was not found"):
        content, result = convert(model, spec(3), patterns=[inner, outer])
    assert [f.count for f in result] == [2, 0]


def test_matches_do_not_overlap_and_the_same_model_gives_the_same_file():
    @lite.pattern("Twice")
    def twice(x):
        return ow.exp(ow.exp(x))

    def model(x):
        for _ in range(5):
            x = ow.exp(x)
        return x

    first, (result,) = convert(model, spec(3), patterns=[twice])
    assert result.count == 2
    assert op_names(first) == ["Twice", "Twice", "EXP"]
    assert first == convert(model, spec(3), patterns=[twice])[0]


def test_one_tensor_may_stand_for_two_parameters():
    @lite.pattern("Sum")
    def total(x, y):
        return ow.exp(x) + ow.exp(y)

    content, (result,) = convert(lambda x: ow.exp(x) + ow.exp(x), spec(3), patterns=[total])
    assert result.count == 1
    (node,) = Model.read(content).subgraphs[0].operators
    assert list(node.inputs) == [0, 0]


def test_text_does_not_commute():
    @lite.pattern("Joined")
    def joined(x: ow.TensorSpec(None, ow.string), y: ow.TensorSpec(None, ow.string)):
        return ow.add(x, ow.strings.upper(y))

    a = ow.TensorSpec([2], ow.string)
    _, (result,) = convert(lambda x, y: ow.add(x, ow.strings.upper(y)), a, a, patterns=[joined])
    assert result.count == 1
    with pytest.warns(RuntimeWarning, match="not found"):
        convert(lambda x, y: ow.add(ow.strings.upper(x), y), a, a, patterns=[joined], allow_custom_ops=True)


def test_many_operands_that_commute_end():
    """Sums in any order have more ways than can be tried: it says so and goes on."""

    @lite.pattern("Sum")
    def total(x, y, *, by):
        for _ in range(40):
            x = (x * y) + (y * x)
        return x * by

    def model(x, y):
        for _ in range(39):
            x = (x * y) + (y * x)
        x = (x * y) - (y * x)
        return x * 2.0

    with pytest.warns(RuntimeWarning, match="not found"):
        _, (result,) = convert(model, spec(3), spec(3), patterns=[total])
    assert result.count == 0


def test_quantised_models_keep_it_in_float():
    weight = f32(8, 8)

    def model(x):
        return ow.matmul(norm(ow.matmul(x, weight), f32(8), f32(8), epsilon=0.1), weight)

    x = f32(4, 8)
    content, _ = convert(
        model, spec(4, 8), patterns=[norm], optimizations=[lite.Optimize.DEFAULT], representative_dataset=lambda: [[x]]
    )
    assert "PatternNorm" in op_names(content)
    (y,) = run(content, x, custom_ops=[PatternNorm])
    expected = model(ow.constant(x)).numpy()
    np.testing.assert_allclose(y, expected, atol=0.05 * np.abs(expected).max())


# ---- patterns that can never be right -------------------------------------------------------------------------------


def wrong(operator, **settings):
    return lambda function: lambda: lite.pattern(operator, **settings)(function)


@ow.operator
class PatternPair:
    x = ow.Input("float32")
    y = ow.Input("float32", like="x")
    z = ow.Output(like="x")
    alpha = ow.Attr(float, default=0.0)
    count = ow.Attr(object, default=None)

    def compute(op, x, y):
        return x + y


state = ow.Variable(1.0)
BAD = {
    "no operator": (lambda x: x, "P", "the result x is a parameter|no operator in it"),
    "constant result": (lambda x: (ow.exp(x), ow.constant(1.0)), "P", "is a constant"),
    "one result twice": (lambda x: (lambda y: (y, y))(ow.exp(x)), "P", "two results are the same"),
    "parameter unread": (lambda x, y: ow.exp(x), "P", "nothing reads y"),
    "no parameter": (lambda: ow.constant(1.0), "P", "takes no tensor"),
    "any number": (lambda *x: ow.exp(x[0]), "P", r"\*x stands for any number"),
    "attribute unused": (lambda x, *, a: ow.exp(x), "P", "a has no place in the pattern"),
    "attribute computed with": (lambda x, *, a: ow.exp(x) * (a * 2.0), "P", "without having it as it is"),
    "attribute decides": (lambda x, *, a=True: ow.exp(x) if a else ow.sin(x) + x, "P", "give the pattern one form"),
    "parts apart": (lambda x, y: (ow.exp(x), ow.exp(y)), "P", "no tensor in common"),
    "control flow": (lambda x: ow.cond(ow.reduce_sum(x) > 0, lambda: x, lambda: ow.exp(x)), "P", "is control flow"),
    "random": (lambda x: x + ow.random.normal([3]), "P", "draws numbers"),
    "variable": (lambda x: x * state, "P", "reads the variable"),
    "dict": (lambda x: {"y": ow.exp(x)}, "P", "returns a dict"),
    "no such input": (lambda a, b: a + b, PatternPair, "no input 'a'"),
    "input missing": (lambda x: ow.exp(x), PatternPair, "does not take what the pattern gives it(.|\n)*'y' is missing"),
    "no such attribute": (lambda x, y, *, beta: x + y * beta, PatternPair, "no attribute 'beta'"),
    "other results": (lambda x, y: (x + y, x - y), PatternPair, "does not give what the function gives"),
    "other dtype": (lambda x, y: ow.cast(x + y, "float64"), PatternPair, "does not give what the function gives"),
    "no values": (lambda x, y, *, count: x + y, PatternPair, "no values can be made up for count"),
    "no operator named": (lambda x: ow.exp(x), 3, "a pattern is of an operator"),
    "not its trace": (lambda x: ow.matmul(x, x, transpose_b=x), "P", "Python `bool`"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_patterns_are_errors_where_they_are_defined(case):
    function, operator, says = BAD[case]
    with pytest.raises((InvalidArgumentError, TypeError), match=says):
        lite.pattern(operator)(function)


def test_bad_settings_are_errors():
    with pytest.raises(InvalidArgumentError, match="samples are given for 'b'"):
        lite.pattern("P", samples={"b": (1, 2)})(lambda x, *, a: x * a)
    with pytest.raises(InvalidArgumentError, match="samples of a are not two"):
        lite.pattern("P", samples={"a": (1,)})(lambda x, *, a: x * a)
    with pytest.raises(InvalidArgumentError, match="given by attrs and by"):
        lite.pattern("P", attrs={"a": 1})(lambda x, *, a: x * a)
    with pytest.raises(InvalidArgumentError, match="has other parameters"):
        norm.also(lambda x, beta, gamma, *, epsilon: x * beta * gamma + epsilon)
    with pytest.raises(InvalidArgumentError, match="has other attributes"):
        norm.also(lambda x, gamma, beta: x * beta * gamma)
    with pytest.raises(InvalidArgumentError, match="does not take what the pattern gives it"):
        lite.pattern(PatternPair, attrs={"nothing": 1})(lambda x, y: x + y)
    with pytest.raises(InvalidArgumentError, match=r"converter\.patterns holds what is not a pattern"):
        convert(ow.exp, spec(3), patterns=[ow.exp])


def test_an_operator_that_gives_something_else_in_a_model_is_an_error():
    @ow.operator
    class PatternHalf:
        x = ow.Input("float32")
        y = ow.Output(like="x")

        def infer(op):
            n = op.x.spec.shape.rank and op.x.spec.shape[0]
            return ow.TensorSpec(None if n is None else [n // 2])

        def compute(op, x):
            return x

    @lite.pattern(PatternHalf)
    def half(x):
        return ow.exp(x)

    with pytest.raises(InvalidArgumentError, match=r"PatternHalf(.|\n)*something else(.|\n)*f32\[2\](.|\n)*f32\[4\]"):
        convert(ow.exp, spec(4), patterns=[half])


# ---- checking a pattern ---------------------------------------------------------------------------------------------


def test_check_pattern_holds_the_fused_operator_to_the_unfused_form():
    cases = [
        {"x": f32(2, 3, 8), "gamma": f32(8), "beta": f32(8), "epsilon": 1e-3},
        {"x": f32(5, 1), "gamma": f32(1), "beta": f32(1), "epsilon": 0.5},
    ]
    outcomes = check_pattern(norm, cases)
    assert [o.state for o in outcomes] == ["ok"] * 8
    assert {o.check.split(", ")[1] for o in outcomes} == {"norm", "norm_by_moments"}


def test_check_pattern_finds_what_is_wrong():
    @ow.operator
    class PatternWrong:
        x = ow.Input("float32")
        y = ow.Output(like="x")
        by = ow.Attr(float)

        def compute(op, x):
            return x * np.float32(op.by) + np.float32(1e-3)

    @lite.pattern(PatternWrong)
    def scaled(x, *, by):
        return ow.math.log(ow.exp(x) * by)

    with pytest.raises(AssertionError, match=r"PatternWrong: 2 of 2 checks failed(.|\n)*differs in 3 of 3 elements"):
        check_pattern(scaled, [{"x": f32(3), "by": 2.0}])
    with pytest.raises(ValueError, match="no case"):
        check_pattern(scaled, [])
    with pytest.raises(TypeError, match="wanted x"):
        check_pattern(scaled, [{"y": f32(3), "by": 2.0}])


def test_check_pattern_of_a_name_needs_its_kernel():
    @lite.pattern("Named")
    def named(x):
        return ow.exp(ow.exp(x))

    def invoke(context, node):
        node.outputs[0].data[...] = np.exp(np.exp(node.inputs[0].data))

    kernel = lite.Registration(prepare=lambda c, n: c.resize_tensor(n.outputs[0], n.inputs[0].shape), invoke=invoke)
    called, converted = check_pattern(named, [(f32(3),)], custom_ops={"Named": kernel})
    assert (called.state, converted.state) == ("not tried", "ok")
    with pytest.raises(AssertionError, match="Named"):
        check_pattern(named, [(f32(3),)])


def test_a_condition_may_give_numpys_truth():
    @lite.pattern("Exp", where=lambda m: np.bool_(m.x.shape.rank == 1))
    def exp(x):
        return ow.exp(x)

    content, (result,) = convert(lambda x, y: (ow.exp(x), ow.exp(y)), spec(3), spec(2, 3), patterns=[exp])
    assert (result.count, op_names(content)) == (1, ["Exp", "EXP"])
    assert result.nearest.startswith("the pattern's `where` declined it") or not result.nearest


def test_convolutions_with_their_normalisation_and_strides():
    """Weights that the converter would fold into the convolution are the fused operator's own inputs."""
    ow.random.set_seed(12)

    @lite.pattern("ConvNorm", samples={"strides": ([1, 2, 3, 1], [1, 3, 2, 1]), "padding": ("SAME", "VALID")})
    def conv_norm(x, w, gamma, beta, mean, variance, *, strides, padding, epsilon):
        y = ow.nn.conv2d(x, w, strides, padding)
        return ow.nn.batch_normalization(y, mean, variance, beta, gamma, epsilon)

    layers = ow.keras.layers
    network = ow.keras.Sequential(
        [
            layers.Input((8, 8, 3)),
            layers.Conv2D(4, 3, strides=2, use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
        ]
    )
    made = lite.TFLiteConverter.from_keras_model(network)
    made.patterns = [conv_norm]
    content = made.convert()
    assert op_names(content) == ["ConvNorm", "RELU"]
    node = Model.read(content).subgraphs[0].operators[0]
    assert decode(bytes(node.custom_options)) == {"strides": [1, 2, 2, 1], "padding": "VALID", "epsilon": 0.001}
    assert len(node.inputs) == 6
