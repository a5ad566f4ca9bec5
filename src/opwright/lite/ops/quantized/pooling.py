"""Integer rules of AVERAGE_POOL_2D and MAX_POOL_2D: on raw integers, which input and output scale alike.

Lives here: these rules.  Not here: the windows (lite/ops/sliding.py).

.. math:: q_y = clamp(round(\\sum q_x / n)),  n: taps inside the image, halves away from zero
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..sliding import along, counts, pooled
from .fixed_point import rounded_quotient
from .operand import Operand, check_scaled, check_types, fused_bounds

TYPES = ("INT8 INT8", "UINT8 UINT8", "INT16 INT16")


def average(op: Any, x: Operand, y: Operand) -> Any:
    check_types(op, TYPES, x, y)
    check_scaled(x, y)
    low, high = fused_bounds(op.fused_activation_function, y)

    def mean(q: Any, rows: Any, columns: Any) -> Any:
        total = along(along(q.astype(np.int32), rows, 1, np.add, 0), columns, 2, np.add, 0)
        n = np.multiply.outer(counts(rows, np.int32), counts(columns, np.int32))[..., None]
        return np.clip(rounded_quotient(total, n), low, high)

    return lambda q: pooled(op, q, mean)


def maximum(op: Any, x: Operand, y: Operand) -> Any:
    check_types(op, TYPES, x, y)
    check_scaled(x, y)
    low, high = fused_bounds(op.fused_activation_function, y)

    def most(q: Any, rows: Any, columns: Any) -> Any:
        greatest = along(along(q, rows, 1, np.maximum, y.low), columns, 2, np.maximum, y.low)
        return np.clip(greatest, low, high)

    return lambda q: pooled(op, q, most, q.itemsize)
