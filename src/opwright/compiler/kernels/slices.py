"""Gather and scatter of slices at computed start vectors, along any dimensions of a tensor.

Lives here: the selectors of GatherSlices and ScatterSlices, their families.
Not here: whole rows by index (gather.py, scatter.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..language import i32, i64, ptr, u8
from ..loops.buffers import row_major
from ..loops.indexing_ops import GatherSlices, ScatterSlices
from . import NoKernel, selector
from .boxes import Axis, box_offsets, merged_axes, table_of
from .moves import copy_buffer, copy_run, run_width
from .scatter import update_run
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Work
    from ..loops.plan_builder import Builder

INDEX_DTYPES = (i32, i64)


@kl.family
def gather_slices(
    work: Work,
    x: ptr[u8],
    starts: ptr[u8],
    y: ptr[u8],
    limits: ptr[i64],
    table: ptr[i64],
    window: i64,
    run: i64,
    *,
    places: DType,
    components: int,
    axes: int,
    width: int,
) -> None:
    """Gather slices of `window` runs of bytes. A work item is a run.

    limits: for each component the last start of a slice, and its stride in bytes. table: the axes of slices and of runs
    within them, as for `box_offsets`.
    """
    starts = starts.cast(places, places.size)
    for item in work.items():
        source, target = box_offsets(item, table, axes)
        vector = starts + item // window * components
        for k in range(components):
            source = source + kl.clamp(vector[k].to(i64), 0, limits[2 * k]) * limits[2 * k + 1]
        copy_run(y + target, x + source, run, width)


@selector(GatherSlices)
def select_gather(form: GatherSlices, build: Builder) -> None:
    """Select for any dtype; slices are copied as bytes."""
    x, starts, y, layout = form.input, form.starts, form.output, form.layout
    if starts.dtype not in INDEX_DTYPES or x.dtype is not y.dtype or any(b.parent is not None for b in (x, starts, y)):
        raise NoKernel(f"slices of {x!r} at {starts!r}")
    size = x.dtype.size
    x_strides, y_strides = ([n * size for n in row_major(b.shape)] for b in (x, y))
    batch = [Axis(n, 0, y_strides[d]) for d, n in enumerate(y.shape) if d not in layout.offsets]
    slice_axes = dict(zip(layout.offsets, layout.kept))
    window = [Axis(y.shape[d], x_strides[k], y_strides[d]) for d, k in slice_axes.items()]
    inner = window.pop() if window and window[-1][1:] == (size, size) else Axis(1, size, size)
    while window and window[-1][1:] == (inner.extent * size,) * 2:
        inner = Axis(window.pop().extent * inner.extent, size, size)
    limits = [(x.shape[d] - form.sizes[d], x_strides[d]) for d in layout.mapped]
    axes, run = merged_axes([*batch, *window]), inner.extent * size
    count = math.prod(a.extent for a in window)
    items = count * math.prod(a.extent for a in batch)
    code = gather_slices.code(places=starts.dtype, components=len(limits), axes=len(axes), width=run_width(run))
    words = [
        build.pointer(x),
        build.pointer(starts),
        build.pointer(y),
        build.constant(np.array(limits, np.int64)),
        table_of(axes, build),
        count,
        run,
    ]
    build.step(code, words, items, chunk=grain(run, items))


# ---- updates --------------------------------------------------------------------------------------------------------


@kl.family
def scatter_slices(
    work: Work,
    updates: ptr[u8],
    starts: ptr[u8],
    y: ptr[u8],
    outer: ptr[i64],
    dims: ptr[i64],
    rows: i64,
    run: i64,
    *,
    source: DType,
    places: DType,
    kind: str,
    axes: tuple[int, ...],
    mapped: tuple[int, ...],
    rank: int,
    along: bool,
) -> None:
    """Apply `rows` rows of `run` updates in order, in one work item, since several may have one target.

    axes: for each axis of the rows, its dimension of y, or -1 for an axis of slices; outer: the extent of each, and the
    stride of its start vectors. mapped: the dimension of each component. dims: for each dimension of y its size, its
    stride in elements and the factor of its starts. along: rows run along the last dimension; else they are elements.
    """
    unit = u8 if source.is_bool else source
    updates, y, starts = updates.cast(unit, unit.size), y.cast(unit, unit.size), starts.cast(places, places.size)
    lanes = work.target.lanes(max(unit.size, 4))
    for row in range(rows):
        remaining, vector = kl.value(row) + 0, kl.value(0)
        index = [kl.value(0)] * rank
        for a in reversed(range(len(axes))):
            step = remaining % outer[2 * a]
            remaining = remaining // outer[2 * a]
            if axes[a] < 0:
                vector = vector + step * outer[2 * a + 1]
            else:
                index[axes[a]] = step
        for k, d in enumerate(mapped):
            index[d] = index[d] + starts[vector + k].to(i64) * dims[3 * d + 2]
        fits, offset = kl.value(0) == 0, kl.value(0)
        for d in range(rank - along):
            fits = fits & (index[d] >= 0) & (index[d] < dims[3 * d])
            offset = offset + index[d] * dims[3 * d + 1]
        first, end = kl.value(0), kl.value(1)
        if along:
            first, end = kl.maximum(-index[rank - 1], 0), kl.minimum(dims[3 * rank - 3] - index[rank - 1], run)
            offset = offset + index[rank - 1]
        end = kl.select(fits, end, 0)
        update_run(kind, source, updates + row * run, y + offset, first, end, lanes)


class ScatterRows(NamedTuple):
    """Updates as rows, with contiguous last dimensions joined.

    updates, y: sizes; axes: for each axis of the updates, its dimension of y, or -1; scale: the factor of starts along
    the last dimension; along: whether the last axis runs along it.
    """

    updates: list[int]
    y: list[int]
    axes: list[int]
    scale: int
    along: bool


def _update_rows(form: ScatterSlices) -> ScatterRows:
    layout = form.layout
    along = dict(zip(layout.offsets, layout.kept))
    updates, y = list(form.updates.shape), list(form.output.shape)
    axes = [along.get(d, -1) for d in range(len(updates))]
    scale = 1
    while (
        len(y) > 1
        and axes[-2:] == [len(y) - 2, len(y) - 1]
        and updates[-1] == y[-1]
        and len(y) - 1 not in layout.mapped
    ):
        scale *= y[-1]
        updates[-2:], y[-2:], axes = [updates[-2] * updates[-1]], [y[-2] * y[-1]], axes[:-1]
    return ScatterRows(updates, y, axes, scale, bool(y and axes and axes[-1] == len(y) - 1))


@selector(ScatterSlices)
def select_scatter(form: ScatterSlices, build: Builder) -> None:
    """Copy the base to the output, then apply the updates."""
    base, updates, starts, y = form.base, form.updates, form.starts, form.output
    dtype = y.dtype
    if starts.dtype not in INDEX_DTYPES or any(b.parent is not None for b in (base, updates, starts, y)):
        raise NoKernel(f"{updates!r} at {starts!r}")
    if {base.dtype, updates.dtype} != {dtype} or base.shape != y.shape or dtype.size > 8 or dtype.is_complex:
        raise NoKernel(f"{updates!r} in {base!r}")
    rows = _update_rows(form)
    copy_buffer(base, y, build)
    outer, axes = (rows.updates[:-1], rows.axes[:-1]) if rows.along else (rows.updates, rows.axes)
    batch = [n for n, d in zip(outer, axes) if d < 0]
    vectors = iter(n * starts.shape[-1] for n in row_major(batch))
    table = [(n, next(vectors) if d < 0 else 0) for n, d in zip(outer, axes)]
    scales = [*[1] * (len(rows.y) - 1), rows.scale] if rows.y else []
    dims = [*zip(rows.y, row_major(rows.y), scales)]
    run = rows.updates[-1] if rows.along else 1
    code = scatter_slices.code(
        source=dtype,
        places=starts.dtype,
        kind=form.kind,
        axes=tuple(axes),
        mapped=form.layout.mapped,
        rank=len(rows.y),
        along=rows.along,
    )
    words = [
        build.pointer(updates),
        build.pointer(starts),
        build.pointer(y),
        build.constant(np.array(table, np.int64)) if table else 0,
        build.constant(np.array(dims, np.int64)),
        math.prod(outer),
        run,
    ]
    build.step(code, words, 1, chunk=1)
