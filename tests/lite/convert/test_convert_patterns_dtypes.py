"""Test patterns of dtypes that are not declared, and operators whose shape rule needs more than a pattern knows.

The oracle is NumPy in float64.
"""

from __future__ import annotations

import numpy as np
import pytest
from convert_harness import converter
from lite_kit import op_names

import opwright as ow
from opwright import lite
from opwright.core.errors import InvalidArgumentError


@ow.operator
class DtypesScaled:
    """y = a b k + c"""

    a = ow.Input()
    b, c = ow.Input(like="a"), ow.Input(like="a")
    y = ow.Output(like="a")
    k = ow.Attr(int, default=1)

    def compute(op, a, b, c):
        return (a * b * a.dtype.type(op.k) + c).astype(a.dtype)


@lite.pattern(DtypesScaled)
def scaled(a, b, c, *, k):
    return a * b * k + c


def fused(model, *specs, patterns):
    made = converter(ow.function(model).get_concrete_function(*specs), patterns=patterns, allow_custom_ops=True)
    return made.convert(), made.patterns_found[0]


def run(content, operator, *arrays):
    interpreter = lite.Interpreter(model_content=content, custom_ops=[operator])
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int8", "int32", "int64", "uint16"])
def test_one_pattern_is_for_every_dtype_that_its_operator_takes(dtype):
    specs = [ow.TensorSpec([5], dtype, name=name) for name in "xz"]
    content, actual = fused(lambda x, z: x + 3 * (z * x), *specs, patterns=[scaled])
    assert (actual.count, op_names(content)) == (1, ["DtypesScaled"])
    x, z = (np.arange(n, n + 5).astype(specs[0].dtype.np) for n in (0, 2))
    (y,) = run(content, DtypesScaled, x, z)
    assert y.dtype == x.dtype
    expected = 3 * x.astype(np.float64) * z.astype(np.float64) + x.astype(np.float64)
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=2e-2 if dtype == "bfloat16" else 1e-3)


def test_two_dtypes_in_one_model():
    def model(x, n):
        return x * x * 2 + x, n * n * 3 + n

    specs = [ow.TensorSpec([5], "float32", name="x"), ow.TensorSpec([5], "int32", name="n")]
    content, result = fused(model, *specs, patterns=[scaled])
    assert (result.count, set(op_names(content))) == (2, {"DtypesScaled"})
    x, n = np.arange(5, dtype=np.float32), np.arange(5, dtype=np.int32)
    y, m = run(content, DtypesScaled, x, n)
    np.testing.assert_array_equal(y, x * x * 2 + x)
    np.testing.assert_array_equal(m, n * n * 3 + n)


@ow.operator
class DtypesFloats:
    x = ow.Input(dtypes=(ow.float32,))
    y = ow.Output(like="x")

    def compute(op, x):
        return x


@pytest.mark.parametrize("annotated", [False, True], ids=["the operator's", "the annotation's"])
def test_others_stay(annotated):
    """Not in a dtype that the operator has not, nor in one that is written down to be another."""
    if annotated:

        @lite.pattern(DtypesScaled)
        def only(
            a: ow.TensorSpec(None, "float32"),
            b: ow.TensorSpec(None, "float32"),
            c: ow.TensorSpec(None, "float32"),
            *,
            k,
        ):
            return a * b * k + c

        model = lambda x: x * x * 2 + x  # noqa: E731
    else:

        @lite.pattern(DtypesFloats)
        def only(x):
            return ow.nn.relu(x) * x

        model = lambda x: ow.nn.relu(x) * x  # noqa: E731
    with pytest.warns(RuntimeWarning, match="f16"):
        _, result = fused(model, ow.TensorSpec([5], "float16"), patterns=[only])
    assert result.count == 0


def test_the_nearest_reason_is_not_another_dtypes():
    with pytest.warns(RuntimeWarning, match="not found"):
        _, result = fused(
            lambda x, n: (x * x * x[0] + x, n + n),
            ow.TensorSpec([5], "float32"),
            ow.TensorSpec([5], "int32"),
            patterns=[scaled],
        )
    assert "is computed, the pattern has a constant" in result.nearest


# ---- shape rules ----------------------------------------------------------------------------------------------------


@ow.operator
class DtypesSpan:
    """The distance from the least to the greatest of each column; its rule asks for every size."""

    x = ow.Input(dtypes=(ow.float32,))
    y = ow.Output()

    def infer(op):
        sizes = [n + 0 for n in op.x.spec.shape]
        return ow.TensorSpec(sizes[1:], op.x.spec.dtype)

    def compute(op, x):
        return x.max(0) - x.min(0)


def test_a_rule_that_wants_a_models_shapes_is_asked_in_a_model():
    @lite.pattern(DtypesSpan)
    def span(x):
        return ow.reduce_max(x, 0) - ow.reduce_min(x, 0)

    def model(x):
        return ow.reduce_max(x, 0) - ow.reduce_min(x, 0)

    content, result = fused(model, ow.TensorSpec([4, 3], "float32"), patterns=[span])
    assert result.count == 1
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    np.testing.assert_allclose(run(content, DtypesSpan, x)[0], np.ptp(x.astype(np.float64), 0), rtol=1e-6)
    with pytest.warns(RuntimeWarning, match="`infer` raises TypeError"):  # there a size is None
        _, result = fused(model, ow.TensorSpec([None, 3], "float32"), patterns=[span])
    assert result.count == 0


@ow.operator
class DtypesBroken:
    x = ow.Input(dtypes=(ow.float32,))
    y = ow.Output()

    def infer(op):
        return 1 // 0

    def compute(op, x):
        return x


def test_a_rule_that_fails_on_known_shapes_fails_where_the_pattern_is_defined():
    def broken(x: ow.TensorSpec([2], "float32")):
        return ow.nn.relu(x) * x

    with pytest.raises(InvalidArgumentError, match="`infer` raises ZeroDivisionError"):
        lite.pattern(DtypesBroken)(broken)
