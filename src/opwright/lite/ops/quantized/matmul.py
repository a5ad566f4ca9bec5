"""Integer rules of FULLY_CONNECTED and BATCH_MATMUL.

Lives here: these rules.  Not here: float activations with integer weights (hybrid.py).

.. math:: q_y = clamp(z_y + M (b + \\sum (q_w - z_w)(q_x - z_x))),   M = s_x s_w / s_y

FULLY_CONNECTED multiplies by M in double precision and rounds once, as the official reference kernel does since 2025.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .convolution import Weights
from .fixed_point import multiplier, rescale, rescale_wide, round_away
from .operand import Operand, check_scaled, check_symmetric, check_types, fused_bounds

TYPES = ("INT8 INT8 INT8", "INT8 INT4 INT8", "INT8 INT2 INT8", "UINT8 UINT8 UINT8", "UINT8 UINT8 INT16",
         "INT16 INT8 INT16", "INT16 INT4 INT16", "INT16 INT16 INT16")  # fmt: skip
BIASES = {"INT8": ("", "INT32"), "UINT8": ("", "INT32"), "INT16": ("", "INT64", "INT32")}


def fully_connected(op: Any, x: Operand, weights: Operand, bias: Operand | None, y: Operand) -> Any:
    kind = check_types(op, TYPES, x, weights, y)
    if bias is not None:
        check_types(op, BIASES[kind], bias)
    check_scaled(x, y)
    if weights.per_channel:
        check_symmetric(weights)
        if weights.axis != 0:
            raise weights.wrong("has scales along another dimension than that of the outputs", weights.axis, 0)
    else:
        check_scaled(weights, zero=True)
    if kind == "INT16":
        check_symmetric(x, y)
    matrix = Weights(weights, x, lambda w: w.T, (1,))
    low, high = fused_bounds(op.fused_activation_function, y)
    real = float(x.scale) * weights.scales.astype(np.float64) / float(y.scale)
    real = real if weights.per_channel else real[0]

    def run(q: Any, w: Any, b: Any) -> Any:
        n, k = w.shape
        factors = matrix(w)
        acc = np.matmul(x.centred(q, factors.dtype.type).reshape(-1, k), factors)
        acc = acc.astype(np.float64) if b is None else acc + b.reshape(-1).astype(np.float64)
        out = np.clip(round_away(acc * real) + y.zero_point, low, high)
        return out.reshape((*q.shape[:-1], n)) if op.keep_num_dims else out

    return run


def batch_matmul(op: Any, x: Operand, y: Operand, z: Operand) -> Any:
    kind = check_types(op, ("INT8 INT8 INT8", "INT16 INT16 INT16"), x, y, z)
    check_scaled(x, y, z)
    if kind == "INT16":
        check_symmetric(x, y, z)
    m, e = multiplier(float(x.scale * y.scale) / float(z.scale))
    scaled = rescale_wide if kind == "INT16" else rescale

    def run(a: Any, b: Any) -> Any:
        a, b = a.swapaxes(-1, -2) if op.adj_x else a, b.swapaxes(-1, -2) if op.adj_y else b
        exact = np.float32 if a.shape[-1] * x.reach * y.reach <= 1 << 24 else np.float64
        acc = np.matmul(x.centred(a, exact), y.centred(b, exact)).astype(np.int64)
        return np.clip(scaled(acc, m, e) + z.zero_point, z.low, z.high)

    return run
