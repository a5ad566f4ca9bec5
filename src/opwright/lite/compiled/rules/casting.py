"""CAST: elements as another type.

Lives here: its rule.  Not here: between reals and the integers that stand for them (quantizing.py), bits (filling.py).
"""

from __future__ import annotations

from ....compiler.kernels.expression import DTYPES
from ....compiler.loops.expressions import apply, arg, const
from ....compiler.loops.forms import Map
from ....core.dtypes import complex64, float32
from ..nodes import At, Refused
from .below_a_byte import BITS, as_bytes, to_bytes
from .elementwise import as_type, mapped, plain
from .registry import rule
from .spectral import join, pairs, part


@rule("CAST")
def cast(at: At) -> None:
    """Of complex numbers the real part; numbers become complex ones whose imaginary part is 0."""
    x = at.operand(0)
    y = at.output(x.shape)
    if x.dtype is complex64 and y.dtype in DTYPES:
        at.form(Map, y.buffer, (part(at, pairs(at, x), 0),), as_type(arg(0, float32), y.dtype))
        return
    plain(at, x := as_bytes(at, x))
    if y.dtype is complex64:
        real, imaginary = at.new(float32, x.shape, ".real"), at.new(float32, x.shape, ".imaginary")
        at.form(Map, real, (x.buffer,), as_type(arg(0, x.dtype), float32))
        at.form(Map, imaginary, (x.buffer,), const(0.0, float32))
        join(at, y, real, imaginary)
        return
    limits = [int(limit) for limit in y.dtype.limits] if y.dtype in BITS else []
    y, close = to_bytes(at, y)
    if y.dtype not in DTYPES:
        raise Refused(f"elements of type {y.dtype.name}")
    found = as_type(arg(0, x.dtype), y.dtype)
    if limits and not x.dtype.is_floating:
        raise Refused(f"{x.dtype.name} cut to {at.output().dtype.name}")
    for op, limit in zip(("maximum", "minimum"), limits):
        found = apply(op, found, const(limit, y.dtype))
    mapped(at, y, found, x)
    close()
