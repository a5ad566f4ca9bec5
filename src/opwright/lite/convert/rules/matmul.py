"""Rules for matrix products.

Lives here: FULLY_CONNECTED for constant weights, BATCH_MATMUL for all else, Einsum of two factors.
Not here: bias and activation, which merge afterwards (../optimize.py).
"""

from __future__ import annotations

import math

import numpy as np

from ....core.dtypes import float32
from ....core.errors import InvalidArgumentError
from ....graph import Node, Value
from ....ops.linalg.einsum import expanded, parsed
from ..lowering import Lowered, Lowering, NoMatch, Rule, table
from .convolution import transposed


def _flags(node: Node) -> tuple[bool, bool, bool, bool]:
    """transpose_a, transpose_b, adjoint_a, adjoint_b, as far as the operator has them."""
    attrs = node.attrs
    return tuple(bool(attrs.get(k, False)) for k in ("transpose_a", "transpose_b", "adjoint_a", "adjoint_b"))  # type: ignore[return-value]


def _fully_connected(node: Node, low: Lowering) -> Lowered:
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
        x = transposed(low, x, (*range(rank - 2), rank - 1, rank - 2))
    rows = weights if tb or ab else low.constant(np.ascontiguousarray(weights.constant.T), float32)  # [out, in]
    return low.emit("FULLY_CONNECTED", x, rows, None, keep_num_dims=rank > 2, like=node.outputs[0].spec)


def _batch_matmul(node: Node, low: Lowering) -> Lowered:
    x, y = node.operands
    ta, tb, aa, ab = _flags(node)
    if node.outputs[0].dtype is not x.dtype or x.dtype.is_complex:
        return NoMatch("BATCH_MATMUL takes real numbers and gives their type")
    ranks = x.spec.shape.rank, y.spec.shape.rank
    if any(r is None or r > 5 for r in ranks):
        return NoMatch("BATCH_MATMUL takes operands of rank 2 to 5")
    return low.emit("BATCH_MATMUL", x, y, adj_x=ta or aa, adj_y=tb or ab, like=node.outputs[0].spec)


def _einsum(node: Node, low: Lowering) -> Lowered:
    """Two factors: transposed to [batch, rows, summed] and [batch, summed, columns], multiplied, and put in order."""
    operands, dims = list(node.operands), [v.spec.shape.dims for v in node.operands]
    if len(operands) != 2 or any(d is None for d in dims):
        return NoMatch("it has a form as matrix product for two operands of known rank only")
    terms, output = parsed(node.attrs["equation"])
    (ta, tb), output = expanded(terms, output, [len(d or ()) for d in dims])
    if any(len(set(t)) < len(t) for t in (ta, tb, output)):
        return NoMatch("a label is repeated in one term")
    sizes: dict[str, int | None] = {}
    for term, shape in zip((ta, tb), dims):
        for label, size in zip(term, shape or ()):
            if label in sizes and sizes[label] != size:
                return NoMatch("the operands are broadcast, or a size they share is not known for both")
            sizes[label] = size
    (ta, a), (tb, b) = (_summed_alone(low, t, v, other + output) for t, v, other in zip((ta, tb), operands, (tb, ta)))
    batch = [c for c in ta if c in tb and c in output]
    summed = [c for c in ta if c in tb and c not in output]
    rows, columns = [c for c in ta if c not in tb], [c for c in tb if c not in ta]
    left = _as_matrices(low, a, ta, batch, rows, summed, sizes)
    right = _as_matrices(low, b, tb, batch, columns, summed, sizes)
    product = low.emit("BATCH_MATMUL", left, right, adj_y=True)
    order = [*batch, *rows, *columns]
    y = _reshaped(low, product, [sizes[c] for c in order])
    return transposed(low, y, [order.index(c) for c in output]) if order != list(output) else y


def _summed_alone(low: Lowering, term: str, x: Value, others: str) -> tuple[str, Value]:
    """A factor without the labels that occur nowhere else."""
    alone = [i for i, c in enumerate(term) if c not in others]
    if alone:
        x = low.emit("SUM", x, low.int32(alone))
    return "".join(c for c in term if c in others), x


def _as_matrices(low: Lowering, x: Value, term: str, batch: list[str], outer: list[str], summed: list[str],
                 sizes: dict[str, int | None]) -> Value:  # fmt: skip
    """A factor as [*batch, outer, summed], the last two joined to one size each."""
    order = [*batch, *outer, *summed]
    if order != list(term):
        x = transposed(low, x, [term.index(c) for c in order])
    return _reshaped(low, x, [*(sizes[c] for c in batch), _product(sizes, outer), _product(sizes, summed)])


def _product(sizes: dict[str, int | None], labels: list[str]) -> int | None:
    found = [sizes[c] for c in labels]
    return None if None in found else math.prod(d for d in found if d is not None)


def _reshaped(low: Lowering, x: Value, dims: list[int | None]) -> Value:
    """`x` with these sizes; one may be unknown. Raises InvalidArgumentError for more."""
    if x.spec.shape.dims == tuple(dims):
        return x
    if dims.count(None) > 1:
        raise InvalidArgumentError(what="more than one size is not known")
    return low.emit("RESHAPE", x, low.int32([-1 if d is None else d for d in dims]), like=x.spec.with_shape(dims))


MATMUL = table(
    Rule("fully_connected", "MatMul", _fully_connected, "the rows of its weights are the columns of the matrix"),
    Rule("batch_matmul", "MatMul", _batch_matmul),
    Rule("einsum", "Einsum", _einsum, "a contraction is a matrix product of its factors' transposes"),
)
