"""Operators on sparse rows (`IndexedSlices`).

Lives here: MergeRows, RowsAt.
Not here: the type of sparse rows (ops/indexed_slices.py), merging arrays (scatter_arrays.py), scatters (scatter.py).
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
from .scatter_arrays import merge
from .selection import searchsorted
from .shape_operators import reshape, shape_op

if TYPE_CHECKING:
    from ..indexed_slices import IndexedSlices


def check_pair(indices: TensorShape, values: TensorShape) -> None:
    """Raise InvalidArgumentError unless there is one index for each row of values."""
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
    """Merge sparse rows: sort their indices and add up rows of equal index, in their order.

    .. math:: where = \\mathrm{sort}\\{indices\\}, \\quad rows_k = \\sum_{i: indices_i = where_k} values_i

    values: [n, ...]; indices: [n]; dense_shape: shape of the dense tensor, if known. rows: [m, ...], where: [m], m the
    number of distinct indices.
    raises InvalidArgumentError if indices and values differ in number, and with dense_shape for an index out of its
    range, or values whose shape is not that of its rows
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
            _check_range(indices, shape[0])
        where, rows = merge(indices, values)
        return rows, where

    def gradient(op, drows: Any, dwhere: Any) -> tuple[Any, None, None]:
        return gather(drows, searchsorted(op.where, op.indices, out_type=op.indices.dtype)), None, None


def _check_range(indices: np.ndarray, height: int) -> None:
    """Raise InvalidArgumentError naming the first index that is not in [0, height)."""
    if indices.size and (indices.min() < 0 or indices.max() >= height):
        first = np.flatnonzero((indices < 0) | (indices >= height))[0]
        raise InvalidArgumentError(
            what=f"merging rows: index {indices.flat[first]} is out of range",
            wanted=f"0 <= index < {height}, the number of rows",
        )


@operator
class RowsAt(OperatorDefinition):
    """Look up merged sparse rows by their indices.

    .. math:: output_i = rows_k \\text{ with } where_k = ids_i

    rows: [m, ...]; where: [m], ascending; ids: any shape. output: [*ids.shape, ...].
    raises InvalidArgumentError for an id that is not in `where`
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
        if rows.shape.rank is None or ids.rank is None:
            return rows.with_shape(UNKNOWN)
        return rows.with_shape([*ids, *rows.shape[1:]])

    def compute(op, rows: np.ndarray, where: np.ndarray, ids: np.ndarray) -> np.ndarray:
        positions: np.ndarray = np.searchsorted(where, ids)
        absent = positions >= len(where)
        absent |= np.take(where, positions, mode="clip") != ids if len(where) else True
        if absent.any():
            raise InvalidArgumentError(
                what=f"there is no row {ids[absent].flat[0]} among the {len(where)} rows given",
                wanted="an id that is there",
                do="to_dense(), which has zeros there",
            )
        return rows.take(positions, 0)

    def gradient(op, doutput: Any) -> tuple[IndexedSlices, None, None]:
        positions = searchsorted(op.where, reshape(op.ids, [-1]), out_type=op.ids.dtype)
        return sparse_rows(shape_op(op.rows), op.rows.shape, reshape(positions, shape_op(op.ids)), doutput), None, None
