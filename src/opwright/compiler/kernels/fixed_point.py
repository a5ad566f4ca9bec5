"""Fixed-point arithmetic in kernels: the formulas of `scalar` on values of the kernel language, products of columns.

Lives here: `INT16`, `INT32`; the selector of FixedProduct, its family.
Not here: the formulas (opwright/scalar), their use on arrays (lite/ops/quantized), floating-point products
(reductions.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.dtypes import DType
from ...scalar.fixed_point import MOST_LEFT, FixedPoint, FixedPointInt32
from ...scalar.quantization import short_multiplier
from .. import language as kl
from ..language import i8, i16, i64, ptr, u8
from ..loops.numeric_ops import FixedProduct
from ..target import host
from . import NoKernel, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Work
    from ..loops.plan_builder import Builder

INT16 = FixedPoint(kl, 16)
"""Fixed-point arithmetic of int16 in int32."""
INT32 = FixedPointInt32(kl)
"""Fixed-point arithmetic of int32 in int64."""


@kl.family
def fixed_product(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    n: i64,
    m: i64,
    zero: i64,
    short: i64,
    e: i64,
    output_zero: i64,
    *,
    source: DType,
) -> None:
    """Multiply the elements of each column, with rescaled factors. Items: vectors of columns."""
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    lanes = work.target.vector_bytes // 8
    low, high = (int(limit) for limit in source.limits)
    for item in work.items():
        first = item * lanes
        mask = kl.first(kl.minimum(m - first, lanes), lanes)
        total = x.load(first, lanes, mask).to(i64) - zero
        for k in range(1, n):
            total = total * ((x + k * m).load(first, lanes, mask).to(i64) - zero)
            total = INT32.wrapped(INT32.rescale_wide(total, short, e))
        result = kl.clamp(INT32.rescale_wide(total, short, e) + output_zero, low, high)
        y.store(result.to(source), first, mask)


@selector(FixedProduct)
def select_fixed_product(form: FixedProduct, build: Builder) -> None:
    """Select products whose multiplier has 16 bits, so that a product by int32 fits 64 bits."""
    x, y = form.input, form.output
    m, e = form.factor
    if x.dtype not in (i8, i16) or y.dtype is not x.dtype or any(b.parent is not None for b in (x, y)):
        raise NoKernel(f"a product of {x!r} to {y!r}")
    if len(x.shape) != 2 or x.shape[1] != y.size or not 1 <= 15 - e <= MOST_LEFT:
        raise NoKernel(f"a product of {x!r}, rescaled by {m} 2^{e - 31}")
    lanes = host().vector_bytes // 8
    items = -(-y.size // lanes)
    words = [build.pointer(x), build.pointer(y), *x.shape, form.zero, int(short_multiplier(m)), e, form.output_zero]
    build.step(fixed_product.code(source=x.dtype), words, items, chunk=grain(x.shape[0] * lanes * 8, items))
