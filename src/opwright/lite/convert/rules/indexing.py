"""Rules for strided slices and gathers.

Lives here: those that take indices or return them.  Not here: joining and reshaping (arrays.py), pairs (direct.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import string
from ....graph import Node
from ....graph.passes.rewriting import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .direct import SLICE_RANK, front

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


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


def _strided_slice(node: Node, low: LiteRewriter) -> RuleResult:
    x, *bounds = node.operands
    masks, rank = {name: node.attrs[name] for name in MASKS}, x.spec.shape.rank
    if rank is None or rank > SLICE_RANK:
        return NoMatch(f"STRIDED_SLICE takes ranks up to {SLICE_RANK}")
    if any(b.constant is None for b in bounds):
        begin, end, strides = map(low.int32, bounds)
        return low.emit("STRIDED_SLICE", x, begin, end, strides, **masks, like=node.outputs[0].spec)
    dense = _Dense(rank, [_clipped(b.constant) for b in bounds], masks)
    y = low.emit(
        "STRIDED_SLICE",
        x,
        low.int32(dense.begin),
        low.int32(dense.end),
        low.int32(dense.strides),
        begin_mask=dense.begin_mask,
        end_mask=dense.end_mask,
        shrink_axis_mask=dense.shrink_axis_mask,
        like=None if dense.new_axes else node.outputs[0].spec,
    )
    for axis in dense.new_axes:
        y = low.emit("EXPAND_DIMS", y, low.int32([axis]))
    return y


def _gather(node: Node, low: LiteRewriter) -> RuleResult:
    x, indices = list(node.operands)[:2]
    axis, batch = node.attrs["axis"], node.attrs["batch_dims"]
    rank, depth = x.spec.shape.rank, indices.spec.shape.rank
    if batch < 0 and depth is None:
        return NoMatch("batch_dims counts from the end, and the rank is not known")
    if x.dtype is string and rank != 1:
        return NoMatch("the official GATHER takes strings of rank 1 only")
    return low.emit(
        "GATHER", x, indices, axis=front(axis, rank), batch_dims=front(batch, depth), like=node.outputs[0].spec
    )


INDEXING = rule_table(
    RewriteRule("strided_slice", "StridedSlice", _strided_slice), RewriteRule("gather", "Gather", _gather)
)
