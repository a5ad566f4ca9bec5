"""Conversion of element types: float16 computed in float32, elements below a byte, Cast.

Lives here: `in_float32`, a decorator of rules; int4, uint4 and int2 operands as bytes, `check_whole_bytes` for rules
that
do not convert them; the rule of Cast and CAST.
Not here: element-wise operators, whose expressions round (../kernels/expression.py), data movement, which copies bytes,
packed weights (contractions.py), quantization (quantization.py).

The reference kernels compute float16 operands in float32. The interpreter stores each element below a byte in one byte,
in its low bits; NumPy leaves the others undefined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ...core.dtypes import DType, complex64, float16, float32, int8, uint8
from ...core.dtypes import bool as bool_
from ..kernels.expression import DTYPES
from ..loops.buffers import Buffer
from ..loops.expressions import Expr, apply, arg, const, convert
from ..loops.ops import Bitcast, Map
from .context import LoweringContext, NoLowering, RuleOperand
from .elementwise import as_type, map_elements, mapped, plain
from .registry import CATALOGUE, Rule, rule
from .spectral import join, pairs, part


class Widened(LoweringContext):
    """The context of a node with float16 operands and outputs converted to float32, by maps that fusion merges into the
    kernels that read or write them."""

    __slots__ = ("_inputs", "_outputs")

    def __init__(self, ctx: LoweringContext) -> None:
        super().__init__(ctx.node, ctx.buffers)
        self.ops = ctx.ops
        self._inputs: dict[int, RuleOperand] = {}
        self._outputs: dict[int, tuple[RuleOperand, RuleOperand]] = {}

    def optional(self, index: int) -> RuleOperand | None:
        narrow = super().optional(index)
        if narrow is None or narrow.dtype is not float16:
            return narrow
        widened = self._inputs.get(index)
        if widened is None:
            buffer = Buffer(f"{self.node.prefix}.{narrow.buffer.name}.wide", float32, narrow.shape)
            self.add(Map, buffer, (narrow.buffer,), convert(arg(0, float16), float32))
            widened = self._inputs[index] = narrow.with_buffer(buffer)
        return widened

    def output(self, shape: Sequence[int] | None = None, index: int = 0) -> RuleOperand:
        narrow = super().output(shape, index)
        if narrow.dtype is not float16:
            return narrow
        if index not in self._outputs:
            wide = Buffer(f"{narrow.buffer.name}.wide", float32, narrow.shape)
            self._outputs[index] = narrow, narrow.with_buffer(wide)
        return self._outputs[index][1]

    def close(self) -> None:
        """Round the outputs that the rule's operations have written."""
        for narrow, wide in self._outputs.values():
            self.add(Map, narrow.buffer, (wide.buffer,), convert(arg(0, float32), float16))


def in_float32(rule: Rule) -> Rule:
    """Decorate a rule of float32 so that it also lowers float16."""

    @functools.wraps(rule)
    def widened(ctx: LoweringContext) -> None:
        values = (*ctx.node.inputs[:1], *ctx.node.outputs) if ctx.node.dialect != CATALOGUE else ()
        if all(value is None or ctx.buffers.of(value).dtype is not float16 for value in values):
            rule(ctx)
            return
        wide = Widened(ctx)
        rule(wide)
        wide.close()

    return widened


BITS = {"int4": 4, "uint4": 4, "int2": 2}
"""Bits of the types below a byte, by name: two of them exist in files only."""


def check_whole_bytes(x: RuleOperand) -> None:
    """Raise NoLowering for elements below a byte."""
    if x.dtype.name in BITS:
        raise NoLowering(f"elements of type {x.dtype.name}")


def as_bytes(ctx: LoweringContext, x: RuleOperand) -> RuleOperand:
    """Return an operand with elements below a byte as int8 or uint8; others unchanged."""
    bits = BITS.get(x.dtype.name)
    if bits is None:
        return x
    dtype = uint8 if x.dtype.is_unsigned else int8
    if x.is_constant:
        elements = np.asarray(x.constant).astype(dtype.np)
        return x.with_buffer(Buffer(f"{x.buffer.name}.bytes", dtype, x.shape, elements))
    raw, spare = arg(0, dtype), const(8 - bits, dtype)
    value = apply("shift_right", apply("shift_left", raw, spare), spare)
    if dtype is uint8:
        value = apply("bitwise_and", raw, const((1 << bits) - 1, dtype))
    unpacked = ctx.new(dtype, x.shape, f".{x.buffer.name}.bytes")
    ctx.add(Map, unpacked, (ctx.bits(x.buffer, dtype, x.shape),), value)
    return x.with_buffer(unpacked)


def to_bytes(ctx: LoweringContext, y: RuleOperand) -> tuple[RuleOperand, Callable[[], None]]:
    """Return an output as bytes for an operation to write, and a function to call afterwards. Written values must be
    within the type."""
    if y.dtype.name not in BITS:
        return y, lambda: None
    unpacked = ctx.new(uint8 if y.dtype.is_unsigned else int8, y.shape, ".bytes")

    def close() -> None:
        ctx.add(Bitcast, y.buffer, unpacked)

    return y.with_buffer(unpacked), close


def _catalogue_cast(x: Expr, dtype: DType) -> Expr:
    if dtype is bool_ and x.dtype is not bool_:
        return apply("not_equal", x, const(0, x.dtype), dtype=bool_)
    return convert(x, dtype)


@rule("Cast", "CAST")
def cast(ctx: LoweringContext) -> None:
    """Lower a conversion of elements; in files, complex numbers are converted by their real parts."""
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if ctx.node.dialect == CATALOGUE:
        map_elements(ctx, y.buffer, [x.buffer], lambda e: _catalogue_cast(e, y.dtype))
        return
    if x.dtype is complex64 and y.dtype in DTYPES:
        ctx.add(Map, y.buffer, (part(ctx, pairs(ctx, x), 0),), as_type(arg(0, float32), y.dtype))
        return
    plain(ctx, x := as_bytes(ctx, x))
    if y.dtype is complex64:
        real, imaginary = ctx.new(float32, x.shape, ".real"), ctx.new(float32, x.shape, ".imaginary")
        ctx.add(Map, real, (x.buffer,), as_type(arg(0, x.dtype), float32))
        ctx.add(Map, imaginary, (x.buffer,), const(0.0, float32))
        join(ctx, y, real, imaginary)
        return
    limits = [int(limit) for limit in y.dtype.limits] if y.dtype.name in BITS else []
    y, close = to_bytes(ctx, y)
    if y.dtype not in DTYPES:
        raise NoLowering(f"elements of type {y.dtype.name}")
    value = as_type(arg(0, x.dtype), y.dtype)
    if limits and not x.dtype.is_floating:
        raise NoLowering(f"{x.dtype.name} truncated to {ctx.output().dtype.name}")
    for op, limit in zip(("maximum", "minimum"), limits):
        value = apply(op, value, const(limit, y.dtype))
    mapped(ctx, y, value, x)
    close()
