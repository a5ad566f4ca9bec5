"""Functions of one and two numbers: what each is in float64, where it is compared, and how far off it may be.

Lives here: the tables UNARY, BINARY, INTEGER.  Not here: the numbers that they are tested at (function_inputs.py), the
ways in which they run (function_ways.py), how errors are measured (test_functions.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

import opwright as ow

Array = np.ndarray
nn, keras = ow.nn, ow.nn.activations


SINGLE = ("float32",)


@dataclass(frozen=True)
class Row:
    """A function and how far off it may be; `why` has the reason for each number that is not the default.

    function: of tensors. exact: of float64 arrays, with far more digits than float32 has. digits: the same in mpmath,
    for float64. ulps: units in the last place that eager, traced and kernel results of float32 may be off; short: of
    float16 and bfloat16; wide: of float64. quick: relative error of the ways that choose speed (jit_compile, .tflite
    compiled). quick_of_argument: their absolute error, divided by |x|. lite: relative error of the interpreter's own
    kernels. least: absolute error of results that are smaller, or that underflow on the way. zeros: whether the sign of
    a zero is compared; lite_zeros: of .tflite, too. nans: whether .tflite keeps a NaN. lite_size: |x| from which on its
    form in .tflite is not compared.
    slow: its oracle is slow: few numbers, of moderate size.
    """

    name: str
    function: Callable[..., Any]
    exact: Callable[..., Any]
    digits: Callable[..., Any] | None = None
    ulps: float = 4.0
    short: float = 1.0
    wide: float = 4.0
    quick: float = 2e-6
    quick_of_argument: float = 0.0
    lite: float = 6e-7
    least: float = 2.0**-126
    zeros: bool = True
    nans: bool = True
    lite_zeros: bool = True
    lite_size: float = math.inf
    slow: bool = False
    without: tuple[str, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        return self.name


def row(name: str, function: Callable[..., Any], exact: Callable[..., Any], digits: Any = None, **more: Any) -> Row:
    return Row(name, function, exact, digits, **more)


def same(name: str, function: Callable[..., Any], exact: Callable[..., Any], digits: Any = None, **more: Any) -> Row:
    """A function whose result is exact, or rounded once, in every way."""
    settings = {"ulps": 0.5, "short": 0.5, "wide": 0.5, "quick": 6e-8, "lite": 6e-8, **more}
    return Row(name, function, exact, digits, **settings)


def each(function: Callable[..., float]) -> Callable[..., Array]:
    """A function of Python numbers on float64 arrays; NaN where it has no value."""

    def at(*xs: float) -> float:
        try:
            return float(function(*xs))
        except (ValueError, ZeroDivisionError, OverflowError):
            return math.nan

    return np.vectorize(at, otypes=[np.float64])


def by_digits(function: Callable[..., Any]) -> Callable[..., Array]:
    """An mpmath function on float64 arrays, real results alone; NaN of NaN."""

    def at(*xs: float) -> float:
        if any(x != x for x in xs):
            return math.nan
        try:
            with mp.workdps(120):
                result = function(*map(mp.mpf, xs))
            return float(result.real) if abs(result.imag) == 0 else math.nan
        except (ValueError, ZeroDivisionError, OverflowError, mp.libmp.NoConvergence, RecursionError):
            return math.nan

    return np.vectorize(at, otypes=[np.float64])


_erf, _erfc = each(math.erf), each(math.erfc)
S, A = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
ROOT = math.sqrt(0.5)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gelu_tanh(x: Array) -> Array:
    """x times the logistic function of 2 sqrt(2 / pi) (x + 0.044715 x^3), which does not cancel."""
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def mish(x: Array) -> Array:
    """x tanh(softplus(x)) without cancellation: with e = exp(-|x|), x (2 e + e^2) / (2 e + e^2 + 2) for x < 0."""
    e = np.exp(-np.abs(x))
    return np.where(x < 0, x * (e * (e + 2) / (e * (e + 2) + 2)), x * ((1 + 2 * e) / (1 + 2 * e + 2 * e * e)))


def squareplus(x: Array) -> Array:
    """(x + sqrt(x^2 + 4)) / 2, for x < 0 as 2 / (sqrt(x^2 + 4) - x)."""
    root = np.hypot(x, 2.0)
    return np.where(x < 0, 2 / (root + np.abs(x)), root / 2 + np.abs(x) / 2)


def log_gamma(x: Any) -> Any:
    """The logarithm of |gamma(x)|; inf at its poles and at both infinities, as in TensorFlow."""
    return mp.inf if mp.isinf(x) or (x <= 0 and x == mp.floor(x)) else mp.log(abs(mp.gamma(x)))


def digamma(x: Any) -> Any:
    """NaN at the poles and at minus infinity, as in TensorFlow."""
    return mp.nan if x <= 0 and x == mp.floor(x) else mp.digamma(x)


def softplus_digits(x: Any) -> Any:
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


EITHER_ZERO = "of 0.0 and -0.0, max and min return either"
SUM_OF_ONE = "the ways that choose speed have x (1 + f(x)) / 2, as other run times"
NUMPY = "NumPy's float32 functions are within 4 units"
STEPS = "several operators, each rounded to the dtype"
LOGISTIC = "the official kernel takes exp(x) below -9, 1.2e-4 more than 1 / (1 + exp(-x))"
TIMES_X = "x times a factor that may underflow: 2^-126 |x|"
LOST_ZERO = "the form in .tflite makes 0.0 of -0.0"
OVERFLOWS = "the form in .tflite is made of EXP, which overflows 0.7 earlier"

UNARY: tuple[Row, ...] = (
    same("abs", ow.abs, np.abs, abs),
    same("negative", ow.negative, np.negative, lambda x: -x),
    same("sign", ow.sign, np.sign, mp.sign),
    same("square", ow.square, np.square, lambda x: x * x),
    same("sqrt", ow.sqrt, np.sqrt, mp.sqrt),
    row(
        "rsqrt",
        ow.math.rsqrt,
        lambda x: 1 / np.sqrt(x),
        lambda x: 1 / mp.sqrt(x),
        ulps=1.5,
        short=1.5,
        quick=2e-7,
        why="a root and a quotient, each rounded",
    ),
    same("reciprocal", ow.math.reciprocal, lambda x: 1 / x, lambda x: 1 / x),
    same("reciprocal_no_nan", ow.math.reciprocal_no_nan, lambda x: np.where(x == 0, 0.0, 1 / x)),
    same("floor", ow.floor, np.floor, mp.floor),
    same("ceil", ow.math.ceil, np.ceil, mp.ceil),
    same("round", ow.round, np.rint, mp.nint),
    same("rint", ow.math.rint, np.rint, mp.nint),
    row("exp", ow.exp, np.exp, mp.exp),
    row("expm1", ow.math.expm1, np.expm1, mp.expm1),
    row("log", ow.math.log, np.log, mp.log),
    row("log1p", ow.math.log1p, np.log1p, mp.log1p, lite_zeros=False, why=LOST_ZERO),
    row("sin", ow.sin, np.sin, mp.sin),
    row("cos", ow.cos, np.cos, mp.cos),
    row("tan", ow.tan, np.tan, mp.tan),
    row("asin", ow.asin, np.arcsin, mp.asin),
    row("acos", ow.acos, np.arccos, mp.acos),
    row("atan", ow.atan, np.arctan, mp.atan),
    row("sinh", ow.sinh, np.sinh, mp.sinh, lite_size=88.7, why=OVERFLOWS),
    row("cosh", ow.cosh, np.cosh, mp.cosh, lite_size=88.7, why=OVERFLOWS),
    row("tanh", ow.tanh, np.tanh, mp.tanh),
    row("asinh", ow.asinh, np.arcsinh, mp.asinh, lite_zeros=False, why=LOST_ZERO),
    row("acosh", ow.acosh, np.arccosh, mp.acosh),
    row("atanh", ow.atanh, np.arctanh, mp.atanh, lite_zeros=False, why=LOST_ZERO),
    row(
        "sigmoid",
        ow.sigmoid,
        sigmoid,
        lambda x: 1 / (1 + mp.exp(-x)),
        short=2.0,
        quick=6e-6,
        lite=1.3e-4,
        why=f"{STEPS}; {LOGISTIC}; below -6 the quick way loses 6e-8 |x|",
    ),
    row(
        "log_sigmoid",
        ow.math.log_sigmoid,
        lambda x: -np.logaddexp(0, -x),
        lambda x: -softplus_digits(-x),
        short=1.5,
        why=STEPS,
    ),
    row("softplus", ow.math.softplus, lambda x: np.logaddexp(0, x), softplus_digits, short=1.5, why=STEPS),
    row(
        "softsign",
        ow.nn.softsign,
        lambda x: np.where(np.isinf(x), np.nan, x / (1 + np.abs(x))),
        short=1.5,
        why=f"{STEPS}; NaN at infinities as in TensorFlow",
    ),
    row("erf", ow.math.erf, _erf, mp.erf),
    row("erfc", ow.math.erfc, _erfc, mp.erfc, wide=8.0, why="exp(-x^2) of float64 is 2 units off already"),
    row("erfinv", ow.math.erfinv, by_digits(mp.erfinv), slow=True, zeros=False),
    row(
        "erfcinv", ow.math.erfcinv, by_digits(lambda x: mp.erfinv(1 - x)), slow=True, zeros=False, short=2.0, why=STEPS
    ),
    row("ndtri", ow.math.ndtri, by_digits(lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1)), slow=True, zeros=False),
    row("lgamma", ow.math.lgamma, by_digits(log_gamma), slow=True, zeros=False),
    row("digamma", ow.math.digamma, by_digits(digamma), slow=True),
    same("relu", nn.relu, lambda x: np.maximum(x, 0.0), zeros=False, why=EITHER_ZERO),
    same("relu6", nn.relu6, lambda x: np.clip(x, 0.0, 6.0), zeros=False, why=EITHER_ZERO),
    row(
        "leaky_relu",
        nn.leaky_relu,
        lambda x: np.where(x > 0, x, x * 0.2),
        ulps=1.0,
        quick=1e-7,
        wide=0.5,
        why="0.2 is rounded to the dtype",
    ),
    row(
        "elu",
        nn.elu,
        lambda x: np.where(x < 0, np.expm1(x), x),
        lambda x: mp.expm1(x) if x < 0 else x,
        zeros=False,
        why=EITHER_ZERO,
    ),
    row(
        "selu",
        nn.selu,
        lambda x: np.where(x < 0, S * A * np.expm1(x), S * x),
        zeros=False,
        short=2.0,
        why=f"{EITHER_ZERO}; {STEPS}",
    ),
    row(
        "gelu",
        lambda x: nn.gelu(x),
        lambda x: 0.5 * x * _erfc(-x * ROOT),
        lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2,
        wide=600.0,
        quick_of_argument=2.4e-7,
        why=f"erfc's argument is rounded: x^2 units at x in float64; {SUM_OF_ONE}",
    ),
    row(
        "gelu_tanh",
        lambda x: nn.gelu(x, True),
        gelu_tanh,
        quick_of_argument=2.4e-7,
        ulps=170.0,
        wide=170.0,
        least=2e-36,
        why=f"the exponent is rounded: up to 88 units times its error; {TIMES_X}; {SUM_OF_ONE}",
    ),
    row(
        "silu",
        nn.silu,
        lambda x: x * sigmoid(x),
        lambda x: x / (1 + mp.exp(-x)),
        ulps=4.5,
        short=10.0,
        quick=8e-6,
        lite=1.3e-4,
        least=2e-36,
        why=f"{STEPS}; {LOGISTIC}; {TIMES_X}",
    ),
    row("mish", keras.mish, mish, short=10.0, ulps=6.0, quick=8e-6, lite=3e-6, least=2e-36, why=f"{STEPS}; {TIMES_X}"),
    row(
        "hard_sigmoid",
        keras.hard_sigmoid,
        lambda x: np.clip(x + 3, 0, 6) / 6,
        ulps=None,
        short=None,
        quick=None,
        lite=None,
        why="x + 3 is rounded: near -3 that is all of the result",
    ),
    row(
        "hard_silu",
        keras.hard_silu,
        lambda x: x * (np.clip(x + 3, 0, 6) / 6),
        ulps=None,
        short=None,
        quick=None,
        lite=None,
        zeros=False,
        why="as hard_sigmoid",
    ),
    row(
        "celu",
        lambda x: keras.celu(x, 0.7),
        lambda x: np.maximum(x, 0) + 0.7 * np.expm1(np.minimum(x, 0) / 0.7),
        zeros=False,
        short=2.5,
        why=f"{EITHER_ZERO}; {STEPS}",
    ),
    row("squareplus", keras.squareplus, squareplus, short=3.0, least=6e-20, why=f"{STEPS}; 0 where x^2 overflows"),
)


def truncated(x: Array, y: Array) -> Array:
    """The quotient toward zero; where it is infinite, or y is, x / y."""
    whole = np.copysign(np.rint((x - np.fmod(x, y)) / y), x / y)
    return np.where(np.isfinite(x / y) & np.isfinite(y), whole, np.trunc(x / y))


REMAINS = "the quotient is that of x less the exact remainder, which is rounded"

BINARY: tuple[Row, ...] = (
    same("add", ow.add, np.add, lambda x, y: x + y),
    same("subtract", ow.subtract, np.subtract, lambda x, y: x - y),
    same("multiply", ow.multiply, np.multiply, lambda x, y: x * y),
    same("divide", ow.divide, np.divide, lambda x, y: x / y),
    row(
        "floordiv",
        ow.math.floordiv,
        np.floor_divide,
        ulps=2.0,
        quick=3e-7,
        short=2.0,
        without=("lite", "lite_compiled"),
        why=f"{REMAINS}; FLOOR_DIV refuses divisors of 0",
    ),
    same("floormod", ow.math.floormod, np.mod),
    same("truncatediv", ow.truncatediv, truncated),
    same("truncatemod", ow.truncatemod, np.fmod),
    row("pow", ow.pow, np.power, mp.power),
    row("atan2", ow.atan2, np.arctan2, mp.atan2),
    same("maximum", ow.maximum, np.maximum, zeros=False, nans=False, why=EITHER_ZERO),
    same("minimum", ow.minimum, np.minimum, zeros=False, nans=False, why=EITHER_ZERO),
    row(
        "squared_difference",
        ow.math.squared_difference,
        lambda x, y: np.square(x - y),
        ulps=2.5,
        short=2.5,
        wide=2.5,
        why="the difference's error counts twice",
    ),
    same("divide_no_nan", ow.math.divide_no_nan, lambda x, y: np.where(y == 0, 0.0, x / y)),
    same("multiply_no_nan", ow.math.multiply_no_nan, lambda x, y: np.where(y == 0, 0.0, x * y)),
    same("xdivy", ow.math.xdivy, lambda x, y: np.where(x == 0, 0.0, x / y)),
    row("xlogy", ow.math.xlogy, lambda x, y: np.where(x == 0, 0.0, x * np.log(y)), short=1.5, least=2e-36, why=STEPS),
    row(
        "xlog1py",
        ow.math.xlog1py,
        lambda x, y: np.where(x == 0, 0.0, x * np.log1p(y)),
        short=1.5,
        lite_zeros=False,
        why=f"{STEPS}; {LOST_ZERO}",
    ),
)
