"""Patterns around matrix products: reshapes that they do without, weights that are constants, transposed operands.

Lives here: rules from the lite dialect to itself.  Not here: what merges into them (fusing.py, scaling.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.constants import FUSED_CLAMPS
from ...core.dtypes import float32
from ...graph import Node, Value
from ...graph.passes.rewriting import RewriteRule
from .fusing import LINEAR, NO, bias_of, channels_of
from .layout import order_of
from .rewriter import LiteRewriter, RuleResult, rule_table


def _constant_weights(node: Node, low: LiteRewriter) -> RuleResult:
    """BATCH_MATMUL by one constant matrix."""
    x, y = node.operands
    weights, rank = y.constant, x.spec.shape.rank
    if weights is None or x.dtype is not float32 or rank is None or rank < 2 or node.attrs["adj_x"]:
        return NO
    if weights.ndim > rank or math.prod(weights.shape[:-2]) != 1:
        return NO
    matrix = weights.reshape(weights.shape[-2:])
    rows = matrix if node.attrs["adj_y"] else np.ascontiguousarray(matrix.T)
    return low.emit(
        "FULLY_CONNECTED", x, low.constant(rows, float32), None, keep_num_dims=rank > 2, like=node.outputs[0].spec
    )


def _transposed_operand(node: Node, low: LiteRewriter) -> RuleResult:
    """A transpose of the last two dimensions is a flag."""
    operands = list(node.operands)
    for i, (value, flag) in enumerate(zip(operands, ("adj_x", "adj_y"))):
        inner = low.producer(value, "TRANSPOSE")
        order = order_of(inner)
        if inner is None or order is None or len(order) < 2:
            continue
        n = len(order)
        if order == [*range(n - 2), n - 1, n - 2]:
            operands[i] = next(inner.operands)
            flipped: dict[str, Any] = {flag: not node.attrs[flag]}
            return low.recreate(node, *operands, **flipped)
    return NO


def _around(node: Node, low: LiteRewriter) -> RuleResult:
    """RESHAPE to rows, FULLY_CONNECTED, RESHAPE: one of the reshapes goes, or both."""
    y, _ = node.operands
    product = low.producer(y, "FULLY_CONNECTED")
    if product is None:
        return NO
    flat, rows = product.inputs[:2]
    made = flat.node if isinstance(flat, Value) else None
    if made is None or made.op.name != "RESHAPE" or not isinstance(rows, Value):
        return NO
    x, wanted = next(made.operands), node.outputs[0].spec.shape.dims
    found, (n, k) = x.spec.shape.dims, rows.spec.shape.dims or (None, None)
    if found is None or wanted is None or k is None or n is None or len(wanted) < 2:
        return NO
    like = node.outputs[0].spec
    if len(found) >= 2 and found[-1] == k and (found[:-1], wanted[-1]) == (wanted[:-1], n) and found.count(None) < 2:
        return low.recreate(product, x, *product.inputs[1:], keep_num_dims=len(found) > 2, like=like)
    if wanted[-1] == n and len(wanted) > 2 and wanted.count(None) < 2:
        inner = [*wanted[:-1], k]
        rows_apart = low.emit(
            "RESHAPE", x, low.int32([-1 if d is None else d for d in inner]), like=x.spec.with_shape(inner)
        )
        return low.recreate(product, rows_apart, *product.inputs[1:], keep_num_dims=True, like=like)
    if len(found) > 2 and found[-1] == k and not product.attrs["keep_num_dims"]:
        whole = low.recreate(
            product, x, *product.inputs[1:], keep_num_dims=True, like=x.spec.with_shape([*found[:-1], n])
        )
        return low.recreate(node, whole, *node.inputs[1:])
    return NO


def _rows_first(node: Node, low: LiteRewriter) -> RuleResult:
    """What only joins rows before a product of rows need not."""
    x = node.inputs[0]
    assert isinstance(x, Value)
    made = x.node
    if node.attrs["keep_num_dims"] or made is None or made.op.name != "RESHAPE" or x.spec.shape.rank != 2:
        return NO
    source = next(made.operands)
    dims, k = source.spec.shape.dims, (x.spec.shape.dims or (None, None))[1]
    if k is None or dims is None or len(dims) != 2 or dims[1] != k:
        return NO
    return low.recreate(node, source, *node.inputs[1:])


def _through_reshape(node: Node, low: LiteRewriter) -> RuleResult:
    """A constant for each output channel joined after a RESHAPE that takes the channels apart, or leaves them."""
    operands = tuple(node.operands)
    commutes = node.op.name in ("ADD", "MUL")
    if node.outputs[0].dtype is not float32:
        return NO
    for x, c in (operands, operands[::-1]) if commutes else (operands,):
        shaping, constant = low.producer(x, "RESHAPE", "SQUEEZE", "EXPAND_DIMS"), c.constant
        if shaping is None or constant is None or x.spec.shape != node.outputs[0].spec.shape:
            continue
        source = next(shaping.operands)
        linear = low.producer(source, *LINEAR)
        if linear is None or linear.attrs["fused_activation_function"] != "NONE" or bias_of(linear) is None:
            continue
        vector = _per_channel(x, constant, channels_of(linear))
        if vector is None or (source.spec.shape.dims or (None,))[-1] != len(vector):
            continue
        joined = low.recreate(node, source, low.constant(vector, float32), like=source.spec)
        return low.recreate(shaping, joined, *shaping.inputs[1:], like=node.outputs[0].spec)
    return NO


def _per_channel(x: Value, constant: np.ndarray, n: int) -> np.ndarray | None:
    """A constant as one number for each of n channels, which the last dimensions of x are; None where it is not."""
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


def _activation_through_reshape(node: Node, low: LiteRewriter) -> RuleResult:
    """An activation after a RESHAPE of what could do it itself."""
    (x,) = node.operands
    shaping = low.producer(x, "RESHAPE", "SQUEEZE", "EXPAND_DIMS")
    if shaping is None or x.dtype is not float32:
        return NO
    source = next(shaping.operands)
    if low.producer(source, *LINEAR) is None:
        return NO
    y = low.recreate(node, source, like=source.spec)
    return low.recreate(shaping, y, *shaping.inputs[1:], like=node.outputs[0].spec)


PRODUCTS = rule_table(
    RewriteRule("transposed_operand", "BATCH_MATMUL", _transposed_operand, "the operator transposes by itself"),
    RewriteRule("constant_weights", "BATCH_MATMUL", _constant_weights, "its rows are the columns of the matrix"),
    RewriteRule("reshape_around", "RESHAPE", _around, "a product of rows leaves the other dimensions alone"),
    RewriteRule("reshape_before", "FULLY_CONNECTED", _rows_first, "rows are rows"),
    *(
        RewriteRule("channels_through_reshape", op, _through_reshape, "each element meets the same number")
        for op in ("ADD", "SUB", "MUL", "DIV")
    ),
    *(
        RewriteRule("activation_through_reshape", op, _activation_through_reshape, "element by element")
        for op in FUSED_CLAMPS
    ),
)
