"""Elements below a byte, int4, uint4 and int2, which the interpreter keeps in a byte each.

Lives here: such operands as bytes for rules that compute on them; `check_whole_bytes` for rules that do not.
Not here: data movement, which takes the bytes as they are; weights, which kernels of products read (contractions.py).

Of such a byte only the lower bits count: NumPy leaves the others as it likes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.dtypes import int8, uint8
from ..loops.expressions import apply, arg, const
from ..loops.forms import Bitcast, Buffer, Map
from .context import LoweringContext, NoLowering, Operand

BITS = {"int4": 4, "uint4": 4, "int2": 2}
"""Bits of the types below a byte, by name: two of them are known to files alone."""


def check_whole_bytes(x: Operand) -> None:
    """Raise NoLowering for elements below a byte."""
    if x.dtype.name in BITS:
        raise NoLowering(f"elements of type {x.dtype.name}")


def as_bytes(ctx: LoweringContext, x: Operand) -> Operand:
    """The operand as int8 or uint8, if it is below a byte; else itself."""
    bits = BITS.get(x.dtype.name)
    if bits is None:
        return x
    dtype = uint8 if x.dtype.is_unsigned else int8
    if x.is_constant:
        known = np.asarray(x.constant).astype(dtype.np)
        return x.with_buffer(Buffer(f"{x.buffer.name}.bytes", dtype, x.shape, known))
    raw, spare = arg(0, dtype), const(8 - bits, dtype)
    value = apply("shift_right", apply("shift_left", raw, spare), spare)
    if dtype is uint8:
        value = apply("bitwise_and", raw, const((1 << bits) - 1, dtype))
    made = ctx.new(dtype, x.shape, f".{x.buffer.name}.bytes")
    ctx.form(Map, made, (ctx.bits(x.buffer, dtype, x.shape),), value)
    return x.with_buffer(made)


def to_bytes(ctx: LoweringContext, y: Operand) -> tuple[Operand, Callable[[], None]]:
    """An output as bytes for a form to write, and what to call after that form. What it writes is within the type."""
    if y.dtype.name not in BITS:
        return y, lambda: None
    made = ctx.new(uint8 if y.dtype.is_unsigned else int8, y.shape, ".bytes")

    def close() -> None:
        ctx.form(Bitcast, y.buffer, made)

    return y.with_buffer(made), close
