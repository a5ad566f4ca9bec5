"""Rules for operators on the bits of integers, and for FAKE_QUANT.

Lives here: operators built from xor and shifts; FakeQuantWithMinMax*, with constant bounds, as FAKE_QUANT or, for
bounds that it does not take, in steps.
Not here: xor and right shift themselves, Bitcast (direct.py), quantisation by the bounds (../quantize).
"""

from __future__ import annotations

import numpy as np

from ....core.dtypes import float32, int8, int16, int32, int64, uint8
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, Rewrite, RuleResult, constant_of, number, only, rule_table
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
        only(x, int32, *NARROW)
        a, b = (v if v.dtype is int32 else rewriter.cast(v, int32) for v in (x, y))
        common = _and(rewriter, a, b)
        z = common if op == "BitwiseAnd" else rewriter.emit("ADD", rewriter.emit("BITWISE_XOR", a, b), common)
        return z if x.dtype is int32 else rewriter.cast(z, x.dtype)

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
        if x.dtype is int64:
            return NoMatch("shifts of int64 must be constants")
        at = rewriter.emit(
            "MINIMUM", rewriter.emit("MAXIMUM", y, number(rewriter, 0, y)), number(rewriter, bits - 1, y)
        )
        factor = rewriter.emit("GATHER", rewriter.constant(powers, x.dtype), at)
    return rewriter.emit("MUL", x, factor, like=node.outputs[0].spec)


BITS = rule_table(
    RewriteRule("invert", "Invert", _invert, "xor with ones; -1 - x"),
    RewriteRule("bitwise_and", "BitwiseAnd", _and_or("BitwiseAnd"), "x + y = (x ^ y) + 2 (x & y)"),
    RewriteRule("bitwise_or", "BitwiseOr", _and_or("BitwiseOr"), "x | y = (x ^ y) + (x & y), without carries"),
    RewriteRule("left_shift", "LeftShift", _left_shift, "a product with a power of 2, which drops the same bits"),
)


def _bounds(node: Node) -> tuple[Value, np.ndarray, np.ndarray]:
    if "min" in node.attrs:
        (x,) = node.operands
        low, high = (np.array(node.attrs[name], np.float32) for name in ("min", "max"))
    else:
        x, *bounds = node.operands
        low, high = (constant_of(b, "a bound") for b in bounds)
    only(x, float32)
    return x, low, high


def _whole(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, least, most = _bounds(node)
    if least.ndim or not (least <= 0 <= most and least < most) or node.attrs["narrow_range"]:
        return NoMatch("FAKE_QUANT takes one pair of bounds, with 0 between them, and no narrow range")
    return rewriter.emit("FAKE_QUANT", x, min=float(least), max=float(most), num_bits=node.attrs["num_bits"])


def _steps(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Emit a clamp, then rounding by FLOOR, as the kernel computes."""
    x, least, most = _bounds(node)
    first, last = np.float32(node.attrs["narrow_range"]), np.float32(2 ** node.attrs["num_bits"] - 1)
    scale = (most - least) / (last - first)
    if not (np.isfinite(scale) & (scale > 0)).all():
        return NoMatch("bounds that are equal or apart by more than a number")
    zero = np.floor(np.clip(first - least / scale, first, last) + np.float32(0.5))
    start, end, scale = (
        rewriter.constant(v.astype(np.float32), float32) for v in ((first - zero) * scale, (last - zero) * scale, scale)
    )
    clipped = rewriter.emit("MINIMUM", rewriter.emit("MAXIMUM", x, start), end)
    half = rewriter.constant(np.float32(0.5), float32)
    steps = rewriter.emit(
        "FLOOR", rewriter.emit("ADD", rewriter.emit("DIV", rewriter.emit("SUB", clipped, start), scale), half)
    )
    return rewriter.emit("ADD", rewriter.emit("MUL", steps, scale), start, like=node.outputs[0].spec)


_FAKE_QUANT = "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars"

QUANTIZING = rule_table(
    RewriteRule("fake_quant", _FAKE_QUANT, _whole),
    RewriteRule("fake_quant_by_steps", f"{_FAKE_QUANT} FakeQuantWithMinMaxVarsPerChannel", _steps, "its definition"),
)
