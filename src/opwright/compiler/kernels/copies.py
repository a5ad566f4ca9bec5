"""Copies: one result of an operation with several results, and elements whose values are checked.

Lives here: the selectors of Part and Checked, their families.
Not here: operations with several results (user_kernels.py, nms.py), bounds of indices (gather.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.ops import Checked, Part
from . import NoKernel, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Value
    from ..loops.plan_builder import Builder

BLOCK = 1 << 16  # bytes per work item of copy_bytes
CHECKED_BLOCK = 16384  # elements per work item of copy_checked


@kl.family
def copy_bytes(work, out: ptr[u8], source: ptr[u8], n: i64, block: i64):
    """Copy n bytes. A work item is a block."""
    for item in work.items():
        start = item * block
        kl.copy(out + start, source + start, kl.minimum(n - start, block))


@selector(Part)
def select_part(form: Part, build: Builder) -> None:
    """Copy the bytes of one result."""
    if form.output.parent is not None:
        raise NoKernel("a slice of another buffer")
    n = math.prod(form.output.shape) * form.output.dtype.size
    build.step(
        copy_bytes.code(),
        [build.pointer(form.output), build.pointer(form.input).moved(form.start), n, BLOCK],
        -(-n // BLOCK),
    )


@kl.family
def copy_checked(work, x: ptr[u8], y: ptr[u8], n: i64, limit: ptr[u8], *, source: DType, refused: str):
    """Copy n elements from x to y, which may be the same memory; fail if any is rejected."""
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    lanes = work.target.vector_bytes // source.size
    failed, bound = kl.value(0), limit.cast(source, source.size)[0]
    for item in work.items():
        i, end = item * CHECKED_BLOCK, kl.minimum(n, (item + 1) * CHECKED_BLOCK)
        while i < end:
            mask = kl.tail_mask(end - i, lanes)
            v = x.load(i, lanes, mask)
            failed = kl.select(kl.any(_is_rejected(refused, v, bound) & mask), 1, failed)
            y.store(v, i, mask=mask)
            i = i + lanes
    return failed


def _is_rejected(refused: str, v: Value, limit: Value) -> Value:
    if refused == "equal":
        return v == limit
    return v < limit if refused == "below" else (v > limit) | (v < -limit)


@selector(Checked)
def select_checked(form: Checked, build: Builder) -> None:
    """Copy in place if the input has no other reader."""
    x, y = form.input, form.output
    if x.parent is not None or y.parent is not None or x.dtype is not y.dtype or x.dtype.is_bool or x.size != y.size:
        raise NoKernel(f"elements {x!r} to be checked")
    if x.dtype.is_floating and x.dtype.size < 4:
        raise NoKernel(f"elements {x!r} to be checked")
    build.share(x)
    items = -(-x.size // CHECKED_BLOCK)
    limit = build.constant(np.array([form.limit], x.dtype.np))
    code = copy_checked.code(source=x.dtype, refused=form.refused)
    words = [build.pointer(x), build.pointer(y), x.size, limit]
    build.step(code, words, items, chunk=grain(CHECKED_BLOCK * x.dtype.size, items))
