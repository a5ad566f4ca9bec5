"""Matrix products: MatMul, BATCH_MATMUL, Einsum, odml.scaled_dot_product_attention.

Lives here: their rules. An Einsum of two factors is a product of views, with factors transposed where their labels are
out of order; of several, products of two.
Not here: equations (ops/linalg/einsum.py), FULLY_CONNECTED (contractions.py), the fusion of products and softmax to
`FusedAttention` (../loops/fusion.py), key-value caches (gather_scatter.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...core.dtypes import DType, float32, float64, int8, int16, int32, int64
from ...ops.linalg.einsum import expand_ellipsis, parse
from ..loops.buffers import Buffer, IndexMap, Window
from ..loops.expressions import Expr, apply, arg, const, convert, scalar
from ..loops.ops import Contract, GroupedAttention, Map, MatMul, Move, RowPass
from .context import LoweringContext, NoLowering, RuleOperand
from .contractions import hybrid_product, transposed
from .data_movement import layout, move_view
from .operand_expressions import in_steps, steps_per
from .reductions import reduced
from .registry import CATALOGUE, rule
from .type_conversion import in_float32

INTEGERS = ((int8, int8, int8), (int16, int16, int16), (int16, int8, int16))
"""Types of quantized operands and results."""


@rule("MatMul", "BATCH_MATMUL")
@in_float32
def batch_matmul(ctx: LoweringContext) -> None:
    """Lower a matrix product. The catalogue's product by one constant or transposed matrix is lowered as a contraction,
    as FULLY_CONNECTED is."""
    a, b = ctx.operand(0), ctx.operand(1)
    transposes = (
        bool(ctx.attr("transpose_a") or ctx.attr("adjoint_a") or ctx.attr("adj_x")),
        bool(ctx.attr("transpose_b") or ctx.attr("adjoint_b") or ctx.attr("adj_y")),
    )
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise NoLowering(f"a product of {a} and {b}")
    (m, k), (k2, n) = (o.shape[-2:][::-1] if t else o.shape[-2:] for o, t in zip((a, b), transposes))
    try:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise NoLowering(f"a product of {a} and {b}") from None
    if k != k2 or not k:
        raise NoLowering(f"a product of {a} and {b}, transposed {transposes}")
    y = ctx.output((*lead, m, n))
    matrix = len(b.shape) == 2 and not transposes[0] and (transposes[1] or b.constant is not None)
    if matrix and ctx.node.dialect == CATALOGUE and {a.dtype, b.dtype, y.dtype} == {float32}:
        rows = a.size // k
        weights = b.buffer if transposes[1] else transposed(ctx, b.buffer, (1, 0))
        source, filter = ctx.viewed(a.buffer, (rows, 1, 1, k)), ctx.viewed(weights, (n, 1, 1, k))
        with ctx.reshaped(y.buffer, (rows, 1, 1, n)) as out:
            ctx.add(Contract, out, source, filter, (), arg(0, float32), Window((1, 1)))
        return
    if (a.dtype, b.dtype, y.dtype) == (float32, int8, float32):
        rounding = "asymmetric" if ctx.attr("asymmetric_quantize_inputs") else "symmetric"
        operands, expr = _hybrid_epilogue(b, n, transposes[1])
        ctx.add(MatMul, y.buffer, a.buffer, b.buffer, operands, expr, *transposes, rounding=rounding)
        return
    if ctx.node.dialect == CATALOGUE and {a.dtype, b.dtype, y.dtype} in ({float64}, {int32}):
        _unpacked_product(ctx, a, b, y, transposes)
        return
    expr = _epilogue(a, b, y)
    zeros = (0, 0) if a.dtype is float32 or y.dtype is int32 else (a.zero, b.zero)
    ctx.add(MatMul, y.buffer, a.buffer, b.buffer, (), expr, *transposes, *zeros)


MOST_OPERATIONS = 1 << 19
"""Multiplications of a matrix product of float64 above which NumPy's BLAS is quicker than unpacked operands."""


