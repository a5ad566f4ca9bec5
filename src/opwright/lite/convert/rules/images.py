"""Rules for images of another size, for patches of images and for boxes in them.

Lives here: resizing with its gradients, ExtractImagePatches, NonMaxSuppression.  Not here: colours (colours.py),
convolutions and pools (convolution.py).

What the dialect cannot resize is a product of two matrices with the image, one for each direction: resizing is linear,
and for sizes that are known its matrices are what the operator makes of unit vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.dtypes import float32, int32
from ....graph import Node, Value
from ....graph.passes.rewriting import RewriteRule
from ..rewriter import LiteRewriter, RuleResult, rule_table
from .building import along, constant_of, matrix_of, numbered, only, picked, run, sizes

FLAGS = ("align_corners", "half_pixel_centers")
MOST_ELEMENTS = 1 << 22  # of a matrix written to the file


def _flags(node: Node) -> dict[str, bool]:
    return {name: node.attrs[name] for name in FLAGS}


def _resize_bilinear(node: Node, low: LiteRewriter) -> RuleResult:
    x, size = node.operands
    if x.dtype is not float32:
        x = low.cast(x, float32)
    return low.emit("RESIZE_BILINEAR", x, low.int32(size), **_flags(node), like=node.outputs[0].spec)


def _nearest_by_gathers(node: Node, low: LiteRewriter) -> RuleResult:
    x, size = node.operands
    wanted = constant_of(size, "the size").tolist()
    for axis, (old, new) in enumerate(zip(sizes_inside(x)[:2], wanted), 1):
        column = np.arange(old, dtype=np.int32).reshape(1, -1, 1, 1)
        places = run(node, column, np.array([new, 1], np.int32)).reshape(-1)
        x = low.emit("GATHER", x, low.int32(places.tolist()), axis=axis)
    return x


def _by_matrices(node: Node, low: LiteRewriter, x: Value, columns: Callable[..., np.ndarray], olds: Any) -> RuleResult:
    """columns: what becomes of an image [1, n, 1, c] as the direction 0 or 1 of the operator."""
    if x.dtype is not float32:
        x = low.cast(x, float32)
    for axis, old in enumerate(olds):
        matrix = matrix_of(functools.partial(columns, axis=axis), old)
        if matrix.size > MOST_ELEMENTS:
            sizes(x, f"a matrix of {matrix.size} elements")
        x = along(low, x, matrix, axis + 1)
    wanted = node.outputs[0].dtype
    return x if wanted is float32 else low.cast(x, wanted)


def _resize_linear(node: Node, low: LiteRewriter) -> RuleResult:
    """ResizeBicubic, ResizeArea."""
    x, size = node.operands
    new = constant_of(size, "the size").tolist()
    h, w, _ = sizes_inside(x)

    def columns(unit: np.ndarray, axis: int) -> np.ndarray:
        return run(node, unit, np.array([new[axis], 1], np.int32))

    return _by_matrices(node, low, x, columns, (h, w))


def sizes_inside(x: Value) -> list[int]:
    """Height, width and channels of an image. Raises Unfit where one is not known."""
    dims = x.spec.shape.dims
    return sizes(x) if dims is None or None in dims[1:] else [int(d) for d in dims[1:] if d is not None]


def _scale_and_translate(node: Node, low: LiteRewriter) -> RuleResult:
    x, *others = node.operands
    size, scale, translation = (constant_of(v, "size, scale or translation") for v in others)
    h, w, _ = sizes_inside(x)

    def columns(unit: np.ndarray, axis: int) -> np.ndarray:
        one = np.array([scale[axis], 1], np.float32), np.array([translation[axis], 0], np.float32)
        return run(node, unit, np.array([size[axis], 1], np.int32), *one)

    return _by_matrices(node, low, x, columns, (h, w))


def _resize_grad(node: Node, low: LiteRewriter) -> RuleResult:
    """ResizeBilinearGrad, ResizeBicubicGrad: of the sizes of the original image."""
    grads, original = node.operands
    new, old = sizes_inside(original), sizes_inside(grads)

    def columns(unit: np.ndarray, axis: int) -> np.ndarray:
        return run(node, unit, np.zeros((1, new[axis], 1, unit.shape[3]), np.float32))

    return _by_matrices(node, low, grads, columns, old[:2])


def _nearest_grad(node: Node, low: LiteRewriter) -> RuleResult:
    grads, size = node.operands
    only(grads, float32)
    new, old = constant_of(size, "the size").tolist(), sizes_inside(grads)

    def columns(unit: np.ndarray, axis: int) -> np.ndarray:
        return run(node, unit, np.array([new[axis], 1], np.int32))

    return _by_matrices(node, low, grads, columns, old[:2])


def _patches(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    h, w, c = sizes_inside(x)
    places = run(node, numbered((1, h, w, c)))[0] - 1
    return picked(low, x, (h, w, c), places)


ALL = 1.0  # what two boxes share that are one and the same


def _suppression(node: Node, low: LiteRewriter) -> RuleResult:
    """NON_MAX_SUPPRESSION_V5 at another threshold.

    The catalogue, like TensorFlow, drops a box whose overlap with a better one exceeds iou_threshold, and with soft
    scores by these alone; the dialect drops it at iou_threshold itself, with soft scores, too. The official kernel
    needs that: it drops a box that it has chosen by the overlap of the box with itself, which is 1.
    """
    boxes, scores, most, iou, least, sigma = node.operands
    only(boxes, float32)
    soft = float(constant_of(sigma, "soft_nms_sigma")) > 0
    above: Value
    if soft:
        above = low.constant(ALL, float32)
    else:
        above = low.constant(np.nextafter(np.float32(constant_of(iou, "iou_threshold")), np.float32(np.inf)), float32)
    chosen, kept, count = low.emit_many("NON_MAX_SUPPRESSION_V5", boxes, scores, most, above, least, sigma)
    if not node.attrs["pad_to_max_output_size"]:
        size = low.emit("RESHAPE", count, low.int32([1]))
        first = low.int32([0])
        chosen = low.emit("SLICE", chosen, first, size, like=node.outputs[0].spec)
        kept = low.emit("SLICE", kept, first, size, like=node.outputs[1].spec)
    assert count.dtype is int32
    return chosen, kept, count


_LINEAR = "resizing is linear: a matrix for each direction, made of what it does to unit vectors"

IMAGES = rule_table(
    RewriteRule("resize_bilinear", "ResizeBilinear", _resize_bilinear),
    RewriteRule("nearest_by_gathers", "ResizeNearestNeighbor", _nearest_by_gathers, "for other types: the same pixels"),
    RewriteRule("resize_by_matrices", "ResizeBicubic", _resize_linear, _LINEAR),
    RewriteRule("resize_by_matrices", "ResizeArea", _resize_linear, _LINEAR),
    RewriteRule("resize_by_matrices", "ScaleAndTranslate", _scale_and_translate, _LINEAR),
    RewriteRule("gradient_by_matrices", "ResizeBilinearGrad", _resize_grad, _LINEAR),
    RewriteRule("gradient_by_matrices", "ResizeBicubicGrad", _resize_grad, _LINEAR),
    RewriteRule("gradient_by_matrices", "ResizeNearestNeighborGrad", _nearest_grad, _LINEAR),
    RewriteRule("patches_by_gather", "ExtractImagePatches", _patches, "each element of a patch has a known place"),
    RewriteRule(
        "non_max_suppression_v5",
        "NonMaxSuppression",
        _suppression,
        "the threshold one float up, as boxes go from it on; where scores are soft only a box's equals go by it",
    ),
)
