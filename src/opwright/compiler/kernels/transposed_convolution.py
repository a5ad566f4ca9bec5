"""Transposed convolution: a matrix product for each tap of the window, whose results each output pixel adds.

Lives here: the selector of TransposedContract, the family of the sums; gradients that windows add channel by channel:
WindowGradient (of pools and depthwise convolutions by the input), ChannelFilterGradient.
Not here: the products, which are contractions of their own (contractions_f32.py, contractions_int8.py).

With x [N, H, W, C] and taps t = (i, j) of a filter f [F, KH, KW, C],

    p[n, h, w, t, :] = sum_c x[n, h, w, c] f[:, t, c]
    y[n, y, x, :] = expr(sum of p[n, h, w, t, :] where y = h sh + i dh - top, x = w sw + j dw - left)

No product is repeated or unused; a pixel of y adds (KH / sh) (KW / sw) vectors. For one or two pixels, or few channels,
all taps are one product of the filter in its layout: channel by channel, p[n, h, w, :, t]. So are floats that are
rounded first, which happens once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from .. import language as kl
from ..language import f32, i32, i64, ptr, u8
from ..loops.buffers import Buffer, Window
from ..loops.expressions import arg
from ..loops.indexing_ops import ChannelFilterGradient, WindowGradient
from ..loops.ops import Contract, TransposedContract
from ..tuning.choices import TAPS
from . import NoKernel, select, selector
from .contractions_int8 import add_contraction
from .epilogue import epilogue_of
from .tiling import grain, vector_lanes

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
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
    top: i64,
    left: i64,
    high: i64,
    wide: i64,
    step_down: i64,
    step_across: i64,
    down: i64,
    across: i64,
    scales: ptr[f32],
    *more: i64,
    dtype: Any,
    lanes: int,
    by_tap: bool,
    dilated: bool,
    rounded: bool,
    epilogue: Any,
) -> None:
    """Add the products of the taps of each output pixel. Items: `lanes` channels of a row of outputs.

    dtype: of the products; by_tap: whether the channels of a tap are contiguous. dilated: whether down or across is
    above 1; otherwise the loops visit only taps that meet a pixel of the image. rounded: whether the products are of
    floats that were rounded; scales: of each image.
    """
    finish = epilogue.bind(more)
    p, out = products.cast(dtype), y.cast(epilogue.expr.dtype)
    blocks = (channels + (lanes - 1)) // lanes
    taps = high * wide
    along = kl.iota(dtypes.int64, lanes) * taps
    channel, tap = (1, channels) if by_tap else (taps, 1)
    for item in work.items():
        c = kl.minimum((item % blocks) * lanes, channels - lanes)
        row = item // blocks
        image = p + ((row // out_height) * height * width * taps * channels + c * channel)
        iy = row % out_height + top
        row_scale = scales[row // out_height] if rounded else None
        rows = None if dilated else _met(iy, high, step_down, height)
        for ox in range(out_width):
            ix = ox + left
            columns = None if dilated else _met(ix, wide, step_across, width)
            total = kl.zeros(dtype, lanes)
            for a in range(*_limits(rows, high)):
                i, h, row_met = _tap(rows, a, iy - a * down, step_down, height)
                if row_met:
                    for b in range(*_limits(columns, wide)):
                        j, w, met = _tap(columns, b, ix - b * across, step_across, width)
                        if met:
                            product = image + ((h * width + w) * channels * taps + (i * wide + j) * tap)
                            total = total + (product.load(0, lanes) if by_tap else kl.gather(product, along))
            pixel = row * out_width + ox
            out.store(finish(total, pixel, c, lanes, row_scale=row_scale), pixel * out_pitch + c)


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
    default = math.prod(x.shape[:3]) > FEW and features >= NARROW
    possible = filter.constant is not None and not form.rounding
    by_tap = (
        possible
        and build.choose(
            TAPS,
            (0, 1),
            int(default),
            *out.shape[:3],
            x.shape[3],
            features,
            high,
            wide,
            window.strides[0],
            x.dtype.size,
        )
        > 0
    )
    numbers = Window((1, 1)), 1, form.input_zero, form.filter_zero, form.rounding
    scales: Any = 0
    for output, weights in _products_by_tap(form, products) if by_tap else [(products, _flattened(filter))]:
        product = Contract(output, x, weights, (), arg(0, dtype), *numbers)
        if form.rounding:
            scales = add_contraction(product, build).scales
        else:
            select(product, build)
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    lanes = vector_lanes(features, dtype.size)
    code = add_taps.code(
        dtype=dtype,
        lanes=lanes,
        by_tap=by_tap,
        dilated=window.dilations != (1, 1),
        rounded=bool(form.rounding),
        more=len(more),
        epilogue=epilogue,
    )
    n, out_height, out_width, _ = out.shape
    top, _, left, _ = window.padding
    words = [
        build.pointer(products),
        build.pointer(out),
        x.shape[1],
        x.shape[2],
        out_height,
        out_width,
        out.pitch,
        features,
        top,
        left,
        *window.size,
        *window.strides,
        *window.dilations,
        scales,
        *more,
    ]
    items = n * out_height * -(-features // lanes)
    build.step(code, words, items, chunk=grain(8 * out_width * lanes * (2 + high * wide), items))


def _flattened(filter: Buffer) -> Buffer:
    """Return a filter [F, KH, KW, C] as [F KH KW, 1, 1, C]."""
    shape = (math.prod(filter.shape[:3]), 1, 1, filter.shape[3])
    if filter.constant is None:
        return Buffer(filter.name, filter.dtype, shape, None, filter)
    return Buffer(filter.name, filter.dtype, shape, filter.constant.reshape(shape))


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


CHANNELS = 16
"""Channels of a block of a gradient: a line of the first cache, two vectors or one."""
GROUP = 64
"""Channels of a work item: lines that follow each other in memory, as single ones would wait for memory each."""


class _Spans:
    """The taps of windows that lie inside of an image along one axis. words: size, stride and dilation of the window,
    padding before, size of the image."""

    def __init__(self, size: Value, step: Value, dilation: Value, before: Value, extent: Value) -> None:
        self.size, self.step, self.dilation, self.before, self.extent = size, step, dilation, before, extent

    def start(self, window: Any) -> Value:
        """Return the position of tap 0."""
        position: Value = window * self.step - self.before
        return position

    def taps(self, start: Value) -> tuple[Value, Value]:
        """Return the first tap inside and the end of those inside."""
        last = (self.extent - start + (self.dilation - 1)) // self.dilation
        first = (self.dilation - 1 - start) // self.dilation
        return kl.maximum(0, first), kl.minimum(self.size, last)


def _of_channels(p: Pointer, place: Any, mask: Value | None, multiplier: int, index: Any) -> Value:
    """Load one of `multiplier` numbers of each channel."""
    if multiplier == 1:
        return p.load(place, CHANNELS, mask)
    return kl.gather(p, kl.iota(i64, CHANNELS) * multiplier + (place * multiplier + index), mask)


def _tap_place(tap: int, size: tuple[int, int], width: Any) -> Any:
    """Return the distance of a tap from the first one, in pixels of an image of this width."""
    return tap // size[1] * width + tap % size[1]


def _greater(v: Value, number: Any, best: Value, chosen: Value) -> tuple[Value, Value]:
    """Return the greater of two vectors, the first of equals, and its number. NaN is greater than all numbers."""
    chosen_now = kl.full(i32, CHANNELS, number)
    kept = kl.select(v <= best, chosen, chosen_now)  # of NaN no comparison holds
    kept = kl.select(best == best, kept, chosen)
    greater = kl.select(v <= best, best, v)
    return kl.select(best == best, greater, best), kept


MOST_UNROLLED = 16
"""Taps of a window up to which they are unrolled."""


def _unrolled(window: Window) -> tuple[int, int]:
    """Return the size of a window whose taps are unrolled; (0, 0) for others."""
    return window.size if math.prod(window.size) <= MOST_UNROLLED else (0, 0)


@kl.family
def window_gradients(
    work: Work,
    gradient: ptr[f32],
    source: ptr[f32],
    y: ptr[f32],
    channels: i64,
    height: i64,
    width: i64,
    high: i64,
    wide: i64,
    *more: i64,
    kind: str,
    multiplier: int,
    whole: bool,
    size: tuple[int, int],
) -> None:
    """Add the gradients of windows. more: see `_axis_words`. A work item is a group of channels of an image.

    whole: whether all blocks of channels are; masked stores take tens of cycles on processors with AVX2 alone. size: of
    windows whose taps are unrolled where all of them are inside of the image; (0, 0) for others.
    """
    rows = _Spans(more[0], more[1], more[2], more[3], height)
    columns = _Spans(more[4], more[5], more[6], more[7], width)
    groups = (channels + (GROUP - 1)) // GROUP
    for item in work.items():
        c_begin = item % groups * GROUP
        c_end = kl.minimum(channels, c_begin + GROUP)
        image = y + item // groups * height * width * channels
        values = source + item // groups * height * width * channels
        cleared = kl.value(0)  # lines, which are cleared when the first window reaches them, and remain in the cache
        for p in range(high):
            top = rows.start(p)
            i_begin, i_end = rows.taps(top)
            reached = kl.clamp(top + (rows.size - 1) * rows.dilation + 1, cleared, height)
            reached = kl.select(p == high - 1, height, reached)
            for pixel in range(cleared * width, reached * width):
                for c in range(c_begin, c_end, CHANNELS):
                    mask = None if whole else kl.tail_mask(channels - c, CHANNELS)
                    image.store(kl.zeros(f32, CHANNELS), pixel * channels + c, mask)
            cleared = reached
            for q in range(wide):
                left = columns.start(q)
                j_begin, j_end = columns.taps(left)
                pixels = (i_end - i_begin) * (j_end - j_begin)
                if (i_begin < i_end) & (j_begin < j_end):
                    window = ((item // groups * high + p) * wide + q) * channels
                    unrolled = (size[0] > 0) & (i_end - i_begin == size[0]) & (j_end - j_begin == size[1])
                    for c in range(c_begin, c_end, CHANNELS):
                        mask = None if whole else kl.tail_mask(channels - c, CHANNELS)
                        corner = (top * width + left) * channels + c
                        if kind == "filter":
                            for k in kl.unroll(multiplier):
                                d = _of_channels(gradient, window + c, mask, multiplier, k)
                                for i in range(i_begin, i_end):
                                    for j in range(j_begin, j_end):
                                        at = corner + (i * rows.dilation * width + j * columns.dilation) * channels
                                        weight = (i * columns.size + j) * channels + c
                                        w = _of_channels(source, weight, mask, multiplier, k)
                                        image.store(kl.fma(d, w, image.load(at, CHANNELS, mask)), at, mask)
                        else:
                            d = gradient.load(window + c, CHANNELS, mask)
                            if kind == "mean":
                                d = d / pixels.to(f32)
                            at = corner + (i_begin * width + j_begin) * channels
                            if unrolled:
                                chosen = kl.zeros(i32, CHANNELS)
                                if kind == "max":
                                    best = values.load(at, CHANNELS, mask)
                                    for number in kl.unroll(1, size[0] * size[1]):
                                        place = at + _tap_place(number, size, width) * channels
                                        v = values.load(place, CHANNELS, mask)
                                        best, chosen = _greater(v, number, best, chosen)
                                for number in kl.unroll(size[0] * size[1]):
                                    place = at + _tap_place(number, size, width) * channels
                                    share = d if kind == "mean" else kl.select(chosen == number, d, 0.0)
                                    image.store(image.load(place, CHANNELS, mask) + share, place, mask)
                            else:
                                chosen = kl.full(i32, CHANNELS, (i_begin * columns.size + j_begin).to(i32))
                                if kind == "max":
                                    best = values.load(at, CHANNELS, mask)
                                    for i in range(i_begin, i_end):
                                        for j in range(j_begin, j_end):
                                            v = values.load(corner + (i * width + j) * channels, CHANNELS, mask)
                                            tap = (i * columns.size + j).to(i32)
                                            best, chosen = _greater(v, tap, best, chosen)
                                for i in range(i_begin, i_end):
                                    for j in range(j_begin, j_end):
                                        place = corner + (i * width + j) * channels
                                        tap = (i * columns.size + j).to(i32)
                                        share = d if kind == "mean" else kl.select(chosen == tap, d, 0.0)
                                        image.store(image.load(place, CHANNELS, mask) + share, place, mask)


def _axis_words(window: Window) -> list[int]:
    """Return size, stride, dilation and padding before of both axes."""
    words = []
    for axis in range(2):
        words += [window.size[axis], window.strides[axis], window.dilations[axis], window.padding[2 * axis]]
    return words


def _check_images(*buffers: Buffer) -> None:
    """Raise NoKernel unless all are float32 of four axes with their own memory."""
    if any(b.dtype is not f32 or b.parent is not None or len(b.shape) != 4 or not b.size for b in buffers):
        raise NoKernel(f"gradients of windows of {buffers}")


@selector(WindowGradient)
def select_window_gradient(form: WindowGradient, build: Builder) -> None:
    y, gradient = form.output, form.gradient
    _check_images(y, gradient, *form.source)
    n, height, width, channels = y.shape
    multiplier = gradient.shape[3] // channels
    if form.kind != "filter" and (form.window.dilations != (1, 1) or multiplier != 1):
        raise NoKernel(f"a pool with dilations {form.window.dilations}")
    source = build.pointer(form.source[0]) if form.source else 0
    sizes = [channels, height, width, *gradient.shape[1:3]]
    words = [build.pointer(gradient), source, build.pointer(y), *sizes, *_axis_words(form.window)]
    items = n * -(-channels // GROUP)
    whole = channels % CHANNELS == 0
    code = window_gradients.code(
        kind=form.kind, multiplier=multiplier, whole=whole, size=_unrolled(form.window), more=8
    )
    build.step(
        code, words, items, chunk=grain(4 * min(channels, GROUP) * height * width * math.prod(form.window.size), items)
    )


@kl.family
def channel_filter_gradients(
    work: Work,
    x: ptr[f32],
    gradient: ptr[f32],
    y: ptr[f32],
    images: i64,
    channels: i64,
    height: i64,
    width: i64,
    high: i64,
    wide: i64,
    *more: i64,
    multiplier: int,
    whole: bool,
    size: tuple[int, int],
) -> None:
    """Sum the gradients of a filter by channel. more: see `_axis_words`. whole, size: as of `window_gradients`.

    A work item is a group of channels and one of its `multiplier` filters. Scratch: the sums of one line, a number for
    each channel and tap; they are added to those of all lines, for the sake of rounding.
    """
    rows = _Spans(more[0], more[1], more[2], more[3], height)
    columns = _Spans(more[4], more[5], more[6], more[7], width)
    taps = rows.size * columns.size
    line = work.scratch(f32)
    total = line + taps * GROUP
    for item in work.items():
        c_begin, index = item // multiplier * GROUP, item % multiplier
        c_end = kl.minimum(channels, c_begin + GROUP)
        for i in range(0, 2 * taps * GROUP, CHANNELS):
            line.store(kl.zeros(f32, CHANNELS), i)
        for p in range(images * high):
            top = rows.start(p % high)
            i_begin, i_end = rows.taps(top)
            for q in range(wide):
                left = columns.start(q)
                j_begin, j_end = columns.taps(left)
                unrolled = (size[0] > 0) & (i_end - i_begin == size[0]) & (j_end - j_begin == size[1])
                for c in range(c_begin, c_end, CHANNELS):
                    mask = None if whole else kl.tail_mask(channels - c, CHANNELS)
                    d = _of_channels(gradient, (p * wide + q) * channels + c, mask, multiplier, index)
                    corner = ((p // high * height + top) * width + left) * channels + c
                    sums = line + (c - c_begin)
                    if unrolled:
                        for number in kl.unroll(size[0] * size[1]):
                            pixel = number // size[1] * rows.dilation * width + number % size[1] * columns.dilation
                            v = x.load(corner + pixel * channels, CHANNELS, mask)
                            sums.store(kl.fma(v, d, sums.load(number * GROUP, CHANNELS)), number * GROUP)
                    else:
                        for i in range(i_begin, i_end):
                            for j in range(j_begin, j_end):
                                at = corner + (i * rows.dilation * width + j * columns.dilation) * channels
                                sum_place = (i * columns.size + j) * GROUP
                                v = x.load(at, CHANNELS, mask)
                                sums.store(kl.fma(v, d, sums.load(sum_place, CHANNELS)), sum_place)
            for i in range(0, taps * GROUP, CHANNELS):
                total.store(total.load(i, CHANNELS) + line.load(i, CHANNELS), i)
                line.store(kl.zeros(f32, CHANNELS), i)
        for tap in range(taps):
            for c in range(c_begin, c_end):
                y[(tap * channels + c) * multiplier + index] = total[tap * GROUP + c - c_begin]


@selector(ChannelFilterGradient)
def select_channel_filter_gradient(form: ChannelFilterGradient, build: Builder) -> None:
    x, gradient, y = form.input, form.gradient, form.output
    _check_images(x, gradient, y)
    n, height, width, channels = x.shape
    high, wide = gradient.shape[1:3]
    words = [build.pointer(x), build.pointer(gradient), build.pointer(y), n, channels, height, width, high, wide]
    items = -(-channels // GROUP) * y.shape[3]
    whole, size = channels % CHANNELS == 0, _unrolled(form.window)
    code = channel_filter_gradients.code(multiplier=y.shape[3], whole=whole, size=size, more=8)
    taps = math.prod(form.window.size)
    chunk = grain(4 * min(channels, GROUP) * n * high * wide * taps, items)
    build.step(code, [*words, *_axis_words(form.window)], items, scratch=8 * taps * GROUP, chunk=chunk)
