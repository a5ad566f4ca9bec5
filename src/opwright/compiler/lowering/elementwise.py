"""What the rules of element-wise operators share: operands as expressions, tables of quantised functions.

Lives here: `plain`, `mapped`, `map_elements`, `tabulated`, `unary`.
Not here: the rules (functions.py, arithmetic.py, arithmetic.py, functions.py, type_conversion.py, quantization.py).

A function of one quantised tensor is a table of the results of the operator's own integer rule for each of its 256 or
65536 integers. So it is exact, and a look-up.
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
"""Elements up to which a constant is checked for being one number."""

POSITIVE = ("SQRT", "RSQRT")
"""Whose integer rules refuse integers below the zero point."""


def plain(ctx: LoweringContext, *operands: RuleOperand) -> DType:
    """Return the type of operands that are read as they are. Raises NoLowering if the operator does not declare it."""
    for place, o in enumerate(operands):
        if not ctx.node.takes(place, o.dtype) or o.dtype not in DTYPES:
            raise NoLowering(f"elements of type {o.dtype.name}")
    return operands[-1].dtype


def alike(*operands: RuleOperand) -> None:
    """Raise NoLowering for operands of several types."""
    if len({o.dtype for o in operands}) > 1:
        raise NoLowering("types " + ", ".join(o.dtype.name for o in operands))


def broadcast(*operands: RuleOperand) -> tuple[int, ...]:
    """The shape of all together. Raises NoLowering if they do not fit."""
    try:
        return np.broadcast_shapes(*(o.shape for o in operands))
    except ValueError:
        raise NoLowering(f"{', '.join(map(repr, operands))} do not broadcast") from None


def mapped(ctx: LoweringContext, y: RuleOperand, expr: Expr, *operands: RuleOperand) -> None:
    """The map that writes y. Raises NoLowering if the file gives y another type."""
    if y.dtype is not expr.dtype:
        raise NoLowering(f"the output is {y.dtype.name}, {expr.dtype.name} follows from the inputs")
    ctx.add(Map, y.buffer, tuple(o.buffer for o in operands), expr)


def map_elements(ctx: LoweringContext, y: Buffer, operands: Sequence[Buffer], function: Callable[..., Expr]) -> None:
    """Add the map of these operands; constants of one number become scalars. function: of their expressions.

    raises NoLowering if the output is declared of another type than the expression
    """
    read = MapOperands()
    expr = function(*map(read.of, operands))
    if y.dtype is not expr.dtype:
        raise NoLowering(f"the output is {y.dtype.name}, {expr.dtype.name} follows from the inputs")
    ctx.add(Map, y, tuple(read.buffers), expr)


def uniform(buffer: Buffer) -> Any:
    """Return the number that every element of a constant is; None for several, and for no constant."""
    constant = buffer.constant
    if constant is None or not 1 <= constant.size <= UNIFORM:
        return None
    flat = constant.reshape(-1)
    first = flat[0]
    if constant.size > 1 and not (flat == first).all():
        return None
    return first.item()


class MapOperands:
    """The operands of a map while its expression is built: numbers become scalars, buffers args, each once."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []

    def of(self, buffer: Buffer) -> Expr:
        """Return a buffer as part of the expression."""
        number = uniform(buffer)
        if number is not None:
            wide = buffer.dtype.size >= 4
            return (scalar if wide else const)(number, buffer.dtype)
        if buffer not in self.buffers:
            self.buffers.append(buffer)
        return arg(self.buffers.index(buffer), buffer.dtype)


# ---- tables --------------------------------------------------------------------------------------------------------

_tables: OrderedDict[Any, np.ndarray] = OrderedDict()
_KEPT = 512  # tables of bytes that models have in common, or one model after the other


def _parameters(o: RuleOperand) -> tuple[Any, ...]:
    return o.dtype, o.scales.tobytes() if o.is_quantized else b"", o.zero if o.is_quantized else 0


def tabulated(ctx: LoweringContext, x: RuleOperand, y: RuleOperand) -> None:
    """A function of one quantised tensor. Raises NoLowering for what its integer rule refuses; what that refuses as it
    runs is a guard."""
    if x.dtype not in (int8, uint8, int16) or y.dtype not in DTYPES:
        raise NoLowering(f"elements of type {x.dtype.name}")
    source, least = x.buffer, int(x.dtype.min)
    if ctx.operator in POSITIVE and x.zero != least:
        source, least = ctx.new(x.dtype, x.shape, ".checked"), x.zero
        ctx.add(Checked, source, x.buffer, "below", least)
    key = (ctx.operator, repr(ctx.node.call.attrs), _parameters(x), _parameters(y))
    found = _tables.get(key)
    if found is None:
        kernel = ctx.node.integer_kernel()
        every = np.arange(1 << (8 * x.dtype.size), dtype=f"u{x.dtype.size}").view(x.dtype.np)
        found = np.empty(every.shape, y.dtype.np)
        with np.errstate(all="ignore"):
            kernel([np.maximum(every, every.dtype.type(least))], [found])
        found.flags.writeable = False
        if found.size == 256:
            _tables[key] = found
        if len(_tables) > _KEPT:
            _tables.popitem(last=False)
    table = Buffer(f"{y.buffer.name}.table", y.dtype, found.shape, found)
    ctx.add(Map, y.buffer, (source, table), lookup(arg(0, x.dtype), arg(1, y.dtype)))


# ---- operators of one tensor ---------------------------------------------------------------------------------------


def unary(ctx: LoweringContext, expr_of: Any) -> None:
    """y = expr_of(x), of quantised tensors by the operator's integer rule."""
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if ctx.node.quantized:
        tabulated(ctx, x, y)
        return
    dtype = plain(ctx, x)
    mapped(ctx, y, expr_of(arg(0, dtype)), x)


def as_type(x: Expr, dtype: DType) -> Expr:
    """x as another type; NaN as an integer is the greatest."""
    found = convert(x, dtype)
    if not x.dtype.is_floating or dtype.is_floating or dtype.is_bool:
        return found
    wide = convert(x, float32) if x.dtype in (float16, bfloat16) else x
    known = Expr("equal", bool_, (wide, wide))
    return Expr("select", dtype, (known, found, const(int(dtype.max), dtype)))


def truth(op: str, *args: Expr) -> Expr:
    """A comparison."""
    return Expr(op, bool_, args)


def every(operands: Sequence[RuleOperand]) -> list[Expr]:
    """The operands as arguments in their order."""
    return [arg(i, o.dtype) for i, o in enumerate(operands)]
