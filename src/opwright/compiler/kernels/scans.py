"""Scans: prefix sums, products and logarithms of sums of exponentials, linear recurrences.

Lives here: the selector of Scan, its family.
Not here: reductions to one element (reductions.py), the expressions of steps (../lowering/scans.py).

Elements are combined in order, as NumPy does it: vectors run across columns, and rows are scanned one element at a
time.
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
from .expression import check, evaluate
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Work
    from ..loops.expressions import Expr
    from ..loops.plan_builder import Builder

MOST_OPERANDS = 2


@kl.family
def running(
    work: Work,
    x: ptr[u8],
    second: ptr[u8],
    y: ptr[u8],
    n: i64,
    inner: i64,
    panels: i64,
    *,
    source: DType,
    lanes: int,
    operands: int,
    step: Expr,
    start: float,
    exclusive: bool,
    reverse: bool,
) -> None:
    """Combine elements along n of arrays [outer, n, inner], in order. second: the same as x where there is none.

    Items: vectors of columns, or rows if inner is 1 (lanes 0).
    """
    pointers = [p.cast(source, source.size) for p in (x, second)[:operands]]
    y = y.cast(source, source.size)
    for item in work.items():
        column = item % panels * max(lanes, 1)
        first = item // panels * n * inner + column
        mask = kl.first(kl.minimum(inner - column, lanes), lanes) if lanes else None
        total = kl.full(source, lanes, start)
        for i in range(n):
            offset = first + (n - 1 - i if reverse else i) * inner
            after = evaluate(step, [total, *(p.load(offset, lanes, mask) for p in pointers)])
            y.store(total if exclusive else after, offset, mask)
            total = after


@selector(Scan)
def select_scan(form: Scan, build: Builder) -> None:
    """Select scans of numbers of 32 and 64 bits."""
    (x, *others), y = form.operands, form.output
    if len(form.operands) > MOST_OPERANDS or any(b.parent is not None for b in (*form.operands, y)):
        raise NoKernel(f"a scan of {form.operands!r}")
    if x.dtype.size < 4 or {b.dtype for b in (x, *others)} != {y.dtype} or not x.shape:
        raise NoKernel(f"a scan of {x!r}")
    check(form.step)
    axis = form.axis % len(x.shape)
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    lanes = 0 if inner == 1 else host().lanes(x.dtype.size)
    panels = -(-inner // max(lanes, 1))
    second = others[0] if others else x
    words: list[Any] = [build.pointer(x), build.pointer(second), build.pointer(y), n, inner, panels]
    code = running.code(
        source=x.dtype,
        lanes=lanes,
        operands=len(form.operands),
        step=form.step,
        start=form.start,
        exclusive=form.exclusive,
        reverse=form.reverse,
    )
    work = grain(n * max(lanes, 1) * x.dtype.size * len(form.operands), outer * panels)
    build.step(code, words, outer * panels, chunk=work)
