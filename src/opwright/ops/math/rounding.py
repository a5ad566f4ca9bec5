"""Rounding, division that rounds toward zero, neighbours of floating numbers, and tests for NaN and infinity.

Lives here: the table of these operators, TruncateDiv and TruncateMod.
Not here: division that rounds down (arithmetic.py), casts (array/casting.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating, real
from ...core.errors import InvalidArgumentError
from ...scalar.table import FUNCTIONS
from .. import array
from ..definition import operator
from ..slots import Input, OperatorDefinition, Output
from .ufunc import ufunc

if TYPE_CHECKING:
    from .. import signatures

Floor, floor = ufunc("floor", "x -> y", floating, "The largest integer that is not greater.", r"y = \lfloor x \rfloor")
Ceil, ceil = ufunc("ceil", "x -> y", floating, "The smallest integer that is not less.", r"y = \lceil x \rceil")
_NEAREST = r"y = n \in \mathbb{Z}, \; |x - n| \le 1/2, \; n \text{ even where } |x - n| = 1/2"
Round, round = ufunc(
    "round",
    "x -> y",
    (*floating, *dtypes.integer),
    "The nearest integer, of two equally near the even one; integers as they are.",
    _NEAREST,
)
Rint, rint = ufunc(
    "rint", "x -> y", floating, "The nearest integer, of two equally near the even one.", _NEAREST, compute=np.rint
)
IsNan, is_nan = ufunc("is_nan", "x -> y", floating, "Whether it is NaN.", r"y = [x \text{ is NaN}]", result=dtypes.bool)
IsInf, is_inf = ufunc(
    "is_inf", "x -> y", floating, "Whether it is infinite, of either sign.", r"y = [|x| = \infty]", result=dtypes.bool
)
IsFinite, is_finite = ufunc(
    "is_finite",
    "x -> y",
    floating,
    "Whether it is neither infinite nor NaN.",
    r"y = [|x| < \infty]",
    result=dtypes.bool,
)
NextAfter, nextafter = ufunc(
    "nextafter",
    "x1 x2 -> output",
    (dtypes.float64, dtypes.float32),
    "The next number of this dtype after x1 on the way to x2; x2 where they are equal.",
    r"output = \min \{ t > x1 \} \text{ if } x2 > x1, \; \max \{ t < x1 \} \text{ if } x2 < x1",
    lambda op, doutput: (doutput, array.zeros_like(op.x2)),
    operator_name="NextAfter",
    compute=np.nextafter,
    inplace=False,
    no_need_buffer=("x2",),
)


def _no_zero(y: np.ndarray) -> None:
    if y.dtype.kind in "iu" and not np.all(y):
        raise InvalidArgumentError(what="Integer division by zero", wanted="a divisor without zeros")


@operator
class TruncateDiv(OperatorDefinition):
    """Quotient rounded toward zero.

    .. math:: z = sign(x / y) \\lfloor |x / y| \\rfloor

    raises InvalidArgumentError for an integer divisor of 0
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(like="x")
    elementwise = True
    gradient = None

    def compute(op, x: Any, y: Any) -> Any:
        _no_zero(y)
        return FUNCTIONS["truncate_div"].numpy(x, y)


truncatediv: signatures.TruncateDiv = TruncateDiv.as_function("truncatediv")


@operator
class TruncateMod(OperatorDefinition):
    """Remainder with the dividend's sign.

    .. math:: z = x - y \\cdot truncatediv(x, y)

    raises InvalidArgumentError for an integer divisor of 0
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x: Any, y: Any) -> Any:
        _no_zero(y)
        return FUNCTIONS["truncate_mod"].numpy(x, y)

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        return dz, -dz * TruncateDiv(op.x, op.y)


truncatemod: signatures.TruncateMod = TruncateMod.as_function("truncatemod")
