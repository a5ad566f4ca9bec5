"""Rows by index: what sparse rows (`IndexedSlices`) are computed with.

Lives here: MergeRows, RowsAt.
Not here: the type of sparse rows (ops/indexed_slices.py), merging arrays (row_arrays.py), scatters (scattering.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import index, numeric
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from ..definition import operator
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .indexing import gather, sparse_rows
from .row_arrays import check_inside, merge
from .selecting import searchsorted
from .shaping import reshape, shape_op

if TYPE_CHECKING:
    from ..indexed_slices import IndexedSlices


def check_pair(indices: TensorShape, values: TensorShape) -> None:
    """Raises InvalidArgumentError where there is not one index for each row of values."""
    if values.rank == 0:
        raise InvalidArgumentError(what="values are a scalar", wanted="one row for each index")
    if indices.rank is None or values.rank is None:
        return
    if not indices.is_compatible_with(values[:1]):
        raise InvalidArgumentError(
            what="indices and values differ in number",
            found={"indices": indices, "values": values},
            wanted="indices [n] and values [n, ...]",
        )


@operator
class MergeRows(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Sparse rows with each index once: equal ones are added up, in the order they come, and indices ascend.

    .. math:: where = \\mathrm{sort}\\{indices\\}, \\quad rows_k = \\sum_{i: indices_i = where_k} values_i

    values: [n, ...]; indices: [n]; dense_shape: of the tensor the rows are of, where it is known. rows: [m, ...],
    where: [m], m the number of different indices; n = 0 gives m = 0.
    raises InvalidArgumentError where indices and values differ in number, and with dense_shape for an index that is no
    row of it, or values that are not as wide as its rows
    """

    values = Input(numeric)
    indices = Input(index, rank=1)
    dense_shape = Input(index, rank=1, optional=True)
    rows = Output(like="values")
    where = Output(like="indices")
    views = {"rows": "values", "where": "indices"}
    no_need_buffer = ("values",)
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        values, indices = op.values.spec, op.indices.spec
        check_pair(indices.shape, values.shape)
        rows = UNKNOWN if values.shape.rank is None else TensorShape([None, *values.shape[1:]])
        return TensorSpec(rows, values.dtype), TensorSpec([None], indices.dtype)

    def compute(op, values: Any, indices: Any, dense_shape: Any) -> tuple[np.ndarray, np.ndarray]:
        if values.shape[:1] != indices.shape:
            check_pair(TensorShape(indices.shape), TensorShape(values.shape))
        if dense_shape is not None:
            shape = tuple(dense_shape.tolist())
            if shape[1:] != values.shape[1:]:
                raise InvalidArgumentError(
                    what="values are not as wide as the rows they are for",
                    found={"values": values.shape, "dense_shape": shape},
                    wanted=f"values of shape {(len(indices), *shape[1:])}",
                )
            check_inside(indices, shape[0], "merging rows")
        where, rows = merge(indices, values)
        return rows, where

    def gradient(op, drows: Any, dwhere: Any) -> tuple[Any, None, None]:
        return gather(drows, searchsorted(op.where, op.indices, out_type=op.indices.dtype)), None, None


@operator
class RowsAt(OperatorDefinition):
    """Rows by the index they bear, out of merged sparse rows.

    .. math:: output_i = rows_k \\text{ with } where_k = ids_i

    rows: [m, ...]; where: [m], ascending; ids: any shape. output: [*ids.shape, ...].
    raises InvalidArgumentError for an id that `where` has not
    """

    rows = Input()
    where = Input(index, rank=1)
    ids = Input(index, like="where")
    output = Output(like="rows")
    no_need_buffer = ("rows",)
    lod = "as ids"

    def infer(op) -> TensorSpec:
        rows, ids = op.rows.spec, op.ids.spec.shape
        check_pair(op.where.spec.shape, rows.shape)
        known = rows.shape.rank is not None and ids.rank is not None
        return rows.with_shape([*ids, *rows.shape[1:]] if known else UNKNOWN)

    def compute(op, rows: Any, where: Any, ids: Any) -> Any:
        at = np.searchsorted(where, ids)
        absent = at >= len(where)
        absent |= np.take(where, at, mode="clip") != ids if len(where) else True
        if absent.any():
            what = f"there is no row {ids[absent].flat[0]} among the {len(where)} rows given"
            raise InvalidArgumentError(what=what, wanted="an id that is there", do="to_dense(), which has zeros there")
        return rows.take(at, 0)

    def gradient(op, doutput: Any) -> tuple[IndexedSlices, None, None]:
        at = searchsorted(op.where, reshape(op.ids, [-1]), out_type=op.ids.dtype)
        return sparse_rows(shape_op(op.rows), op.rows.shape, reshape(at, shape_op(op.ids)), doutput), None, None
