"""Incomplete gamma and beta functions, regularised.

Lives here: the table of their operators, and the numerics on float64 arrays; other dtypes are computed in float64 and
rounded once.  Not here: the gamma function itself (special.py, special_arrays.py).

Series where they converge fast, continued fractions by Lentz's method elsewhere: Press et al., Numerical Recipes,
chapters 6.2 and 6.4; Abramowitz and Stegun 6.5.29, 6.5.31, 26.5.8. Incomplete gamma functions of large a by the uniform
asymptotic expansion of Temme (1979), in DLMF 8.12.3 to 8.12.12.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...scalar.arrays import polynomial, wide_erfc
from .. import like_device
from ..definition import operator
from ..slots import Input, OperatorDefinition, Output
from .elementary import exp, xlog1py, xlogy
from .special import lgamma
from .special_arrays import digamma, stirling_series
from .special_arrays import lgamma as log_gamma
from .ufunc import in_float64, ufunc

if TYPE_CHECKING:
    from ..tensor import Tensor

_TINY, _EPS = 1e-300, 1e-16
LARGE = 1e4  # for greater a the expansion is exact to rounding, and series need more than a thousand terms


def _steps(size: np.ndarray) -> int:
    """Return the number of terms: near x = a they decrease like a normal density of width sqrt(a)."""
    largest = float(np.max(size, initial=1.0))
    return 200 + int(12 * np.sqrt(min(largest, 1e8)))


def _log1p_less(u: np.ndarray) -> np.ndarray:
    """Compute log(1 + u) - u without cancellation: log(1 + u) is 2 artanh(u / (2 + u))."""
    s = np.where(np.abs(u) < 0.5, u / (2 + u), 0.0)
    square = s * s
    tail = np.zeros_like(s)
    for k in range(23, 1, -2):
        tail = tail * square + 1 / k
    array: np.ndarray = np.where(np.abs(u) < 0.5, 2 * square * s * tail - s * u, np.log1p(u) - u)
    return array


def _power(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Compute x^a e^-x / Gamma(a); for large a by Stirling's series, with the large terms cancelled."""
    large = np.maximum(a, 12.5)
    exponent = large * _log1p_less((x - large) / large) - stirling_series(large)
    array: np.ndarray = np.where(
        a > 12.5, np.sqrt(large / (2 * np.pi)) * np.exp(exponent), np.exp(a * np.log(x) - x - log_gamma(a))
    )
    return array


