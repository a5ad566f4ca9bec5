"""Rules for element-wise operators that the lite dialect has too.

Lives here: arithmetic, comparison, logic, activations, Cast, Select.  Not here: operators that must be taken apart
(composites.py), merging activations into their producers (../optimize.py).
"""

from __future__ import annotations

from typing import Any

from ....core.shapes import TensorShape
from ....graph import Node, Value
from ....scalar.table import OF_OPERATOR
from ..lowering import Lowered, Lowering, NoMatch, Rule, table

# Official kernels, now or in older run times, broadcast up to this rank only; operands of one shape may have any.
BROADCAST_RANK = {
    "ADD": 6, "SUB": 6, "MUL": 6, "DIV": 5, "MAXIMUM": 5, "MINIMUM": 5, "SELECT_V2": 5,
    "FLOOR_DIV": 4, "FLOOR_MOD": 4, "POW": 4, "SQUARED_DIFFERENCE": 4, "ATAN2": 0,
    "EQUAL": 4, "NOT_EQUAL": 4, "LESS": 4, "LESS_EQUAL": 4, "GREATER": 4, "GREATER_EQUAL": 4,
    "LOGICAL_AND": 4, "LOGICAL_OR": 4,
}  # fmt: skip


def broadcastable(node: Node, low: Lowering, op_name: str) -> tuple[Any, ...]:
    """The operands as the lite operator takes them: spread out first where the rank is beyond its broadcasting."""
    shape, limit = node.outputs[0].spec.shape, BROADCAST_RANK.get(op_name)
    operands = list(node.operands)
    if limit is None or (shape.rank is not None and shape.rank <= limit):
        return node.inputs
    if limit and (shape.rank is None or all(v.spec.shape.dims == shape.dims for v in operands)):
        return node.inputs  # such a rank is rare, or unknown sizes are most likely equal: kernels of today take both
    if shape.is_fully_defined():
        sizes = low.int32([d for d in shape.dims or () if d is not None])
        return tuple(v if v.spec.shape == shape else spread(low, v, sizes, shape) for v in operands)
    sizes, *others = (low.emit("SHAPE", v, out_type="INT32") for v in operands)
    for other in others:
        sizes = low.emit("BROADCAST_ARGS", sizes, other)
    return tuple(spread(low, v, sizes, shape) for v in operands)


def spread(low: Lowering, value: Value, sizes: Value, shape: TensorShape) -> Value:
    """`value` repeated up to a shape, given as a tensor and as far as it is known."""
    return low.emit("BROADCAST_TO", value, sizes, like=value.spec.with_shape(shape))


def same(op: str, lite: str) -> Rule:
    """The lite operator `lite` with the same operands."""

    def lower(node: Node, low: Lowering) -> Lowered:
        operands = broadcastable(node, low, lite)
        return low.emit(lite, *operands, like=node.outputs[0].spec)

    return Rule(lite.lower(), op, lower)


def _leaky_relu(node: Node, low: Lowering) -> Lowered:
    return low.emit("LEAKY_RELU", *node.inputs, alpha=node.attrs["alpha"])


def _gelu(node: Node, low: Lowering) -> Lowered:
    return low.emit("GELU", *node.inputs, approximate=node.attrs["approximate"])


def _cast(node: Node, low: Lowering) -> Lowered:
    (x,), wanted = node.operands, node.attrs["dtype"]
    if x.dtype is wanted:
        return x
    if x.dtype.is_complex != wanted.is_complex:
        return NoMatch(f"CAST from {x.dtype.name} to {wanted.name} means another thing in the lite dialect")
    return low.cast(x, wanted)


def _truncate_div(node: Node, low: Lowering) -> Lowered:
    if not node.outputs[0].dtype.is_integer:
        return NoMatch("only the DIV of integers cuts fractions off")
    return low.emit("DIV", *broadcastable(node, low, "DIV"), like=node.outputs[0].spec)


def _round(node: Node, low: Lowering) -> Lowered:
    (x,) = node.operands
    return x if x.dtype.is_integer else low.emit("ROUND", x)


OTHERS = ("Round", "LeakyRelu", "Gelu", "RightShift", "BitwiseXor")
"""Functions of one name in the catalogue and in the dialect that have rules of their own, or in bits.py."""

ELEMENTWISE = table(
    *(same(op, row.builtin) for op, row in OF_OPERATOR.items() if row.builtin and op not in OTHERS),
    # the dialect's give another operand where one is NaN
    same("Maximum", "MAXIMUM"),
    same("Minimum", "MINIMUM"),
    same("Select", "SELECT_V2"),
    Rule("leaky_relu", "LeakyRelu", _leaky_relu),
    Rule("gelu", "Gelu", _gelu),
    Rule("truncate_div", "TruncateDiv", _truncate_div, "integers divide toward zero"),
    Rule("cast", "Cast", _cast),
    Rule("round", "Round", _round, "integers are round"),
)  # fmt: skip
