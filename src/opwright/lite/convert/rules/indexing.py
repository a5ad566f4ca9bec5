"""Rules for operators that pick elements: slices, gathers, scatters, arg reductions, sorting, running sums.

Lives here: everything that takes indices or gives them.  Not here: joining and reshaping (arrays.py).
"""

from __future__ import annotations

import numpy as np

from ....core.dtypes import int16, int32, int64
from ....graph import Node, Value
from ..lowering import Lowered, Lowering, NoMatch, Rule, table
from .arrays import front

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
SLICE_RANK = 5  # the greatest rank that the official kernels slice


def _slice(node: Node, low: Lowering) -> Lowered:
    x, begin, size = node.operands
    if x.spec.shape.rank is None or x.spec.shape.rank > SLICE_RANK:
        return NoMatch(f"SLICE takes ranks up to {SLICE_RANK}")
    return low.emit("SLICE", x, low.int32(begin), low.int32(size), like=node.outputs[0].spec)


def _clipped(low: Lowering, bounds: Value) -> Value:
    """Constant bounds within int32: beyond the greatest size all are alike."""
    constant = bounds.constant
    limits = np.iinfo(np.int32)
    return bounds if constant is None else low.int32(np.clip(constant, limits.min, limits.max).tolist())


def _strided_slice(node: Node, low: Lowering) -> Lowered:
    x, begin, end, strides = node.operands
    masks = {name: node.attrs[name] for name in MASKS}
    added = bin(masks["new_axis_mask"] & ~masks["ellipsis_mask"]).count("1")
    if x.spec.shape.rank is None or x.spec.shape.rank + added > SLICE_RANK:
        return NoMatch(f"STRIDED_SLICE takes ranks up to {SLICE_RANK}")
    begin, end, strides = (_clipped(low, v) for v in (begin, end, strides))
    return low.emit("STRIDED_SLICE", x, low.int32(begin), low.int32(end), low.int32(strides), **masks,
                    like=node.outputs[0].spec)  # fmt: skip


def _gather(node: Node, low: Lowering) -> Lowered:
    x, indices = list(node.operands)[:2]
    axis, batch = node.attrs["axis"], node.attrs["batch_dims"]
    rank, depth = x.spec.shape.rank, indices.spec.shape.rank
    if batch < 0 and depth is None:
        return NoMatch("batch_dims counts from the end, and the rank is not known")
    return low.emit("GATHER", x, indices, axis=front(axis, rank), batch_dims=front(batch, depth),
                    like=node.outputs[0].spec)  # fmt: skip


def _gather_nd(node: Node, low: Lowering) -> Lowered:
    if node.attrs.get("batch_dims", 0):
        return NoMatch("GATHER_ND has no batch_dims")
    return low.emit("GATHER_ND", *node.inputs, like=node.outputs[0].spec)


def _scatter_nd(node: Node, low: Lowering) -> Lowered:
    indices, updates, shape = node.operands
    return low.emit("SCATTER_ND", low.int32(indices), updates, low.int32(shape), like=node.outputs[0].spec)


def _where(node: Node, low: Lowering) -> Lowered:
    return low.emit("WHERE", *node.inputs, like=node.outputs[0].spec)


def _arg(op: str, lite: str) -> Rule:
    def lower(node: Node, low: Lowering) -> Lowered:
        (x,), wanted = node.operands, node.attrs["output_type"]
        axis = low.constant(front(node.attrs["axis"], x.spec.shape.rank), int32)
        if wanted in (int32, int64):
            return low.emit(lite, x, axis, output_type=wanted.name.upper(), like=node.outputs[0].spec)
        return low.cast(low.emit(lite, x, axis, output_type="INT32"), wanted)

    return Rule(lite.lower(), op, lower)


def _top_k(node: Node, low: Lowering) -> Lowered:
    x, k = node.operands
    values, indices = low.emit_many("TOPK_V2", x, low.int32(k) if k.dtype in (int16, int64) else k,
                                    likes=[node.outputs[0].spec])  # fmt: skip
    wanted = node.outputs[1].dtype
    return values, indices if wanted is int32 else low.cast(indices, wanted)


def _cumsum(node: Node, low: Lowering) -> Lowered:
    x, axis = next(node.operands), node.attrs["axis"]
    return low.emit("CUMSUM", x, low.constant(front(axis, x.spec.shape.rank), int32), exclusive=node.attrs["exclusive"],
                    reverse=node.attrs["reverse"], like=node.outputs[0].spec)  # fmt: skip


INDEXING = table(
    Rule("slice", "Slice", _slice),
    Rule("strided_slice", "StridedSlice", _strided_slice),
    Rule("gather", "Gather", _gather),
    Rule("gather_nd", "GatherNd", _gather_nd),
    Rule("scatter_nd", "ScatterNd", _scatter_nd),
    Rule("where", "Where", _where),
    _arg("ArgMax", "ARG_MAX"),
    _arg("ArgMin", "ARG_MIN"),
    Rule("topk_v2", "TopK", _top_k),
    Rule("cumsum", "Cumsum", _cumsum),
)
