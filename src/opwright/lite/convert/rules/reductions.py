"""Rules for reductions over axes and by segment, and for searches and sorts along an axis.

Lives here: Sum, Mean, Max, Min, Prod, All, Any; ArgMax, ArgMin, TopK, Sort; reductions of sorted segments, bincounts,
histograms, confusion matrices.
Not here: running sums (direct.py, sequences.py), softmax and norms (nn.py), scatters (indexing.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import bfloat16, float16, float32, int8, int16, int32, int64, uint8, uint16, uint32
from ....core.specs import TensorSpec
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .direct import front
from .emission import number, only, rank_of, size_along


def axes_tensor(rewriter: LiteRewriter, x: Value, axis: Sequence[int] | None) -> Value:
    """Return the axes as a constant, counted from the front if the rank is known; all of them for None."""
    rank = x.spec.shape.rank
    if axis is not None:
        return rewriter.int32([front(a, rank) for a in axis])
    if rank is not None:
        return rewriter.int32(range(rank))
    zero, one = rewriter.constant(0, int32), rewriter.constant(1, int32)
    return rewriter.emit("RANGE", zero, rewriter.emit("RANK", x), one, like=TensorSpec([None], int32))


def reduction(op: str, lite: str) -> RewriteRule:
    """Return a rule for a reduction, whose attribute `axis` is an operand of the lite operator."""

    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (x,), axis, keep = node.operands, node.attrs["axis"], node.attrs["keepdims"]
        if axis == () or x.spec.shape.rank == 0:
            return x  # nothing to reduce
        return rewriter.emit(lite, x, axes_tensor(rewriter, x, axis), keep_dims=keep, like=node.outputs[0].spec)

    return RewriteRule(lite.lower(), op, lower)


def _arg(op: str, lite: str) -> RewriteRule:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (x,), dtype = node.operands, node.attrs["output_type"]
        axis = rewriter.constant(front(node.attrs["axis"], x.spec.shape.rank), int32)
        if dtype in (int32, int64):
            return rewriter.emit(lite, x, axis, output_type=dtype.name.upper(), like=node.outputs[0].spec)
        return rewriter.cast(rewriter.emit(lite, x, axis, output_type="INT32"), dtype)

    return RewriteRule(lite.lower(), op, lower)


def _top_k(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, k = node.operands
    values, indices = rewriter.emit_many(
        "TOPK_V2", x, rewriter.int32(k) if k.dtype in (int16, int64) else k, likes=[node.outputs[0].spec]
    )
    dtype = node.outputs[1].dtype
    return values, indices if dtype is int32 else rewriter.cast(indices, dtype)


WIDER = {**dict.fromkeys((int8, uint8, int16, uint16), int32), uint32: int64, float16: float32, bfloat16: float32}
"""By dtype, one in which its numbers are sorted alike."""


def _sort(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Lower to the top n of n, largest first; ascending, the top n of -x, of ~x = -1 - x for integers (which never
    overflows)."""
    (x,) = node.operands
    n = x.spec.shape.dims[-1] if x.spec.shape.dims else None
    if n is None:
        return NoMatch("TOPK_V2 needs to know how many there are")

    dtype = WIDER.get(x.dtype, x.dtype)  # of others TOPK_V2 or SUB has no kernel
    x = x if dtype is x.dtype else rewriter.cast(x, dtype)

    def turn(v: Value) -> Value:
        if node.attrs["direction"] == "DESCENDING":
            return v
        if not v.dtype.is_integer:
            return rewriter.emit("NEG", v)
        return rewriter.emit("SUB", rewriter.constant(-1, v.dtype), v)

    values, indices = rewriter.emit_many("TOPK_V2", turn(x), rewriter.constant(n, int32))
    values, wanted = turn(values), node.outputs[0].dtype
    return values if values.dtype is wanted else rewriter.cast(values, wanted), indices


REDUCTIONS = rule_table(
    *(
        reduction(op, lite)
        for op, lite in (
            ("Sum", "SUM"),
            ("Mean", "MEAN"),
            ("Max", "REDUCE_MAX"),
            ("Min", "REDUCE_MIN"),
            ("Prod", "REDUCE_PROD"),
            ("All", "REDUCE_ALL"),
            ("Any", "REDUCE_ANY"),
        )
    ),
    _arg("ArgMax", "ARG_MAX"),
    _arg("ArgMin", "ARG_MIN"),
    RewriteRule("topk_v2", "TopK", _top_k),
    RewriteRule("sort", "Sort", _sort, "TOPK_V2 is stable and puts NaN last, as Sort does"),
)


def _count_of(rewriter: LiteRewriter, ids: Value) -> Value:
    """Return one more than the last id, which is the greatest."""
    if ids.constant is not None:
        return rewriter.constant(int(ids.constant.max(initial=-1)) + 1, int32)
    return rewriter.emit("ADD", rewriter.emit("REDUCE_MAX", ids, rewriter.int32([0])), rewriter.constant(1, int32))


