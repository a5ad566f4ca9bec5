"""Elements that an operator refuses as it runs: divisors of 0, numbers below a limit or too far from 0.

Lives here: the selector of Checked, its family.  Not here: places outside of tables (gather.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.ops import Checked
from . import NoKernel, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

BLOCK = 16384  # elements of an item


@kl.family
def copy_checked(work, x: ptr[u8], y: ptr[u8], n: i64, limit: ptr[u8], *, source: DType, refused: str):
    """n elements from x to y, which may be one place; one that is refused fails."""
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    lanes = work.target.vector_bytes // source.size
    failed, most = kl.value(0), limit.cast(source, source.size)[0]
    for item in work.items():
        i, end = item * BLOCK, kl.minimum(n, (item + 1) * BLOCK)
        while i < end:
            mask = kl.first(kl.minimum(end - i, lanes), lanes)
            v = x.load(i, lanes, mask)
            failed = kl.select(kl.any(_is_refused(refused, v, most) & mask), 1, failed)
            y.store(v, i, mask=mask)
            i = i + lanes
    return failed


def _is_refused(refused: str, v: Any, limit: Any) -> Any:
    if refused == "equal":
        return v == limit
    return v < limit if refused == "below" else (v > limit) | (v < -limit)


@selector(Checked)
def select_checked(form: Checked, build: Builder) -> None:
    """Over the input where nobody else reads it."""
    x, y = form.input, form.output
    if x.parent is not None or y.parent is not None or x.dtype is not y.dtype or x.dtype.is_bool or x.size != y.size:
        raise NoKernel(f"elements {x!r} to be checked")
    if x.dtype.is_floating and x.dtype.size < 4:
        raise NoKernel(f"elements {x!r} to be checked")
    build.share(x)
    items = -(-x.size // BLOCK)
    limit = build.constant(np.array([form.limit], x.dtype.np))
    code = copy_checked.code(source=x.dtype, refused=form.refused)
    words = [build.pointer(x), build.pointer(y), x.size, limit]
    build.step(code, words, items, chunk=grain(BLOCK * x.dtype.size, items))
