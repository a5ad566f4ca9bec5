"""Depthwise convolutions of any type: their geometry, and the loops over an image that their kernels share.

Lives here: `Slide`, `slide_of`; `Planes`, `Bands`, `Taps`, the words of the kernels; `RowSums`, which goes along a row
of the image; `convolve_window`, which goes over the taps of any window.
Not here: the families and what they do with a pixel (depthwise_f32.py, depthwise_int8.py), tiles (depthwise_tiles.py).

A kernel goes along a row of the image and adds each column that it loads to all the outputs that see it, which are in
registers: as many as the window is wide, in strides. So every pixel of a row of outputs is loaded once a row of the
window, and padding costs a test.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core import dtypes
from ...core.dtypes import DType
from .. import language as kl
from ..language import f32
from ..loops.buffers import Ring, Window
from ..loops.ops import Depthwise
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Value
    from ..loops.plan_builder import Builder

LARGEST = 64
"""Taps of a window whose code is unrolled; larger ones are loops."""


MOST_SUMS = 12
"""Outputs that see a pixel, of which each has a sum in a register."""


class Slide(NamedTuple):
    """How a window goes over images: the input's height and width, the output's, and the window."""

    height: int
    width: int
    out_height: int
    out_width: int
    window: Window

    def turned(self) -> Slide:
        """The same with rows and columns exchanged."""
        (kh, kw), (sh, sw), (down, across), (top, bottom, left, right) = (
            self.window.size,
            self.window.strides,
            self.window.dilations,
            self.window.padding,
        )
        window = Window((kw, kh), (sw, sh), (across, down), (left, right, top, bottom))
        return Slide(self.width, self.height, self.out_width, self.out_height, window)


def slide_of(form: Depthwise) -> Slide:
    """How a form's window goes over its images. Images of one column are taken for one row, which lies in memory the
    same way: kernels keep the sums of a row in registers, and load each of its pixels once."""
    (_, height, width, _), (_, out_height, out_width, _), window = form.input.shape, form.output.shape, form.window
    found = Slide(height, width, out_height, out_width, window)
    column = found.width == found.out_width == window.size[1] == 1 and window.padding[2] == 0
    few = window.size[0] > 1 and -(-window.size[0] // window.strides[0]) <= MOST_SUMS
    if isinstance(form.input, Ring) or not (column and few and 1 in (window.strides[0], window.dilations[0])):
        return found
    return found._replace(window=replace(window, strides=(window.strides[0], 1))).turned()


class Planes(NamedTuple):
    """Images and outputs of a depthwise convolution: their sizes in pixels, elements from pixel to pixel, padding."""

    height: Any
    width: Any
    pitch: Any
    out_height: Any
    out_width: Any
    out_pitch: Any
    channels: Any
    top: Any
    left: Any


class Bands(NamedTuple):
    """Rows of outputs in `count` bands of `size`; the window's dilations; ring, shift: see `line_of`."""

    down: Any
    across: Any
    count: Any
    size: Any
    ring: Any
    shift: Any


class Taps(NamedTuple):
    """Any window: its sizes, strides and dilations, and outputs of each channel."""

    height: Any
    width: Any
    step_down: Any
    step_across: Any
    down: Any
    across: Any
    multiplier: Any


class Integers(NamedTuple):
    """Zero points of images and filter; zeros, scales: of each image, if images are rounded floats."""

    x_zero: Value
    filter_zero: Value
    zeros: Any = None
    scales: Any = None


class Columns(NamedTuple):
    """`count` outputs of a row, `across` apart, from output `at` on, of channels from c on; the first sees the column
    `base` of the image first."""

    at: Any
    c: Any
    count: Any
    base: Any
    across: Any


def planes_of(form: Depthwise, slide: Slide, pitch: int) -> Planes:
    """Return the words of a form's images. pitch: elements from pixel to pixel of the input."""
    height, width, out_height, out_width, window = slide
    top, _, left, _ = window.padding
    channels = form.output.shape[3]
    return Planes(height, width, pitch, out_height, out_width, form.output.pitch, channels, top, left)