def _members(rewriter: LiteRewriter, ids: Value, count: Value, x: Value) -> Value:
    """Return the number of rows of each segment, float32, shaped to broadcast to x."""
    ones = rewriter.emit("FILL", rewriter.emit("SHAPE", ids, out_type="INT32"), rewriter.constant(1.0, float32))
    members = rewriter.emit("UNSORTED_SEGMENT_SUM", ones, ids, count)
    rank = rank_of(x)
    return members if rank == 1 else rewriter.emit("RESHAPE", members, rewriter.int32([-1, *[1] * (rank - 1)]))


def _compact(ids: Value) -> bool:
    """Return whether the ids are known to be 0, 1, 2 ... without gaps, as SEGMENT_SUM requires."""
    constant = ids.constant
    return constant is not None and constant.size > 0 and constant[0] == 0 and bool((np.diff(constant) <= 1).all())


def _segment(op: str) -> Any:
    kind = op.removeprefix("Segment")

    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        x, ids = next(node.operands), rewriter.int32(list(node.operands)[1])
        only(x, float32, int32)
        like = node.outputs[0].spec
        if kind == "Sum" and _compact(ids):
            return rewriter.emit("SEGMENT_SUM", x, ids, like=like)
        if kind == "Mean" and x.dtype is not float32:
            return NoMatch("means of integers are cut toward zero")
        count = _count_of(rewriter, ids)
        reduced = rewriter.emit(
            f"UNSORTED_SEGMENT_{'SUM' if kind == 'Mean' else kind.upper()}", x, ids, count, like=like
        )
        if kind in ("Sum", "Prod") or (kind in ("Max", "Min") and _compact(ids)):
            return reduced
        members = _members(rewriter, ids, count, x)
        if kind == "Mean":
            return rewriter.emit(
                "DIV", reduced, rewriter.emit("MAXIMUM", members, rewriter.constant(1.0, float32)), like=like
            )
        some = rewriter.emit("GREATER", members, rewriter.constant(0.0, float32))
        return rewriter.emit("SELECT_V2", some, reduced, number(rewriter, 0, x), like=like)

    return lower


def _bincount(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, size, weights = node.operands
    if rank_of(x) != 1:
        return NoMatch("rows are counted each by itself, which UNSORTED_SEGMENT_SUM does not")
    x, size = rewriter.int32(x), rewriter.int32(size)
    only(weights, float32, int32)
    count = weights.spec.shape.num_elements()
    if count is None:
        return NoMatch("whether there are weights is not known")
    ones = count == 0 or node.attrs["binary_output"]
    if ones:
        shape = rewriter.emit("SHAPE", x, out_type="INT32")
        weights = rewriter.emit("FILL", shape, number(rewriter, 1, weights))
    inside = rewriter.emit("SELECT_V2", rewriter.emit("LESS", x, size), x, rewriter.constant(-1, int32))
    y = rewriter.emit("UNSORTED_SEGMENT_SUM", weights, inside, size, like=node.outputs[0].spec)
    return rewriter.emit("MINIMUM", y, number(rewriter, 1, y)) if node.attrs["binary_output"] else y


def _histogram(node: Node, rewriter: LiteRewriter) -> RuleResult:
    values, bounds, count = node.operands
    only(values, float32)
    parts = rewriter.emit_many("UNPACK", bounds, num=2, axis=0)
    width = rewriter.emit("SUB", parts[1], parts[0])
    scaled = rewriter.emit("DIV", rewriter.emit("SUB", values, parts[0]), width)
    last = rewriter.emit("SUB", count, rewriter.constant(1, int32))
    at = rewriter.emit("FLOOR", rewriter.emit("MUL", scaled, rewriter.cast(count, float32)))
    at = rewriter.emit("MINIMUM", rewriter.emit("MAXIMUM", at, number(rewriter, 0, at)), rewriter.cast(last, float32))
    flat = rewriter.emit("RESHAPE", rewriter.cast(at, int32), rewriter.int32([-1]))
    ones = rewriter.emit("FILL", rewriter.emit("SHAPE", flat, out_type="INT32"), rewriter.constant(1, int32))
    y = rewriter.emit("UNSORTED_SEGMENT_SUM", ones, flat, count, like=node.outputs[0].spec.with_dtype(int32))
    dtype = node.outputs[0].dtype
    return y if dtype is int32 else rewriter.cast(y, dtype)


def _confusion(node: Node, rewriter: LiteRewriter) -> RuleResult:
    labels, predictions, classes, weights = node.operands
    n = size_along(rewriter, classes, 0) if rank_of(classes) else rewriter.int32(classes)
    pairs = rewriter.emit("PACK", (rewriter.int32(labels), rewriter.int32(predictions)), values_count=2, axis=1)
    shape = (
        rewriter.emit("PACK", (n, n), values_count=2) if n.constant is None else rewriter.int32([int(n.constant)] * 2)
    )
    return rewriter.emit("SCATTER_ND", pairs, weights, shape, like=node.outputs[0].spec)


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
