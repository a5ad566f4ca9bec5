"""Gradients that windows add channel by channel: of pools, and of depthwise convolutions.

Lives here: the selectors of WindowGradient (by the input) and ChannelFilterGradient (by the filter), their families.
Not here: transposed convolutions, which mix channels (transposed_convolution.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import f32, i32, i64, ptr
from ..loops.buffers import Buffer, Window
from ..loops.indexing_ops import ChannelFilterGradient, WindowGradient
from . import NoKernel, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

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


def _first_greatest(
    values: Pointer, at: Value, kind: str, size: tuple[int, int], width: Value, channels: Value, mask: Value | None
) -> Value:
    """Return the number of the greatest tap of a whole window at `at`, the first of equals; of a mean, 0."""
    chosen = kl.zeros(i32, CHANNELS)
    if kind == "max":
        best = values.load(at, CHANNELS, mask)
        for number in kl.unroll(1, size[0] * size[1]):
            v = values.load(at + _tap_place(number, size, width) * channels, CHANNELS, mask)
            best, chosen = _greater(v, number, best, chosen)
    return chosen


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
    covers: bool,
) -> None:
    """Add the gradients of windows. more: see `_axis_words`. A work item is a group of channels of an image.

    whole: whether all blocks of channels are; masked stores take tens of cycles on processors with AVX2 alone. size: of
    windows whose taps are unrolled where all of them are inside of the image; (0, 0) for others. covers: whether each
    pixel is in one window, which writes it then.
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
            if not covers:
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
                            if covers:
                                chosen = _first_greatest(values, corner, kind, size, width, channels, mask)
                                for number in kl.unroll(size[0] * size[1]):
                                    place = corner + _tap_place(number, size, width) * channels
                                    image.store(
                                        d if kind == "mean" else kl.select(chosen == number, d, 0.0), place, mask
                                    )
                            elif unrolled:
                                chosen = _first_greatest(values, at, kind, size, width, channels, mask)
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
    whole, size = channels % CHANNELS == 0, _unrolled(form.window)
    counts = gradient.shape[1:3]
    is_apart = not any(form.window.padding) and (height, width) == (counts[0] * size[0], counts[1] * size[1])
    code = window_gradients.code(
        kind=form.kind,
        multiplier=multiplier,
        whole=whole,
        size=size,
        covers=form.kind != "filter" and size[0] > 0 and form.window.strides == size and is_apart,
        more=8,
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
