"""Updates joined at coordinates.

Lives here: the maker of ScatterNd, its family; `updated`.
Not here: slices by index (gathers.py), parts of slices (slices.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.forms import IndexMap, Move, SameMemory, ScatterNd
from . import Unmade, maker
from .gathers import INDICES
from .moves import make_move
from .windows import joined

if TYPE_CHECKING:
    from ..loops.planning import Builder


@kl.family
def scatter(work, updates: ptr[u8], indices: ptr[u8], y: ptr[u8], table: ptr[i64], count: i64, run: i64,
            *, source: DType, places: DType, depth: int, kind: str):  # fmt: skip
    """`count` updates of `run` elements, in order, in one item: several may go to one place. table: for each
    coordinate its limit, and the elements from one to the next."""
    held = u8 if source.is_bool else source
    updates, y, indices = updates.cast(held, held.size), y.cast(held, held.size), indices.cast(places, places.size)
    lanes = work.target.vector_bytes // held.size
    failed = kl.value(0)
    for p in range(count):
        offset, fits = kl.value(0), kl.value(0) == 0
        for k in range(depth):
            at = indices[p * depth + k].to(i64)
            fits = fits & (at >= 0) & (at < table[2 * k])
            offset = offset + at * table[2 * k + 1]
        failed = kl.select(fits, failed, 1)
        a, b = updates + p * run, y + kl.select(fits, offset, 0)
        i = kl.value(0)
        while i + lanes <= run:
            b.store(updated(kind, source, b.load(i, lanes), a.load(i, lanes)), i)
            i = i + lanes
        while i < run:
            b[i] = updated(kind, source, b[i], a[i])
            i = i + 1
    return failed


def updated(kind: str, source: DType, a: Any, b: Any) -> Any:
    """What is there after an update b."""
    if kind == "set":
        return b
    if source.is_bool:
        return a & b if kind in ("prod", "min") else a | b
    return joined(kind, a, b)


@maker(ScatterNd)
def make_scatter(form: ScatterNd, build: Builder) -> None:
    """What there is before comes first."""
    updates, indices, y = form.updates, form.indices, form.output
    dtype = updates.dtype
    if indices.dtype not in INDICES or dtype is not y.dtype or any(b.parent is not None for b in (updates, indices, y)):
        raise Unmade(f"{updates!r} at {indices!r}")
    if dtype.size > 8 or (dtype.is_floating and dtype.size < 4) or not y.size or not updates.size:
        raise Unmade(f"{updates!r} at {indices!r}")
    depth = indices.shape[-1]
    if not 0 < depth <= len(y.shape) or updates.shape != (*indices.shape[:-1], *y.shape[depth:]):
        raise Unmade(f"{updates!r} at {indices!r}")
    if form.base:
        (base,) = form.base
        if base.dtype is not dtype or base.shape != y.shape or base.parent is not None:
            raise Unmade(f"updates of {base!r}")
        whole = IndexMap((0,), (y.size,), 0, (1,))
        flat = [SameMemory(b.name, dtype, (y.size,), b.constant, of=b) for b in (y, base)]
        make_move(Move(flat[0], (flat[1],), (whole,)), build)
    else:
        make_move(Move(y, (), (), form.fill), build)
    steps = [math.prod(y.shape[k + 1 :]) for k in range(depth)]
    table = build.constant(np.array([*zip(y.shape[:depth], steps)], np.int64))
    run = math.prod(y.shape[depth:])
    code = scatter.code(source=dtype, places=indices.dtype, depth=depth, kind=form.kind)
    words: list[Any] = [
        build.pointer(updates),
        build.pointer(indices),
        build.pointer(y),
        table,
        updates.size // run,
        run,
    ]
    build.step(code, words, 1, chunk=1)
