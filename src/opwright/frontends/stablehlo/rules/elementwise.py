"""Rules of functions of one element: which primitive each is.

Lives here: arithmetic, comparisons, selection, conversions, of stablehlo and chlo; map. Not here: their meaning
(jax/rules/elementwise.py and integers.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ops import array, math, random
from ...importing import known, tensor_of
from ...jax.operands import dims, like, reshape
from ...jax.rules.elementwise import TOTAL
from ..execution import RULES, ModuleContext, primitive

PRIMITIVE_OF = {
    "abs": "abs",
    "add": "add",
    "and": "and",
    "atan2": "atan2",
    "cbrt": "cbrt",
    "ceil": "ceil",
    "clamp": "clamp",
    "complex": "complex",
    "cosine": "cos",
    "count_leading_zeros": "clz",
    "divide": "div",
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "floor": "floor",
    "imag": "imag",
    "is_finite": "is_finite",
    "log": "log",
    "log_plus_one": "log1p",
    "logistic": "logistic",
    "maximum": "max",
    "minimum": "min",
    "multiply": "mul",
    "negate": "neg",
    "not": "not",
    "optimization_barrier": "optimization_barrier",
    "or": "or",
    "popcnt": "population_count",
    "power": "pow",
    "real": "real",
    "remainder": "rem",
    "rsqrt": "rsqrt",
    "shift_left": "shift_left",
    "shift_right_arithmetic": "shift_right_arithmetic",
    "shift_right_logical": "shift_right_logical",
    "sign": "sign",
    "sine": "sin",
    "sqrt": "sqrt",
    "subtract": "sub",
    "tan": "tan",
    "tanh": "tanh",
    "xor": "xor",
}
"""The primitive of JAX that an operation of stablehlo is."""
OF_CHLO = {
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "bessel_i1e": "bessel_i1e",
    "conj": "conj",
    "cosh": "cosh",
    "digamma": "digamma",
    "erf": "erf",
    "erf_inv": "erf_inv",
    "erfc": "erfc",
    "lgamma": "lgamma",
    "mulhi": "mulhi",
    "next_after": "nextafter",
    "polygamma": "polygamma",
    "sinh": "sinh",
    "square": "square",
    "tan": "tan",
    "zeta": "zeta",
}
"""The same of chlo, whose operations are also composites of these names; of custom calls of the dialect mhlo."""
BROADCAST = {
    "broadcast_add": "add",
    "broadcast_and": "and",
    "broadcast_atan2": "atan2",
    "broadcast_divide": "div",
    "broadcast_maximum": "max",
    "broadcast_minimum": "min",
    "broadcast_multiply": "mul",
    "broadcast_or": "or",
    "broadcast_power": "pow",
    "broadcast_remainder": "rem",
    "broadcast_subtract": "sub",
    "broadcast_xor": "xor",
}
DIRECTIONS = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


def _same(operation: str, name: str) -> None:
    @RULES.rule(operation)
    def rule(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
        return primitive(name, context, inputs)


for _operation, _name in PRIMITIVE_OF.items():
    _same(f"stablehlo.{_operation}", _name)
for _operation, _name in OF_CHLO.items():
    _same(f"chlo.{_operation}", _name)
    _same(f"mhlo.{_operation}", _name)


def _broadcast(operation: str, name: str) -> None:
    @RULES.rule(f"chlo.{operation}")
    def rule(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
        context.sizes = np.broadcast_shapes(*map(dims, inputs))
        rank = len(context.sizes)
        padded = [reshape(v, [1] * (rank - len(dims(v))) + list(dims(v))) for v in inputs]
        return primitive(name, context, padded)


for _operation, _name in BROADCAST.items():
    _broadcast(_operation, _name)


@RULES.rule("stablehlo.compare")
def compare(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return whether x is equal to, less than ... y; in the total order of floats NaN is the greatest."""
    name = DIRECTIONS[attributes["comparison_direction"]]
    total = attributes.get("compare_type") == "TOTALORDER" and f"{name}_to" in TOTAL
    return primitive(f"{name}_to" if total else name, context, inputs)


