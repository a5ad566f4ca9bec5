"""Patterns that remove identities and fold constants of the lite dialect.

Lives here: nodes that return an operand, nodes of constants, chains of constants.
Not here: merging into linear operators (operator_fusion.py, linear_operators.py), transposes and reshapes (layout.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.errors import InvalidArgumentError
from ...graph import Node, Value
from ...graph.passes.rewrite_rules import RewriteRule
from .operator_fusion import NO, is_number
from .rewriter import LiteRewriter, RuleResult, fused_activation, rule_table

MOST_ELEMENTS = 1 << 10  # that computing a constant may add to the file
FOLDED = (
    "RESHAPE",
    "TRANSPOSE",
    "EXPAND_DIMS",
    "SQUEEZE",
    "CAST",
    "SLICE",
    "STRIDED_SLICE",
    "GATHER",
    "PACK",
    "CONCATENATION",
    "ADD",
    "SUB",
    "MUL",
    "DIV",
    "NEG",
    "SQRT",
    "RSQRT",
    "SQUARE",
    "SHAPE",
    "REDUCE_PROD",
    "BROADCAST_ARGS",
    "MAXIMUM",
    "MINIMUM",
    "FLOOR_DIV",
    "FLOOR_MOD",
)
KINDS = "fiub"


def _fold(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Fold a node of constants, unless the result is much larger."""
    operands = tuple(node.operands)
    constants = [v.constant for v in operands]
    if not operands or any(c is None or c.dtype.kind not in KINDS for c in constants):
        return NO
    size = node.outputs[0].spec.shape.num_elements()
    if size is None or size > max(MOST_ELEMENTS, *(c.size for c in constants if c is not None)):
        return NO
    try:
        (array,) = node.op.evaluate(node.inputs, node.attrs)
    except InvalidArgumentError:  # such as a division by 0, which is the model's to fail at
        return NO
    return rewriter.constant(np.ascontiguousarray(array).reshape(array.shape), node.outputs[0].dtype)


def _same_shape(x: Value, node: Node) -> bool:
    """Return whether the result has the shape of `x`, as known or because no other operand can change it."""
    dims, result = x.spec.shape.dims, node.outputs[0].spec.shape.dims
    if dims is None or result is None or x.dtype is not node.outputs[0].dtype:
        return False
    others = [v.spec.shape.dims for v in node.operands if v is not x]
    if any(o is None or len(o) > len(dims) for o in others):
        return False
    return all(d in (1, f) and d is not None for o in others for d, f in zip(reversed(o or ()), reversed(dims)))


def _neutral(number: float, commutes: bool) -> Any:
    """Match x + 0, x - 0, x * 1, x
    1."""

    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        operands = tuple(node.operands)
        for x, c in (operands, operands[::-1]) if commutes else (operands,):
            if fused_activation(node) == "NONE" and is_number(c, number) and _same_shape(x, node):
                return x
        return NO

    return lower


def _no_padding(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, paddings, *_ = node.operands
    return x if paddings.constant is not None and not paddings.constant.any() else NO


def _whole_slice(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, begin, size = node.operands
    dims = x.spec.shape.dims
    if dims is None or begin.constant is None or size.constant is None or begin.constant.any():
        return NO
    return x if all(s in (-1, d) for s, d in zip(size.constant.tolist(), dims)) else NO


def _one_tile(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, multiples = node.operands
    return x if multiples.constant is not None and (multiples.constant == 1).all() else NO


def _as_broad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x = next(node.operands)
    shape = x.spec.shape
    return x if shape.is_fully_defined() and shape == node.outputs[0].spec.shape else NO


def _same_type(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return x if x.dtype is node.outputs[0].dtype else NO


def _one_part(node: Node, rewriter: LiteRewriter) -> RuleResult:
    operands = tuple(node.operands)
    return operands[0] if len(operands) == 1 and fused_activation(node) == "NONE" else NO


def _chain(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Reassociate (x + a) + b to x + (a + b), and products likewise."""
    operands = tuple(node.operands)
    for x, b in (operands, operands[::-1]):
        inner = rewriter.producer(x, node.op.name)
        if inner is None or b.constant is None or fused_activation(inner) != "NONE" or x.dtype is not float32:
            continue
        first, second = inner.operands
        for y, a in ((first, second), (second, first)):
            if a.constant is None or y.constant is not None:
                continue
            joined = a.constant + b.constant if node.op.name == "ADD" else a.constant * b.constant
            if joined.size == max(a.constant.size, b.constant.size) and np.isfinite(joined).all():
                return rewriter.recreate(node, y, rewriter.constant(joined, float32))
    return NO


IDENTITIES = rule_table(
    *(RewriteRule("fold", op, _fold, "its operands are constants") for op in FOLDED),
    RewriteRule("add_zero", "ADD", _neutral(0, True), "x + 0 is x, but for the sign of a zero"),
    RewriteRule("subtract_zero", "SUB", _neutral(0, False), "x - 0 is x"),
    RewriteRule("multiply_by_one", "MUL", _neutral(1, True), "x * 1 is x"),
    RewriteRule("divide_by_one", "DIV", _neutral(1, False), "x / 1 is x"),
    RewriteRule("no_padding", "PAD", _no_padding, "nothing is put around"),
    RewriteRule("no_padding", "PADV2", _no_padding, "nothing is put around"),
    RewriteRule("no_padding", "MIRROR_PAD", _no_padding, "nothing is put around"),
    RewriteRule("whole_slice", "SLICE", _whole_slice, "all is taken"),
    RewriteRule("one_tile", "TILE", _one_tile, "nothing is repeated"),
    RewriteRule("as_broad", "BROADCAST_TO", _as_broad, "it has that shape"),
    RewriteRule("same_type", "CAST", _same_type, "it has that type"),
    RewriteRule("one_part", "CONCATENATION", _one_part, "there is nothing to join"),
    RewriteRule("chain", "ADD", _chain, "sums of constants are constants"),
    RewriteRule("chain", "MUL", _chain, "products of constants are constants"),
)
