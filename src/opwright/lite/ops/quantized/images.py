"""Integer rule of RESIZE_BILINEAR: positions and weights in steps of 1/1024 of a pixel (uint8: in floats).

Lives here: this rule.  Not here: RESIZE_NEAREST_NEIGHBOR, which moves integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....scalar import numpy_namespace
from ....scalar.resampling import FixedMean, Places, Sampling
from ..images import stretched
from .operand import Operand, check_scaled, check_types

_f = np.float32
MEAN = FixedMean(numpy_namespace)


def _in_floats(q: Any, rows: Places, columns: Places) -> Any:
    """The mean of four in float32, cut off after adding a half: how uint8 is done."""
    (top, bottom, down), (left, right, across) = rows, columns
    v = q[:, top, left].astype(np.float32) * (_f(1) - down) * (_f(1) - across)
    v += q[:, bottom, left].astype(np.float32) * down * (_f(1) - across)
    v += q[:, top, right].astype(np.float32) * (_f(1) - down) * across
    v += q[:, bottom, right].astype(np.float32) * down * across
    return np.clip(np.trunc(v + _f(0.5)), 0, 255)


def resize_bilinear(op: Any, x: Operand, size: Operand, y: Operand) -> Any:
    check_types(op, ("INT8 INT8", "UINT8 UINT8", "INT16 INT16"), x, y)
    check_scaled(x, y)
    if x.type == "UINT8":
        return lambda q, size: stretched(op, q, size, Sampling.between, _in_floats, 4)

    def in_steps(q: Any, rows: Places, columns: Places) -> Any:
        left, right, across = columns
        four = [q[:, row, column] for row in rows[:2] for column in (left, right)]
        return np.clip(MEAN.of_four(four, across, rows[2]), y.low, y.high)

    return lambda q, size: stretched(op, q, size, Sampling.between_steps, in_steps, 8)
