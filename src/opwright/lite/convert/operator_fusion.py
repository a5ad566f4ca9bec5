"""Patterns that merge arithmetic into the operator before it: bias, scale, activation; and some compositions.

Lives here: rules of the lite dialect.  Not here: transposes and reshapes (canonicalization.py), the driver (passes.py).

A node merges only if its operand has no other use. TANH never does: official kernels ignore it as an activation.
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import float32
from ...graph import Node, Value
from ...graph.passes.rewrite_rules import RewriteRule
from ...scalar.formulas import CLAMPS, FUSED_CLAMPS
from .rewriter import LiteRewriter, NoMatch, RuleResult, definition, fused_activation, rule_table

# Which operand is the filter, which the bias, and where the filter has its output channels.
LINEAR = {
    "CONV_2D": (1, 2, 0),
    "DEPTHWISE_CONV_2D": (1, 2, 3),
    "FULLY_CONNECTED": (1, 2, 0),
    "TRANSPOSE_CONV": (1, 3, 0),
    "CONV_3D": (1, 2, 4),
    "CONV_3D_TRANSPOSE": (1, 3, 3),
}
ACTIVATED = (
    "ADD",
    "SUB",
    "MUL",
    "DIV",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED",
    "TRANSPOSE_CONV",
    "CONV_3D",
    "CONV_3D_TRANSPOSE",
    "AVERAGE_POOL_2D",
    "MAX_POOL_2D",
    "L2_POOL_2D",
)
NO = NoMatch("")  # patterns decline silently: the nodes stay as they are


def is_number(value: Value, number: float) -> bool:
    """Return whether a value is a constant that equals a number of float32 in every element."""
    constant = value.constant
    return constant is not None and constant.size > 0 and bool(np.all(constant == np.float32(number)))


def with_number(node: Node, number: float) -> Value | None:
    """Return the other operand of a commutative node of which one operand is this constant."""
    x, y = node.operands
    return x if is_number(y, number) else y if is_number(x, number) else None


def channels_of(producer: Node) -> int:
    """Return the number of output channels of a linear operator."""
    at, _, axis = LINEAR[producer.op.name]
    filter = producer.inputs[at]
    assert isinstance(filter, Value)
    return int(filter.spec.shape[axis] or 0)


def _linear_and_vector(node: Node, rewriter: LiteRewriter, commutes: bool) -> tuple[Node, np.ndarray, Value] | None:
    """Return the linear operator before a node, the constant that the node combines it with, by channel, and its
    result."""
    operands = tuple(node.operands)
    for x, c in (operands, operands[::-1]) if commutes else (operands,):
        producer, constant = rewriter.producer(x, *LINEAR), c.constant
        if producer is None or constant is None or x.dtype is not float32:
            continue
        n, rank = channels_of(producer), x.spec.shape.rank
        one_a_channel = constant.shape[-1:] == (n,) and constant.size == n
        if fused_activation(producer) != "NONE" or rank is None or constant.ndim > rank:
            continue
        if constant.size == 1 or one_a_channel:
            return producer, np.broadcast_to(constant.reshape(-1), (n,)), x
    return None


def bias_of(producer: Node) -> np.ndarray | None:
    """Return the bias as an array; None if it is not constant."""
    at = LINEAR[producer.op.name][1]
    bias = producer.inputs[at] if at < len(producer.inputs) else None
    if bias is None:
        return np.zeros(channels_of(producer), np.float32)
    assert isinstance(bias, Value)
    return bias.constant


def _with(node: Node, rewriter: LiteRewriter, producer: Node, operands: dict[int, Value | None]) -> Value:
    """Recreate the producer with some operands replaced, in place of the node after it."""
    inputs = [operands.get(i, operand) for i, operand in enumerate(producer.inputs)]
    return rewriter.recreate(
        producer, *inputs, fused_activation_function=node.attrs["fused_activation_function"], like=node.outputs[0].spec
    )


def _bias(node: Node, rewriter: LiteRewriter) -> RuleResult:
    match = _linear_and_vector(node, rewriter, commutes=node.op.name == "ADD")
    if match is None:
        return NO
    producer, vector, _ = match
    bias = bias_of(producer)
    if bias is None:
        return NO
    total = bias - vector if node.op.name == "SUB" else bias + vector
    if producer.op.name == "FULLY_CONNECTED" and not total.any():  # convolutions cannot do without one
        return _with(node, rewriter, producer, {2: None})
    return _with(node, rewriter, producer, {LINEAR[producer.op.name][1]: rewriter.constant(total, float32)})


def _scale(node: Node, rewriter: LiteRewriter) -> RuleResult:
    match = _linear_and_vector(node, rewriter, commutes=node.op.name == "MUL")
    if match is None:
        return NO
    producer, vector, _ = match
    at, bias_at, axis = LINEAR[producer.op.name]
    filter, bias = producer.inputs[at], bias_of(producer)
    if not isinstance(filter, Value) or filter.constant is None or bias is None or rewriter.uses.get(filter, 0) > 1:
        return NO  # shared weights would be in the file twice
    factor = vector if node.op.name == "MUL" else np.float32(1) / vector
    if not np.isfinite(factor).all():
        return NO
    along = factor.reshape([-1 if i == axis else 1 for i in range(filter.spec.shape.rank or 0)])
    operands: dict[int, Value | None] = {at: rewriter.product(filter, along)}
    if bias.any() or producer.inputs[bias_at] is not None:
        operands[bias_at] = rewriter.constant(bias * factor, float32)
    return _with(node, rewriter, producer, operands)


def _activation(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    producer = rewriter.producer(x, *ACTIVATED)
    if producer is None or fused_activation(producer) != "NONE" or x.dtype is not float32:
        return NO
    return rewriter.recreate(producer, fused_activation_function=node.op.name, like=node.outputs[0].spec)


def _clamp(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Match min(max(x, low), high) and max(min(x, high), low)."""
    for x, c in (tuple(node.operands), tuple(node.operands)[::-1]):
        inner = rewriter.producer(x, "MAXIMUM" if node.op.name == "MINIMUM" else "MINIMUM", "RELU")
        if inner is None or x.dtype is not float32:
            continue
        if inner.op.name == "RELU":
            if node.op.name == "MINIMUM" and is_number(c, CLAMPS["RELU6"][1]):
                return rewriter.emit("RELU6", *inner.inputs, like=node.outputs[0].spec)
            continue
        least, most = CLAMPS["RELU_N1_TO_1"]
        outer_bound, inner_bound = (most, least) if node.op.name == "MINIMUM" else (least, most)
        inside = with_number(inner, inner_bound)
        if is_number(c, outer_bound) and inside is not None:
            return rewriter.emit("RELU_N1_TO_1", inside, like=node.outputs[0].spec)
    return NO


