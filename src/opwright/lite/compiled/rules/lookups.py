"""Slices by index: GATHER, GATHER_ND, SCATTER_ND, EMBEDDING_LOOKUP, DYNAMIC_UPDATE_SLICE.

Lives here: these rules.  Not here: slices whose places the file knows (views.py).
"""

from __future__ import annotations

import numpy as np

from ....compiler.loops.expressions import apply, arg, convert, scalar
from ....compiler.loops.forms import Gather, GatherNd, Map, ScatterNd, UpdateSlice
from ....core.dtypes import float32, int8, int16, int32, int64, uint8
from ..nodes import At, Operand, Refused
from . import rule
from .moving import same_numbers
from .views import check_whole_bytes


def _check(indices: Operand, n: int) -> None:
    """Raises Refused for indices of other types, and for constants outside."""
    if indices.dtype not in (int16, int32, int64):
        raise Refused(f"indices {indices}")
    known = indices.constant
    if known is not None and known.size and not 0 <= int(known.min()) <= int(known.max()) < n:
        raise Refused("an index is out of bounds")


@rule("GATHER")
def gather(at: At) -> None:
    x, indices, axis, batch = at.operand(0), at.operand(1), at.option("axis"), at.option("batch_dims")
    rank = len(x.shape)
    check_whole_bytes(x)
    if not -rank <= axis < rank:
        raise Refused(f"axis {axis} of {rank}")
    axis, batch = axis % rank, batch + len(indices.shape) if batch < 0 else batch
    if not 0 <= batch <= min(len(indices.shape), axis) or x.shape[:batch] != indices.shape[:batch]:
        raise Refused(f"batch_dims {batch}")
    y = at.output((*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]))
    same_numbers(x, y)
    _check(indices, x.shape[axis])
    at.form(Gather, y.buffer, x.buffer, indices.buffer, axis, batch)


@rule("GATHER_ND")
def gather_nd(at: At) -> None:
    x, indices = at.operand(0), at.operand(1)
    check_whole_bytes(x)
    depth = indices.shape[-1] if indices.shape else 0
    if not 0 < depth <= len(x.shape):
        raise Refused(f"slices of {x} at {indices}")
    y = at.output((*indices.shape[:-1], *x.shape[depth:]))
    same_numbers(x, y)
    _check_places(indices, depth, x.shape)
    at.form(GatherNd, y.buffer, x.buffer, indices.buffer)


def _check_places(indices: Operand, depth: int, shape: tuple[int, ...]) -> None:
    """Raises Refused for constant coordinates outside."""
    if indices.constant is not None:
        places = indices.constant.reshape(-1, depth)
        if (places < 0).any() or (places >= np.array(shape[:depth])).any():
            raise Refused("an index is out of bounds")


@rule("SCATTER_ND")
def scatter_nd(at: At) -> None:
    indices, updates = at.operand(0), at.operand(1)
    sizes = tuple(int(n) for n in at.constant(2).reshape(-1))
    depth = indices.shape[-1] if indices.shape else 0
    if not 0 < depth <= len(sizes) or updates.shape != (*indices.shape[:-1], *sizes[depth:]) or min(sizes) < 1:
        raise Refused(f"{updates} at {indices}")
    y = at.output(sizes)
    same_numbers(updates, y)
    check_whole_bytes(updates)
    _check_places(indices, depth, sizes)
    at.form(ScatterNd, y.buffer, updates.buffer, indices.buffer)


@rule("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(at: At) -> None:
    x, update, starts = (at.operand(i) for i in range(3))
    check_whole_bytes(x)
    y = at.output(x.shape)
    same_numbers(x, y)
    same_numbers(update, y)
    if len(update.shape) != len(x.shape) or any(u > n for u, n in zip(update.shape, x.shape)):
        raise Refused(f"{update} into {x}")
    if starts.shape != (len(x.shape),):
        raise Refused(f"places {starts}")
    at.form(UpdateSlice, y.buffer, x.buffer, update.buffer, starts.buffer)


@rule("EMBEDDING_LOOKUP")
def embedding_lookup(at: At) -> None:
    indices, table = at.operand(0), at.operand(1)
    check_whole_bytes(table)
    if len(table.shape) < 2 or len(indices.shape) != 1:
        raise Refused(f"rows {indices} of {table}")
    y = at.output((*indices.shape, *table.shape[1:]))
    _check(indices, table.shape[0])
    if table.is_quantized and y.dtype is float32 and table.dtype in (int8, uint8):
        if table.zero:
            raise Refused(f"a table with the zero point {table.zero}")
        rows = at.new(table.dtype, y.shape)
        at.form(Gather, rows, table.buffer, indices.buffer, 0)
        signed = apply("bitcast", arg(0, table.dtype), dtype=int8)  # the official kernel reads uint8 as int8
        at.form(Map, y.buffer, (rows,), apply("mul", convert(signed, float32), scalar(table.scale, float32)))
        return
    same_numbers(table, y)
    at.form(Gather, y.buffer, table.buffer, indices.buffer, 0)
