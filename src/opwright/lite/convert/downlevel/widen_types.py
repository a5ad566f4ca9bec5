"""Widening: compute on a type that came later in an older one that holds all its values.

Lives here: the tables of operators and of wider types, the rule built from them.
Not here: operators without an older form for any type.

bool and int16 widen to int32, float16 to float32. Sums, products and quotients of two float16 numbers, rounded to
float32 first, round to the same float16: float32 has more than twice the bits and two.
"""

from __future__ import annotations

from typing import Any

from ....core.dtypes import DType, bool, float16, float32, int16, int32, int64
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table

WIDER_TYPE: dict[DType, DType] = {bool: int32, int16: int32, float16: float32}

# Which inputs hold the data; None for all. Others are indices, sizes or conditions.
MOVERS: dict[str, tuple[int, ...] | None] = {
    "BROADCAST_TO": (0,),
    "CONCATENATION": None,
    "FILL": (1,),
    "GATHER": (0,),
    "GATHER_ND": (0,),
    "MIRROR_PAD": (0,),
    "ONE_HOT": (2, 3),
    "PACK": None,
    "PAD": (0,),
    "PADV2": (0, 2),
    "REVERSE_V2": (0,),
    "SELECT": (1, 2),
    "SELECT_V2": (1, 2),
    "SLICE": (0,),
    "SPLIT": (1,),
    "SPLIT_V": (0,),
    "STRIDED_SLICE": (0,),
    "TILE": (0,),
    "TRANSPOSE": (0,),
    "UNPACK": (0,),
    "DYNAMIC_UPDATE_SLICE": (0, 1),
    "SCATTER_ND": (1,),
    "ADD_N": None,
    "SPACE_TO_BATCH_ND": (0,),
    "BATCH_TO_SPACE_ND": (0,),
    "DEPTH_TO_SPACE": (0,),
    "SPACE_TO_DEPTH": (0,),
}
NUMERIC = (
    "ADD",
    "SUB",
    "MUL",
    "DIV",
    "MAXIMUM",
    "MINIMUM",
    "FLOOR_DIV",
    "FLOOR_MOD",
    "ABS",
    "NEG",
    "SIGN",
    "GELU",
    "SIN",
    "COS",
    "SOFTMAX",
    "EQUAL",
    "NOT_EQUAL",
    "LESS",
    "LESS_EQUAL",
    "GREATER",
    "GREATER_EQUAL",
    "ARG_MAX",
    "ARG_MIN",
    "REDUCE_MAX",
    "REDUCE_MIN",
    "SUM",
    "MEAN",
)
INDICES: dict[str, tuple[int, ...]] = {"GATHER": (1,), "GATHER_ND": (1,), "DYNAMIC_UPDATE_SLICE": (2,), "TOPK_V2": (1,)}


def _widened(
    node: Node, rewriter: LiteRewriter, places: tuple[int, ...] | None, wider: dict[DType, DType]
) -> RuleResult:
    """Cast operands to a wider type, and results of the old type back."""
    old: DType | None = None

    def cast(value: Value) -> Value:
        nonlocal old
        if value.dtype not in wider:
            return value
        old = value.dtype
        constant = value.constant
        wide = wider[old]
        return rewriter.cast(value, wide) if constant is None else rewriter.constant(constant.astype(wide.np), wide)

    inputs: list[Any] = []
    for i, operand in enumerate(node.inputs):
        if operand is None or (places is not None and i not in places):
            inputs.append(operand)
        else:
            inputs.append(tuple(map(cast, operand)) if isinstance(operand, tuple) else cast(operand))
    if old is None:
        return NoMatch("the types of the operands are older than the operator's version")
    results = rewriter.emit_many(node.op.name, *inputs, **node.attrs)
    return tuple(rewriter.cast(r, v.dtype) if r.dtype is not v.dtype else r for r, v in zip(results, node.outputs))


def _data(places: tuple[int, ...] | None) -> Any:
    return lambda node, rewriter: _widened(node, rewriter, places, WIDER_TYPE)


def _indices(places: tuple[int, ...]) -> Any:
    return lambda node, rewriter: _widened(node, rewriter, places, {int16: int32, int64: int32})


WIDENING = rule_table(
    *(RewriteRule("indices_in_int32", op, _indices(places), "indices fit int32") for op, places in INDICES.items()),
    *(RewriteRule("carried", op, _data(places), "moving changes no element") for op, places in MOVERS.items()),
    *(
        RewriteRule("computed_wider", op, _data(None), "the wider type has the same result, rounded once")
        for op in NUMERIC
    ),
)
