"""Transposed convolution: a matrix product for each tap of the window, whose results each output pixel adds.

Lives here: the selector of TransposedContract, the family of the sums.
Not here: the products, which are contractions of their own (contractions_f32.py, contractions_int8.py); gradients that
windows add channel by channel (window_gradients.py).

With x [N, H, W, C] and taps t = (i, j) of a filter f [F, KH, KW, C],

    p[n, h, w, t, :] = sum_c x[n, h, w, c] f[:, t, c]
    y[n, y, x, :] = expr(sum of p[n, h, w, t, :] where y = h sh + i dh - top, x = w sw + j dw - left)

No product is repeated or unused; a pixel of y adds (KH / sh) (KW / sw) vectors. For few channels, all taps are one
product, and for floats that are rounded first, which happens once. For one or two pixels the filter of that product has
the layout of the file, of which no copy is made: channel by channel, p[n, h, w, :, t].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from .. import language as kl
from ..language import f32, i64, ptr, u8
from ..loops.buffers import Buffer, Window
from ..loops.expressions import arg
from ..loops.ops import Contract, TransposedContract
from ..target import host
from ..tuning.choices import TAPS
from . import NoKernel, select, selector
from .contractions_int8 import add_contraction
from .epilogue import epilogue_of
from .tiling import TapWords, grain, tap_words, vector_lanes

if TYPE_CHECKING:
    from ..language import Value, Work
    from ..loops.plan_builder import Builder

FEW = 2
"""Pixels of all images up to which a product reads the filter in place."""
NARROW = 8
"""Channels of the output from which each tap is a product of its own."""


SUMS = {dtypes.float32: dtypes.float32, dtypes.int16: dtypes.int64}
"""Dtypes of sums of products by that of the input; int32 for bytes."""


@kl.family
def add_taps(
    work: Work,
    products: ptr[u8],
    y: ptr[u8],
    height: i64,
    width: i64,
    out_height: i64,
    out_width: i64,
    out_pitch: i64,
    channels: i64,
    window: TapWords,
    scales: ptr[f32],
    *more: i64,
    dtype: Any,
    lanes: int,
    by_tap: bool,
    dilated: bool,
    rounded: bool,
    masked: bool,
    epilogue: Any,
) -> None:
    """Add the products of the taps of each output pixel. Items: `lanes` channels of a row of outputs.

    dtype: of the products; by_tap: whether the channels of a tap are contiguous. dilated: whether a dilation is
    above 1; otherwise the loops visit only taps that meet a pixel of the image. rounded: whether the products are of
    floats that were rounded; scales: of each image. masked: whether there are fewer channels than lanes.
    """
    finish = epilogue.bind(more)
    p, out = products.cast(dtype), y.cast(epilogue.expr.dtype)
    blocks = (channels + (lanes - 1)) // lanes
    taps = window.high * window.wide
    along = kl.iota(dtypes.int64, lanes) * taps
    channel, tap = (1, channels) if by_tap else (taps, 1)
    mask = kl.first(channels, lanes) if masked else None
    for item in work.items():
        c = kl.value(0) if masked else kl.minimum((item % blocks) * lanes, channels - lanes)
        row = item // blocks
        image = p + ((row // out_height) * height * width * taps * channels + c * channel)
        iy = row % out_height + window.top
        row_scale = scales[row // out_height] if rounded else None
        rows = None if dilated else _met(iy, window.high, window.step_down, height)
        for ox in range(out_width):
            ix = ox + window.left
            columns = None if dilated else _met(ix, window.wide, window.step_across, width)
            total = kl.zeros(dtype, lanes)
            for a in range(*_limits(rows, window.high)):
                i, h, row_met = _tap(rows, a, iy - a * window.down, window.step_down, height)
                if row_met:
                    for b in range(*_limits(columns, window.wide)):
                        j, w, met = _tap(columns, b, ix - b * window.across, window.step_across, width)
                        if met:
                            product = image + ((h * width + w) * channels * taps + (i * window.wide + j) * tap)
                            total = total + (
                                product.load(0, lanes, mask) if by_tap else kl.gather(product, along, mask)
                            )
            pixel = row * out_width + ox
            out.store(finish(total, pixel, c, lanes, mask, row_scale=row_scale), pixel * out_pitch + c, mask)


def _met(position: Value, size: Value, step: Value, extent: Value) -> tuple[Value, Value, Value, Value]:
    """Return (from, to, pixel, tap): tap `tap + k step` of pixel `pixel - k` meets the position for these k."""
    pixel = (position.to(dtypes.uint32) // step.to(dtypes.uint32)).to(dtypes.int64)
    tap = position - pixel * step
    count = ((size - tap + (step - 1)).to(dtypes.uint32) // step.to(dtypes.uint32)).to(dtypes.int64)
    return kl.maximum(pixel - (extent - 1), 0), kl.minimum(count, pixel + 1), pixel, tap


def _limits(met: Any, size: Value) -> tuple[Any, Any]:
    return (0, size) if met is None else met[:2]


def _tap(met: Any, k: Any, position: Value, step: Value, extent: Value) -> tuple[Value, Value, Any]:
    """Return the k-th tap, the pixel whose product with it is at this position, and whether it exists."""
    if met is not None:
        return met[3] + k * step, met[2] - k, True
    pixel = position // step
    return k, pixel, (position >= 0) & (pixel * step == position) & (pixel < extent)


@selector(TransposedContract)
def select_transposed(form: TransposedContract, build: Builder) -> None:
    """Add the steps of the products and of their sums."""
    x, filter, out, window = form.input, form.filter, form.output, form.window
    if filter.parent is not None:
        raise NoKernel("a filter that is a slice")
    features, high, wide, _ = filter.shape
    dtype = dtypes.int32 if form.rounding else SUMS.get(x.dtype, dtypes.int32)
    products = Buffer(f"{out.name}.products", dtype, (*x.shape[:3], high * wide * features))
    numbers = Window((1, 1)), 1, form.input_zero, form.filter_zero, form.rounding
    scales: Any = 0
    parts, by_tap = _parts(form, products, build)
    for output, weights in parts:
        product = Contract(output, x, weights, (), arg(0, dtype), *numbers)
        if form.rounding:
            scales = add_contraction(product, build).scales
        else:
            select(product, build)
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    lanes = vector_lanes(features, dtype.size)
    masked = lanes < features < host().lanes(dtype.size)  # one vector instead of two that overlap
    if masked:
        lanes = 1 << features.bit_length()
    code = add_taps.code(
        dtype=dtype,
        lanes=lanes,
        by_tap=by_tap,
        dilated=window.dilations != (1, 1),
        rounded=bool(form.rounding),
        masked=masked,
        more=len(more),
        epilogue=epilogue,
    )
    n, out_height, out_width, _ = out.shape
    words = [
        build.pointer(products),
        build.pointer(out),
        x.shape[1],
        x.shape[2],
        out_height,
        out_width,
        out.pitch,
        features,
        *tap_words(window),
        scales,
        *more,
    ]
    items = n * out_height * -(-features // lanes)
    build.step(code, words, items, chunk=grain(8 * out_width * lanes * (2 + high * wide), items))


def _parts(form: TransposedContract, products: Buffer, build: Builder) -> tuple[list[tuple[Buffer, Buffer]], bool]:
    """Return outputs of products with their filters, and whether the products of a tap are contiguous."""
    x, filter = form.input, form.filter
    features, high, wide, channels = filter.shape
    if filter.constant is None:
        return [(products, _flattened(filter))], False
    pixels = math.prod(x.shape[:3])
    if not form.rounding:
        default = int(pixels > FEW and features >= NARROW)
        sizes = *form.output.shape[:3], channels, features, high, wide, form.window.strides[0], x.dtype.size
        if build.choose(TAPS, (0, 1), default, *sizes) > 0:
            return list(_products_by_tap(form, products)), True
    if pixels > FEW:
        return [(products, _taps_first(filter))], True
    return [(products, _flattened(filter))], False


def _flattened(filter: Buffer) -> Buffer:
    """Return a filter [F, KH, KW, C] as [F KH KW, 1, 1, C]."""
    shape = (math.prod(filter.shape[:3]), 1, 1, filter.shape[3])
    if filter.constant is None:
        return Buffer(filter.name, filter.dtype, shape, None, filter)
    return Buffer(filter.name, filter.dtype, shape, filter.constant.reshape(shape))


def _taps_first(filter: Buffer) -> Buffer:
    """Return a constant filter [F, KH, KW, C] as [KH KW F, 1, 1, C]."""
    assert filter.constant is not None
    shape = (math.prod(filter.shape[:3]), 1, 1, filter.shape[3])
    return Buffer(filter.name, filter.dtype, shape, filter.constant.transpose(1, 2, 0, 3).reshape(shape))


def _products_by_tap(form: TransposedContract, products: Buffer) -> Iterator[tuple[Buffer, Buffer]]:
    """Yield for each tap the output of its product and its filter [F, 1, 1, C]."""
    filter = form.filter
    assert filter.constant is not None
    features, high, wide, channels = filter.shape
    for i in range(high):
        for j in range(wide):
            output = Buffer(
                products.name,
                products.dtype,
                (*form.input.shape[:3], features),
                None,
                products,
                (i * wide + j) * features,
            )
            taps = filter.constant[:, i : i + 1, j : j + 1]
            yield output, Buffer(filter.name, filter.dtype, (features, 1, 1, channels), taps)
