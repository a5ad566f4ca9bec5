"""Element-wise rules in common: operands as expressions, look-up tables of quantized functions.

Lives here: `plain`, `mapped`, `map_elements`, `tabulated`, `unary`.
Not here: the rules (functions.py, arithmetic.py, type_conversion.py, quantization.py).

A function of one quantized tensor is a table of the results of the operator's integer rule for each of its 256 or 65536
integers, so the look-up is exact.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, bfloat16, float16, float32, int8, int16, uint8
from ...core.dtypes import bool as bool_
from ..kernels.expression import DTYPES
from ..loops.buffers import Buffer
from ..loops.expressions import Expr, arg, const, convert, lookup, scalar
from ..loops.ops import Checked, Map
from .context import LoweringContext, NoLowering, RuleOperand

UNIFORM = 1 << 16
"""Constants up to this size are checked for uniform elements."""

POSITIVE = ("SQRT", "RSQRT")
"""Operators whose integer rules reject integers below the zero point."""


def plain(ctx: LoweringContext, *operands: RuleOperand) -> DType:
    """Return the type of operands that are read unconverted. Raises NoLowering if the operator does not declare it."""
    for index, o in enumerate(operands):
        if not ctx.node.takes(index, o.dtype) or o.dtype not in DTYPES:
            raise NoLowering(f"elements of type {o.dtype.name}")
    return operands[-1].dtype


def alike(*operands: RuleOperand) -> None:
    """Raise NoLowering for operands of different types."""
    if len({o.dtype for o in operands}) > 1:
        raise NoLowering("types " + ", ".join(o.dtype.name for o in operands))


def broadcast(*operands: RuleOperand) -> tuple[int, ...]:
    """Return the broadcast shape of operands. Raises NoLowering if they do not broadcast."""
    try:
        return np.broadcast_shapes(*(o.shape for o in operands))
    except ValueError:
        raise NoLowering(f"{', '.join(map(repr, operands))} do not broadcast") from None


def mapped(ctx: LoweringContext, y: RuleOperand, expr: Expr, *operands: RuleOperand) -> None:
    """Add the map that writes y. Raises NoLowering if the file declares another type for y."""
    if y.dtype is not expr.dtype:
        raise NoLowering(f"the output is {y.dtype.name}, {expr.dtype.name} follows from the inputs")
    ctx.add(Map, y.buffer, tuple(o.buffer for o in operands), expr)


def map_elements(ctx: LoweringContext, y: Buffer, operands: Sequence[Buffer], function: Callable[..., Expr]) -> None:
    """Add a map of operands, with constants of one number as scalars. function: builds the expression.

    raises NoLowering if the output is declared with another type than the expression's
    """
    read = MapOperands()
    expr = function(*map(read.of, operands))
    if y.dtype is not expr.dtype:
        raise NoLowering(f"the output is {y.dtype.name}, {expr.dtype.name} follows from the inputs")
    ctx.add(Map, y, tuple(read.buffers), expr)


def uniform(buffer: Buffer) -> float | None:
    """Return the number that all elements of a constant equal; None if they differ or there is no constant."""
    constant = buffer.constant
    if constant is None or not 1 <= constant.size <= UNIFORM:
        return None
    flat = constant.reshape(-1)
    first = flat[0]
    if constant.size > 1 and not (flat == first).all():
        return None
    number: float = first.item()
    return number


class MapOperands:
    """The operands of a map under construction: numbers become scalars, buffers become args, each once."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []

    def of(self, buffer: Buffer) -> Expr:
        """Return the expression that reads a buffer."""
        number = uniform(buffer)
        if number is not None:
            is_word = buffer.dtype.size >= 4
            return (scalar if is_word else const)(number, buffer.dtype)
        if buffer not in self.buffers:
            self.buffers.append(buffer)
        return arg(self.buffers.index(buffer), buffer.dtype)


_tables: OrderedDict[Any, np.ndarray] = OrderedDict()
_CACHE_SIZE = 512  # tables of 256 entries, which models often share


def _parameters(o: RuleOperand) -> tuple[Any, ...]:
    return o.dtype, o.scales.tobytes() if o.is_quantized else b"", o.zero if o.is_quantized else 0


def tabulated(ctx: LoweringContext, x: RuleOperand, y: RuleOperand) -> None:
    """Lower a function of one quantized tensor to a look-up table.

    raises NoLowering for operands that the integer rule rejects; elements that it rejects at run time are guarded
    """
    if x.dtype not in (int8, uint8, int16) or y.dtype not in DTYPES:
        raise NoLowering(f"elements of type {x.dtype.name}")
    source, lower_bound = x.buffer, int(x.dtype.min)
    if ctx.operator in POSITIVE and x.zero != lower_bound:
        source, lower_bound = ctx.new(x.dtype, x.shape, ".checked"), x.zero
        ctx.add(Checked, source, x.buffer, "below", lower_bound)
    key = (ctx.operator, repr(ctx.node.call.attrs), _parameters(x), _parameters(y))
    entries = _tables.get(key)
    if entries is None:
        kernel = ctx.node.integer_kernel()
        integers = np.arange(1 << (8 * x.dtype.size), dtype=f"u{x.dtype.size}").view(x.dtype.np)
        entries = np.empty(integers.shape, y.dtype.np)
        with np.errstate(all="ignore"):
            kernel([np.maximum(integers, integers.dtype.type(lower_bound))], [entries])
        entries.flags.writeable = False
        if entries.size == 256:
            _tables[key] = entries
        if len(_tables) > _CACHE_SIZE:
            _tables.popitem(last=False)
    table = Buffer(f"{y.buffer.name}.table", y.dtype, entries.shape, entries)
    ctx.add(Map, y.buffer, (source, table), lookup(arg(0, x.dtype), arg(1, y.dtype)))


def unary(ctx: LoweringContext, expr_of: Any) -> None:
    """Lower y = expr_of(x); for quantized tensors, the table of the operator's integer rule."""
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if ctx.node.quantized:
        tabulated(ctx, x, y)
        return
    dtype = plain(ctx, x)
    mapped(ctx, y, expr_of(arg(0, dtype)), x)


def as_type(x: Expr, dtype: DType) -> Expr:
    """Convert to another type; NaN converts to the greatest integer."""
    converted = convert(x, dtype)
    if not x.dtype.is_floating or dtype.is_floating or dtype.is_bool:
        return converted
    wide = convert(x, float32) if x.dtype in (float16, bfloat16) else x
    is_number = Expr("equal", bool_, (wide, wide))
    return Expr("select", dtype, (is_number, converted, const(int(dtype.max), dtype)))


def truth(op: str, *args: Expr) -> Expr:
    """Return a comparison."""
    return Expr(op, bool_, args)


def every(operands: Sequence[RuleOperand]) -> list[Expr]:
    """Return the operands as args in order."""
    return [arg(i, o.dtype) for i, o in enumerate(operands)]
