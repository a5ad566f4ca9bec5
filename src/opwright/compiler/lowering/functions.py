"""Element-wise functions: those of the scalar table, activations, and users' kernels.

Lives here: the rules of functions of the scalar table, sums of several operands, guarded integer divisions, RELU and
its bounded variants, GELU, LEAKY_RELU, PRELU; of users' operators with a kernel (`@ow.kernel` in their class); of
STABLEHLO_COMPOSITE, functions that files define.
Not here: the functions and their operators (scalar/table.py); binary arithmetic and comparison (arithmetic.py), casts
(type_conversion.py); operands as expressions (operand_expressions.py); steps of array kernels
(../kernels/user_kernels.py), scalar kernels as operations of expressions (../inlined_kernels.py).

A user's scalar kernel is called by a map, also of quantized integers; an array kernel is a step; an operator of the
catalogue that a file names, such as Atan, is a map of its function. Quantized operands are dequantized in the
expression and results requantized, as for builtin operators; a function of one tensor of bytes becomes a table
(fusion). If the class has a method `quantized`, a node of one tensor is a table of its results.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from ...core.dtypes import DType, float16, float32, float64, int8, int16, uint8
from ...core.dtypes import bool as bool_
from ...core.errors import OpError
from ...graph import Value
from ...graph.ir import flat
from ...scalar.formulas import CLAMPS, GELU_CUBIC, GELU_SLOPE
from ...scalar.table import ACTIVATIONS, BITS, OF_BUILTIN, OF_OPERATOR, chosen
from ..inlined_kernels import InlinedKernel, call, own_kernel
from ..kernel import COMPILED, Kernel
from ..loops.domain_ops import SpecialFunction
from ..loops.expressions import Expr, apply, arg, const, convert, scalar
from ..loops.ops import Checked, View
from .context import Buffers, LoweringContext, NoLowering, RuleOperand
from .operand_expressions import (
    NARROW,
    alike,
    broadcast,
    clamped,
    every_integer,
    in_steps,
    look_up,
    map_elements,
    mapped,
    plain,
    power,
    real,
    real_number,
    steps,
    steps_per,
    stored,
    tabulated,
    truth,
    unary,
    uniform,
)
from .registry import LITE, USER, lower, rule

GUARDED = ("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod")
"""Operators whose integer divisors are guarded."""
BOUNDS = ("Maximum", "Minimum", "ClipByValue")
"""Operators whose expressions depend on which operands are numbers (arithmetic.py)."""
SAME = tuple(name for name in OF_OPERATOR if name not in (*GUARDED, *BOUNDS))


def applied(name: str, attribute: Callable[[str], Any], *xs: Expr) -> Expr | None:
    """Return an operator of SAME as an expression, or None for unsupported dtypes. attribute: returns attributes by
    name."""
    row, dtype = chosen(OF_OPERATOR[name], attribute), xs[-1].dtype
    if not row.takes(dtype) or (name == "Pow" and not dtype.is_floating):  # negative integer exponents are an error
        return None
    if name == "Pow":
        return power(*xs)
    numbers = [const(float(attribute(key)), dtype) for key in row.attributes]
    return apply(row.name, *xs, *numbers, dtype=bool_ if row.is_test else dtype)


BUILTINS = tuple(
    name
    for name, row in OF_BUILTIN.items()
    if name in ("LOGISTIC", "HARD_SWISH", "ELU") or (row not in ACTIVATIONS and (row.arity == 1 or row in BITS))
)
"""Builtins that are functions of the scalar table, of real and quantized tensors."""


@rule(*(name for name in SAME if name != "Select"), *BUILTINS, custom=("Sign", "Atan2"))
def function(ctx: LoweringContext) -> None:
    """Lower a function of the scalar table; of quantized tensors, the table of the operator's integer rule.

    Shipped custom operators have the catalogue's names.
    """
    operands = ctx.operands
    y = ctx.output(broadcast(*operands))
    if ctx.node.quantized:
        tabulated(ctx, operands[0], y)
        return
    plain(ctx, *operands)

    def expr(*xs: Expr) -> Expr:
        if ctx.node.dialect == LITE:
            alike(*operands)
            return apply(OF_BUILTIN[ctx.operator].name, *xs)
        value = applied(ctx.operator, ctx.attr, *xs)
        if value is None:
            raise NoLowering(f"{ctx.operator} of {xs[-1].dtype.name}")
        return value

    map_elements(ctx, y.buffer, [o.buffer for o in operands], expr)


SPECIAL = {
    "Lgamma": "log_gamma",
    "Digamma": "digamma",
    "Polygamma": "trigamma",
    "Ndtri": "normal_quantile",
    "Erfinv": "inverse_erf",
    "BesselI0": "bessel_i0",
    "BesselI1": "bessel_i1",
    "BesselI0e": "bessel_i0e",
    "BesselI1e": "bessel_i1e",
    "BesselK0": "bessel_k0",
    "BesselK1": "bessel_k1",
    "BesselK0e": "bessel_k0e",
    "BesselK1e": "bessel_k1e",
}


@rule(*SPECIAL)
def special_function(ctx: LoweringContext) -> None:
    """Lower a function of one element; of derivatives of digamma the first, which is the gradient of its own."""
    x = ctx.operands[-1]
    y = ctx.output(x.shape)
    if not x.size:
        raise NoLowering("no elements")
    if ctx.operator == "Polygamma" and uniform(ctx.operand(0).buffer) != 1:
        raise NoLowering("a derivative of digamma that is not the first")
    ctx.add(SpecialFunction, y.buffer, x.buffer, SPECIAL[ctx.operator])


@rule("ZEROS_LIKE")
def zeros_like(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    mapped(ctx, y, const(0, plain(ctx, x)))


@rule(*GUARDED)
def whole_division(ctx: LoweringContext) -> None:
    """Lower an integer division, whose divisors are guarded against 0."""
    x, y = [o.buffer for o in ctx.operands]
    if x.dtype is float64:
        raise NoLowering("a remainder of float64")
    if not x.dtype.is_floating and y.constant is not None and not y.constant.all():
        raise NoLowering("a divisor is 0")
    if not x.dtype.is_floating and y.constant is None:
        divisors = ctx.new(y.dtype, y.shape)
        ctx.add(Checked, divisors, y)
        y = divisors
    map_elements(ctx, ctx.output().buffer, [x, y], lambda a, b: apply(OF_OPERATOR[ctx.operator].name, a, b))


MAX_OPERANDS = 32
"""Maximum number of operands of one kernel."""


@rule("AddN", "ADD_N")
def add_n(ctx: LoweringContext) -> None:
    operands = ctx.operands
    several = any(o.shape != operands[0].shape for o in operands)
    if not 0 < len(operands) <= MAX_OPERANDS or ctx.node.quantized or several:
        raise NoLowering("operands of several shapes, quantized operands, or too many")
    alike(*operands)
    plain(ctx, *operands)
    y = ctx.output(operands[0].shape)
    map_elements(ctx, y.buffer, [o.buffer for o in operands], lambda *xs: reduce(partial(apply, "add"), xs))


@rule("BiasAdd")
def bias_add(ctx: LoweringContext) -> None:
    x, bias = [o.buffer for o in ctx.operands]
    spatial_rank: Any = 0 if ctx.attr("data_format").endswith("C") else len(x.shape) - 2
    spread = ctx.viewed(bias, (*bias.shape, *[1] * spatial_rank))
    map_elements(ctx, ctx.output().buffer, [x, spread], lambda a, b: apply("add", a, b))


@rule(*CLAMPS)
def clamp(ctx: LoweringContext) -> None:
    unary(ctx, lambda x: clamped(x, ctx.operator))


@rule("GELU")
def gelu(ctx: LoweringContext) -> None:
    if ctx.operand(0).dtype is float16:
        unary(ctx, _gelu_by_steps if ctx.attr("approximate") else _gelu_by_complement)
        return
    unary(ctx, lambda x: apply("gelu_tanh" if ctx.attr("approximate") else "gelu", x))


def _gelu_by_steps(x: Expr) -> Expr:
    """Return x (1 + tanh(a (x + b x^3))) / 2 with each step rounded to float16."""
    slope, cubic, half, one = (const(float(np.float16(n)), float16) for n in (GELU_SLOPE, GELU_CUBIC, 0.5, 1.0))
    cube = apply("mul", apply("mul", x, x), x)
    inner = apply("mul", slope, apply("add", x, apply("mul", cubic, cube)))
    return apply("mul", apply("mul", half, x), apply("add", one, apply("tanh", inner)))


def _gelu_by_complement(x: Expr) -> Expr:
    """Return x erfc(-x / sqrt 2) / 2 with each step rounded to float16."""
    slope, half = const(float(np.float16(-math.sqrt(0.5))), float16), const(0.5, float16)
    return apply("mul", apply("mul", half, x), apply("erfc", apply("mul", x, slope)))


@rule("LEAKY_RELU")
def leaky_relu(ctx: LoweringContext) -> None:
    unary(ctx, lambda x: _leaky(x, convert(scalar(float(ctx.attr("alpha")), float32), x.dtype)))


def _leaky(x: Expr, alpha: Expr) -> Expr:
    return apply("select", truth("greater", x, const(0.0, x.dtype)), x, apply("mul", x, alpha), dtype=x.dtype)


@rule("PRELU")
def prelu(ctx: LoweringContext) -> None:
    """Lower PRELU: x, below 0 alpha x; of integers x s_x / s_y and x alpha s_x s_alpha / s_y in steps of the output."""
    x, alpha = ctx.operand(0), ctx.operand(1)
    y = ctx.output(broadcast(x, alpha))
    if y.shape != x.shape:
        raise NoLowering("alpha is larger than x")
    if not ctx.node.quantized:
        alike(x, alpha)
        dtype = plain(ctx, x, alpha)
        a, b = arg(0, dtype), arg(1, dtype)
        below = truth("less", a, const(0.0, dtype))
        mapped(ctx, y, apply("select", below, apply("mul", a, b), a, dtype=dtype), x, alpha)
        return
    if (x.dtype, alpha.dtype, y.dtype) not in ((int8,) * 3, (uint8,) * 3, (int16, int8, int16)):
        raise NoLowering(f"{x.dtype.name} and {alpha.dtype.name} to {y.dtype.name}")
    factor = steps_per(x.scale, y)
    value = steps(x, 0)
    if alpha.size == 1 and alpha.constant is not None:
        below = apply("mul", value, scalar(factor * real_number(alpha), value.dtype))
    else:
        below = apply("mul", apply("mul", value, steps(alpha, 1)), scalar(factor * alpha.scale, value.dtype))
    above = apply("mul", value, scalar(factor, value.dtype))
    negative = truth("less", value, const(0.0, value.dtype))
    mapped(ctx, y, in_steps(apply("select", negative, below, above, dtype=value.dtype), y), x, alpha)


@rule(USER)
def user_operator(ctx: LoweringContext) -> None:
    """Lower a user's operator. Raises NoLowering for operators that compute in Python, and for unsupported operands."""
    op = ctx.node.node.op
    kernel = own_kernel(op)
    registered = any(key.place == "cpu" for key in op.kernels)  # a registered kernel takes precedence
    is_function = op.catalogue and not registered and op.name in SAME
    if kernel is None and not is_function:
        raise NoLowering("it computes in Python")
    ctx.node.check_results()
    outputs = [ctx.output(index=i) for i in range(len(ctx.node.outputs))]
    arguments: list[RuleOperand | None]
    if isinstance(kernel, Kernel):  # its parameters may be optional
        arguments = [ctx.optional(i) for i in range(len(ctx.node.inputs))]
    else:
        arguments = [ctx.buffers.of(v) for v in flat(ctx.node.inputs) if v is not None]
    if is_function:
        _catalogue_function(ctx, [o for o in arguments if o is not None], *outputs)
    elif not ctx.node.quantized:
        lower_kernel(ctx, kernel, ctx.node.call, arguments, outputs)
    elif isinstance(kernel, Kernel):
        _on_reals(ctx, kernel, arguments, outputs)
    else:
        raise NoLowering("its kernel on arrays computes on reals")


