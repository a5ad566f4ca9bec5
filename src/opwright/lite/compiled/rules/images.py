"""Images of another size: RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR.

Lives here: these rules.  Not here: where pixels lie (compiler/kernels/resize.py).
"""

from __future__ import annotations

from ....compiler.loops.expressions import Expr, arg, quantize
from ....compiler.loops.forms import Resize
from ....core.dtypes import float32, int8, uint8
from ..nodes import At, Operand, Refused
from .registry import rule


@rule("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(at: At) -> None:
    x, sizes = at.operand(0), tuple(map(int, at.constant(1)))
    if len(x.shape) != 4 or len(sizes) != 2 or x.size == 0:
        raise Refused(f"a resize of {x} to {list(sizes)}")
    y = at.output((x.shape[0], *sizes, x.shape[3]))
    aligned, centered = bool(at.option("align_corners")), bool(at.option("half_pixel_centers"))
    if x.dtype is not y.dtype:
        raise Refused(f"a resize of {x} to {y}")
    if at.node.name == "RESIZE_NEAREST_NEIGHBOR":
        at.form(Resize, y.buffer, x.buffer, "nearest", aligned, centered, arg(0, x.dtype))
    else:
        at.form(Resize, y.buffer, x.buffer, "bilinear", aligned, centered, _mean(x, y))


def _mean(x: Operand, y: Operand) -> Expr:
    if x.dtype is float32:
        return arg(0, float32)
    if x.dtype not in (int8, uint8) or x.scale != y.scale or x.zero != y.zero:
        raise Refused(f"a bilinear resize of {x} to {y}")
    return quantize(arg(0, float32), 0, y.dtype)
