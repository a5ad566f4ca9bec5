"""Patterns that remove or move transposes and reshapes.

Lives here: rules of the lite dialect that change no element.  Not here: merging of arithmetic (operator_fusion.py).

A network for channels-first images is converted with a transpose on each side of each convolution. Transposes sink
through element-wise nodes until two meet and cancel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import Node, Value
from ...graph.passes.rewrite_rules import RewriteRule
from .rewriter import LiteRewriter, NoMatch, RuleResult, rule_table

UNARY = (
    "RELU",
    "RELU6",
    "RELU_N1_TO_1",
    "TANH",
    "LOGISTIC",
    "ABS",
    "NEG",
    "EXP",
    "LOG",
    "SQRT",
    "RSQRT",
    "SQUARE",
    "ELU",
    "LEAKY_RELU",
    "HARD_SWISH",
    "GELU",
    "SIN",
    "COS",
    "FLOOR",
    "CEIL",
    "ROUND",
)
BINARY = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM")
REDUCING = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
NO = NoMatch("")


def order_of(node: Node | None) -> list[int] | None:
    """Return the permutation of a TRANSPOSE, if it is constant."""
    if node is None or node.op.name != "TRANSPOSE":
        return None
    _, order = node.operands
    return None if order.constant is None else order.constant.tolist()


def _inverse(order: Sequence[int]) -> list[int]:
    result: list[int] = np.argsort(order).tolist()
    return result


def _transpose(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Compose two transposes into one or none."""
    x, _ = node.operands
    order = order_of(node)
    if order is None:
        return NO
    if order == [*range(len(order))]:
        return x
    inner = order_of(x.node)
    if inner is None or x.node is None:
        return NO
    joined = [inner[i] for i in order]
    source = next(x.node.operands)
    if joined == [*range(len(order))]:
        return source
    return rewriter.emit("TRANSPOSE", source, rewriter.int32(joined), like=node.outputs[0].spec)


def _reshape(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Drop a reshape before another one, or to the shape that its operand has."""
    x, shape = node.operands
    found, result = x.spec.shape, node.outputs[0].spec.shape
    if found.is_fully_defined() and found == result:
        return x
    if x.node is not None and x.node.op.name in ("RESHAPE", "EXPAND_DIMS", "SQUEEZE") and shape.constant is not None:
        return rewriter.emit("RESHAPE", next(x.node.operands), shape, like=node.outputs[0].spec)
    return NO


def _put_in(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Merge EXPAND_DIMS or SQUEEZE with a neighbouring reshape."""
    inner = rewriter.producer(next(node.operands), "RESHAPE")
    result = node.outputs[0].spec.shape.dims
    if inner is None or result is None or result.count(None) > 1:
        return NO
    shape = rewriter.int32([-1 if d is None else d for d in result])
    return rewriter.emit("RESHAPE", next(inner.operands), shape, like=node.outputs[0].spec)


def _move_ones(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Replace a transpose that moves dimensions of size 1 alone by a reshape."""
    x, _ = node.operands
    order, dims = order_of(node), x.spec.shape.dims
    if order is None or dims is None or dims.count(None) > 1:
        return NO
    left = [i for i in order if dims[i] != 1]
    if left != sorted(left):
        return NO
    shape = rewriter.int32([-1 if dims[i] is None else dims[i] for i in order])
    return rewriter.emit("RESHAPE", x, shape, like=node.outputs[0].spec)


def _sink_unary(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    inner = rewriter.producer(x, "TRANSPOSE")
    order = order_of(inner)
    if inner is None or order is None:
        return NO
    source, perm = inner.operands
    return rewriter.emit(
        "TRANSPOSE", rewriter.recreate(node, source, like=source.spec), perm, like=node.outputs[0].spec
    )


def _sink_binary(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Sink a transpose of both operands, or of one with a constant, which is transposed inversely."""
    operands = list(node.operands)
    transposes = [rewriter.producer(v, "TRANSPOSE") for v in operands]
    orders = [order_of(n) for n in transposes]
    perm = next((p for p in orders if p is not None), None)
    rank = node.outputs[0].spec.shape.rank
    if perm is None or rank != len(perm):
        return NO
    sources: list[Value] = []
    for value, inner, order in zip(operands, transposes, orders):
        constant = value.constant
        if inner is not None and order == perm:
            sources.append(next(inner.operands))
        elif constant is not None and constant.ndim <= rank:
            full = constant.reshape((1,) * (rank - constant.ndim) + constant.shape)
            moved = np.ascontiguousarray(np.transpose(full, _inverse(perm)))
            while moved.ndim > constant.ndim and moved.ndim > 0 and moved.shape[0] == 1:
                moved = moved[0]
            sources.append(rewriter.constant(moved, value.dtype))
        else:
            return NO
    y = rewriter.recreate(node, *sources, like=node.outputs[0].spec.with_shape(_moved(node.outputs[0], perm)))
    return rewriter.emit("TRANSPOSE", y, rewriter.int32(perm), like=node.outputs[0].spec)


def _moved(value: Value, perm: Sequence[int]) -> list[int | None] | None:
    """Return the shape whose transposition by `perm` is the value's shape."""
    dims = value.spec.shape.dims
    return None if dims is None else [dims[i] for i in _inverse(perm)]


def _reduce_transposed(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Reduce before the transpose, if the remaining dimensions are then in order."""
    x, axes = node.operands
    inner = rewriter.producer(x, "TRANSPOSE")
    order = order_of(inner)
    if inner is None or order is None or axes.constant is None or node.attrs["keep_dims"]:
        return NO
    gone = {int(a) % len(order) for a in axes.constant.reshape(-1)}
    left = [order[i] for i in range(len(order)) if i not in gone]
    if left != sorted(left):
        return NO
    return rewriter.recreate(node, next(inner.operands), rewriter.int32(sorted(order[i] for i in gone)))


LAYOUT = rule_table(
    RewriteRule("transpose_transpose", "TRANSPOSE", _transpose, "permutations compose"),
    RewriteRule("move_ones", "TRANSPOSE", _move_ones, "elements keep their order"),
    RewriteRule("reshape_reshape", "RESHAPE", _reshape, "elements keep their order"),
    RewriteRule("reshape_once", "EXPAND_DIMS", _put_in, "elements keep their order"),
    RewriteRule("reshape_once", "SQUEEZE", _put_in, "elements keep their order"),
    *(RewriteRule("sink_transpose", op, _sink_unary, "element by element") for op in UNARY),
    *(RewriteRule("sink_transpose", op, _sink_binary, "element by element") for op in BINARY),
    *(RewriteRule("reduce_transposed", op, _reduce_transposed, "the same elements") for op in REDUCING),
)
