"""Rules for updates of tensors at places, for stitching and parting, and for unique elements.

Lives here: TensorScatter*, DynamicStitch, DynamicPartition, gradients of gathers, Unique, InvertPermutation.
Not here: gathers and slices (indexing.py), segments (segments.py).

SCATTER_ND adds up what falls on one place. Where the last update is to win, the number of the last is found first, by
UNSORTED_SEGMENT_MAX over the numbers of the updates, and then its row is gathered.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core.dtypes import float32, int8, int16, int32, int64, uint8
from ....graph import Node, Value
from ....graph.passes.rewriting import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .building import number, only, rank_of, reshaped, size_along, sizes


def _places(low: LiteRewriter, indices: Value, outer: list[int]) -> Value:
    """Index vectors [..., depth] as flat places within sizes `outer`, int32 [n]."""
    depth = len(outer)
    strides = [math.prod(outer[i + 1 :]) for i in range(depth)]
    rows = low.emit("RESHAPE", low.int32(indices), low.int32([-1, depth]))
    if depth == 1:
        return low.emit("RESHAPE", rows, low.int32([-1]))
    return low.emit("SUM", low.emit("MUL", rows, low.int32(strides)), low.int32([1]))


def _last_of(low: LiteRewriter, places: Value, count: Value) -> Value:
    """For each place the number of the last update that falls on it, less than 0 where there is none."""
    n = size_along(low, places, 0)
    numbers = low.emit("RANGE", low.constant(0, int32), n, low.constant(1, int32))
    return low.emit("UNSORTED_SEGMENT_MAX", numbers, places, count)


def _rows(low: LiteRewriter, updates: Value, last: Value, otherwise: Value, rest: list[int]) -> Value:
    """The row of `updates` [n, *rest] that each place takes; otherwise's where it takes none."""
    found = low.emit("GATHER", updates, low.emit("MAXIMUM", last, low.constant(0, int32)), axis=0)
    taken = low.emit("GREATER_EQUAL", last, low.constant(0, int32))
    if rest:
        taken = low.emit("RESHAPE", taken, low.int32([-1, *[1] * len(rest)]))
    return low.emit("SELECT_V2", taken, found, otherwise)


def _parts(node: Node) -> tuple[Value, Value, Value, list[int], list[int]]:
    """tensor, indices, updates; the sizes that are indexed, and the others."""
    tensor, indices, updates = node.operands
    dims, depth = sizes(tensor), (indices.spec.shape.dims or (None,))[-1]
    if depth is None:
        sizes(indices)
    return tensor, indices, updates, dims[: depth or 0], dims[depth or 0 :]


def _scatter_update(node: Node, low: LiteRewriter) -> RuleResult:
    tensor, indices, updates, outer, rest = _parts(node)
    if not outer:
        return NoMatch("the index vectors are empty")
    places = _places(low, indices, outer)
    count = math.prod(outer)
    last = _last_of(low, places, low.constant(count, int32))
    flat = reshaped(low, tensor, [count, *rest])
    y = _rows(low, low.emit("RESHAPE", updates, low.int32([-1, *rest])), last, flat, rest)
    return reshaped(low, y, outer + rest)


def _scatter_sum(lite: str) -> Any:
    def lower(node: Node, low: LiteRewriter) -> RuleResult:
        tensor, indices, updates = node.operands
        only(tensor, float32, int32, int64)
        dims = tensor.spec.shape.dims
        if dims is None or None in dims:
            shape = low.emit("SHAPE", tensor, out_type="INT32")
        else:
            shape = low.int32(dims)
        scattered = low.emit("SCATTER_ND", low.int32(indices), updates, shape, like=tensor.spec)
        return low.emit(lite, tensor, scattered, like=node.outputs[0].spec)

    return lower


def _scatter_extreme(lite: str) -> Any:
    def lower(node: Node, low: LiteRewriter) -> RuleResult:
        tensor, indices, updates, outer, rest = _parts(node)
        only(tensor, float32, int32)
        if not outer:
            return NoMatch("the index vectors are empty")
        count = math.prod(outer)
        rows = low.emit("RESHAPE", updates, low.int32([-1, *rest]))
        segment = "UNSORTED_SEGMENT_MAX" if lite == "MAXIMUM" else "UNSORTED_SEGMENT_MIN"
        best = low.emit(segment, rows, _places(low, indices, outer), low.constant(count, int32))
        return low.emit(lite, tensor, reshaped(low, best, outer + rest), like=node.outputs[0].spec)

    return lower


