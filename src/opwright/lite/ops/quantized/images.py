"""Integer rule of RESIZE_BILINEAR: positions and weights in steps of 1/1024 of a pixel (uint8: in floats).

Lives here: this rule.  Not here: RESIZE_NEAREST_NEIGHBOR, which moves integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..images import Places, between, stretched
from .operand import Operand, check_scaled, check_types

_ONE, _f = 1 << 10, np.float32


def _positions(op: Any, size: int, out: int) -> tuple[Any, Any, Any]:
    """For each pixel of the result along a dimension: the pixels before and after, and the weight of the latter."""
    scale = (_ONE * size + out // 2) // out
    if op.align_corners and out > 1:
        scale = (_ONE * (size - 1) + (out - 1) // 2) // (out - 1)
    at = np.arange(out, dtype=np.int64) * scale
    if op.half_pixel_centers:
        at += scale // 2 - _ONE // 2
    before = np.maximum(np.sign(at) * (np.abs(at) // _ONE), 0)  # divisions cut off toward 0
    later = at + _ONE - 1
    after = np.minimum(np.sign(later) * (np.abs(later) // _ONE), size - 1)
    return np.minimum(before, size - 1), np.maximum(after, 0), at - _ONE * before


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
        return lambda q, size: stretched(op, q, size, between, _in_floats, 4)

    def in_steps(q: Any, rows: Places, columns: Places) -> Any:
        left, right, across = columns
        above, below = (q[:, r, left] * (_ONE - across) + q[:, r, right] * across for r in rows[:2])
        v = above * (_ONE - rows[2]) + below * rows[2]
        half = np.where(v > 0, 1 << 19, -(1 << 19))
        v += half
        return np.clip(np.sign(v) * (np.abs(v) >> 20), y.low, y.high)

    return lambda q, size: stretched(op, q, size, _positions, in_steps, 8)
