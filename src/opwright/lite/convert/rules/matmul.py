"""Rules for matrix products and for Einstein summation.

Lives here: FULLY_CONNECTED for constant weights, BATCH_MATMUL otherwise, Einsum as transposes, reshapes and these.
Not here: bias and activation, which merge afterwards (../passes.py).

Two factors of an Einsum are permuted to [batch, rows, summed] and [batch, summed, columns], multiplied, and permuted to
the order of the result; several factors, two at a time. The choice of the left factor, and of each factor's layout,
minimises transposes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....core.dtypes import float32, int8, int32
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ....ops.linalg.einsum import expand_ellipsis, parse
from ..rewriter import LiteRewriter, NoMatch, RuleResult, UnmatchedNode, rank_of, rule_table, size_along, sliced
from .convolution import transposed


def _flags(node: Node) -> tuple[bool, bool, bool, bool]:
    """Return transpose_a, transpose_b, adjoint_a, adjoint_b, as far as the operator has them."""
    attrs = node.attrs
    return tuple(bool(attrs.get(k, False)) for k in ("transpose_a", "transpose_b", "adjoint_a", "adjoint_b"))  # type: ignore[return-value]


def _fully_connected(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, weights = node.operands
    ta, tb, aa, ab = _flags(node)
    if x.dtype is not float32 or node.outputs[0].dtype is not x.dtype:
        return NoMatch(f"FULLY_CONNECTED takes float32, found {x.dtype.name}")
    if weights.constant is None or weights.constant.ndim != 2:
        return NoMatch("FULLY_CONNECTED is for weights that are a constant of rank 2")
    rank = x.spec.shape.rank
    if rank is None or rank < 2:
        return NoMatch("the rank of the first operand is not known")
    if ta or aa:
        x = transposed(rewriter, x, (*range(rank - 2), rank - 1, rank - 2))
    rows = weights if tb or ab else rewriter.constant(weights.constant.T, float32)  # [out, in]
    return rewriter.emit("FULLY_CONNECTED", x, rows, None, keep_num_dims=rank > 2, like=node.outputs[0].spec)


def _batch_matmul(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, y = node.operands
    ta, tb, aa, ab = _flags(node)
    if node.outputs[0].dtype is not x.dtype or x.dtype.is_complex:
        return NoMatch("BATCH_MATMUL takes real numbers and gives their type")
    ranks = x.spec.shape.rank, y.spec.shape.rank
    if any(r is None or r > 5 for r in ranks):
        return NoMatch("BATCH_MATMUL takes operands of rank 2 to 5")
    return rewriter.emit("BATCH_MATMUL", x, y, adj_x=ta or aa, adj_y=tb or ab, like=node.outputs[0].spec)


def _magnitude(value: Value) -> float | None:
    """Return the greatest absolute value of integers that were 8 bits wide before; None of others."""
    if value.constant is not None:
        return float(np.abs(value.constant.astype(np.float64)).max(initial=0))
    node = value.node
    if node is None:
        return None
    first = next(iter(node.operands))
    if node.op.name == "CAST":
        narrow = first.dtype.is_integer and first.dtype.size == 1
        return float(255 if first.dtype.is_unsigned else 128) if narrow else _magnitude(first)
    if node.op.name == "SUB":
        several = [_magnitude(v) for v in node.operands]
        narrow = all(m is not None and m <= 255 for m in several)  # a number and a zero point of one type
        return 255.0 if narrow else None
    return _magnitude(first) if node.op.name in ("RESHAPE", "TRANSPOSE", "SLICE") else None


def _integer_matmul(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Emit products of float32 over parts of the summed elements, each as long as its sums stay exact, below 2^24."""
    x, y = node.operands
    ta, tb, aa, ab = _flags(node)
    if x.dtype is not int32 or ta or aa or tb or ab:
        return NoMatch("not a product of int32")
    rank, other, count = rank_of(x), rank_of(y), y.spec.shape[-2]
    largest, greatest = _magnitude(x), _magnitude(y)
    if not (2 <= rank <= 5 and 2 <= other <= 5) or count is None or largest is None or greatest is None:
        return NoMatch("the product of int32 is exact in float32 for operands that were 8 bits wide")
    weights = y.constant
    if weights is None:
        sums = np.arange(1, count + 1) * greatest
    else:
        sums = np.abs(weights.astype(np.float64)).cumsum(-2)
        sums = sums.max(tuple(a for a in range(other) if a != other - 2))
    parts: list[Value] = []
    start = 0
    while start < count:
        before = sums[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(sums - before, (2**24 - 1) / max(largest, 1), "right")))
        left = sliced(rewriter, x, [0] * (rank - 1) + [start], [-1] * (rank - 1) + [stop - start])
        left = rewriter.cast(left, float32)
        if weights is None:
            right = sliced(rewriter, y, [0] * (other - 2) + [start, 0], [-1] * (other - 2) + [stop - start, -1])
            product = rewriter.emit("BATCH_MATMUL", left, rewriter.cast(right, float32))
        else:
            product = _by_narrow_weights(rewriter, left, weights[..., start:stop, :])
        parts.append(rewriter.cast(product, int32))
        start = stop
    return functools.reduce(lambda a, b: rewriter.emit("ADD", a, b), parts)