@RULES.rule("stablehlo.select")
def select(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return on_true where the predicate holds, else on_false."""
    return primitive("select_n", context, [inputs[0], inputs[2], inputs[1]])


@RULES.rule("stablehlo.convert")
def convert(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x as the result's dtype."""
    return primitive("convert_element_type", context, inputs, new_dtype=context.dtype.as_numpy_dtype)


@RULES.rule("stablehlo.bitcast_convert")
def bitcast_convert(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the bits of x as the result's dtype."""
    return primitive("bitcast_convert_type", context, inputs, new_dtype=context.dtype.as_numpy_dtype)


def _round(operation: str, method: int) -> None:
    @RULES.rule(operation)
    def rule(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
        return primitive("round", context, inputs, rounding_method=method)


_round("stablehlo.round_nearest_afz", 0)
_round("stablehlo.round_nearest_even", 1)


@RULES.rule("stablehlo.reduce_precision")
def reduce_precision(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x rounded to fewer bits of exponent and mantissa."""
    return primitive("reduce_precision", context, inputs, **attributes)


@RULES.rule("stablehlo.map")
def map_(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the region's results for each element."""
    return context.mapped(context.operation.regions[0], inputs, dims(inputs[0]))


# ---- normalization ---------------------------------------------------------------------------------------------------


def _along(vector: Any, feature: int, rank: int) -> Any:
    return tensor_of(reshape(vector, [-1 if i == feature else 1 for i in range(rank)]))


@RULES.rule("stablehlo.batch_norm_inference")
def batch_norm_inference(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return (x - mean) / sqrt(variance + epsilon) * scale + offset."""
    x, feature = tensor_of(inputs[0]), int(attributes["feature_index"])
    scale, offset, mean, variance = (_along(v, feature, len(dims(x))) for v in inputs[1:])
    factor = math.multiply(scale, math.rsqrt(math.add(variance, like(attributes["epsilon"], variance))))
    return math.add(math.multiply(math.subtract(x, mean), factor), offset)


@RULES.rule("stablehlo.batch_norm_training")
def batch_norm_training(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x normalised by its own statistics, the mean, and the variance."""
    x, feature = tensor_of(inputs[0]), int(attributes["feature_index"])
    axes = [i for i in range(len(dims(x))) if i != feature]
    mean = math.reduce_mean(x, axes)
    centred = math.subtract(x, _along(mean, feature, len(dims(x))))
    variance = math.reduce_mean(math.square(centred), axes)
    return [batch_norm_inference(context, [x, *inputs[1:], mean, variance], attributes), mean, variance]


@RULES.rule("stablehlo.batch_norm_grad")
def batch_norm_grad(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the gradients of x, scale and offset of batch_norm_training.

    With s = rsqrt(variance + epsilon) and z = (x - mean) s: scale' = sum(dy z), offset' = sum(dy),
    x' = scale s (dy - mean(dy) - z mean(dy z)).
    """
    x, dy, feature = tensor_of(inputs[0]), tensor_of(inputs[4]), int(attributes["feature_index"])
    rank = len(dims(x))
    axes = [i for i in range(rank) if i != feature]
    scale, mean, variance = (_along(v, feature, rank) for v in inputs[1:4])
    deviation = math.rsqrt(math.add(variance, like(attributes["epsilon"], variance)))
    z = math.multiply(math.subtract(x, mean), deviation)
    weighted = math.multiply(dy, z)
    centred = math.subtract(dy, math.reduce_mean(dy, axes, keepdims=True))
    centred = math.subtract(centred, math.multiply(z, math.reduce_mean(weighted, axes, keepdims=True)))
    dx = math.multiply(math.multiply(scale, deviation), centred)
    return [dx, math.reduce_sum(weighted, axes), math.reduce_sum(dy, axes)]


# ---- random numbers --------------------------------------------------------------------------------------------------


@RULES.rule("stablehlo.rng", pure=False)
def rng(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return random numbers: UNIFORM in [a, b), or NORMAL of mean a and deviation b."""
    a, b, shape = tensor_of(inputs[0]), tensor_of(inputs[1]), known(inputs[2])
    if shape is None:
        raise ValueError("the shape of random numbers depends on an input")
    sizes = [int(s) for s in shape]
    if attributes["rng_distribution"] == "NORMAL":
        return math.add(math.multiply(random.normal(sizes, dtype=a.dtype), b), a)
    if a.dtype.is_floating:
        return math.add(math.multiply(random.uniform(sizes, dtype=a.dtype), math.subtract(b, a)), a)
    return random.uniform(sizes, a, b, dtype=a.dtype)


@RULES.rule("stablehlo.rng_bit_generator")
def rng_bit_generator(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the next state and random bits; the state is integers of 64 bits, here in words."""
    state, kind = tensor_of(inputs[0]), context.operation.results[1].type
    words = reshape(array.bitcast(state, np.uint32), [-1])
    algorithm = attributes["rng_algorithm"]
    following, bits = primitive(
        "rng_bit_generator", context, [words], shape=kind.sizes, dtype=kind.dtype.as_numpy_dtype, algorithm=algorithm
    )
    return [array.bitcast(reshape(following, [-1, 2]), state.dtype), bits]


@RULES.rule("chlo.constant", "stablehlo.constant")
def constant(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return a literal."""
    return attributes["value"]


@RULES.rule("chlo.is_inf")
def is_inf(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return whether x is infinite."""
    return math.is_inf(tensor_of(inputs[0]))