def _shifted_relu6(value: Value) -> Value | None:
    """Return x of relu6(x + 3), merged already or not."""
    node = value.node
    if node is not None and node.op.name == "RELU6":
        (value,) = node.operands
        node = value.node
        activation = "NONE"
    else:
        activation = "RELU6"
    if node is None or node.op.name != "ADD" or node.attrs["fused_activation_function"] != activation:
        return None
    return with_number(node, 3.0)


def _sixth(value: Value) -> Value | None:
    """Return y of y * (1
    6) or y
    6."""
    node = definition(value, "MUL", "DIV")
    if node is None:
        return None
    if node.op.name == "MUL":
        return with_number(node, 1 / 6)
    y, six = node.operands
    return y if is_number(six, 6.0) else None


def _hard_swish(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Match x * (relu6(x + 3)
    6), (x * relu6(x + 3))
    6 and their variants."""
    if fused_activation(node) != "NONE" or node.outputs[0].dtype is not float32:
        return NO
    product = node
    outer = _sixth(node.outputs[0])
    if outer is not None:
        inner = definition(outer, "MUL")
        if inner is None:
            return NO
        product = inner
    if product.op.name != "MUL":
        return NO
    for x, gate in (tuple(product.operands), tuple(product.operands)[::-1]):
        inside = gate if outer is not None else _sixth(gate)
        if inside is not None and _shifted_relu6(inside) is x:
            return rewriter.emit("HARD_SWISH", x, like=node.outputs[0].spec)
    return NO


L2_FLOOR = 1e-12  # the kernel takes max(norm, 1e-6): this floor of the squares is the same


def _l2_norm(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Match x * rsqrt(max(sum(x * x), 1e-12)) along the last axis, or x
    sqrt(...)."""
    root_op = "RSQRT" if node.op.name == "MUL" else "SQRT"
    if fused_activation(node) != "NONE":
        return NO
    operands = tuple(node.operands)
    for x, root in (operands, operands[::-1]) if node.op.name == "MUL" else (operands,):
        root_node = definition(root, root_op)
        clamped = definition(next(root_node.operands), "MAXIMUM") if root_node is not None else None
        total = with_number(clamped, L2_FLOOR) if clamped is not None else None
        if total is None:
            continue
        sum_node = total.node
        if sum_node is None or sum_node.op.name != "SUM" or not sum_node.attrs["keep_dims"]:
            continue
        squares, axes = sum_node.operands
        rank = x.spec.shape.rank
        if axes.constant is None or rank is None or axes.constant.reshape(-1).tolist() not in ([rank - 1], [-1]):
            continue
        if _is_square_of(squares, x):
            return rewriter.emit("L2_NORMALIZATION", x, like=node.outputs[0].spec)
    return NO


def _is_square_of(value: Value, x: Value) -> bool:
    node = value.node
    if node is None or node.op.name not in ("SQUARE", "MUL"):
        return False
    return all(operand is x for operand in node.operands)


FUSION = rule_table(
    # order: whole compositions before their parts; bias and scale before activation (a later node, so by itself)
    RewriteRule("hard_swish", "MUL DIV", _hard_swish, "its definition"),
    RewriteRule("l2_normalization", "MUL DIV", _l2_norm, "its definition, with the same floor"),
    RewriteRule("scale_into_filter", "MUL DIV", _scale, "the operator is linear in its filter and bias"),
    RewriteRule("bias", "ADD SUB", _bias, "the kernel adds it after the sum"),
    RewriteRule("clamp", "MINIMUM MAXIMUM", _clamp, "its definition"),
    RewriteRule("activation", " ".join(FUSED_CLAMPS), _activation, "the kernel clamps its result"),
)
