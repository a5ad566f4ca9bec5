"""Rows joined by the segment each belongs to.

Lives here: the maker of Segments, its family.  Not here: updates added at coordinates (scatters.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import i32, i64, ptr, u8
from ..loops.forms import Segments
from . import Unmade, maker
from .grains import grain
from .reductions import joined

if TYPE_CHECKING:
    from ..loops.planning import Builder

COLUMNS = 256
"""Elements of a row that one item joins, through all rows in their order: so sums do not depend on who did what."""


@kl.family
def join_segments(work, x: ptr[u8], ids: ptr[i32], y: ptr[u8], rows: i64, run: i64, segments: i64,
                  *, source: DType, kind: str, start: Any):  # fmt: skip
    """Rows of `run` elements to segments of as many. A negative id is left out; one behind the last fails."""
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    lanes = work.target.vector_bytes // source.size
    failed = kl.value(0)
    for item in work.items():
        first = item * COLUMNS
        count = kl.minimum(run - first, COLUMNS)
        for s in range(segments):
            i = kl.value(0)
            while i < count:
                mask = kl.first(kl.minimum(count - i, lanes), lanes)
                y.store(kl.full(source, lanes, start), s * run + first + i, mask=mask)
                i = i + lanes
        for r in range(rows):
            segment = ids[r].to(i64)
            failed = kl.select(segment < segments, failed, 1)
            if (segment >= 0) & (segment < segments):
                a, b = x + (r * run + first), y + (segment * run + first)
                i = kl.value(0)
                while i < count:
                    mask = kl.first(kl.minimum(count - i, lanes), lanes)
                    b.store(joined(kind, a.load(i, lanes, mask), b.load(i, lanes, mask)), i, mask=mask)
                    i = i + lanes
    return failed


STARTS = {"sum": 0, "prod": 1}


@maker(Segments)
def make_segments(form: Segments, build: Builder) -> None:
    """Of float32 and int32: an extreme begins with the farthest finite number, and passes over NaN."""
    x, ids, y = form.input, form.ids, form.output
    if x.dtype.name not in ("float32", "int32") or ids.dtype is not i32 or x.dtype is not y.dtype:
        raise Unmade(f"segments {ids!r} of {x!r}")
    rank = len(ids.shape)
    if x.shape[:rank] != ids.shape or y.shape[1:] != x.shape[rank:] or any(b.parent is not None for b in (x, ids, y)):
        raise Unmade(f"segments {ids!r} of {x!r} to {y!r}")
    low, high = x.dtype.limits
    start = STARTS.get(form.kind, low if form.kind == "max" else high)
    start = float(start) if x.dtype.is_floating else int(start)
    run = math.prod(y.shape[1:])
    words = [build.pointer(x), build.pointer(ids), build.pointer(y), ids.size, run, y.shape[0]]
    items = -(-run // COLUMNS)
    code = join_segments.code(source=x.dtype, kind=form.kind, start=start)
    build.step(code, words, items, chunk=grain((ids.size + y.shape[0]) * COLUMNS * 4, items))
