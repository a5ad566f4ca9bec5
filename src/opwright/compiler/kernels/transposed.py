"""Transposed convolution: a matrix product for each tap of the window, whose results each output pixel adds up.

Lives here: the maker of TransposedContract, the family that adds up.
Not here: the products, which are contractions of their own (contractions_f32.py, contractions_int8.py).

With x [N, H, W, C] and taps t = (i, j) of a filter f [F, KH, KW, C],

    p[n, h, w, t, :] = sum_c x[n, h, w, c] f[:, t, c]
    y[n, y, x, :] = expr(sum of p[n, h, w, t, :] where y = h sh + i dh - top, x = w sw + j dw - left)

No product is done twice or for nothing; a pixel of y adds a few vectors, (KH / sh) (KW / sw) of them. Of one or two
pixels all taps are one product, which reads the filter in place: channel by channel, p[n, h, w, :, t].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.expressions import arg
from ..loops.forms import Buffer, Contract, TransposedContract, Window
from . import Unmade, make, maker
from .depthwise_f32 import vector_lanes
from .epilogue import epilogue_of
from .grains import grain

if TYPE_CHECKING:
    from ..language import Value
    from ..loops.planning import Builder

FEW = 2
"""Pixels of all images that products read the filter in place for."""


SUMS = {dtypes.float32: dtypes.float32, dtypes.int16: dtypes.int64}
"""The dtype of sums of products by the input's; of bytes int32."""


@kl.family
def add_taps(work, products: ptr[u8], y: ptr[u8], height: i64, width: i64, out_height: i64, out_width: i64,
             out_pitch: i64, channels: i64, top: i64, left: i64, high: i64, wide: i64, step_down: i64, step_across: i64,
             down: i64, across: i64, *more: i64, dtype: Any, lanes: int, by_tap: bool, epilogue: Any):  # fmt: skip
    """An item: `lanes` channels of a row of outputs. dtype: of the products; by_tap: a tap's are neighbours."""
    finish = epilogue.bind(more)
    p, out = products.cast(dtype), y.cast(epilogue.expr.dtype)
    blocks = (channels + (lanes - 1)) // lanes
    taps = high * wide
    along = kl.iota(dtypes.int64, lanes) * taps
    for item in work.items():
        c = kl.minimum((item % blocks) * lanes, channels - lanes)
        row = item // blocks
        n = row // out_height
        iy = row % out_height + top
        for ox in range(out_width):
            ix = ox + left
            total = kl.zeros(dtype, lanes)
            for i in range(high):
                h, held = _came_from(iy - i * down, step_down, height)
                if held:
                    for j in range(wide):
                        w, seen = _came_from(ix - j * across, step_across, width)
                        if seen:
                            pixel = p + ((n * height + h) * width + w) * taps * channels
                            if by_tap:
                                total = total + pixel.load((i * wide + j) * channels + c, lanes)
                            else:
                                total = total + kl.gather(pixel + (c * taps + i * wide + j), along)
            at = row * out_width + ox
            out.store(finish(total, at, c, lanes), at * out_pitch + c)


def _came_from(at: Value, step: Value, extent: Value) -> tuple[Value, Value]:
    """The pixel that a tap spreads to this place, and whether there is one."""
    pixel = at // step
    return pixel, (at >= 0) & (pixel * step == at) & (pixel < extent)


@maker(TransposedContract)
def make_transposed(form: TransposedContract, build: Builder) -> None:
    """Of what contractions have kernels for; the filter is a constant."""
    x, filter, out, window = form.input, form.filter, form.output, form.window
    if filter.constant is None:
        raise Unmade("a transposed convolution whose filter is no constant")
    features, high, wide, channels = filter.shape
    dtype = SUMS.get(x.dtype, dtypes.int32)
    products = Buffer(f"{out.name}.products", dtype, (*x.shape[:3], high * wide * features))
    by_tap = math.prod(x.shape[:3]) > FEW
    parts = [(products, filter.constant.reshape(-1, 1, 1, channels))] if not by_tap else [
        (Buffer(out.name, dtype, (*x.shape[:3], features), None, products, (i * wide + j) * features),
         filter.constant[:, i : i + 1, j : j + 1]) for i in range(high) for j in range(wide)]  # fmt: skip
    for into, taps in parts:
        weights = Buffer(filter.name, filter.dtype, taps.shape, taps)
        make(Contract(into, x, weights, (), arg(0, dtype), Window((1, 1)), 1, form.input_zero, form.filter_zero), build)
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    lanes = vector_lanes(features, dtype.size)
    code = add_taps.code(dtype=dtype, lanes=lanes, by_tap=by_tap, more=len(more), epilogue=epilogue)
    n, out_height, out_width, _ = out.shape
    top, _, left, _ = window.padding
    words = [build.pointer(products), build.pointer(out), x.shape[1], x.shape[2], out_height, out_width, out.pitch,
             features, top, left, *window.size, *window.strides, *window.dilations, *more]  # fmt: skip
    items = n * out_height * -(-features // lanes)
    build.step(code, words, items, chunk=grain(8 * out_width * lanes * (2 + high * wide), items))
