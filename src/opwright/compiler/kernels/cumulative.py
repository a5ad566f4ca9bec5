"""Running sums along an axis.

Lives here: the selector of Scan, its family.  Not here: sums to one element (reductions.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.ops import Scan
from ..target import host
from . import NoKernel, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder


@kl.family
def running_sums(
    work,
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
):
    """Arrays [outer, n, inner]: an item is a vector of columns, or a row where inner is 1 (lanes 0). In order."""
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    for item in work.items():
        column = item % panels * max(lanes, 1)
        offset = item // panels * n * inner + column
        a, b = x + offset, y + offset
        mask = kl.first(kl.minimum(inner - column, lanes), lanes) if lanes else None
        total = kl.full(source, lanes, 0)
        for i in range(n):
            at = (n - 1 - i if reverse else i) * inner
            after = total + a.load(at, lanes, mask)
            b.store(total if exclusive else after, at, mask)
            total = after


@selector(Scan)
def select_scan(form: Scan, build: Builder) -> None:
    """Numbers of 32 and 64 bits."""
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
