"""Functions element by element that were custom operators before they were builtin ones, or never became one: Sign,
Atan2, Table.

Lives here: these operators.  Not here: SIGN and ATAN2 (lite/ops/), the tables of quantised functions
(lite/ops/quantized/tables.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, float64, int8, int16, int32
from ...core.specs import TensorSpec
from ...ops.definition import Input, Output
from ...scalar import numpy_namespace
from ...scalar.fixed_point import FixedPoint
from ..ops.shapes import refuse, text
from .definition import custom_operator


@custom_operator("Sign")
class Sign:
    """-1, 0 or 1.

    .. math:: y = \\operatorname{sign} x
    """

    x = Input((float32, float64, int32))
    y = Output(like="x")
    elementwise = True

    def compute(op: Any, x: Any) -> Any:
        return np.sign(x)


@custom_operator("Atan2")
class Atan2:
    """The angle of a point.

    .. math:: y = \\operatorname{atan2}(a, b)

    a, b: of one shape
    """

    a = Input((float32, float64))
    b = Input((float32, float64), like="a")
    y = Output(like="a")

    def infer(op: Any) -> TensorSpec:
        a, b = op.a.spec.shape, op.b.spec.shape
        if not a.is_compatible_with(b):
            raise refuse("a and b differ in shape", found={"a": text(a), "b": text(b)}, wanted="one shape")
        return op.a.spec

    def compute(op: Any, a: Any, b: Any) -> Any:
        return np.arctan2(a, b)


def looked_up(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """A table's entry for each integer of int8; of int16 what lies between two."""
    if x.dtype == np.int8:
        return table[x.astype(np.int16) + 128]
    entries = FixedPoint(numpy_namespace, 8 * table.itemsize)
    return entries.interpolated(table.astype(np.int32), x.astype(np.int32)).astype(table.dtype)


@custom_operator("Table")
class Table:
    """The table's entry for each integer: of int8, one for each of -128..127; of int16, 513, with linear interpolation
    between the two around it.

    .. math:: y = table_{x + 128}

    x: int8 or int16; table: int8 or int16 [256], [513] where x is int16. What scales mean is in the table's entries.
    """

    x = Input((int8, int16))
    table = Input((int8, int16), rank=1)
    y = Output(like="table")
    moves = True

    def infer(op: Any) -> TensorSpec:
        entries, wanted = op.table.spec.shape[0], 256 if op.x.spec.dtype is int8 else 513
        if entries not in (None, wanted):
            raise refuse("the table has the wrong size for the type of x", found=entries,
                         wanted=f"{wanted} entries for {op.x.spec.dtype.name}")  # fmt: skip
        return TensorSpec(op.x.spec.shape, op.table.spec.dtype)

    def compute(op: Any, x: Any, table: Any) -> Any:
        return looked_up(x, table)
