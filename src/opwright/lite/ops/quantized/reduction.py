"""Integer rules of operators that reduce axes: MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN.

Lives here: these rules.
Not here: which axes there are (lite/ops/reduction.py), normalization by such a reduction (softmax.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....scalar.fixed_point import array_round_away as round_away
from ....scalar.fixed_point import multiplier, short_multiplier
from ..reduction import axes_of
from .fixed_point import INT32
from .operand import Operand, check_same, check_scaled, check_symmetric, check_types, quantize_real

_f = np.float32
TYPES = ("INT8 INT8", "UINT8 UINT8", "INT16 INT16")


def _count(q: Any, axes: tuple[int, ...]) -> int:
    return math.prod(q.shape[a] for a in axes)


def _checked(op: Any, x: Operand, y: Operand, types: tuple[str, ...] = TYPES) -> None:
    if check_types(op, types, x, y) == "INT16":
        check_symmetric(x, y)
    check_scaled(x, y)


def _centred_sum(op: Any, x: Operand, q: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    result: np.ndarray = q.sum(axes, keepdims=op.keep_dims, dtype=np.int64) - x.zero_point * _count(q, axes)
    return result


def mean(op: Any, x: Operand, axes: Operand, y: Operand) -> Callable[..., Any]:
    """Rescale the sum by a multiplier that is divided by the number of elements."""
    _checked(op, x, y)
    m, e = multiplier(float(x.scale) / float(y.scale))

    @functools.lru_cache(maxsize=8)
    def divided(n: int) -> tuple[int, int]:
        if n == 0:
            return 0, 0
        shift = max(min(n.bit_length() - 1, 32, 31 + e), 0)
        return (m << shift) // n, e - shift

    def run(q: np.ndarray, a: np.ndarray) -> np.ndarray:
        over = axes_of(a.reshape(-1).tolist(), q.ndim)
        total = _centred_sum(op, x, q, over)
        return y.saturated(INT32.rescale(total, *divided(_count(q, over))))

    return run


def sum(op: Any, x: Operand, axes: Operand, y: Operand) -> Callable[..., Any]:
    """Sum in float32, as the official kernels do (not in fixed point): round(sum s_x / s_y - z_x n s_x / s_y) + z_y."""
    _checked(op, x, y)
    scale = x.scale / y.scale

    def run(q: np.ndarray, a: np.ndarray) -> np.ndarray:
        over = axes_of(a.reshape(-1).tolist(), q.ndim)
        total = np.asarray(q.sum(over, keepdims=op.keep_dims, dtype=np.int64)).astype(_f)
        real = total * scale + _f(-x.zero_point) * scale * _f(_count(q, over))
        return y.saturated(round_away(real).astype(np.float64))

    return run


def prod(op: Any, x: Operand, axes: Operand, y: Operand) -> Callable[..., Any]:
    """Multiply the elements one by one, rescaling after each so that the product remains an int32."""
    _checked(op, x, y, ("INT8 INT8", "INT16 INT16"))

    @functools.lru_cache(maxsize=8)
    def root(n: int) -> tuple[int, int]:
        m, e = multiplier(float(x.scale) / float(y.scale) ** (1.0 / max(n, 1)))
        return short_multiplier(m), e

    def run(q: np.ndarray, a: np.ndarray) -> np.ndarray:
        over = axes_of(a.reshape(-1).tolist(), q.ndim)
        remaining = [i for i in range(q.ndim) if i not in over]
        n = _count(q, over)
        shape = (
            [1 if i in over else d for i, d in enumerate(q.shape)] if op.keep_dims else [q.shape[i] for i in remaining]
        )
        if n == 0:
            return np.full(shape, np.clip(quantize_real(1.0, y), y.low, y.high))
        rows = x.centred(q).transpose([*over, *remaining]).reshape(n, -1)
        factor = root(n)
        product = rows[0]
        for row in rows[1:]:
            product = INT32.wrapped(INT32.rescale_wide(product * row, *factor))
        return y.saturated(INT32.rescale_wide(product, *factor)).reshape(shape)

    return run


def _raw(op: Any, x: Operand, axes: Operand, y: Operand) -> Callable[..., Any]:
    check_types(op, TYPES, x, y)
    check_scaled(x, y)
    check_same(x, y)
    result: Callable[..., Any] = op.reference
    return result


maximum = minimum = _raw