def _by_narrow_weights(rewriter: LiteRewriter, x: Value, weights: np.ndarray) -> Value:
    """Return the product with a constant matrix of integers, which the file holds in 8 bits if they fit."""
    info = np.iinfo(np.int8)
    narrow = info.min <= weights.min(initial=0) and weights.max(initial=0) <= info.max
    rows = weights.T if weights.ndim == 2 else weights  # [out, in]
    y = rewriter.cast(rewriter.constant(rows, int8), float32) if narrow else rewriter.constant(rows, float32)
    if weights.ndim == 2:
        return rewriter.emit("FULLY_CONNECTED", x, y, None, keep_num_dims=len(x.spec.shape) > 2)
    return rewriter.emit("BATCH_MATMUL", x, y)


class Factor(NamedTuple):
    """A tensor and the label of each of its dimensions."""

    x: Value
    term: str

    def size(self, label: str) -> int | None:
        dims = self.x.spec.shape.dims
        return None if dims is None else dims[self.term.index(label)]


def _einsum(node: Node, rewriter: LiteRewriter) -> RuleResult:
    operands = list(node.operands)
    if any(v.spec.shape.rank is None for v in operands):
        return NoMatch("the rank of an operand is not known")
    terms, output = parse(node.attrs["equation"])
    written, output = expand_ellipsis(terms, output, [v.spec.shape.rank or 0 for v in operands])
    if any(len(set(t)) < len(t) for t in (*written, output)):
        return NoMatch("a label is repeated in one term")
    factors = [Factor(v, t) for v, t in zip(operands, written)]
    stretched = {c for c in "".join(written) if len({f.size(c) for f in factors if c in f.term} - {None}) > 1}
    while len(factors) > 2:
        a, b, *rest = factors
        later = set(output).union(*(f.term for f in rest))
        kept = "".join(dict.fromkeys(c for c in a.term + b.term if c in later))
        factors = [_two(rewriter, a, b, kept, stretched), *rest]
    done = (
        _two(rewriter, factors[0], factors[1], output, stretched)
        if len(factors) == 2
        else _one(rewriter, factors[0], output)
    )
    return done.x


def _ordered(rewriter: LiteRewriter, factor: Factor, order: Sequence[str]) -> Factor:
    term = "".join(order)
    if term == factor.term:
        return factor
    return Factor(transposed(rewriter, factor.x, [factor.term.index(c) for c in term]), term)


