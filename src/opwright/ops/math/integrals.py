"""Functions that are integrals of elementary ones.

Lives here: Dawsn, Expint, FresnelCos, FresnelSin, Spence.  Not here: their numerics (integral_arrays.py).

float16, bfloat16 and float32 are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

from ...core.dtypes import floating
from .. import array
from ..definition import Input, Output, operator
from . import integral_arrays
from .elementary import exp, log
from .special_arrays import in_float64
from .trigonometry import cos, sin


@operator
class Dawsn:
    """Dawson's integral.

    .. math:: y = e^{-x^2} \\int_0^x e^{t^2} dt
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True

    def compute(op, x) -> Any:
        return in_float64(integral_arrays.dawson, x)

    def gradient(op, dy) -> Any:
        return dy * (1.0 - 2.0 * op.x * op.y)


@operator
class Expint:
    """Exponential integral, its principal value: minus infinity at 0, NaN below.

    .. math:: y = -\\int_{-x}^\\infty \\frac{e^{-t}}{t} dt
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True

    def compute(op, x) -> Any:
        return in_float64(integral_arrays.exponential, x)

    def gradient(op, dy) -> Any:
        return dy * exp(op.x) / op.x


@operator
class FresnelCos:
    """Fresnel's cosine integral.

    .. math:: y = \\int_0^x \\cos(\\pi t^2 / 2) dt
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True

    def compute(op, x) -> Any:
        return in_float64(lambda v: integral_arrays.fresnel(v)[0], x)

    def gradient(op, dy) -> Any:
        return dy * cos(op.x * op.x * (math.pi / 2))


@operator
class FresnelSin:
    """Fresnel's sine integral.

    .. math:: y = \\int_0^x \\sin(\\pi t^2 / 2) dt
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True

    def compute(op, x) -> Any:
        return in_float64(lambda v: integral_arrays.fresnel(v)[1], x)

    def gradient(op, dy) -> Any:
        return dy * sin(op.x * op.x * (math.pi / 2))


@operator
class Spence:
    """Spence's function, the dilogarithm of 1 - x; NaN below 0.

    .. math:: y = -\\int_1^x \\frac{\\ln t}{t - 1} dt
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True

    def compute(op, x) -> Any:
        return in_float64(integral_arrays.dilogarithm, x)

    def gradient(op, dy) -> Any:
        # ln x / (1 - x), and around 1, where that is 0 / 0, its series: so that it can be differentiated there too
        away = 1.0 - op.x
        near = away * away < 1e-8
        safe = array.where(near, array.ones_like(away) * 0.5, away)
        series = -1.0 - away * (0.5 + away * (1.0 / 3.0 + away * 0.25))
        return dy * array.where(near, series, log(1.0 - safe) / safe)


dawsn = Dawsn.as_function("dawsn")
expint = Expint.as_function("expint")
fresnel_cos = FresnelCos.as_function("fresnel_cos")
fresnel_sin = FresnelSin.as_function("fresnel_sin")
spence = Spence.as_function("spence")
