"""Images of another size: ResizeBilinear, ResizeNearestNeighbor and their builtins.

Lives here: these rules.  Not here: where pixels lie (compiler/kernels/resize.py).
"""

from __future__ import annotations

from ...core.dtypes import float32, int8, uint8
from ..loops.expressions import Expr, arg, quantize
from ..loops.forms import Resize
from .context import LoweringContext, NoLowering, Operand
from .registry import CATALOGUE, rule


@rule("ResizeBilinear", "ResizeNearestNeighbor", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(ctx: LoweringContext) -> None:
    x, y = ctx.operand(0), ctx.output()
    sizes = tuple(y.shape[1:3]) if ctx.node.dialect == CATALOGUE else tuple(map(int, ctx.constant(1)))
    if len(x.shape) != 4 or len(sizes) != 2 or x.size == 0:
        raise NoLowering(f"a resize of {x} to {list(sizes)}")
    ctx.output((x.shape[0], *sizes, x.shape[3]))
    aligned, centered = bool(ctx.attr("align_corners")), bool(ctx.attr("half_pixel_centers"))
    if x.dtype is not y.dtype:
        raise NoLowering(f"a resize of {x} to {y}")
    if ctx.operator in ("ResizeNearestNeighbor", "RESIZE_NEAREST_NEIGHBOR"):
        ctx.form(Resize, y.buffer, x.buffer, "nearest", aligned, centered, arg(0, x.dtype))
    else:
        ctx.form(Resize, y.buffer, x.buffer, "bilinear", aligned, centered, _mean(x, y))


def _mean(x: Operand, y: Operand) -> Expr:
    if x.dtype is float32:
        return arg(0, float32)
    if x.dtype not in (int8, uint8) or x.scale != y.scale or x.zero != y.zero:
        raise NoLowering(f"a bilinear resize of {x} to {y}")
    return quantize(arg(0, float32), 0, y.dtype)