def bands_of(form: Depthwise, slide: Slide, size: int) -> Bands:
    """Return the words of a form's rows of outputs, in bands of this size."""
    x, first = form.input, max(0, -form.window.padding[0])
    ring = (x.lines, (first + x.shift) % x.lines - first) if isinstance(x, Ring) else (x.shape[0] * x.shape[1], 0)
    return Bands(*slide.window.dilations, -(-slide.out_height // size), size, *ring)


def within(at: Value, extent: Value) -> Value:
    """0 <= at < extent, in one comparison."""
    found: Value = at.to(dtypes.uint64) < extent.to(dtypes.uint64)
    return found


def line_of(row: Value, bands: Bands) -> Value:
    """Where a row of the images lies: `shift` on, and where that is beyond the ring, at its beginning."""
    line = row + bands.shift
    return kl.select(line < bands.ring, line, line - bands.ring)


class RowSums(ABC):
    """Partial sums of `rows` rows of outputs, while the kernel walks along a row of the image.

    The turn that loads the last column that an output sees finishes it. size, stride: of the window, across. unrolled:
    whether turns are as many as outputs that a column is seen by, so that no sums move, which costs a move each.
    """

    def __init__(self, planes: Planes, size: int, stride: int, rows: int, lanes: int, unrolled: bool) -> None:
        self.planes, self.size, self.stride, self.rows, self.lanes = planes, size, stride, rows, lanes
        self.unrolled, self.depth = unrolled, -(-size // stride)
        self.sums: Any = None

    def begin(self, columns: Columns) -> None:  # noqa: B027  a hook
        """Prepare for the columns, before the first of them is loaded."""

    @abstractmethod
    def add(self, column: Any, j: int, slots: list[int]) -> None:
        """Add a column of the image, which tap `j` of a stride reads first. slots: indices of the sums of an output, by
        strides from its first column."""

    @abstractmethod
    def finish(self, columns: Columns, done: Any, slot: int) -> None:
        """Store the output `done`, whose sums are in a slot."""

    def end(self, columns: Columns) -> None:  # noqa: B027  a hook
        """Finish what has been put aside, after the last column."""

    def along_row(self, start: Value, at: Any, c: Any, bands: Bands, dilated: bool) -> None:
        """Compute a row. start: what sums start with. dilated: columns with equal remainders by `across` are one row of
        an image without dilation."""
        if dilated:
            for phase in range(kl.minimum(bands.across, self.planes.out_width)):  # a file's dilation may be any int32
                count = (self.planes.out_width - phase + (bands.across - 1)) // bands.across
                self.along(start, Columns(at + phase, c, count, phase - self.planes.left, bands.across))
        else:
            self.along(start, Columns(at, c, self.planes.out_width, -self.planes.left, 1))

    def along(self, start: Value, columns: Columns) -> None:
        """Compute some columns of outputs."""
        depth, rows = self.depth, self.rows
        self.begin(columns)
        self.sums = sums = kl.registers(start.dtype, self.lanes, rows, depth)
        for r in range(rows):
            for d in range(depth):
                sums[r, d] = start
        turns, end = depth if self.unrolled else 1, columns.count + (depth - 1)
        for first in range(0, end, turns):
            for turn in range(turns):
                t = kl.value(first) + turn
                if t < end if turn else True:
                    slots = [d if turns == 1 else (turn - d) % depth for d in range(depth)]
                    for j in range(min(self.stride, self.size)):  # columns beyond the window are in none
                        self.add((t * self.stride + j) * columns.across + columns.base, j, slots)
                    if t >= depth - 1:
                        self.finish(columns, t - (depth - 1), slots[-1])
                    for r in range(rows):
                        if turns == 1:
                            for d in range(depth - 1, 0, -1):
                                sums[r, d] = sums[r, d - 1]
                        sums[r, slots[-1] if turns > 1 else 0] = start
        self.end(columns)


# ---- any window ------------------------------------------------------------------------------------------------------


def convolve_window(
    work: Any,
    x: Any,
    filter: Any,
    y: Any,
    planes: Planes,
    taps: Taps,
    integers: Integers | None,
    finish: Any,
    code: Any,
) -> None:
    """Convolve by loops over the window's taps. An item: `lanes` channels of a row of outputs.

    integers: None for floats. code: (lanes, dtype of sums, source): which channel an output's is of: the "same", the
    "only" one there is, or its own by the "multiplier".
    """
    lanes, held, source = code
    blocks = (planes.channels + (lanes - 1)) // lanes
    for item in work.items():
        c = kl.minimum((item % blocks) * lanes, planes.channels - lanes)
        row = item // blocks
        n = row // planes.out_height
        y0 = (row % planes.out_height) * taps.step_down - planes.top
        channels = (kl.iota(dtypes.int32, lanes) + c.to(dtypes.int32)) // taps.multiplier.to(dtypes.int32)
        if integers is not None:
            x_zero = integers.x_zero if integers.zeros is None else integers.zeros[n]
        for ox in range(planes.out_width):
            x0 = ox * taps.step_across - planes.left
            total = kl.zeros(held, lanes)
            for i in range(taps.height):
                iy = y0 + i * taps.down
                if within(iy, planes.height):
                    for j in range(taps.width):
                        ix = x0 + j * taps.across
                        if within(ix, planes.width):
                            p = x + ((n * planes.height + iy) * planes.width + ix) * planes.pitch
                            if source == "same":
                                pixel = p.load(c, lanes).to(held)
                            elif source == "only":
                                pixel = p[0].to(held).splat(lanes)
                            elif integers is None:
                                pixel = kl.gather(p, channels)
                            else:
                                pixel = _spread(p, c, taps.multiplier, lanes, held)
                            tap = filter.load((i * taps.width + j) * planes.channels + c, lanes).to(held)
                            if integers is None:
                                total = kl.fma(pixel, tap, total)
                            else:
                                total = (pixel - x_zero.to(held)) * (tap - integers.filter_zero.to(held)) + total
            at = row * planes.out_width + ox
            if integers is not None and integers.scales is not None:
                found = total.to(f32) * integers.scales[n]
            else:
                found = total
            (y + at * planes.out_pitch).store(finish(found, at, c, lanes), c)


def _spread(p: Any, c: Any, multiplier: Any, lanes: int, dtype: DType) -> Any:
    """p[(c + i) // multiplier] as this dtype for every lane i; integers of a byte have no gather."""
    found = kl.zeros(dtype, lanes)
    for i in range(lanes):
        found = kl.insert(found, i, p[(c + i) // multiplier].to(dtype))
    return found


def add_window(
    form: Depthwise, slide: Slide, build: Builder, family: Any, image: Any, numbers: Any, **code: Any
) -> None:
    """Add the step of a family that is `convolve_window`. image: address and pitch; numbers: words after `taps`."""
    window, (address, pitch), lanes = slide.window, image, code["lanes"]
    planes = planes_of(form, slide, pitch)
    source = "same" if form.multiplier == 1 else "only" if form.input.shape[3] == 1 else "multiplier"
    taps = Taps(*window.size, *window.strides, *window.dilations, form.multiplier)
    words = [address, build.pointer(form.filter), build.pointer(form.output), *planes, *taps, *numbers]
    items = form.output.shape[0] * planes.out_height * -(-planes.channels // lanes)
    size = 4 * planes.out_width * lanes * window.size[0] * window.size[1]
    build.step(family.code(source=source, **code), words, items, chunk=grain(size, items))
