"""Rules for slices, gathers, scatters, stitching and partitioning, and unique elements.

Lives here: StridedSlice, Gather and its gradient, TensorScatter*, DynamicStitch, DynamicPartition, Unique,
InvertPermutation.
Not here: joining and reshaping (arrays.py), pairs (direct.py), segments (axes.py).

SCATTER_ND adds updates of one position. Where the last update is to win, UNSORTED_SEGMENT_MAX over the numbers of the
updates selects it, and its row is gathered.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core.dtypes import float32, int8, int16, int32, int64, string, uint8
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import (
    LiteRewriter,
    NoMatch,
    Rewrite,
    RuleResult,
    number,
    only,
    rank_of,
    reshaped,
    rule_table,
    size_along,
    sizes,
)
from .direct import SLICE_RANK, front

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _clipped(bounds: Any) -> list[int]:
    """Clamp bounds to int32: all beyond the greatest size are equivalent."""
    limits = np.iinfo(np.int32)
    result: list[int] = np.clip(bounds, limits.min, limits.max).tolist()
    return result


class _Dense:
    """A strided slice written out: one begin, end and stride for each dimension, and where new ones go afterwards.

    The kernels know ellipses and new axes only since version 6, and an ellipsis of nothing not at all.
    """

    def __init__(self, rank: int, bounds: list[list[int]], masks: dict[str, int]) -> None:
        self.begin: list[int] = []
        self.end: list[int] = []
        self.strides: list[int] = []
        self.begin_mask = self.end_mask = self.shrink_axis_mask = 0
        self.new_axes: list[int] = []  # in the result
        n, out = len(bounds[2]), 0
        named = [i for i in range(n) if not (masks["ellipsis_mask"] | masks["new_axis_mask"]) >> i & 1]
        for i in range(n):
            if masks["ellipsis_mask"] >> i & 1:
                for _ in range(rank - len(named)):
                    self._add(0, 0, 1, True, True, False)
                    out += 1
            elif masks["new_axis_mask"] >> i & 1:
                self.new_axes.append(out)
                out += 1
            else:
                shrink = bool(masks["shrink_axis_mask"] >> i & 1)
                begin, end, stride = (b[i] for b in bounds)
                self._add(begin, end, stride, masks["begin_mask"] >> i & 1, masks["end_mask"] >> i & 1, shrink)
                out += not shrink

    def _add(self, begin: int, end: int, stride: int, from_start: int, to_end: int, shrink: bool) -> None:
        bit = 1 << len(self.begin)
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(stride)
        self.begin_mask |= bit if from_start and not shrink else 0
        self.end_mask |= bit if to_end and not shrink else 0
        self.shrink_axis_mask |= bit if shrink else 0


def _strided_slice(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, *bounds = node.operands
    masks, rank = {name: node.attrs[name] for name in MASKS}, x.spec.shape.rank
    if rank is None or rank > SLICE_RANK:
        return NoMatch(f"STRIDED_SLICE takes ranks up to {SLICE_RANK}")
    if any(b.constant is None for b in bounds):
        begin, end, strides = map(rewriter.int32, bounds)
        return rewriter.emit("STRIDED_SLICE", x, begin, end, strides, **masks, like=node.outputs[0].spec)
    dense = _Dense(rank, [_clipped(b.constant) for b in bounds], masks)
    y = rewriter.emit(
        "STRIDED_SLICE",
        x,
        rewriter.int32(dense.begin),
        rewriter.int32(dense.end),
        rewriter.int32(dense.strides),
        begin_mask=dense.begin_mask,
        end_mask=dense.end_mask,
        shrink_axis_mask=dense.shrink_axis_mask,
        like=None if dense.new_axes else node.outputs[0].spec,
    )
    for axis in dense.new_axes:
        y = rewriter.emit("EXPAND_DIMS", y, rewriter.int32([axis]))
    return y


def _gather(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, indices = list(node.operands)[:2]
    axis, batch = node.attrs["axis"], node.attrs["batch_dims"]
    rank, depth = x.spec.shape.rank, indices.spec.shape.rank
    if batch < 0 and depth is None:
        return NoMatch("batch_dims counts from the end, and the rank is not known")
    if x.dtype is string and rank != 1:
        return NoMatch("the official GATHER takes strings of rank 1 only")
    return rewriter.emit(
        "GATHER", x, indices, axis=front(axis, rank), batch_dims=front(batch, depth), like=node.outputs[0].spec
    )


def _places(rewriter: LiteRewriter, indices: Value, outer: list[int]) -> Value:
    """Return index vectors [..., depth] as flat indices within sizes `outer`, int32 [n]."""
    depth = len(outer)
    strides = [math.prod(outer[i + 1 :]) for i in range(depth)]
    rows = rewriter.emit("RESHAPE", rewriter.int32(indices), rewriter.int32([-1, depth]))
    if depth == 1:
        return rewriter.emit("RESHAPE", rows, rewriter.int32([-1]))
    return rewriter.emit("SUM", rewriter.emit("MUL", rows, rewriter.int32(strides)), rewriter.int32([1]))


def _gather_nd_in_batches(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, indices = node.operands
    batch, outer = node.attrs["batch_dims"], sizes(x)
    inner = sizes(indices)
    count, depth = math.prod(outer[:batch]), inner[-1]
    if not depth:
        return NoMatch("the indices are empty")
    chosen = outer[batch : batch + depth]
    places = reshaped(rewriter, _places(rewriter, indices, chosen), [count, math.prod(inner[batch:-1])])
    rows = reshaped(rewriter, x, [count, math.prod(chosen), *outer[batch + depth :]])
    return reshaped(
        rewriter, rewriter.emit("GATHER", rows, places, axis=1, batch_dims=1), sizes(node.outputs[0], "the result")
    )


INDEXING = rule_table(
    RewriteRule("strided_slice", "StridedSlice", _strided_slice),
    RewriteRule("gather", "Gather", _gather),
    RewriteRule(
        "gather_nd_in_batches", "GatherNd", _gather_nd_in_batches, "flat indices, of GATHER, which has batches"
    ),
)


def _last_of(rewriter: LiteRewriter, places: Value, count: Value) -> Value:
    """Return for each position the number of the last update of it, negative if there is none."""
    n = size_along(rewriter, places, 0)
    numbers = rewriter.emit("RANGE", rewriter.constant(0, int32), n, rewriter.constant(1, int32))
    return rewriter.emit("UNSORTED_SEGMENT_MAX", numbers, places, count)


def _rows(rewriter: LiteRewriter, updates: Value, last: Value, otherwise: Value, rest: list[int]) -> Value:
    """Return the row of `updates` [n, *rest] that each position takes, or that of `otherwise`."""
    rows = rewriter.emit("GATHER", updates, rewriter.emit("MAXIMUM", last, rewriter.constant(0, int32)), axis=0)
    taken = rewriter.emit("GREATER_EQUAL", last, rewriter.constant(0, int32))
    if rest:
        taken = rewriter.emit("RESHAPE", taken, rewriter.int32([-1, *[1] * len(rest)]))
    return rewriter.emit("SELECT_V2", taken, rows, otherwise)


def _parts(node: Node) -> tuple[Value, Value, Value, list[int], list[int]]:
    """Return tensor, indices, updates; the sizes that are indexed, and the others."""
    tensor, indices, updates = node.operands
    dims, depth = sizes(tensor), (indices.spec.shape.dims or (None,))[-1]
    if depth is None:
        sizes(indices)
    return tensor, indices, updates, dims[: depth or 0], dims[depth or 0 :]


def _scatter_update(node: Node, rewriter: LiteRewriter) -> RuleResult:
    tensor, indices, updates, outer, rest = _parts(node)
    if not outer:
        return NoMatch("the index vectors are empty")
    places = _places(rewriter, indices, outer)
    count = math.prod(outer)
    last = _last_of(rewriter, places, rewriter.constant(count, int32))
    flat = reshaped(rewriter, tensor, [count, *rest])
    y = _rows(rewriter, rewriter.emit("RESHAPE", updates, rewriter.int32([-1, *rest])), last, flat, rest)
    return reshaped(rewriter, y, outer + rest)


def _scatter_sum(lite: str) -> Rewrite:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        tensor, indices, updates = node.operands
        only(tensor, float32, int32, int64)
        dims = tensor.spec.shape.dims
        if dims is None or None in dims:
            shape = rewriter.emit("SHAPE", tensor, out_type="INT32")
        else:
            shape = rewriter.int32(dims)
        scattered = rewriter.emit("SCATTER_ND", rewriter.int32(indices), updates, shape, like=tensor.spec)
        return rewriter.emit(lite, tensor, scattered, like=node.outputs[0].spec)

    return lower


def _scatter_extreme(lite: str) -> Rewrite:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        tensor, indices, updates, outer, rest = _parts(node)
        only(tensor, float32, int32)
        if not outer:
            return NoMatch("the index vectors are empty")
        count = math.prod(outer)
        rows = rewriter.emit("RESHAPE", updates, rewriter.int32([-1, *rest]))
        segment = "UNSORTED_SEGMENT_MAX" if lite == "MAXIMUM" else "UNSORTED_SEGMENT_MIN"
        best = rewriter.emit(segment, rows, _places(rewriter, indices, outer), rewriter.constant(count, int32))
        return rewriter.emit(lite, tensor, reshaped(rewriter, best, outer + rest), like=node.outputs[0].spec)

    return lower


def _stitch(node: Node, rewriter: LiteRewriter) -> RuleResult:
    indices, data = node.inputs
    assert isinstance(indices, tuple)
    assert isinstance(data, tuple)
    if not indices:
        return NoMatch("nothing is put together")
    rest = (data[0].spec.shape.dims or ())[rank_of(indices[0]) :]
    if None in rest:
        return NoMatch("the sizes of the slices are not known")
    inner = [int(d) for d in rest if d is not None]
    ids = _joined(rewriter, [rewriter.emit("RESHAPE", v, rewriter.int32([-1])) for v in indices])
    rows = _joined(rewriter, [rewriter.emit("RESHAPE", v, rewriter.int32([-1, *inner])) for v in data])
    if all(v.constant is not None for v in indices):
        flat = np.concatenate([v.constant.reshape(-1) for v in indices if v.constant is not None])
        count = int(flat.max(initial=-1)) + 1
        last = np.full(count, -1, np.int64)
        last[flat] = np.arange(len(flat))
        if (last >= 0).all():
            return rewriter.emit("GATHER", rows, rewriter.int32(last.tolist()), axis=0, like=node.outputs[0].spec)
    greatest = rewriter.emit("REDUCE_MAX", ids, rewriter.int32([0]))
    last_of = _last_of(rewriter, ids, rewriter.emit("ADD", greatest, rewriter.constant(1, int32)))
    return _rows(rewriter, rows, last_of, number(rewriter, 0, data[0]), inner)


def _joined(rewriter: LiteRewriter, parts: list[Value]) -> Value:
    return parts[0] if len(parts) == 1 else rewriter.emit("CONCATENATION", tuple(parts), axis=0)


def _partition(node: Node, rewriter: LiteRewriter) -> RuleResult:
    data, partitions = node.operands
    rank, dims = rank_of(partitions), data.spec.shape.dims
    if rank > 1:
        rest = (dims or ())[rank:]
        if None in rest:
            return NoMatch("the sizes of the slices are not known")
        data = rewriter.emit("RESHAPE", data, rewriter.int32([-1, *(int(d) for d in rest if d is not None)]))
        partitions = rewriter.emit("RESHAPE", partitions, rewriter.int32([-1]))
    elif rank == 0:
        return NoMatch("a single partition number")
    outputs = []
    for i, output in enumerate(node.outputs):
        here = rewriter.emit("WHERE", rewriter.emit("EQUAL", partitions, rewriter.constant(i, int32)))
        outputs.append(rewriter.emit("GATHER_ND", data, here, like=output.spec))
    return tuple(outputs)


def _gather_grad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    dy, indices, shape = node.operands
    if node.attrs["axis"] != 0 or node.attrs["batch_dims"]:
        return NoMatch("SCATTER_ND takes the first dimension")
    only(dy, float32, int32, int64)
    ids = rewriter.emit("EXPAND_DIMS", rewriter.int32(indices), rewriter.int32([rank_of(indices)]))
    return rewriter.emit("SCATTER_ND", ids, dy, rewriter.int32(shape), like=node.outputs[0].spec)


def _unique(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    only(x, float32, int8, int16, int32, int64, uint8)
    kind = node.attrs["out_idx"].name.upper()
    y, idx = rewriter.emit_many("UNIQUE", x, idx_out_type=kind, likes=[v.spec for v in node.outputs[:2]])
    if len(node.outputs) == 2:
        return y, idx
    places = rewriter.int32(idx)
    ones = rewriter.emit("FILL", rewriter.emit("SHAPE", places, out_type="INT32"), rewriter.constant(1, int32))
    count = rewriter.emit("UNSORTED_SEGMENT_SUM", ones, places, size_along(rewriter, y, 0))
    return y, idx, count if node.outputs[2].dtype is int32 else rewriter.cast(count, node.outputs[2].dtype)


def _invert_permutation(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    ids = rewriter.emit("EXPAND_DIMS", rewriter.int32(x), rewriter.int32([1]))
    n = size_along(rewriter, x, 0)
    numbers = rewriter.emit("RANGE", rewriter.constant(0, int32), n, rewriter.constant(1, int32))
    y = rewriter.emit(
        "SCATTER_ND",
        ids,
        numbers,
        rewriter.emit("RESHAPE", n, rewriter.int32([1])) if n.constant is None else rewriter.int32([int(n.constant)]),
    )
    return y if x.dtype is int32 else rewriter.cast(y, x.dtype)


def _embedding_rows(node: Node, rewriter: LiteRewriter) -> RuleResult:
    rows, ids = node.operands
    padding = node.attrs["padding_idx"]
    dims = rows.spec.shape.dims
    if dims is None or None in dims:
        sizes(rows)
    is_padding = rewriter.emit("EQUAL", ids, number(rewriter, padding, ids))
    inside = rewriter.emit("SELECT_V2", is_padding, number(rewriter, 0, ids), ids)
    gathered = rewriter.emit("GATHER", rows, inside, axis=0)
    for _ in range(rank_of(rows) - 1):
        is_padding = rewriter.emit("EXPAND_DIMS", is_padding, rewriter.int32([-1]))
    return rewriter.emit("SELECT_V2", is_padding, number(rewriter, 0, rows), gathered, like=node.outputs[0].spec)


SCATTERING = rule_table(
    RewriteRule(
        "last_update_wins", "TensorScatterUpdate", _scatter_update, "of updates to one place the last is found first"
    ),
    RewriteRule("scatter_add", "TensorScatterAdd", _scatter_sum("ADD"), "SCATTER_ND adds up"),
    RewriteRule("scatter_sub", "TensorScatterSub", _scatter_sum("SUB"), "SCATTER_ND adds up"),
    RewriteRule(
        "scatter_max", "TensorScatterMax", _scatter_extreme("MAXIMUM"), "places without update get the least number"
    ),
    RewriteRule(
        "scatter_min", "TensorScatterMin", _scatter_extreme("MINIMUM"), "places without update get the largest"
    ),
    RewriteRule("stitch", "DynamicStitch", _stitch, "each row of the result is one of the rows given"),
    RewriteRule("partition", "DynamicPartition", _partition, "WHERE gives the places of each part in order"),
    RewriteRule("gather_grad", "GatherGrad", _gather_grad, "SCATTER_ND adds up"),
    RewriteRule("unique", "Unique", _unique),
    RewriteRule("unique_with_counts", "UniqueWithCounts", _unique, "a sum of ones for each"),
    RewriteRule("invert_permutation", "InvertPermutation", _invert_permutation, "its definition"),
    RewriteRule("embedding_rows", "EmbeddingRows", _embedding_rows, "padding looks up row 0, and is zeroed"),
)
