"""Rules for rows joined by the segment each belongs to, and for counting.

Lives here: reductions of sorted segments, bincounts, histograms, confusion matrices.
Not here: scatters into tensors (scattering.py), reductions over axes (reductions.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import float32, int32
from ....graph import Node, Value
from ....graph.passes.rewriting import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .building import number, only, rank_of, size_along


def _count_of(low: LiteRewriter, ids: Value) -> Value:
    """One more than the last id, which is the greatest."""
    if ids.constant is not None:
        return low.constant(int(ids.constant.max(initial=-1)) + 1, int32)
    return low.emit("ADD", low.emit("REDUCE_MAX", ids, low.int32([0])), low.constant(1, int32))


def _members(low: LiteRewriter, ids: Value, count: Value, x: Value) -> Value:
    """How many rows each segment has, float32, shaped to be broadcast to x."""
    ones = low.emit("FILL", low.emit("SHAPE", ids, out_type="INT32"), low.constant(1.0, float32))
    members = low.emit("UNSORTED_SEGMENT_SUM", ones, ids, count)
    rank = rank_of(x)
    return members if rank == 1 else low.emit("RESHAPE", members, low.int32([-1, *[1] * (rank - 1)]))


def _compact(ids: Value) -> bool:
    """Whether the ids are known to be 0, 1, 2 ... without gaps, which SEGMENT_SUM wants."""
    found = ids.constant
    return found is not None and found.size > 0 and found[0] == 0 and bool((np.diff(found) <= 1).all())


def _segment(op: str) -> Any:
    kind = op.removeprefix("Segment")

    def lower(node: Node, low: LiteRewriter) -> RuleResult:
        x, ids = next(node.operands), low.int32(list(node.operands)[1])
        only(x, float32, int32)
        like = node.outputs[0].spec
        if kind == "Sum" and _compact(ids):
            return low.emit("SEGMENT_SUM", x, ids, like=like)
        if kind == "Mean" and x.dtype is not float32:
            return NoMatch("means of integers are cut toward zero")
        count = _count_of(low, ids)
        reduced = low.emit(f"UNSORTED_SEGMENT_{'SUM' if kind == 'Mean' else kind.upper()}", x, ids, count, like=like)
        if kind in ("Sum", "Prod") or (kind in ("Max", "Min") and _compact(ids)):
            return reduced
        members = _members(low, ids, count, x)
        if kind == "Mean":
            return low.emit("DIV", reduced, low.emit("MAXIMUM", members, low.constant(1.0, float32)), like=like)
        some = low.emit("GREATER", members, low.constant(0.0, float32))
        return low.emit("SELECT_V2", some, reduced, number(low, 0, x), like=like)

    return lower


def _bincount(node: Node, low: LiteRewriter) -> RuleResult:
    x, size, weights = node.operands
    if rank_of(x) != 1:
        return NoMatch("rows are counted each by itself, which UNSORTED_SEGMENT_SUM does not")
    x, size = low.int32(x), low.int32(size)
    only(weights, float32, int32)
    count = weights.spec.shape.num_elements()
    if count is None:
        return NoMatch("whether there are weights is not known")
    ones = count == 0 or node.attrs["binary_output"]
    if ones:
        shape = low.emit("SHAPE", x, out_type="INT32")
        weights = low.emit("FILL", shape, number(low, 1, weights))
    inside = low.emit("SELECT_V2", low.emit("LESS", x, size), x, low.constant(-1, int32))
    y = low.emit("UNSORTED_SEGMENT_SUM", weights, inside, size, like=node.outputs[0].spec)
    return low.emit("MINIMUM", y, number(low, 1, y)) if node.attrs["binary_output"] else y


def _histogram(node: Node, low: LiteRewriter) -> RuleResult:
    values, bounds, count = node.operands
    only(values, float32)
    parts = low.emit_many("UNPACK", bounds, num=2, axis=0)
    width = low.emit("SUB", parts[1], parts[0])
    scaled = low.emit("DIV", low.emit("SUB", values, parts[0]), width)
    last = low.emit("SUB", count, low.constant(1, int32))
    at = low.emit("FLOOR", low.emit("MUL", scaled, low.cast(count, float32)))
    at = low.emit("MINIMUM", low.emit("MAXIMUM", at, number(low, 0, at)), low.cast(last, float32))
    flat = low.emit("RESHAPE", low.cast(at, int32), low.int32([-1]))
    ones = low.emit("FILL", low.emit("SHAPE", flat, out_type="INT32"), low.constant(1, int32))
    y = low.emit("UNSORTED_SEGMENT_SUM", ones, flat, count, like=node.outputs[0].spec.with_dtype(int32))
    wanted = node.outputs[0].dtype
    return y if wanted is int32 else low.cast(y, wanted)


def _confusion(node: Node, low: LiteRewriter) -> RuleResult:
    labels, predictions, classes, weights = node.operands
    n = size_along(low, classes, 0) if rank_of(classes) else low.int32(classes)
    pairs = low.emit("PACK", (low.int32(labels), low.int32(predictions)), values_count=2, axis=1)
    shape = low.emit("PACK", (n, n), values_count=2) if n.constant is None else low.int32([int(n.constant)] * 2)
    return low.emit("SCATTER_ND", pairs, weights, shape, like=node.outputs[0].spec)


_GAPS = "as many segments as the last id says; SEGMENT_SUM takes no gaps"

SEGMENTS = rule_table(
    *(
        RewriteRule(f"segment_{kind.lower()}", f"Segment{kind}", _segment(f"Segment{kind}"), _GAPS)
        for kind in ("Sum", "Prod", "Max", "Min", "Mean")
    ),
    RewriteRule(
        "bincount", "DenseBincount", _bincount, "a sum of ones for each number; what is too large goes to no segment"
    ),
    RewriteRule("histogram", "HistogramFixedWidth", _histogram, "its definition: a sum of ones for each interval"),
    RewriteRule("confusion_matrix", "ConfusionMatrix", _confusion, "SCATTER_ND adds up what falls on one place"),
)
