"""Functions of `keras.ops` that compute each element from the elements at its place.

Lives here: arithmetic, comparisons, bits, functions of one number.
Not here: activations (nn.py), their formulas, which are the catalogue's (ops/math/).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from ...ops import array, bitwise, composed_functions, dispatch, math
from ...tracing.control.loops import while_loop
from .promotion import as_double, as_floating, as_number, as_tensor, convert, of_one, of_two, promote, result_type

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def _ordered(compare: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """Return a comparison that orders Booleans, too: False before True."""

    @wraps(compare)
    def ordered(x: Any, y: Any) -> Tensor:
        return compare(*(array.cast(v, "uint8") if v.dtype.name == "bool" else v for v in (x, y)))

    return ordered


square = of_one(math.square, first=as_number)
conj = conjugate = of_one(math.conj)
logical_not = of_one(math.logical_not, boolean=True)
bitwise_not = bitwise_invert = of_one(bitwise.invert)

arccos = of_one(math.acos, floating=True)
arccosh = of_one(math.acosh, floating=True)
arcsin = of_one(math.asin, floating=True)
arcsinh = of_one(math.asinh, floating=True)
arctan = of_one(math.atan, floating=True)
arctanh = of_one(math.atanh, floating=True)
cos = of_one(math.cos, floating=True)
cosh = of_one(math.cosh, floating=True)
sin = of_one(math.sin, floating=True)
sinh = of_one(math.sinh, floating=True)
tan = of_one(math.tan, floating=True)
tanh = of_one(math.tanh, floating=True)
exp = of_one(math.exp, floating=True)
expm1 = of_one(math.expm1, floating=True)
log = of_one(math.log, floating=True)
log1p = of_one(math.log1p, floating=True)
sqrt = of_one(math.sqrt, floating=True)
rsqrt = of_one(math.rsqrt, floating=True)
reciprocal = of_one(math.reciprocal, floating=True)
ceil = of_one(math.ceil, floating=True)
floor = of_one(math.floor, floating=True)
i0 = of_one(math.bessel_i0, floating=True, first=as_double)
erf = of_one(math.erf, floating=True)
erfc = of_one(math.erfc, floating=True)
erfinv = of_one(math.erfinv, floating=True)
log2 = of_one(composed_functions.log2, floating=True)
log10 = of_one(composed_functions.log10, floating=True)
exp2 = of_one(composed_functions.exp2, floating=True)
cbrt = of_one(composed_functions.cbrt, floating=True, first=as_double)
sinc = of_one(composed_functions.sinc, floating=True)
deg2rad = of_one(composed_functions.deg2rad, floating=True, first=as_double)
rad2deg = of_one(composed_functions.rad2deg, floating=True, first=as_double)

subtract = of_two(math.subtract)
divide = true_divide = of_two(math.truediv, floating=True)
divide_no_nan = of_two(math.divide_no_nan, floating=True)
floor_divide = of_two(math.floordiv)
mod = remainder = of_two(math.floormod, first=as_number)
fmod = of_two(math.truncatemod, first=as_number)
power = of_two(math.pow)
maximum = of_two(math.maximum)
minimum = of_two(math.minimum)
arctan2 = of_two(math.atan2, floating=True)
hypot = of_two(composed_functions.hypot, floating=True, first=as_double)
logaddexp = of_two(composed_functions.logaddexp, floating=True)
logaddexp2 = of_two(composed_functions.logaddexp2, floating=True)
equal = of_two(math.equal)
not_equal = of_two(math.not_equal)
greater = of_two(_ordered(math.greater))
greater_equal = of_two(_ordered(math.greater_equal))
less = of_two(_ordered(math.less))
less_equal = of_two(_ordered(math.less_equal))
logical_and = of_two(math.logical_and, boolean=True)
logical_or = of_two(math.logical_or, boolean=True)
logical_xor = of_two(math.logical_xor, boolean=True)
bitwise_and = of_two(bitwise.bitwise_and)
bitwise_or = of_two(bitwise.bitwise_or)
bitwise_xor = of_two(bitwise.bitwise_xor)
bitwise_left_shift = left_shift = of_two(bitwise.left_shift)
bitwise_right_shift = right_shift = of_two(bitwise.right_shift)


def add(x1: Any, x2: Any) -> Tensor:
    """Add element-wise; of Booleans, the logical or."""
    a, b = promote(x1, x2)
    return math.logical_or(a, b) if a.dtype.name == "bool" else math.add(a, b)


def multiply(x1: Any, x2: Any) -> Tensor:
    """Multiply element-wise; of Booleans, the logical and."""
    a, b = promote(x1, x2)
    return math.logical_and(a, b) if a.dtype.name == "bool" else math.multiply(a, b)


def _where_nan(x1: Any, x2: Any, result: Any) -> Tensor:
    """Return result(a, b) of promoted operands, or the other operand where one is NaN."""
    a, b = promote(x1, x2)
    if not a.dtype.is_floating:
        return as_tensor(result(a, b))
    y = array.where(math.is_nan(b), a, result(a, b))
    return array.where(math.is_nan(a), b + array.zeros_like(a), y)


def fmax(x1: Any, x2: Any) -> Tensor:
    """Compute the larger of two elements; where one is NaN, the other."""
    return _where_nan(x1, x2, math.maximum)


def fmin(x1: Any, x2: Any) -> Tensor:
    """Compute the smaller of two elements; where one is NaN, the other."""
    return _where_nan(x1, x2, math.minimum)


def absolute(x: Any) -> Tensor:
    """Compute absolute values."""
    x = dispatch.to_tensor(x)
    return x if x.dtype.is_unsigned or x.dtype.name == "bool" else math.abs(x)


abs = absolute


def negative(x: Any) -> Tensor:
    """Negate numbers; unsigned ones modulo the size of their range."""
    x = dispatch.to_tensor(x)
    return array.zeros_like(x) - x if x.dtype.is_unsigned else math.negative(x)


def sign(x: Any) -> Tensor:
    """Return -1, 0 or 1, the sign of each number."""
    x = dispatch.to_tensor(x)
    return math.minimum(x, convert(1, x.dtype)) if x.dtype.is_unsigned else math.sign(x)


def nextafter(x1: Any, x2: Any) -> Tensor:
    """Return the floating number after x1 towards x2, in at least single precision."""
    a, b = promote(x1, x2, floating=True)
    return math.nextafter(*(convert(v, "float32") if v.dtype.size < 4 else v for v in (a, b)))


def fabs(x: Any) -> Tensor:
    """Compute absolute values in a floating dtype."""
    return math.abs(as_floating(x))


def angle(x: Any) -> Tensor:
    """Compute angles of complex numbers in radians; pi for negative real ones."""
    return math.angle(as_floating(x))


def real(x: Any) -> Tensor:
    """Return real parts."""
    x = dispatch.to_tensor(x)
    return math.real(x) if x.dtype.is_complex else x


def imag(x: Any) -> Tensor:
    """Return imaginary parts; zeros of real numbers."""
    x = dispatch.to_tensor(x)
    return math.imag(x) if x.dtype.is_complex else array.zeros_like(x)


def isreal(x: Any) -> Tensor:
    """Return whether imaginary parts are 0."""
    return math.equal(imag(x), convert(0, imag(x).dtype))


def polar(abs_: Any, angle: Any) -> Tensor:
    r"""Compute complex numbers :math:`r e^{i \varphi}` from absolute values and angles in radians."""
    r, phi = promote(abs_, angle, floating=True)
    return math.complex(r * math.cos(phi), r * math.sin(phi))


def view_as_complex(x: Any) -> Tensor:
    """Convert pairs (real, imaginary) along the last axis, of size 2, to complex numbers."""
    x = dispatch.to_tensor(x)
    if x.shape.rank == 0 or x.shape[-1] != 2:
        raise ValueError(f"Input must have shape (..., 2) of real and imaginary parts. Received: shape={x.shape}")
    return math.complex(x[..., 0], x[..., 1])


def view_as_real(x: Any) -> Tensor:
    """Convert complex numbers to pairs (real, imaginary) along a new last axis."""
    return array.stack([real(x), imag(x)], axis=-1)


def round(x: Any, decimals: int = 0) -> Tensor:
    """Round to a number of decimals, halves to even; of integers, decimals below 0 round tens, hundreds, ..."""
    x = dispatch.to_tensor(x)
    if not x.dtype.is_floating and decimals >= 0:
        return as_tensor(x)
    dtype = x.dtype
    y = as_floating(x)
    scale = 10.0**decimals
    y = math.round(y * scale) / scale if decimals else math.round(y)
    return array.cast(y, dtype)


def trunc(x: Any) -> Tensor:
    """Round towards zero."""
    x = dispatch.to_tensor(x)
    if not x.dtype.is_floating:
        return as_tensor(x)
    return composed_functions.trunc(x)


def _nonfinite(x: Any, test: Any) -> Tensor:
    """Return test(x), or False for integers and Booleans."""
    x = dispatch.to_tensor(x)
    return test(x) if x.dtype.is_floating else array.zeros_like(x, "bool")


def isnan(x: Any) -> Tensor:
    """Return whether elements are NaN."""
    return _nonfinite(x, math.is_nan)


def isinf(x: Any) -> Tensor:
    """Return whether elements are infinite."""
    return _nonfinite(x, math.is_inf)


def isposinf(x: Any) -> Tensor:
    """Return whether elements are positive infinity."""
    return _nonfinite(x, lambda x: math.equal(x, convert(float("inf"), x.dtype)))


def isneginf(x: Any) -> Tensor:
    """Return whether elements are negative infinity."""
    return _nonfinite(x, lambda x: math.equal(x, convert(float("-inf"), x.dtype)))


def isfinite(x: Any) -> Tensor:
    """Return whether elements are neither infinite nor NaN."""
    return math.logical_not(_nonfinite(x, lambda x: math.logical_not(math.is_finite(x))))


def isclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Return whether abs(x1 - x2) <= atol + rtol abs(x2); infinities are close to themselves, NaN if `equal_nan`."""
    a, b = promote(x1, x2, floating=True)
    close = math.less_equal(math.abs(a - b), atol + rtol * math.abs(b))
    close = math.logical_or(math.logical_and(close, isfinite(b)), math.equal(a, b))
    return math.logical_or(close, math.logical_and(isnan(a), isnan(b))) if equal_nan else close


