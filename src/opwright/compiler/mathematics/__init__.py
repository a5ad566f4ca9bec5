"""Mathematical functions of float32 on lanes: within 0.53 units in the last place over all of the range.

They are straight-line code for one element or a vector, in float64 inside. (Whether a lane of sin, cos and tan is so
large that it is reduced by itself is their one branch.)

    exponential.py      exp, log, their neighbours, pow, sigmoid, softplus
    hyperbolic.py       sinh, cosh, tanh and their inverses
    trigonometric.py    sin, cos, tan and their inverses
    error_functions.py  erf, erfc, gelu
    division.py         remainders, whole quotients; of integers and float64, too
    polynomials.py      the coefficients, made by tests/compiler/make_polynomials.py

Lives here: the table. Not here: quicker ones that are further off (approximate.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ..lanes import F32, F64, Lanes, sqrt
from .error_functions import erf, erfc, gelu
from .exponential import exp, expm1, log, log1p, pow, sigmoid, softplus
from .hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from .trigonometric import acos, asin, atan, atan2, cos, sin, tan


def rsqrt(x: Lanes) -> Lanes:
    """1 / sqrt(x)."""
    return (1.0 / sqrt(x.to(F64))).to(F32)


FUNCTIONS: dict[str, Callable[..., Lanes]] = {f.__name__: f for f in (
    acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, erf, erfc, exp, expm1, gelu, log, log1p, pow, rsqrt,
    sigmoid, sin, sinh, softplus, sqrt, tan, tanh,
)}  # fmt: skip
"""By name; each takes and gives float32."""
