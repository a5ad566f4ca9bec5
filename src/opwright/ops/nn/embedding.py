"""Embedding lookup.

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
    """Look up rows of a table by index. The row of one padding index is zeros and is not trained.

    .. math:: output_i = table_{ids_i} \\text{ where } ids_i \\ne padding\\_idx, \\text{ else } 0

    table: [rows, ...]; ids: any shape; output: [*ids.shape, ...]. padding_idx: may be outside [0, rows).
    The gradient is IndexedSlices of the looked-up rows, in their order and with repetitions, without padding, so no
    optimizer updates the padding row.
    raises InvalidArgumentError naming the first index, other than padding_idx, that is not in [0, rows)
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
        if table.shape.rank is None or ids.rank is None:
            return table.with_shape(UNKNOWN)
        return table.with_shape([*ids, *table.shape[1:]])

    def compute(op, table: Any, ids: Any) -> np.ndarray:
        padding = ids == op.padding_idx
        check_indices(np.where(padding, 0, ids) if len(table) else ids, len(table))
        rows = np.take(table, np.where(padding, 0, ids), 0)
        rows[padding] = 0
        return rows

    def gradient(op, doutput: Any) -> tuple[IndexedSlices, None]:
        table_shape = shape(op.table)
        flat = sparse_rows(table_shape, op.table.shape, op.ids, doutput)
        is_trained = not_equal(flat.indices, op.padding_idx)
        ids, rows = boolean_mask(reshape(flat.indices, [-1]), is_trained), boolean_mask(flat.values, is_trained)
        return sparse_rows(table_shape, op.table.shape, ids, rows), None


def embedding_lookup(
    params: Any, ids: Any, max_norm: float | None = None, name: str | None = None, *, padding_idx: int | None = None
) -> Tensor:
    """Look up rows of a table by index. The gradient with respect to `params` is IndexedSlices.

    .. math:: output_i = params_{ids_i}

    params: a table [rows, ...], or a list of tables, which are concatenated. max_norm: rows of a larger norm are
    scaled to it. padding_idx: an index whose rows are zeros and receive no gradient. Shape: [*ids.shape, ...].
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