def signbit(x: Any) -> Tensor:
    """Return whether the sign bit is set: of negative numbers and of -0."""
    x = dispatch.to_tensor(x)
    if not x.dtype.is_floating:
        return math.less(convert(x, result_type(x.dtype, "int32")), 0) if x.dtype.name != "bool" else _no(x)
    return composed_functions.signbit(x)


def _no(x: Tensor) -> Tensor:
    return array.zeros_like(x, "bool")


def heaviside(x1: Any, x2: Any) -> Tensor:
    """Compute the step function: 0 below zero, x2 at zero, 1 above."""
    a, b = promote(x1, x2, floating=True)
    zero, one = array.zeros_like(a), array.ones_like(a)
    y = array.where(math.less(a, zero), zero, array.where(math.equal(a, zero), b, one))
    return array.where(isnan(a), a, y)


def ldexp(x1: Any, x2: Any) -> Tensor:
    """Compute x1 times 2 to the power of integers x2. Raises TypeError for x2 that are not integers."""
    exponents = dispatch.to_tensor(x2)
    if not exponents.dtype.is_integer:
        raise TypeError(f"ldexp exponent must be an integer type. Received: x2 dtype={exponents.dtype.name}")
    x = as_floating(x1)
    return x * math.pow(convert(2, x.dtype), array.cast(exponents, x.dtype))


