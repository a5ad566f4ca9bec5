"""Element-wise operators of ONNX: functions of one and two elements, comparisons, casts, activations.

Lives here: tables of operators that are one of the catalogue's, and rules of compositions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np

from ....core.dtypes import DType, float32, int32, int64, string
from ....core.dtypes import bool as boolean
from ....nn import activations
from ....ops import array, bitwise, linalg, math, nn, strings
from ....ops.array import cast, where
from ....scalar.formulas import SELU_ALPHA, SELU_SCALE
from ... import trigonometry
from ...importing import known
from ..execution import RULES
from ..files import dtype_of_code
from ..operands import at, axis_of, dims, dtype_of, rank_of

rule = RULES.rule

UNARY: dict[str, Callable[[Any], Any]] = {
    "Abs": lambda x: [x] if dtype_of(x).name.startswith("u") else math.abs(x),
    "Acos": trigonometry.acos,
    "Acosh": math.acosh,
    "Asin": trigonometry.asin,
    "Asinh": math.asinh,
    "Atan": trigonometry.atan,
    "Atanh": math.atanh,
    "BitwiseNot": bitwise.invert,
    "Ceil": math.ceil,
    "Cos": math.cos,
    "Cosh": math.cosh,
    "Det": linalg.det,
    "Erf": math.erf,
    "Exp": math.exp,
    "Floor": math.floor,
    "Identity": lambda x: [x],
    "IsNaN": math.is_nan,
    "Log": math.log,
    "Neg": math.negative,
    "Not": math.logical_not,
    "Reciprocal": math.reciprocal,
    "Relu": nn.relu,
    "Round": math.rint,
    "Sigmoid": math.sigmoid,
    "Sign": math.sign,
    "Sin": math.sin,
    "Sinh": math.sinh,
    "Softplus": nn.softplus,
    "Softsign": nn.softsign,
    "Sqrt": math.sqrt,
    "Tan": math.tan,
    "Tanh": math.tanh,
    "Mish": activations.mish,
    "HardSwish": activations.hard_silu,
}
"""Operators of one input and no attribute."""

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": math.add,
    "And": math.logical_and,
    "BitwiseAnd": bitwise.bitwise_and,
    "BitwiseOr": bitwise.bitwise_or,
    "BitwiseXor": bitwise.bitwise_xor,
    "Equal": math.equal,
    "Greater": math.greater,
    "GreaterOrEqual": math.greater_equal,
    "Less": math.less,
    "LessOrEqual": math.less_equal,
    "Mul": math.multiply,
    "Or": math.logical_or,
    "Sub": math.subtract,
    "Xor": math.logical_xor,
}
"""Operators of two inputs that broadcast, and no attribute."""


def number(value: float, like: Any) -> np.ndarray:
    """Return a constant of the dtype of a value."""
    return np.asarray(value, dtype_of(like).np)


def _scaled(x: Any, y: Any = None, by: float = 1.0, plus: float = 0.0) -> Any:
    result = x if y is None else math.multiply(x, y)
    if by != 1.0:
        result = math.multiply(result, number(by, x))
    return math.add(result, number(plus, x)) if plus else result


def _unary(function: Callable[[Any], Any]) -> Any:
    return lambda context, inputs, attributes: function(inputs[0])


def _binary(function: Callable[[Any, Any], Any]) -> Any:
    def binary(context: Any, inputs: Any, attributes: Any) -> Any:
        return function(*aligned(inputs, attributes))

    return binary


for _name, _function in UNARY.items():
    rule(_name)(_unary(_function))
for _name, _operation in BINARY.items():
    rule(_name)(_binary(_operation))


def aligned(inputs: Any, attributes: Any) -> tuple[Any, Any]:
    """Return two inputs that broadcast; before version 7 attributes tell the axis at which the second begins."""
    x, y = inputs
    if attributes.get("broadcast") and "axis" in attributes:
        sizes, start = dims(y), axis_of(attributes["axis"], rank_of(x))
        y = array.reshape(y, [*sizes, *[1] * (rank_of(x) - start - len(sizes))])
    return x, y


@rule("Div")
def divide(context: Any, inputs: Any, attributes: Any) -> Any:
    """Divide; integers are truncated towards zero."""
    x, y = aligned(inputs, attributes)
    return (math.truncatediv if dtype_of(x).is_integer else math.realdiv)(x, y)


@rule("Mod")
def modulo(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return the remainder: the sign is the divisor's, with fmod the dividend's."""
    return (math.truncatemod if attributes.get("fmod") else math.floormod)(*inputs)


