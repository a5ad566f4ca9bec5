"""Rules for operators that pick elements: slices, gathers, scatters, arg reductions, sorting, running sums.

Lives here: everything that takes indices or gives them.  Not here: joining and reshaping (arrays.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import bfloat16, float16, float32, int8, int16, int32, int64, string, uint8, uint16, uint32
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


def _clipped(bounds: Any) -> list[int]:
    """Bounds within int32: beyond the greatest size all are alike."""
    limits = np.iinfo(np.int32)
    return np.clip(bounds, limits.min, limits.max).tolist()


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


def _strided_slice(node: Node, low: Lowering) -> Lowered:
    x, *bounds = node.operands
    masks, rank = {name: node.attrs[name] for name in MASKS}, x.spec.shape.rank
    if rank is None or rank > SLICE_RANK:
        return NoMatch(f"STRIDED_SLICE takes ranks up to {SLICE_RANK}")
    if any(b.constant is None for b in bounds):
        begin, end, strides = map(low.int32, bounds)
        return low.emit("STRIDED_SLICE", x, begin, end, strides, **masks, like=node.outputs[0].spec)
    dense = _Dense(rank, [_clipped(b.constant) for b in bounds], masks)
    y = low.emit(
        "STRIDED_SLICE", x, low.int32(dense.begin), low.int32(dense.end), low.int32(dense.strides),
        begin_mask=dense.begin_mask, end_mask=dense.end_mask, shrink_axis_mask=dense.shrink_axis_mask,
        like=None if dense.new_axes else node.outputs[0].spec,
    )  # fmt: skip
    for axis in dense.new_axes:
        y = low.emit("EXPAND_DIMS", y, low.int32([axis]))
    return y


def _gather(node: Node, low: Lowering) -> Lowered:
    x, indices = list(node.operands)[:2]
    axis, batch = node.attrs["axis"], node.attrs["batch_dims"]
    rank, depth = x.spec.shape.rank, indices.spec.shape.rank
    if batch < 0 and depth is None:
        return NoMatch("batch_dims counts from the end, and the rank is not known")
    if x.dtype is string and rank != 1:
        return NoMatch("the official GATHER takes strings of rank 1 only")
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


WIDER = {**dict.fromkeys((int8, uint8, int16, uint16), int32), uint32: int64, float16: float32, bfloat16: float32}
"""By dtype, one in which its numbers are sorted alike."""


def _sort(node: Node, low: Lowering) -> Lowered:
    """The top n of n are all, largest first; the other way round they are the top n of -x, of ~x = -1 - x for integers
    (which never overflows)."""
    (x,) = node.operands
    n = x.spec.shape.dims[-1] if x.spec.shape.dims else None
    if n is None:
        return NoMatch("TOPK_V2 needs to know how many there are")

    dtype = WIDER.get(x.dtype, x.dtype)  # of others TOPK_V2 or SUB has no kernel
    x = x if dtype is x.dtype else low.cast(x, dtype)

    def turn(v: Value) -> Value:
        if node.attrs["direction"] == "DESCENDING":
            return v
        if not v.dtype.is_integer:
            return low.emit("NEG", v)
        return low.emit("SUB", low.constant(-1, v.dtype), v)

    values, indices = low.emit_many("TOPK_V2", turn(x), low.constant(n, int32))
    values, wanted = turn(values), node.outputs[0].dtype
    return values if values.dtype is wanted else low.cast(values, wanted), indices


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
    Rule("sort", "Sort", _sort, "TOPK_V2 is stable and puts NaN last, as Sort does"),
    Rule("cumsum", "Cumsum", _cumsum),
)