def _one(rewriter: LiteRewriter, factor: Factor, order: str, others: str = "") -> Factor:
    """Sum a factor over the labels that occur nowhere else; permute it to the wanted order if there are no others."""
    alone = [i for i, c in enumerate(factor.term) if c not in order and c not in others]
    x = rewriter.emit("SUM", factor.x, rewriter.int32(alone)) if alone else factor.x
    left = Factor(x, "".join(c for c in factor.term if c in order or c in others))
    return left if others else _ordered(rewriter, left, order)


def _two(rewriter: LiteRewriter, a: Factor, b: Factor, order: str, stretched: set[str]) -> Factor:
    """Return the product of two factors, with these labels."""
    whole = a.term, b.term
    a, b = _one(rewriter, a, order, whole[1] or " "), _one(rewriter, b, order, whole[0] or " ")
    summed = [c for c in a.term if c in b.term and c not in order]
    if stretched.intersection(summed):
        raise UnmatchedNode("a dimension that is summed over is broadcast")
    if _prefers_swap(a, b, order):
        a, b = b, a
    batch = [c for c in order if c in a.term and c in b.term]
    rows, columns = ([c for c in order if c in f.term and c not in batch] for f in (a, b))
    if not summed:
        return _ordered(rewriter, _outer(rewriter, a, b, batch, rows, columns), order)
    if b.x.constant is not None and not batch and rows and a.x.dtype is float32:
        y = _by_weights(rewriter, a, b, rows, summed, columns)
    else:
        y = _by_matrices(rewriter, a, b, batch, rows, summed, columns)
    return _ordered(rewriter, Factor(y, "".join([*batch, *rows, *columns])), order)


def _prefers_swap(a: Factor, b: Factor, order: str) -> bool:
    """Return whether to swap the factors: constants go right, and the result should have the wanted order."""
    if (a.x.constant is None) != (b.x.constant is None):
        return a.x.constant is not None
    first = [c for c in order if (c in a.term) != (c in b.term)]
    return bool(first) and first[0] in b.term and all(c in b.term or c in a.term for c in first)


def _outer(
    rewriter: LiteRewriter, a: Factor, b: Factor, batch: list[str], rows: list[str], columns: list[str]
) -> Factor:
    """Multiply without summation: element-wise, with rows and columns in separate dimensions."""
    left, right = _ordered(rewriter, a, [*batch, *rows]), _ordered(rewriter, b, [*batch, *columns])
    x = _grouped(rewriter, left, [[c] for c in left.term] + [[] for _ in columns])
    y = _grouped(rewriter, right, [[c] for c in batch] + [[] for _ in rows] + [[c] for c in columns])
    return Factor(rewriter.emit("MUL", x, y), "".join([*batch, *rows, *columns]))


def _by_weights(
    rewriter: LiteRewriter, a: Factor, b: Factor, rows: list[str], summed: list[str], columns: list[str]
) -> Value:
    """Multiply by a constant matrix, keeping the dimensions of rows."""
    x = _ordered(rewriter, a, [*rows, *summed])
    flat = _grouped(rewriter, x, [*([c] for c in rows), summed])
    matrix = _ordered(rewriter, b, [*columns, *summed]).x.constant
    assert matrix is not None
    k = math.prod(b.size(c) or 0 for c in summed)
    weights = rewriter.constant(np.ascontiguousarray(matrix.reshape(-1, k)), float32)
    y = rewriter.emit("FULLY_CONNECTED", flat, weights, None, keep_num_dims=len(rows) > 1)
    columns_ = [(b, c) for c in columns]
    return _apart(rewriter, y, [(x, c) for c in rows], columns_, merged=(1, len(columns)), lead=len(rows) - 1)


