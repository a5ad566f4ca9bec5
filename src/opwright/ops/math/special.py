"""Special functions: the error function, the normal quantile, the log-gamma function and its derivatives.

Lives here: the table of their operators; erfcinv, lbeta.
Not here: numerics (special_arrays.py), integrals (integrals.py), incomplete gamma and beta functions
(incomplete_gamma.py).

float16, bfloat16 and float32 are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating
from ...scalar.table import FUNCTIONS
from .. import array, dispatch
from .. import math as math_ops
from ..definition import Operator
from . import special_arrays
from .elementary import exp
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
    """Logarithm of the absolute value of the beta function, over the last dimension; of one of size 0 -infinity.

    .. math:: \\ln |B(x)| = \\sum_i \\ln |\\Gamma(x_i)| - \\ln |\\Gamma(\\sum_i x_i)|
    """
    x = dispatch.to_tensor(x)
    return array.identity(reduce_sum(lgamma(x), -1) - lgamma(reduce_sum(x, -1)), name=name)


def __getattr__(name: str) -> Any:
    """Return Bessel functions and integrals, under TensorFlow's names of this module."""
    if name.startswith("bessel_"):
        from . import bessel

        return getattr(bessel, name)
    if name in ("dawsn", "expint", "fresnel_cos", "fresnel_sin", "spence"):
        return getattr(math_ops.integrals, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
