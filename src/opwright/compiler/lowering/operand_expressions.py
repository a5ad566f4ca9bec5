"""Operands and results of element-wise rules as expressions, also of quantized values.

Lives here: `plain`, `mapped`, `map_elements`, `unary`; `tabulated`, look-up tables of quantized functions; `real`,
`steps`, `stored`, `in_steps`, `clamped`: dequantization to real numbers or steps of a scale, and requantization.
Not here: the rules (functions.py, arithmetic.py, type_conversion.py), operands and their scales (context.py).

A function of one quantized tensor is a table of the results of the operator's integer rule for each of its 256 or 65536
integers, so the look-up is exact.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...core.dtypes import DType, bfloat16, float16, float32, int8, int16, uint8
from ...core.dtypes import bool as bool_
from ...scalar.formulas import CLAMPS
from ..kernels.expression import DTYPES
from ..loops.buffers import Buffer
from ..loops.expressions import Expr, apply, arg, const, convert, lookup, quantize, scalar
from ..loops.ops import Checked, Map
from .context import LoweringContext, NoLowering, RuleOperand

Scale = TypeVar("Scale", float, np.ndarray)

NARROW = (int8, uint8, int16)
"""Integers that represent real numbers by a scale and zero point per tensor."""
MAX_STEPS = float(1 << 16)
"""Largest ratio of an input's scale to the output's: beyond, all but 0 saturates here, while the operator wraps."""


def same_numbers(x: RuleOperand, y: RuleOperand) -> None:
    """Raise NoLowering if the elements of two operands represent different numbers."""
    same = x.dtype is y.dtype and x.is_quantized == y.is_quantized
    if same and x.is_quantized:
        same = np.array_equal(x.scales, y.scales) and x.zero == y.zero
    if not same:
        raise NoLowering(f"{x.name!r} and {y.name!r} have other types or scales")


def real(operand: RuleOperand, index: int) -> Expr:
    """Return the real value of operand `index` of an operation, float32; a constant of one element is a scalar.

    raises NoLowering for other types
    """
    value = steps(operand, index)
    if operand.dtype is float32 or (operand.size == 1 and operand.constant is not None):
        return value
    return apply("mul", value, scalar(operand.scale, float32))


def steps_per(scale: Scale, output: RuleOperand, unit: float | None = None) -> Scale:
    """Return an input's scale in steps of the output, or of `unit`. scale: may be an array.

    raises NoLowering above MAX_STEPS
    """
    ratio = scale / (output.scale if unit is None else unit)
    if not np.all(ratio <= MAX_STEPS):
        raise NoLowering(f"the scale {np.max(scale):g} is {np.max(ratio):g} steps of {output.name!r}")
    return ratio


def steps(operand: RuleOperand, index: int) -> Expr:
    """Return the value of an operand in steps of its scale, float32 q - zero point; of a constant of one element, its
    real value."""
    if operand.size == 1 and operand.constant is not None:
        return scalar(float(real_number(operand)), float32)
    if operand.dtype is float32:
        return arg(index, float32)
    if operand.dtype not in NARROW or not operand.is_quantized:
        raise NoLowering(f"elements of type {operand.dtype.name}")
    return apply("sub", convert(arg(index, operand.dtype), float32), scalar(operand.zero, float32))


def real_number(operand: RuleOperand) -> float:
    """Return the real value of a constant of one element."""
    number = steps_of_constant(operand)
    return number if operand.dtype is float32 else number * operand.scale


def steps_of_constant(operand: RuleOperand) -> float:
    """Return the value of a constant of one element in steps of its scale; of float32 as it is."""
    assert operand.constant is not None
    value = float(operand.constant.reshape(-1)[0])
    return value if operand.dtype is float32 else value - operand.zero


def power(x: Expr, y: Expr) -> Expr:
    """Return x^y of floats. The square is a product, which is correctly rounded, as the C library's pow is there."""
    return apply("square", x) if y.op == "scalar" and y.value == 2 and x.op != "scalar" else apply("pow", x, y)


def stored(value: Expr, output: RuleOperand, activation: Any = 0) -> Expr:
    """Return real values, after an activation, in the output's representation. Raises NoLowering for other types."""
    if output.dtype is float32:
        return clamped(value, activation)
    if output.dtype not in NARROW or not output.is_quantized:
        raise NoLowering(f"elements of type {output.dtype.name}")
    return in_steps(apply("mul", value, scalar(1.0 / output.scale, float32)), output, activation)


def in_steps(value: Expr, output: RuleOperand, activation: Any = 0) -> Expr:
    """Round values in steps of the output's scale to integers, after an activation."""
    low, high = bounds(activation)
    type_min, type_max = (int(v) for v in output.dtype.limits)
    zero, scale = output.zero, output.unbounded_scale
    low_step = type_min if low is None else max(type_min, zero + round(low / scale))
    high_step = type_max if high is None else min(type_max, zero + round(high / scale))
    within = () if (low_step, high_step) == (type_min, type_max) else (low_step, high_step)
    return quantize(value, zero, output.dtype, *within)


def bounds(activation: Any) -> tuple[float | None, float | None]:
    """Return the bounds of a fused activation. Raises NoLowering for an activation that is not a clamp."""
    if activation in (0, "NONE"):
        return None, None
    if activation not in CLAMPS:
        raise NoLowering(f"the activation {activation}")
    low, high = CLAMPS[activation]
    return float(low), None if high is None else float(high)


def clamped(value: Expr, activation: Any) -> Expr:
    """Clamp a value to the bounds of an activation; NaN stays."""
    low, high = bounds(activation)
    if low is not None:
        value = apply("maximum", const(low, value.dtype), value)
    if high is not None:
        value = apply("minimum", const(high, value.dtype), value)
    return value


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


def every_integer(dtype: DType) -> np.ndarray:
    """Return all values of an integer dtype in the order of their bits, which is that of look-up tables."""
    integers: np.ndarray = np.arange(1 << (8 * dtype.size), dtype=f"u{dtype.size}").view(dtype.np)
    return integers


def look_up(ctx: LoweringContext, x: Buffer, y: RuleOperand, entries: np.ndarray) -> None:
    """Add the look-up of integers in a table of results, which is in the order of `every_integer`."""
    table = Buffer(f"{y.buffer.name}.table", y.dtype, entries.shape, entries)
    ctx.add(Map, y.buffer, (x, table), lookup(arg(0, x.dtype), arg(1, y.dtype)))


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
        integers = every_integer(x.dtype)
        entries = np.empty(integers.shape, y.dtype.np)
        with np.errstate(all="ignore"):
            kernel([np.maximum(integers, integers.dtype.type(lower_bound))], [entries])
        entries.flags.writeable = False
        if entries.size == 256:
            _tables[key] = entries
        if len(_tables) > _CACHE_SIZE:
            _tables.popitem(last=False)
    look_up(ctx, source, y, entries)


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
