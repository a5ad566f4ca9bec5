"""Einsum of one or two factors: matrix products of views, with factors transposed where their labels are out of order.

Lives here: its rule.
Not here: products of matrices (matmul.py), equations (ops/linalg/einsum.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core.dtypes import float32
from ...ops.linalg.einsum import expand_ellipsis, parse
from ..loops.buffers import Buffer
from ..loops.expressions import arg
from ..loops.ops import MatMul
from .context import LoweringContext, NoLowering, RuleOperand
from .contractions import transposed
from .data_movement import layout, move_view
from .registry import rule

Labels = Sequence[str]


@rule("Einsum")
def einsum_of_two(ctx: LoweringContext) -> None:
    """Lower a contraction of two factors to one product of matrices, in a batch of the labels that both factors and the
    output have; of one factor to a transposition."""
    factors = ctx.operands
    terms, output = parse(ctx.attr("equation"))
    labeled, result = expand_ellipsis(terms, output, [len(x.shape) for x in factors])
    if len(factors) > 2 or any(x.dtype is not float32 or not x.size for x in factors):
        raise NoLowering(f"{ctx.attr('equation')} of {', '.join(map(str, factors))}")
    sizes: dict[str, int] = {}
    for term, x in zip(labeled, factors):
        for label, size in zip(term, x.shape):
            if sizes.setdefault(label, size) != size:
                raise NoLowering(f"{ctx.attr('equation')}: label {label} is broadcast")
    if any(len(set(term)) < len(term) for term in (*labeled, result)):
        raise NoLowering(f"{ctx.attr('equation')}: diagonals")
    if any(set(term) - set(result).union(*labeled[:i], *labeled[i + 1 :]) for i, term in enumerate(labeled)):
        raise NoLowering(f"{ctx.attr('equation')}: a sum over a label of one factor")
    y = ctx.output([sizes[label] for label in result])
    if len(factors) == 1:
        _write(ctx, y, result, factors[0].buffer, labeled[0])
        return
    a, b = zip(labeled, factors)
    outer = [label for label in result if (label in a[0]) != (label in b[0])]
    if outer and outer[0] in b[0]:  # the factor whose labels come first in the output has the rows
        a, b = b, a
    _product(ctx, y, result, a, b, sizes)


def _product(
    ctx: LoweringContext,
    y: RuleOperand,
    result: str,
    left: tuple[str, RuleOperand],
    right: tuple[str, RuleOperand],
    sizes: dict[str, int],
) -> None:
    batch = [label for label in result if label in left[0] and label in right[0]]
    rows = [label for label in result if label not in right[0]]
    columns = [label for label in result if label not in left[0]]
    orders = [[label for label in term if label not in result] for term, _ in (left, right)]
    summed = min(
        orders, key=lambda s: (_order(left[0], batch, rows, s) is None) + (_order(right[0], batch, s, columns) is None)
    )
    count, m, k, n = (math.prod([sizes[label] for label in group]) for group in (batch, rows, summed, columns))
    a, transpose_a = _matrices(ctx, left, batch, rows, summed, (count, m, k))
    b, transpose_b = _matrices(ctx, right, batch, summed, columns, (count, k, n))
    term = "".join((*batch, *rows, *columns))
    lead = (count,) if batch else ()
    if term == result:
        with ctx.reshaped(y.buffer, (*lead, m, n)) as out:
            ctx.add(MatMul, out, a, b, (), arg(0, float32), transpose_a, transpose_b)
        return
    product = ctx.new(float32, [sizes[label] for label in term], ".product")
    with ctx.reshaped(product, (*lead, m, n)) as out:
        ctx.add(MatMul, out, a, b, (), arg(0, float32), transpose_a, transpose_b)
    _write(ctx, y, result, product, term)


def _order(term: str, batch: Labels, first: Labels, second: Labels) -> bool | None:
    """Return whether a factor's matrices [first, second] are stored transposed; None if they are not stored as such."""
    stored = list(term)
    if stored == [*batch, *first, *second]:
        return False
    return True if stored == [*batch, *second, *first] else None


def _matrices(
    ctx: LoweringContext,
    factor: tuple[str, RuleOperand],
    batch: Labels,
    first: Labels,
    second: Labels,
    sizes: tuple[int, int, int],
) -> tuple[Buffer, bool]:
    """Return a factor as matrices [batch, first, second], and whether these are stored transposed."""
    term, x = factor
    count, m, n = sizes
    buffer, order = x.buffer, _order(term, batch, first, second)
    if order is None:  # runs of the last label stay whole
        order = term[-1] in first
        groups = (*batch, *second, *first) if order else (*batch, *first, *second)
        buffer = transposed(ctx, buffer, [term.index(label) for label in groups])
    return ctx.viewed(buffer, (*((count,) if batch else ()), *((n, m) if order else (m, n)))), order


def _write(ctx: LoweringContext, y: RuleOperand, result: str, source: Buffer, term: str) -> None:
    """Write a value with the labels `term` to the output, in the output's order."""
    whole = layout(source)
    move_view(ctx, y.buffer, source, whole.transpose([term.index(label) for label in result]), whole)
