"""Slices by index: rows of a table, elements along an axis.

Lives here: the maker of Gather, its family.  Not here: moves whose places are known beforehand (moves.py).

An index outside of the axis is a guard that fails: the kernel reads the first slice in its stead, and says so at its
end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import i16, i32, i64, ptr, u8
from ..loops.forms import Gather
from . import Unmade, maker
from .grains import grain
from .moves import copy_run, run_width

if TYPE_CHECKING:
    from ..loops.planning import Builder

INDICES = (i16, i32, i64)


@kl.family
def gather_runs(work, x: ptr[u8], indices: ptr[u8], y: ptr[u8], count: i64, outer: i64, n: i64, run: i64,
                *, places: DType, width: int):  # fmt: skip
    """Arrays [batch, outer, n] of runs of bytes, indices [batch, count] to [batch, outer, count]: an item is a run."""
    indices = indices.cast(places, places.size)
    failed, item = kl.value(0), work.begin
    while item < work.end:
        first, row = item % count, item // count
        ids = indices + (row // outer) * count
        a = x + row * n * run
        last = kl.minimum(count, first + work.end - item)
        for i in range(first, last):
            place = ids[i].to(i64)
            inside = (place >= 0) & (place < n)
            failed = kl.select(inside, failed, 1)
            copy_run(y + (item + i - first) * run, a + kl.select(inside, place, 0) * run, run, width)
        item = item + last - first
    return failed


@maker(Gather)
def make_gather(form: Gather, build: Builder) -> None:
    """Any dtype: bytes are moved."""
    x, indices, y = form.input, form.indices, form.output
    if indices.dtype not in INDICES or x.dtype is not y.dtype:
        raise Unmade(f"slices of {x!r} by {indices!r}")
    if any(b.parent is not None for b in (x, indices, y)):
        raise Unmade("slices of a slice")
    batch = form.batch_dims
    before, after = x.shape[batch : form.axis], x.shape[form.axis + 1 :]
    rest = indices.shape[batch:]
    if x.shape[:batch] != indices.shape[:batch] or y.shape != (*x.shape[:batch], *before, *rest, *after):
        raise Unmade(f"slices of {x!r} by {indices!r} to {y!r}")
    if not x.size and y.size:
        raise Unmade(f"slices of {x!r}: there are none")
    outer, count = math.prod(before), math.prod(rest)
    run = math.prod(after) * x.dtype.size
    items = math.prod(x.shape[:batch]) * outer * count
    if not items or not run:
        raise Unmade("no slices")  # whose indices are still looked at
    words: list[Any] = [
        build.pointer(x),
        build.pointer(indices),
        build.pointer(y),
        count,
        outer,
        x.shape[form.axis],
        run,
    ]
    code = gather_runs.code(places=indices.dtype, width=run_width(run))
    build.step(code, words, items, chunk=grain(run, items))