def clip(x: Any, x_min: Any, x_max: Any) -> Tensor:
    """Return x, x_min where it is less, x_max where it is greater."""
    x, low, high = promote(x, x_min, x_max)
    dtype = "int32" if x.dtype.name == "bool" else x.dtype
    return math.minimum(math.maximum(convert(x, dtype), convert(low, dtype)), convert(high, dtype))


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replace NaN and infinities, the latter by the dtype's largest and smallest number unless given."""
    x = dispatch.to_tensor(x)
    if not x.dtype.is_floating:
        return as_tensor(x)
    return composed_functions.nan_to_num(x, nan, posinf, neginf)


def _euclid(a: Tensor, b: Tensor) -> Tensor:
    """Compute greatest common divisors of non-negative integers by Euclid's algorithm, all elements at once."""
    zero = convert(0, a.dtype)

    def unfinished(a: Tensor, b: Tensor) -> Tensor:
        return math.reduce_any(math.not_equal(b, zero))

    def step(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        done = math.equal(b, zero)
        divisor = array.where(done, array.ones_like(b), b)
        return array.where(done, a, b), array.where(done, b, math.floormod(a, divisor))

    return while_loop(unfinished, step, [a, b])[0]


def _absolute_pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    a, b = promote(x1, x2)
    shape = a + b
    return math.abs(a) + array.zeros_like(shape), math.abs(b) + array.zeros_like(shape)


def gcd(x1: Any, x2: Any) -> Tensor:
    """Compute greatest common divisors of integers."""
    return _euclid(*_absolute_pair(x1, x2))


def lcm(x1: Any, x2: Any) -> Tensor:
    """Compute least common multiples of integers, 0 where one is 0."""
    a, b = _absolute_pair(x1, x2)
    divisor = _euclid(a, b)
    return math.floordiv(a, math.maximum(divisor, convert(1, a.dtype))) * b
