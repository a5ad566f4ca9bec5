"""Rows for element-wise mathematics: `ops/math/{arithmetic,elementary,guarded,trigonometry,logistic,rounding}.py`.

Comparisons, complex parts, clipping and bits: cases_comparison.py; special functions: cases_special.py.
"""

from __future__ import annotations

import cmath
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
from harness import bad, bf16, c64, c128, case, f16, f32, f64, i8, i32, i64, pos, strings, u8, u16, u32, unit

inf, nan = math.inf, math.nan


def of(function):
    """An oracle: a function of Python numbers, on each element; NaN where it refuses."""

    def one(*numbers):
        try:
            return function(*numbers)
        except (ValueError, ZeroDivisionError):
            return nan

    def oracle(*arrays):
        arrays = np.broadcast_arrays(*arrays)
        result = [one(*numbers) for numbers in zip(*(a.ravel().tolist() for a in arrays))]
        return np.array(result, float if not result else None).reshape(arrays[0].shape)

    return oracle


def array(*numbers, dtype=np.float64):
    return np.array(numbers, dtype)


edges = array(-inf, -1e300, -1.0, -0.0, 0.0, 5e-324, 1.0, 1e300, inf, nan)


def one_argument(function, complex_function=None, make=lambda x: x, **options):
    """The rows of a function of one floating tensor, of complex ones too if a second oracle is given."""
    rows = [
        case(make(f64(2, 3)), expect=of(function), **options),
        case(make(f32(2, 3)), expect=of(function), **options),
        case(make(f64()), expect=of(function), **options),
        case(make(f32(0, 3)), expect=of(function), **options),
        case(make(bf16(3)), expect=of(function), **options),
        case(make(f16(3)), expect=of(function), **options),
        bad(i32(2), says="dtype"),
        bad(f32(2), i32(2), says="too many"),
    ]
    if complex_function is not None:
        rows += [case(make(c128(2, 3)), expect=of(complex_function)), case(make(c64(3)), expect=of(complex_function))]
    return rows


def two_arguments(function, complex_function=None, make=lambda x: x, **options):
    """The rows of a function of two floating tensors with broadcasting."""
    rows = [
        case(make(f64(2, 3)), make(f64(2, 3)), expect=of(function), **options),
        case(make(f64(2, 3)), make(f64(3)), expect=of(function), **options),
        case(make(f64(2, 1)), make(f64(1, 3)), expect=of(function), **options),
        case(make(f32(2, 3)), make(f32()), expect=of(function), **options),
        case(make(f32(0, 3)), make(f32(1, 3)), expect=of(function), **options),
        case(make(bf16(3)), make(bf16(3)), expect=of(function), **options),
        bad(f64(2, 3), f64(2), says="shape"),
        bad(f64(2), f32(2), says="differ in dtype"),
    ]
    if complex_function is not None:
        rows += [case(make(c128(2, 3)), make(c128(3)), expect=of(complex_function))]
    return rows


def integers(function, *makers, **options):
    """Rows of a function of two integer tensors, the second without zeros."""
    return [case(make(2, 3), pos(make(3)), expect=of(function), **options) for make in makers]


def wrapped(function, bits):
    """An oracle for unsigned integers that wrap."""
    return of(lambda x, y: function(x, y) % 2**bits)


def toward_zero(x, y):
    return math.trunc(Fraction(x) / Fraction(y))


def floor_mod(x, y):
    return x - y * math.floor(x / y)


def mul_no_nan(x, y):
    return 0.0 if y == 0 else x * y


def half_even(x):
    return float(round(x)) if math.isfinite(x) else x


def sigmoid(x):
    return 1 / (1 + cmath.exp(-x)) if isinstance(x, complex) else 1 / (1 + math.exp(-x))


def at_steps(x):
    """Move the values of a generator away from integers and halves, where rounding is discontinuous."""
    return np.asarray(np.floor(x * 4) / 4 + 0.1).astype(x.dtype)


def outward(x):
    """Map the values of a generator to [1.1, 5.1]."""
    return np.asarray(x + x.dtype.type(3.1)).astype(x.dtype)


def text(*words):
    return np.array([w.encode() for w in words], object)


