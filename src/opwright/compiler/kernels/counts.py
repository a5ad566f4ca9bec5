"""Counts of numbers, and sums of their weights.

Lives here: the selector of Counts, its family.
Not here: reductions of rows to segments (scatter.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.dtypes import DType, float32, float64, int32, int64
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.indexing_ops import Counts
from . import NoKernel, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Value, Work
    from ..loops.plan_builder import Builder


@kl.family
def count(
    work: Work,
    numbers: ptr[u8],
    weights: ptr[u8],
    y: ptr[u8],
    n: i64,
    size: i64,
    *,
    index: DType,
    source: DType,
    weighted: bool,
    once: bool,
) -> Value:
    """Count the n numbers of rows in order. A work item is a row. weights: not read unless weighted."""
    numbers, weights, y = (
        numbers.cast(index, index.size),
        weights.cast(source, source.size),
        y.cast(source, source.size),
    )
    lanes = work.lanes(source)
    failed = kl.value(0)
    for item in work.items():
        row, target = numbers + item * n, y + item * size
        for i in range(0, size, lanes):
            target.store(kl.zeros(source, lanes), i, kl.tail_mask(size - i, lanes))
        for i in range(n):
            number = row[i].to(i64)
            failed = kl.select(number < 0, 1, failed)
            if (number >= 0) & (number < size):
                weight = (weights + item * n)[i] if weighted else kl.value(1, source)
                target[number] = weight if once else target[number] + weight
    return failed


@selector(Counts)
def select_counts(form: Counts, build: Builder) -> None:
    numbers, weights, y = form.numbers, form.weights, form.output
    buffers = (numbers, y) if weights is None else (numbers, y, weights)
    if len(numbers.shape) != 2 or numbers.dtype not in (int32, int64) or any(b.parent is not None for b in buffers):
        raise NoKernel(f"counts of {numbers!r}")
    if y.dtype not in (float32, float64, int32, int64) or y.shape[:1] != numbers.shape[:1] or len(y.shape) != 2:
        raise NoKernel(f"counts {y!r} of {numbers!r}")
    if weights is not None and (weights.shape, weights.dtype) != (numbers.shape, y.dtype):
        raise NoKernel(f"weights {weights!r} of {numbers!r}")
    (rows, n), size = numbers.shape, y.shape[1]
    code = count.code(index=numbers.dtype, source=y.dtype, weighted=weights is not None, once=form.once)
    words = [build.pointer(numbers), build.pointer(y if weights is None else weights), build.pointer(y), n, size]
    build.step(code, words, rows, chunk=grain(8 * (n + size), rows))
