"""Patterns around linear operators: matrix products without reshapes and transposes, scales and offsets in weights.

Lives here: PRODUCTS, around FULLY_CONNECTED and BATCH_MATMUL; SCALING, scales, offsets and paddings before a
linear operator folded into it.
Not here: nodes after an operator merged into it (operator_fusion.py).

A convolution of s x + t is one of x with the filter's input channels scaled by s, and the filter's sum by t added to
the bias; the latter only if no padding takes the place of t.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...graph import Node, Value
from ...graph.passes.rewrite_rules import RewriteRule
from ...ops.windows import window
from ...scalar.formulas import FUSED_CLAMPS
from .canonicalization import order_of
from .operator_fusion import LINEAR, NO, bias_of, channels_of
from .rewriter import LiteRewriter, RuleResult, fused_activation, reshaped, rule_table


def _constant_weights(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Replace BATCH_MATMUL by a constant matrix by FULLY_CONNECTED."""
    x, y = node.operands
    weights, rank = y.constant, x.spec.shape.rank
    if weights is None or x.dtype is not float32 or rank is None or rank < 2 or node.attrs["adj_x"]:
        return NO
    if weights.ndim > rank or math.prod(weights.shape[:-2]) != 1:
        return NO
    matrix = weights.reshape(weights.shape[-2:])
    rows = matrix if node.attrs["adj_y"] else np.ascontiguousarray(matrix.T)
    return rewriter.emit(
        "FULLY_CONNECTED", x, rewriter.constant(rows, float32), None, keep_num_dims=rank > 2, like=node.outputs[0].spec
    )