def _series(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute P(a, x) for x < a + 1, and its derivative by a."""
    term = 1 / a
    term_slope = -term * term  # by a
    total, slope = term, term_slope
    for k in range(1, _steps(a)):
        ratio = x / (a + k)
        term_slope = ratio * (term_slope - term / (a + k))
        term = ratio * term
        total, slope = total + term, slope + term_slope
        if np.all((np.abs(term) <= _EPS * np.abs(total)) & (np.abs(term_slope) <= _EPS * np.abs(slope))):
            break
    power = _power(a, x)
    return power * total, power * (slope + total * (np.log(x) - digamma(a)))


def _fraction(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute Q(a, x) = 1 - P for x >= a + 1, and its derivative by a: each step carries its derivative along."""
    b = x + 1 - a
    c, c_slope = np.full_like(b, 1 / _TINY), np.zeros_like(b)
    d = 1 / b
    d_slope = d * d  # the derivative of b by a is -1
    h, h_slope = d, d_slope
    for i in range(1, _steps(x)):
        over, b = -i * (i - a), b + 2
        d, d_slope = over * d + b, i * d + over * d_slope - 1
        c, c_slope = b + over / c, i / c - over * c_slope / (c * c) - 1
        d = np.where(np.abs(d) < _TINY, _TINY, d)
        c = np.where(np.abs(c) < _TINY, _TINY, c)
        d_slope = -d_slope / (d * d)
        d = 1 / d
        step, step_slope = c * d, c_slope * d + c * d_slope
        h, h_slope = h * step, h_slope * step + h * step_slope
        if np.all((np.abs(step - 1) <= 2 * _EPS) & (np.abs(h * step_slope) <= 2 * _EPS * np.abs(h_slope))):
            break
    power = _power(a, x)
    return power * h, power * (h_slope + h * (np.log(x) - digamma(a)))


COUNT, TERMS = 24, 4
"""Powers of eta, and of 1 / a, in the expansion."""


@functools.cache
def _coefficients() -> np.ndarray:
    """Return the power series in eta of c_0, c_1 ... of the expansion, which are c_k = (c_k-1' + ...) / eta.

    mu = x / a - 1 is a series in eta, by mu mu' = eta (1 + mu); c_0 = 1 / mu - 1 / eta; the coefficient of 1 / mu in
    c_k is the one with which the terms 1 / eta cancel (DLMF 8.12.10 and 8.12.12).
    """
    length = COUNT + 2 * TERMS + 2
    mu = [Fraction(0), Fraction(1)]
    for n in range(2, length + 1):
        known = sum((mu[i] * mu[n + 1 - i] * (n + 1 - i) for i in range(2, n)), Fraction(0))
        mu.append((mu[n - 1] - known) / (n + 1))
    over = [Fraction(1)]  # eta / mu
    for n in range(1, length):
        over.append(-sum((mu[i + 1] * over[n - i] for i in range(1, n + 1)), Fraction(0)))
    rows = [over[1:]]
    for _ in range(1, TERMS):
        c = rows[-1]
        rows.append([(n + 2) * c[n + 2] - c[1] * over[n + 1] for n in range(len(c) - 2)])
    return np.array([[float(c) for c in row[:COUNT]] for row in rows])


def _expansion(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute P(a, x), Q(a, x) and dP/da for a > LARGE.

    With eta^2 / 2 = mu - log(1 + mu), of the sign of mu: Q = erfc(eta sqrt(a / 2)) / 2 + S, P = 1 - Q,
    S = e^(-a eta^2 / 2) / sqrt(2 pi a) T, T the sum of c_k(eta) a^-k. Where eta is beyond its bound, which the series
    needs, the exponential is 0.
    """
    mu = (x - a) / a
    logarithm = _log1p_less(np.clip(mu, -0.9, 1.0))
    eta = np.clip(np.copysign(np.sqrt(-2 * logarithm), mu), -0.5, 0.5)
    rows = _coefficients()
    values = [polynomial(eta, row[::-1]) for row in rows]
    slopes = [polynomial(eta, (row[1:] * np.arange(1, COUNT))[::-1]) for row in rows]
    ratio = 1 / (1 + eta * values[0])  # mu / eta
    total = sum(c * a**-k for k, c in enumerate(values))
    by_a = sum(-(ratio * slope + k * c) * a ** -(k + 1) for k, (c, slope) in enumerate(zip(values, slopes)))
    scale = np.exp(np.maximum(a * logarithm, -1000.0)) / np.sqrt(2 * np.pi * a)
    z = eta * np.sqrt(a / 2)
    lower, upper = 0.5 * wide_erfc(-z) - scale * total, 0.5 * wide_erfc(z) + scale * total
    slope = scale * (0.5 * eta - ratio - (np.log1p(np.clip(mu, -0.9, 1.0)) - 0.5 / a) * total - by_a)
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0), slope


def _igamma(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute P(a, x), Q(a, x) and dP/da."""
    a, x = np.broadcast_arrays(a, x)
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    lower, upper, slope = (like_device.full(a, a.shape, np.nan, np.float64) for _ in range(3))
    large = inside & (a > LARGE)
    near = inside & ~large & (x < a + 1)
    far = inside & ~large & ~near
    if large.any():
        lower[large], upper[large], slope[large] = _expansion(a[large], x[large])
    if near.any():
        lower[near], slope[near] = _series(a[near], x[near])
        upper[near] = 1 - lower[near]
    if far.any():
        upper[far], falling = _fraction(a[far], x[far])
        lower[far], slope[far] = 1 - upper[far], -falling
    none = (a > 0) & (x == 0) | (a == np.inf) & (x >= 0) & (x < np.inf)
    all_of_it = (a > 0) & (a < np.inf) & (x == np.inf)
    for edge, value in ((none, 0.0), (all_of_it, 1.0)):
        lower[edge], upper[edge], slope[edge] = value, 1 - value, 0.0
    return lower, upper, slope


def igamma_array(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Compute P(a, x): the integral of t^(a-1) e^-t from 0 to x, over Gamma(a); NaN unless a > 0, x >= 0, or x = 0."""
    return np.where(x == 0, 0.0, _igamma(a, x)[0])


def igammac_array(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Compute Q(a, x) = 1 - P(a, x), to full relative accuracy where it is small."""
    return _igamma(a, x)[1]


def igamma_grad_a_array(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Compute the derivative of P(a, x) by a."""
    return _igamma(a, x)[2]


def _beta_power(a: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute x^a y^b / B(a, b), where y = 1 - x; for large a or b with the large terms cancelled."""
    log_x = np.where(x < 0.5, np.log(x), np.log1p(-y))
    log_y = np.where(y < 0.5, np.log(y), np.log1p(-x))
    small, large = np.minimum(a, b), np.maximum(np.maximum(a, b), 12.5)
    # one of them large: Gamma(large + small) / Gamma(large) by Stirling's series
    ratio = (large - 0.5) * np.log1p(small / large) + small * (np.log(large + small) - 1)
    ratio += stirling_series(large + small) - stirling_series(large)
    ratio = np.where(np.maximum(a, b) > 12.5, ratio, log_gamma(a + b) - log_gamma(np.maximum(a, b)))
    exponent = a * log_x + b * log_y + ratio - log_gamma(small)
    # both of them: x and y relative to the mean, u and v, whose terms of first order cancel
    wide_a, wide_b = np.maximum(a, 12.5), np.maximum(b, 12.5)
    difference = x * wide_b - y * wide_a
    both = wide_a * _log1p_less(difference / wide_a) + wide_b * _log1p_less(-difference / wide_b)
    both += stirling_series(wide_a + wide_b) - stirling_series(wide_a) - stirling_series(wide_b)
    root = np.sqrt(wide_a / (2 * np.pi * (1 + wide_a / wide_b)))
    array: np.ndarray = np.where(small > 12.5, root * np.exp(both), np.exp(exponent))
    return array


def _beta_fraction(a: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute I_x(a, b) for x < (a + 1) / (a + b + 2), where y = 1 - x.

    The even part of the fraction of DLMF 8.17.22: while m < b all of its terms are positive, so that none cancel.
    """
    over_mean = a * y - b * x + 1  # of (a + b) x
    value = a * over_mean / (a + 1)
    c, d, done = value, np.zeros_like(value), np.zeros_like(value, bool)
    for m in range(1, _steps(np.maximum(a, b))):
        middle = a + 2 * m - 1
        part = m * (b - m) * x / middle
        over = (a + m - 1) * (a + b + m - 1) * x / middle * part
        under = m + part + (a + m) * (over_mean + m * (1 + y)) / (a + 2 * m + 1)
        d = under + over * d
        d = 1 / np.where(np.abs(d) < _TINY, _TINY, d)
        c = under + over / c
        c = np.where(np.abs(c) < _TINY, _TINY, c)
        value = np.where(done, value, value * c * d)  # factors of rounding errors add up over many terms
        done |= np.abs(c * d - 1) <= 2 * _EPS
        if done.all():
            break
    array: np.ndarray = _beta_power(a, b, x, y) / value
    return array


def betainc_array(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Compute I_x(a, b), the integral of t^(a-1) (1-t)^(b-1) to x over that to 1; NaN unless a, b > 0, 0 <= x <= 1."""
    a, b, x = np.broadcast_arrays(a, b, x)
    out = like_device.full(x, x.shape, np.nan, np.float64)
    valid = (a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)
    out[valid & (x == 0)], out[valid & (x == 1)] = 0.0, 1.0
    inside = valid & (x > 0) & (x < 1)
    near = inside & (x < (a + 1) / (a + b + 2))
    far = inside & ~near
    if near.any():
        out[near] = _beta_fraction(a[near], b[near], x[near], 1 - x[near])
    if far.any():
        out[far] = 1 - _beta_fraction(b[far], a[far], 1 - x[far], x[far])
    return out


# ---- the operators --------------------------------------------------------------------------------------------------

_WIDE = (dtypes.float32, dtypes.float64)


def _density(a: Any, x: Any) -> Tensor:
    """Compute the gamma law's density, x^(a-1) e^-x / Gamma(a)."""
    return exp(xlogy(a - 1, x) - x - lgamma(a))


def _betainc_gradient(op: Any, dz: Any) -> tuple[None, None, Any]:
    a, b, x = op.a, op.b, op.x
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    return None, None, dz * exp(xlog1py(b - 1, -x) + xlogy(a - 1, x) - log_beta)


Igamma, igamma = ufunc(
    "igamma",
    "a x -> z",
    _WIDE,
    "Lower incomplete gamma function, regularised; NaN unless a > 0 and x >= 0.",
    r"z = P(a, x) = \frac{1}{\Gamma(a)} \int_0^x t^{a-1} e^{-t} dt",
    lambda op, dz: (dz * IgammaGradA(op.a, op.x), dz * _density(op.a, op.x)),
    compute=partial(in_float64, igamma_array),
)
Igammac, igammac = ufunc(
    "igammac",
    "a x -> z",
    _WIDE,
    "Upper incomplete gamma function, regularised, to full relative accuracy; NaN unless a > 0 and x >= 0.",
    r"z = Q(a, x) = \frac{1}{\Gamma(a)} \int_x^\infty t^{a-1} e^{-t} dt",
    lambda op, dz: (-dz * IgammaGradA(op.a, op.x), -dz * _density(op.a, op.x)),
    compute=partial(in_float64, igammac_array),
)
Betainc, betainc = ufunc(
    "betainc",
    "a b x -> z",
    _WIDE,
    "Incomplete beta function, regularised; NaN unless a, b > 0 and 0 <= x <= 1. The gradient is that by x alone.",
    r"z = I_x(a, b) = \frac{1}{B(a, b)} \int_0^x t^{a-1} (1 - t)^{b-1} dt",
    _betainc_gradient,
    compute=partial(in_float64, betainc_array),
)


@operator
class IgammaGradA(OperatorDefinition):
    """Derivative of the lower incomplete gamma function by a. Differentiation ends here.

    .. math:: z = \\frac{\\partial}{\\partial a} P(a, x)
    """

    a = Input(_WIDE)
    x = Input(_WIDE, like="a")
    z = Output(like="a")
    elementwise = True
    gradient = None

    def compute(op, a: Any, x: Any) -> np.ndarray:
        return in_float64(igamma_grad_a_array, a, x)
