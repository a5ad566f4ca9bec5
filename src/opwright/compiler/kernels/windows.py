"""Windows along one axis, each joined to one element.

Lives here: the maker of ReduceWindow, its family; `joined`, one step of it.
Not here: windows over images (pools.py), whole axes (reductions.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.forms import ReduceWindow
from ..target import host
from . import Unmade, maker
from .grains import grain

if TYPE_CHECKING:
    from ..loops.planning import Builder


def joined(kind: str, a: Any, b: Any) -> Any:
    """Two elements as one; NaN is the extreme of both."""
    if kind == "sum":
        return a + b
    if kind == "prod":
        return a * b
    chosen = a > b if kind == "max" else a < b
    return kl.select(chosen | (a != a) if a.dtype.is_floating else chosen, a, b)


@kl.family
def reduce_windows(work, x: ptr[u8], y: ptr[u8], start: ptr[u8], n: i64, m: i64, inner: i64, size: i64, stride: i64,
                   dilation: i64, *, source: DType, kind: str, starts: bool, along: bool, apart: bool,
                   lanes: int):  # fmt: skip
    """Arrays [outer, n, inner] to [outer, m, inner]. An item is a row of inner elements of the output; or, along, all
    windows of an array [n], whose elements are then in vectors; apart: these are no neighbours."""
    x, y, start = (p.cast(source, source.size) for p in (x, y, start))
    first = kl.splat(start[0], lanes) if starts else None
    for item in work.items():
        count = m if along else inner
        source_row = x + (item * n if along else (item // m * n + item % m * stride) * inner)
        target = y + item * count
        step = dilation if along else dilation * inner
        for c in range(0, count, lanes):
            mask = kl.first(kl.minimum(count - c, lanes), lanes)
            total = _loaded(source_row, c, stride, lanes, mask, apart)
            if starts:
                total = joined(kind, first, total)
            for k in range(1, size):
                total = joined(kind, total, _loaded(source_row + k * step, c, stride, lanes, mask, apart))
            target.store(total, c, mask)


def _loaded(row: Any, c: Any, stride: Any, lanes: int, mask: Any, apart: bool) -> Any:
    """A vector of neighbours, or of elements `stride` apart."""
    if not apart:
        return row.load(c, lanes, mask)
    return kl.gather(row, (kl.iota(i64, lanes) + c) * stride, mask)


@maker(ReduceWindow)
def make_reduce_window(form: ReduceWindow, build: Builder) -> None:
    """Numbers of any type that is computed in itself. Vectors are no longer than what they go along, as elements that
    are apart are gathered one by one."""
    x, y, axis = form.input, form.output, form.axis
    dtype = x.dtype
    if dtype.is_bool or dtype.is_complex or dtype.size > 8 or (dtype.is_floating and dtype.size < 4):
        raise Unmade(f"windows of {x!r}")
    if dtype is not y.dtype or any(b.parent is not None for b in (x, y)) or len(x.shape) != len(y.shape):
        raise Unmade(f"windows of {x!r} to {y!r}")
    reach = (y.shape[axis] - 1) * form.stride + (form.size - 1) * form.dilation
    if x.shape[:axis] != y.shape[:axis] or x.shape[axis + 1 :] != y.shape[axis + 1 :] or reach >= x.shape[axis]:
        raise Unmade(f"windows of {x!r} to {y!r}")
    if min(form.size, form.stride, form.dilation) < 1:
        raise Unmade(f"windows of {form.size}, {form.stride} apart")
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    m, along = y.shape[axis], inner == 1
    start: Any = build.pointer(form.start[0]) if form.start else 0
    words = [build.pointer(x), build.pointer(y), start, n, m, inner, form.size, form.stride, form.dilation]
    items = outer if along else outer * m
    lanes = min(host().vector_bytes // dtype.size, 1 << max((m if along else inner) - 1, 1).bit_length())
    code = reduce_windows.code(source=dtype, kind=form.kind, starts=bool(form.start), along=along,
                               apart=along and form.stride > 1, lanes=lanes)  # fmt: skip
    build.step(code, words, items, chunk=grain(form.size * (m if along else inner) * dtype.size, items))
