"""Users' operators with a kernel (`@ow.kernel` in their class): one on scalars is a map that calls it, one on arrays a
step of its own.

Lives here: the rule of the catalogue's graphs, and what it shares with that of files (lite/compiled/rules/written.py).
Not here: kernels on scalars as operations of expressions (../inlined_kernels.py), steps (../kernels/user_kernels.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.dtypes import DType
from ..inlined_kernels import InlinedKernel, call, own_kernel
from ..kernel import Kernel
from .context import LoweringContext, NoLowering, Operand
from .elementwise import broadcast, map_elements
from .registry import CATALOGUE, rule


@rule(CATALOGUE)
def user_operator(ctx: LoweringContext) -> None:
    """Raise NoLowering for operators without a kernel."""
    kernel, count = own_kernel(ctx.node.node.op), len(ctx.node.outputs)
    if kernel is None:
        raise NoLowering("it computes in Python")
    given = [ctx.optional(i) for i in range(len(ctx.node.inputs))]
    lower_kernel(ctx, kernel, ctx.node.call, given, [ctx.output(place=i) for i in range(count)])


def lower_kernel(
    ctx: LoweringContext, kernel: Any, attributes: Any, given: Sequence[Operand | None], outputs: Sequence[Operand]
) -> None:
    """Add the form of a kernel. given: by parameter, None if left out. Raises NoLowering for what it does not take."""
    operands = [o for o in given if o is not None]
    if not isinstance(kernel, Kernel):
        from ..kernels.user_kernels import add_written

        add_written(ctx, kernel, attributes, [o.buffer for o in operands], [o.buffer for o in outputs])
        return
    check_parameters(kernel, given, outputs)
    function = inlined_kernel(kernel, attributes, [None if o is None else o.dtype for o in given])
    map_elements(ctx, outputs[0].buffer, [o.buffer for o in operands], lambda *xs: call(function, *xs))


def check_parameters(kernel: Kernel, given: Sequence[Operand | None], outputs: Sequence[Operand]) -> None:
    """Raise NoLowering for operands and results that a kernel on scalars does not have, and for other shapes."""
    operands = [o for o in given if o is not None]
    if len(given) != len(kernel.inputs) or not operands or len(outputs) != 1:
        raise NoLowering(f"its kernel takes {', '.join(kernel.inputs) or 'nothing'} and returns one result")
    if broadcast(*operands) != outputs[0].shape:
        raise NoLowering("the result has another shape than its operands together")


def inlined_kernel(kernel: Kernel, attributes: Any, dtypes: Sequence[DType | None]) -> InlinedKernel:
    """Return a kernel on scalars for these types. Raises NoLowering if it cannot be staged, and for other types."""
    try:
        function = kernel.scalar_function(attributes, list(dtypes))
    except Exception as error:  # the user's Python may raise anything; running it raises the error
        raise NoLowering(f"its kernel cannot be staged: {error}".splitlines()[0]) from None
    if function is None:
        raise NoLowering(f"its kernel is not for {', '.join('none' if d is None else d.name for d in dtypes)}")
    return function
