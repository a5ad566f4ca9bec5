"""Rules for operators on the order of elements along an axis.

Lives here: SequenceMask, frames, running products, LinSpace, InTopK, UnravelIndex, ShiftByOne.
Not here: the Sequence* operators on packed sequences with offsets, which have no lite form.
"""

from __future__ import annotations

import numpy as np

from ....core.dtypes import bool as bool_
from ....core.dtypes import float32, int32, int64
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .direct import front
from .emission import constant_of, number, numbered, only, padded, picked, rank_of, reshaped, run, sizes, sliced


def _sequence_mask(node: Node, rewriter: LiteRewriter) -> RuleResult:
    lengths, *maximum = node.operands
    only(lengths, int32, int64)
    limit: Value
    if maximum:
        limit = rewriter.emit("RESHAPE", rewriter.int32(maximum[0]), rewriter.int32([]))
    elif node.attrs["maxlen"] > 0:
        limit = rewriter.constant(node.attrs["maxlen"], int32)
    else:
        limit = rewriter.emit("REDUCE_MAX", rewriter.int32(lengths), rewriter.int32(range(rank_of(lengths))))
    if limit.constant is not None:
        steps = rewriter.constant(np.arange(int(limit.constant)), int32)
    else:
        steps = rewriter.emit("RANGE", rewriter.constant(0, int32), limit, rewriter.constant(1, int32))
    column = rewriter.emit("EXPAND_DIMS", rewriter.int32(lengths), rewriter.int32([rank_of(lengths)]))
    inside = rewriter.emit("LESS", steps, column)
    dtype = node.attrs["out_dtype"]
    return inside if dtype is bool_ else rewriter.cast(inside, dtype)