@rule("Pow")
def power(context: Any, inputs: Any, attributes: Any) -> Any:
    x, y = aligned(inputs, attributes)
    to, of = dtype_of(x), dtype_of(y)
    if to is of:
        return math.pow(x, y)
    if to.is_integer and of.is_floating:
        return cast(math.pow(cast(x, of), y), to)
    return math.pow(x, cast(y, to))


@rule("BitShift")
def shift(context: Any, inputs: Any, attributes: Any) -> Any:
    """Shift; negative amounts, and those of the width and more, leave nothing but the sign."""
    x, y = inputs
    left = attributes["direction"] == "LEFT"
    amounts = known(y)
    if dtype_of(x).is_unsigned and amounts is not None and np.all(amounts < dtype_of(x).size * 8):
        return (bitwise.left_shift if left else bitwise.right_shift)(x, y)
    if not dtype_of(y).is_unsigned:
        y = where(math.less(y, number(0, y)), number(dtype_of(x).size * 8, y), y)
    return _shifted(x, y, left)


def _shifted(x: Any, y: Any, left: bool) -> Any:
    bits = dtype_of(x).size * 8
    within = math.minimum(math.maximum(y, number(0, y)), number(bits - 1, y))
    if not left and not dtype_of(x).is_unsigned:
        return bitwise.right_shift(x, within)
    moved = (bitwise.left_shift if left else bitwise.right_shift)(x, within)
    return where(math.less(y, number(bits, y)), moved, number(0, x))


def _variadic(function: Callable[[Any, Any], Any]) -> Any:
    return lambda context, inputs, attributes: reduce(function, inputs)


for _name, _operation in {"Max": math.maximum, "Min": math.minimum, "Sum": math.add}.items():
    rule(_name)(_variadic(_operation))


@rule("Mean")
def mean(context: Any, inputs: Any, attributes: Any) -> Any:
    return math.realdiv(reduce(math.add, inputs), number(len(inputs), inputs[0]))


@rule("IsInf")
def is_infinite(context: Any, inputs: Any, attributes: Any) -> Any:
    (x,) = inputs
    infinite = math.is_inf(x)
    if not attributes.get("detect_negative", 1):
        infinite = math.logical_and(infinite, math.greater(x, number(0, x)))
    if not attributes.get("detect_positive", 1):
        infinite = math.logical_and(infinite, math.less(x, number(0, x)))
    return infinite


@rule("Clip")
def clip(context: Any, inputs: Any, attributes: Any) -> Any:
    x, low, high = inputs[0], at(inputs, 1), at(inputs, 2)
    low = number(attributes["min"], x) if "min" in attributes else low
    high = number(attributes["max"], x) if "max" in attributes else high
    x = x if low is None else math.maximum(x, low)
    return x if high is None else math.minimum(x, high)


@rule("Where")
def select(context: Any, inputs: Any, attributes: Any) -> Any:
    return where(*inputs)


# ---- activations -----------------------------------------------------------------------------------------------------


@rule("LeakyRelu")
def leaky_relu(context: Any, inputs: Any, attributes: Any) -> Any:
    return nn.leaky_relu(inputs[0], attributes.get("alpha", 0.01))


@rule("PRelu")
def prelu(context: Any, inputs: Any, attributes: Any) -> Any:
    """Multiply negative elements by slopes that broadcast to x; version 6 has a vector of one per channel."""
    x, slope = inputs
    if context.opset < 7 and rank_of(slope) == 1 and dims(slope)[0] != 1:
        slope = array.reshape(slope, [-1, *[1] * (rank_of(x) - 2)])
    zero = number(0, x)
    return where(math.less(x, zero), math.multiply(x, slope), x)


