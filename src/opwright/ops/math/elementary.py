"""Exponentials, logarithms, roots and the functions built of them.

Lives here: Exp, Expm1, Log, Log1p, Sqrt, Rsqrt, Square, Reciprocal, MulNoNan, Xlogy, Xlog1py, Xdivy, polyval.
Not here: sigmoid and softplus (logistic.py), sines and their kin (trigonometry.py), erf and gamma (special.py).

Gradients take the conjugate of the derivative, which is the derivative itself for real numbers (complexes.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import floating_or_complex, numeric
from .. import array, dispatch
from ..definition import Input, Output, operator
from .arithmetic import divide_no_nan
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
    compute = np.exp

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
    compute = np.expm1

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
    compute = np.log

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
    compute = np.log1p

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
    compute = np.sqrt

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

    def compute(op, x) -> Any:
        return x.dtype.type(1) / np.sqrt(x)

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
    compute = np.square

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

    def compute(op, x) -> Any:
        return x.dtype.type(1) / x

    def gradient(op, dy) -> Any:
        y = conj(op.y)
        return -dy * y * y


reciprocal = Reciprocal.as_function("reciprocal")


def reciprocal_no_nan(x: Any, name: str | None = None) -> Any:
    """1 / x, and 0 where x is 0. See DivNoNan."""
    x = dispatch.to_tensor(x)
    return divide_no_nan(array.ones_like(x), x, name=name)


@operator
class MulNoNan:
    """Product, with 0 where y is 0 even if x is infinite or NaN.

    .. math:: z = x y \\text{ if } y \\ne 0 \\text{ else } 0
    """

    x = Input(floating_or_complex)
    y = Input(floating_or_complex, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x, y) -> Any:
        return np.where(y == 0, x.dtype.type(0), np.multiply(x, y))

    def gradient(op, dz) -> Any:
        x, y = conj(op.x), conj(op.y)
        return MulNoNan(dz, y), MulNoNan(x, dz)


multiply_no_nan = MulNoNan.as_function("multiply_no_nan")


def _not_zero(x: Any) -> Any:
    """1 where x is not 0, else 0."""
    return array.cast(x != 0, x.dtype)


@operator
class Xlogy:
    """x times the logarithm of y, and 0 where x is 0 whatever y is.

    .. math:: z = x \\ln y \\text{ if } x \\ne 0 \\text{ else } 0
    """

    x = Input(floating_or_complex)
    y = Input(floating_or_complex, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x, y) -> Any:
        return np.where(x == 0, x.dtype.type(0), x * np.log(y))

    def gradient(op, dz) -> Any:
        x, y = conj(op.x), conj(op.y)
        return dz * Xlogy(_not_zero(x), y), dz * Xdivy(x, y)


xlogy = Xlogy.as_function("xlogy")


@operator
class Xlog1py:
    """x times the logarithm of 1 + y, and 0 where x is 0 whatever y is.

    .. math:: z = x \\ln(1 + y) \\text{ if } x \\ne 0 \\text{ else } 0
    """

    x = Input(floating_or_complex)
    y = Input(floating_or_complex, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x, y) -> Any:
        return np.where(x == 0, x.dtype.type(0), x * np.log1p(y))

    def gradient(op, dz) -> Any:
        x, y = conj(op.x), conj(op.y)
        return dz * Xlog1py(_not_zero(x), y), dz * Xdivy(x, y + 1)


xlog1py = Xlog1py.as_function("xlog1py")


@operator
class Xdivy:
    """x divided by y, and 0 where x is 0 whatever y is.

    .. math:: z = x / y \\text{ if } x \\ne 0 \\text{ else } 0
    """

    x = Input(floating_or_complex)
    y = Input(floating_or_complex, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x, y) -> Any:
        return np.where(x == 0, x.dtype.type(0), np.true_divide(x, y))

    def gradient(op, dz) -> Any:
        x, y = conj(op.x), conj(op.y)
        return dz * Xdivy(_not_zero(x), y), dz * Xdivy(-x, y * y)


xdivy = Xdivy.as_function("xdivy")


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
