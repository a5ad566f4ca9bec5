"""Rules for operators along an axis: reductions, searches and sorts, scans and frames; reductions by segment.

Lives here: Sum, Mean, Max, Min, Prod, All, Any; ArgMax, ArgMin, TopK, Sort; reductions of sorted segments, bincounts,
histograms, confusion matrices; SequenceMask, frames, running products, LinSpace, InTopK, UnravelIndex, ShiftByOne.
Not here: running sums (direct.py), softmax and norms (nn.py), scatters (gather_scatter.py); the Sequence* operators on
packed sequences with offsets, which have no lite form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....core.dtypes import bfloat16, float16, float32, int8, int16, int32, int64, uint8, uint16, uint32
from ....core.dtypes import bool as bool_
from ....core.specs import TensorSpec
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import (
    LiteRewriter,
    NoMatch,
    Rewrite,
    RuleResult,
    constant_of,
    number,
    numbered,
    only,
    padded,
    picked,
    rank_of,
    reshaped,
    rule_table,
    run,
    size_along,
    sizes,
    sliced,
    within,
)
from .direct import front


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
    n = size_along(rewriter, x, rank_of(x) - 1)
    dtype = WIDER.get(x.dtype, x.dtype)  # of others TOPK_V2 or SUB has no kernel
    x = x if dtype is x.dtype else rewriter.cast(x, dtype)

    def turn(v: Value) -> Value:
        if node.attrs["direction"] == "DESCENDING":
            return v
        if not v.dtype.is_integer:
            return rewriter.emit("NEG", v)
        return rewriter.emit("SUB", rewriter.constant(-1, v.dtype), v)

    likes = [x.spec, x.spec.with_dtype(int32)]
    values, indices = rewriter.emit_many("TOPK_V2", turn(x), n, likes=likes)
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


def _segment(op: str) -> Rewrite:
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
    hop = int(constant_of(step, "frame_step"))
    *lead, frames, length = sizes(x)
    n = int(np.prod(lead, dtype=np.int64))
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
    is_class = within(rewriter, ids, classes)
    safe = rewriter.emit("SELECT_V2", is_class, ids, rewriter.constant(0, int32))
    column = rewriter.emit("EXPAND_DIMS", safe, rewriter.int32([1]))
    target = rewriter.emit("GATHER", predictions, column, axis=1, batch_dims=1)
    better = rewriter.cast(rewriter.emit("GREATER", predictions, target), int32)
    count = rewriter.emit("SUM", better, rewriter.int32([1]))
    finite = rewriter.emit("LESS", rewriter.emit("ABS", predictions), number(rewriter, np.inf, predictions))
    all_finite = rewriter.emit("REDUCE_ALL", finite, rewriter.int32([1]))
    among = rewriter.emit("LESS", count, rewriter.int32(k))
    return rewriter.emit(
        "LOGICAL_AND", rewriter.emit("LOGICAL_AND", among, is_class), all_finite, like=node.outputs[0].spec
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
