"""Rules of functions of one element: arithmetic, comparisons, selection, conversions.

Lives here: tables of primitives that are one operator, and those composed of several. Not here: bits (integers.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import as_dtype
from ....ops import array, composed_functions, dispatch, math
from ....ops import nn as nn
from ... import trigonometry
from ...importing import tensor_of
from ..execution import BROADCASTING, RULES, JaxprContext
from ..operands import cast, dtype_of, like, operands, shaped

UNARY = {
    "abs": math.abs,
    "acos": trigonometry.acos,
    "acosh": math.acosh,
    "asin": trigonometry.asin,
    "asinh": math.asinh,
    "atan": trigonometry.atan,
    "atanh": math.atanh,
    "bessel_i0e": math.bessel_i0e,
    "bessel_i1e": math.bessel_i1e,
    "ceil": math.ceil,
    "conj": math.conj,
    "cos": math.cos,
    "cosh": math.cosh,
    "digamma": math.digamma,
    "erf": math.erf,
    "erf_inv": math.erfinv,
    "erfc": math.erfc,
    "exp": math.exp,
    "expm1": math.expm1,
    "floor": math.floor,
    "imag": math.imag,
    "lgamma": math.lgamma,
    "log": math.log,
    "log1p": math.log1p,
    "logistic": math.sigmoid,
    "real": math.real,
    "rsqrt": math.rsqrt,
    "sin": math.sin,
    "sinh": math.sinh,
    "sqrt": math.sqrt,
    "square": math.square,
    "tan": math.tan,
    "tanh": math.tanh,
}
BINARY = {
    "add": math.add,
    "add_any": math.add,
    "atan2": math.atan2,
    "eq": math.equal,
    "ge": math.greater_equal,
    "gt": math.greater,
    "igamma": math.igamma,
    "igammac": math.igammac,
    "le": math.less_equal,
    "lt": math.less,
    "mul": math.multiply,
    "ne": math.not_equal,
    "nextafter": math.nextafter,
    "polygamma": math.polygamma,
    "sub": math.subtract,
    "zeta": math.zeta,
}
TOTAL = {"eq_to": math.equal, "le_to": math.less_equal, "lt_to": math.less}
"""Comparisons by the total order of floats, where every NaN is the greatest and equal to others. JAX makes zeros, and
NaNs, equal before."""
OF_BOOL = {"max": math.logical_or, "min": math.logical_and, "mul": math.logical_and, "add": math.logical_or}
"""Arithmetic that JAX also has of bool."""
ORDERED = frozenset({"ge", "gt", "le", "lt"})
WIDENED = frozenset({"igamma", "igammac", "polygamma", "zeta", "nextafter"})
"""Operators that the catalogue has in float32 and float64 only."""


def _unary(name: str, function: Any) -> None:
    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        return function(tensor_of(inputs[0]))


def _binary(name: str, function: Any) -> None:
    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        x, y = operands(inputs)
        dtype = dtype_of(x)
        if dtype.is_bool and name in OF_BOOL:
            return _shaped(context, OF_BOOL[name](x, y))
        if dtype.is_bool and name in ORDERED:
            x, y = cast(x, np.uint8), cast(y, np.uint8)
        if name in WIDENED and dtype.size < 4:
            return _shaped(context, cast(function(cast(x, np.float32), cast(y, np.float32)), dtype))
        return _shaped(context, function(x, y))


def _shaped(context: JaxprContext, value: Any) -> Any:
    return shaped(value, context.shape)


for _name, _function in UNARY.items():
    _unary(_name, _function)
for _name, _operation in BINARY.items():
    _binary(_name, _operation)
BROADCASTING.update(BINARY, OF_BOOL, ("div", "rem", "pow", "clamp", "select_n", "complex"))


def total(name: str, x: Any, y: Any) -> Any:
    """Return the comparison of a name in `TOTAL`."""
    result = TOTAL[name](x, y)
    if not x.dtype.is_floating:
        return result
    last = math.not_equal(y, y)
    if name != "le_to":
        first = math.not_equal(x, x)
        last = math.logical_and(last, math.logical_not(first) if name == "lt_to" else first)
    return math.logical_or(result, last)


def _total(name: str) -> None:
    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        return _shaped(context, total(name, *operands(inputs)))


for _name in TOTAL:
    _total(_name)
BROADCASTING.update(TOTAL)


# ---- arithmetic ------------------------------------------------------------------------------------------------------


@RULES.rule("neg")
def neg(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return -x; of unsigned integers modulo 2^bits."""
    x = tensor_of(inputs[0])
    return math.subtract(like(0, x), x) if x.dtype.is_unsigned else math.negative(x)