@rule("Elu")
def elu(context: Any, inputs: Any, attributes: Any) -> Any:
    return activations.elu(inputs[0], attributes.get("alpha", 1.0))


@rule("Celu")
def celu(context: Any, inputs: Any, attributes: Any) -> Any:
    return activations.celu(inputs[0], attributes.get("alpha", 1.0))


@rule("Selu")
def selu(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    alpha = attributes.get("alpha", float(np.float32(SELU_ALPHA)))  # as ONNX states them
    gamma = attributes.get("gamma", float(np.float32(SELU_SCALE)))
    return _scaled(where(math.less(x, number(0, x)), _scaled(math.expm1(x), by=alpha), x), by=gamma)


@rule("Gelu", "com.microsoft::Gelu")
def gelu(context: Any, inputs: Any, attributes: Any) -> Any:
    return nn.gelu(inputs[0], attributes.get("approximate") == "tanh")


@rule("com.microsoft::FastGelu")
def fast_gelu(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0] if at(inputs, 1) is None else math.add(*inputs)
    return nn.gelu(x, True)


@rule("com.microsoft::BiasGelu")
def bias_gelu(context: Any, inputs: Any, attributes: Any) -> Any:
    return nn.gelu(math.add(*inputs), False)


@rule("com.microsoft::QuickGelu")
def quick_gelu(context: Any, inputs: Any, attributes: Any) -> Any:
    return nn.silu(inputs[0], attributes.get("alpha", 1.702))


@rule("Swish")
def swish(context: Any, inputs: Any, attributes: Any) -> Any:
    return nn.silu(inputs[0], attributes.get("alpha", 1.0))


@rule("HardSigmoid")
def hard_sigmoid(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    line = _scaled(x, by=attributes.get("alpha", 0.2), plus=attributes.get("beta", 0.5))
    return math.minimum(math.maximum(line, number(0, x)), number(1, x))


@rule("ThresholdedRelu")
def thresholded_relu(context: Any, inputs: Any, attributes: Any) -> Any:
    return activations.threshold(inputs[0], attributes.get("alpha", 1.0), 0.0)


@rule("Shrink")
def shrink(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    bias, limit = number(attributes.get("bias", 0.0), x), attributes.get("lambd", 0.5)
    inner = where(math.greater(x, number(limit, x)), math.subtract(x, bias), number(0, x))
    return where(math.less(x, number(-limit, x)), math.add(x, bias), inner)


# ---- types -----------------------------------------------------------------------------------------------------------


@rule("Cast")
def cast_to(context: Any, inputs: Any, attributes: Any) -> Any:
    if isinstance(inputs[0], np.ndarray) and inputs[0].dtype.type.__module__ == ml_dtypes.__name__:
        return np.asarray(inputs[0].astype(np.float32)).astype(dtype_of_code(attributes["to"], "Cast").np)
    return converted(inputs[0], dtype_of_code(attributes["to"], "Cast"))


@rule("CastLike")
def cast_like(context: Any, inputs: Any, attributes: Any) -> Any:
    return converted(inputs[0], dtype_of(inputs[1]))


def converted(x: Any, to: DType) -> Any:
    """Return x as another dtype; numbers and texts are converted as Python prints and reads them."""
    of = dtype_of(x)
    if of is to:
        return x
    if to is string:
        if of.is_floating:
            return strings.as_string(cast(x, float32) if of.size < 4 else x, shortest=True)
        return strings.as_string(x)
    if of is string:
        wide = float32 if to.is_floating or to is boolean else int64
        return cast(strings.to_number(x, wide if to not in (int32, int64) else to), to)
    return cast(x, to)


@rule("BitCast")
def bit_cast(context: Any, inputs: Any, attributes: Any) -> Any:
    to, of = dtype_of_code(attributes["to"], "BitCast"), dtype_of(inputs[0])
    if of is boolean:  # stored as bytes
        return array.bitcast(cast(inputs[0], np.uint8), to)
    if to is boolean:
        return math.not_equal(inputs[0], number(0, inputs[0]))
    return array.bitcast(inputs[0], to)
