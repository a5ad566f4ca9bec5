"""Identities of shape and order, and static shapes.

Lives here: SHAPES, the table.  Not here: identities of numbers (arithmetic.py).

Where a node could fail when it runs, for sizes that are not known ahead, it is left alone: dropping it would drop the
error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import Node, Value
from .constant_folding import replacement_constant
from .rewrite_rules import Answer, PatternRewriter, RewriteRule

_SAME_ORDER = frozenset({"Reshape", "ExpandDims", "Squeeze"})  # elements stay in row-major order


def _first(node: Node) -> Value:
    value = node.inputs[0]
    assert isinstance(value, Value)
    return value


def _static(value: Value) -> tuple[int, ...] | None:
    return tuple(value.shape) if value.shape.is_fully_defined() else None  # type: ignore[arg-type]


def same_static_shape(a: Value, b: Value) -> bool:
    """Return whether two values have one shape, known without running."""
    return _static(a) is not None and _static(a) == _static(b)


def there_and_back(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match a chain of reshapes that ends in an earlier shape, or starts from an earlier tensor."""
    (out,) = node.outputs
    start: Value = out
    producer: Node | None = node
    while producer is not None and producer.op.name in _SAME_ORDER and _static(_first(producer)) is not None:
        start = _first(producer)
        if same_static_shape(start, out):
            return (start,)
        producer = start.node
    if start is out or start is _first(node) or node.op.name != "Reshape" or _static(out) is None:
        return None
    return node.replaced(inputs=(start, node.inputs[1]))


def expand_and_squeeze(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match squeeze(expand_dims(x, a), [a])."""
    inner = _first(node).node
    if inner is None or inner.op.name != "ExpandDims":
        return None
    rank = _first(node).shape.rank
    axes = node.attrs["axis"]
    if rank is None or len(axes) != 1 or axes[0] % rank != inner.attrs["axis"] % rank:
        return None
    return (_first(inner),)


def _order(node: Node) -> tuple[int, ...] | None:
    """Return the permutation of a Transpose; None if the rank is unknown."""
    perm, rank = node.attrs["perm"], _first(node).shape.rank
    if rank is None:
        return None
    return tuple(range(rank))[::-1] if perm is None else tuple(p % rank for p in perm)


def transpose(node: Node, rewriter: PatternRewriter) -> Answer:
    """Drop an identity permutation, or compose two transposes."""
    order = _order(node)
    if order is None:
        return None
    if order == tuple(range(len(order))):
        return (_first(node),)
    inner = _first(node).node
    if inner is None or inner.op is not node.op:
        return None
    before = _order(inner)
    if before is None:
        return None
    return node.replaced(inputs=(_first(inner),), attrs={**node.attrs, "perm": tuple(before[p] for p in order)})


def same_shape(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match an operator whose result has the static shape of its operand."""
    return (_first(node),) if same_static_shape(_first(node), node.outputs[0]) else None


def slice_of_everything(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match a strided slice of all elements."""
    if not same_static_shape(_first(node), node.outputs[0]):
        return None
    if node.attrs["new_axis_mask"] or node.attrs["shrink_axis_mask"]:
        return None
    strides = node.inputs[3]
    assert isinstance(strides, Value)
    return (_first(node),) if strides.constant is not None and (strides.constant == 1).all() else None


def one_part(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match a concatenation of one tensor, or a split into one."""
    operands = node.inputs[0]
    several = operands if isinstance(operands, tuple) else (operands,)
    return (several[0],) if len(several) == len(node.outputs) == 1 and several[0] is not None else None


def no_axes(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match a reduction or reversal over no axes."""
    axes = node.attrs["axis"]
    if node.op.name == "Sum" and not _first(node).dtype.is_integer:
        return None  # NumPy's sum begins with 0.0, which makes -0.0 to 0.0
    return (_first(node),) if axes is not None and len(axes) == 0 else None


def all_constant(neutral: int, position: int) -> Callable[[Node, PatternRewriter], Answer]:
    """Return the rule for operators that are the identity if all elements of an operand are `neutral`."""

    def rule(node: Node, rewriter: PatternRewriter) -> Answer:
        value = node.inputs[position]
        assert isinstance(value, Value)
        constant = value.constant
        return (_first(node),) if constant is not None and (constant == neutral).all() else None

    return rule


def unpack_of_pack(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match an unstacking along the axis of a stack."""
    inner = _first(node).node
    if inner is None or inner.op.name != "Pack":
        return None
    parts = inner.inputs[0]
    rank = _first(node).shape.rank
    if not isinstance(parts, tuple) or rank is None or len(parts) != len(node.outputs):
        return None
    return parts if inner.attrs["axis"] % rank == node.attrs["axis"] % rank else None


def known_shape(node: Node, rewriter: PatternRewriter) -> Answer:
    """Replace shape, size and rank by constants, where they are static."""
    (x,), (out,) = tuple(node.operands), node.outputs
    result: Any = x.shape.rank if node.op.name == "Rank" else _static(x)
    if result is None:
        return None
    if node.op.name == "Size":
        result = int(np.prod(result, dtype=np.int64))
    return (replacement_constant(rewriter, node, out, result),)


SHAPES: Sequence[RewriteRule] = (
    RewriteRule("known_shape", "Shape Size Rank", known_shape, "it follows from the type"),
    RewriteRule(
        "there_and_back",
        "Reshape ExpandDims Squeeze",
        there_and_back,
        "elements keep their order, and known sizes cannot fail",
    ),
    RewriteRule("expand_and_squeeze", "Squeeze", expand_and_squeeze, "the removed dimension is the added one"),
    RewriteRule("transpose", "Transpose", transpose, "permutations compose"),
    RewriteRule(
        "same_shape",
        "BroadcastTo SumToLike Slice EnsureShape",
        same_shape,
        "nothing is repeated, summed or checked where the shapes are equal",
    ),
    RewriteRule(
        "slice_of_everything", "StridedSlice", slice_of_everything, "equal sizes in steps of one leave nothing out"
    ),
    RewriteRule("one_part", "Concat Split", one_part, "one tensor is the whole"),
    RewriteRule("no_axes", "Sum Prod Max Min All Any Reverse", no_axes, "nothing is reduced or reversed"),
    RewriteRule("tile_once", "Tile", all_constant(1, 1), "one copy is the tensor"),
    RewriteRule("pad_with_nothing", "Pad MirrorPad", all_constant(0, 1), "nothing is added"),
    RewriteRule("roll_by_nothing", "Roll", all_constant(0, 1), "each element keeps its index"),
    RewriteRule("unpack_of_pack", "Unpack", unpack_of_pack, "along one axis they are inverses"),
)
