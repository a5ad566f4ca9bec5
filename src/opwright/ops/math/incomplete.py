"""Incomplete gamma and beta functions, regularised: the distribution functions of the gamma and beta laws.

Lives here: Igamma, Igammac, IgammaGradA, Betainc.  Not here: their numerics (incomplete_arrays.py).
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ..definition import Input, Output, operator
from . import incomplete_arrays
from .elementary import exp
from .guarded import xlog1py, xlogy
from .special import lgamma
from .special_arrays import in_float64

_WIDE = (dtypes.float32, dtypes.float64)


def _density(a: Any, x: Any) -> Any:
    """The gamma law's density, x^(a-1) e^-x / Gamma(a)."""
    return exp(xlogy(a - 1, x) - x - lgamma(a))


@operator
class Igamma:
    """Lower incomplete gamma function, regularised; NaN unless a > 0 and x >= 0.

    .. math:: z = P(a, x) = \\frac{1}{\\Gamma(a)} \\int_0^x t^{a-1} e^{-t} dt
    """

    a = Input(_WIDE)
    x = Input(_WIDE, like="a")
    z = Output(like="a")
    elementwise = True

    def compute(op, a, x) -> Any:
        return in_float64(incomplete_arrays.igamma, a, x)

    def gradient(op, dz) -> Any:
        return dz * IgammaGradA(op.a, op.x), dz * _density(op.a, op.x)


igamma = Igamma.as_function("igamma")


@operator
class Igammac:
    """Upper incomplete gamma function, regularised, to full relative accuracy; NaN unless a > 0 and x >= 0.

    .. math:: z = Q(a, x) = \\frac{1}{\\Gamma(a)} \\int_x^\\infty t^{a-1} e^{-t} dt
    """

    a = Input(_WIDE)
    x = Input(_WIDE, like="a")
    z = Output(like="a")
    elementwise = True

    def compute(op, a, x) -> Any:
        return in_float64(incomplete_arrays.igammac, a, x)

    def gradient(op, dz) -> Any:
        return -dz * IgammaGradA(op.a, op.x), -dz * _density(op.a, op.x)


igammac = Igammac.as_function("igammac")


@operator
class IgammaGradA:
    """Derivative of the lower incomplete gamma function by a. Differentiation ends here.

    .. math:: z = \\frac{\\partial}{\\partial a} P(a, x)
    """

    a = Input(_WIDE)
    x = Input(_WIDE, like="a")
    z = Output(like="a")
    elementwise = True
    gradient = None

    def compute(op, a, x) -> Any:
        return in_float64(incomplete_arrays.igamma_grad_a, a, x)


@operator
class Betainc:
    """Incomplete beta function, regularised; NaN unless a, b > 0 and 0 <= x <= 1. The gradient is that by x alone.

    .. math:: z = I_x(a, b) = \\frac{1}{B(a, b)} \\int_0^x t^{a-1} (1 - t)^{b-1} dt
    """

    a = Input(_WIDE)
    b = Input(_WIDE, like="a")
    x = Input(_WIDE, like="a")
    z = Output(like="a")
    elementwise = True

    def compute(op, a, b, x) -> Any:
        return in_float64(incomplete_arrays.betainc, a, b, x)

    def gradient(op, dz) -> Any:
        a, b, x = op.a, op.b, op.x
        log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
        return None, None, dz * exp(xlog1py(b - 1, -x) + xlogy(a - 1, x) - log_beta)


betainc = Betainc.as_function("betainc")