def check_products(dtype: DType, operations: int) -> None:
    """Raise NoLowering for products of matrices that take more multiplications than a kernel is quick for."""
    if dtype is float64 and operations > MOST_OPERATIONS:
        raise NoLowering("BLAS multiplies matrices of float64 of this size faster")


def _unpacked_product(
    ctx: LoweringContext, a: RuleOperand, b: RuleOperand, y: RuleOperand, transposes: tuple[bool, bool]
) -> None:
    """Lower a product of float64 or int32."""
    depth = a.shape[-2] if transposes[0] else a.shape[-1]
    check_products(a.dtype, depth * math.prod(y.shape[-2:]))
    if not y.size:
        raise NoLowering("no elements")
    ctx.add(MatMul, y.buffer, a.buffer, b.buffer, (), arg(0, a.dtype), *transposes)


def _epilogue(a: RuleOperand, b: RuleOperand, y: RuleOperand) -> Expr:
    kind = a.dtype, b.dtype, y.dtype
    if kind == (float32, float32, float32):
        return arg(0, float32)
    if kind == (int8, int8, int32):
        return arg(0, int32)
    if kind not in INTEGERS or not (a.is_quantized and b.is_quantized and y.is_quantized):
        raise NoLowering(f"{a.dtype.name} by {b.dtype.name} to {y.dtype.name}")
    if a.dtype is int16 and (a.zero or b.zero):
        raise NoLowering(f"{a.dtype.name} by {b.dtype.name} with a zero point")
    factor = steps_per(a.scale * b.scale, y)
    if a.dtype is int16:
        return in_steps(apply("mul", convert(arg(0, int64), float32), scalar(factor, float32)), y)
    return in_steps(apply("mul", convert(arg(0, int32), float32), scalar(factor, float32)), y)


def _hybrid_epilogue(b: RuleOperand, columns: int, is_transposed: bool) -> tuple[tuple[Buffer, ...], Expr]:
    """Return the scales of integer weights, per tensor or column, as epilogue of sums of quantized floats."""
    quantization, scales = b.quantization, b.scales
    axis = len(b.shape) - (2 if is_transposed else 1)
    if np.any(np.asarray(quantization.zero_point)) or scales.size not in (1, columns):
        raise NoLowering(f"weights with a zero point, or {scales.size} scales for {columns} columns")
    if scales.size > 1 and quantization.axis != axis:
        raise NoLowering(f"scales along axis {quantization.axis}")
    factors = np.ascontiguousarray(np.broadcast_to(scales, (columns,)))
    scale = Buffer(f"{b.buffer.name}.scales", float32, (columns,), factors)
    return (scale,), hybrid_product(arg(1, float32))


MAX_KEYS = 1 << 16
"""Keys whose scores the kernel of grouped attention keeps for a tile of queries."""


