"""Rounding, division that rounds toward zero, neighbours of floating numbers, and tests for NaN and infinity.

Lives here: Floor, Ceil, Round, Rint, TruncateDiv, TruncateMod, NextAfter, IsNan, IsInf, IsFinite.
Not here: division that rounds down (arithmetic.py), casts (array/casting.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating, real
from ...core.errors import InvalidArgumentError
from ...scalar.table import FUNCTIONS
from .. import array
from ..definition import Input, Output, operator


@operator
class Floor:
    """The largest integer that is not greater.

    .. math:: y = \\lfloor x \\rfloor
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    gradient = None
    compute = FUNCTIONS["floor"].numpy


floor = Floor.as_function("floor")


@operator
class Ceil:
    """The smallest integer that is not less.

    .. math:: y = \\lceil x \\rceil
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    gradient = None
    compute = FUNCTIONS["ceil"].numpy


ceil = Ceil.as_function("ceil")


@operator
class Round:
    """The nearest integer, of two equally near the even one; integers as they are.

    .. math:: y = n \\in \\mathbb{Z}, \\; |x - n| \\le 1/2, \\; n \\text{ even where } |x - n| = 1/2
    """

    x = Input((*floating, *dtypes.integer))
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    gradient = None

    def compute(op, x, *, out=None) -> Any:
        return FUNCTIONS["round_even"].numpy(x, out)


round = Round.as_function("round")


@operator
class Rint:
    """The nearest integer, of two equally near the even one.

    .. math:: y = n \\in \\mathbb{Z}, \\; |x - n| \\le 1/2, \\; n \\text{ even where } |x - n| = 1/2
    """

    x = Input(floating)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    gradient = None
    compute = FUNCTIONS["round_even"].ufunc


rint = Rint.as_function("rint")


def _no_zero(y: np.ndarray) -> None:
    if y.dtype.kind in "iu" and not np.all(y):
        raise InvalidArgumentError(what="Integer division by zero", wanted="a divisor without zeros")


@operator
class TruncateDiv:
    """Quotient rounded toward zero.

    .. math:: z = sign(x / y) \\lfloor |x / y| \\rfloor

    raises InvalidArgumentError for an integer divisor of 0
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(like="x")
    elementwise = True
    gradient = None

    def compute(op, x, y) -> Any:
        _no_zero(y)
        return FUNCTIONS["truncate_div"].numpy(x, y)


truncatediv = TruncateDiv.as_function("truncatediv")


@operator
class TruncateMod:
    """Remainder with the dividend's sign.

    .. math:: z = x - y \\cdot truncatediv(x, y)

    raises InvalidArgumentError for an integer divisor of 0
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x, y) -> Any:
        _no_zero(y)
        return FUNCTIONS["truncate_mod"].numpy(x, y)

    def gradient(op, dz) -> Any:
        return dz, -dz * TruncateDiv(op.x, op.y)


truncatemod = TruncateMod.as_function("truncatemod")


@operator
class NextAfter:
    """The next number of this dtype after x1 on the way to x2; x2 where they are equal.

    .. math:: output = \\min \\{ t > x1 \\} \\text{ if } x2 > x1, \\; \\max \\{ t < x1 \\} \\text{ if } x2 < x1
    """

    x1 = Input((dtypes.float64, dtypes.float32))
    x2 = Input((dtypes.float64, dtypes.float32), like="x1")
    output = Output(like="x1")
    elementwise = True
    no_need_buffer = ("x2",)
    compute = np.nextafter

    def gradient(op, doutput) -> Any:
        return doutput, array.zeros_like(op.x2)


nextafter = NextAfter.as_function("nextafter")


@operator
class IsNan:
    """Whether it is NaN.

    .. math:: y = [x \\text{ is NaN}]
    """

    x = Input(floating)
    y = Output(dtype=dtypes.bool)
    elementwise = True
    gradient = None
    compute = FUNCTIONS["is_nan"].numpy


is_nan = IsNan.as_function("is_nan")


@operator
class IsInf:
    """Whether it is infinite, of either sign.

    .. math:: y = [|x| = \\infty]
    """

    x = Input(floating)
    y = Output(dtype=dtypes.bool)
    elementwise = True
    gradient = None
    compute = FUNCTIONS["is_inf"].numpy


is_inf = IsInf.as_function("is_inf")


@operator
class IsFinite:
    """Whether it is neither infinite nor NaN.

    .. math:: y = [|x| < \\infty]
    """

    x = Input(floating)
    y = Output(dtype=dtypes.bool)
    elementwise = True
    gradient = None
    compute = FUNCTIONS["is_finite"].numpy


is_finite = IsFinite.as_function("is_finite")
