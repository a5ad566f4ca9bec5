"""Rules of bits: logic, shifts, counts, reinterpretation.

Lives here: primitives of integers and bool. Not here: arithmetic (elementwise.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import as_dtype
from ....ops import array, bitwise, math
from ...importing import tensor_of
from ..execution import BROADCASTING, RULES, JaxprContext
from ..operands import cast, like, operands, shaped

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def bits(x: Any) -> int:
    """Return the bits of an integer's dtype."""
    return int(x.dtype.size) * 8


def _logic(name: str, of_bool: Any, of_integers: Any) -> None:
    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        x, y = operands(inputs)
        return shaped((of_bool if x.dtype.is_bool else of_integers)(x, y), context.shape)


_logic("and", math.logical_and, bitwise.bitwise_and)
_logic("or", math.logical_or, bitwise.bitwise_or)
_logic("xor", math.logical_xor, bitwise.bitwise_xor)
BROADCASTING.update(("and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic"))


@RULES.rule("not")
def invert(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return all bits inverted."""
    x = tensor_of(inputs[0])
    return math.logical_not(x) if x.dtype.is_bool else bitwise.invert(x)


def _shift(name: str, function: Any, dtypes: Any, fill: str) -> None:
    """Add a shift in which counts outside of [0, bits) give what shifts of one bit at a time give, as XLA."""

    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        x, count = operands(inputs)
        dtype, width = x.dtype, bits(x)
        kind = as_dtype(dtypes[dtype.size])
        counts = array.bitcast(count, as_dtype(UNSIGNED[dtype.size])) if not count.dtype.is_unsigned else count
        inside = math.less(counts, like(width, counts))
        last = like(width - 1, counts)
        bounded = array.where(inside, counts, last)
        bounded = array.bitcast(bounded, kind) if bounded.dtype is not kind else bounded
        moved = function(array.bitcast(x, kind) if dtype is not kind else x, bounded)
        if fill == "zero":
            moved = array.where(inside, moved, like(0, moved))
        return shaped(array.bitcast(moved, dtype) if moved.dtype is not dtype else moved, context.shape)


_shift("shift_left", bitwise.left_shift, UNSIGNED, "zero")
_shift("shift_right_logical", bitwise.right_shift, UNSIGNED, "zero")
_shift("shift_right_arithmetic", bitwise.right_shift, SIGNED, "sign")


def rotate_left(x: Any, count: int) -> Any:
    """Return uint32 rotated by a static number of bits between 1 and 31."""
    return bitwise.bitwise_or(bitwise.left_shift(x, like(count, x)), bitwise.right_shift(x, like(32 - count, x)))


@RULES.rule("population_count")
def population_count(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return how many bits are set: sums of neighbouring fields of 1, 2, 4, ... bits."""
    x = tensor_of(inputs[0])
    dtype, width = x.dtype, bits(x)
    y = array.bitcast(x, as_dtype(UNSIGNED[dtype.size]))
    field = 1
    while field < width:
        mask = like(sum(((1 << field) - 1) << i for i in range(0, width, 2 * field)), y)
        low = bitwise.bitwise_and(y, mask)
        y = math.add(low, bitwise.bitwise_and(bitwise.right_shift(y, like(field, y)), mask))
        field *= 2
    return array.bitcast(y, dtype)


@RULES.rule("clz")
def leading_zeros(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return how many high bits are zero: the bits that are not set once every bit below the highest is."""
    x = tensor_of(inputs[0])
    dtype, width = x.dtype, bits(x)
    y = array.bitcast(x, as_dtype(UNSIGNED[dtype.size]))
    distance = 1
    while distance < width:
        y = bitwise.bitwise_or(y, bitwise.right_shift(y, like(distance, y)))
        distance *= 2
    return population_count(context, [array.bitcast(bitwise.invert(y), dtype)], params)


@RULES.rule("mulhi")
def multiply_high(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the high half of the product of integers of up to 32 bits."""
    x, y = operands(inputs)
    if x.dtype.size > 4:
        raise ValueError("the high half of 64-bit products needs 128-bit integers")
    wide = np.uint64 if x.dtype.is_unsigned else np.int64
    product = math.multiply(cast(x, wide), cast(y, wide))
    return cast(bitwise.right_shift(product, like(bits(x), product)), x.dtype)


@RULES.rule("bitcast_convert_type")
def bitcast(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the bytes as another dtype; a last axis appears or disappears where widths differ."""
    x, target = tensor_of(inputs[0]), as_dtype(params["new_dtype"])
    return x if x.dtype is target else array.bitcast(x, target)
