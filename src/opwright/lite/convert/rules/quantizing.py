"""Rules for training before quantisation: FAKE_QUANT, and its steps where it does not take the bounds.

Lives here: FakeQuantWithMinMax*, whose bounds are constants by now.  Not here: quantising by them (../quantize).
"""

from __future__ import annotations

import numpy as np

from ....core.dtypes import float32
from ....graph import Node, Value
from ....graph.passes.rewriting import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .building import constant_of, only


def _bounds(node: Node) -> tuple[Value, np.ndarray, np.ndarray]:
    if "min" in node.attrs:
        (x,) = node.operands
        low, high = (np.array(node.attrs[name], np.float32) for name in ("min", "max"))
    else:
        x, *bounds = node.operands
        low, high = (constant_of(b, "a bound") for b in bounds)
    only(x, float32)
    return x, low, high


def _whole(node: Node, low: LiteRewriter) -> RuleResult:
    x, least, most = _bounds(node)
    if least.ndim or not (least <= 0 <= most and least < most) or node.attrs["narrow_range"]:
        return NoMatch("FAKE_QUANT takes one pair of bounds, with 0 between them, and no narrow range")
    return low.emit("FAKE_QUANT", x, min=float(least), max=float(most), num_bits=node.attrs["num_bits"])


def _steps(node: Node, low: LiteRewriter) -> RuleResult:
    """Clipped, then rounded by FLOOR; what the kernel does."""
    x, least, most = _bounds(node)
    first, last = np.float32(node.attrs["narrow_range"]), np.float32(2 ** node.attrs["num_bits"] - 1)
    scale = (most - least) / (last - first)
    if not (np.isfinite(scale) & (scale > 0)).all():
        return NoMatch("bounds that are equal or apart by more than a number")
    zero = np.floor(np.clip(first - least / scale, first, last) + np.float32(0.5))
    start, end, scale = (
        low.constant(v.astype(np.float32), float32) for v in ((first - zero) * scale, (last - zero) * scale, scale)
    )
    clipped = low.emit("MINIMUM", low.emit("MAXIMUM", x, start), end)
    half = low.constant(np.float32(0.5), float32)
    steps = low.emit("FLOOR", low.emit("ADD", low.emit("DIV", low.emit("SUB", clipped, start), scale), half))
    return low.emit("ADD", low.emit("MUL", steps, scale), start, like=node.outputs[0].spec)


QUANTIZING = rule_table(
    *(RewriteRule("fake_quant", op, _whole) for op in ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars")),
    *(
        RewriteRule("fake_quant_by_steps", op, _steps, "its definition")
        for op in ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
    ),
)
