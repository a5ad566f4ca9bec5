"""Products of columns of integers in fixed point.

Lives here: the maker of FixedProduct, its family.
Not here: products of plain numbers (reductions.py), the formulas in NumPy (lite/ops/quantized/fixed_point.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import i8, i16, i32, i64, ptr, u8
from ..loops.fixed_forms import FixedProduct
from ..target import host
from . import Unmade, maker
from .grains import grain

if TYPE_CHECKING:
    from ..loops.planning import Builder


@kl.family
def fixed_product(work, x: ptr[u8], y: ptr[u8], n: i64, m: i64, zero: i64, multiplier: i64, shift: i64,
                  output_zero: i64, *, source: DType):  # fmt: skip
    """An item is a vector of columns."""
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    lanes = work.target.vector_bytes // 8
    low, high = (int(limit) for limit in source.limits)
    for item in work.items():
        first = item * lanes
        mask = kl.first(kl.minimum(m - first, lanes), lanes)
        total = x.load(first, lanes, mask).to(i64) - zero
        for k in range(1, n):
            total = total * ((x + k * m).load(first, lanes, mask).to(i64) - zero)
            total = _rescaled(total, multiplier, shift).to(i32).to(i64)
        found = kl.clamp(_rescaled(total, multiplier, shift) + output_zero, low, high)
        y.store(found.to(source), first, mask)


def _rescaled(a: Any, multiplier: Any, shift: Any) -> Any:
    """a multiplier 2^-shift, halves up; shift is at least 1."""
    one = kl.full(i64, 0, 1)
    return (a * multiplier + (one << (shift - 1))) >> shift


@maker(FixedProduct)
def make_fixed_product(form: FixedProduct, build: Builder) -> None:
    """The multiplier has 16 bits, so that a product of int32 stays within 64."""
    x, y = form.input, form.output
    m, e = form.factor
    shift = 15 - e
    if x.dtype not in (i8, i16) or y.dtype is not x.dtype or any(b.parent is not None for b in (x, y)):
        raise Unmade(f"a product of {x!r} to {y!r}")
    if len(x.shape) != 2 or x.shape[1] != y.size or not 1 <= shift <= 62:
        raise Unmade(f"a product of {x!r}, rescaled by {m} 2^{e - 31}")
    short = (m + (1 << 15)) >> 16 if m < 0x7FFF0000 else 0x7FFF
    lanes = host().vector_bytes // 8
    items = -(-y.size // lanes)
    words = [build.pointer(x), build.pointer(y), *x.shape, form.zero, short, shift, form.output_zero]
    build.step(fixed_product.code(source=x.dtype), words, items, chunk=grain(x.shape[0] * lanes * 8, items))
