"""Users' operators with a kernel (`@ow.kernel` in their class): one on scalars is a map that calls it, one on arrays a
step of its own.

Lives here: their rule.
Not here: kernels on scalars as operations of expressions (../inlined_kernels.py), steps (../kernels/user_kernels.py).
"""

from __future__ import annotations

import numpy as np

from ..inlined_kernels import call, own_kernel
from ..kernel import Kernel
from .context import LoweringContext, NoLowering
from .elementwise import map_elements
from .registry import CATALOGUE, rule


@rule(CATALOGUE)
def written(ctx: LoweringContext) -> None:
    """The map of a node whose operator has a kernel. Raises NoLowering for what its kernel does not take."""
    op, node = ctx.node.node.op, ctx.node.node
    kernel = own_kernel(op)
    if kernel is None:
        raise NoLowering("it computes in Python")
    if not isinstance(kernel, Kernel):
        from ..kernels.user_kernels import add_written

        add_written(ctx, kernel, op.bind(dict(node.attrs)), [o.buffer for o in ctx.operands],
                    [ctx.output(place=i).buffer for i in range(len(node.outputs))])  # fmt: skip
        return
    given = [None if o is None else o.buffer for o in map(ctx.optional, range(len(node.inputs)))]
    operands = [b for b in given if b is not None]
    if len(given) != len(kernel.inputs) or not operands or len(node.outputs) != 1:
        raise NoLowering(f"its kernel takes {', '.join(kernel.inputs) or 'nothing'} and gives one result")
    try:
        function = kernel.scalar_function(op.bind(dict(node.attrs)), [None if b is None else b.dtype for b in given])
    except Exception as error:  # the user's Python may raise anything; the call itself says what is wrong
        raise NoLowering(f"its kernel cannot be staged: {error}".splitlines()[0]) from None
    if function is None:
        raise NoLowering(f"its kernel is not for {', '.join('none' if b is None else b.dtype.name for b in given)}")
    shape = np.broadcast_shapes(*(b.shape for b in operands))
    y = ctx.output(shape).buffer
    if y.dtype is not function.dtype:
        raise NoLowering(f"its kernel gives {function.dtype.name}, the operator {y.dtype.name}")
    map_elements(ctx, y, operands, lambda *xs: call(function, *xs))
