"""Rules for resizing, patches and boxes of images, and colour spaces.

Lives here: resizing with its gradients, ExtractImagePatches, NonMaxSuppression; RGB and HSV, contrast, saturation, hue.
Not here: convolutions and pools (convolution.py).

A resize that the dialect lacks is a product of the image with two matrices, one for each direction: resizing is linear,
and for known sizes its matrices are the operator's results on unit vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.dtypes import float32, int32
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import (
    LiteRewriter,
    RuleResult,
    along,
    constant_of,
    matrix_of,
    number,
    numbered,
    only,
    picked,
    rank_of,
    rule_table,
    run,
    size_along,
    sizes,
)

FLAGS = ("align_corners", "half_pixel_centers")
MOST_ELEMENTS = 1 << 22  # of a matrix written to the file


def _flags(node: Node) -> dict[str, bool]:
    return {name: node.attrs[name] for name in FLAGS}


def _resize_bilinear(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, size = node.operands
    if x.dtype is not float32:
        x = rewriter.cast(x, float32)
    return rewriter.emit("RESIZE_BILINEAR", x, rewriter.int32(size), **_flags(node), like=node.outputs[0].spec)


def _nearest_by_gathers(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, size = node.operands
    target = constant_of(size, "the size").tolist()
    for axis, (old, new) in enumerate(zip(sizes_inside(x)[:2], target), 1):
        column = np.arange(old, dtype=np.int32).reshape(1, -1, 1, 1)
        places = run(node, column, np.array([new, 1], np.int32)).reshape(-1)
        x = rewriter.emit("GATHER", x, rewriter.int32(places.tolist()), axis=axis)
    return x


def _by_matrices(
    node: Node, rewriter: LiteRewriter, x: Value, columns: Callable[..., np.ndarray], olds: Any
) -> RuleResult:
    """Multiply an image by the operator's matrices. columns: its result on [1, n, 1, c] in direction 0 or 1."""
    if x.dtype is not float32:
        x = rewriter.cast(x, float32)
    for axis, old in enumerate(olds):
        matrix = matrix_of(functools.partial(columns, axis=axis), old)
        if matrix.size > MOST_ELEMENTS:
            sizes(x, f"a matrix of {matrix.size} elements")
        x = along(rewriter, x, matrix, axis + 1)
    dtype = node.outputs[0].dtype
    return x if dtype is float32 else rewriter.cast(x, dtype)


