"""Selection of elements by truth values, and of boxes by score: SELECT, SELECT_V2, WHERE, NON_MAX_SUPPRESSION_V4, _V5.

Lives here: these operators.
Not here: comparison and logic (elementwise.py), non-maximum suppression itself (ops/box_suppression.py), its conversion
between the dialects (convert/rules/images.py).

Boxes are [n, 4], two opposite corners (y1, x1, y2, x2). A box is suppressed if its overlap with a selected one is
iou_threshold or more, or if its score, which soft suppression reduces by the overlap, is not above score_threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.dtypes import ALL, float32, int8, int32, int64, uint8, uint32
from ...core.dtypes import bool as bool_
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops import box_suppression
from ...ops.slots import Input, Output
from .definition import LiteDefinition, lite_operator
from .shapes import bounded, broadcast, ints, refuse, same, spec, text
from .tiling import Part, elements


@lite_operator("SELECT")
class SelectOp(LiteDefinition):
    """Each element of x where the condition holds, else of y, which has x's shape.

    .. math:: z_i = c_i: x_i,\\ \\text{else}\\ y_i

    The condition has x's shape, is a scalar, or has one element for each of x's first dimension.
    """

    condition = Input((bool_,))
    x = Input(ALL)
    y = Input(ALL, like="x")
    z = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        c, x, y = (i.spec.shape for i in (op.condition, op.x, op.y))
        if not x.is_compatible_with(y):
            raise refuse("x and y differ in shape", found={"x": text(x), "y": text(y)}, wanted="one shape")
        rows = c.rank == 1 and x.rank and (c[0] is None or x[0] is None or c[0] == x[0] or c[0] == 1)
        if c.rank and not rows and not c.is_compatible_with(x):
            raise refuse(
                "the condition does not fit x",
                found={"condition": text(c), "x": text(x)},
                wanted="x's shape, a scalar, or x's first dimension",
            )
        return TensorSpec(x.merge_with(y), op.x.spec.dtype)

    def compute(op: Any, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if condition.shape != x.shape:
            condition = condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim))
        return np.where(condition, x, y)


@lite_operator("SELECT_V2")
class SelectV2Op(LiteDefinition):
    """Each element of x where the condition holds, else of y; all three broadcast.

    .. math:: z_i = c_i: x_i,\\ \\text{else}\\ y_i
    """

    condition = Input((bool_,))
    x = Input(ALL)
    y = Input(ALL, like="x")
    z = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(broadcast(op.condition, op.x, op.y), op.x.spec.dtype)

    def parts(op: Any, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> Iterator[Part]:
        return elements(np.where, (condition, x, y), np.broadcast_shapes(condition.shape, x.shape, y.shape))

    def compute(op: Any, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(condition, x, y)


@lite_operator("WHERE")
class WhereOp(LiteDefinition):
    """The coordinates of elements that are not 0 (not False), in row-major order: int64 [count, rank].

    .. math:: y = \\{ i : x_i \\ne 0 \\}
    """

    x = Input((bool_, float32, int32, int64, int8, uint8, uint32))
    y = Output(dtype=int64)
    moves = True

    def infer(op: Any) -> TensorSpec:
        shape, constant = op.x.spec.shape, op.x.constant
        if shape.rank is None:
            return TensorSpec(UNKNOWN, int64)
        return spec((None if constant is None else int(np.count_nonzero(constant)), shape.rank), int64)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return np.argwhere(x) if x.ndim else np.empty((int(np.count_nonzero(x)), 0), np.int64)


def _count(op: Any) -> int | None:
    """Check the operands and return the number of indices."""
    boxes, scores, count = op.boxes.spec.shape, op.scores.spec.shape, ints(op.max_output_size)
    if not same(boxes[1], 4) or not same(boxes[0], scores[0]):
        raise refuse(
            "boxes and scores do not fit", found={"boxes": text(boxes), "scores": text(scores)}, wanted="[n,4] and [n]"
        )
    if count is None:
        return None
    if count[0] < 0:
        raise refuse("max_output_size is negative", found=count[0], wanted="at least 0")
    bounded((count[0], 2), float32, "the list of boxes")
    return count[0]


def select(
    boxes: Any, scores: Any, max_count: int, threshold: Any, score_threshold: Any, sigma: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the boxes chosen, in falling order of their score, and that score."""
    iou = box_suppression.BoxAreas(boxes).iou
    return box_suppression.suppressed(
        iou, scores, max_count, lambda shares: shares >= threshold, score_threshold, sigma
    )