@rule(custom=("odml.scaled_dot_product_attention",))
def attention(ctx: LoweringContext) -> None:
    """Lower attention to grouped attention, or, for masks of one column and for very many keys, to products and
    softmax, with heads before steps; queries that share keys are rows of one product then, and fusion builds
    `FusedAttention` of them."""
    q, k, v, mask = (ctx.operand(i) for i in range(4))
    if any(o.dtype is not float32 or len(o.shape) != 4 or not o.size for o in (q, k, v, mask)):
        raise NoLowering(f"attention of {q} to {k}")
    (b, s, n, h), (_, t, m, _) = q.shape, k.shape
    if n % m or mask.shape[1] not in (1, n):
        raise NoLowering(f"attention of {q} to {k} by {mask}")
    y, rows = ctx.output(q.shape), n // m * s
    scale = float(ctx.node.call.scale)
    scale = scale if scale > 0 else 1.0 / math.sqrt(h)
    if mask.shape[3] == t <= MAX_KEYS:
        ctx.add(GroupedAttention, y.buffer, q.buffer, k.buffer, v.buffer, mask.buffer, scale)
        return
    queries, keys, values = (_heads(ctx, o) for o in (q, k, v))
    scores, masked = ctx.new(float32, (b, m, rows, t), ".scores"), ctx.new(float32, (b, n, s, t), ".shown")
    factor = const(scale, float32)
    ctx.add(
        MatMul,
        scores,
        ctx.viewed(queries, (b, m, rows, h)),
        keys,
        (),
        apply("mul", arg(0, float32), factor),
        transpose_b=True,
    )
    ctx.add(
        Map, masked, (ctx.viewed(scores, masked.shape), mask.buffer), apply("add", arg(0, float32), arg(1, float32))
    )
    shares, heads = ctx.new(float32, masked.shape, ".shares"), ctx.new(float32, (b, m, rows, h), ".heads")
    ctx.add(RowPass, shares, masked, (), "softmax", arg(0, float32), arg(0, float32))
    ctx.add(MatMul, heads, ctx.viewed(shares, scores.shape), values, (), arg(0, float32))
    ctx.add(
        Move,
        y.buffer,
        (ctx.viewed(heads, (b, n, s, h)),),
        (IndexMap((0,) * 4, (b, s, n, h), 0, (n * s * h, h, s * h, 1)),),
    )


def _heads(ctx: LoweringContext, x: RuleOperand) -> Buffer:
    """Transpose [b, steps, heads, h] to [b, heads, steps, h]."""
    b, s, n, h = x.shape
    heads = ctx.new(float32, (b, n, s, h), f".{x.buffer.name}.heads")
    ctx.add(Move, heads, (x.buffer,), (IndexMap((0,) * 4, heads.shape, 0, (s * n * h, h, n * h, 1)),))
    return heads


Labels = Sequence[str]


@rule("Einsum")
def einsum(ctx: LoweringContext) -> None:
    """Lower a contraction: sums over labels of one factor first, then products of two factors at a time, the smallest
    results first; of one factor to a transposition."""
    factors = ctx.operands
    terms, result = parse(ctx.attr("equation"))
    labeled, result = expand_ellipsis(terms, result, [len(x.shape) for x in factors])
    dtype = factors[0].dtype
    if any(x.dtype is not dtype or not x.size for x in factors) or dtype not in PRODUCTS:
        raise NoLowering(f"{ctx.attr('equation')} of {', '.join(map(str, factors))}")
    sizes: dict[str, int] = {}
    for term, x in zip(labeled, factors):
        for label, size in zip(term, x.shape):
            if sizes.setdefault(label, size) != size:
                raise NoLowering(f"{ctx.attr('equation')}: label {label} is broadcast")
    if any(len(set(term)) < len(term) for term in (*labeled, result)):
        raise NoLowering(f"{ctx.attr('equation')}: diagonals")
    y = ctx.output([sizes[label] for label in result]).buffer
    left, *others = [
        _without(ctx, (term, x.buffer), {*result}.union(*labeled[:i], *labeled[i + 1 :]))
        for i, (term, x) in enumerate(zip(labeled, factors))
    ]
    while others:
        kept = [_labels_of_product(left, others, i, result) for i in range(len(others))]
        best = min(range(len(others)), key=lambda i: math.prod(sizes[label] for label in kept[i]))
        right, labels = others.pop(best), kept[best]
        target = ctx.new(dtype, [sizes[label] for label in labels], f".product{len(others)}") if others else y
        _product_of_two(ctx, target, labels, left, right, sizes)
        left = labels, target
    if len(factors) == 1:
        _write(ctx, y, result, left[1], left[0])


PRODUCTS = (float32, float64, int32)
"""Types that the catalogue's products have kernels for."""
Factor = tuple[str, Buffer]
"""The labels of a factor's axes, and its elements."""


def _labels_of_product(left: Factor, others: Sequence[Factor], index: int, result: str) -> str:
    """Return the labels of the product by one of the other factors, of which the output or the rest needs each."""
    rest = [term for i, (term, _) in enumerate(others) if i != index]
    if not rest:
        return result
    return "".join(label for label in dict.fromkeys(left[0] + others[index][0]) if label in {*result}.union(*rest))


