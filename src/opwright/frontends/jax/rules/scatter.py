"""Rules of scatter: elements or slices replaced or combined at computed indices.

Lives here: scatter and scatter-add, -sub, -mul, -min, -max. Not here: what indices mean (indexing.py).

Updates outside of the operand go to a row behind its last, which is then removed.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ops import array, dispatch, math
from ...importing import tensor_of
from ..execution import RULES, JaxprContext
from ..operands import broadcast, cast, dims, reshape, transpose
from .arrays import part
from .indexing import IndexRows, index_rows, mode_name


def _product(table: Any, rows: Any, updates: Any) -> Any:
    factors = math.unsorted_segment_prod(updates, array.squeeze(rows, [-1]), dims(table)[0])
    return math.multiply(table, factors)


OPERATIONS = {
    "scatter": array.tensor_scatter_nd_update,
    "scatter-add": array.tensor_scatter_nd_add,
    "scatter-max": array.tensor_scatter_nd_max,
    "scatter-min": array.tensor_scatter_nd_min,
    "scatter-mul": _product,
    "scatter-sub": array.tensor_scatter_nd_sub,
}
OF_BOOL = frozenset({"scatter-add", "scatter-max", "scatter-min", "scatter-mul"})


def _scatter(name: str, operation: Any) -> None:
    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        x, indices, updates = inputs
        if 0 in dims(updates) or 0 in dims(x):
            return x
        roles = params["dimension_numbers"]
        sizes = dims(x)
        removed = (*roles.inserted_window_dims, *roles.operand_batching_dims)
        window = [a for a in range(len(sizes)) if a not in removed]
        slice_sizes = [1] * len(sizes)
        for axis, d in zip(window, roles.update_window_dims):
            slice_sizes[axis] = dims(updates)[d]
        where = index_rows(
            sizes,
            indices,
            roles.scatter_dims_to_operand_dims,
            roles.operand_batching_dims,
            roles.scatter_indices_batching_dims,
            slice_sizes,
            removed,
            mode_name(params["mode"]),
        )
        # updates as [batch..., part..., kept...]
        batch_axes = [d for d in range(len(dims(updates))) if d not in roles.update_window_dims]
        place = dict(zip(window, roles.update_window_dims))
        kept = [a for a in range(len(sizes)) if a not in where.axes]
        order = [*batch_axes, *(place[a] for a in where.parts), *(place[a] for a in kept if a in place)]
        rows = transpose(updates, order)
        rest = [sizes[a] for a in kept]
        table, back = _table(x, where, kept)
        columns, count = _linear(where, [sizes[a] for a in where.axes])
        flat = reshape(rows, [count, *rest])
        result = _apply(operation, name, tensor_of(table), columns, flat, where)
        axes = [sizes[a] for a in where.axes] or [1]
        return reshape(transpose(reshape(result, [*axes, *rest]), back), sizes)


def _table(x: Any, where: IndexRows, kept: Sequence[int]) -> tuple[Any, list[int]]:
    """Return x as [rows, kept...], and the permutation that undoes the order of its axes."""
    sizes, order = dims(x), [*where.axes, *kept]
    moved = transpose(x, order)
    rows = numbers.prod(sizes[a] for a in where.axes)
    rank = len(order) + (not where.axes)
    back = list(np.argsort(order)) if where.axes else list(range(rank))
    return reshape(moved, [rows, *(sizes[a] for a in kept)]), [int(i) for i in back]


def _linear(where: IndexRows, sizes: Sequence[int]) -> tuple[Any, int]:
    """Return the row of the table for each position, as a vector, and how many there are."""
    if where.rows is None:
        count = numbers.prod(where.batch)
        return np.zeros(count, np.int32), count
    strides = [numbers.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    count = numbers.prod(dims(where.rows)[:-1])
    if isinstance(where.rows, np.ndarray):
        return (where.rows.reshape(count, -1) * np.asarray(strides)).sum(-1).astype(np.int32), count
    columns = reshape(where.rows, [count, len(sizes)])
    if len(sizes) == 1:
        return reshape(columns, [count]), count
    scale = dispatch.to_tensor(np.asarray(strides, np.int32))
    return math.reduce_sum(math.multiply(cast(columns, np.int32), scale), 1), count


def _apply(operation: Any, name: str, table: Any, columns: Any, updates: Any, where: IndexRows) -> Any:
    rows, updates = dims(table)[0], tensor_of(updates)
    if where.inside is not None:
        inside = broadcast(reshape(where.inside, [*where.batch, *[1] * len(where.parts)]), _positions(where))
        outside = dispatch.to_tensor(np.asarray(rows, np.int32))
        columns = array.where(
            tensor_of(reshape(inside, [-1 if not dims(inside) else numbers.prod(dims(inside))])),
            cast(tensor_of(columns), np.int32),
            outside,
        )
        table = array.concat([table, part(table, 0, 0, 1)], 0)
    logic = table.dtype.is_bool and name in OF_BOOL
    if logic:
        table, updates = cast(table, np.uint8), cast(updates, np.uint8)
        operation = OPERATIONS["scatter-max" if name in ("scatter-add", "scatter-max") else "scatter-min"]
    result = operation(table, array.expand_dims(cast(tensor_of(columns), np.int32), -1), updates)
    result = cast(result, np.bool_) if logic else result
    return part(result, 0, 0, rows) if where.inside is not None else result


def _positions(where: IndexRows) -> tuple[int, ...]:
    return where.batch if where.rows is None else dims(where.rows)[:-1]


for _name, _operation in OPERATIONS.items():
    _scatter(_name, _operation)
