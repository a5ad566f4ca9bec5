"""Elements that an operator refuses as it runs: divisors of 0.

Lives here: the maker of NonZero, its family.  Not here: places outside of tables (gathers.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.dtypes import DType
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.forms import NonZero
from . import Unmade, maker
from .grains import grain

if TYPE_CHECKING:
    from ..loops.planning import Builder

BLOCK = 16384  # elements of an item


@kl.family
def copy_non_zero(work, x: ptr[u8], y: ptr[u8], n: i64, zero: i64, *, source: DType):
    """n elements from x to y, which may be one place; one that is `zero` fails."""
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    lanes = work.target.vector_bytes // source.size
    failed, none = kl.value(0), zero.to(source)
    for item in work.items():
        i, end = item * BLOCK, kl.minimum(n, (item + 1) * BLOCK)
        while i < end:
            mask = kl.first(kl.minimum(end - i, lanes), lanes)
            v = x.load(i, lanes, mask)
            failed = kl.select(kl.any((v == none) & mask), 1, failed)
            y.store(v, i, mask=mask)
            i = i + lanes
    return failed


@maker(NonZero)
def make_non_zero(form: NonZero, build: Builder) -> None:
    """Over the input where nobody else reads it."""
    x, y = form.input, form.output
    if x.parent is not None or y.parent is not None or x.dtype is not y.dtype or x.dtype.is_bool or x.size != y.size:
        raise Unmade(f"divisors {x!r}")
    if x.dtype.is_floating and x.dtype.size < 4:
        raise Unmade(f"divisors {x!r}")
    build.share(x)
    items = -(-x.size // BLOCK)
    build.step(copy_non_zero.code(source=x.dtype), [build.pointer(x), build.pointer(y), x.size, form.zero], items,
               chunk=grain(BLOCK * x.dtype.size, items))  # fmt: skip
