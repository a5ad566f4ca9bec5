"""Older forms of resizing and of moves between channels and space.

Lives here: RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR with half-pixel centers, DEPTH_TO_SPACE, blocks of batches.
Not here: which pixels these take (opwright/scalar/resampling.py).
"""

from __future__ import annotations

import numpy as np

from ....core.dtypes import float32
from ....graph import Node, Value
from ....graph.passes.rewriting import RewriteRule
from ...ops.images import sampling
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from ..rules.building import constant_of
from .parts import bound


def _target(node: Node) -> tuple[Value, list[tuple[int, int]]]:
    """The image, and its size in and out for rows and columns."""
    x, size = node.operands
    out = constant_of(size, "the size").reshape(-1).tolist()
    dims = x.spec.shape.dims
    found = [1, 1] if dims is None else [d or 0 for d in dims[1:3]]
    return x, list(zip(found, out))


def _nearest(node: Node, low: LiteRewriter) -> RuleResult:
    x, axes = _target(node)
    for axis, (n, out) in enumerate(axes, 1):
        if n == 0:
            return NoMatch("the size of the image is not known")
        x = low.emit("GATHER", x, low.int32(sampling(bound(node), n, out).nearest().tolist()), axis=axis)
    return x


def _bilinear(node: Node, low: LiteRewriter) -> RuleResult:
    x, axes = _target(node)
    if x.dtype is not float32:
        return NoMatch(f"RESIZE_BILINEAR of {x.dtype.name}")
    for axis, (n, out) in enumerate(axes, 1):
        if n == 0:
            return NoMatch("the size of the image is not known")
        low_place, high_place, fraction = sampling(bound(node), n, out).between()
        weight = np.asarray(fraction, np.float32).reshape([out if a == axis else 1 for a in range(4)])
        first, second = (low.emit("GATHER", x, low.int32(p.tolist()), axis=axis) for p in (low_place, high_place))
        x = low.emit(
            "ADD",
            low.emit("MUL", first, low.constant(1 - weight, float32)),
            low.emit("MUL", second, low.constant(weight, float32)),
        )
    return x


def _depth_to_space(node: Node, low: LiteRewriter) -> RuleResult:
    """[n, h, w, (i, j, c)] to [n, (h, i), (w, j), c]: only h, w and i change places."""
    (x,), block = node.operands, node.attrs["block_size"]
    dims = x.spec.shape.dims
    if dims is None or None in dims[1:]:
        return NoMatch("the size of the image is not known")
    h, w, c = (int(d) for d in dims[1:] if d is not None)
    y = low.emit("RESHAPE", x, low.int32([-1, w, block, c // block]))
    y = low.emit("TRANSPOSE", y, low.int32([0, 2, 1, 3]))
    return low.emit("RESHAPE", y, low.int32([-1, h * block, w * block, c // block**2]), like=node.outputs[0].spec)


def _batches(node: Node, low: LiteRewriter) -> RuleResult:
    """[n, l, c] as an image of width 1."""
    x, block, borders = node.operands
    if x.spec.shape.rank != 3:
        return NoMatch("blocks of one dimension, or two")
    blocks = constant_of(block, "the block").reshape(-1).tolist()
    edges = constant_of(borders, "the borders").reshape(-1, 2).tolist()
    image = low.emit("EXPAND_DIMS", x, low.int32([2]))
    y = low.emit(node.op.name, image, low.int32([*blocks, 1]), low.int32([*edges, [0, 0]]))
    return low.emit("SQUEEZE", y, squeeze_dims=[2], like=node.outputs[0].spec)


IMAGES = rule_table(
    RewriteRule("nearest_by_gather", "RESIZE_NEAREST_NEIGHBOR", _nearest, "the same pixels"),
    RewriteRule("bilinear_by_gather", "RESIZE_BILINEAR", _bilinear, "rows, then columns, with the same weights"),
    RewriteRule("depth_to_space_apart", "DEPTH_TO_SPACE", _depth_to_space, "the same elements"),
    RewriteRule("batches_of_images", "SPACE_TO_BATCH_ND", _batches, "a width of 1"),
    RewriteRule("batches_of_images", "BATCH_TO_SPACE_ND", _batches, "a width of 1"),
)
