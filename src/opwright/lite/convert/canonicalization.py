"""Canonicalization patterns of the lite dialect: identities, constants, transposes and reshapes.

Lives here: nodes that return an operand, nodes of constants, chains of constants; rules that change no element.
Not here: merging of arithmetic (operator_fusion.py, linear_operators.py).

A network for channels-first images is converted with a transpose on each side of each convolution. Transposes sink
through element-wise nodes until two meet and cancel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.dtypes import float32
from ...core.errors import InvalidArgumentError
from ...graph import Node, Value
from ...graph.passes.rewrite_rules import RewriteRule
from .operator_fusion import NO, is_number
from .rewriter import LiteRewriter, Rewrite, RuleResult, fused_activation, rule_table

MOST_ELEMENTS = 1 << 10  # that computing a constant may add to the file
FOLDED = (
    "RESHAPE TRANSPOSE EXPAND_DIMS SQUEEZE CAST SLICE STRIDED_SLICE GATHER PACK CONCATENATION ADD SUB MUL DIV NEG "
    "SQRT RSQRT SQUARE SHAPE REDUCE_PROD BROADCAST_ARGS MAXIMUM MINIMUM FLOOR_DIV FLOOR_MOD"
)
KINDS = "fiub"


def _fold(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Fold a node of constants, unless the result is much larger."""
    operands = tuple(node.operands)
    constants = [v.constant for v in operands]
    if not operands or any(c is None or c.dtype.kind not in KINDS for c in constants):
        return NO
    size = node.outputs[0].spec.shape.num_elements()
    if size is None or size > max(MOST_ELEMENTS, *(c.size for c in constants if c is not None)):
        return NO
    try:
        (array,) = node.op.evaluate(node.inputs, node.attrs)
    except InvalidArgumentError:  # such as a division by 0, which is the model's to fail at
        return NO
    return rewriter.constant(np.ascontiguousarray(array).reshape(array.shape), node.outputs[0].dtype)


def _same_shape(x: Value, node: Node) -> bool:
    """Return whether the result has the shape of `x`, as known or because no other operand can change it."""
    dims, result = x.spec.shape.dims, node.outputs[0].spec.shape.dims
    if dims is None or result is None or x.dtype is not node.outputs[0].dtype:
        return False
    others = [v.spec.shape.dims for v in node.operands if v is not x]
    if any(o is None or len(o) > len(dims) for o in others):
        return False
    return all(d in (1, f) and d is not None for o in others for d, f in zip(reversed(o or ()), reversed(dims)))


def _neutral(number: float, commutes: bool) -> Rewrite:
    """Match x + 0, x - 0, x * 1, x / 1."""

    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        operands = tuple(node.operands)
        for x, c in (operands, operands[::-1]) if commutes else (operands,):
            if fused_activation(node) == "NONE" and is_number(c, number) and _same_shape(x, node):
                return x
        return NO

    return lower


