"""Sequences turned round up to lengths that are given when it runs.

Lives here: the maker of ReverseStart, its family.  Not here: whole axes turned round, which are moves (moves.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core.dtypes import DType
from .. import language as kl
from ..language import i32, i64, ptr, u8
from ..loops.forms import ReverseStart
from . import Unmade, maker
from .grains import grain
from .moves import copy_run, run_width

if TYPE_CHECKING:
    from ..loops.planning import Builder


@kl.family
def reverse_starts(work, x: ptr[u8], lengths: ptr[u8], y: ptr[u8], high: i64, between: i64, low: i64, run: i64,
                   *, held: DType, width: int, batch_first: bool):  # fmt: skip
    """Arrays [outer, high, between, low] of runs of bytes: an item is a run. batch_first: high counts sequences, and
    low their elements; else the other way round."""
    lengths = lengths.cast(held, held.size)
    failed = kl.value(0)
    for item in work.items():
        b, a = item % low, item // (low * between) % high
        sequence, t = (a, b) if batch_first else (b, a)
        length = lengths[sequence].to(i64)
        fits = (length >= 0) & (length <= (low if batch_first else high))
        failed = kl.select(fits, failed, 1)
        step = kl.select(fits & (t < length), length - 1 - 2 * t, 0)  # to length - 1 - t
        source = item + (step if batch_first else step * (low * between))
        copy_run(y + item * run, x + source * run, run, width)
    return failed


@maker(ReverseStart)
def make_reverse(form: ReverseStart, build: Builder) -> None:
    """Any dtype: bytes are moved."""
    x, lengths, y = form.input, form.lengths, form.output
    if any(b.parent is not None for b in (x, lengths, y)) or x.dtype is not y.dtype or x.shape != y.shape:
        raise Unmade(f"sequences of {x!r} to {y!r}")
    if lengths.dtype not in (i32, i64) or lengths.shape != (x.shape[form.batch],):
        raise Unmade(f"lengths {lengths!r} of {x!r}")
    first, last = sorted((form.time, form.batch))
    run = math.prod(x.shape[last + 1 :]) * x.dtype.size
    items = math.prod(x.shape[: last + 1])
    code = reverse_starts.code(held=lengths.dtype, width=run_width(run), batch_first=form.batch == first)
    words = [build.pointer(x), build.pointer(lengths), build.pointer(y), x.shape[first],
             math.prod(x.shape[first + 1 : last]), x.shape[last], run]  # fmt: skip
    build.step(code, words, items, chunk=grain(run, items))