@RULES.rule("sign")
def sign(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the sign."""
    x = tensor_of(inputs[0])
    return cast(math.not_equal(x, like(0, x)), x.dtype) if x.dtype.is_unsigned else math.sign(x)


@RULES.rule("div")
def div(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x / y, of integers rounded towards zero; XLA: x / 0 = -1, and the least number / -1 is itself."""
    x, y = operands(inputs)
    if not x.dtype.is_integer:
        return _shaped(context, math.realdiv(x, y))
    zero = math.equal(y, like(0, y))
    safe = array.where(zero, like(1, y), y)
    if not x.dtype.is_unsigned:
        negative = math.equal(safe, like(-1, y))
        safe = array.where(negative, like(1, y), safe)
        x_or_minus = array.where(negative, math.negative(x), x)
        return _shaped(context, array.where(zero, like(-1, x), math.truncatediv(x_or_minus, safe)))
    top = like(np.iinfo(x.dtype.as_numpy_dtype).max, x)
    return _shaped(context, array.where(zero, top, math.truncatediv(x, safe)))


@RULES.rule("rem")
def rem(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the remainder with the sign of x; of integers x for y = 0, as XLA."""
    x, y = operands(inputs)
    if not x.dtype.is_integer:
        return _shaped(context, math.truncatemod(x, y))
    zero = math.equal(y, like(0, y))
    special = zero if x.dtype.is_unsigned else math.logical_or(zero, math.equal(y, like(-1, y)))
    remainder = math.truncatemod(x, array.where(special, like(1, y), y))
    return _shaped(context, array.where(zero, x, remainder))


def _extremum(name: str, function: Any, lower: bool) -> None:
    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        x, y = operands(inputs)
        if x.dtype.is_bool:
            return _shaped(context, OF_BOOL[name](x, y))
        if x.dtype.is_complex:  # by real part, then by imaginary part
            order = math.less if lower else math.greater
            same = math.equal(math.real(x), math.real(y))
            first = array.where(same, order(math.imag(x), math.imag(y)), order(math.real(x), math.real(y)))
            return array.where(first, x, y)
        return _shaped(context, function(x, y))


_extremum("max", math.maximum, lower=False)
_extremum("min", math.minimum, lower=True)


@RULES.rule("pow")
def power(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x^y; y is an integer or of x's dtype."""
    x, y = operands(inputs)
    return _shaped(context, math.pow(x, cast(y, x.dtype)))


@RULES.rule("integer_pow")
def integer_power(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x^y of a static integer by repeated squaring, as JAX."""
    x, exponent = tensor_of(inputs[0]), int(params["y"])
    if exponent == 0:
        return array.ones_like(x)
    result: Any = None
    square, remaining = x, abs(exponent)
    while remaining:
        if remaining & 1:
            result = square if result is None else math.multiply(result, square)
        remaining >>= 1
        if remaining:
            square = math.square(square)
    return math.reciprocal(result) if exponent < 0 else result


@RULES.rule("exp2")
def exp2(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return 2^x."""
    return composed_functions.exp2(tensor_of(inputs[0]))


@RULES.rule("cbrt")
def cbrt(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the real cube root: sign(x) |x|^(1/3)."""
    return composed_functions.cbrt(tensor_of(inputs[0]))


@RULES.rule("round")
def round_(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the nearest integer: halves away from zero, or to even (rounding_method 1)."""
    x = tensor_of(inputs[0])
    if int(params["rounding_method"]) == 1:
        return math.round(x)
    whole = math.floor(math.abs(x))
    up = cast(math.greater_equal(math.subtract(math.abs(x), whole), like(0.5, x)), x.dtype)
    return math.multiply(math.sign(x), math.add(whole, up))


@RULES.rule("clamp")
def clamp(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x within bounds, which are scalars or of its shape."""
    low, x, high = operands(inputs)
    if x.dtype.is_bool:
        return _shaped(context, math.logical_and(math.logical_or(low, x), high))
    return _shaped(context, math.minimum(math.maximum(x, low), high))


@RULES.rule("is_finite")
def is_finite(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return whether x is neither infinite nor NaN."""
    return math.is_finite(tensor_of(inputs[0]))


@RULES.rule("select_n")
def select_n(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return for each element the case that `which` selects: a bool or int32, of the shape or a scalar."""
    which, *cases = operands(inputs)
    if which.dtype.is_bool:
        return _shaped(context, cases[0] if len(cases) == 1 else array.where(which, cases[1], cases[0]))
    result = cases[0]
    for i, case in enumerate(cases[1:], 1):
        result = array.where(math.greater_equal(which, like(i, which)), case, result)
    return _shaped(context, result)


@RULES.rule("regularized_incomplete_beta")
def betainc(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return I_x(a, b)."""
    values = operands(inputs)
    dtype = values[0].dtype
    wide = np.float32 if dtype.size < 4 else dtype
    return _shaped(context, cast(math.betainc(*(cast(v, wide) for v in values)), dtype))


@RULES.rule("complex")
def complex_(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return real + i imaginary."""
    real, imaginary = operands(inputs)
    return _shaped(context, math.complex(real, imaginary))


# ---- conversions -----------------------------------------------------------------------------------------------------


@RULES.rule("convert_element_type")
def convert_element_type(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x as another dtype: floats to integers saturate and NaN becomes 0, as XLA on CPUs; to bool: x != 0."""
    x, target = inputs[0], as_dtype(params["new_dtype"])
    source = dtype_of(x)
    if source is target:
        return x
    x = tensor_of(x)
    if target.is_bool:
        return math.not_equal(x, like(0, x))
    if source.is_complex and not target.is_complex:
        x = math.real(x)
    if dtype_of(x).is_floating and target.is_integer:
        return _to_integer(x, target)
    return array.cast(x, target)


def _to_integer(x: Any, target: Any) -> Any:
    limits = np.iinfo(target.as_numpy_dtype)
    wide = x if x.dtype.size >= 4 else array.cast(x, np.float32)
    kind = wide.dtype.as_numpy_dtype
    top = kind(limits.max)
    inside = top if float(top) <= limits.max else np.nextafter(top, kind(0))
    bounded = math.minimum(math.maximum(wide, like(kind(limits.min), wide)), like(inside, wide))
    result = array.cast(array.where(math.is_nan(wide), like(0, wide), bounded), target)
    if int(inside) == limits.max:
        return result
    return array.where(math.greater_equal(wide, like(top, wide)), like_of(limits.max, target), result)


def like_of(number: Any, dtype: Any) -> Any:
    """Return a number as a scalar constant of a dtype."""
    return dispatch.to_tensor(np.asarray(number, dtype.as_numpy_dtype))


@RULES.rule("reduce_precision")
def reduce_precision(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x rounded to a dtype of as many bits of exponent and mantissa."""
    x = tensor_of(inputs[0])
    bits = int(params["exponent_bits"]), int(params["mantissa_bits"])
    formats = {(5, 10): np.float16, (8, 7): "bfloat16", (8, 23): np.float32, (11, 52): np.float64}
    if bits not in formats:
        raise ValueError(f"no dtype has {bits[0]} bits of exponent and {bits[1]} of mantissa")
    return x if as_dtype(formats[bits]).size >= x.dtype.size else cast(cast(x, formats[bits]), x.dtype)


@RULES.rule(
    "copy",
    "copy_p",
    "optimization_barrier",
    "reduced_vary_cast_p",
    "name",
    "pvary",
    "sharding_constraint",
    "layout_constraint",
    "device_put",
)
def identity(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the operands: these say where or when values are computed."""
    return list(inputs)


@RULES.rule("stop_gradient")
def stop_gradient(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x, which no gradient passes."""
    return array.stop_gradient(tensor_of(inputs[0]))


@RULES.rule("to_edtype", "from_edtype")
def words_of_key(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return a key's words unchanged: keys are their words here."""
    return inputs[0]
