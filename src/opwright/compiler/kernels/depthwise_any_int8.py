"""Depthwise convolution of integers by any window: loops over its taps, each tested for what lies inside the image.

Lives here: the family `depthwise_any_int8`.
Not here: windows whose code is unrolled, and the maker (depthwise_int8.py).
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...core.dtypes import DType
from .. import language as kl
from ..language import f32, i32, i64, ptr, u8
from .depthwise_f32 import within


@kl.family
def depthwise_any_int8(
    work,
    x: ptr[u8],
    filter: ptr[u8],
    y: ptr[u8],
    height: i64,
    width: i64,
    in_pitch: i64,
    out_height: i64,
    out_width: i64,
    out_pitch: i64,
    channels: i64,
    top: i64,
    left: i64,
    high: i64,
    wide: i64,
    step_down: i64,
    step_across: i64,
    down: i64,
    across: i64,
    multiplier: i64,
    x_zero: i32,
    filter_zero: i32,
    zeros: ptr[i32],
    scales: ptr[f32],
    *more: i64,
    lanes: int,
    source: str,
    x_dtype: Any,
    filter_dtype: Any,
    rounded: bool,
    epilogue: Any,
):
    """Any window, as depthwise_any_f32; rounded, zeros, scales: as for depthwise_int8. Sums of int16 are int64."""
    finish = epilogue.bind(more)
    blocks = (channels + (lanes - 1)) // lanes
    image, taps = x.cast(x_dtype), filter.cast(filter_dtype)
    out, held = y.cast(epilogue.expr.dtype), i64 if x_dtype is dtypes.int16 else i32
    for item in work.items():
        c = kl.minimum((item % blocks) * lanes, channels - lanes)
        row = item // blocks
        n = row // out_height
        y0 = (row % out_height) * step_down - top
        if rounded:
            x_zero = zeros[n]
        for ox in range(out_width):
            x0 = ox * step_across - left
            total = kl.zeros(held, lanes)
            for i in range(high):
                iy = y0 + i * down
                if within(iy, height):
                    for j in range(wide):
                        ix = x0 + j * across
                        if within(ix, width):
                            p = image + ((n * height + iy) * width + ix) * in_pitch
                            if source == "same":
                                pixel = p.load(c, lanes).to(held)
                            elif source == "only":
                                pixel = p[0].to(held).splat(lanes)
                            else:
                                pixel = _spread(p, c, multiplier, lanes, held)
                            tap = taps.load((i * wide + j) * channels + c, lanes).to(held)
                            total = (pixel - x_zero.to(held)) * (tap - filter_zero.to(held)) + total
            at = row * out_width + ox
            found = total.to(f32) * scales[n] if rounded else total
            (out + at * out_pitch).store(finish(found, at, c, lanes), c)


def _spread(p: Any, c: Any, multiplier: Any, lanes: int, dtype: DType) -> Any:
    """p[(c + i) // multiplier] as this dtype for every lane i; bytes have no gather."""
    found = kl.zeros(dtype, lanes)
    for i in range(lanes):
        found = kl.insert(found, i, p[(c + i) // multiplier].to(dtype))
    return found
