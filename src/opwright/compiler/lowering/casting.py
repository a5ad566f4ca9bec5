"""CAST: elements as another type.

Lives here: its rule.  Not here: between reals and the integers that stand for them (quantizing.py), bits (filling.py).
"""

from __future__ import annotations

from ...core.dtypes import complex64, float32
from ..kernels.expression import DTYPES
from ..loops.expressions import apply, arg, const
from ..loops.forms import Map
from .below_a_byte import BITS, as_bytes, to_bytes
from .context import LoweringContext, NoLowering
from .elementwise import as_type, mapped, plain
from .registry import rule
from .spectral import join, pairs, part


@rule("CAST")
def cast(ctx: LoweringContext) -> None:
    """Of complex numbers the real part; numbers become complex ones whose imaginary part is 0."""
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if x.dtype is complex64 and y.dtype in DTYPES:
        ctx.form(Map, y.buffer, (part(ctx, pairs(ctx, x), 0),), as_type(arg(0, float32), y.dtype))
        return
    plain(ctx, x := as_bytes(ctx, x))
    if y.dtype is complex64:
        real, imaginary = ctx.new(float32, x.shape, ".real"), ctx.new(float32, x.shape, ".imaginary")
        ctx.form(Map, real, (x.buffer,), as_type(arg(0, x.dtype), float32))
        ctx.form(Map, imaginary, (x.buffer,), const(0.0, float32))
        join(ctx, y, real, imaginary)
        return
    limits = [int(limit) for limit in y.dtype.limits] if y.dtype.name in BITS else []
    y, close = to_bytes(ctx, y)
    if y.dtype not in DTYPES:
        raise NoLowering(f"elements of type {y.dtype.name}")
    found = as_type(arg(0, x.dtype), y.dtype)
    if limits and not x.dtype.is_floating:
        raise NoLowering(f"{x.dtype.name} cut to {ctx.output().dtype.name}")
    for op, limit in zip(("maximum", "minimum"), limits):
        found = apply(op, found, const(limit, y.dtype))
    mapped(ctx, y, found, x)
    close()
