"""Functions of one element: arithmetic, comparisons, logic.

Lives here: rules of ATen's point-wise operators. Not here: activations (activations.py), Python's operators on sizes
(size_arithmetic.py), normalisations (normalization.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ....core.dtypes import as_dtype
from ....core.dtypes import bool as bool_
from ....nn import activations
from ....ops import array, bitwise, composed_functions, math, nn
from ... import trigonometry
from .table import AtenCall, aten, tensor

UNARY: dict[str, Callable[[Any], Any]] = {
    "abs": math.abs,
    "acos": trigonometry.acos,
    "acosh": math.acosh,
    "asin": trigonometry.asin,
    "asinh": math.asinh,
    "atan": trigonometry.atan,
    "atanh": math.atanh,
    "ceil": math.ceil,
    "cos": math.cos,
    "cosh": math.cosh,
    "digamma": math.digamma,
    "erf": math.erf,
    "erfc": math.erfc,
    "erfinv": math.erfinv,
    "exp": math.exp,
    "expm1": math.expm1,
    "floor": math.floor,
    "lgamma": math.lgamma,
    "log": math.log,
    "log1p": math.log1p,
    "neg": math.negative,
    "reciprocal": math.reciprocal,
    "relu": nn.relu,
    "relu6": nn.relu6,
    "rsqrt": math.rsqrt,
    "selu": nn.selu,
    "sigmoid": math.sigmoid,
    "sign": math.sign,
    "sgn": math.sign,
    "sin": math.sin,
    "sinh": math.sinh,
    "sqrt": math.sqrt,
    "square": math.square,
    "tan": math.tan,
    "tanh": math.tanh,
    "special_i0": math.bessel_i0,
    "i0": math.bessel_i0,
    "special_i0e": math.bessel_i0e,
    "special_i1": math.bessel_i1,
    "special_i1e": math.bessel_i1e,
    "special_ndtri": math.ndtri,
    "exp2": composed_functions.exp2,
    "log2": composed_functions.log2,
    "log10": composed_functions.log10,
    "trunc": composed_functions.trunc,
    "frac": lambda x: x - composed_functions.trunc(x),
    "sinc": composed_functions.sinc,
    "silu": activations.silu,
    "mish": activations.mish,
    "hardswish": activations.hard_silu,
    "hardsigmoid": activations.hard_sigmoid,
    "log_sigmoid": math.log_sigmoid,
    "deg2rad": composed_functions.deg2rad,
    "rad2deg": composed_functions.rad2deg,
    "positive": lambda x: x,
}
KEEPS_INTEGERS = frozenset({"ceil", "floor", "trunc", "round", "positive"})


def _unary(name: str, function: Callable[[Any], Any]) -> None:
    def rule(op: AtenCall, x: Any, *rest: Any, **others: Any) -> Any:
        x = tensor(x)
        if not x.dtype.is_complex:  # the magnitude of which is real
            x = tensor(x, op.dtype)
        if (name in KEEPS_INTEGERS and op.dtype.is_integer) or op.dtype is bool_:
            return x
        return function(x)

    aten(name, *(("special_" + name,) if name in ("erf", "erfc", "erfinv", "exp2", "expm1", "log1p", "sinc") else ()))(
        rule
    )


for _name, _function in UNARY.items():
    _unary(_name, _function)


@aten("round")
def round_(op: AtenCall, x: Any, decimals: int = 0) -> Any:
    x = tensor(x, op.dtype)
    if op.dtype.is_integer:
        return x
    if not decimals:
        return math.round(x)
    scale = tensor(10.0 ** abs(decimals), op.dtype)
    return math.round(x * scale) / scale if decimals > 0 else math.round(x / scale) * scale


@aten("log_sigmoid_forward")
def log_sigmoid_forward(op: AtenCall, x: Any) -> Any:
    return math.log_sigmoid(tensor(x)), math.exp(-math.abs(tensor(x)))


PREDICATES = {"isnan": math.is_nan, "isinf": math.is_inf, "isfinite": math.is_finite}


def _predicate(name: str, function: Callable[[Any], Any]) -> None:
    def rule(op: AtenCall, x: Any) -> Any:
        x = tensor(x)
        return function(x) if x.dtype.is_floating else array.fill(array.shape(x), tensor(name == "isfinite", bool_))

    aten(name)(rule)


for _name, _function in PREDICATES.items():
    _predicate(_name, _function)


@aten("logit", "special_logit")
def logit(op: AtenCall, x: Any, eps: float | None = None) -> Any:
    x = tensor(x, op.dtype)
    if eps is not None:
        x = _clamp(x, eps, 1.0 - eps)
    return math.log(x / (tensor(1, op.dtype) - x))


# ---- two operands -----------------------------------------------------------------------------------------------


def _pair(op: AtenCall, x: Any, y: Any, dtype: Any = None) -> tuple[Any, Any]:
    dtype = dtype or op.dtype
    return tensor(x, dtype), tensor(y, dtype)


@aten("add")
def add(op: AtenCall, x: Any, y: Any, alpha: Any = 1) -> Any:
    x, y = _pair(op, x, y)
    if op.dtype is bool_:
        return math.logical_or(x, y)
    return x + (y if _is_one(alpha) else y * tensor(alpha, op.dtype))


@aten("sub", "subtract")
def sub(op: AtenCall, x: Any, y: Any, alpha: Any = 1) -> Any:
    x, y = _pair(op, x, y)
    return x - (y if _is_one(alpha) else y * tensor(alpha, op.dtype))


@aten("rsub")
def rsub(op: AtenCall, x: Any, y: Any, alpha: Any = 1) -> Any:
    return sub(op, y, x, alpha)


def _is_one(alpha: Any) -> bool:
    return isinstance(alpha, (int, float)) and alpha == 1


@aten("mul", "multiply")
def mul(op: AtenCall, x: Any, y: Any) -> Any:
    x, y = _pair(op, x, y)
    return math.logical_and(x, y) if op.dtype is bool_ else x * y


@aten("div", "divide", "true_divide")
def div(op: AtenCall, x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "floor":
        return floor_divide(op, x, y)
    x, y = _pair(op, x, y)
    if rounding_mode is None:
        return math.divide(x, y)
    return math.truncatediv(x, y) if op.dtype.is_integer else composed_functions.trunc(math.divide(x, y))


@aten("floor_divide")
def floor_divide(op: AtenCall, x: Any, y: Any) -> Any:
    x, y = _pair(op, x, y)
    return math.floordiv(x, y)


@aten("remainder")
def remainder(op: AtenCall, x: Any, y: Any) -> Any:
    x, y = _pair(op, x, y)
    return math.floormod(x, y)


@aten("fmod")
def fmod(op: AtenCall, x: Any, y: Any) -> Any:
    x, y = _pair(op, x, y)
    return math.truncatemod(x, y)


@aten("pow", "float_power")
def power(op: AtenCall, x: Any, y: Any) -> Any:
    if isinstance(y, (int, float)) and not isinstance(x, (int, float)):
        x = tensor(x, op.dtype)
        if y == 2:
            return math.square(x)
        if y == 1:
            return x
        if op.dtype.is_floating and y in (0.5, -0.5, -1):
            return {0.5: math.sqrt, -0.5: math.rsqrt, -1: math.reciprocal}[y](x)
        if y == 3:
            return math.square(x) * x
    x, y = _pair(op, x, y)
    return math.pow(x, y)


def _binary(*names: str) -> Callable[[Callable[[Any, Any], Any]], None]:
    def add_rule(function: Callable[[Any, Any], Any]) -> None:
        def rule(op: AtenCall, x: Any, y: Any) -> Any:
            return function(*_pair(op, x, y))

        aten(*names)(rule)

    return add_rule


_binary("maximum", "max.other")(math.maximum)
_binary("minimum", "min.other")(math.minimum)
_binary("atan2", "arctan2")(math.atan2)
_binary("nextafter")(math.nextafter)
_binary("hypot")(composed_functions.hypot)
_binary("logaddexp")(functools.partial(composed_functions.logaddexp, halves=True))
_binary("logaddexp2")(functools.partial(composed_functions.logaddexp2, halves=True))
_binary("copysign")(lambda x, y: array.where(_negative(y), -math.abs(x), math.abs(x)))
_binary("fmax")(lambda x, y: array.where(_or_nan(x), y, array.where(_or_nan(y), x, math.maximum(x, y))))
_binary("fmin")(lambda x, y: array.where(_or_nan(x), y, array.where(_or_nan(y), x, math.minimum(x, y))))
_binary("heaviside")(
    lambda x, y: array.where(  # 0 for NaN; NumPy's is NaN
        math.equal(x, tensor(0, x.dtype)), y, array.cast(x > tensor(0, x.dtype), x.dtype)
    )
)
_binary("igamma", "special_gammainc")(math.igamma)
_binary("igammac", "special_gammaincc")(math.igammac)
_binary("special_zeta")(math.zeta)


@aten("xlogy", "special_xlogy")
def xlogy(op: AtenCall, x: Any, y: Any) -> Any:
    x, y = _pair(op, x, y)
    product = math.xlogy(x, y)
    return array.where(_or_nan(y), y + x - x, product)


@aten("special_xlog1py")
def xlog1py(op: AtenCall, x: Any, y: Any) -> Any:
    x, y = _pair(op, x, y)
    return array.where(_or_nan(y), y + x - x, math.xlog1py(x, y))


def _or_nan(x: Any) -> Any:
    return math.not_equal(x, x)


def _negative(x: Any) -> Any:
    if not x.dtype.is_floating:
        return x < tensor(0, x.dtype)
    zero = tensor(0, x.dtype)
    return math.logical_or(x < zero, math.logical_and(math.equal(x, zero), math.reciprocal(x) < zero))


COMPARISONS = {
    "eq": math.equal,
    "ne": math.not_equal,
    "lt": math.less,
    "le": math.less_equal,
    "gt": math.greater,
    "ge": math.greater_equal,
}


def _comparison(name: str, function: Callable[[Any, Any], Any]) -> None:
    def rule(op: AtenCall, x: Any, y: Any) -> Any:
        if op.promoted is bool_ and name not in ("eq", "ne"):
            return function(tensor(x, as_dtype("uint8")), tensor(y, as_dtype("uint8")))
        return function(*_pair(op, x, y, op.promoted))

    aten(name)(rule)


for _name, _compare in COMPARISONS.items():
    _comparison(_name, _compare)


@aten("logical_and")
def logical_and(op: AtenCall, x: Any, y: Any) -> Any:
    return math.logical_and(_truth(x), _truth(y))


@aten("logical_or")
def logical_or(op: AtenCall, x: Any, y: Any) -> Any:
    return math.logical_or(_truth(x), _truth(y))


@aten("logical_xor")
def logical_xor(op: AtenCall, x: Any, y: Any) -> Any:
    return math.not_equal(_truth(x), _truth(y))


@aten("logical_not")
def logical_not(op: AtenCall, x: Any) -> Any:
    return math.logical_not(_truth(x))


def _truth(x: Any) -> Any:
    x = tensor(x)
    return x if x.dtype is bool_ else math.not_equal(x, tensor(0, x.dtype))


BITWISE = {
    "bitwise_and": (bitwise.bitwise_and, math.logical_and),
    "bitwise_or": (bitwise.bitwise_or, math.logical_or),
    "bitwise_xor": (bitwise.bitwise_xor, math.not_equal),
    "bitwise_left_shift": (bitwise.left_shift, None),
    "bitwise_right_shift": (bitwise.right_shift, None),
}


def _bitwise(name: str, on_integers: Any, on_truth: Any) -> None:
    def rule(op: AtenCall, x: Any, y: Any) -> Any:
        return (on_truth if op.dtype is bool_ else on_integers)(*_pair(op, x, y))

    overloads = {"bitwise_left_shift": ("__lshift__",), "bitwise_right_shift": ("__rshift__",)}.get(name, ())
    aten(name, *overloads)(rule)


for _name, (_on_integers, _on_truth) in BITWISE.items():
    _bitwise(_name, _on_integers, _on_truth)


@aten("bitwise_not")
def bitwise_not(op: AtenCall, x: Any) -> Any:
    x = tensor(x)
    return math.logical_not(x) if x.dtype is bool_ else bitwise.invert(x)


@aten("signbit")
def signbit(op: AtenCall, x: Any) -> Any:
    x = tensor(x)
    if not x.dtype.is_floating:
        return array.zeros_like(x) if x.dtype is bool_ else x < tensor(0, x.dtype)
    return composed_functions.signbit(x)


@aten("frexp")
def frexp(op: AtenCall, x: Any) -> Any:
    """Return a mantissa in [0.5, 1) and the exponent of 2, from the bits of IEEE numbers."""
    x = tensor(x)
    kind, width, bias = {"float32": ("int32", 23, 126), "float64": ("int64", 52, 1022)}[x.dtype.name]
    integer = as_dtype(kind)
    small = math.abs(x) < tensor(2.0 ** (2 - bias), x.dtype)  # denormal numbers are scaled first
    scaled = array.where(small, x * tensor(2.0 ** (width + 2), x.dtype), x)
    bits = array.bitcast(scaled, integer)
    mask = (2 * bias + 3) << width
    stored = bitwise.right_shift(bitwise.bitwise_and(bits, tensor(mask, integer)), tensor(width, integer))
    exponent = stored - tensor(bias, integer) - array.where(small, tensor(width + 2, integer), tensor(0, integer))
    kept = bitwise.bitwise_and(bits, bitwise.invert(tensor(mask, integer)))
    mantissa = array.bitcast(bitwise.bitwise_or(kept, tensor(bias << width, integer)), x.dtype)
    plain = math.logical_and(math.is_finite(x), math.not_equal(x, tensor(0, x.dtype)))
    exponent = array.where(plain, exponent, tensor(0, integer))
    return array.where(plain, mantissa, x), array.cast(exponent, op.dtypes[1])


# ---- choices, limits --------------------------------------------------------------------------------------------


@aten("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(op: AtenCall, condition: Any, x: Any, y: Any) -> Any:
    return array.where(_truth(condition), *_pair(op, x, y))


@aten("masked_fill")
def masked_fill(op: AtenCall, x: Any, mask: Any, value: Any) -> Any:
    return array.where(_truth(mask), *_pair(op, value, x))


def _clamp(x: Any, low: Any, high: Any) -> Any:
    if low is not None:
        x = math.maximum(x, tensor(low, x.dtype))
    return x if high is None else math.minimum(x, tensor(high, x.dtype))


@aten("clamp", "clip")
def clamp(op: AtenCall, x: Any, min: Any = None, max: Any = None) -> Any:
    x = tensor(x, op.dtype)
    if isinstance(min, (int, float)) and isinstance(max, (int, float)) and (min, max) == (0, 6):
        return nn.relu6(x)
    return _clamp(x, min, max)


@aten("hardtanh")
def hardtanh(op: AtenCall, x: Any, min_val: Any = -1, max_val: Any = 1) -> Any:
    return clamp(op, x, min_val, max_val)


@aten("clamp_min")
def clamp_min(op: AtenCall, x: Any, low: Any) -> Any:
    return _clamp(tensor(x, op.dtype), low, None)


@aten("clamp_max")
def clamp_max(op: AtenCall, x: Any, high: Any) -> Any:
    return _clamp(tensor(x, op.dtype), None, high)


@aten("lerp")
def lerp(op: AtenCall, x: Any, y: Any, weight: Any) -> Any:
    x, y = _pair(op, x, y)
    return x + tensor(weight, op.dtype) * (y - x)


@aten("addcmul")
def addcmul(op: AtenCall, x: Any, a: Any, b: Any, value: Any = 1) -> Any:
    x, a = _pair(op, x, a)
    return x + tensor(value, op.dtype) * a * tensor(b, op.dtype)


@aten("addcdiv")
def addcdiv(op: AtenCall, x: Any, a: Any, b: Any, value: Any = 1) -> Any:
    x, a = _pair(op, x, a)
    return x + tensor(value, op.dtype) * (a / tensor(b, op.dtype))


@aten("nan_to_num")
def nan_to_num(
    op: AtenCall, x: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Any:
    x = tensor(x, op.dtype)
    if not op.dtype.is_floating:
        return x
    return composed_functions.nan_to_num(x, nan or 0.0, posinf, neginf)
