"""Special functions: the error function, the normal quantile, the log-gamma function and its derivatives, integrals of
elementary functions.

Lives here: the table of their operators; erfcinv, lbeta; the numerics of the integrals on float64 arrays, whose errors
are a few units of the last place, in absolute terms near zeros of the function other than 0, 1 and that of Ei.
Not here: other numerics (special_arrays.py), incomplete gamma and beta functions (incomplete_gamma.py), Bessel
functions (bessel.py).

float16, bfloat16 and float32 are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating
from ...scalar.table import FUNCTIONS
from .. import array, dispatch
from ..definition import Operator
from . import special_arrays
from .elementary import cos, exp, log, sin
from .reduction import reduce_sum
from .ufunc import in_float64, ufunc

if TYPE_CHECKING:
    from ..tensor import Tensor


def erf_array(x: np.ndarray) -> np.ndarray:
    """Compute the error function of an array of any floating dtype."""
    return in_float64(FUNCTIONS["erf"].numpy, x)


Erf, erf = ufunc(
    "erf",
    "x -> y",
    floating,
    "Error function.",
    r"y = \frac{2}{\sqrt\pi} \int_0^x e^{-t^2} dt",
    lambda op, dy: dy * exp(-op.x * op.x) * (2 / math.sqrt(math.pi)),
    compute=erf_array,
)
Erfc, erfc = ufunc(
    "erfc",
    "x -> y",
    floating,
    "Complement of the error function, to full relative accuracy where it is small.",
    r"y = 1 - erf(x)",
    lambda op, dy: dy * exp(-op.x * op.x) * (-2 / math.sqrt(math.pi)),
    compute=partial(in_float64, FUNCTIONS["erfc"].of_arrays),
)
Erfinv, erfinv = ufunc(
    "erfinv",
    "x -> y",
    floating,
    "Inverse error function: infinite at -1 and 1, NaN outside.",
    r"y = erf^{-1}(x)",
    lambda op, dy: dy * exp(op.y * op.y) * (math.sqrt(math.pi) / 2),
    compute=partial(in_float64, special_arrays.erfinv),
)
Ndtri, ndtri = ufunc(
    "ndtri",
    "x -> y",
    floating,
    "Quantile of the standard normal distribution: infinite at 0 and 1, NaN outside.",
    r"y = \Phi^{-1}(x), \quad \Phi(y) = \frac{1}{\sqrt{2\pi}} \int_{-\infty}^y e^{-t^2/2} dt",
    lambda op, dy: dy * exp(op.y * op.y * 0.5) * math.sqrt(2 * math.pi),
    compute=partial(in_float64, special_arrays.ndtri),
)
Digamma: Operator
Polygamma: Operator
Zeta: Operator

Lgamma, lgamma = ufunc(
    "lgamma",
    "x -> y",
    floating,
    "Logarithm of the absolute value of the gamma function: infinite at 0, -1, -2 ...",
    r"y = \ln |\Gamma(x)|",
    lambda op, dy: dy * Digamma(op.x),
    compute=partial(in_float64, special_arrays.lgamma),
)
Digamma, digamma = ufunc(
    "digamma",
    "x -> y",
    floating,
    "Derivative of the gamma function's logarithm: NaN at 0, -1, -2 ...",
    r"y = \Gamma'(x) / \Gamma(x)",
    lambda op, dy: dy * Polygamma(array.ones_like(op.x), op.x),
    compute=partial(in_float64, special_arrays.digamma),
)
Zeta, zeta = ufunc(
    "zeta",
    "x q -> z",
    (dtypes.float32, dtypes.float64),
    "Hurwitz zeta function: infinite at x = 1, NaN below. The gradient is that by q alone, as in TensorFlow.",
    r"z = \sum_{k=0}^\infty (k + q)^{-x}",
    lambda op, dz: (None, -dz * op.x * Zeta(op.x + 1, op.q)),
    compute=partial(in_float64, special_arrays.zeta),
)
Polygamma, polygamma = ufunc(
    "polygamma",
    "a x -> z",
    floating,
    "The a-th derivative of digamma; NaN unless a is one of 0, 1, 2 ... There is no gradient by a.",
    r"z = \frac{d^a}{dx^a} \frac{\Gamma'(x)}{\Gamma(x)} = (-1)^{a+1} a! \, \zeta(a + 1, x)",
    lambda op, dz: (None, dz * Polygamma(op.a + 1, op.x)),
    compute=partial(in_float64, special_arrays.polygamma),
)


def erfcinv(x: Any, name: str | None = None) -> Tensor:
    r"""Return the inverse of erfc: the y with erfc(y) = x, for x in (0, 2).

    .. math:: y = -\Phi^{-1}(x / 2) / \sqrt 2
    """
    x = dispatch.to_tensor(x)
    return array.identity(ndtri(x * 0.5) * -math.sqrt(0.5), name=name)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """Return the logarithm of the absolute value of the beta function over the last dimension; -infinity for size 0.

    .. math:: \\ln |B(x)| = \\sum_i \\ln |\\Gamma(x_i)| - \\ln |\\Gamma(\\sum_i x_i)|
    """
    x = dispatch.to_tensor(x)
    return array.identity(reduce_sum(lgamma(x), -1) - lgamma(reduce_sum(x, -1)), name=name)


# ---- integrals -------------------------------------------------------------------------------------------------------

# Where Ei is 0, in two parts
_ZERO_HIGH, _ZERO_LOW = 0.37250741078136662, 1.3140183414386027e-17


def dawson(x: np.ndarray) -> np.ndarray:
    """Compute Dawson's integral: by sampling (Rybicki, Computers in Physics 3, 1989) unless it is small, else by
    series.
    """
    size = np.abs(x)
    small, large = size < 0.2, size > 12
    middle = np.where(small | large | np.isnan(x), 1.0, size)
    step = 0.2
    nearest = 2 * np.rint(middle / (2 * step))
    remainder = middle - nearest * step
    total = np.zeros_like(middle)
    for n in range(-35, 36, 2):
        total += np.exp(-((remainder - n * step) ** 2)) / (n + nearest)
    value = total / math.sqrt(math.pi)
    near, term = np.where(small, size, 0.0), np.where(small, size, 0.0)
    square = near * near
    for k in range(1, 12):
        term = term * square * (-2 / (2 * k + 1))
        near = near + term
    with np.errstate(all="ignore"):
        inverse = np.where(large, 1 / size, 0.0)
        far, term = inverse / 2, inverse / 2
        for k in range(1, 12):
            term = term * inverse * inverse * (k - 0.5)
            far = far + term
    result: np.ndarray = np.copysign(np.where(np.isnan(x), x, np.where(small, near, np.where(large, far, value))), x)
    return result


def exponential(x: np.ndarray) -> np.ndarray:
    """Compute the exponential integral Ei of x >= 0; NaN below."""
    with np.errstate(all="ignore"):
        around, far = np.abs(x - 0.4) < 0.25, x > 40
        middle = np.where(~far & (x > 0), x, 1.0)
        total, term = np.zeros_like(middle), np.ones_like(middle)
        for k in range(1, 180):
            term = term * middle / k
            total = total + term / k
        value = np.euler_gamma + np.log(middle) + total
        # ln(x / z) + the sum of (x^k - z^k) / (k k!), of which x - z is a factor
        z = _ZERO_HIGH
        argument = np.where(around, x, 0.5)
        away, ratio, power, total = (argument - z) - _ZERO_LOW, np.ones_like(argument), z, np.ones_like(argument)
        for k in range(2, 25):
            ratio = ratio * argument + power
            power *= z
            total = total + ratio / (k * math.factorial(k))
        near = np.log1p(away / z) + away * total
        inverse = np.where(far, 1 / x, 0.0)
        behind, term = np.ones_like(inverse), np.ones_like(inverse)
        for k in range(1, 40):
            term = term * inverse * k
            behind = behind + term
        large = np.exp(np.where(far, x / 2, 0)) * behind * inverse * np.exp(np.where(far, x / 2, 0))
        value = np.where(around, near, np.where(far, np.where(np.isinf(x), np.inf, large), value))
        return np.where(x > 0, value, np.where(x == 0, -np.inf, np.nan))


def fresnel(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute Fresnel's integrals C and S: by series, and far from 0 by the continued fraction of the error function.

    Source of the fraction: Abramowitz and Stegun 7.1.14 and 7.3.22, evaluated as Lentz does.
    """
    size = np.abs(x)
    small = size < 1.6
    near = np.where(small, size, 0.0)
    t = (math.pi / 2) * near * near
    c, s, term = np.zeros_like(t), np.zeros_like(t), near.copy()
    for k in range(30):  # term = x (pi x^2 / 2)^k / k!, in turn of C and S
        part = term / (2 * k + 1)
        c, s = (c + (-1) ** (k // 2) * part, s) if k % 2 == 0 else (c, s + (-1) ** (k // 2) * part)
        term = term * t / (k + 1)
    with np.errstate(all="ignore"):
        far = np.where(small | ~np.isfinite(size), 2.0, np.minimum(size, 1e16))
        square = far * far
        b = 1 - 1j * math.pi * square
        d = h = 1 / b
        e = np.full_like(b, 1e300)
        for k in range(120):
            a = -(2 * k + 1) * (2 * k + 2)
            b = b + 4
            d = 1 / (a * d + b)
            e = b + a / e
            h = h * (e * d)
        h = h * (far - 1j * far)
        # x^2 modulo 4 by both halves of the product: the phase of a large x is exact
        high = far.astype(np.float32).astype(np.float64)
        low = far - high
        phase = (np.fmod(high * high, 4) + np.fmod(2 * high * low, 4) + np.fmod(low * low, 4)) * (math.pi / 2)
        both: Any = (0.5 + 0.5j) * (1 - (np.cos(phase) + 1j * np.sin(phase)) * h)
        both = np.where(np.isinf(size), 0.5 + 0.5j, both)
    c, s = np.where(small, c, both.real), np.where(small, s, both.imag)
    hole = np.isnan(x)
    return np.copysign(np.where(hole, x, c), x), np.copysign(np.where(hole, x, s), x)


def dilogarithm(x: np.ndarray) -> np.ndarray:
    """Compute Spence's function of x >= 0, Li_2(1 - x); NaN below.

    With u = ln x it is -u - u^2 / 4 - the sum of B_2k u^(2k+1) / (2k+1)!, used for x in [1/2, 2]; elsewhere by
    reflection at 1/2 and by inversion.
    """
    with np.errstate(all="ignore"):
        over = x > 2
        y = np.where(over, 1 / x, x)
        under = y < 0.5
        u = np.log(np.where(under, 1 - y, y))
        value, power = -u - u * u / 4, u
        for k, b in enumerate(special_arrays.BERNOULLI, 1):
            power = power * u * u
            value = value - power * (b / math.factorial(2 * k + 1))
        cross = np.where(y > 0, np.log(np.where(y > 0, y, 1.0)) * np.log1p(-y), 0.0)
        value = np.where(under, math.pi**2 / 6 - cross - value, value)
        value = np.where(over, -0.5 * np.log(x) ** 2 - value, value)
        return np.where(x < 0, np.nan, value)


# ---- the operators --------------------------------------------------------------------------------------------------


def _spence_gradient(op: Any, dy: Any) -> Tensor:
    # ln x / (1 - x), and around 1, where that is 0 / 0, its series: so that it can be differentiated there too
    away = 1.0 - op.x
    near = away * away < 1e-8
    safe = array.where(near, array.ones_like(away) * 0.5, away)
    series = -1.0 - away * (0.5 + away * (1.0 / 3.0 + away * 0.25))
    result: Tensor = dy * array.where(near, series, log(1.0 - safe) / safe)
    return result


Dawsn, dawsn = ufunc(
    "dawsn",
    "x -> y",
    floating,
    "Dawson's integral.",
    r"y = e^{-x^2} \int_0^x e^{t^2} dt",
    lambda op, dy: dy * (1.0 - 2.0 * op.x * op.y),
    compute=partial(in_float64, dawson),
)
Expint, expint = ufunc(
    "expint",
    "x -> y",
    floating,
    "Exponential integral, its principal value: minus infinity at 0, NaN below.",
    r"y = -\int_{-x}^\infty \frac{e^{-t}}{t} dt",
    lambda op, dy: dy * exp(op.x) / op.x,
    compute=partial(in_float64, exponential),
)
FresnelCos, fresnel_cos = ufunc(
    "fresnel_cos",
    "x -> y",
    floating,
    "Fresnel's cosine integral.",
    r"y = \int_0^x \cos(\pi t^2 / 2) dt",
    lambda op, dy: dy * cos(op.x * op.x * (math.pi / 2)),
    compute=partial(in_float64, lambda v: fresnel(v)[0]),
)
FresnelSin, fresnel_sin = ufunc(
    "fresnel_sin",
    "x -> y",
    floating,
    "Fresnel's sine integral.",
    r"y = \int_0^x \sin(\pi t^2 / 2) dt",
    lambda op, dy: dy * sin(op.x * op.x * (math.pi / 2)),
    compute=partial(in_float64, lambda v: fresnel(v)[1]),
)
Spence, spence = ufunc(
    "spence",
    "x -> y",
    floating,
    "Spence's function, the dilogarithm of 1 - x; NaN below 0.",
    r"y = -\int_1^x \frac{\ln t}{t - 1} dt",
    _spence_gradient,
    compute=partial(in_float64, dilogarithm),
)


def __getattr__(name: str) -> Callable[..., Tensor]:
    """Return Bessel functions, under TensorFlow's names of this module."""
    if name.startswith("bessel_"):
        from . import bessel

        function: Callable[..., Tensor] = getattr(bessel, name)
        return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