def _on_reals(
    ctx: LoweringContext, kernel: Kernel, arguments: Sequence[RuleOperand | None], outputs: Sequence[RuleOperand]
) -> None:
    """Add a map of quantized integers, or the table of the class's own rule."""
    check_parameters(kernel, arguments, outputs)
    operands, (y,) = [o for o in arguments if o is not None], outputs
    if ctx.node.node.op.quantized_rule != "reals":
        _tabulated(ctx, operands, y)
        return
    function = inlined_kernel(kernel, ctx.node.call, [None if o is None else float32 for o in arguments])
    value = call(function, *(real(o, i) for i, o in enumerate(operands)))
    mapped(ctx, y, stored(value, y) if y.is_quantized else value, *operands)


def _catalogue_function(ctx: LoweringContext, operands: Sequence[RuleOperand], y: RuleOperand) -> None:
    """Add a map of a function of the scalar table, in dtypes in which it equals the operator."""
    if ctx.node.quantized or any(o.dtype.np not in COMPILED for o in (*operands, y)):
        raise NoLowering(f"its function is not for {', '.join(o.dtype.name for o in operands)}")
    if broadcast(*operands) != y.shape:
        raise NoLowering("the result's shape differs from the operands' broadcast shape")
    value = applied(ctx.node.node.op.name, ctx.attr, *(arg(i, o.dtype) for i, o in enumerate(operands)))
    if value is None:
        raise NoLowering(f"it is another function of {y.dtype.name}")
    mapped(ctx, y, value, *operands)