CASES = {
    # ---- arithmetic ----
    "Add": [
        *two_arguments(lambda x, y: x + y, lambda x, y: x + y),
        *integers(lambda x, y: x + y, i8, i32, i64),
        case(u8(2, 200), np.uint8(100), expect=wrapped(lambda x, y: x + y, 8)),
        case(text("a", ""), text("b", "cd"), expect=text("ab", "cd")),
        case(strings(2, 3), text("!"), expect=lambda x, y: np.array([[v + b"!" for v in row] for row in x], object)),
    ],
    "Sub": [
        *two_arguments(lambda x, y: x - y, lambda x, y: x - y),
        *integers(lambda x, y: x - y, i8, i32),
        case(u16(3), np.uint16(1), expect=wrapped(lambda x, y: x - y, 16)),
    ],
    "Mul": [
        *two_arguments(lambda x, y: x * y, lambda x, y: x * y),
        *integers(lambda x, y: x * y, i32, i64),
        case(u32(4), np.uint32(2**31), expect=wrapped(lambda x, y: x * y, 32)),
    ],
    "RealDiv": [
        *two_arguments(lambda x, y: x / y, lambda x, y: x / y),
        case(array(1, -1, 0, inf), array(0, 0, 0, inf), expect=array(inf, -inf, nan, nan), grad=False),
        bad(i32(2), i32(2), says="dtype"),
    ],
    "realdiv": [case(f64(2, 3), pos(f64(3)), expect=lambda x, y: x / y), bad(i32(2), i32(2), says="dtype")],
    "divide": [
        case(i32(2, 3), pos(i32(3)), expect=of(lambda x, y: x / y), gives="float64"),
        case(i8(2, 3), pos(i8(3)), expect=of(lambda x, y: x / y), gives="float32"),
        case(f32(3), 2, expect=lambda x, y: x / 2, gives="float32"),
        case(2, f32(3), expect=lambda x, y: 2 / y, gives="float32"),
        case(3, 2, expect=np.array(1.5), gives="float64"),
        case(np.float64(1), 2, expect=np.array(0.5), gives="float64"),
        case(3, np.float32([2.0]), expect=np.array([1.5]), gives="float32"),
        bad(i32(3), f32(3), says="same dtype"),
    ],
    "divide_no_nan": [
        case(i32(2, 3), np.int32(0), expect=np.zeros((2, 3)), gives="float64"),
        case(i8(3), pos(i8(3)), expect=of(lambda x, y: x / y), gives="float32"),
        case(f32(3), 0, expect=np.zeros(3), gives="float32"),
    ],
    "FloorDiv": [
        *two_arguments(lambda x, y: float(math.floor(x / y)))[:5],
        *integers(lambda x, y: x // y, i8, i32, i64, u8),
        case(array(-7, 7, -7, dtype=np.int32), array(2, -2, -2, dtype=np.int32), expect=[-4, -4, 3]),
        bad(i32(2), np.zeros(2, np.int32), says="division by zero"),
    ],
    "FloorMod": [
        *two_arguments(floor_mod)[:5],
        *integers(lambda x, y: x % y, i8, i32, i64, u8),
        case(array(-7, 7, -7, dtype=np.int32), array(2, -2, -2, dtype=np.int32), expect=[1, -1, -1]),
        case(array(5, -5), array(0, 3), expect=array(nan, 1), grad=False),
        bad(i32(2), np.zeros(2, np.int32), says="division by zero"),
    ],
    "Pow": [
        *two_arguments(lambda x, y: x**y, lambda x, y: x**y, pos),
        case(array(-2, -2, -1.5, 0), array(2, 3, -1, 2), expect=array(4, -8, -1 / 1.5, 0), grad=[0]),
        case(array(0, 0, 2, inf, 1), array(0, -1, inf, 0, nan), expect=array(1, inf, inf, 1, 1), grad=False),
        case(array(0, 0), array(2, 3), expect=array(0, 0), grad=[0]),
        case(array(-inf, 4), np.array(0.5), expect=array(inf, 2), grad=False),
        *integers(lambda x, y: x**y, i32, i64),
        bad(i32(2), np.array([1, -1], np.int32), says="negative integer powers"),
    ],
    "Maximum": [
        *two_arguments(lambda x, y: max(x, y)),
        *integers(max, i8, i32, u8),
        case(array(nan, 1, nan), array(1, nan, nan), expect=array(nan, nan, nan), grad=False),
    ],
    "Minimum": [
        *two_arguments(lambda x, y: min(x, y)),
        *integers(min, i8, i32, u8),
        case(array(nan, 1, nan), array(1, nan, nan), expect=array(nan, nan, nan), grad=False),
    ],
    "SquaredDifference": [
        *two_arguments(lambda x, y: (x - y) ** 2, lambda x, y: (x - y) * (x - y).conjugate()),
        *integers(lambda x, y: (x - y) ** 2, i32, i64),
    ],
    "Neg": [
        *one_argument(lambda x: -x, lambda x: -x)[:6],
        case(c128(3), expect=of(lambda x: -x)),
        case(i32(5), expect=of(lambda x: -x)),
        case(array(-128, 5, dtype=np.int8), expect=[-128, -5]),
        bad(u8(2), says="dtype"),
    ],
    "AddN": [
        case([f64(2, 3), f64(2, 3), f64(2, 3)], expect=lambda xs: xs[0] + xs[1] + xs[2]),
        case([f32(2)], expect=lambda xs: xs[0]),
        case([i32(2, 2), i32(2, 2)], expect=lambda xs: xs[0] + xs[1]),
        bad([f32(2), f32(3)], says="differ in shape"),
        bad([f32(2), i32(2)], says="dtype"),
        bad([], says="at least one"),
    ],
    "math.scalar_mul": [
        case(np.float64(3), f64(2, 3), expect=lambda s, x: 3 * x),
        case(2, f32(3), expect=lambda s, x: 2 * x),
        bad(f32(2), f32(2), says="0-D", raises=ValueError),
    ],
    # ---- exponentials, logarithms, powers ----
    "Exp": [
        *one_argument(math.exp, cmath.exp),
        case(array(-inf, 0, 710, inf, nan), expect=array(0, 1, inf, inf, nan), grad=False),
    ],
    "Expm1": [
        *one_argument(math.expm1, lambda z: cmath.exp(z) - 1),
        case(array(1e-20, -1e-9), expect=of(math.expm1), rtol=1e-14, atol=0.0),
    ],
    "Log": [
        *one_argument(math.log, cmath.log, pos),
        case(c128(4), expect=of(cmath.log)),
        case(array(0, -1, inf, nan, 1), expect=array(-inf, nan, inf, nan, 0), grad=False),
    ],
    "Log1p": [
        *one_argument(math.log1p, lambda z: cmath.log(1 + z), pos),
        case(array(1e-20, -1e-9), expect=of(math.log1p), rtol=1e-14, atol=0.0),
        case(array(-1, -2, inf), expect=array(-inf, nan, inf), grad=False),
    ],
    "Sqrt": [
        *one_argument(math.sqrt, cmath.sqrt, pos),
        case(c128(4), expect=of(cmath.sqrt)),
        case(array(0, -1, inf, nan), expect=array(0, nan, inf, nan), grad=False),
    ],
    "Rsqrt": [
        *one_argument(lambda x: 1 / math.sqrt(x), lambda z: 1 / cmath.sqrt(z), pos),
        case(array(0, -1, inf), expect=array(inf, nan, 0), grad=False),
    ],
    "Square": [
        *one_argument(lambda x: x * x, lambda x: x * x)[:6],
        case(c128(3), expect=of(lambda x: x * x)),
        *[case(make(2, 3), expect=of(lambda x: x * x)) for make in (i32, i64, u8)],
        bad(strings(2), says="dtype"),
    ],
    "Reciprocal": [
        *one_argument(lambda x: 1 / x, lambda x: 1 / x),
        case(array(0.0, -0.0, inf), expect=array(inf, -inf, 0), grad=False),
    ],
    "math.reciprocal_no_nan": [
        case(array(2, 0, -4, inf), expect=array(0.5, 0, -0.25, 0), grad=False),
        case(f64(2, 3), expect=of(lambda x: 1 / x)),
        case(c128(3), expect=of(lambda x: 1 / x)),
    ],
    "math.polyval": [
        case([np.float64(2), np.float64(-3), np.float64(5)], f64(4), expect=lambda c, x: 2 * x**2 - 3 * x + 5),
        case([f64(2), f64(2), f64(2)], f64(2), expect=lambda c, x: c[0] * x**2 + c[1] * x + c[2]),
        case([1.0, 2.0], f32(3), expect=lambda c, x: x + 2),
        case([], f32(3), expect=np.zeros(3)),
        bad((1.0,), f32(3), says="list", raises=ValueError),
    ],
    # ---- products where 0 wins ----
    "DivNoNan": [
        *two_arguments(lambda x, y: x / y if y else 0.0, lambda x, y: x / y),
        case(array(1, 0, nan, 6), array(0, 0, 0, 3), expect=array(0, 0, 0, 2), grad=False),
    ],
    "MulNoNan": [
        *two_arguments(mul_no_nan, lambda x, y: x * y),
        case(array(inf, nan, 2, nan), array(0, 0, 3, 1), expect=array(0, 0, 6, nan), grad=False),
    ],
    "Xlogy": [
        *two_arguments(lambda x, y: x * math.log(y), lambda x, y: x * cmath.log(y), pos),
        case(array(0, 0, 0, 2), array(0, -1, nan, 0), expect=array(0, 0, 0, -inf), grad=False),
    ],
    "Xlog1py": [
        *two_arguments(lambda x, y: x * math.log1p(y), lambda x, y: x * cmath.log(1 + y), pos),
        case(array(0, 0, 0, 2), array(-1, -2, nan, -1), expect=array(0, 0, 0, -inf), grad=False),
    ],
    "Xdivy": [
        *two_arguments(lambda x, y: x / y, lambda x, y: x / y),
        case(array(0, 0, 0, 2), array(0, inf, nan, 0), expect=array(0, 0, 0, inf), grad=False),
    ],
    # ---- trigonometric and hyperbolic ----
    "Sin": [*one_argument(math.sin, cmath.sin), case(array(inf, 1e6), expect=array(nan, math.sin(1e6)), grad=False)],
    "Cos": [*one_argument(math.cos, cmath.cos), case(array(inf, 1e6), expect=array(nan, math.cos(1e6)), grad=False)],
    "Tan": one_argument(math.tan, cmath.tan, unit),
    "Asin": [
        *one_argument(math.asin, cmath.asin, unit),
        case(array(-1, 1, 2), expect=array(-math.pi / 2, math.pi / 2, nan), grad=False),
    ],
    "Acos": [
        *one_argument(math.acos, cmath.acos, unit),
        case(array(-1, 1, 2), expect=array(math.pi, 0, nan), grad=False),
    ],
    "Atan": [*one_argument(math.atan, cmath.atan), case(edges, expect=of(math.atan), grad=False)],
    "Sinh": one_argument(math.sinh, cmath.sinh),
    "Cosh": one_argument(math.cosh, cmath.cosh),
    "Tanh": [*one_argument(math.tanh, cmath.tanh), case(edges, expect=of(math.tanh), grad=False)],
    "Asinh": [
        *one_argument(math.asinh, cmath.asinh),
        case(array(-inf, 1e-20, 1e300), expect=of(math.asinh), grad=False),
    ],
    "Acosh": [
        *one_argument(math.acosh, cmath.acosh, outward),
        case(array(1, 0.5, inf), expect=array(0, nan, inf), grad=False),
    ],
    "Atanh": [
        *one_argument(math.atanh, cmath.atanh, unit),
        case(array(-1, 1, 2), expect=array(-inf, inf, nan), grad=False),
    ],
    "Atan2": [
        *two_arguments(math.atan2),
        case(
            array(0.0, -0.0, 0.0, -0.0, 1, inf),
            array(1, 1, -1, -1, 0, -inf),
            grad=False,
            expect=array(0, -0.0, math.pi, -math.pi, math.pi / 2, 3 * math.pi / 4),
        ),
        bad(c64(2), c64(2), says="dtype"),
    ],
    # ---- logistic ----
    "Sigmoid": [
        *one_argument(sigmoid, sigmoid),
        case(
            array(-inf, -700, 0, 40, inf, nan), expect=array(0, math.exp(-700), 0.5, 1, 1, nan), rtol=1e-13, grad=False
        ),
        case(array(-100, 100, dtype=np.float32), expect=array(0, 1), grad=False),
    ],
    "Softplus": [
        *one_argument(lambda x: math.log(1 + math.exp(x))),
        case(
            array(-inf, -800, -40, 0, 800, inf, nan),
            grad=False,
            expect=array(0, 0, math.exp(-40), math.log(2), 800, inf, nan),
        ),
    ],
    "math.log_sigmoid": [
        case(f64(2, 3), expect=of(lambda x: -math.log(1 + math.exp(-x)))),
        case(array(-800, 800), expect=array(-800, 0)),
    ],
    "Softsign": one_argument(lambda x: x / (1 + abs(x))),
    # ---- rounding ----
    "Floor": [
        *one_argument(lambda x: float(math.floor(x)), make=at_steps),
        case(array(-0.5, 1.5, inf), expect=array(-1, 1, inf)),
    ],
    "Ceil": [
        *one_argument(lambda x: float(math.ceil(x)), make=at_steps),
        case(array(-0.5, 1.5, -inf), expect=array(-0.0, 2, -inf)),
    ],
    "Round": [
        *one_argument(half_even, make=at_steps)[:6],
        case(array(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, inf, nan), expect=array(-2, -2, 0, 0, 2, 2, inf, nan)),
        case(i32(2, 3), expect=lambda x: x),
        case(i8(3), expect=lambda x: x),
        case(u8(3), expect=lambda x: x),
        bad(c64(2), says="dtype"),
    ],
    "Rint": [*one_argument(half_even, make=at_steps), case(array(-2.5, 0.5, 1.5, -inf), expect=array(-2, 0, 2, -inf))],
    "TruncateDiv": [
        *two_arguments(lambda x, y: float(math.trunc(x / y)))[:5],
        *integers(toward_zero, i8, i32, i64, u8),
        case(array(-7, 7, -7, -6, dtype=np.int32), array(2, -2, -2, 2, dtype=np.int32), expect=[-3, -3, 3, -3]),
        bad(i32(2), np.zeros(2, np.int32), says="division by zero"),
    ],
    "TruncateMod": [
        *two_arguments(math.fmod)[:5],
        *integers(lambda x, y: x - y * toward_zero(x, y), i32, i64),
        case(array(-7, 7, -7, dtype=np.int32), array(2, -2, -2, dtype=np.int32), expect=[-1, 1, -1]),
        case(array(5, -5), array(0, 3), expect=array(nan, -2), grad=False),
        bad(i32(2), np.zeros(2, np.int32), says="division by zero"),
    ],
    "NextAfter": [
        case(f64(2, 3), f64(3), expect=of(math.nextafter), rtol=0, atol=0, grad=False),
        case(
            array(1, 1, 0, 2, nan),
            array(2, 0, 1, 2, 1),
            rtol=0,
            atol=0,
            grad=False,
            expect=array(1 + 2**-52, 1 - 2**-53, 5e-324, 2, nan),
        ),
        case(
            array(1, 0, dtype=np.float32),
            array(2, -1, dtype=np.float32),
            rtol=0,
            atol=0,
            grad=False,
            half=False,
            expect=array(1 + 2**-23, -(2.0**-149)),
        ),
        bad(f16(2), f16(2), says="dtype"),
    ],
    "IsNan": [
        case(edges, expect=of(math.isnan)),
        case(f32(0, 2), expect=np.zeros((0, 2), bool)),
        case(array(nan, inf, 1, dtype=ml_dtypes.bfloat16), expect=[True, False, False]),
        bad(i32(2), says="dtype"),
    ],
    "IsInf": [case(edges, expect=of(math.isinf)), case(f32(), expect=np.array(False)), bad(i32(2), says="dtype")],
    "IsFinite": [
        case(edges, expect=of(math.isfinite)),
        case(f32(2, 3), expect=np.ones((2, 3), bool)),
        bad(i32(2), says="dtype"),
    ],
}
