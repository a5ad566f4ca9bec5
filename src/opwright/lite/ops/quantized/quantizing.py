"""Rules of QUANTIZE and DEQUANTIZE: reals to integers, integers to other integers, integers to reals.

Lives here: these rules.  Not here: the operators (lite/ops/quantization.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....scalar.quantization import array_round_away as round_away
from ....scalar.quantization import multiplier
from ...ops.quantized.operand import Operand
from ..parts import elements
from .fixed_point import INT32
from .operand import check_scaled, check_types

REALS = ("FLOAT32", "FLOAT16")
_NARROW = ("INT8", "UINT8", "INT16", "INT4", "INT2", "UINT4")
QUANTIZED = (
    *(f"{a} {b}" for a in REALS for b in (*_NARROW, "INT32")),
    *(f"{a} {b}" for a in (*_NARROW[:3], "INT32") for b in (*_NARROW[:3], "INT32")),
)


def _along(values: Any, axis: int, rank: int) -> Any:
    """Shape a vector of scales or zero points to be broadcast along a dimension of a tensor."""
    return values.reshape([-1 if i == axis else 1 for i in range(rank)])


def quantize(op: Any, x: Operand, y: Operand) -> Any:
    """.. math:: q_y = clamp(round(x / s_y) + z_y)    of reals, halves away from zero"""
    check_types(op, QUANTIZED, x, y)
    if x.type not in REALS:
        return _requantize(x, y)
    if not len(y.scales):
        check_scaled(y)
    if y.per_channel and not (y.axis < len(x.shape) and x.shape[y.axis] == len(y.scales)):
        raise y.wrong(
            "has scales that do not fit the input",
            f"{len(y.scales)} along {y.axis}, and {list(x.shape)}",
            "one scale, or one for each slice along that dimension",
        )
    scale, zero_point = y.scale, y.zero_point
    if y.per_channel:  # along a dimension of the input: the file may say another shape of the output
        scale, zero_point = (_along(values, y.axis, len(x.shape)) for values in (y.scales, y.zero_points))
    if not np.all(scale):
        raise y.wrong("has a scale of 0", y.scales[:8].tolist(), "positive scales")

    def run(real: Any, scale: Any, zero_point: Any) -> Any:
        q = round_away(np.nan_to_num(real.astype(np.float32, copy=False) / scale, nan=0.0)).astype(np.float64)
        return np.clip(q + zero_point, y.low, y.high)

    return lambda real: elements(run, (real, np.asarray(scale), np.asarray(zero_point)), real.shape)


def _requantize(x: Operand, y: Operand) -> Any:
    """Integers of another scale. Those without one have scale 0 officially: they all stand for 0."""
    check_scaled(*([x] if len(x.scales) else []), y)
    m, e = multiplier(float(x.scale) / float(y.scale))

    def run(q: Any) -> Any:
        return np.clip(INT32.rescale(x.centred(q), m, e) + y.zero_point, y.low, y.high)

    return lambda q: elements(run, (q,), q.shape)


def dequantize(op: Any, x: Operand, y: Operand) -> Any:
    """.. math:: y = s_x (q_x - z_x)"""
    check_types(op, tuple(f"{t} FLOAT32" for t in (*_NARROW, "INT32", "UINT16")), x, y)
    if x.per_channel:
        scales, zero_points = (_along(values, x.axis, len(x.shape)) for values in (x.scales, x.zero_points))

        def of_channels(q: Any, scale: Any, zero_point: Any) -> Any:
            return scale * (q.astype(np.int64) - zero_point).astype(np.float32)

        return lambda q: elements(of_channels, (q, scales, zero_points), q.shape)
    check_scaled(x)
    scale = float(x.scale)
    return lambda q: elements(lambda part: scale * x.centred(part, np.float64), (q,), q.shape)
