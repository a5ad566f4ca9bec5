"""Rules for boxes: NonMaxSuppression.

Lives here: the rule.  Not here: images (images.py).

The catalogue, as TensorFlow, leaves a box out that shares more than iou_threshold with a better one, softly by
scores only; the dialect leaves it out at iou_threshold itself, and does so with soft scores, too. The official kernel
needs that: a box it has chosen it leaves out by what it shares with itself, which is 1.
"""

from __future__ import annotations

import numpy as np

from ....core.dtypes import float32, int32
from ....graph import Node, Value
from ..lowering import Lowered, Lowering, Rule, table
from .building import constant_of, only

ALL = 1.0  # what two boxes share that are one and the same


def _suppression(node: Node, low: Lowering) -> Lowered:
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


BOXES = table(
    Rule("non_max_suppression_v5", "NonMaxSuppression", _suppression,
         "the threshold one float up, as boxes go from it on; where scores are soft only a box's equals go by it"),
)  # fmt: skip
