"""Depthwise convolutions of any type: their geometry, and the common loops of their kernels.

Lives here: `WindowGeometry`, `geometry_of`; `Planes`, `Bands`, `Taps`, the words of the kernels; `RowSums`, the loop
along a row of the image; `convolve_window`, the loop over the taps of any window.
Not here: the families and their arithmetic (depthwise.py, depthwise_int8.py), tiles (register_tiles.py).

A kernel moves along a row of the image and adds each column that it loads to all outputs whose windows contain it.
These are in registers: the width of the window, in strides. So every pixel of a row of outputs is loaded once for each
row of the window, and padding costs a comparison.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core import dtypes
from ...core.dtypes import DType
from .. import language as kl
from ..loops.buffers import Ring, Window
from ..loops.ops import Depthwise
from .tiling import L1_BYTES, LINE_BYTES, grain

if TYPE_CHECKING:
    from ..language import Pointer, Value
    from ..loops.plan_builder import Builder

TAP_LIMIT = 64
"""Taps of an unrolled window, at most; larger ones are loops."""


LEAST_COLUMNS = 8
"""Columns of outputs of an item, at least: the columns next to them are loaded again."""
SUM_LIMIT = 12
"""Outputs whose windows contain a pixel, at most; each has a sum in a register."""


class WindowGeometry(NamedTuple):
    """A window over images: sizes of the input and of the output, and the window."""

    height: int
    width: int
    out_height: int
    out_width: int
    window: Window

    def transposed(self) -> WindowGeometry:
        """Exchange rows and columns."""
        (kh, kw), (sh, sw), (down, across), (top, bottom, left, right) = (
            self.window.size,
            self.window.strides,
            self.window.dilations,
            self.window.padding,
        )
        window = Window((kw, kh), (sw, sh), (across, down), (left, right, top, bottom))
        return WindowGeometry(self.width, self.height, self.out_width, self.out_height, window)


def geometry_of(form: Depthwise) -> WindowGeometry:
    """Return the geometry of a form; images of one column are treated as one row, whose memory layout is the same.

    Kernels keep the sums of a row in registers, and load each of its pixels once.
    """
    (_, height, width, _), (_, out_height, out_width, _), window = form.input.shape, form.output.shape, form.window
    geometry = WindowGeometry(height, width, out_height, out_width, window)
    column = width == out_width == window.size[1] == 1 and window.padding[2] == 0
    few = window.size[0] > 1 and -(-window.size[0] // window.strides[0]) <= SUM_LIMIT
    if isinstance(form.input, Ring) or not (column and few and 1 in (window.strides[0], window.dilations[0])):
        return geometry
    return geometry._replace(window=replace(window, strides=(window.strides[0], 1))).transposed()


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
    """Rows of outputs in `count` bands of `size`, each in `segments` of `columns` columns; dilations of the window;
    ring, shift: see `line_of`."""

    down: Any
    across: Any
    count: Any
    size: Any
    segments: Any
    columns: Any
    ring: Any
    shift: Any


class Taps(NamedTuple):
    """Any window: sizes, strides and dilations; outputs of each channel."""

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
    """`count` outputs of a row, `across` apart, from `output` on, of channels from c on; the window of the first begins
    with column `base` of the image."""

    output: Value
    c: Value
    count: Any
    base: Any
    across: Value | int


def planes_of(form: Depthwise, geometry: WindowGeometry, pitch: int) -> Planes:
    """Return the words of the images. pitch: elements from pixel to pixel of the input."""
    height, width, out_height, out_width, window = geometry
    top, _, left, _ = window.padding
    channels = form.output.shape[3]
    return Planes(height, width, pitch, out_height, out_width, form.output.pitch, channels, top, left)


def bands_of(form: Depthwise, geometry: WindowGeometry, size: int, lanes: int) -> Bands:
    """Return the words of the rows of outputs, in bands of this size. lanes: channels of an item."""
    x, first = form.input, max(0, -form.window.padding[0])
    ring = (x.lines, (first + x.shift) % x.lines - first) if isinstance(x, Ring) else (x.shape[0] * x.shape[1], 0)
    columns = _columns_of_items(form, geometry, size, lanes)
    segments = max(1, -(-geometry.out_width // columns))
    return Bands(*geometry.window.dilations, -(-geometry.out_height // size), size, segments, columns, *ring)


def _columns_of_items(form: Depthwise, geometry: WindowGeometry, size: int, lanes: int) -> int:
    """Return the columns of outputs of an item, of `lanes` channels of `size` rows.

    The items of the other channels of a cache line follow: the first-level cache keeps it until then. Floats lose by
    it: two items share a line, and its second half costs less than columns that are loaded again.
    """
    window, width = geometry.window, geometry.out_width
    source, out = form.input, form.output
    if 2 * lanes * source.dtype.size >= LINE_BYTES or window.dilations[1] > 1 or form.rounding:
        return max(1, width)
    rows = (min(size, geometry.out_height) - 1) * window.strides[0] + window.size[0]
    read = rows * window.strides[1] * min(source.pitch * source.dtype.size, LINE_BYTES)
    written = size * min(out.pitch * out.dtype.size, LINE_BYTES)
    most = max(LEAST_COLUMNS, 3 * L1_BYTES // 4 // (read + written))
    return max(1, -(-width // max(1, -(-width // most))))


def is_inside(index: Value, extent: Value) -> Value:
    """Return 0 <= index < extent, by one comparison."""
    return index.to(dtypes.uint64) < extent.to(dtypes.uint64)


def line_of(row: Value, bands: Bands) -> Value:
    """Return the line of a row of the images in memory: `shift` further, modulo the length of the ring."""
    line = row + bands.shift
    return kl.select(line < bands.ring, line, line - bands.ring)


class RowSums(ABC):
    """Partial sums of `rows` rows of outputs, while the kernel moves along a row of the image.

    The iteration that loads the last column of a window completes its output. size, stride: of the window, across.
    unrolled: whether the loop is unrolled by the number of outputs whose windows contain a column, so that no sums move
    between registers.
    """

    def __init__(self, planes: Planes, size: int, stride: int, rows: int, lanes: int, unrolled: bool) -> None:
        self.planes, self.size, self.stride, self.rows, self.lanes = planes, size, stride, rows, lanes
        self.unrolled, self.depth = unrolled, -(-size // stride)
        self.sums: Any = None

    def begin(self, columns: Columns) -> None:  # noqa: B027  a hook
        """Prepare for the columns, before the first of them is loaded."""

    @abstractmethod
    def add(self, column: Any, j: int, slots: list[int]) -> None:
        """Add a column of the image, first used by tap `j` of a stride.

        slots: indices of the sums of an output, by strides from its first column.
        """

    @abstractmethod
    def finish(self, columns: Columns, done: Any, slot: int) -> None:
        """Store the output `done`, whose sums are in a slot."""

    def end(self, columns: Columns) -> None:  # noqa: B027  a hook
        """Store buffered outputs, after the last column."""

    def along_row(self, start: Value, output: Any, c: Any, bands: Bands, segment: Value, dilated: bool) -> None:
        """Compute a segment of a row. start: initial sums.

        dilated: columns with equal remainders by `across` are one row of an image without dilation.
        """
        if dilated:
            for phase in range(kl.minimum(bands.across, self.planes.out_width)):  # the dilation of a file is any int32
                count = (self.planes.out_width - phase + (bands.across - 1)) // bands.across
                self.along(start, Columns(output + phase, c, count, phase - self.planes.left, bands.across))
        else:
            first = segment * bands.columns
            count = kl.minimum(bands.columns, self.planes.out_width - first)
            self.along(start, Columns(output + first, c, count, first * self.stride - self.planes.left, 1))

    def along(self, start: Value, columns: Columns) -> None:
        """Compute some columns of outputs."""
        depth, rows = self.depth, self.rows
        self.begin(columns)
        self.sums = sums = kl.registers(start.dtype, self.lanes, rows, depth)
        for r in range(rows):
            for d in range(depth):
                sums[r, d] = start
        unroll, end = depth if self.unrolled else 1, columns.count + (depth - 1)
        for first in range(0, end, unroll):
            for u in range(unroll):
                t = kl.value(first) + u
                if t < end if u else True:
                    slots = [d if unroll == 1 else (u - d) % depth for d in range(depth)]
                    for j in range(min(self.stride, self.size)):  # columns between windows are skipped
                        self.add((t * self.stride + j) * columns.across + columns.base, j, slots)
                    if t >= depth - 1:
                        self.finish(columns, t - (depth - 1), slots[-1])
                    for r in range(rows):
                        if unroll == 1:
                            for d in range(depth - 1, 0, -1):
                                sums[r, d] = sums[r, d - 1]
                        sums[r, slots[-1] if unroll > 1 else 0] = start
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
    """Convolve by loops over the taps of the window. Items: `lanes` channels of a row of outputs.

    integers: None for floats. code: (lanes, dtype of sums, source): the input channel of an output channel: the "same",
    the "only" one, or by the "multiplier".
    """
    lanes, dtype, source = code
    blocks = (planes.channels + (lanes - 1)) // lanes
    for item in work.items():
        c = kl.minimum((item % blocks) * lanes, planes.channels - lanes)
        row = item // blocks
        n = row // planes.out_height
        y0 = (row % planes.out_height) * taps.step_down - planes.top
        channels = (kl.iota(dtypes.int32, lanes) + c.to(dtypes.int32)) // taps.multiplier.to(dtypes.int32)
        x_zero = kl.value(0)
        if integers is not None:
            x_zero = integers.x_zero if integers.zeros is None else integers.zeros[n]
        for ox in range(planes.out_width):
            x0 = ox * taps.step_across - planes.left
            total = kl.zeros(dtype, lanes)
            for i in range(taps.height):
                iy = y0 + i * taps.down
                if is_inside(iy, planes.height):
                    for j in range(taps.width):
                        ix = x0 + j * taps.across
                        if is_inside(ix, planes.width):
                            p = x + ((n * planes.height + iy) * planes.width + ix) * planes.pitch
                            if source == "same":
                                pixel = p.load(c, lanes).to(dtype)
                            elif source == "only":
                                pixel = p[0].to(dtype).splat(lanes)
                            elif integers is None:
                                pixel = kl.gather(p, channels)
                            else:
                                pixel = _repeated(p, c, taps.multiplier, lanes, dtype)
                            tap = filter.load((i * taps.width + j) * planes.channels + c, lanes).to(dtype)
                            if integers is None:
                                total = kl.fma(pixel, tap, total)
                            else:
                                total = (pixel - x_zero.to(dtype)) * (tap - integers.filter_zero.to(dtype)) + total
            output = row * planes.out_width + ox
            row_scale = None if integers is None or integers.scales is None else integers.scales[n]
            (y + output * planes.out_pitch).store(finish(total, output, c, lanes, row_scale=row_scale), c)


def _repeated(p: Pointer, c: Value, multiplier: Value, lanes: int, dtype: DType) -> Value:
    """Load p[(c + i) // multiplier] as this dtype for every lane i; integers of a byte have no gather."""
    channels = kl.zeros(dtype, lanes)
    for i in range(lanes):
        channels = kl.insert(channels, i, p[(c + i) // multiplier].to(dtype))
    return channels


def add_window(
    form: Depthwise, geometry: WindowGeometry, build: Builder, family: Any, image: Any, numbers: Any, **code: Any
) -> None:
    """Add the step of a family of `convolve_window`. image: address and pitch; numbers: words after `taps`."""
    window, (address, pitch), lanes = geometry.window, image, code["lanes"]
    planes = planes_of(form, geometry, pitch)
    source = "same" if form.multiplier == 1 else "only" if form.input.shape[3] == 1 else "multiplier"
    taps = Taps(*window.size, *window.strides, *window.dilations, form.multiplier)
    words = [address, build.pointer(form.filter), build.pointer(form.output), *planes, *taps, *numbers]
    items = form.output.shape[0] * planes.out_height * -(-planes.channels // lanes)
    size = 4 * planes.out_width * lanes * window.size[0] * window.size[1]
    build.step(family.code(source=source, **code), words, items, chunk=grain(size, items))