def _resize_linear(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Lower ResizeBicubic, ResizeArea."""
    x, size = node.operands
    new = constant_of(size, "the size").tolist()
    h, w, _ = sizes_inside(x)

    def columns(unit: np.ndarray, axis: int) -> np.ndarray:
        return run(node, unit, np.array([new[axis], 1], np.int32))

    return _by_matrices(node, rewriter, x, columns, (h, w))


def sizes_inside(x: Value) -> list[int]:
    """Return height, width and channels of an image. Raises UnmatchedNode if one is unknown."""
    dims = x.spec.shape.dims
    return sizes(x) if dims is None or None in dims[1:] else [int(d) for d in dims[1:] if d is not None]


def _scale_and_translate(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, *others = node.operands
    size, scale, translation = (constant_of(v, "size, scale or translation") for v in others)
    h, w, _ = sizes_inside(x)

    def columns(unit: np.ndarray, axis: int) -> np.ndarray:
        one = np.array([scale[axis], 1], np.float32), np.array([translation[axis], 0], np.float32)
        return run(node, unit, np.array([size[axis], 1], np.int32), *one)

    return _by_matrices(node, rewriter, x, columns, (h, w))


def _resize_grad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Lower ResizeBilinearGrad and ResizeBicubicGrad, for the sizes of the original image."""
    grads, original = node.operands
    new, old = sizes_inside(original), sizes_inside(grads)

    def columns(unit: np.ndarray, axis: int) -> np.ndarray:
        return run(node, unit, np.zeros((1, new[axis], 1, unit.shape[3]), np.float32))

    return _by_matrices(node, rewriter, grads, columns, old[:2])


def _nearest_grad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    grads, size = node.operands
    only(grads, float32)
    new, old = constant_of(size, "the size").tolist(), sizes_inside(grads)

    def columns(unit: np.ndarray, axis: int) -> np.ndarray:
        return run(node, unit, np.array([new[axis], 1], np.int32))

    return _by_matrices(node, rewriter, grads, columns, old[:2])


def _patches(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    h, w, c = sizes_inside(x)
    places = run(node, numbered((1, h, w, c)))[0] - 1
    return picked(rewriter, x, (h, w, c), places)


ALL = 1.0  # intersection over union of two equal boxes
NEXT_STEP = 1.25 * 2.0**-24  # of a float32 in [1, 2): more than half a step to the next and less than one and a half
LEAST_SHARE = float(np.finfo(np.float32).tiny)


def _with_areas(rewriter: LiteRewriter, boxes: Value) -> Value:
    """Return boxes [n, 4] where each one without an area, which overlaps none, has a place of its own outside."""
    constant = boxes.constant
    if constant is not None and np.prod(constant[:, 2:] - constant[:, :2], axis=1).all():
        return boxes
    from_first, both = rewriter.int32([0, 0]), rewriter.int32([-1, 2])
    last = rewriter.emit("SLICE", boxes, rewriter.int32([0, 2]), both)
    extents = rewriter.emit("SUB", last, rewriter.emit("SLICE", boxes, from_first, both))
    areas = rewriter.emit("REDUCE_PROD", extents, rewriter.int32([1]), keep_dims=True)
    farthest = rewriter.emit("REDUCE_MAX", rewriter.emit("ABS", boxes), rewriter.int32([0, 1]))
    farthest = rewriter.emit("MAXIMUM", farthest, rewriter.constant(1, float32))  # of no boxes, the least float
    count = boxes.spec.shape[0]
    corners = np.array([[3, 3, 4, 4]], np.float32)
    if count is not None:
        places = rewriter.constant(corners + 2 * np.arange(count)[:, None], float32)
    else:
        zero, step = rewriter.constant(0, float32), rewriter.constant(2, float32)
        limit = rewriter.emit("MUL", rewriter.cast(size_along(rewriter, boxes, 0), float32), step)
        numbers = rewriter.emit("RANGE", zero, limit, step)
        numbers = rewriter.emit("RESHAPE", numbers, rewriter.int32([-1, 1]))
        places = rewriter.emit("ADD", numbers, rewriter.constant(corners, float32))
    places = rewriter.emit("MUL", places, farthest)
    return rewriter.emit("SELECT_V2", rewriter.emit("EQUAL", areas, rewriter.constant(0, float32)), places, boxes)


def _ranks(rewriter: LiteRewriter, scores: Value, least: Value) -> Value:
    """Return for scores [n] numbers in the same order that differ: n for the first of the best, down to 1; 0 for scores
    that do not exceed the least."""
    count = size_along(rewriter, scores, 0)
    _, order = rewriter.emit_many("TOPK_V2", scores, count)  # of equal ones the first is first
    size = scores.spec.shape[0]
    if size is not None:
        numbers = rewriter.constant(np.arange(size, 0, -1), float32)
    else:
        zero, step = rewriter.constant(0, float32), rewriter.constant(-1, float32)
        numbers = rewriter.emit("RANGE", rewriter.cast(count, float32), zero, step)
    places = rewriter.emit("RESHAPE", order, rewriter.int32([-1, 1]))
    shape = rewriter.int32([size]) if size is not None else rewriter.emit("RESHAPE", count, rewriter.int32([1]))
    ranks = rewriter.emit("SCATTER_ND", places, numbers, shape)
    return rewriter.emit("SELECT_V2", rewriter.emit("GREATER", scores, least), ranks, rewriter.constant(0, float32))


def _suppression(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Emit NON_MAX_SUPPRESSION_V5 at another threshold, of ranks instead of scores.

    The catalogue, like TensorFlow, drops a box whose overlap with a better one exceeds iou_threshold, and with soft
    scores by these alone; the dialect drops it at iou_threshold itself, with soft scores, too. The official kernel
    needs that: it drops a box that it has chosen by the overlap of the box with itself, which is 1, but 0 for a box
    without area: it would choose that for ever. The catalogue takes the first of several boxes with equal scores, the
    official kernel any, in the order of its heap; ranks are never equal. Soft scores change, and have to be given.
    """
    boxes, scores, most, iou, least, sigma = node.operands
    best = scores
    only(boxes, float32)
    soft = float(constant_of(sigma, "soft_nms_sigma")) > 0
    above: Value
    if soft:
        above = rewriter.constant(ALL, float32)
    elif iou.constant is not None:
        above = rewriter.constant(np.nextafter(np.float32(iou.constant), np.float32(np.inf)), float32)
    else:
        step = rewriter.emit("MUL", iou, rewriter.constant(NEXT_STEP, float32))
        above = rewriter.emit("MAXIMUM", rewriter.emit("ADD", iou, step), rewriter.constant(LEAST_SHARE, float32))
    if not soft and (scores.constant is None or len(np.unique(scores.constant)) < scores.constant.size):
        best, least = _ranks(rewriter, scores, least), rewriter.constant(0, float32)
    boxes = _with_areas(rewriter, boxes)
    chosen, kept, count = rewriter.emit_many("NON_MAX_SUPPRESSION_V5", boxes, best, most, above, least, sigma)
    if not node.attrs["pad_to_max_output_size"]:
        size = rewriter.emit("RESHAPE", count, rewriter.int32([1]))
        first = rewriter.int32([0])
        chosen = rewriter.emit("SLICE", chosen, first, size, like=node.outputs[0].spec)
        kept = rewriter.emit("SLICE", kept, first, size, like=node.outputs[1].spec)
    if best is not scores and rewriter.uses.get(node.outputs[1], 0):
        zero = rewriter.constant(0, float32)
        padded = rewriter.emit("CONCATENATION", (scores, rewriter.constant([0], float32)), axis=0)  # of no boxes, too
        values = rewriter.emit("GATHER", padded, chosen, axis=0)
        kept = rewriter.emit("SELECT_V2", rewriter.emit("GREATER", kept, zero), values, zero, like=node.outputs[1].spec)
    assert count.dtype is int32
    return chosen, kept, count


_LINEAR = "resizing is linear: a matrix for each direction, made of what it does to unit vectors"

IMAGES = rule_table(
    RewriteRule("resize_bilinear", "ResizeBilinear", _resize_bilinear),
    RewriteRule("nearest_by_gathers", "ResizeNearestNeighbor", _nearest_by_gathers, "for other types: the same pixels"),
    RewriteRule("resize_by_matrices", "ResizeBicubic ResizeArea", _resize_linear, _LINEAR),
    RewriteRule("resize_by_matrices", "ScaleAndTranslate", _scale_and_translate, _LINEAR),
    RewriteRule("gradient_by_matrices", "ResizeBilinearGrad ResizeBicubicGrad", _resize_grad, _LINEAR),
    RewriteRule("gradient_by_matrices", "ResizeNearestNeighborGrad", _nearest_grad, _LINEAR),
    RewriteRule("patches_by_gather", "ExtractImagePatches", _patches, "each element of a patch has a known place"),
    RewriteRule(
        "non_max_suppression_v5",
        "NonMaxSuppression",
        _suppression,
        "the threshold one float up, as boxes go from it on; where scores are soft only a box's equals go by it",
    ),
)


def _channels(rewriter: LiteRewriter, x: Value) -> tuple[Value, ...]:
    """Split three channels, keeping the last dimension."""
    return rewriter.emit_many("SPLIT", rewriter.constant(-1 + rank_of(x), rewriter.int32([0]).dtype), x, num_splits=3)


def _joined(rewriter: LiteRewriter, parts: tuple[Value, ...]) -> Value:
    return rewriter.emit("CONCATENATION", parts, axis=rank_of(parts[0]) - 1)


def _clipped(rewriter: LiteRewriter, x: Value) -> Value:
    """Clamp to [0, 1]."""
    return rewriter.emit("MINIMUM", rewriter.emit("MAXIMUM", x, number(rewriter, 0, x)), number(rewriter, 1, x))


def _to_hsv(rewriter: LiteRewriter, x: Value) -> tuple[Value, Value, Value]:
    only(x, float32)
    r, g, b = _channels(rewriter, x)
    value = rewriter.emit("MAXIMUM", rewriter.emit("MAXIMUM", r, g), b)
    least = rewriter.emit("MINIMUM", rewriter.emit("MINIMUM", r, g), b)
    d = rewriter.emit("SUB", value, least)
    zero = number(rewriter, 0, x)

    def or_zero(condition: Value, quotient: Value) -> Value:
        return rewriter.emit("SELECT_V2", condition, quotient, zero)

    saturation = or_zero(rewriter.emit("GREATER", value, zero), rewriter.emit("DIV", d, value))

    def sixth(p: Value, q: Value, turn: float) -> Value:
        quotient = rewriter.emit("DIV", rewriter.emit("SUB", p, q), d)
        return rewriter.emit("ADD", quotient, number(rewriter, turn, x)) if turn else quotient

    by_green = rewriter.emit("SELECT_V2", rewriter.emit("EQUAL", g, value), sixth(b, r, 2), sixth(r, g, 4))
    sixths = rewriter.emit("SELECT_V2", rewriter.emit("EQUAL", r, value), sixth(g, b, 0), by_green)
    hue = rewriter.emit("MUL", or_zero(rewriter.emit("GREATER", d, zero), sixths), number(rewriter, 1 / 6, x))
    negative = rewriter.emit("LESS", hue, zero)
    return (
        rewriter.emit("SELECT_V2", negative, rewriter.emit("ADD", hue, number(rewriter, 1, x)), hue),
        saturation,
        value,
    )


def _to_rgb(rewriter: LiteRewriter, hue: Value, saturation: Value, value: Value) -> Value:
    six = rewriter.emit("MUL", hue, number(rewriter, 6, hue))

    def tent(at: float, sign: str) -> Value:
        """Emit |6 H - 3| - 1 or 2 - |6 H - at|, within [0, 1]."""
        away = rewriter.emit("ABS", rewriter.emit("SUB", six, number(rewriter, at, hue)))
        return _clipped(
            rewriter,
            rewriter.emit("SUB", away, number(rewriter, 1, hue))
            if sign == "+"
            else rewriter.emit("SUB", number(rewriter, 2, hue), away),
        )

    parts = []
    for f in (tent(3, "+"), tent(2, "-"), tent(4, "-")):
        mixed = rewriter.emit(
            "ADD", rewriter.emit("SUB", number(rewriter, 1, hue), saturation), rewriter.emit("MUL", saturation, f)
        )
        parts.append(rewriter.emit("MUL", value, mixed))
    return _joined(rewriter, tuple(parts))


def _rgb_to_hsv(node: Node, rewriter: LiteRewriter) -> RuleResult:
    return _joined(rewriter, _to_hsv(rewriter, next(node.operands)))


def _hsv_to_rgb(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    only(x, float32)
    return _to_rgb(rewriter, *_channels(rewriter, x))


def _adjust_hue(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, delta = node.operands
    hue, saturation, value = _to_hsv(rewriter, x)
    turned = rewriter.emit("FLOOR_MOD", rewriter.emit("ADD", hue, delta), number(rewriter, 1, x))
    return _to_rgb(rewriter, turned, saturation, value)


def _adjust_saturation(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, scale = node.operands
    hue, saturation, value = _to_hsv(rewriter, x)
    return _to_rgb(rewriter, hue, _clipped(rewriter, rewriter.emit("MUL", saturation, scale)), value)


def _adjust_contrast(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, factor = node.operands
    only(x, float32)
    rank = rank_of(x)
    mean = rewriter.emit("MEAN", x, rewriter.int32([rank - 3, rank - 2]), keep_dims=True)
    return rewriter.emit("ADD", rewriter.emit("MUL", rewriter.emit("SUB", x, mean), factor), mean)


COLOURS = rule_table(
    RewriteRule("rgb_to_hsv", "RGBToHSV", _rgb_to_hsv, "its definition"),
    RewriteRule("hsv_to_rgb", "HSVToRGB", _hsv_to_rgb, "its definition"),
    RewriteRule("adjust_hue", "AdjustHue", _adjust_hue, "its definition, by way of HSV"),
    RewriteRule("adjust_saturation", "AdjustSaturation", _adjust_saturation, "its definition, by way of HSV"),
    RewriteRule("adjust_contrast", "AdjustContrast", _adjust_contrast, "its definition"),
)
