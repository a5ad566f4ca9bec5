"""Rules for operators on the bits of integers.

Lives here: operators built of xor and shifts.  Not here: xor and right shift themselves, Bitcast (direct.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import int8, int16, int32, int64, uint8
from ....graph import Node, Value
from ....graph.passes.rewriting import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .building import number, only
from .direct import BIT_TYPES

NARROW = (int8, int16, uint8)  # what CAST takes to int32 and back


def _invert(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    if x.dtype is int64:
        return low.emit("SUB", number(low, -1, x), x)
    only(x, *BIT_TYPES)
    ones = np.array(-1).astype(x.dtype.np)
    return low.emit("BITWISE_XOR", x, low.constant(ones, x.dtype))


def _and(low: LiteRewriter, x: Value, y: Value) -> Value:
    """x & y of int32: x + y - (x ^ y) is twice that; in halves, so that nothing is lost at the top."""
    half, unit = low.constant(16, int32), low.constant(1 << 16, int32)
    one = low.constant(1, int32)

    def halves(v: Value) -> tuple[Value, Value]:
        high = low.emit("RIGHT_SHIFT", v, half)
        return high, low.emit("SUB", v, low.emit("MUL", high, unit))

    def both(a: Value, b: Value) -> Value:
        twice = low.emit("SUB", low.emit("ADD", a, b), low.emit("BITWISE_XOR", a, b))
        return low.emit("RIGHT_SHIFT", twice, one)

    (xh, xl), (yh, yl) = halves(x), halves(y)
    return low.emit("ADD", low.emit("MUL", both(xh, yh), unit), both(xl, yl))


def _and_or(op: str) -> Any:
    def lower(node: Node, low: LiteRewriter) -> RuleResult:
        x, y = node.operands
        only(x, int32, *NARROW)
        a, b = (v if v.dtype is int32 else low.cast(v, int32) for v in (x, y))
        common = _and(low, a, b)
        z = common if op == "BitwiseAnd" else low.emit("ADD", low.emit("BITWISE_XOR", a, b), common)
        return z if x.dtype is int32 else low.cast(z, x.dtype)

    return lower


def _left_shift(node: Node, low: LiteRewriter) -> RuleResult:
    """A product with 2^y: the powers are looked up, for numbers of bits that are none the outermost count."""
    x, y = node.operands
    only(x, int32, int64)
    bits = 32 if x.dtype is int32 else 64
    powers = (np.uint64(1) << np.arange(bits, dtype=np.uint64)).astype(f"uint{bits}").view(x.dtype.np)
    if y.constant is not None:
        factor = low.constant(powers[np.clip(y.constant, 0, bits - 1)], x.dtype)
    else:
        if x.dtype is int64:
            return NoMatch("shifts of int64 must be constants")
        at = low.emit("MINIMUM", low.emit("MAXIMUM", y, number(low, 0, y)), number(low, bits - 1, y))
        factor = low.emit("GATHER", low.constant(powers, x.dtype), at)
    return low.emit("MUL", x, factor, like=node.outputs[0].spec)


BITS = rule_table(
    RewriteRule("invert", "Invert", _invert, "xor with ones; -1 - x"),
    RewriteRule("bitwise_and", "BitwiseAnd", _and_or("BitwiseAnd"), "x + y = (x ^ y) + 2 (x & y)"),
    RewriteRule("bitwise_or", "BitwiseOr", _and_or("BitwiseOr"), "x | y = (x ^ y) + (x & y), without carries"),
    RewriteRule("left_shift", "LeftShift", _left_shift, "a product with a power of 2, which drops the same bits"),
)
