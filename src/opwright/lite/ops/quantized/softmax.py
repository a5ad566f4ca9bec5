"""Integer rules of operators that normalize rows: SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION.

Lives here: these rules.
Not here: exp, reciprocals and inverse square roots in fixed point (opwright/scalar), tables (fixed_point.py).

Softmax of 8 bits: differences to the row's greatest in Q5.26, their exponentials in Q0.31 (a table, as there are 256
differences), their sum in Q12.19, times its reciprocal. For 16 bits: tables of exp over [-10, 0] and of 1 / (1 + x),
interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....scalar import numpy_namespace
from ....scalar.fixed_point import multiplier
from ....scalar.fixed_point_layers import SoftmaxOfInt16, tables_of
from .fixed_point import INT32, Function
from .operand import Operand, check_output, check_scaled, check_types

OUTPUTS = {"INT8": (1 / 256, -128), "INT16": (1 / 32768, 0)}
"""Output scales that the official kernels require; for others they use 1/256 (uint8) and 1/65536 (int16 of 8 bits)."""
INTEGER_BITS = 5  # of differences
BITS = {"INT8": 8, "UINT8": 8, "INT16": 16}


def softmax(op: Any, x: Operand, y: Operand) -> Function:
    kind = check_types(op, ("INT8 INT8", "UINT8 UINT8", "INT8 INT16", "UINT8 INT16", "INT16 INT16"), x, y)
    check_scaled(x, y)
    if kind == y.type and kind in OUTPUTS:
        check_output(y, *OUTPUTS[kind], 1e-3)
    return _by_tables(op, x) if kind == "INT16" else _in_fixed_point(op, x, y)


def _in_fixed_point(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    m, e = multiplier(min(op.beta * float(x.scale) * (1 << 26), 2.0**31 - 1))
    lowest = -math.floor(31 * 2.0**26 / 2.0**e)
    differences = -np.arange(256)
    is_counted = differences >= lowest
    steps = INT32.high_product(np.left_shift(differences * is_counted, max(e, 0)), m)
    exponentials = np.where(is_counted, INT32.exp_on_negatives(steps, INTEGER_BITS), 0)
    summands = INT32.shifted_right(exponentials, 12)
    shift = 31 - BITS[y.type]

    def run(q: np.ndarray) -> np.ndarray:
        if not q.size:
            return q
        below = q.max(-1, keepdims=True).astype(np.int32) - q  # 0 to 255
        r, k = INT32.reciprocal(summands[below].sum(-1, keepdims=True))
        out = INT32.shifted_right(INT32.high_product(r, exponentials[below]), k + shift) + y.low
        return np.clip(np.where(is_counted[below], out, y.low), y.low, y.high)

    return run


def log_softmax(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    """Compute in float32, as the official optimized kernels do; their reference kernel differs by at most one."""
    check_types(op, ("INT8 INT8", "UINT8 UINT8"), x, y)
    check_scaled(x, y)
    check_output(y, 16 / 256, y.high, 1e-3)
    exponentials = np.exp(-float(x.scale) * np.arange(256)).astype(np.float32)
    factor = x.scale / y.scale

    def run(q: np.ndarray) -> np.ndarray:
        if not q.size:
            return q
        wide = np.atleast_1d(q).astype(np.int32)  # a scalar is a row of its own
        greatest = wide.max(-1, keepdims=True)
        total = np.cumsum(exponentials[greatest - wide], -1, dtype=np.float32)[..., -1:]
        constant = (x.scale * greatest.astype(np.float32) + np.log(total)) / y.scale
        logs = np.rint(factor * wide.astype(np.float32) - constant) + y.zero_point
        result: np.ndarray = np.clip(logs, y.low, y.high).reshape(q.shape)
        return result

    return run


def _by_tables(op: Any, x: Operand) -> Callable[..., Any]:
    (m, e), exp_table, inverse_table = tables_of(x.scale, op.beta)

    arithmetic = SoftmaxOfInt16(numpy_namespace)

    def run(q: np.ndarray) -> np.ndarray:
        if not q.size:
            return q
        wide = q.astype(np.int64)
        exps = arithmetic.exponential(exp_table, wide - wide.max(-1, keepdims=True), m, e)
        return arithmetic.share(exps, *arithmetic.reciprocal(inverse_table, exps.sum(-1, keepdims=True)))

    return run


def l2_normalization(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    """.. math:: q_y = z_y + 128 (q_x - z_x) / \\sqrt{\\sum (q_x - z_x)^2}"""
    check_types(op, ("INT8 INT8", "UINT8 UINT8"), x, y)
    check_scaled(x, y)
    check_output(y, 1 / 128, 0 if y.type == "INT8" else 128)

    def run(q: np.ndarray) -> np.ndarray:
        v = x.centred(q)
        root, shift = INT32.inverse_root(np.square(v).sum(-1, keepdims=True))
        # 128 times: of int8 in the multiplier, of uint8 in the number, which rounds otherwise
        out = INT32.rescale(v, root, shift + 7) if y.type == "INT8" else INT32.rescale(v * 128, root, shift)
        return y.saturated(out)

    return run
