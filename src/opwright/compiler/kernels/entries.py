"""Entries of a cache replaced at positions.

Lives here: the maker of PutEntries, its family.  Not here: slices at computed places (gathers.py, slices.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core.dtypes import int32
from .. import language as kl
from ..language import i32, i64, ptr, u8
from ..loops.cache_forms import PutEntries
from . import Unmade, maker
from .gathers import copy_unless_shared
from .grains import grain
from .moves import BLOCK, copy_run, run_width

if TYPE_CHECKING:
    from ..loops.planning import Builder


@kl.family
def put_entries(work, update: ptr[u8], positions: ptr[i32], y: ptr[u8], n: i64, entries: i64, run: i64, *, width: int):
    """n entries of `run` bytes, in one item."""
    failed, before, ended = kl.value(0), kl.full(i32, 0, -(1 << 31)), kl.value(0)
    for i in range(n):
        at = positions[i]
        ended = kl.select(at < before, 1, ended)
        before = at
        inside = (at >= 0) & (at.to(i64) < entries)
        failed = kl.select(inside | (ended == 1), failed, 1)
        if inside & (ended == 0):
            copy_run(y + at.to(i64) * run, update + i * run, run, width)
    return failed


@maker(PutEntries)
def make_entries(form: PutEntries, build: Builder) -> None:
    """In place where nobody needs the input later."""
    x, update, positions, y = form.input, form.update, form.positions, form.output
    if any(b.parent is not None for b in (x, update, positions, y)) or positions.dtype is not int32:
        raise Unmade(f"entries of {x!r} at {positions!r}")
    if {update.dtype, y.dtype} != {x.dtype} or y.shape != x.shape or update.shape != (positions.size, *x.shape[1:]):
        raise Unmade(f"entries {update!r} of {x!r}")
    build.share(x)
    nbytes = x.size * x.dtype.size
    blocks = -(-nbytes // BLOCK)
    build.step(copy_unless_shared.code(), [build.pointer(x), build.pointer(y), nbytes, BLOCK], blocks,
               chunk=grain(BLOCK, blocks))  # fmt: skip
    run = math.prod(x.shape[1:]) * x.dtype.size
    words = [build.pointer(update), build.pointer(positions), build.pointer(y), positions.size, x.shape[0], run]
    build.step(put_entries.code(width=run_width(run)), words, 1, chunk=1)
