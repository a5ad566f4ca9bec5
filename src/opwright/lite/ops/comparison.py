"""Comparison, logic and choice: EQUAL to LOGICAL_OR, SELECT, SELECT_V2, WHERE.

Lives here: the table of comparisons, and choosing by truth.  Not here: MAXIMUM and MINIMUM (arithmetic.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.dtypes import ALL, bfloat16, float16, float32, int8, int16, int32, int64, string, uint8, uint32
from ...core.dtypes import bool as bool_
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.definition import Input, Output
from .arithmetic import binary
from .definition import lite_operator
from .parts import Part, elements
from .same import SAME
from .shapes import broadcast, refuse, spec, text

_ORDERED = (float32, float16, int32, int64, int16, int8, uint8)
_EQUATED = (*_ORDERED, bool_, string)

#    name             ufunc              formula    dtypes     options                versions
COMPARISONS: tuple[Any, ...] = (
    ("EQUAL",         SAME,              "x = y",   _EQUATED,  "EqualOptions",        (1, 5)),
    ("NOT_EQUAL",     SAME,              r"x \ne y", _EQUATED, "NotEqualOptions",     (1, 4)),
    ("LESS",          SAME,              "x < y",   (*_ORDERED, bfloat16),  "LessOptions",         (1, 3)),
    ("LESS_EQUAL",    SAME,              r"x \le y", _ORDERED, "LessEqualOptions",    (1, 2)),
    ("GREATER",       SAME,              "x > y",   (*_ORDERED, bfloat16),  "GreaterOptions",      (1, 2)),
    ("GREATER_EQUAL", SAME,              r"x \ge y", _ORDERED, "GreaterEqualOptions", (1, 3)),
    ("LOGICAL_AND",   SAME,              r"x \wedge y", (bool_,), "LogicalAndOptions", (1, 1)),
    ("LOGICAL_OR",    SAME,              r"x \vee y", (bool_,), "LogicalOrOptions",   (1, 1)),
)  # fmt: skip

for row in COMPARISONS:
    binary(*row, out=bool_, quantized=None if "LOGICAL" in row[0] else f"arithmetic.{row[0].lower()}")


@lite_operator("SELECT", options="SelectOptions", versions=(1, 4))
class Select:
    """Each element of x where the condition holds, else of y, which has x's shape.

    .. math:: z_i = c_i: x_i,\\ \\text{else}\\ y_i

    The condition has x's shape, is a scalar, or has one element for each of x's first dimension.
    """

    condition = Input((bool_,))
    x = Input(ALL)
    y = Input(ALL, like="x")
    z = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        c, x, y = (i.spec.shape for i in (op.condition, op.x, op.y))
        if not x.is_compatible_with(y):
            raise refuse("x and y differ in shape", found={"x": text(x), "y": text(y)}, wanted="one shape")
        rows = c.rank == 1 and x.rank and (c[0] is None or x[0] is None or c[0] == x[0] or c[0] == 1)
        if c.rank and not rows and not c.is_compatible_with(x):
            raise refuse("the condition does not fit x", found={"condition": text(c), "x": text(x)},
                         wanted="x's shape, a scalar, or x's first dimension")  # fmt: skip
        return TensorSpec(x.merge_with(y), op.x.spec.dtype)

    def compute(op: Any, condition: Any, x: Any, y: Any) -> Any:
        if condition.shape != x.shape:
            condition = condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim))
        return np.where(condition, x, y)


@lite_operator("SELECT_V2", options="SelectV2Options", versions=(1, 2))
class SelectV2:
    """Each element of x where the condition holds, else of y; all three broadcast.

    .. math:: z_i = c_i: x_i,\\ \\text{else}\\ y_i
    """

    condition = Input((bool_,))
    x = Input(ALL)
    y = Input(ALL, like="x")
    z = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(broadcast(op.condition, op.x, op.y), op.x.spec.dtype)

    def parts(op: Any, condition: Any, x: Any, y: Any) -> Iterator[Part]:
        return elements(np.where, (condition, x, y), np.broadcast_shapes(condition.shape, x.shape, y.shape))

    def compute(op: Any, condition: Any, x: Any, y: Any) -> Any:
        return np.where(condition, x, y)


@lite_operator("WHERE", options="WhereOptions", versions=(1, 2))
class Where:
    """The coordinates of elements that are not 0 (not False), in row-major order: int64 [count, rank].

    .. math:: y = \\{ i : x_i \\ne 0 \\}
    """

    x = Input((bool_, float32, int32, int64, int8, uint8, uint32))
    y = Output(dtype=int64)
    moves = True

    def infer(op: Any) -> TensorSpec:
        shape, constant = op.x.spec.shape, op.x.constant
        if shape.rank is None:
            return TensorSpec(UNKNOWN, int64)
        return spec((None if constant is None else int(np.count_nonzero(constant)), shape.rank), int64)

    def compute(op: Any, x: Any) -> Any:
        return np.argwhere(x) if x.ndim else np.empty((int(np.count_nonzero(x)), 0), np.int64)
