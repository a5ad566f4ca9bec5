"""Comparisons and logic, element by element with broadcasting.

Lives here: Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, ApproximateEqual, LogicalAnd, LogicalOr, LogicalNot
and logical_xor.
Not here: choosing by a condition (array/), all and any (reduction.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import numeric, real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...scalar.table import FUNCTIONS
from ..attributes import Attr
from ..definition import Input, Output, operator


def _compared(relation: Callable[..., Any], x: Any, y: Any) -> Any:
    """A relation of arrays, as bools; NumPy gives objects for strings.

    One string alone is `bytes`, which NumPy would compare without the zero bytes at its end.
    """
    if type(x) is bytes or type(y) is bytes:
        x, y = np.asarray(x, object), np.asarray(y, object)
    return np.asarray(relation(x, y), np.bool_)[()] if x.dtype.kind == "O" else relation(x, y)


@operator
class Equal:
    """Whether x equals y. NaN equals nothing.

    .. math:: z = [x = y]
    """

    x = Input(dtypes.ALL)
    y = Input(dtypes.ALL, like="x")
    z = Output(dtype=dtypes.bool)
    elementwise = True
    gradient = None

    def compute(op, x, y) -> Any:
        return _compared(FUNCTIONS["equal"].numpy, x, y)


equal = Equal.as_function("equal")


@operator
class NotEqual:
    """Whether x differs from y. NaN differs from everything.

    .. math:: z = [x \\ne y]
    """

    x = Input(dtypes.ALL)
    y = Input(dtypes.ALL, like="x")
    z = Output(dtype=dtypes.bool)
    elementwise = True
    gradient = None

    def compute(op, x, y) -> Any:
        return _compared(FUNCTIONS["not_equal"].numpy, x, y)


not_equal = NotEqual.as_function("not_equal")


@operator
class Less:
    """Whether x is less than y; False where either is NaN.

    .. math:: z = [x < y]
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(dtype=dtypes.bool)
    elementwise = True
    gradient = None
    compute = FUNCTIONS["less"].numpy


less = Less.as_function("less")


@operator
class LessEqual:
    """Whether x is at most y; False where either is NaN.

    .. math:: z = [x \\le y]
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(dtype=dtypes.bool)
    elementwise = True
    gradient = None
    compute = FUNCTIONS["less_equal"].numpy


less_equal = LessEqual.as_function("less_equal")


@operator
class Greater:
    """Whether x is greater than y; False where either is NaN.

    .. math:: z = [x > y]
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(dtype=dtypes.bool)
    elementwise = True
    gradient = None
    compute = FUNCTIONS["greater"].numpy


greater = Greater.as_function("greater")


@operator
class GreaterEqual:
    """Whether x is at least y; False where either is NaN.

    .. math:: z = [x \\ge y]
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(dtype=dtypes.bool)
    elementwise = True
    gradient = None
    compute = FUNCTIONS["greater_equal"].numpy


greater_equal = GreaterEqual.as_function("greater_equal")


@operator
class ApproximateEqual:
    """Whether x and y, of one shape, differ by less than `tolerance`.

    .. math:: z = [|x - y| < tolerance]

    raises InvalidArgumentError if the shapes differ
    """

    x = Input(numeric)
    y = Input(numeric, like="x")
    z = Output(dtype=dtypes.bool)
    tolerance = Attr(float, default=1e-5)
    gradient = None

    def infer(op) -> Any:
        x, y = op.x.spec, op.y.spec
        if not x.shape.is_compatible_with(y.shape):
            raise InvalidArgumentError(what="x and y must be of the same shape", found=f"{x.short()}, {y.short()}")
        return TensorSpec(x.shape.merge_with(y.shape), dtypes.bool)

    def compute(op, x, y) -> Any:
        if x.dtype.kind in "iu":  # unsigned differences wrap
            return np.subtract(np.maximum(x, y), np.minimum(x, y)) < op.tolerance
        return np.absolute(np.subtract(x, y)) < np.float32(op.tolerance)


approximate_equal = ApproximateEqual.as_function("approximate_equal")


@operator
class LogicalAnd:
    """Whether both are true.

    .. math:: z = x \\land y
    """

    x = Input(dtypes.bool)
    y = Input(dtypes.bool)
    z = Output(dtype=dtypes.bool)
    elementwise = True
    inplace = {"z": "x"}
    gradient = None
    compute = FUNCTIONS["logical_and"].numpy


logical_and = LogicalAnd.as_function("logical_and")


@operator
class LogicalOr:
    """Whether one or both are true.

    .. math:: z = x \\lor y
    """

    x = Input(dtypes.bool)
    y = Input(dtypes.bool)
    z = Output(dtype=dtypes.bool)
    elementwise = True
    inplace = {"z": "x"}
    gradient = None
    compute = FUNCTIONS["logical_or"].numpy


logical_or = LogicalOr.as_function("logical_or")


@operator
class LogicalNot:
    """Whether it is false.

    .. math:: y = \\lnot x
    """

    x = Input(dtypes.bool)
    y = Output(dtype=dtypes.bool)
    elementwise = True
    inplace = {"y": "x"}
    gradient = None
    compute = FUNCTIONS["logical_not"].numpy


logical_not = LogicalNot.as_function("logical_not")


def logical_xor(x: Any, y: Any, name: str | None = "LogicalXor") -> Any:
    """Whether exactly one is true. See LogicalAnd, LogicalOr, LogicalNot."""
    return LogicalAnd(LogicalOr(x, y), LogicalNot(LogicalAnd(x, y)), name=name)
