"""Test the errors of the converter: a table of functions, settings and parts of the messages."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from convert_harness import converter, f32
from lite_kit import op_names

import opwright as ow
from opwright.core.errors import InvalidArgumentError, UnimplementedError
from opwright.lite.convert import ConverterError

HERE = Path(__file__).name
X = ow.TensorSpec([5], ow.float32, name="x")


def concrete(function: object, *specs: ow.TensorSpec) -> object:
    return ow.function(function).get_concrete_function(*(specs or (X,)))


def refusal(function: object, *specs: ow.TensorSpec, **settings: object) -> str:
    with pytest.raises(ConverterError) as caught:
        converter(concrete(function, *specs), **settings).convert()
    return str(caught.value)


def test_the_error_names_operator_node_line_and_the_way_out() -> None:
    text = refusal(lambda x: ow.atan(x + 1.0))
    assert "error: 'tf.Atan' op is neither a custom op nor a flex op" in text
    assert "Here is a list of operators for which you will need custom implementations: Atan." in text
    assert "converter.allow_custom_ops = True" in text
    assert "custom_ops=[Atan]" in text
    assert re.search(rf"'Atan'\(f32\[5\]\) at .*{HERE}:\d+", text)


def test_all_offenders_are_in_one_error_each_once() -> None:
    def function(x: object) -> object:
        return ow.asin(ow.atan(x)) + ow.atan(x * 2.0) + ow.math.lgamma(x) + ow.sin(x)

    text = refusal(function)
    assert re.findall(r"error: '(tf\.\w+)' op", text) == ["tf.Atan", "tf.Asin", "tf.Lgamma"]
    assert "will need custom implementations: Atan, Asin, Lgamma." in text
    assert "2 nodes: 'Atan'(f32[5])" in text
    assert "tf.Sin" not in text


def test_ways_out_for_operators_of_one_s_own_beside_others() -> None:
    @ow.operator
    class RefusedTwice:
        x = ow.Input("float32")
        y = ow.Output(like="x")

        def compute(op, x):
            return x * 2

    def function(x: object) -> object:
        return RefusedTwice(ow.math.lgamma(x))

    text = refusal(function)
    assert "SELECT_TF_OPS] for Lgamma (the others as custom operators)" in text
    assert "(Lgamma is ow.ops.get('Lgamma'))" in text
    both = [ow.lite.OpsSet.TFLITE_BUILTINS, ow.lite.OpsSet.SELECT_TF_OPS]
    x = np.linspace(1, 3, 5, dtype=np.float32)
    for sets, ops in ((both, [RefusedTwice]), (both[:1], [ow.ops.get("Lgamma"), RefusedTwice])):  # as the error says
        made = converter(concrete(function), allow_custom_ops=True)
        made.target_spec.supported_ops = sets
        run = ow.lite.Interpreter(model_content=made.convert(), custom_ops=ops).get_signature_runner()
        np.testing.assert_allclose(run(x=x)["output_0"], function(ow.constant(x)).numpy(), rtol=1e-6)


def test_offenders_of_several_functions() -> None:
    with pytest.raises(ConverterError, match=r"implementations: Atan, Asin\."):
        converter(concrete(ow.atan), concrete(ow.asin)).convert()


def test_a_dtype_that_the_lite_operator_does_not_take_makes_it_no_builtin() -> None:
    wide = ow.TensorSpec([5], ow.float64, name="x")
    text = refusal(ow.sin, wide)
    assert "error: 'tf.Sin' op is neither a custom op nor a flex op" in text
    assert "float64" in text
    content = converter(concrete(ow.sin, wide), allow_custom_ops=True).convert()
    assert op_names(content) == ["Sin"]


@pytest.mark.parametrize(
    ("dtype", "function"),
    [
        ("string", ow.transpose),
        ("string", lambda x: ow.gather(x, [0], axis=1)),
        ("string", lambda x: ow.broadcast_to(x, [4, 2, 3])),
        ("complex128", lambda x: x[:1]),
        ("complex128", lambda x: ow.tile(x, [2, 1])),
    ],
    ids=("transpose", "gather", "broadcast_to", "slice", "tile"),
)
def test_types_that_the_official_kernel_refuses_make_no_builtin(dtype: str, function: object) -> None:
    # of a known shape, strings that only move are taken by their numbers
    shape = [None, 3] if dtype == "string" else [2, 3]
    assert "the official" in refusal(function, ow.TensorSpec(shape, dtype, name="x"))


def test_the_reason_of_each_rule_is_told() -> None:
    text = refusal(lambda x: ow.pad(ow.reshape(x, [1, 1, 1, 1, 1, 5]), [[1, 1]] * 6))
    assert "PAD takes ranks up to 5" in text


@ow.operator(version=3)
class ConvertTestClip:
    """Clip.  .. math:: y = min(x, limit)"""

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")
    limit = ow.Attr(float, default=6.0, since=2)
    names = ow.Attr([str], default=("a", "b"))
    kind = ow.Attr(ow.DType, default="int32", since=3)

    def compute(op, x: np.ndarray) -> np.ndarray:
        return np.minimum(x, op.limit)


def test_operators_of_users_are_custom() -> None:
    text = refusal(lambda x: ConvertTestClip(x))
    assert "error: 'tf.ConvertTestClip' op is neither a custom op nor a flex op" in text


def test_writes_to_variables_are_refused_by_name() -> None:
    v = ow.Variable(1.0, name="counter")

    def function(x: object) -> object:
        v.assign_add(1.0)
        return x + v

    text = refusal(function, experimental_enable_resource_variables=False)
    assert "changes the variable counter" in text
    assert HERE in text


@pytest.mark.parametrize(
    ("settings", "raises", "words"),
    [
        ({"optimizations": ["DEFAULT"]}, InvalidArgumentError, "other values than Optimize"),
        ({"inference_input_type": ow.int8}, InvalidArgumentError, "must be tf.float32"),
        ({"representative_dataset": list}, InvalidArgumentError, "nothing would use it"),
        ({"custom_version_in": "file"}, InvalidArgumentError, "'code', 'options'"),
        ({"target_spec": ow.lite.TargetSpec(runtime="new")}, InvalidArgumentError, "such as '2.8'"),
        ({"target_spec": ow.lite.TargetSpec(supported_types=[ow.bfloat16])}, UnimplementedError, "supported_types"),
        ({"target_spec": ow.lite.TargetSpec(supported_types=[ow.float16])}, InvalidArgumentError, "no optimization"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_met(settings: dict[str, object], raises: type[Exception], words: str) -> None:
    with pytest.raises(raises, match=words):
        converter(concrete(ow.sin), **settings).convert()


def test_a_setting_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(AttributeError, match="allow_custom_op"):
        converter(concrete(ow.sin), allow_custom_op=True)


@pytest.mark.parametrize(
    ("found", "words"), [([], "no function"), ([ow.function(ow.sin)], "get_concrete_function"), ([3], "int")]
)
def test_what_is_converted_must_be_concrete_functions(found: list[object], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        ow.lite.TFLiteConverter.from_concrete_functions(found)


def test_a_run_time_too_old_is_told_with_its_nodes() -> None:
    function = concrete(lambda x: ow.cast(ow.sin(x), ow.int64) + 2)
    spec = ow.lite.TargetSpec(runtime="2.3")
    with pytest.raises(ConverterError, match=r"ADD version 4 needs 2\.6\.0: 'add' at .*refusals\.py"):
        converter(function, target_spec=spec).convert()
    assert converter(function, target_spec=ow.lite.TargetSpec(runtime="2.6")).convert()


def test_the_interpreter_runs_the_custom_operator_with_its_options() -> None:
    content = converter(concrete(lambda x: ConvertTestClip(x, limit=0.5)), allow_custom_ops=True).convert()
    x = f32(5)
    interpreter = ow.lite.Interpreter(model_content=content, custom_ops=[ConvertTestClip])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(result, np.minimum(x, np.float32(0.5)))


@ow.operator
class ConvertTestHolder:
    """Holds a thing.  .. math:: y = x"""

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")
    thing = ow.Attr(object)

    def compute(op, x: np.ndarray) -> np.ndarray:
        return x


def test_attributes_that_a_file_cannot_hold_are_named() -> None:
    text = refusal(lambda x: ConvertTestHolder(x, thing=len), allow_custom_ops=True)
    assert "'tf.ConvertTestHolder'" in text
    assert "thing" in text
    assert "rewriting the function without ConvertTestHolder" in text


def test_functions_without_arguments_and_results_given_twice_convert() -> None:
    def function() -> object:
        x = ow.constant([1.0, 2.0])
        return x, x

    content = converter(ow.function(function).get_concrete_function()).convert()
    assert op_names(content) == []


@ow.operator
class ConvertTestTable:
    """Adds a table.  .. math:: y = x + table"""

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")
    table = ow.Attr(np.ndarray)

    def compute(op, x: np.ndarray) -> np.ndarray:
        return x + op.table[0]


def test_arrays_are_attributes_too() -> None:
    table = np.arange(10, dtype=np.float32).reshape(2, 5)
    content = converter(concrete(lambda x: ConvertTestTable(x, table=table)), allow_custom_ops=True).convert()
    interpreter = ow.lite.Interpreter(model_content=content, custom_ops=[ConvertTestTable])
    runner = interpreter.get_signature_runner()
    np.testing.assert_array_equal(runner(x=f32(5))["output_0"], f32(5) + table[0])
