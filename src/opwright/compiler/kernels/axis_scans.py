"""Scans along an axis: indices of extremes, and prefix sums.

Lives here: the selectors of ArgReduce and Scan, their families.
Not here: the extremes themselves, sums to one element (reductions.py).

A search computes the extreme without NaN first, then its first index; a row of NaN alone yields 0.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import i32, i64, ptr, u8
from ..loops.ops import ArgReduce, Scan
from ..target import host
from . import NoKernel, selector
from .reductions import combine_ignoring_nan, neutral
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Work
    from ..loops.plan_builder import Builder

VECTORS = 4  # accumulators in registers
LIMIT = 2**31 - 1  # elements of an axis: indices are int32


@kl.family
def search_rows(work: Work, x: ptr[u8], y: ptr[u8], n: i64, *, kind: str, source: DType, places: DType) -> None:
    """Return the index of the extreme of each row of n elements. Items: rows."""
    x, y = x.cast(source, source.size), y.cast(places, places.size)
    lanes = work.target.vector_bytes // max(source.size, 4)  # as many as indices in a vector
    start = neutral(kind, source)
    for item in work.items():
        a = x + item * n
        extremes = kl.registers(source, lanes, VECTORS)
        for k in range(VECTORS):
            extremes[k] = kl.full(source, lanes, start)
        i = kl.value(0)
        while i + VECTORS * lanes <= n:
            for k in range(VECTORS):
                extremes[k] = combine_ignoring_nan(kind, a.load(i + k * lanes, lanes), extremes[k])
            i = i + VECTORS * lanes
        while i < n:
            mask = kl.first(kl.minimum(n - i, lanes), lanes)
            extremes[0] = combine_ignoring_nan(kind, kl.select(mask, a.load(i, lanes, mask), start), extremes[0])
            i = i + lanes
        for k in range(1, VECTORS):
            extremes[0] = combine_ignoring_nan(kind, extremes[0], extremes[k])
        extreme = kl.reduce_lanes(extremes[0], functools.partial(combine_ignoring_nan, kind)).splat(lanes)
        i, index = kl.value(0), kl.value(0, i32)
        while i < n:
            mask = kl.first(kl.minimum(n - i, lanes), lanes)
            same = (a.load(i, lanes, mask) == extreme) & mask
            if kl.any(same):
                lane = kl.reduce_min(kl.select(same, kl.iota(i32, lanes), LIMIT))
                index = i.to(i32) + lane
                i = n
            i = i + lanes
        y[item] = index.to(places)


@kl.family
def search_columns(
    work: Work, x: ptr[u8], y: ptr[u8], n: i64, inner: i64, panels: i64, *, kind: str, source: DType, places: DType
) -> None:
    """Return the index of the extreme of each column of [outer, n, inner]. Items: vectors of columns."""
    x, y = x.cast(source, source.size), y.cast(places, places.size)
    lanes = work.target.vector_bytes // max(source.size, 4)
    for item in work.items():
        outer, column = item // panels, item % panels * lanes
        mask = kl.first(kl.minimum(inner - column, lanes), lanes)
        a = x + (outer * n * inner + column)
        extreme = kl.full(source, lanes, neutral(kind, source))
        for i in range(n):
            extreme = combine_ignoring_nan(kind, a.load(i * inner, lanes, mask), extreme)
        index = kl.zeros(i32, lanes)
        for i in range(n):
            row = n - 1 - i
            index = kl.select(a.load(row * inner, lanes, mask) == extreme, row.to(i32).splat(lanes), index)
        y.store(index.to(places), outer * inner + column, mask=mask)


@selector(ArgReduce)
def select_search(form: ArgReduce, build: Builder) -> None:
    """Select the search of rows if the axis is the last with more than one element, otherwise of columns."""
    x, y = form.input, form.output
    if x.parent is not None or y.parent is not None or not x.size or x.shape[form.axis] > LIMIT:
        raise NoKernel(f"a search in {x!r}")
    source = u8 if x.dtype.is_bool else x.dtype
    if source.is_floating and source.size < 4:
        raise NoKernel(f"a search in {x.dtype.name}")
    axis = form.axis % len(x.shape)
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    constants: dict[str, Any] = {"kind": form.kind, "source": source, "places": y.dtype}
    words: list[Any] = [build.pointer(x), build.pointer(y), n]
    if inner == 1:
        build.step(search_rows.code(**constants), words, outer, chunk=grain(2 * n * source.size, outer))
        return
    lanes = host().vector_bytes // max(source.size, 4)
    panels = -(-inner // lanes)
    work = grain(2 * n * lanes * source.size, outer * panels)
    build.step(search_columns.code(**constants), [*words, inner, panels], outer * panels, chunk=work)


@kl.family
def running_sums(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    n: i64,
    inner: i64,
    panels: i64,
    *,
    source: DType,
    lanes: int,
    exclusive: bool,
    reverse: bool,
) -> None:
    """Return prefix sums along n of arrays [outer, n, inner], in order.

    Items: vectors of columns, or rows if inner is 1 (lanes 0).
    """
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    for item in work.items():
        column = item % panels * max(lanes, 1)
        offset = item // panels * n * inner + column
        a, b = x + offset, y + offset
        mask = kl.first(kl.minimum(inner - column, lanes), lanes) if lanes else None
        total = kl.full(source, lanes, 0)
        for i in range(n):
            offset = (n - 1 - i if reverse else i) * inner
            after = total + a.load(offset, lanes, mask)
            b.store(total if exclusive else after, offset, mask)
            total = after


@selector(Scan)
def select_scan(form: Scan, build: Builder) -> None:
    """Select prefix sums of numbers of 32 and 64 bits."""
    x, y = form.input, form.output
    if x.parent is not None or y.parent is not None or x.dtype.size < 4 or x.dtype is not y.dtype or not x.shape:
        raise NoKernel(f"running sums of {x!r}")
    axis = form.axis % len(x.shape)
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    lanes = 0 if inner == 1 else host().vector_bytes // x.dtype.size
    panels = -(-inner // max(lanes, 1))
    words: list[Any] = [build.pointer(x), build.pointer(y), n, inner, panels]
    code = running_sums.code(source=x.dtype, lanes=lanes, exclusive=form.exclusive, reverse=form.reverse)
    work = grain(n * max(lanes, 1) * x.dtype.size, outer * panels)
    build.step(code, words, outer * panels, chunk=work)
