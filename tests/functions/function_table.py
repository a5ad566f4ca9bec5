"""Functions of one and two numbers: what each is in float64, where it is compared, and how far off it may be.

Lives here: the tables UNARY, BINARY, INTEGER.  Not here: the numbers that they are tested at (function_inputs.py), the
ways in which they run (function_ways.py), how errors are measured (test_functions.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mpmath as mp
import numpy as np

import opwright as ow

Array = np.ndarray
nn, keras = ow.nn, ow.nn.activations


@dataclass(frozen=True)
class Row:
    """function: of tensors. exact: of float64 arrays, to far more digits than float32 has. digits: the same in mpmath.

    ulps: units in the last place that the accurate ways may be off, eager ones among them. quick: relative error of
    the ways that choose speed (jit_compile, .tflite compiled), for float32; None: they compute what the accurate ways
    do. size: |x| that the file format's formula is good to: beyond it .tflite is not compared. lite: whether
    the function has a form in .tflite. domain: where it is compared at all. why: the reason for a tolerance.
    """

    name: str
    function: Callable[..., Any]
    exact: Callable[..., Any]
    digits: Callable[..., Any] | None = None
    ulps: float = 4.0
    quick: float = 2e-6
    lite: float | None = 2e-6
    domain: Callable[..., Any] | None = None
    dtypes: tuple[str, ...] = ("float16", "bfloat16", "float32", "float64")
    slow: bool = False
    why: str = ""

    def __str__(self) -> str:
        return self.name


def row(name: str, function: Callable[..., Any], exact: Callable[..., Any], digits: Any = None, **more: Any) -> Row:
    return Row(name, function, exact, digits, **more)


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
                found = function(*map(mp.mpf, xs))
            return float(found.real) if abs(found.imag) == 0 else math.nan
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


def sinpi_lgamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x))) if x > 0 or x != mp.floor(x) else mp.inf


def softplus_digits(x: Any) -> Any:
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


ROUNDS_PARTS = "several operators, each rounded"

UNARY: tuple[Row, ...] = (
    row("abs", ow.abs, np.abs, abs, ulps=0, quick=0, lite=0),
    row("negative", ow.negative, np.negative, lambda x: -x, ulps=0, quick=0, lite=0),
    row("sign", ow.sign, np.sign, mp.sign, ulps=0, quick=0, lite=0),
    row("square", ow.square, np.square, lambda x: x * x, ulps=0.5, quick=1e-7, lite=1e-7),
    row("sqrt", ow.sqrt, np.sqrt, mp.sqrt, ulps=0.5, quick=1e-7, lite=1e-7),
    row("rsqrt", ow.math.rsqrt, lambda x: 1 / np.sqrt(x), lambda x: 1 / mp.sqrt(x), ulps=1.0, quick=2e-7, lite=2e-7),
    row("reciprocal", ow.math.reciprocal, lambda x: 1 / x, lambda x: 1 / x, ulps=0.5, quick=1e-7, lite=1e-7),
    row("reciprocal_no_nan", ow.math.reciprocal_no_nan, lambda x: np.where(x == 0, 0.0, 1 / x), ulps=0.5),
    row("floor", ow.floor, np.floor, mp.floor, ulps=0, quick=0, lite=0),
    row("ceil", ow.math.ceil, np.ceil, mp.ceil, ulps=0, quick=0, lite=0),
    row("round", ow.round, np.rint, mp.nint, ulps=0, quick=0, lite=0),
    row("rint", ow.math.rint, np.rint, mp.nint, ulps=0, quick=0, lite=0),
    row("exp", ow.exp, np.exp, mp.exp),
    row("expm1", ow.math.expm1, np.expm1, mp.expm1),
    row("log", ow.math.log, np.log, mp.log),
    row("log1p", ow.math.log1p, np.log1p, mp.log1p),
    row("sin", ow.sin, np.sin, mp.sin),
    row("cos", ow.cos, np.cos, mp.cos),
    row("tan", ow.tan, np.tan, mp.tan),
    row("asin", ow.asin, np.arcsin, mp.asin),
    row("acos", ow.acos, np.arccos, mp.acos),
    row("atan", ow.atan, np.arctan, mp.atan),
    row("sinh", ow.sinh, np.sinh, mp.sinh),
    row("cosh", ow.cosh, np.cosh, mp.cosh),
    row("tanh", ow.tanh, np.tanh, mp.tanh),
    row("asinh", ow.asinh, np.arcsinh, mp.asinh),
    row("acosh", ow.acosh, np.arccosh, mp.acosh),
    row("atanh", ow.atanh, np.arctanh, mp.atanh),
    row("sigmoid", ow.sigmoid, sigmoid, lambda x: 1 / (1 + mp.exp(-x))),
    row("log_sigmoid", ow.math.log_sigmoid, lambda x: -np.logaddexp(0, -x), lambda x: -softplus_digits(-x)),
    row("softplus", ow.math.softplus, lambda x: np.logaddexp(0, x), softplus_digits),
    row("softsign", ow.nn.softsign, lambda x: x / (1 + np.abs(x)), lambda x: x / (1 + abs(x))),
    row("erf", ow.math.erf, _erf, mp.erf),
    row("erfc", ow.math.erfc, _erfc, mp.erfc),
    row("erfinv", ow.math.erfinv, by_digits(mp.erfinv), mp.erfinv, slow=True),
    row("erfcinv", ow.math.erfcinv, by_digits(lambda x: mp.erfinv(1 - x)), slow=True),
    row("ndtri", ow.math.ndtri, by_digits(lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1)), slow=True),
    row("lgamma", ow.math.lgamma, by_digits(sinpi_lgamma), sinpi_lgamma, slow=True),
    row("digamma", ow.math.digamma, by_digits(mp.digamma), mp.digamma, slow=True),
    row("relu", nn.relu, lambda x: np.maximum(x, 0.0), ulps=0, quick=0, lite=0),
    row("relu6", nn.relu6, lambda x: np.clip(x, 0.0, 6.0), ulps=0, quick=0, lite=0),
    row("leaky_relu", nn.leaky_relu, lambda x: np.where(x > 0, x, x * 0.2), ulps=1.0),
    row("elu", nn.elu, lambda x: np.where(x < 0, np.expm1(x), x), lambda x: mp.expm1(x) if x < 0 else x),
    row("selu", nn.selu, lambda x: np.where(x < 0, S * A * np.expm1(x), S * x)),
    row("gelu", lambda x: nn.gelu(x), lambda x: 0.5 * x * _erfc(-x * ROOT),
        lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2),
    row("gelu_tanh", lambda x: nn.gelu(x, True), gelu_tanh),
    row("silu", nn.silu, lambda x: x * sigmoid(x), lambda x: x / (1 + mp.exp(-x))),
    row("mish", keras.mish, lambda x: x * np.tanh(np.logaddexp(0, x))),
    row("hard_sigmoid", keras.hard_sigmoid, lambda x: np.clip(x + 3, 0, 6) / 6),
    row("hard_silu", keras.hard_silu, lambda x: x * (np.clip(x + 3, 0, 6) / 6)),
    row("celu", lambda x: keras.celu(x, 0.7), lambda x: np.maximum(x, 0) + 0.7 * np.expm1(np.minimum(x, 0) / 0.7)),
    row("exponential", keras.exponential, np.exp, mp.exp),
    row("squareplus", keras.squareplus, lambda x: (x + np.sqrt(x * x + 4)) / 2),
)  # fmt: skip


def xlogy(x: Array, y: Array) -> Array:
    return np.where(x == 0, 0.0, x * np.log(y))


BINARY: tuple[Row, ...] = (
    row("add", ow.add, np.add, lambda x, y: x + y, ulps=0.5, quick=1e-7, lite=1e-7),
    row("subtract", ow.subtract, np.subtract, lambda x, y: x - y, ulps=0.5, quick=1e-7, lite=1e-7),
    row("multiply", ow.multiply, np.multiply, lambda x, y: x * y, ulps=0.5, quick=1e-7, lite=1e-7),
    row("divide", ow.divide, np.divide, lambda x, y: x / y, ulps=0.5, quick=1e-7, lite=1e-7),
    row("floordiv", ow.math.floordiv, np.floor_divide, lambda x, y: mp.floor(x / y), ulps=0.5),
    row("floormod", ow.math.floormod, np.mod, lambda x, y: x - y * mp.floor(x / y), ulps=0.5),
    row("truncatediv", ow.truncatediv, lambda x, y: np.trunc(x / y)),
    row("truncatemod", ow.truncatemod, np.fmod, ulps=0),
    row("pow", ow.pow, np.power, mp.power),
    row("atan2", ow.atan2, np.arctan2, mp.atan2),
    row("maximum", ow.maximum, np.maximum, max, ulps=0),
    row("minimum", ow.minimum, np.minimum, min, ulps=0),
    row("squared_difference", ow.math.squared_difference, lambda x, y: np.square(x - y), ulps=2.5),
    row("divide_no_nan", ow.math.divide_no_nan, lambda x, y: np.where(y == 0, 0.0, x / y), ulps=0.5),
    row("multiply_no_nan", ow.math.multiply_no_nan, lambda x, y: np.where(y == 0, 0.0, x * y), ulps=0.5),
    row("xdivy", ow.math.xdivy, lambda x, y: np.where(x == 0, 0.0, x / y), ulps=0.5),
    row("xlogy", ow.math.xlogy, xlogy),
    row("xlog1py", ow.math.xlog1py, lambda x, y: np.where(x == 0, 0.0, x * np.log1p(y))),
    row("igamma", ow.math.igamma, by_digits(lambda a, x: mp.gammainc(a, 0, x, regularized=True)), slow=True, lite=None),
    row("igammac", ow.math.igammac, by_digits(lambda a, x: mp.gammainc(a, x, regularized=True)), slow=True, lite=None),
)  # fmt: skip