def _no_padding(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, paddings, *_ = node.operands
    return x if paddings.constant is not None and not paddings.constant.any() else NO


def _whole_slice(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, begin, size = node.operands
    dims = x.spec.shape.dims
    if dims is None or begin.constant is None or size.constant is None or begin.constant.any():
        return NO
    return x if all(s in (-1, d) for s, d in zip(size.constant.tolist(), dims)) else NO


def _one_tile(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, multiples = node.operands
    return x if multiples.constant is not None and (multiples.constant == 1).all() else NO


def _as_broad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x = next(node.operands)
    shape = x.spec.shape
    return x if shape.is_fully_defined() and shape == node.outputs[0].spec.shape else NO


def _same_type(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return x if x.dtype is node.outputs[0].dtype else NO


def _one_part(node: Node, rewriter: LiteRewriter) -> RuleResult:
    operands = tuple(node.operands)
    return operands[0] if len(operands) == 1 and fused_activation(node) == "NONE" else NO


def _joined_parts(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Join the parts of a CONCATENATION along the same axis that nothing else reads."""
    rank = node.outputs[0].spec.shape.rank
    parts: list[Value] = []
    for value in node.operands:
        inner = rewriter.producer(value, "CONCATENATION")
        if inner is None or not rank or fused_activation(inner) != "NONE" or value.dtype is not float32:
            parts.append(value)
        else:
            parts += inner.operands if (inner.attrs["axis"] - node.attrs["axis"]) % rank == 0 else (value,)
    if len(parts) == len(tuple(node.operands)):
        return NO
    return rewriter.recreate(node, tuple(parts))


def _chain(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Reassociate (x + a) + b to x + (a + b), and products likewise."""
    operands = tuple(node.operands)
    for x, b in (operands, operands[::-1]):
        inner = rewriter.producer(x, node.op.name)
        if inner is None or b.constant is None or fused_activation(inner) != "NONE" or x.dtype is not float32:
            continue
        first, second = inner.operands
        for y, a in ((first, second), (second, first)):
            if a.constant is None or y.constant is not None:
                continue
            joined = a.constant + b.constant if node.op.name == "ADD" else a.constant * b.constant
            if joined.size == max(a.constant.size, b.constant.size) and np.isfinite(joined).all():
                return rewriter.recreate(node, y, rewriter.constant(joined, float32))
    return NO


IDENTITIES = rule_table(
    RewriteRule("fold", FOLDED, _fold, "its operands are constants"),
    RewriteRule("add_zero", "ADD", _neutral(0, True), "x + 0 is x, but for the sign of a zero"),
    RewriteRule("subtract_zero", "SUB", _neutral(0, False), "x - 0 is x"),
    RewriteRule("multiply_by_one", "MUL", _neutral(1, True), "x * 1 is x"),
    RewriteRule("divide_by_one", "DIV", _neutral(1, False), "x / 1 is x"),
    RewriteRule("no_padding", "PAD PADV2 MIRROR_PAD", _no_padding, "the paddings are 0"),
    RewriteRule("whole_slice", "SLICE", _whole_slice, "all is taken"),
    RewriteRule("one_tile", "TILE", _one_tile, "nothing is repeated"),
    RewriteRule("as_broad", "BROADCAST_TO", _as_broad, "it has that shape"),
    RewriteRule("same_type", "CAST", _same_type, "it has that type"),
    RewriteRule("one_part", "CONCATENATION", _one_part, "there is nothing to join"),
    RewriteRule("joined_parts", "CONCATENATION", _joined_parts, "parts keep their order"),
    RewriteRule("chain", "ADD MUL", _chain, "sums and products of constants are constants"),
)


UNARY = (
    "RELU RELU6 RELU_N1_TO_1 TANH LOGISTIC ABS NEG EXP LOG SQRT RSQRT SQUARE ELU LEAKY_RELU HARD_SWISH GELU SIN COS "
    "FLOOR CEIL ROUND"
)
BINARY = "ADD SUB MUL DIV MAXIMUM MINIMUM"
REDUCING = "MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD"


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
    if perm is None or node.outputs[0].spec.shape.rank != len(perm):
        return NO
    rank = len(perm)
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


def _joined(dims: Sequence[int | None], result: Sequence[int | None]) -> list[list[int]] | None:
    """Return for each size of a reshape's result the dimensions that it joins; None if it splits any."""
    groups: list[list[int]] = []
    place = 0
    for size in result:
        group, product = [], 1
        while size is not None and product < size and place < len(dims):
            group.append(place)
            product *= dims[place] or 0
            place += 1
        if product != size:
            return None
        groups.append(group)
    if groups:
        groups[-1].extend(range(place, len(dims)))  # of size 1
    return groups


def _transpose_around_reshape(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Merge a transpose with one before a reshape that joins dimensions: each joined one moves as a whole."""
    reshape = rewriter.producer(next(node.operands), "RESHAPE")
    inner = None if reshape is None else rewriter.producer(next(reshape.operands), "TRANSPOSE")
    outer_order, inner_order = order_of(node), order_of(inner)
    if reshape is None or inner is None or outer_order is None or inner_order is None:
        return NO
    before, after = inner.outputs[0].spec.shape, reshape.outputs[0].spec.shape
    if not (before.is_fully_defined() and after.is_fully_defined()) or 0 in (before.dims or ()):
        return NO
    groups = _joined(before.dims or (), after.dims or ())
    if groups is None:
        return NO
    order = [inner_order[i] for j in outer_order for i in groups[j]]
    source, _ = inner.operands
    moved = rewriter.emit("TRANSPOSE", source, rewriter.int32(order))
    result = node.outputs[0].spec
    return rewriter.emit("RESHAPE", moved, rewriter.int32([d or 0 for d in result.shape.dims or ()]), like=result)


def _reduced_away(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Let a reduction drop the dimensions that it keeps, where a reshape drops these alone."""
    inner = rewriter.producer(next(node.operands), *REDUCING.split())
    result = node.outputs[0].spec.shape.dims
    if inner is None or result is None or result.count(None) > 1 or not inner.attrs["keep_dims"]:
        return NO
    x, axes = inner.operands
    rank = x.spec.shape.rank
    if rank is None or axes.constant is None:
        return NO
    gone = {int(a) % rank for a in axes.constant.reshape(-1)}
    if result != tuple(d for i, d in enumerate(x.spec.shape.dims or ()) if i not in gone):
        return NO
    return rewriter.emit(inner.op.name, x, axes, keep_dims=False, like=node.outputs[0].spec)


LAYOUT = rule_table(
    RewriteRule("reduced_away", "RESHAPE SQUEEZE", _reduced_away, "elements keep their order"),
    RewriteRule("transpose_transpose", "TRANSPOSE", _transpose, "permutations compose"),
    RewriteRule("transpose_around_reshape", "TRANSPOSE", _transpose_around_reshape, "the same permutation of elements"),
    RewriteRule("move_ones", "TRANSPOSE", _move_ones, "elements keep their order"),
    RewriteRule("reshape_reshape", "RESHAPE", _reshape, "elements keep their order"),
    RewriteRule("reshape_once", "EXPAND_DIMS SQUEEZE", _put_in, "elements keep their order"),
    RewriteRule("sink_transpose", UNARY, _sink_unary, "element by element"),
    RewriteRule("sink_transpose", BINARY, _sink_binary, "element by element"),
    RewriteRule("reduce_transposed", REDUCING, _reduce_transposed, "the same elements"),
)
