"""Exponentials, logarithms, roots and the functions built of them.

Lives here: Exp, Expm1, Log, Log1p, Sqrt, Rsqrt, Square, Reciprocal, polyval.
Not here: products with logarithms (guarded.py), sigmoid and softplus (logistic.py), sines and their kin
(trigonometry.py), erf and gamma (special.py).

Gradients take the conjugate of the derivative, which is the derivative itself for real numbers (complexes.py).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import floating_or_complex, numeric
from ...scalar.table import FUNCTIONS
from .. import array, dispatch
from ..definition import Input, Output, operator
from .complexes import conj


@operator
class Exp:
    """Power of e.

    .. math:: y = e^x
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["exp"].numpy

    def gradient(op, dy) -> Any:
        return dy * conj(op.y)


exp = Exp.as_function("exp")


@operator
class Expm1:
    """Power of e, less 1, exact to the last digits near 0.

    .. math:: y = e^x - 1
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["expm1"].numpy

    def gradient(op, dy) -> Any:
        return dy * (conj(op.y) + 1)


expm1 = Expm1.as_function("expm1")


@operator
class Log:
    """Natural logarithm: -infinity at 0, NaN for negative real numbers.

    .. math:: y = \\ln x
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["log"].numpy

    def gradient(op, dy) -> Any:
        return dy / conj(op.x)


log = Log.as_function("log")


@operator
class Log1p:
    """Natural logarithm of 1 + x, exact to the last digits near 0.

    .. math:: y = \\ln(1 + x)
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["log1p"].numpy

    def gradient(op, dy) -> Any:
        return dy / (conj(op.x) + 1)


log1p = Log1p.as_function("log1p")


@operator
class Sqrt:
    """Square root: NaN for negative real numbers.

    .. math:: y = \\sqrt x
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["sqrt"].numpy

    def gradient(op, dy) -> Any:
        return dy * 0.5 / conj(op.y)


sqrt = Sqrt.as_function("sqrt")


@operator
class Rsqrt:
    """Reciprocal of the square root.

    .. math:: y = 1 / \\sqrt x
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}

    def compute(op, x, *, out=None) -> Any:
        return FUNCTIONS["rsqrt"].numpy(x, out)

    def gradient(op, dy) -> Any:
        y = conj(op.y)
        return dy * -0.5 * (y * y * y)


rsqrt = Rsqrt.as_function("rsqrt")


@operator
class Square:
    """Second power.

    .. math:: y = x^2
    """

    x = Input(numeric)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["square"].numpy

    def gradient(op, dy) -> Any:
        return dy * (conj(op.x) * 2)


square = Square.as_function("square")


@operator
class Reciprocal:
    """One divided by it.

    .. math:: y = 1 / x
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}

    def compute(op, x, *, out=None) -> Any:
        return FUNCTIONS["reciprocal"].numpy(x, out)

    def gradient(op, dy) -> Any:
        y = conj(op.y)
        return -dy * y * y


reciprocal = Reciprocal.as_function("reciprocal")


def polyval(coeffs: Any, x: Any, name: str | None = None) -> Any:
    """The polynomial at x, by Horner's rule; coeffs: a list, the highest power first; of an empty one 0.

    .. math:: p(x) = coeffs_0 x^{n-1} + ... + coeffs_{n-1}
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    x = dispatch.to_tensor(x)
    if not coeffs:
        return array.zeros_like(x, name=name)
    coeffs = [dispatch.to_tensor(c, None if hasattr(c, "spec") else x.dtype) for c in coeffs]
    total = coeffs[0]
    for coeff in coeffs[1:]:
        total = coeff + total * x
    return total
