"""Older forms of element-wise operators and reductions, and of operators on types that came later.

Lives here: GELU, ATAN2, SIGN, HARD_SWISH, ... in terms of their predecessors; the tables of operators and of wider
types, the rule built from them.
Not here: operators without an older form for any type.

bool and int16 widen to int32, float16 to float32. Sums, products and quotients of two float16 numbers, rounded to
float32 first, round to the same float16: float32 has more than twice the bits and two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import DType, bool, float16, float32, int16, int32, int64
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ....scalar.formulas import GELU_CUBIC, GELU_SLOPE
from ..rewriter import LiteRewriter, NoMatch, Rewrite, RuleResult, number, rule_table, sizes

# Abramowitz and Stegun 7.1.26: erf to 1.5e-7, which is float32's own precision near 1.
ERF_P = 0.3275911
ERF = (0.0, 0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)

# atan(t) = t P(t^2) on 0..1: a Chebyshev fit in float64 (numpy.polynomial, degree 8 in t^2), error below 2e-8.
ATAN = (
    0.9999999842,
    -0.3333306678,
    0.1999248358,
    -0.1420257051,
    0.106367541,
    -0.07495445443,
    0.04258760747,
    -0.0160050305,
    0.002834064299,
)


def polynomial(rewriter: LiteRewriter, coefficients: Sequence[float], x: Value) -> Value:
    """Emit c0 + c1 x + c2 x^2 + ..., by Horner's rule."""
    *others, last = coefficients
    total: Any = None
    for c in reversed(others):
        scaled = rewriter.emit("MUL", x, number(rewriter, last, x) if total is None else total)
        total = rewriter.emit("ADD", scaled, number(rewriter, c, x))
    result: Value = total
    return result


def erf(rewriter: LiteRewriter, x: Value) -> Value:
    """Emit the error function of float32, to 1.5e-7."""
    size = rewriter.emit("ABS", x)
    one = number(rewriter, 1, x)
    t = rewriter.emit("DIV", one, rewriter.emit("ADD", rewriter.emit("MUL", size, number(rewriter, ERF_P, x)), one))
    tail = rewriter.emit(
        "MUL", polynomial(rewriter, ERF, t), rewriter.emit("EXP", rewriter.emit("NEG", rewriter.emit("MUL", x, x)))
    )
    return rewriter.emit("MUL", sign(rewriter, x), rewriter.emit("SUB", one, tail))


def sign(rewriter: LiteRewriter, x: Value) -> Value:
    """Emit 1, 0 or -1 by two comparisons; NaN stays NaN."""
    zero = number(rewriter, 0, x)
    positive, negative = (rewriter.cast(rewriter.emit(op, x, zero), x.dtype) for op in ("GREATER", "LESS"))
    both = rewriter.emit("SUB", positive, negative)
    if not x.dtype.is_floating:
        return both
    return rewriter.emit("SELECT", rewriter.emit("EQUAL", x, x), both, x)