def _transposed_operand(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Replace a transpose of the last two dimensions by a flag."""
    operands = list(node.operands)
    for i, (value, flag) in enumerate(zip(operands, ("adj_x", "adj_y"))):
        inner = rewriter.producer(value, "TRANSPOSE")
        order = order_of(inner)
        if inner is None or order is None or len(order) < 2:
            continue
        n = len(order)
        if order == [*range(n - 2), n - 1, n - 2]:
            operands[i] = next(inner.operands)
            flipped: dict[str, Any] = {flag: not node.attrs[flag]}
            return rewriter.recreate(node, *operands, **flipped)
    return NO


def _around(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Drop one or both of the reshapes around a FULLY_CONNECTED of rows."""
    y, _ = node.operands
    product = rewriter.producer(y, "FULLY_CONNECTED")
    if product is None:
        return NO
    flat, rows = product.inputs[:2]
    reshape = flat.node if isinstance(flat, Value) else None
    if reshape is None or reshape.op.name != "RESHAPE" or not isinstance(rows, Value):
        return NO
    x, result = next(reshape.operands), node.outputs[0].spec.shape.dims
    dims, (n, k) = x.spec.shape.dims, rows.spec.shape.dims or (None, None)
    if dims is None or result is None or k is None or n is None or len(result) < 2:
        return NO
    like = node.outputs[0].spec
    if len(dims) >= 2 and dims[-1] == k and (dims[:-1], result[-1]) == (result[:-1], n) and dims.count(None) < 2:
        return rewriter.recreate(product, x, *product.inputs[1:], keep_num_dims=len(dims) > 2, like=like)
    if result[-1] == n and len(result) > 2 and result.count(None) < 2:
        rows_apart = reshaped(rewriter, x, [*result[:-1], k])
        return rewriter.recreate(product, rows_apart, *product.inputs[1:], keep_num_dims=True, like=like)
    if len(dims) > 2 and dims[-1] == k and not product.attrs["keep_num_dims"]:
        whole = rewriter.recreate(
            product, x, *product.inputs[1:], keep_num_dims=True, like=x.spec.with_shape([*dims[:-1], n])
        )
        return rewriter.recreate(node, whole, *node.inputs[1:])
    return NO


def _rows_first(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Drop a reshape before a product that leaves the rows as they are, or one row."""
    x = node.inputs[0]
    assert isinstance(x, Value)
    reshape = x.node
    if node.attrs["keep_num_dims"] or reshape is None or reshape.op.name != "RESHAPE" or x.spec.shape.rank != 2:
        return NO
    source = next(reshape.operands)
    dims, k = source.spec.shape.dims, (x.spec.shape.dims or (None, None))[1]
    if k is None or dims is None or dims[-1] != k or (len(dims) != 2 and any(d != 1 for d in dims[:-1])):
        return NO
    return rewriter.recreate(node, source, *node.inputs[1:])


def _through_reshape(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Move a constant for each output channel before a RESHAPE that splits the channels, or leaves them."""
    operands = tuple(node.operands)
    commutes = node.op.name in ("ADD", "MUL")
    if node.outputs[0].dtype is not float32:
        return NO
    for x, c in (operands, operands[::-1]) if commutes else (operands,):
        shaping, constant = rewriter.producer(x, "RESHAPE", "SQUEEZE", "EXPAND_DIMS"), c.constant
        if shaping is None or constant is None or x.spec.shape != node.outputs[0].spec.shape:
            continue
        source = next(shaping.operands)
        linear = rewriter.producer(source, *LINEAR)
        if linear is None or fused_activation(linear) != "NONE" or bias_of(linear) is None:
            continue
        vector = _per_channel(x, constant, channels_of(linear))
        if vector is None or (source.spec.shape.dims or (None,))[-1] != len(vector):
            continue
        joined = rewriter.recreate(node, source, rewriter.constant(vector, float32), like=source.spec)
        return rewriter.recreate(shaping, joined, *shaping.inputs[1:], like=node.outputs[0].spec)
    return NO


def _per_channel(x: Value, constant: np.ndarray, n: int) -> np.ndarray | None:
    """Return a constant as one number for each of n channels, the last dimensions of x; None if it is none."""
    dims = x.spec.shape.dims
    if dims is None or constant.ndim > len(dims):
        return None
    tail: list[int] = []
    for d in reversed(dims):
        if d is None or (tail and math.prod(tail) == n):
            break
        tail.insert(0, d)
    if math.prod(tail) != n:
        return None
    if any(d != 1 for d in constant.shape[: max(0, constant.ndim - len(tail))]):
        return None
    inner = constant.reshape(constant.shape[max(0, constant.ndim - len(tail)) :])
    return np.ascontiguousarray(np.broadcast_to(inner, tail).reshape(-1))


def _activation_through_reshape(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Move an activation before a RESHAPE of an operator that can fuse it."""
    (x,) = node.operands
    shaping = rewriter.producer(x, "RESHAPE", "SQUEEZE", "EXPAND_DIMS")
    if shaping is None or x.dtype is not float32:
        return NO
    source = next(shaping.operands)
    if rewriter.producer(source, *LINEAR) is None:
        return NO
    y = rewriter.recreate(node, source, like=source.spec)
    return rewriter.recreate(shaping, y, *shaping.inputs[1:], like=node.outputs[0].spec)


PRODUCTS = rule_table(
    RewriteRule("transposed_operand", "BATCH_MATMUL", _transposed_operand, "the operator transposes by itself"),
    RewriteRule("constant_weights", "BATCH_MATMUL", _constant_weights, "its rows are the columns of the matrix"),
    RewriteRule("reshape_around", "RESHAPE", _around, "a product of rows leaves the other dimensions alone"),
    RewriteRule("reshape_before", "FULLY_CONNECTED", _rows_first, "rows are rows"),
    RewriteRule(
        "channels_through_reshape", "ADD SUB MUL DIV", _through_reshape, "each element is combined with the same number"
    ),
    RewriteRule(
        "activation_through_reshape", " ".join(FUSED_CLAMPS), _activation_through_reshape, "element by element"
    ),
)


# Operators whose filter has the channels of x, and along which of its axes; their x is operand 0.
INPUT_AXIS = {"CONV_2D": 3, "FULLY_CONNECTED": 1, "DEPTHWISE_CONV_2D": 3, "CONV_3D": 3}


def _before(node: Node, rewriter: LiteRewriter, *op_names: str) -> tuple[Node, Value, np.ndarray, np.ndarray] | None:
    """Return the arithmetic before a linear operator, its operand, its constant by input channel, and the filter."""
    x, weights = node.inputs[:2]
    assert isinstance(x, Value)
    assert isinstance(weights, Value)
    between = rewriter.producer(x, "TRANSPOSE") if node.op.name == "FULLY_CONNECTED" else None
    order = order_of(between)
    if between is not None and order is None:
        return None
    arithmetic = rewriter.producer(x if between is None else next(between.operands), *op_names)
    if arithmetic is None or x.dtype is not float32 or fused_activation(arithmetic) != "NONE":
        return None
    filter = weights.constant
    if filter is None:
        return None
    if node.op.name == "FULLY_CONNECTED" and not node.attrs["keep_num_dims"] and x.spec.shape.rank != 2:
        return None
    axis = INPUT_AXIS[node.op.name]
    multiplier = node.attrs.get("depth_multiplier", 1) if node.op.name == "DEPTHWISE_CONV_2D" else 1
    n = filter.shape[axis] // max(multiplier, 1)
    operands = tuple(arithmetic.operands)
    for y, c in (operands, operands[::-1]) if arithmetic.op.name in ("MUL", "ADD") else (operands,):
        constant = c.constant
        if constant is None or y.constant is not None or y.spec.shape != arithmetic.outputs[0].spec.shape:
            continue
        if (x.spec.shape.dims or (None,))[-1] != n:
            return None  # groups
        if order is not None:
            constant = constant.reshape((1,) * (len(order) - constant.ndim) + constant.shape).transpose(order)
        if constant.size == 1 or (constant.size == n and constant.shape[-1] == n):
            vector = np.broadcast_to(constant.reshape(-1), (n,))
            if order is not None:
                y = rewriter.emit("TRANSPOSE", y, rewriter.int32(order), like=x.spec)
            return arithmetic, y, np.repeat(vector, multiplier), filter
    return None


def _scale_before(node: Node, rewriter: LiteRewriter) -> RuleResult:
    match = _before(node, rewriter, "MUL", "DIV")
    if match is None:
        return NO
    arithmetic, y, vector, filter = match
    weights = node.inputs[1]
    if not isinstance(weights, Value) or rewriter.uses.get(weights, 0) > 1:
        return NO  # shared weights would be in the file twice
    factor = vector if arithmetic.op.name == "MUL" else np.float32(1) / vector
    if not np.isfinite(factor).all():
        return NO
    axis = INPUT_AXIS[node.op.name]
    along = factor.reshape([-1 if i == axis else 1 for i in range(filter.ndim)])
    return rewriter.recreate(node, y, rewriter.product(weights, along), *node.inputs[2:])


def _offset_before(node: Node, rewriter: LiteRewriter) -> RuleResult:
    match = _before(node, rewriter, "ADD", "SUB")
    bias = bias_of(node)
    if match is None or bias is None or (node.attrs.get("padding", "VALID") != "VALID" and not _is_point(node)):
        return NO
    arithmetic, y, vector, filter = match
    offset = vector if arithmetic.op.name == "ADD" else -vector
    _, bias_at, out_axis = LINEAR[node.op.name]
    axis = INPUT_AXIS[node.op.name]
    product = filter * offset.reshape([-1 if i == axis else 1 for i in range(filter.ndim)])
    added = product.sum(tuple(i for i in range(filter.ndim) if i != out_axis), dtype=np.float64)
    inputs = list(node.inputs)
    inputs[0] = y
    inputs += [None] * (bias_at + 1 - len(inputs))
    inputs[bias_at] = rewriter.constant((bias + added).reshape(channels_of(node)), float32)
    return rewriter.recreate(node, *inputs)


def _is_point(node: Node) -> bool:
    """Return whether the kernel is a single point, which padding cannot meet."""
    filter = node.inputs[1]
    return isinstance(filter, Value) and (filter.spec.shape.dims or (None,) * 3)[1:3] == (1, 1)


def _padding(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Drop a PAD of zeros equal to that of SAME."""
    x, weights = node.inputs[:2]
    assert isinstance(x, Value)
    assert isinstance(weights, Value)
    pad = rewriter.producer(x, "PAD")
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
    return rewriter.recreate(node, image, *node.inputs[1:], padding="SAME")


SCALING = rule_table(
    RewriteRule("padding_into_same", "CONV_2D DEPTHWISE_CONV_2D", _padding, "the same zeros in the same places"),
    RewriteRule("scale_before", " ".join(INPUT_AXIS), _scale_before, "it is linear in each input channel"),
    RewriteRule("offset_before", " ".join(INPUT_AXIS), _offset_before, "it is linear, and nothing is padded"),
)