def _stitch(node: Node, low: LiteRewriter) -> RuleResult:
    indices, data = node.inputs
    assert isinstance(indices, tuple)
    assert isinstance(data, tuple)
    if not indices:
        return NoMatch("nothing is put together")
    rest = (data[0].spec.shape.dims or ())[rank_of(indices[0]) :]
    if None in rest:
        return NoMatch("the sizes of the slices are not known")
    inner = [int(d) for d in rest if d is not None]
    ids = _joined(low, [low.emit("RESHAPE", v, low.int32([-1])) for v in indices])
    rows = _joined(low, [low.emit("RESHAPE", v, low.int32([-1, *inner])) for v in data])
    if all(v.constant is not None for v in indices):
        flat = np.concatenate([v.constant.reshape(-1) for v in indices if v.constant is not None])
        count = int(flat.max(initial=-1)) + 1
        last = np.full(count, -1, np.int64)
        last[flat] = np.arange(len(flat))
        if (last >= 0).all():
            return low.emit("GATHER", rows, low.int32(last.tolist()), axis=0, like=node.outputs[0].spec)
    greatest = low.emit("REDUCE_MAX", ids, low.int32([0]))
    last_of = _last_of(low, ids, low.emit("ADD", greatest, low.constant(1, int32)))
    return _rows(low, rows, last_of, number(low, 0, data[0]), inner)


def _joined(low: LiteRewriter, parts: list[Value]) -> Value:
    return parts[0] if len(parts) == 1 else low.emit("CONCATENATION", tuple(parts), axis=0)


def _partition(node: Node, low: LiteRewriter) -> RuleResult:
    data, partitions = node.operands
    rank, known = rank_of(partitions), data.spec.shape.dims
    if rank > 1:
        rest = (known or ())[rank:]
        if None in rest:
            return NoMatch("the sizes of the slices are not known")
        data = low.emit("RESHAPE", data, low.int32([-1, *(int(d) for d in rest if d is not None)]))
        partitions = low.emit("RESHAPE", partitions, low.int32([-1]))
    elif rank == 0:
        return NoMatch("a single partition number")
    outputs = []
    for i, wanted in enumerate(node.outputs):
        here = low.emit("WHERE", low.emit("EQUAL", partitions, low.constant(i, int32)))
        outputs.append(low.emit("GATHER_ND", data, here, like=wanted.spec))
    return tuple(outputs)


def _gather_grad(node: Node, low: LiteRewriter) -> RuleResult:
    dy, indices, shape = node.operands
    if node.attrs["axis"] != 0 or node.attrs["batch_dims"]:
        return NoMatch("SCATTER_ND takes the first dimension")
    only(dy, float32, int32, int64)
    ids = low.emit("EXPAND_DIMS", low.int32(indices), low.int32([rank_of(indices)]))
    return low.emit("SCATTER_ND", ids, dy, low.int32(shape), like=node.outputs[0].spec)


def _unique(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    only(x, float32, int8, int16, int32, int64, uint8)
    kind = node.attrs["out_idx"].name.upper()
    y, idx = low.emit_many("UNIQUE", x, idx_out_type=kind, likes=[v.spec for v in node.outputs[:2]])
    if len(node.outputs) == 2:
        return y, idx
    places = low.int32(idx)
    ones = low.emit("FILL", low.emit("SHAPE", places, out_type="INT32"), low.constant(1, int32))
    count = low.emit("UNSORTED_SEGMENT_SUM", ones, places, size_along(low, y, 0))
    return y, idx, count if node.outputs[2].dtype is int32 else low.cast(count, node.outputs[2].dtype)


def _invert_permutation(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    ids = low.emit("EXPAND_DIMS", low.int32(x), low.int32([1]))
    n = size_along(low, x, 0)
    numbers = low.emit("RANGE", low.constant(0, int32), n, low.constant(1, int32))
    y = low.emit(
        "SCATTER_ND",
        ids,
        numbers,
        low.emit("RESHAPE", n, low.int32([1])) if n.constant is None else low.int32([int(n.constant)]),
    )
    return y if x.dtype is int32 else low.cast(y, x.dtype)


def _embedding_rows(node: Node, low: LiteRewriter) -> RuleResult:
    rows, ids = node.operands
    padding = node.attrs["padding_idx"]
    known = rows.spec.shape.dims
    if known is None or None in known:
        sizes(rows)
    is_padding = low.emit("EQUAL", ids, number(low, padding, ids))
    inside = low.emit("SELECT_V2", is_padding, number(low, 0, ids), ids)
    found = low.emit("GATHER", rows, inside, axis=0)
    for _ in range(rank_of(rows) - 1):
        is_padding = low.emit("EXPAND_DIMS", is_padding, low.int32([-1]))
    return low.emit("SELECT_V2", is_padding, number(low, 0, rows), found, like=node.outputs[0].spec)


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