def _frame(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, length, step, *value = node.operands
    axis, dims = front(node.attrs["axis"], rank_of(x)), sizes(x)
    if value:
        constant_of(value[0], "pad_value")
    numbers = [constant_of(v, "the length or step of the frames") for v in (length, step)]
    nowhere = np.zeros((), np.int32) if value else None
    places = run(node, numbered((dims[axis],)), *numbers, nowhere, axis=0) - 1
    if (places >= 0).all():
        return rewriter.emit("GATHER", x, rewriter.int32(places.tolist()), axis=axis, like=node.outputs[0].spec)
    if axis != rank_of(x) - 1:
        return NoMatch("padded frames are taken of the last dimension")
    return picked(rewriter, x, (dims[axis],), places, value[0])


def _overlap_and_add(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Add overlapping frames by TRANSPOSE_CONV, with a filter that puts element j at j."""
    x, step = node.operands
    only(x, float32)
    axis = front(node.attrs["axis"], rank_of(x) - 1)
    if axis != rank_of(x) - 2:
        return NoMatch("frames are put together along the last dimension")
    *lead, frames, length = x.spec.shape.dims or ()
    hop = int(constant_of(step, "frame_step"))
    if frames is None or length is None or None in lead:
        sizes(x)
        return NoMatch("")
    n = int(np.prod([d or 0 for d in lead], dtype=np.int64))
    out = (frames - 1) * hop + length
    if hop > length:
        return NoMatch("frames with gaps between them")
    image = reshaped(rewriter, x, [n, 1, frames, length])
    filters = rewriter.constant(np.eye(length, dtype=np.float32).reshape(1, 1, length, length), float32)
    y = rewriter.emit(
        "TRANSPOSE_CONV",
        rewriter.int32([n, 1, out, 1]),
        filters,
        image,
        None,
        padding="VALID",
        stride_h=1,
        stride_w=hop,
    )
    return reshaped(rewriter, y, [*lead, out])


def _shift_by_one(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return _moved(rewriter, x, front(node.attrs["axis"], rank_of(x)), 1, node.attrs["reverse"], None)


def _moved(rewriter: LiteRewriter, x: Value, axis: int, by: int, reverse: bool, fill: float | None) -> Value:
    """Shift elements by `by` along an axis, and fill with a number."""
    dims = x.spec.shape.dims or ()
    size = dims[axis]
    if size is None:
        sizes(x)
    rank, kept = len(dims), max(0, (size or 0) - by)
    begin, count, pads = [0] * rank, [-1] * rank, [(0, 0)] * rank
    begin[axis], count[axis] = (by if reverse else 0), kept
    pads[axis] = (0, by) if reverse else (by, 0)
    return padded(rewriter, sliced(rewriter, x, begin, count), pads, fill)


def _cumprod(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Multiply by the elements 1, 2, 4, 8 ... before (Hillis and Steele 1986)."""
    (x,) = node.operands
    axis, reverse = front(node.attrs["axis"], rank_of(x)), node.attrs["reverse"]
    size = (x.spec.shape.dims or ())[axis]
    if size is None:
        return NoMatch("the number of factors is not known")
    if size == 0:
        return x
    y, by = x, 1
    if node.attrs["exclusive"]:
        y = _moved(rewriter, x, axis, 1, reverse, 1)
    while by < size:
        y = rewriter.emit("MUL", y, _moved(rewriter, y, axis, by, reverse, 1), like=x.spec)
        by *= 2
    return y


def _linspace(node: Node, rewriter: LiteRewriter) -> RuleResult:
    start, stop = node.operands
    only(start, float32)
    n = int(node.attrs["num"])
    weights = rewriter.constant(np.arange(n) / max(n - 1, 1), float32)
    rest = rewriter.constant(1 - np.arange(n) / max(n - 1, 1), float32)
    return rewriter.emit(
        "ADD", rewriter.emit("MUL", start, rest), rewriter.emit("MUL", stop, weights), like=node.outputs[0].spec
    )


def _in_top_k(node: Node, rewriter: LiteRewriter) -> RuleResult:
    targets, predictions, k = node.operands
    only(predictions, float32)
    classes = (predictions.spec.shape.dims or (None, None))[1]
    if classes is None:
        return NoMatch("the number of classes is not known")
    ids = rewriter.int32(targets)
    inside = rewriter.emit(
        "LOGICAL_AND",
        rewriter.emit("GREATER_EQUAL", ids, rewriter.constant(0, int32)),
        rewriter.emit("LESS", ids, rewriter.constant(classes, int32)),
    )
    safe = rewriter.emit("SELECT_V2", inside, ids, rewriter.constant(0, int32))
    column = rewriter.emit("EXPAND_DIMS", safe, rewriter.int32([1]))
    target = rewriter.emit("GATHER", predictions, column, axis=1, batch_dims=1)
    better = rewriter.cast(rewriter.emit("GREATER", predictions, target), int32)
    count = rewriter.emit("SUM", better, rewriter.int32([1]))
    finite = rewriter.emit("LESS", rewriter.emit("ABS", predictions), number(rewriter, np.inf, predictions))
    all_finite = rewriter.emit("REDUCE_ALL", finite, rewriter.int32([1]))
    among = rewriter.emit("LESS", count, rewriter.int32(k))
    return rewriter.emit(
        "LOGICAL_AND", rewriter.emit("LOGICAL_AND", among, inside), all_finite, like=node.outputs[0].spec
    )


def _unravel(node: Node, rewriter: LiteRewriter) -> RuleResult:
    places, dims = node.operands
    shape = constant_of(dims, "the shape").tolist()
    x = rewriter.int32(places)
    parts = []
    for i, d in enumerate(shape):
        stride = int(np.prod(shape[i + 1 :], dtype=np.int64))
        whole = rewriter.emit("FLOOR_DIV", x, rewriter.constant(stride, int32)) if stride > 1 else x
        parts.append(rewriter.emit("FLOOR_MOD", whole, rewriter.constant(d, int32)))
    y = rewriter.emit("PACK", tuple(parts), values_count=len(parts), axis=0)
    return y if places.dtype is int32 else rewriter.cast(y, places.dtype)


SEQUENCES = rule_table(
    RewriteRule("sequence_mask", "SequenceMask", _sequence_mask, "its definition"),
    RewriteRule("frames_by_gather", "Frame", _frame, "where each element of a frame comes from is known"),
    RewriteRule("overlap_and_add", "OverlapAndAdd", _overlap_and_add, "TRANSPOSE_CONV with ones puts frames together"),
    RewriteRule("shift_by_one", "ShiftByOne", _shift_by_one, "its definition"),
    RewriteRule("cumprod", "Cumprod", _cumprod, "products of 2, 4, 8 ... factors; rounded no more often"),
    RewriteRule("linspace", "LinSpace", _linspace, "weights of both ends, so that both come out exactly"),
    RewriteRule("in_top_k", "InTopK", _in_top_k, "its definition"),
    RewriteRule("unravel_index", "UnravelIndex", _unravel, "its definition"),
)
