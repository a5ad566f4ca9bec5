"""Users' operators with a kernel (`@ow.kernel` in their class): scalar kernels are maps that call them, also of
quantized integers; array kernels are steps. Operators of the catalogue that files name, such as Atan, are maps of their
function.

Lives here: their rule.
Not here: scalar kernels as operations of expressions (../inlined_kernels.py), steps (../kernels/user_kernels.py).

Quantized operands are dequantized in the expression and results requantized, as for builtin operators; a function of
one tensor of bytes becomes a table (fusion). If the class has a method `quantized`, a node of one tensor is a table of
its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, float32
from ...core.errors import OpError
from ...graph.ir import flat
from ..inlined_kernels import InlinedKernel, call, own_kernel
from ..kernel import COMPILED, Kernel
from ..loops.buffers import Buffer
from ..loops.expressions import arg, lookup
from ..loops.ops import Map
from .context import LoweringContext, NoLowering, RuleOperand
from .elementwise import broadcast, map_elements, mapped
from .functions import SAME, applied
from .registry import USER, rule
from .requantization import NARROW, real, stored


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
    outputs = [ctx.output(place=i) for i in range(len(ctx.node.outputs))]
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
    integers = np.arange(1 << (8 * x.dtype.size), dtype=f"u{x.dtype.size}").view(x.dtype.np)
    results = np.empty(integers.shape, y.dtype.np)
    try:
        with np.errstate(all="ignore"):
            kernel([integers], [results])
    except OpError as error:
        raise NoLowering(error.message) from None
    results.flags.writeable = False
    table = Buffer(f"{y.buffer.name}.table", y.dtype, results.shape, results)
    ctx.add(Map, y.buffer, (x.buffer, table), lookup(arg(0, x.dtype), arg(1, y.dtype)))


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
