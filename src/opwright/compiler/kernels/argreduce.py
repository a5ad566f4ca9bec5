"""Positions of extremes along an axis.

Lives here: the selector of ArgReduce and its two families.  Not here: the extremes themselves (reductions.py).

The first pass computes the extreme without NaN, the second finds its first position; a row of NaN alone yields 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import i32, i64, ptr, u8
from ..loops.ops import ArgReduce
from ..target import host
from . import NoKernel, selector
from .reductions import joined, neutral, together
from .tiling import grain

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

VECTORS = 4  # accumulators in registers
LIMIT = 2**31 - 1  # of an axis: places are held in int32


@kl.family
def search_rows(work, x: ptr[u8], y: ptr[u8], n: i64, *, kind: str, source: DType, places: DType):
    """Rows of n elements: an item is a row, and gives the place of its extreme."""
    x, y = x.cast(source, source.size), y.cast(places, places.size)
    lanes = work.target.vector_bytes // max(source.size, 4)  # as many as places in a vector
    least = neutral(kind, source)
    for item in work.items():
        a = x + item * n
        found = kl.registers(source, lanes, VECTORS)
        for k in range(VECTORS):
            found[k] = kl.full(source, lanes, least)
        i = kl.value(0)
        while i + VECTORS * lanes <= n:
            for k in range(VECTORS):
                found[k] = joined(kind, a.load(i + k * lanes, lanes), found[k])
            i = i + VECTORS * lanes
        while i < n:
            mask = kl.first(kl.minimum(n - i, lanes), lanes)
            found[0] = joined(kind, kl.select(mask, a.load(i, lanes, mask), least), found[0])
            i = i + lanes
        for k in range(1, VECTORS):
            found[0] = joined(kind, found[0], found[k])
        extreme = together(kind, source, found[0]).splat(lanes)
        at, place = kl.value(0), kl.value(0, i32)
        while at < n:
            mask = kl.first(kl.minimum(n - at, lanes), lanes)
            same = (a.load(at, lanes, mask) == extreme) & mask
            if kl.any(same):
                within = kl.reduce_min(kl.select(same, kl.iota(i32, lanes), LIMIT))
                place = at.to(i32) + within
                at = n
            at = at + lanes
        y[item] = place.to(places)


@kl.family
def search_columns(
    work, x: ptr[u8], y: ptr[u8], n: i64, inner: i64, panels: i64, *, kind: str, source: DType, places: DType
):
    """Arrays [outer, n, inner] to places [outer, inner]: an item is a vector of columns."""
    x, y = x.cast(source, source.size), y.cast(places, places.size)
    lanes = work.target.vector_bytes // max(source.size, 4)
    for item in work.items():
        outer, column = item // panels, item % panels * lanes
        mask = kl.first(kl.minimum(inner - column, lanes), lanes)
        a = x + (outer * n * inner + column)
        extreme = kl.full(source, lanes, neutral(kind, source))
        for i in range(n):
            extreme = joined(kind, a.load(i * inner, lanes, mask), extreme)
        place = kl.zeros(i32, lanes)
        for i in range(n):
            row = n - 1 - i
            place = kl.select(a.load(row * inner, lanes, mask) == extreme, row.to(i32).splat(lanes), place)
        y.store(place.to(places), outer * inner + column, mask=mask)


@selector(ArgReduce)
def select_search(form: ArgReduce, build: Builder) -> None:
    """Rows where the axis is the last with more than one element, else columns."""
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
