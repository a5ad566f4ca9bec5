"""Older forms of arithmetic: element-wise operators, reductions, products; operators on types that came later.

Lives here: GELU, ATAN2, SIGN, HARD_SWISH, ... in terms of their predecessors; BATCH_MATMUL, FULLY_CONNECTED with its
newer options, CUMSUM, UNSORTED_SEGMENT_SUM, CONV_2D of groups, TRANSPOSE_CONV with bias or activation; the tables of
operators and of wider types, the rule built from them.
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
from ..rewriter import LiteRewriter, NoMatch, Rewrite, RuleResult, constant_of, number, reshaped, rule_table, sizes
from .shapes import around

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

    def reflected(where: Value, by: float, angle: Value) -> Value:
        return rewriter.emit("SELECT", where, rewriter.emit("SUB", number(rewriter, by, angle), angle), angle)

    angle = reflected(rewriter.emit("GREATER", up, across), math.pi / 2, angle)
    angle = reflected(rewriter.emit("LESS", x, number(rewriter, 0, x)), math.pi, angle)
    return reflected(rewriter.emit("LESS", y, number(rewriter, 0, y)), 0.0, angle)


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


MOST_PARTS = 128  # more nodes than this for one would not help anybody


def _swapped(rewriter: LiteRewriter, x: Value) -> Value:
    """Return a matrix with rows and columns swapped."""
    if x.constant is not None:
        return rewriter.constant(np.ascontiguousarray(x.constant.T), x.dtype)
    m, n = sizes(x)
    return rewriter.emit("TRANSPOSE", x, rewriter.int32([1, 0]), like=x.spec.with_shape([n, m]))


def _batch_matmul(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, y = node.operands
    if x.dtype is not float32:
        return NoMatch(f"BATCH_MATMUL of {x.dtype.name}")
    adj_x, adj_y = node.attrs["adj_x"], node.attrs["adj_y"]
    out, (*batch_x, _, _), (*batch_y, _, _) = sizes(node.outputs[0], "the shape of the result"), sizes(x), sizes(y)

    def product(a: Value, b: Value) -> Value:
        a, b = (_swapped(rewriter, a) if adj_x else a), (b if adj_y else _swapped(rewriter, b))
        return rewriter.emit("FULLY_CONNECTED", a, b, None)

    if math.prod(batch_y) == 1 and not adj_x:
        flat = reshaped(rewriter, x, [math.prod(sizes(x)[:-1]), sizes(x)[-1]])
        return reshaped(rewriter, product(flat, reshaped(rewriter, y, sizes(y)[-2:])), out)
    count = math.prod(out[:-2])
    if not 0 < count <= MOST_PARTS:
        return NoMatch(f"BATCH_MATMUL of {count} matrices, more than {MOST_PARTS}")

    def matrices(value: Value, batch: list[int]) -> list[Value]:
        whole = sizes(value)
        if batch != out[:-2]:
            value = rewriter.emit("BROADCAST_TO", value, rewriter.int32([*out[:-2], *whole[-2:]]))
        flat = reshaped(rewriter, value, [count, *whole[-2:]])
        return list(rewriter.emit_many("UNPACK", flat, num=count, axis=0))

    products = [product(a, b) for a, b in zip(matrices(x, batch_x), matrices(y, batch_y))]
    stacked = rewriter.emit("PACK", tuple(products), values_count=count, axis=0)
    return reshaped(rewriter, stacked, out)


def _fully_connected(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Express keep_num_dims by reshapes."""
    x, weights, *bias = node.inputs
    assert isinstance(x, Value)
    assert isinstance(weights, Value)
    attrs = {**node.attrs, "keep_num_dims": False}
    if not node.attrs["keep_num_dims"]:
        return NoMatch("these weights came with this version")
    dims = node.outputs[0].spec.shape.dims
    if dims is None or dims.count(None) > 1:
        return NoMatch("the shape of the result is not known")
    flat = rewriter.emit("RESHAPE", x, rewriter.int32([-1, sizes(weights)[1]]))
    y = rewriter.emit("FULLY_CONNECTED", flat, weights, bias[0] if bias else None, **attrs)
    return rewriter.emit(
        "RESHAPE", y, rewriter.int32([-1 if d is None else d for d in dims]), like=node.outputs[0].spec
    )


