"""Rules of foreign operators, folding, missing operators, imported functions."""

from __future__ import annotations

import re

import numpy as np
import pytest

import opwright as ow
from opwright.frontends.importing import ImportedFunction, RuleTable, known
from opwright.frontends.missing_operators import ForeignCall, MissingOperators, Required, skeleton


def table():
    rules = RuleTable("toy")

    @rules.rule("toy::Mul")
    def multiply(context, inputs, attributes):
        return ow.multiply(*inputs)

    @rules.rule("toy::Bad")
    def bad(context, inputs, attributes):
        return attributes["absent"]

    return rules


def imported(rules, weight):
    """x * weight * (2 * 3), the last product known at import."""

    def body(x):
        (six,) = rules.apply("toy::Mul", None, [np.float32(2), np.float32(3)], {}, node="shapes/six")
        (y,) = rules.apply("toy::Mul", None, [x, weight], {}, node="layer1.0/mul")
        return rules.apply("toy::Mul", None, [y, six], {}, node="layer1.0/scaled")[0]

    spec = ow.TensorSpec([None, 2], ow.float32, name="data:0")
    return ImportedFunction(body, [spec], name="toy model", variables=[weight], output_names=["out:0"])


def test_an_imported_function_runs_differentiates_saves_and_converts(tmp_path):
    function = imported(table(), ow.Variable([1.0, 2.0]))
    x = np.float32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(function(x).numpy(), x * [1, 2] * 6)
    np.testing.assert_array_equal(function(data_0=x).numpy(), x * [1, 2] * 6)
    with ow.GradientTape() as tape:
        loss = ow.reduce_sum(function(x))
    (gradient,) = tape.gradient(loss, function.trainable_variables)
    np.testing.assert_array_equal(gradient.numpy(), [24, 36])
    graph = str(function.concrete().graph)
    assert "layer1.0/mul" in graph  # names of the program
    assert "six" not in graph  # known at import
    function.save(tmp_path / "saved")
    served = ow.saved_model.load(tmp_path / "saved").signatures["serving_default"]
    np.testing.assert_array_equal(served(ow.constant(x))["out_0"].numpy(), x * [1, 2] * 6)
    content = ow.lite.TFLiteConverter.from_concrete_functions([function.named().get_concrete_function()]).convert()
    run = ow.lite.Interpreter(model_content=content).get_signature_runner()
    np.testing.assert_array_equal(run(data_0=x)["out_0"], x * [1, 2] * 6)


def test_all_missing_operators_are_listed_with_classes_that_can_be_completed():
    calls = [
        ForeignCall("toy::Mul"),
        ForeignCall("my::fancy_op", "a", (("x", "float32[1, ?]"),), {"alpha": 0.5, "axes": [0, 1], "mode": "up"}),
        ForeignCall("my::other", "b", (("q", "int64[...]"), ("q", "int64[]")), outputs=2),
    ]
    with pytest.raises(MissingOperators, match="2 operators without a rule") as caught:
        table().check(calls)
    assert caught.value.operators == ["my::fancy_op", "my::other"]
    assert 'custom={"my::fancy_op": FancyOp, "my::other": Other}' in str(caught.value)
    for call in calls[1:]:
        source = skeleton(call).replace("raise NotImplementedError", "return x, ")
        assert source in str(caught.value).replace("raise NotImplementedError", "return x, ")
        namespace = {"ow": ow}
        exec(source, namespace)
    operator = namespace["Other"]
    assert [i.dtypes for i in operator.inputs] == [(ow.int64,)] * 2


def test_schemas_become_classes_with_optional_and_repeated_inputs_and_required_attributes():
    inputs = (("self", "Tensor"), ("rest", "Tensor[]"), ("bias", "Tensor?"), ("scale", "Tensor"))
    call = ForeignCall("my::op", "", inputs, {"k": Required("int"), "axes": Required("[int]"), "mode": None})
    namespace = {"ow": ow}
    exec(skeleton(call), namespace)
    operator = namespace["Op"]
    assert [(i.optional, i.repeated) for i in operator.inputs] == [
        (False, False),
        (False, True),
        (True, False),
        (True, False),
    ]
    assert {n: a.required for n, a in operator.attr_defs.items()} == {"k": True, "axes": True, "mode": False}


def test_custom_operators_are_classes_or_functions():
    @ow.operator
    class Half:
        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")

        def compute(op, x):
            return x / 2

    for half in (Half, lambda x: x / 2):
        (y,) = table().apply("my::half", None, [ow.constant([3.0])], {}, custom={"my::half": half})
        np.testing.assert_array_equal(y.numpy(), [1.5])


def test_a_rule_that_does_not_fit_names_the_node():
    with pytest.raises(ow.errors.InvalidArgumentError, match=re.escape("toy::Bad 'block/7'")):
        table().apply("toy::Bad", None, [ow.constant(1.0)], {}, node="block/7")


def test_values_are_known_unless_they_are_variables():
    assert known(ow.Variable(1.0)) is None
    assert known(np.arange(2)) is not None
    assert known(None) is None
    assert known(3) == 3
