"""Rules for matrix products.

Lives here: FULLY_CONNECTED for constant weights, BATCH_MATMUL for all else.
Not here: bias and activation, which merge afterwards (../optimize.py), Einstein's notation (einsum.py).
"""

from __future__ import annotations

import numpy as np

from ....core.dtypes import float32
from ....graph import Node
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


MATMUL = table(
    Rule("fully_connected", "MatMul", _fully_connected, "the rows of its weights are the columns of the matrix"),
    Rule("batch_matmul", "MatMul", _batch_matmul),
)
