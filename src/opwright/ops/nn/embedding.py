"""Rows of a table by index.

Lives here: EmbeddingRows, embedding_lookup.  Not here: gather itself (ops/array/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import index
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN
from .. import dispatch
from ..array import boolean_mask, concat, gather, reshape, shape
from ..array.indexing import check_indices, sparse_rows
from ..attributes import Attr
from ..definition import operator
from ..math import maximum, not_equal, reduce_sum, rsqrt, square
from ..slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..indexed_slices import IndexedSlices
    from ..tensor import Tensor


@operator
class EmbeddingRows(OperatorDefinition):
    """Rows of a table by index, where one index stands for "nothing": its rows are zeros and are not trained.

    .. math:: output_i = table_{ids_i} \\text{ where } ids_i \\ne padding\\_idx, \\text{ else } 0

    table: [rows, ...]; ids: any shape; output: [*ids.shape, ...]. padding_idx: need not be a row of the table.
    The gradient is IndexedSlices of the rows looked up, in their order and as often as they were; padding is not among
    them, so no optimizer moves its row.
    raises InvalidArgumentError naming the first index, padding aside, that is not in [0, rows)
    """

    table = Input()
    ids = Input(index)
    output = Output(like="table")
    padding_idx = Attr(int)
    no_need_buffer = ("table",)
    lod = "as ids"

    def infer(op) -> TensorSpec:
        table, ids = op.table.spec, op.ids.spec.shape
        if table.shape.rank == 0:
            raise InvalidArgumentError(what="the table must be at least 1 dimensional", found=table.short())
        known = table.shape.rank is not None and ids.rank is not None
        return table.with_shape([*ids, *table.shape[1:]] if known else UNKNOWN)

    def compute(op, table: Any, ids: Any) -> np.ndarray:
        padding = ids == op.padding_idx
        check_indices(np.where(padding, 0, ids) if len(table) else ids, len(table))
        rows = np.take(table, np.where(padding, 0, ids), 0)
        rows[padding] = 0
        return rows

    def gradient(op, doutput: Any) -> tuple[IndexedSlices, None]:
        of_table = shape(op.table)
        flat = sparse_rows(of_table, op.table.shape, op.ids, doutput)
        kept = not_equal(flat.indices, op.padding_idx)
        ids, rows = boolean_mask(reshape(flat.indices, [-1]), kept), boolean_mask(flat.values, kept)
        return sparse_rows(of_table, op.table.shape, ids, rows), None


def embedding_lookup(
    params: Any, ids: Any, max_norm: float | None = None, name: str | None = None, *, padding_idx: int | None = None
) -> Tensor:
    """The rows of `params` at `ids`: ids' shape followed by a row's. Gradients by `params` are sparse rows.

    params: a table [rows, ...], or a list of tables that follow each other. max_norm: rows longer than this are
    shrunk to it. padding_idx: an index that stands for nothing; it gives zeros, and no gradient reaches its row.
    raises ValueError for an empty list
    """
    if isinstance(params, (list, tuple)):
        if not params:
            raise ValueError("params must be specified: embedding_lookup got an empty list")
        params = params[0] if len(params) == 1 else concat([dispatch.to_tensor(p) for p in params], 0)
    ids = dispatch.to_tensor(ids)
    if padding_idx is None:
        rows = gather(params, ids, name=name)
    else:
        lookup: Any = EmbeddingRows
        rows = lookup(params, ids, padding_idx=padding_idx, name=name)
    if max_norm is None:
        return rows
    axes = None if rows.shape.rank is None or ids.shape.rank is None else tuple(range(ids.shape.rank, rows.shape.rank))
    if axes is None:
        raise ValueError(f"embedding_lookup: max_norm needs the ranks of params and ids; found {params}, {ids}")
    squares = reduce_sum(square(rows), axis=axes, keepdims=True) if axes else square(rows)
    limit = float(max_norm)
    return rows * (limit * rsqrt(maximum(squares, limit * limit)))
