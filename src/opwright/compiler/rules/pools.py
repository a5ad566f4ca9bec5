"""Pools and resized images: AvgPool, MaxPool, ResizeBilinear, ResizeNearestNeighbor.

Lives here: these rules.  Not here: windows (contractions.py).
"""

from __future__ import annotations

from ...core.dtypes import float32
from ..loops.expressions import apply, arg
from ..loops.forms import Pool, Resize
from . import rule
from .contractions import window_of
from .nodes import At, Refused


@rule("AvgPool", "MaxPool")
def pool(at: At) -> None:
    x = at.operand(0)
    ksize = [int(k) for k in at.attr("ksize")]
    if len(x.shape) != 4 or len(ksize) != 4 or ksize[0] != 1 or ksize[3] != 1 or x.dtype is not float32:
        raise Refused(f"a pool of {ksize} over {x}")
    window, sizes = window_of(at, x.shape, (ksize[1], ksize[2]))
    y = at.output(shape=(x.shape[0], *sizes, x.shape[3]))
    total = arg(0, float32)
    if at.node.op.name == "MaxPool":
        at.form(Pool, y, x, "max", total, window)
    else:
        at.form(Pool, y, x, "sum", apply("div", total, arg(1, float32)), window)


@rule("ResizeBilinear", "ResizeNearestNeighbor")
def resize(at: At) -> None:
    x, y = at.operand(0), at.output()
    if x.dtype is not float32 or y.dtype is not float32 or len(x.shape) != 4:
        raise Refused(f"{x} resized")
    kind = "bilinear" if at.node.op.name == "ResizeBilinear" else "nearest"
    at.form(Resize, y, x, kind, bool(at.attr("align_corners")), bool(at.attr("half_pixel_centers")), arg(0, float32))
