"""Pools that say where the greatest was, and their inverse, as MediaPipe's models have them: MaxPoolingWithArgmax2D,
MaxUnpooling2D.

Lives here: their rules.  Not here: the operators (lite/customs/pooling.py), the builtin pools (pooling.py).
"""

from __future__ import annotations

from typing import Any

from ....compiler.loops.expressions import arg
from ....compiler.loops.forms import Buffer, Window
from ....compiler.loops.place_forms import MaxPlaces, PutInWindows
from ....core.dtypes import float32
from ...customs.pooling import PLACE_OFFSET, image_size, margins, padding_of
from ..nodes import At, Refused, clamped
from . import rule
from .contractions import window_of
from .elementwise import registered


@rule("MaxPoolingWithArgmax2D")
def pool_with_places(at: At) -> None:
    x = at.operand(0)
    call: Any = registered(at)._call(at.node)
    if x.dtype is not float32 or len(x.shape) != 4 or not x.size:
        raise Refused(f"windows of {x}")
    window, sizes = window_of(padding_of(call), x.shape[1:3], (call.filter_height, call.filter_width),
                              (call.stride_h, call.stride_w))  # fmt: skip
    shape = (x.shape[0], *sizes, x.shape[3])
    outputs = [at.output(shape, k) for k in range(2)]
    if any(o.dtype is not float32 for o in outputs):
        raise Refused("results of other types")
    expr = clamped(arg(0, float32), call.fused_activation_function)

    def make(whole: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        at.form(MaxPlaces, whole, x.buffer, results, expr, window, PLACE_OFFSET)

    at.with_results(make, *(o.buffer for o in outputs))


@rule("MaxUnpooling2D")
def unpool(at: At) -> None:
    x, places = at.operand(0), at.operand(1)
    call: Any = registered(at)._call(at.node)
    if any(o.dtype is not float32 for o in (x, places)) or len(x.shape) != 4 or places.shape != x.shape or not x.size:
        raise Refused(f"elements {x} at {places}")
    sizes = image_size(call, x.shape, True)
    y = at.output((x.shape[0], *sizes, x.shape[3]))
    kernel, strides = (call.filter_height, call.filter_width), (call.stride_h, call.stride_w)
    top, left = margins(x.shape[1:3], sizes, kernel, strides)
    at.form(PutInWindows, y.buffer, x.buffer, places.buffer, Window(kernel, strides, (1, 1), (top, 0, left, 0)))
