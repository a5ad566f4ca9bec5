"""Integer rules of operators that join tensors or put something around them: CONCATENATION, PACK, PAD, PADV2,
SPACE_TO_BATCH_ND.

Lives here: these rules.  Not here: operators that only move integers, which need none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.errors import InvalidArgumentError
from ....ops import array_functions
from ....scalar.fixed_point import array_round_away as round_away
from ..concatenation import joined, surrounded
from .operand import Operand, check_same, check_scaled, check_symmetric, check_types

BYTES = ("INT8", "UINT8", "INT16")
_f = np.float32


def concatenation(op: Any, xs: tuple[Operand, ...], y: Operand) -> Callable[..., Any]:
    """Copy integers of int8, int16 and int4; parameters of int8 are equal. Rescale inputs of uint8 to the output."""
    for x in xs:
        check_types(op, ("INT8 INT8", "UINT8 UINT8", "INT16 INT16", "INT4 INT4"), x, y)
    if op.fused_activation_function != "NONE":
        raise InvalidArgumentError(
            what="a fused activation on a concatenation of integers", found=op.fused_activation_function, wanted="NONE"
        )
    if y.type == "INT8":
        check_same(y, *xs)
    elif y.type == "INT16":
        check_symmetric(*xs, y)
    if y.type != "UINT8":
        return lambda arrays: joined(arrays, op.axis)
    check_scaled(*xs, y)
    inverse = _f(1) / y.scale

    def rescaled(x: Operand, q: np.ndarray) -> np.ndarray:
        if x.scale == y.scale and x.zero_point == y.zero_point:
            return q
        factor = x.scale * inverse
        real = q.astype(_f) * factor + _f(-x.zero_point) * factor
        return y.saturated(round_away(real)).astype(np.uint8)

    return lambda arrays: np.concatenate([rescaled(x, q) for x, q in zip(xs, arrays)], op.axis)


def pack(op: Any, xs: tuple[Operand, ...], y: Operand) -> Callable[..., Any]:
    for x in xs:
        check_types(op, tuple(f"{t} {t}" for t in BYTES), x, y)
    check_same(y, *xs)
    result: Callable[..., Any] = op.parts
    return result


def _check_pad(op: Any, x: Operand, y: Operand, *more: str) -> None:
    check_types(op, tuple(f"{t} {t}" for t in (*BYTES, *more)), x, y)


def pad(op: Any, x: Operand, paddings: Operand, y: Operand) -> Callable[..., Any]:
    _check_pad(op, x, y)
    return lambda q, pairs: surrounded(q, [(int(a), int(b)) for a, b in pairs], y.zero_point)


def pad_v2(op: Any, x: Operand, paddings: Operand, value: Operand, y: Operand) -> Callable[..., Any]:
    _check_pad(op, x, y)
    if len(value.scales):
        check_types(op, tuple(f"{t} {t}" for t in BYTES), value, y)
        check_same(y, value)
    return lambda q, pairs, v: surrounded(q, [(int(a), int(b)) for a, b in pairs], v.reshape(-1)[0])


def space_to_batch(op: Any, x: Operand, block_shape: Operand, paddings: Operand, y: Operand) -> Callable[..., Any]:
    _check_pad(op, x, y, "UINT16")
    if x.type in BYTES:
        check_same(x, y)
    return lambda q, block, pairs: array_functions.space_to_batch(q, block.tolist(), pairs.tolist(), y.zero_point)
