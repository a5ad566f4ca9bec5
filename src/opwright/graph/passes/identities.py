"""Exact identities of numbers and truth values, of shape and order; static shapes.

Lives here: ARITHMETIC and SHAPES, the tables.  Not here: constant folding (rewrite_rules.py).

Exact means to the last bit for every argument: NaN, infinities and -0.0, and integers that wrap around. Not
in the tables for that reason: x * 0 and x - x of floats (NaN, infinity), x + 0.0 (x = -0.0), x ** 2 and x ** 0.5 of
floats (another rounding, -0.0), complex multiplication by 1 (infinities), sums in another order, not(x < y) (NaN).

A node that could fail when it runs, for sizes unknown at trace time, is left alone: dropping it would drop the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import Node, Value
from .rewrite_rules import Answer, PatternRewriter, RewriteRule, replacement_constant

_SAME_ORDER = frozenset({"Reshape", "ExpandDims", "Squeeze"})  # elements stay in row-major order


def first_input(node: Node) -> Value:
    """Return the first input, which is one value."""
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
    while producer is not None and producer.op.name in _SAME_ORDER and _static(first_input(producer)) is not None:
        start = first_input(producer)
        if same_static_shape(start, out):
            return (start,)
        producer = start.node
    if start is out or start is first_input(node) or node.op.name != "Reshape" or _static(out) is None:
        return None
    return node.replaced(inputs=(start, node.inputs[1]))


def expand_and_squeeze(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match squeeze(expand_dims(x, a), [a])."""
    inner = first_input(node).node
    if inner is None or inner.op.name != "ExpandDims":
        return None
    rank = first_input(node).shape.rank
    axes = node.attrs["axis"]
    if rank is None or len(axes) != 1 or axes[0] % rank != inner.attrs["axis"] % rank:
        return None
    return (first_input(inner),)


def _order(node: Node) -> tuple[int, ...] | None:
    """Return the permutation of a Transpose; None if the rank is unknown."""
    perm, rank = node.attrs["perm"], first_input(node).shape.rank
    if rank is None:
        return None
    return tuple(range(rank))[::-1] if perm is None else tuple(p % rank for p in perm)


def transpose(node: Node, rewriter: PatternRewriter) -> Answer:
    """Drop an identity permutation, or compose two transposes."""
    order = _order(node)
    if order is None:
        return None
    if order == tuple(range(len(order))):
        return (first_input(node),)
    inner = first_input(node).node
    if inner is None or inner.op is not node.op:
        return None
    before = _order(inner)
    if before is None:
        return None
    return node.replaced(inputs=(first_input(inner),), attrs={**node.attrs, "perm": tuple(before[p] for p in order)})