def _sign(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return sign(rewriter, x)


def _gelu(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    if x.dtype is not float32:
        return NoMatch(f"GELU of {x.dtype.name}")
    if node.attrs["approximate"]:  # Hendrycks and Gimpel 2016
        cube = rewriter.emit("MUL", rewriter.emit("MUL", x, x), x)
        inner = rewriter.emit("ADD", x, rewriter.emit("MUL", cube, number(rewriter, GELU_CUBIC, x)))
        # 1 + tanh(t) would cancel for negative t; it is twice the logistic function of 2 t
        return rewriter.emit(
            "MUL", x, rewriter.emit("LOGISTIC", rewriter.emit("MUL", inner, number(rewriter, 2 * GELU_SLOPE, x)))
        )
    gate = erf(rewriter, rewriter.emit("MUL", x, number(rewriter, math.sqrt(0.5), x)))
    half = rewriter.emit("MUL", x, number(rewriter, 0.5, x))
    return rewriter.emit("MUL", half, rewriter.emit("ADD", gate, number(rewriter, 1, x)))


def _atan2(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Compute the angle within the first octant, then by symmetry. The sign of zero is lost."""
    y, x = node.operands
    if x.dtype is not float32 or sizes(x) != sizes(y):
        return NoMatch("ATAN2 of one shape, in float32")
    largest, least = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
    across, up = (rewriter.emit("MINIMUM", rewriter.emit("ABS", v), number(rewriter, largest, v)) for v in (x, y))
    longer = rewriter.emit("MAXIMUM", rewriter.emit("MAXIMUM", across, up), number(rewriter, least, x))
    t = rewriter.emit("DIV", rewriter.emit("MINIMUM", across, up), longer)
    angle = rewriter.emit("MUL", t, polynomial(rewriter, ATAN, rewriter.emit("MUL", t, t)))

    def turned(where: Value, by: float, angle: Value) -> Value:
        return rewriter.emit("SELECT", where, rewriter.emit("SUB", number(rewriter, by, angle), angle), angle)

    angle = turned(rewriter.emit("GREATER", up, across), math.pi / 2, angle)
    angle = turned(rewriter.emit("LESS", x, number(rewriter, 0, x)), math.pi, angle)
    return turned(rewriter.emit("LESS", y, number(rewriter, 0, y)), 0.0, angle)


def _relu_0_to_1(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return rewriter.emit("MINIMUM", rewriter.emit("RELU", x), number(rewriter, 1, x))


def _hard_swish(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    gate = rewriter.emit("RELU6", rewriter.emit("ADD", x, number(rewriter, 3, x)))
    return rewriter.emit("MUL", rewriter.emit("MUL", x, gate), number(rewriter, 1 / 6, x))


def _below(rewriter: LiteRewriter, x: Value) -> Value:
    """Emit min(x, 0), in operators older than MINIMUM."""
    return rewriter.emit("NEG", rewriter.emit("RELU", rewriter.emit("NEG", x)))


def _elu(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    below = rewriter.emit("SUB", rewriter.emit("EXP", _below(rewriter, x)), number(rewriter, 1, x))
    return rewriter.emit("ADD", rewriter.emit("RELU", x), below)


def _leaky_relu(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    below = rewriter.emit("MUL", _below(rewriter, x), number(rewriter, node.attrs["alpha"], x))
    return rewriter.emit("ADD", rewriter.emit("RELU", x), below)


def _abs(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    if x.dtype is not int32:
        return NoMatch(f"ABS of {x.dtype.name}")
    return rewriter.emit("MAXIMUM", x, rewriter.emit("NEG", x))


def _square(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return rewriter.emit("MUL", x, x)


def _squared_difference(node: Node, rewriter: LiteRewriter) -> RuleResult:
    difference = rewriter.emit("SUB", *node.operands)
    return rewriter.emit("MUL", difference, difference)


def _reduce_all(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, axes = node.operands
    some_not = rewriter.emit("REDUCE_ANY", rewriter.emit("LOGICAL_NOT", x), axes, keep_dims=node.attrs["keep_dims"])
    return rewriter.emit("LOGICAL_NOT", some_not)


def _bucketize(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,), boundaries = node.operands, node.attrs["boundaries"]
    if not boundaries or not x.dtype.is_floating:
        return NoMatch("BUCKETIZE of floats, with boundaries")
    flat = rewriter.emit("RESHAPE", x, rewriter.int32([-1, 1]))
    over = rewriter.emit("GREATER_EQUAL", flat, rewriter.constant(boundaries, x.dtype))
    count = rewriter.emit("SUM", rewriter.cast(over, int32), rewriter.int32([1]), keep_dims=False)
    return rewriter.emit("RESHAPE", count, rewriter.int32(sizes(x)), like=node.outputs[0].spec)


ARITHMETIC = rule_table(
    RewriteRule("gelu_by_erf", "GELU", _gelu, "its definition; erf to 1.5e-7"),
    RewriteRule("atan2_by_octant", "ATAN2", _atan2, "a polynomial of the ratio, to 1e-7; of zeros the sign is lost"),
    RewriteRule("sign_by_comparison", "SIGN", _sign, "its definition"),
    RewriteRule("relu_0_to_1", "RELU_0_TO_1", _relu_0_to_1, "its definition"),
    RewriteRule("hard_swish_apart", "HARD_SWISH", _hard_swish, "its definition"),
    RewriteRule("elu_apart", "ELU", _elu, "its definition; near 0 to 1e-7, as exp(x) - 1 is"),
    RewriteRule("leaky_relu_apart", "LEAKY_RELU", _leaky_relu, "its definition"),
    RewriteRule("abs_by_maximum", "ABS", _abs, "max(x, -x)"),
    RewriteRule("square_by_mul", "SQUARE", _square, "x x"),
    RewriteRule("squared_difference_apart", "SQUARED_DIFFERENCE", _squared_difference, "its definition"),
    RewriteRule("all_by_any", "REDUCE_ALL", _reduce_all, "De Morgan"),
    RewriteRule("bucketize_by_counting", "BUCKETIZE", _bucketize, "how many boundaries are not above x"),
)


WIDER_TYPE: dict[DType, DType] = {bool: int32, int16: int32, float16: float32}

# Operators by the inputs that hold the data; None for all. Other inputs are indices, sizes or conditions.
MOVERS: dict[tuple[int, ...] | None, str] = {
    None: "CONCATENATION PACK ADD_N",
    (0,): "BROADCAST_TO GATHER GATHER_ND MIRROR_PAD PAD REVERSE_V2 SLICE SPLIT_V STRIDED_SLICE TILE TRANSPOSE UNPACK "
    "SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND DEPTH_TO_SPACE SPACE_TO_DEPTH",
    (0, 1): "DYNAMIC_UPDATE_SLICE",
    (0, 2): "PADV2",
    (1,): "FILL SPLIT SCATTER_ND",
    (1, 2): "SELECT SELECT_V2",
    (2, 3): "ONE_HOT",
}
NUMERIC = (
    "ADD SUB MUL DIV MAXIMUM MINIMUM FLOOR_DIV FLOOR_MOD ABS NEG SIGN GELU SIN COS SOFTMAX EQUAL NOT_EQUAL LESS "
    "LESS_EQUAL GREATER GREATER_EQUAL ARG_MAX ARG_MIN REDUCE_MAX REDUCE_MIN SUM MEAN"
)
INDICES = {(1,): "GATHER GATHER_ND TOPK_V2", (2,): "DYNAMIC_UPDATE_SLICE"}


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


def _data(places: tuple[int, ...] | None) -> Rewrite:
    return lambda node, rewriter: _widened(node, rewriter, places, WIDER_TYPE)


def _indices(places: tuple[int, ...]) -> Rewrite:
    return lambda node, rewriter: _widened(node, rewriter, places, {int16: int32, int64: int32})


WIDENING = rule_table(
    *(RewriteRule("indices_in_int32", ops, _indices(places), "indices fit int32") for places, ops in INDICES.items()),
    *(RewriteRule("carried", ops, _data(places), "moving changes no element") for places, ops in MOVERS.items()),
    RewriteRule("computed_wider", NUMERIC, _data(None), "the wider type has the same result, rounded once"),
)