def _number(operand: np.ndarray) -> np.generic:
    result: np.generic = operand.reshape(-1)[0]
    return result


def _filled(elements: np.ndarray, size: int, dtype: Any) -> np.ndarray:
    y = np.zeros(size, dtype)
    y[: len(elements)] = elements
    return y


@lite_operator("NON_MAX_SUPPRESSION_V4")
class NonMaxSuppressionV4Op(LiteDefinition):
    """Indices of boxes by falling score, without boxes whose overlap with a better one is iou_threshold or more.

    boxes: float32 [n, 4]; scores: [n]; the others one number each. selected_indices: int32 [max_output_size], filled
    up with 0; num_selected: int32, how many count.
    """

    boxes = Input((float32,), rank=2)
    scores = Input((float32,), rank=1)
    max_output_size = Input((int32,), rank=0)
    iou_threshold = Input((float32,), rank=0)
    score_threshold = Input((float32,), rank=0)
    selected_indices = Output(dtype=int32)
    num_selected = Output(dtype=int32)

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec]:
        return spec((_count(op),), int32), TensorSpec((), int32)

    def compute(
        op: Any,
        boxes: np.ndarray,
        scores: np.ndarray,
        max_output_size: np.ndarray,
        iou_threshold: np.ndarray,
        score_threshold: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        size = int(max_output_size)
        indices, _ = select(boxes, scores, size, _number(iou_threshold), _number(score_threshold), np.float32(0))
        return _filled(indices, size, np.int32), np.array(len(indices), np.int32)


@lite_operator("NON_MAX_SUPPRESSION_V5")
class NonMaxSuppressionV5Op(LiteDefinition):
    """NON_MAX_SUPPRESSION_V4 with scores reduced by the overlap with better boxes (soft suppression).

    .. math:: s_i' = s_i \\prod_{j \\text{ chosen before}} e^{-u_{ij}^2 / (2\\, soft\\_nms\\_sigma)}

    selected_scores: float32 [max_output_size], s' filled up with 0. soft_nms_sigma 0: scores stay.
    """

    boxes = Input((float32,), rank=2)
    scores = Input((float32,), rank=1)
    max_output_size = Input((int32,), rank=0)
    iou_threshold = Input((float32,), rank=0)
    score_threshold = Input((float32,), rank=0)
    soft_nms_sigma = Input((float32,), rank=0)
    selected_indices = Output(dtype=int32)
    selected_scores = Output(dtype=float32)
    num_selected = Output(dtype=int32)

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        count = _count(op)
        sigma = op.soft_nms_sigma.constant
        if sigma is not None and not sigma >= 0:
            raise refuse("soft_nms_sigma is negative", found=float(sigma), wanted="at least 0")
        return spec((count,), int32), spec((count,), float32), TensorSpec((), int32)

    def compute(
        op: Any,
        boxes: np.ndarray,
        scores: np.ndarray,
        max_output_size: np.ndarray,
        iou_threshold: np.ndarray,
        score_threshold: np.ndarray,
        soft_nms_sigma: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        size = int(max_output_size)
        if not soft_nms_sigma >= 0:
            raise refuse("soft_nms_sigma is negative", found=float(soft_nms_sigma), wanted="at least 0")
        indices, selected = select(
            boxes, scores, size, _number(iou_threshold), _number(score_threshold), _number(soft_nms_sigma)
        )
        return _filled(indices, size, np.int32), _filled(selected, size, np.float32), np.array(len(indices), np.int32)
