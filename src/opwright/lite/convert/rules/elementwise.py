"""Rules for element-wise operators that the lite dialect has too.

Lives here: arithmetic, comparison, logic, activations, Cast, Select.  Not here: operators that must be taken apart
(composites.py), merging activations into their producers (../optimize.py).
"""

from __future__ import annotations

from typing import Any

from ....core.shapes import TensorShape
from ....graph import Node, Value
from ..lowering import Lowered, Lowering, NoMatch, Rule, table

# The official kernels broadcast up to this rank only; operands of one shape may have any.
BROADCAST_RANK = {
    "ADD": 6, "SUB": 6, "MUL": 6, "DIV": 5, "MAXIMUM": 5, "MINIMUM": 5, "SELECT_V2": 5,
    "FLOOR_DIV": 4, "FLOOR_MOD": 4, "POW": 4, "SQUARED_DIFFERENCE": 4, "ATAN2": 4,
    "EQUAL": 4, "NOT_EQUAL": 4, "LESS": 4, "LESS_EQUAL": 4, "GREATER": 4, "GREATER_EQUAL": 4,
    "LOGICAL_AND": 4, "LOGICAL_OR": 4,
}  # fmt: skip


def broadcastable(node: Node, low: Lowering, op_name: str) -> tuple[Any, ...]:
    """The operands as the lite operator takes them: spread out first where the rank is beyond its broadcasting."""
    shape = node.outputs[0].spec.shape
    operands = list(node.operands)
    limit = BROADCAST_RANK.get(op_name)
    if limit is None or shape.rank is None or shape.rank <= limit or not shape.is_fully_defined():
        return node.inputs
    return tuple(v if v.spec.shape == shape else spread(low, v, shape) for v in operands)


def spread(low: Lowering, value: Value, shape: TensorShape) -> Value:
    """`value` repeated up to a known shape."""
    dims = low.int32([d for d in shape.dims or () if d is not None])
    return low.emit("BROADCAST_TO", value, dims, like=value.spec.with_shape(shape))


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


def _round(node: Node, low: Lowering) -> Lowered:
    (x,) = node.operands
    return x if x.dtype.is_integer else low.emit("ROUND", x)


ELEMENTWISE = table(
    # arithmetic
    *(same(op, lite) for op, lite in (
        ("Abs", "ABS"), ("Neg", "NEG"), ("Exp", "EXP"), ("Log", "LOG"), ("Sqrt", "SQRT"), ("Rsqrt", "RSQRT"),
        ("Square", "SQUARE"), ("Sin", "SIN"), ("Cos", "COS"), ("Tanh", "TANH"), ("Sigmoid", "LOGISTIC"),
        ("Floor", "FLOOR"), ("Ceil", "CEIL"), ("Rint", "ROUND"), ("Sign", "SIGN"),
        ("Add", "ADD"), ("Sub", "SUB"), ("Mul", "MUL"), ("RealDiv", "DIV"), ("TruncateDiv", "DIV"),
        ("FloorDiv", "FLOOR_DIV"), ("FloorMod", "FLOOR_MOD"), ("Pow", "POW"), ("Atan2", "ATAN2"),
        ("Maximum", "MAXIMUM"), ("Minimum", "MINIMUM"), ("SquaredDifference", "SQUARED_DIFFERENCE"),
        # comparison and logic
        ("Equal", "EQUAL"), ("NotEqual", "NOT_EQUAL"), ("Less", "LESS"), ("LessEqual", "LESS_EQUAL"),
        ("Greater", "GREATER"), ("GreaterEqual", "GREATER_EQUAL"), ("LogicalAnd", "LOGICAL_AND"),
        ("LogicalOr", "LOGICAL_OR"), ("LogicalNot", "LOGICAL_NOT"), ("Select", "SELECT_V2"),
        # activations
        ("Relu", "RELU"), ("Relu6", "RELU6"), ("Elu", "ELU"),
    )),
    Rule("leaky_relu", "LeakyRelu", _leaky_relu),
    Rule("gelu", "Gelu", _gelu),
    Rule("cast", "Cast", _cast),
    Rule("round", "Round", _round, "integers are round"),
)  # fmt: skip
