"""Selection by truth values: SELECT, SELECT_V2, WHERE.

Lives here: these operators.  Not here: comparison and logic (arithmetic.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.dtypes import ALL, float32, int8, int32, int64, uint8, uint32
from ...core.dtypes import bool as bool_
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from .definition import lite_operator
from .parts import Part, elements
from .shapes import broadcast, refuse, spec, text


@lite_operator("SELECT")
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
            raise refuse(
                "the condition does not fit x",
                found={"condition": text(c), "x": text(x)},
                wanted="x's shape, a scalar, or x's first dimension",
            )
        return TensorSpec(x.merge_with(y), op.x.spec.dtype)

    def compute(op: Any, condition: Any, x: Any, y: Any) -> Any:
        if condition.shape != x.shape:
            condition = condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim))
        return np.where(condition, x, y)


@lite_operator("SELECT_V2")
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


@lite_operator("WHERE")
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