def _by_matrices(
    rewriter: LiteRewriter,
    a: Factor,
    b: Factor,
    batch: list[str],
    rows: list[str],
    summed: list[str],
    columns: list[str],
) -> Value:
    """Emit a batch of matrix products, with a flag for a factor that lies transposed."""
    if len(batch) > 3:
        raise UnmatchedNode("BATCH_MATMUL takes ranks up to 5")
    turned_a = list(a.term) == [*batch, *summed, *rows]
    turned_b = list(b.term) != [*batch, *summed, *columns]
    left = _ordered(rewriter, a, [*batch, *summed, *rows] if turned_a else [*batch, *rows, *summed])
    right = _ordered(rewriter, b, [*batch, *columns, *summed] if turned_b else [*batch, *summed, *columns])
    lead = [[c] for c in batch]
    x = _grouped(rewriter, left, [*lead, summed, rows] if turned_a else [*lead, rows, summed])
    y = _grouped(rewriter, right, [*lead, columns, summed] if turned_b else [*lead, summed, columns])
    product = rewriter.emit("BATCH_MATMUL", x, y, adj_x=turned_a, adj_y=turned_b)
    return _apart(
        rewriter,
        product,
        [(left, c) for c in rows],
        [(right, c) for c in columns],
        merged=(len(rows), len(columns)),
        lead=len(batch),
    )


def _grouped(rewriter: LiteRewriter, factor: Factor, groups: Sequence[Sequence[str]]) -> Value:
    """Merge the dimensions of each group; an empty group is a dimension of size 1."""
    if all(len(g) == 1 for g in groups):
        return factor.x
    return _reshaped(rewriter, factor.x, [[(factor, c) for c in g] for g in groups])


def _apart(
    rewriter: LiteRewriter,
    y: Value,
    rows: list[tuple[Factor, str]],
    columns: list[tuple[Factor, str]],
    merged: tuple[int, int],
    lead: int,
) -> Value:
    """Split rows and columns of [lead..., rows, columns]. merged: the number of dimensions in each."""
    if merged == (1, 1):
        return y
    whole = Factor(y, "".join(chr(i) for i in range(y.spec.shape.rank or 0)))
    kept = [[(whole, whole.term[i])] for i in range(lead)]
    taken_rows = [[(whole, whole.term[lead])]] if merged[0] == 1 else [[r] for r in rows]
    taken_columns = [[(whole, whole.term[lead + 1])]] if merged[1] == 1 else [[c] for c in columns]
    return _reshaped(rewriter, y, [*kept, *taken_rows, *taken_columns])


def _reshaped(rewriter: LiteRewriter, x: Value, groups: Sequence[Sequence[tuple[Factor, str]]]) -> Value:
    """Reshape `x` to one dimension for each group of labels, of the tensors' sizes."""
    dims: list[int | None] = []
    for group in groups:
        sizes = [f.size(c) for f, c in group]
        dims.append(None if None in sizes else math.prod(s for s in sizes if s is not None))
    if dims.count(None) <= 1:
        shape = rewriter.int32([-1 if d is None else d for d in dims])
    else:
        first = dims.index(None)
        parts = [
            rewriter.constant(-1 if d is None else d, int32) if d is not None or i == first else _size(rewriter, group)
            for i, (d, group) in enumerate(zip(dims, groups))
        ]
        shape = rewriter.emit("PACK", tuple(parts), values_count=len(parts), axis=0)
    return rewriter.emit("RESHAPE", x, shape, like=x.spec.with_shape(dims))


def _size(rewriter: LiteRewriter, group: Sequence[tuple[Factor, str]]) -> Value:
    """Return the product of the sizes of a group, computed at run time."""
    total: Value | None = None
    for factor, label in group:
        size = size_along(rewriter, factor.x, factor.term.index(label))
        total = size if total is None else rewriter.emit("MUL", total, size)
    assert total is not None
    return total


MATMUL = rule_table(
    RewriteRule("fully_connected", "MatMul", _fully_connected, "the rows of its weights are the columns of the matrix"),
    RewriteRule("integer_matmul", "MatMul", _integer_matmul, "sums below 2^24 of integers are exact in float32"),
    RewriteRule("batch_matmul", "MatMul", _batch_matmul),
    RewriteRule("einsum", "Einsum", _einsum, "a contraction is a matrix product of its factors' transposes"),
)