def _cumsum(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Add over spans of 1, 2, 4, ... elements (Hillis and Steele 1986)."""
    x, axis = node.operands
    dims = sizes(x)
    place = int(constant_of(axis, "the axis").reshape(-1)[0]) % max(len(dims), 1)
    n = dims[place]
    before, _, after = around(dims, place)
    reverse = node.attrs["reverse"]

    def shifted(y: Value, by: int) -> Value:
        begin, pads = (by, [0, by]) if reverse else (0, [by, 0])
        kept = rewriter.emit("SLICE", y, rewriter.int32([0, begin, 0]), rewriter.int32([before, n - by, after]))
        return rewriter.emit("PAD", kept, rewriter.int32([[0, 0], pads, [0, 0]]), like=y.spec)

    y, by = reshaped(rewriter, x, [before, n, after]), 1
    if node.attrs["exclusive"] and n > 0:
        y = shifted(y, 1) if n > 1 else rewriter.emit("MUL", y, number(rewriter, 0, y))
    while by < n:
        y = rewriter.emit("ADD", y, shifted(y, by))
        by *= 2
    return reshaped(rewriter, y, dims)


def _unsorted_segment_sum(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Scatter-add into a row for each segment, and into one more for rows without segment."""
    data, ids, count = node.operands
    n, rest = int(constant_of(count, "the number of segments").reshape(-1)[0]), sizes(data)[len(sizes(ids)) :]
    rows = math.prod(sizes(ids))
    flat = reshaped(rewriter, rewriter.int32(ids), [rows])
    nowhere = rewriter.constant(np.full(rows, n), int32)
    flat = rewriter.emit("SELECT", rewriter.emit("LESS", flat, rewriter.constant(0, int32)), nowhere, flat)
    summed = rewriter.emit(
        "SCATTER_ND",
        reshaped(rewriter, flat, [rows, 1]),
        reshaped(rewriter, data, [rows, *rest]),
        rewriter.int32([n + 1, *rest]),
    )
    return rewriter.emit(
        "SLICE", summed, rewriter.int32([0] * (1 + len(rest))), rewriter.int32([n, *rest]), like=node.outputs[0].spec
    )


def _grouped_conv(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, filters, bias = (*node.operands, None)[:3]
    assert x is not None
    assert filters is not None
    channels, (_out, *_, each) = sizes(filters)[0], sizes(filters)
    dims = x.spec.shape.dims
    if dims is None or dims[3] is None or dims[3] % each:
        return NoMatch("the number of channels is not known")
    groups = dims[3] // each
    if not 1 < groups <= MOST_PARTS or channels % groups:
        return NoMatch(f"a convolution of {groups} groups")

    def parts(value: Value | None, axis: int) -> Sequence[Value | None]:
        if value is None:
            return [None] * groups
        if value.constant is not None:
            return [
                rewriter.constant(np.ascontiguousarray(c), value.dtype) for c in np.split(value.constant, groups, axis)
            ]
        return rewriter.emit_many("SPLIT", rewriter.int32(axis), value, num_splits=groups)  # type: ignore[arg-type]

    done = [
        rewriter.emit("CONV_2D", a, f, b, **node.attrs)
        for a, f, b in zip(parts(x, 3), parts(filters, 0), parts(bias, 0))
    ]
    return rewriter.emit("CONCATENATION", tuple(done), axis=3, like=node.outputs[0].spec)


def _transpose_conv(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Move bias and activation into an addition."""
    shape, filters, x, *bias = node.inputs
    activation = node.attrs["fused_activation_function"]
    if (not bias or bias[0] is None) and activation == "NONE":
        return NoMatch("there is nothing to take apart")
    attrs = {**node.attrs, "fused_activation_function": "NONE"}
    like = node.outputs[0].spec
    y = rewriter.emit("TRANSPOSE_CONV", shape, filters, x, None, like=like, **attrs)
    added = bias[0] if bias and bias[0] is not None else number(rewriter, 0, y)
    return rewriter.emit("ADD", y, added, fused_activation_function=activation, like=like)


PRODUCTS = rule_table(
    RewriteRule("matmul_by_fully_connected", "BATCH_MATMUL", _batch_matmul, "one product for each matrix"),
    RewriteRule("flat_fully_connected", "FULLY_CONNECTED", _fully_connected, "the rows are the same"),
    RewriteRule("cumsum_by_doubling", "CUMSUM", _cumsum, "the same terms, added in another order"),
    RewriteRule("segments_by_scatter", "UNSORTED_SEGMENT_SUM", _unsorted_segment_sum, "SCATTER_ND adds what meets"),
    RewriteRule("groups_apart", "CONV_2D", _grouped_conv, "groups know nothing of each other"),
    RewriteRule("transpose_conv_apart", "TRANSPOSE_CONV", _transpose_conv, "the kernel adds and clamps after the sum"),
)
