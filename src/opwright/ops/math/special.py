"""Special functions: the error function, the normal quantile, the gamma function's logarithm and its derivatives.

Lives here: Erf, Erfc, Erfinv, Ndtri, Lgamma, Digamma, Zeta, Polygamma, erfcinv, lbeta.
Not here: numerics (special_arrays.py), integrals (integrals.py), incomplete gamma and beta functions (incomplete.py).

float16, bfloat16 and float32 are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating
from ...scalar.table import FUNCTIONS
from .. import array, dispatch
from .. import math as math_ops
from ..definition import Input, Output, operator
from . import special_arrays
from .elementary import exp
from .reduction import reduce_sum


def erf_array(x: np.ndarray) -> np.ndarray:
    """The error function of an array of any floating dtype."""
    return special_arrays.in_float64(FUNCTIONS["erf"].numpy, x)


@operator
class Erf:
    """Error function.

    .. math:: y = \\frac{2}{\\sqrt\\pi} \\int_0^x e^{-t^2} dt
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True

    def compute(op, x) -> Any:
        return special_arrays.in_float64(FUNCTIONS["erf"].numpy, x)

    def gradient(op, dy) -> Any:
        return dy * exp(-op.x * op.x) * (2 / math.sqrt(math.pi))


erf = Erf.as_function("erf")


@operator
class Erfc:
    """Complement of the error function, to full relative accuracy where it is small.

    .. math:: y = 1 - erf(x)
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True

    def compute(op, x) -> Any:
        return special_arrays.in_float64(FUNCTIONS["erfc"].numpy, x)

    def gradient(op, dy) -> Any:
        return dy * exp(-op.x * op.x) * (-2 / math.sqrt(math.pi))


erfc = Erfc.as_function("erfc")


@operator
class Erfinv:
    """Inverse error function: infinite at -1 and 1, NaN outside.

    .. math:: y = erf^{-1}(x)
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True

    def compute(op, x) -> Any:
        return special_arrays.in_float64(special_arrays.erfinv, x)

    def gradient(op, dy) -> Any:
        return dy * exp(op.y * op.y) * (math.sqrt(math.pi) / 2)


erfinv = Erfinv.as_function("erfinv")


@operator
class Ndtri:
    """Quantile of the standard normal distribution: infinite at 0 and 1, NaN outside.

    .. math:: y = \\Phi^{-1}(x), \\quad \\Phi(y) = \\frac{1}{\\sqrt{2\\pi}} \\int_{-\\infty}^y e^{-t^2/2} dt
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True

    def compute(op, x) -> Any:
        return special_arrays.in_float64(special_arrays.ndtri, x)

    def gradient(op, dy) -> Any:
        return dy * exp(op.y * op.y * 0.5) * math.sqrt(2 * math.pi)


ndtri = Ndtri.as_function("ndtri")


def erfcinv(x: Any, name: str | None = None) -> Any:
    """The y with erfc(y) = x, for x in (0, 2). See Ndtri.

    .. math:: y = -\\Phi^{-1}(x / 2) / \\sqrt 2
    """
    x = dispatch.to_tensor(x)
    return array.identity(ndtri(x * 0.5) * -math.sqrt(0.5), name=name)


@operator
class Lgamma:
    """Logarithm of the absolute value of the gamma function: infinite at 0, -1, -2 ...

    .. math:: y = \\ln |\\Gamma(x)|
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True

    def compute(op, x) -> Any:
        return special_arrays.in_float64(special_arrays.lgamma, x)

    def gradient(op, dy) -> Any:
        return dy * Digamma(op.x)


lgamma = Lgamma.as_function("lgamma")


@operator
class Digamma:
    """Derivative of the gamma function's logarithm: NaN at 0, -1, -2 ...

    .. math:: y = \\Gamma'(x) / \\Gamma(x)
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True

    def compute(op, x) -> Any:
        return special_arrays.in_float64(special_arrays.digamma, x)

    def gradient(op, dy) -> Any:
        return dy * Polygamma(array.ones_like(op.x), op.x)


digamma = Digamma.as_function("digamma")

_WIDE = (dtypes.float32, dtypes.float64)


@operator
class Zeta:
    """Hurwitz zeta function: infinite at x = 1, NaN below. The gradient is that by q alone, as in TensorFlow.

    .. math:: z = \\sum_{k=0}^\\infty (k + q)^{-x}
    """

    x = Input(_WIDE)
    q = Input(_WIDE, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x, q) -> Any:
        return special_arrays.in_float64(special_arrays.zeta, x, q)

    def gradient(op, dz) -> Any:
        return None, -dz * op.x * Zeta(op.x + 1, op.q)


zeta = Zeta.as_function("zeta")


@operator
class Polygamma:
    """The a-th derivative of digamma; NaN unless a is one of 0, 1, 2 ... There is no gradient by a.

    .. math:: z = \\frac{d^a}{dx^a} \\frac{\\Gamma'(x)}{\\Gamma(x)} = (-1)^{a+1} a! \\, \\zeta(a + 1, x)
    """

    a = Input(floating)
    x = Input(floating, like="a")
    z = Output(like="a")
    elementwise = True

    def compute(op, a, x) -> Any:
        return special_arrays.in_float64(special_arrays.polygamma, a, x)

    def gradient(op, dz) -> Any:
        return None, dz * Polygamma(op.a + 1, op.x)


polygamma = Polygamma.as_function("polygamma")


def lbeta(x: Any, name: str | None = None) -> Any:
    """Logarithm of the absolute value of the beta function, over the last dimension; of one of size 0 -infinity.

    .. math:: \\ln |B(x)| = \\sum_i \\ln |\\Gamma(x_i)| - \\ln |\\Gamma(\\sum_i x_i)|
    """
    x = dispatch.to_tensor(x)
    return array.identity(reduce_sum(lgamma(x), -1) - lgamma(reduce_sum(x, -1)), name=name)


def __getattr__(name: str) -> Any:
    """The Bessel functions and integrals, which programs look for here."""
    if name.startswith("bessel_"):
        from . import bessel

        return getattr(bessel, name)
    if name in ("dawsn", "expint", "fresnel_cos", "fresnel_sin", "spence"):
        return getattr(math_ops.integrals, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
