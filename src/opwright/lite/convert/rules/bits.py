"""Rules for operators on the bits of integers, by xor and shifts.

Lives here: Invert, BitwiseAnd, BitwiseOr, LeftShift.  Not here: xor and right shift themselves, Bitcast (direct.py).
"""

from __future__ import annotations

import numpy as np

from ....core.dtypes import DType, int8, int16, int32, int64, uint8, uint32
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, Rewrite, RuleResult, number, only, rule_table
from .direct import BIT_TYPES

NARROW = (int8, int16, uint8)  # types that CAST converts to int32 and back


def _invert(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    if x.dtype is int64:
        return rewriter.emit("SUB", number(rewriter, -1, x), x)
    only(x, *BIT_TYPES)
    ones = np.array(-1).astype(x.dtype.np)
    return rewriter.emit("BITWISE_XOR", x, rewriter.constant(ones, x.dtype))


def _and(rewriter: LiteRewriter, x: Value, y: Value) -> Value:
    """Emit x & y of int32: x + y - (x ^ y) is twice that; in halves, so that it does not overflow."""
    half, unit = rewriter.constant(16, int32), rewriter.constant(1 << 16, int32)
    one = rewriter.constant(1, int32)

    def halves(v: Value) -> tuple[Value, Value]:
        high = rewriter.emit("RIGHT_SHIFT", v, half)
        return high, rewriter.emit("SUB", v, rewriter.emit("MUL", high, unit))

    def both(a: Value, b: Value) -> Value:
        twice = rewriter.emit("SUB", rewriter.emit("ADD", a, b), rewriter.emit("BITWISE_XOR", a, b))
        return rewriter.emit("RIGHT_SHIFT", twice, one)

    (xh, xl), (yh, yl) = halves(x), halves(y)
    return rewriter.emit("ADD", rewriter.emit("MUL", both(xh, yh), unit), both(xl, yl))


def _and_or(op: str) -> Rewrite:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        x, y = node.operands
        only(x, int32, uint32, *NARROW)

        def converted(v: Value, to: DType) -> Value:
            if v.dtype is to:
                return v
            if uint32 in (v.dtype, to):  # the same bits
                return rewriter.emit("BITCAST", v, output_type=to.name.upper())
            return rewriter.cast(v, to)

        a, b = (converted(v, int32) for v in (x, y))
        common = _and(rewriter, a, b)
        z = common if op == "BitwiseAnd" else rewriter.emit("ADD", rewriter.emit("BITWISE_XOR", a, b), common)
        return converted(z, x.dtype)

    return lower


def _left_shift(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Emit a product with 2^y, from a table, for shifts within the number of bits."""
    x, y = node.operands
    only(x, int32, int64)
    bits = 32 if x.dtype is int32 else 64
    powers = (np.uint64(1) << np.arange(bits, dtype=np.uint64)).astype(f"uint{bits}").view(x.dtype.np)
    if y.constant is not None:
        factor = rewriter.constant(powers[np.clip(y.constant, 0, bits - 1)], x.dtype)
    else:
        at = rewriter.emit(
            "MINIMUM", rewriter.emit("MAXIMUM", y, number(rewriter, 0, y)), number(rewriter, bits - 1, y)
        )
        factor = rewriter.emit("GATHER", rewriter.constant(powers, x.dtype), rewriter.int32(at))
    return rewriter.emit("MUL", x, factor, like=node.outputs[0].spec)


BITS = rule_table(
    RewriteRule("invert", "Invert", _invert, "xor with ones; -1 - x"),
    RewriteRule("bitwise_and", "BitwiseAnd", _and_or("BitwiseAnd"), "x + y = (x ^ y) + 2 (x & y)"),
    RewriteRule("bitwise_or", "BitwiseOr", _and_or("BitwiseOr"), "x | y = (x ^ y) + (x & y), without carries"),
    RewriteRule("left_shift", "LeftShift", _left_shift, "a product with a power of 2, which drops the same bits"),
)
