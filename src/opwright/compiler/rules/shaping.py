"""Operators that change a shape and no element: each is a view.

Lives here: these rules.  Not here: the movement of elements (movement.py).
"""

from __future__ import annotations

from ..loops.forms import View
from ..lowering.context import LoweringContext, NoLowering
from ..lowering.registry import rule


@rule("Reshape", "ExpandDims", "Squeeze")
def view(ctx: LoweringContext) -> None:
    x, y = ctx.operand(0).buffer, ctx.output().buffer
    if x.size != y.size:
        raise NoLowering(f"{x} under the shape {list(y.shape)}")
    ctx.form(View, y, x)


@rule("EnsureShape")
def ensure_shape(ctx: LoweringContext) -> None:
    """The graph knows the shape: where it is another, the operator says so."""
    x = ctx.operand(0).buffer
    wanted = ctx.attr("shape")
    if not wanted.is_compatible_with(x.shape):
        raise NoLowering(f"{x} is not of the shape {wanted}")
    ctx.form(View, ctx.output(x.shape).buffer, x)