def _without(ctx: LoweringContext, factor: Factor, needed: set[str]) -> Factor:
    """Return a factor with its sums over labels that neither the output nor another factor has."""
    term, x = factor
    axes = [i for i, label in enumerate(term) if label not in needed]
    if not axes:
        return factor
    labels = "".join(label for label in term if label in needed)
    total = ctx.new(x.dtype, [n for i, n in enumerate(x.shape) if i not in axes], f".{x.name}.{labels}")
    reduced(ctx, total, x, axes, "sum", arg(0, x.dtype), arg(0, x.dtype))
    return labels, total


def _product_of_two(
    ctx: LoweringContext, y: Buffer, result: str, left: Factor, right: Factor, sizes: dict[str, int]
) -> None:
    """Add one product of matrices, in a batch of the labels that both factors and the result have."""
    a, b = left, right
    outer = [label for label in result if (label in a[0]) != (label in b[0])]
    if outer and outer[0] in b[0]:  # the factor whose labels come first in the output has the rows
        a, b = b, a
    _product(ctx, y, result, a, b, sizes)


def _product(ctx: LoweringContext, y: Buffer, result: str, left: Factor, right: Factor, sizes: dict[str, int]) -> None:
    batch = [label for label in result if label in left[0] and label in right[0]]
    rows = [label for label in result if label not in right[0]]
    columns = [label for label in result if label not in left[0]]
    orders = [[label for label in term if label not in result] for term, _ in (left, right)]
    summed = min(
        orders, key=lambda s: (_order(left[0], batch, rows, s) is None) + (_order(right[0], batch, s, columns) is None)
    )
    count, m, k, n = (math.prod([sizes[label] for label in group]) for group in (batch, rows, summed, columns))
    check_products(y.dtype, m * k * n)
    a, transpose_a = _matrices(ctx, left, batch, rows, summed, (count, m, k))
    b, transpose_b = _matrices(ctx, right, batch, summed, columns, (count, k, n))
    term = "".join((*batch, *rows, *columns))
    lead = (count,) if batch else ()
    element = arg(0, y.dtype)
    if term == result:
        with ctx.reshaped(y, (*lead, m, n)) as out:
            ctx.add(MatMul, out, a, b, (), element, transpose_a, transpose_b)
        return
    product = ctx.new(y.dtype, [sizes[label] for label in term], f".{y.name}.product")
    with ctx.reshaped(product, (*lead, m, n)) as out:
        ctx.add(MatMul, out, a, b, (), element, transpose_a, transpose_b)
    _write(ctx, y, result, product, term)


def _order(term: str, batch: Labels, first: Labels, second: Labels) -> bool | None:
    """Return whether a factor's matrices [first, second] are stored transposed; None if they are not stored as such."""
    stored = list(term)
    if stored == [*batch, *first, *second]:
        return False
    return True if stored == [*batch, *second, *first] else None


def _matrices(
    ctx: LoweringContext, factor: Factor, batch: Labels, first: Labels, second: Labels, sizes: tuple[int, int, int]
) -> tuple[Buffer, bool]:
    """Return a factor as matrices [batch, first, second], and whether these are stored transposed."""
    term, x = factor
    count, m, n = sizes
    buffer, order = x, _order(term, batch, first, second)
    if order is None:  # runs of the last label stay whole
        order = term[-1] in first
        groups = (*batch, *second, *first) if order else (*batch, *first, *second)
        buffer = transposed(ctx, buffer, [term.index(label) for label in groups])
    return ctx.viewed(buffer, (*((count,) if batch else ()), *((n, m) if order else (m, n)))), order


def _write(ctx: LoweringContext, y: Buffer, result: str, source: Buffer, term: str) -> None:
    """Write a value with the labels `term` to the output, in the output's order."""
    whole = layout(source)
    move_view(ctx, y, source, whole.transpose([term.index(label) for label in result]), whole)
