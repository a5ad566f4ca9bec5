"""The error function and its complement on NumPy arrays of float64, and building blocks of such approximations.

Lives here: `erf`, `erfc`; `polynomial`, `piecewise`.  Not here: other dtypes (arrays.py), vector code (numerics/).

Rational approximations are minimax fits from the cited paper; coefficients run from the highest power down. They apply
to every array that implements NumPy's protocols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

Array = np.ndarray


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Evaluate a polynomial by Horner's rule, highest power first."""
    total = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total = total * x + c
    return total


def piecewise(x: Array, pieces: Sequence[tuple[Array, Callable[[Array], Array]]]) -> Array:
    """Evaluate each element by the first piece whose condition it meets; NaN if it meets none."""
    out = np.full_like(x, np.nan)
    left = np.full_like(x, True, dtype=np.bool_)
    for condition, function in pieces:
        chosen = left & condition
        if chosen.any():
            out[chosen] = function(x[chosen])
        left &= ~chosen
    return out


# ---- error function: W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23 (1969) ----

_ERF_TOP = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_ERF_BOTTOM = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_ERFC_TOP = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_ERFC_BOTTOM = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_TAIL_TOP = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_TAIL_BOTTOM = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346725e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


def _erf_small(x: Array) -> Array:
    """Compute erf for |x| <= 0.46875."""
    square = x * x
    result: Array = x * polynomial(square, _ERF_TOP) / polynomial(square, _ERF_BOTTOM)
    return result


def _exp_minus_square(x: Array) -> Array:
    """Compute exp(-x^2) without the rounding of x^2: x is split into a part with few bits and the rest."""
    high = np.trunc(x * 16) / 16
    result: Array = np.exp(-high * high) * np.exp(-(x - high) * (x + high))
    return result


def _erfc_large(x: Array) -> Array:
    """Compute erfc for x > 0.46875."""
    inverse = 1 / (x * x)
    tail = inverse * polynomial(inverse, _TAIL_TOP) / polynomial(inverse, _TAIL_BOTTOM)
    tail = (1 / math.sqrt(math.pi) - tail) / x
    near = np.minimum(x, 4.0)
    scaled = np.where(x <= 4.0, polynomial(near, _ERFC_TOP) / polynomial(near, _ERFC_BOTTOM), tail)
    bounded = np.minimum(x, 30.0)  # erfc(27) is below every float64
    result: Array = _exp_minus_square(bounded) * scaled
    return result


def erf(x: Array) -> Array:
    """Compute 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    size = np.abs(x)
    return piecewise(
        x,
        [
            (size <= 0.46875, _erf_small),
            (size > 0.46875, lambda x: np.copysign(1.0 - _erfc_large(np.minimum(np.abs(x), 6.5)), x)),
        ],
    )


def erfc(x: Array) -> Array:
    """Compute 1 - erf(x), to full relative accuracy."""
    return piecewise(
        x,
        [
            (np.abs(x) <= 0.46875, lambda x: 1.0 - _erf_small(x)),
            (x > 0, _erfc_large),
            (x < 0, lambda x: 2.0 - _erfc_large(-x)),
        ],
    )
