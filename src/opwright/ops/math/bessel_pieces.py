"""Modified Bessel functions by pieces: series of small arguments, polynomials of 1 / x of large ones.

Lives here: arithmetic alone, of float64 arrays and of values of kernels (compiler/kernels/special_functions.py).
Callers supply square roots, exponentials and logarithms, and join the pieces.
Not here: the operators (bessel.py), the fitted coefficients (scalar/numerics/polynomials.py).

Sources of the series: DLMF 10.25.2 and 10.31.
"""

from __future__ import annotations

import math
from typing import Any

from ...scalar.arrays import polynomial
from ...scalar.numerics import polynomials

I_LARGE = 10.0
"""Where the pieces of I meet."""
K_MIDDLE, K_LARGE = 2.0, 8.0
"""Where the pieces of K meet."""

_I_TERMS, _K_TERMS = 25, 14
_I_SERIES = tuple(
    tuple(1 / (math.factorial(k) * math.factorial(k + order)) for k in reversed(range(_I_TERMS))) for order in (0, 1)
)
_I_FAR = tuple(fit[::-1] for fit in (polynomials.BESSEL_I0, polynomials.BESSEL_I1))
_K_MIDDLE = tuple(fit[::-1] for fit in (polynomials.BESSEL_K0_MIDDLE, polynomials.BESSEL_K1_MIDDLE))
_K_FAR = tuple(fit[::-1] for fit in (polynomials.BESSEL_K0_FAR, polynomials.BESSEL_K1_FAR))
_GAMMA = 0.5772156649015329


def _k_series(order: int) -> tuple[float, ...]:
    """Return the coefficients of (x^2 / 4)^k, the highest first, with psi(k + 1) = H_k - gamma."""
    harmonic = [math.fsum(1 / i for i in range(1, k + 1)) for k in range(_K_TERMS + 1)]
    digammas = [harmonic[k] + harmonic[k + 1] - 2 * _GAMMA if order else harmonic[k] - _GAMMA for k in range(_K_TERMS)]
    return tuple(d / (math.factorial(k) * math.factorial(k + order)) for k, d in enumerate(digammas))[::-1]


_K_SERIES = tuple(map(_k_series, (0, 1)))


def i_small(order: int, x: Any) -> Any:
    """Compute I_order(x) for 0 <= x <= I_LARGE."""
    series = polynomial(x * x * 0.25, _I_SERIES[order])
    return series * (x * 0.5) if order else series


def i_large(order: int, x: Any) -> Any:
    """Compute I_order(x) exp(-x) sqrt(x) for x >= I_LARGE."""
    return polynomial(1.0 / x, _I_FAR[order])


def k_small(order: int, x: Any, logarithm: Any) -> Any:
    """Compute K_order(x) for 0 < x <= K_MIDDLE, given log(x / 2)."""
    series = polynomial(x * x * 0.25, _K_SERIES[order])
    if order:
        return 1.0 / x + logarithm * i_small(1, x) - x * 0.25 * series
    return series - logarithm * i_small(0, x)


def k_middle(order: int, x: Any) -> Any:
    """Compute K_order(x) exp(x) sqrt(x) for K_MIDDLE <= x <= K_LARGE."""
    return polynomial((16.0 / x - 5.0) * (1 / 3), _K_MIDDLE[order])


def k_large(order: int, x: Any) -> Any:
    """Compute K_order(x) exp(x) sqrt(x) for x >= K_LARGE."""
    return polynomial(16.0 / x - 1.0, _K_FAR[order])
