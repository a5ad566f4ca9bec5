"""Patterns that merge what comes before a linear operator into it: scales, offsets, padding.

Lives here: rules from the lite dialect to itself.  Not here: what comes after (fusing.py), reshapes (products.py).

A convolution of s x + t is one of x with the filter's input channels scaled by s, and the filter's sum by t added to
the bias; the latter only where no padding takes the place of t.
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import float32
from ...graph import Node, Value
from ...graph.passes.rewriting import RewriteRule
from ...ops.windows import window
from .fusing import LINEAR, NO, bias_of, channels_of
from .rewriter import LiteRewriter, RuleResult, rule_table

# Operators whose filter has the channels of x, and along which of its axes; their x is operand 0.
INPUT_AXIS = {"CONV_2D": 3, "FULLY_CONNECTED": 1, "DEPTHWISE_CONV_2D": 3, "CONV_3D": 3}


def _before(node: Node, low: LiteRewriter, *op_names: str) -> tuple[Node, Value, np.ndarray, np.ndarray] | None:
    """The arithmetic before a linear operator, its operand, the constant for each input channel, and the filter."""
    x, weights = node.inputs[:2]
    assert isinstance(x, Value)
    assert isinstance(weights, Value)
    made, filter = low.producer(x, *op_names), weights.constant
    if made is None or filter is None or x.dtype is not float32 or made.attrs["fused_activation_function"] != "NONE":
        return None
    if node.op.name == "FULLY_CONNECTED" and not node.attrs["keep_num_dims"] and x.spec.shape.rank != 2:
        return None
    axis = INPUT_AXIS[node.op.name]
    multiplier = node.attrs.get("depth_multiplier", 1) if node.op.name == "DEPTHWISE_CONV_2D" else 1
    n = filter.shape[axis] // max(multiplier, 1)
    operands = tuple(made.operands)
    for y, c in (operands, operands[::-1]) if made.op.name in ("MUL", "ADD") else (operands,):
        constant = c.constant
        if constant is None or y.constant is not None or y.spec.shape != x.spec.shape:
            continue
        if (x.spec.shape.dims or (None,))[-1] != n:
            return None  # groups
        if constant.size == 1 or (constant.size == n and constant.shape[-1] == n):
            vector = np.broadcast_to(constant.reshape(-1), (n,))
            return made, y, np.repeat(vector, multiplier), filter
    return None


def _scale_before(node: Node, low: LiteRewriter) -> RuleResult:
    found = _before(node, low, "MUL", "DIV")
    if found is None:
        return NO
    made, y, vector, filter = found
    weights = node.inputs[1]
    if isinstance(weights, Value) and low.uses.get(weights, 0) > 1:
        return NO  # shared weights would be in the file twice
    factor = vector if made.op.name == "MUL" else np.float32(1) / vector
    if not np.isfinite(factor).all():
        return NO
    axis = INPUT_AXIS[node.op.name]
    along = factor.reshape([-1 if i == axis else 1 for i in range(filter.ndim)])
    return low.recreate(node, y, low.constant(filter * along, float32), *node.inputs[2:])


def _offset_before(node: Node, low: LiteRewriter) -> RuleResult:
    found = _before(node, low, "ADD", "SUB")
    bias = bias_of(node)
    if found is None or bias is None or (node.attrs.get("padding", "VALID") != "VALID" and not _is_point(node)):
        return NO
    made, y, vector, filter = found
    offset = vector if made.op.name == "ADD" else -vector
    _, bias_at, out_axis = LINEAR[node.op.name]
    axis = INPUT_AXIS[node.op.name]
    product = filter * offset.reshape([-1 if i == axis else 1 for i in range(filter.ndim)])
    added = product.sum(tuple(i for i in range(filter.ndim) if i != out_axis), dtype=np.float64)
    inputs = list(node.inputs)
    inputs[0] = y
    inputs += [None] * (bias_at + 1 - len(inputs))
    inputs[bias_at] = low.constant((bias + added).reshape(channels_of(node)), float32)
    return low.recreate(node, *inputs)


def _is_point(node: Node) -> bool:
    """Whether the kernel is a point, which no padding can meet."""
    filter = node.inputs[1]
    return isinstance(filter, Value) and (filter.spec.shape.dims or (None,) * 3)[1:3] == (1, 1)


def _padding(node: Node, low: LiteRewriter) -> RuleResult:
    """Zeros around an image that SAME would put there too."""
    x, weights = node.inputs[:2]
    assert isinstance(x, Value)
    assert isinstance(weights, Value)
    pad = low.producer(x, "PAD")
    if pad is None or node.attrs["padding"] != "VALID":
        return NO
    image, paddings = pad.operands
    dims, kernel = image.spec.shape.dims, weights.spec.shape.dims
    if paddings.constant is None or dims is None or kernel is None or None in (*dims[1:3], *kernel[1:3]):
        return NO
    pads = paddings.constant.tolist()
    attrs = node.attrs
    if len(pads) != 4 or pads[0] != [0, 0] or pads[3] != [0, 0]:
        return NO
    steps = ((attrs["stride_h"], attrs["dilation_h_factor"]), (attrs["stride_w"], attrs["dilation_w_factor"]))
    for size, k, (stride, dilation), (before, after) in zip(dims[1:3], kernel[1:3], steps, pads[1:3]):
        same = window(int(size or 0), int(k or 0), stride, dilation, "SAME")
        valid = window(int(size or 0), int(k or 0), stride, dilation, "EXPLICIT", (before, after))
        if same.out != valid.out or same.before != before:
            return NO
    return low.recreate(node, image, *node.inputs[1:], padding="SAME")


SCALING = rule_table(
    *(
        RewriteRule("padding_into_same", op, _padding, "the same zeros in the same places")
        for op in ("CONV_2D", "DEPTHWISE_CONV_2D")
    ),
    *(RewriteRule("scale_before", op, _scale_before, "it is linear in each input channel") for op in INPUT_AXIS),
    *(RewriteRule("offset_before", op, _offset_before, "it is linear, and nothing is padded") for op in INPUT_AXIS),
)