def same_shape(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match an operator whose result has the static shape of its operand."""
    return (first_input(node),) if same_static_shape(first_input(node), node.outputs[0]) else None


def slice_of_everything(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match a strided slice of all elements."""
    if not same_static_shape(first_input(node), node.outputs[0]):
        return None
    if node.attrs["new_axis_mask"] or node.attrs["shrink_axis_mask"]:
        return None
    strides = node.inputs[3]
    assert isinstance(strides, Value)
    return (first_input(node),) if strides.constant is not None and (strides.constant == 1).all() else None


def one_part(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match a concatenation of one tensor, or a split into one."""
    operands = node.inputs[0]
    several = operands if isinstance(operands, tuple) else (operands,)
    return (several[0],) if len(several) == len(node.outputs) == 1 and several[0] is not None else None


def no_axes(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match a reduction or reversal over no axes."""
    axes = node.attrs["axis"]
    if node.op.name == "Sum" and not first_input(node).dtype.is_integer:
        return None  # NumPy's sum begins with 0.0, which makes -0.0 to 0.0
    return (first_input(node),) if axes is not None and len(axes) == 0 else None


def all_constant(neutral: int, position: int) -> Callable[[Node, PatternRewriter], Answer]:
    """Return the rule for operators that are the identity if all elements of an operand are `neutral`."""

    def rule(node: Node, rewriter: PatternRewriter) -> Answer:
        value = node.inputs[position]
        assert isinstance(value, Value)
        constant = value.constant
        return (first_input(node),) if constant is not None and (constant == neutral).all() else None

    return rule


def unpack_of_pack(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match an unstacking along the axis of a stack."""
    inner = first_input(node).node
    if inner is None or inner.op.name != "Pack":
        return None
    parts = inner.inputs[0]
    rank = first_input(node).shape.rank
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


_SMALL = 64  # constants with more elements are not searched for one number


def _number(value: Value, of: str) -> float | None:
    """Return the number that all elements of a constant equal. of: kinds of dtype it may have, as NumPy's letters."""
    array = value.constant
    if array is None or not 0 < array.size <= _SMALL:
        return None
    kind = "f" if value.dtype.is_floating else "i" if value.dtype.is_integer else array.dtype.kind
    if kind not in of:
        return None
    first = array.reshape(-1)[0]
    if array.size > 1 and array.tobytes() != np.broadcast_to(first, array.shape).tobytes():
        return None
    return bool(first) if kind == "b" else int(first) if kind == "i" else float(first)


def _is(number: Any, expected: Any) -> bool:
    """Return whether numbers are equal and of one sign: 0.0 is not -0.0."""
    return number is not None and number == expected and math.copysign(1.0, number) == math.copysign(1.0, expected)


def _other_than_neutral(node: Node, accept: Callable[[Value], bool], right_only: bool = False) -> Answer:
    """Return the other operand, if one is accepted as neutral and does not broadcast the result."""
    x, y = node.inputs
    for result, neutral in ((x, y),) if right_only else ((x, y), (y, x)):
        assert isinstance(result, Value)
        assert isinstance(neutral, Value)
        if neutral.constant is not None and _preserves_shape(result, neutral, node) and accept(neutral):
            return (result,)
    return None


def _preserves_shape(operand: Value, other: Value, node: Node) -> bool:
    """Return whether broadcasting with `other`, a constant, preserves the shape of `operand`."""
    if same_static_shape(operand, node.outputs[0]):
        return True
    shape, rank = other.shape, operand.shape.rank
    return shape.rank == 0 or (rank is not None and len(shape) <= rank and all(d == 1 for d in shape))


def add_zero(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match x + -0.0; of integers x + 0."""
    return _other_than_neutral(node, lambda v: _is(_number(v, "f"), -0.0) or _number(v, "i") == 0)


def subtract_zero(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match x - 0.0."""
    return _other_than_neutral(node, lambda v: _is(_number(v, "f"), 0.0) or _number(v, "i") == 0, right_only=True)


def multiply_by_one(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match x * 1."""
    return _other_than_neutral(node, lambda v: _number(v, "fi") == 1)


def divide_by_one(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match x
    1."""
    return _other_than_neutral(node, lambda v: _number(v, "fi") == 1, right_only=True)


def divide_integers_by_one(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match x // 1 of integers; of floats it rounds."""
    return _other_than_neutral(node, lambda v: _number(v, "i") == 1, right_only=True)


def power_of_one(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match x ** 1."""
    return _other_than_neutral(node, lambda v: _number(v, "fi") == 1, right_only=True)


def multiply_integers_by_zero(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match x * 0 of integers, of a known shape."""
    (out,) = node.outputs
    size = out.shape.num_elements()
    dims: Any = out.shape.dims
    if not out.dtype.is_integer or size is None or size > 1 << 16:
        return None
    for operand in node.operands:
        if operand.constant is not None and _number(operand, "i") == 0:
            return (replacement_constant(rewriter, node, out, np.zeros(dims, out.dtype.np)),)
    return None


def neutral_truth(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match x and True, x or False."""
    neutral = node.op.name == "LogicalAnd"
    return _other_than_neutral(node, lambda v: _number(v, "b") is neutral)


def twice(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match f(f(x)) of an involution, which is x."""
    (inner,) = node.operands
    return tuple(inner.node.operands) if inner.node is not None and inner.node.op is node.op else None


def once_is_enough(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match f(f(x)) of an idempotent function, which is f(x)."""
    (inner,) = node.operands
    made_by = inner.node
    if inner.dtype.is_complex:
        return None  # z / |z| is rounded
    return (inner,) if made_by is not None and made_by.op is node.op and made_by.attrs == node.attrs else None


def with_itself(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match f(x, x) that is x."""
    x, y = node.inputs
    return (x,) if x is y and isinstance(x, Value) else None


def absolute_of_negative(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match |-x|, which is |x|."""
    (inner,) = node.operands
    if inner.node is None or inner.node.op.name != "Neg":
        return None
    return node.replaced(inputs=tuple(inner.node.operands))


def select_known(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match where(True, x, y), which is x."""
    condition, x, y = node.inputs
    assert isinstance(condition, Value)
    truth = _number(condition, "b")
    chosen = None if truth is None else x if truth else y
    return (chosen,) if isinstance(chosen, Value) and same_static_shape(chosen, node.outputs[0]) else None


def select_either(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match where(c, x, x), which is x."""
    _, x, y = node.inputs
    return (x,) if x is y and isinstance(x, Value) and same_static_shape(x, node.outputs[0]) else None


def cast_to_the_same(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match a cast to the operand's dtype."""
    (x,) = node.operands
    return (x,) if x.dtype is node.outputs[0].dtype else None


# A dtype, and the dtypes that represent each of its values: a cast and its inverse preserve them, NaN bits included.
_REPRESENTED_BY = {
    "bool": "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64",
    "int8": "int16 int32 int64 float16 float32 float64",
    "uint8": "int16 uint16 int32 uint32 int64 uint64 float16 float32 float64",
    "int16": "int32 int64 float32 float64",
    "uint16": "int32 uint32 int64 uint64 float32 float64",
    "int32": "int64 float64",
    "uint32": "int64 uint64 float64",
    "float16": "float32 float64",
    "bfloat16": "float32 float64",
    "float32": "float64",
}


def cast_there_and_back(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match a cast to a wider dtype and back."""
    (wide,) = node.operands
    if wide.node is None or wide.node.op is not node.op:
        return None
    (x,) = wide.node.operands
    lossless = x.dtype is node.outputs[0].dtype and wide.dtype.name in _REPRESENTED_BY.get(x.dtype.name, "").split()
    return (x,) if lossless else None


def sum_of_one(node: Node, rewriter: PatternRewriter) -> Answer:
    """Match AddN of one tensor."""
    operands = list(node.operands)
    return tuple(operands) if len(operands) == 1 else None


ARITHMETIC: Sequence[RewriteRule] = (
    RewriteRule("add_zero", "Add", add_zero, "x + -0.0 is x; x + 0.0 is not, at x = -0.0"),
    RewriteRule("subtract_zero", "Sub", subtract_zero, "x - 0.0 is x, at -0.0 too"),
    RewriteRule("multiply_by_one", "Mul", multiply_by_one, "1 changes no real number, infinity or NaN"),
    RewriteRule("divide_by_one", "RealDiv", divide_by_one, "as multiplying by one"),
    RewriteRule(
        "divide_integers_by_one", "FloorDiv TruncateDiv", divide_integers_by_one, "no remainder, nothing to round"
    ),
    RewriteRule("power_of_one", "Pow", power_of_one, "IEEE 754: pow(x, 1) is x"),
    RewriteRule("multiply_integers_by_zero", "Mul", multiply_integers_by_zero, "integers have no NaN or infinity"),
    RewriteRule("neutral_truth", "LogicalAnd LogicalOr", neutral_truth, "true is neutral to and, false to or"),
    RewriteRule(
        "twice", "Neg LogicalNot Invert Conj", twice, "each is its own inverse: a sign bit or bits are flipped"
    ),
    RewriteRule(
        "once_is_enough",
        "Abs Sign Floor Ceil Rint Round Relu Relu6 StringLower StringUpper StringStrip",
        once_is_enough,
        "idempotent: the results are fixed points",
    ),
    RewriteRule("with_itself", "Maximum Minimum LogicalAnd LogicalOr BitwiseAnd BitwiseOr", with_itself, "idempotent"),
    RewriteRule(
        "absolute_of_negative",
        "Abs",
        absolute_of_negative,
        "the sign bit is cleared; the smallest integer is unchanged",
    ),
    RewriteRule("select_known", "Select", select_known, "one branch is never taken"),
    RewriteRule("select_either", "Select", select_either, "both branches are one"),
    RewriteRule("cast_to_the_same", "Cast", cast_to_the_same, "no value changes"),
    RewriteRule("cast_there_and_back", "Cast", cast_there_and_back, "the wider dtype holds each value"),
    RewriteRule("sum_of_one", "AddN", sum_of_one, "nothing is added"),
)
