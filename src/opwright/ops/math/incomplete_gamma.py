"""Incomplete gamma and beta functions, regularised.

Lives here: the table of their operators, and the numerics on float64 arrays; other dtypes are computed in float64 and
rounded once.  Not here: the gamma function itself (special.py, special_arrays.py).

Series where they converge fast, continued fractions by Lentz's method elsewhere: Press et al., Numerical Recipes,
chapters 6.2 and 6.4; Abramowitz and Stegun 6.5.29, 6.5.31, 26.5.8.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
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


def _steps(size: np.ndarray) -> int:
    """Return the number of terms: near x = a they decrease like a normal density of width sqrt(a)."""
    largest = float(np.max(size, initial=1.0))
    return 200 + int(12 * np.sqrt(min(largest, 1e8)))


def _power(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Compute x^a e^-x / Gamma(a); for large a by Stirling's series, with the large terms cancelled."""
    large = np.maximum(a, 12.5)
    u = (x - large) / large
    exponent = large * (np.where(np.abs(u) < 0.5, np.log1p(u), np.log(x / large)) - u) - stirling_series(large)
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


def _igamma(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute P(a, x), Q(a, x) and dP/da."""
    a, x = np.broadcast_arrays(a, x)
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    lower, upper, slope = (like_device.full(a, a.shape, np.nan, np.float64) for _ in range(3))
    near = inside & (x < a + 1)
    far = inside & ~near
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


def _beta_fraction(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Compute I_x(a, b) for x < (a + 1) / (a + b + 2)."""
    c = np.ones_like(x)
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / np.where(np.abs(d) < _TINY, _TINY, d)
    h = d
    for m in range(1, _steps(np.maximum(a, b))):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for over in (even, odd):
            d, c = 1 + over * d, 1 + over / c
            d = 1 / np.where(np.abs(d) < _TINY, _TINY, d)
            c = np.where(np.abs(c) < _TINY, _TINY, c)
            h = h * d * c
        if np.all(np.abs(d * c - 1) <= 2 * _EPS):
            break
    array: np.ndarray = (
        np.exp(a * np.log(x) + b * np.log1p(-x) + log_gamma(a + b) - log_gamma(a) - log_gamma(b)) * h / a
    )
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
        out[near] = _beta_fraction(a[near], b[near], x[near])
    if far.any():
        out[far] = 1 - _beta_fraction(b[far], a[far], 1 - x[far])
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
