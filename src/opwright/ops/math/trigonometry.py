"""Trigonometric and hyperbolic functions and their inverses; angles in radians.

Lives here: Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Atan2.
Not here: the angle of a complex number (complexes.py).

Gradients take the conjugate of the derivative, which is the derivative itself for real numbers (complexes.py).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import floating, floating_or_complex
from ...scalar.table import FUNCTIONS
from ..definition import Input, Output, operator
from .complexes import conj
from .elementary import sqrt


@operator
class Sin:
    """Sine.

    .. math:: y = \\sin x
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["sin"].numpy

    def gradient(op, dy) -> Any:
        return dy * cos(conj(op.x))


sin = Sin.as_function("sin")


@operator
class Cos:
    """Cosine.

    .. math:: y = \\cos x
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["cos"].numpy

    def gradient(op, dy) -> Any:
        return -dy * sin(conj(op.x))


cos = Cos.as_function("cos")


@operator
class Tan:
    """Tangent.

    .. math:: y = \\tan x
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["tan"].numpy

    def gradient(op, dy) -> Any:
        y = conj(op.y)
        return dy * (1 + y * y)


tan = Tan.as_function("tan")


@operator
class Asin:
    """Inverse sine, in [-pi/2, pi/2]; NaN for real numbers outside [-1, 1].

    .. math:: y = \\arcsin x
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["asin"].numpy

    def gradient(op, dy) -> Any:
        x = conj(op.x)
        return dy / sqrt((1 - x) * (1 + x))


asin = Asin.as_function("asin")


@operator
class Acos:
    """Inverse cosine, in [0, pi]; NaN for real numbers outside [-1, 1].

    .. math:: y = \\arccos x
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["acos"].numpy

    def gradient(op, dy) -> Any:
        x = conj(op.x)
        return -dy / sqrt((1 - x) * (1 + x))


acos = Acos.as_function("acos")


@operator
class Atan:
    """Inverse tangent, in [-pi/2, pi/2].

    .. math:: y = \\arctan x
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["atan"].numpy

    def gradient(op, dy) -> Any:
        x = conj(op.x)
        return dy / (1 + x * x)


atan = Atan.as_function("atan")


@operator
class Sinh:
    """Hyperbolic sine.

    .. math:: y = (e^x - e^{-x}) / 2
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["sinh"].numpy

    def gradient(op, dy) -> Any:
        return dy * cosh(conj(op.x))


sinh = Sinh.as_function("sinh")


@operator
class Cosh:
    """Hyperbolic cosine.

    .. math:: y = (e^x + e^{-x}) / 2
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["cosh"].numpy

    def gradient(op, dy) -> Any:
        return dy * sinh(conj(op.x))


cosh = Cosh.as_function("cosh")


@operator
class Tanh:
    """Hyperbolic tangent.

    .. math:: y = (e^x - e^{-x}) / (e^x + e^{-x})
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["tanh"].numpy

    def gradient(op, dy) -> Any:
        y = conj(op.y)
        return dy * (1 - y * y)


tanh = Tanh.as_function("tanh")


@operator
class Asinh:
    """Inverse hyperbolic sine.

    .. math:: y = \\ln(x + \\sqrt{x^2 + 1})
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["asinh"].numpy

    def gradient(op, dy) -> Any:
        return dy / cosh(conj(op.y))


asinh = Asinh.as_function("asinh")


@operator
class Acosh:
    """Inverse hyperbolic cosine; NaN for real numbers below 1.

    .. math:: y = \\ln(x + \\sqrt{x^2 - 1})
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["acosh"].numpy

    def gradient(op, dy) -> Any:
        return dy / sinh(conj(op.y))


acosh = Acosh.as_function("acosh")


@operator
class Atanh:
    """Inverse hyperbolic tangent; NaN for real numbers outside [-1, 1].

    .. math:: y = \\frac{1}{2} \\ln \\frac{1 + x}{1 - x}
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["atanh"].numpy

    def gradient(op, dy) -> Any:
        x = conj(op.x)
        return dy / ((1 - x) * (1 + x))


atanh = Atanh.as_function("atanh")


@operator
class Atan2:
    """The angle of the point (x, y), in [-pi, pi].

    .. math:: z = \\arctan(y / x) \\text{ in the quadrant of } (x, y)
    """

    y = Input(floating)
    x = Input(floating, like="y")
    z = Output(like="y")
    elementwise = True
    compute = FUNCTIONS["atan2"].numpy

    def gradient(op, dz) -> Any:
        scale = dz / (op.x * op.x + op.y * op.y)
        return op.x * scale, -op.y * scale


atan2 = Atan2.as_function("atan2")