def _tabulated(ctx: LoweringContext, operands: Sequence[RuleOperand], y: RuleOperand) -> None:
    """Add the table of the results of the class's own rule by integer."""
    if len(operands) != 1 or operands[0].dtype not in NARROW or y.shape != operands[0].shape:
        raise NoLowering("its class defines its own quantized rule")
    (x,) = operands
    kernel = ctx.node.integer_kernel()
    integers = every_integer(x.dtype)
    results = np.empty(integers.shape, y.dtype.np)
    try:
        with np.errstate(all="ignore"):
            kernel([integers], [results])
    except OpError as error:
        raise NoLowering(error.message) from None
    results.flags.writeable = False
    look_up(ctx, x.buffer, y, results)


def lower_kernel(
    ctx: LoweringContext,
    kernel: Any,
    attributes: Any,
    arguments: Sequence[RuleOperand | None],
    outputs: Sequence[RuleOperand],
) -> None:
    """Add the operation of a kernel. arguments: by parameter, None if omitted. Raises NoLowering for unsupported
    operands."""
    operands = [o for o in arguments if o is not None]
    if not isinstance(kernel, Kernel):
        from ..kernels.user_kernels import add_user_kernel

        add_user_kernel(ctx, kernel, attributes, [o.buffer for o in operands], [o.buffer for o in outputs])
        return
    check_parameters(kernel, arguments, outputs)
    function = inlined_kernel(kernel, attributes, [None if o is None else o.dtype for o in arguments])
    map_elements(ctx, outputs[0].buffer, [o.buffer for o in operands], lambda *xs: call(function, *xs))


def check_parameters(kernel: Kernel, arguments: Sequence[RuleOperand | None], outputs: Sequence[RuleOperand]) -> None:
    """Raise NoLowering for operands, results and shapes that a scalar kernel does not support."""
    operands = [o for o in arguments if o is not None]
    if len(arguments) != len(kernel.inputs) or not operands or len(outputs) != 1:
        raise NoLowering(f"its kernel takes {', '.join(kernel.inputs) or 'nothing'} and returns one result")
    if broadcast(*operands) != outputs[0].shape:
        raise NoLowering("the result's shape differs from the operands' broadcast shape")


def inlined_kernel(kernel: Kernel, attributes: Any, dtypes: Sequence[DType | None]) -> InlinedKernel:
    """Return a scalar kernel for these types. Raises NoLowering if it cannot be staged, and for unsupported types."""
    try:
        function = kernel.scalar_function(attributes, list(dtypes))
    except Exception as error:  # the user's Python may raise anything; running it raises the error
        raise NoLowering(f"its kernel cannot be staged: {error}".splitlines()[0]) from None
    if function is None:
        raise NoLowering(f"its kernel is not for {', '.join('none' if d is None else d.name for d in dtypes)}")
    return function


@rule("STABLEHLO_COMPOSITE")
def composite(ctx: LoweringContext) -> None:
    """Lower a composite as the custom operator of its name, if there is a rule for it, and otherwise by lowering the
    nodes of its decomposition in its place."""
    with contextlib.suppress(NoLowering):
        ctx.ops += lower(LoweringContext(ctx.node.named_composite(), ctx.buffers))
        return
    graph, operand_of, nodes = ctx.node.decomposed()
    inside = Buffers(operand_of)
    for value, operand in zip(graph.inputs, ctx.operands, strict=True):
        declared = operand_of(value)
        if (declared.shape, declared.dtype) != (operand.shape, operand.dtype):
            raise NoLowering(f"{operand} for {declared} of its decomposition")
        inside.bind(value, operand)
    computed = {value for node in nodes for value in node.node.outputs}
    copies: list[tuple[RuleOperand, Value]] = []
    for index, value in enumerate(graph.outputs):
        y = ctx.output(operand_of(value).shape, index)
        if value in computed:
            computed.remove(value)
            inside.bind(value, y)
        else:  # an input, a constant, or an output before
            copies.append((y, value))
    for node in nodes:
        ctx.ops += lower(LoweringContext(node, inside))
    for y, value in copies:
        ctx.add(View, y.buffer, inside.of(value).buffer)
