"""Depthwise convolution of float32: each channel by itself.

Lives here: its two families.
Not here: the selector (depthwise.py), going along a row of the image (depthwise_rows.py), int8 (depthwise_int8.py),
convolutions that mix channels (convolution_f32.py), epilogues (epilogue.py).

Vectors lie along the channels. Two rows of outputs at a time share the pixels that they load. The filter is read where
it lies in the file.

The last channels are done by a vector that overlaps the one before it, so that no lane is masked.
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from .. import language as kl
from ..language import f32, i64, ptr
from .depthwise_rows import Bands, Columns, Planes, RowSums, Taps, convolve_window, line_of, within


@kl.family
def depthwise_f32(
    work,
    x: ptr[f32],
    filter: ptr[f32],
    bias: ptr[f32],
    y: ptr[f32],
    planes: Planes,
    bands: Bands,
    *more: i64,
    size: tuple,
    strides: tuple,
    rows: int,
    lanes: int,
    has_bias: bool,
    dilated: bool,
    epilogue: Any,
):
    """An item: `lanes` channels of a band of rows. rows > 1 is for bands.down = 1.

    dilated: bands.across may be above 1, with a stride of 1.
    """
    finish, unrolled = epilogue.bind(more), work.target.is_aarch64
    blocks = (planes.channels + (lanes - 1)) // lanes
    for item in work.items():
        rest = item // blocks
        n = rest // bands.count
        c = kl.minimum((item % blocks) * lanes, planes.channels - lanes)
        tap = _taps(work, filter + c, planes.channels, size, lanes)
        start = (bias + c).load(0, lanes) if has_bias else kl.zeros(f32, lanes)
        first = (rest % bands.count) * bands.size
        for row in range(first, kl.minimum(first + bands.size, planes.out_height), rows):
            oy = kl.minimum(row, planes.out_height - rows)
            lines = []  # the rows of the image that these rows of outputs see: whether there is one, and where
            for i in range((rows - 1) * strides[0] + size[0]):
                iy = oy * strides[0] - planes.top + i * bands.down
                line = line_of(n * planes.height + iy, bands)
                lines.append((within(iy, planes.height), x + (line * planes.width * planes.pitch + c)))
            at = (n * planes.out_height + oy) * planes.out_width
            sums = _Sums(planes, size[1], strides[1], rows, lanes, unrolled)
            sums.lines, sums.tap, sums.y, sums.ending = lines, tap, y, finish
            sums.high, sums.step = size[0], strides[0]
            sums.along_row(start, at, c, bands, dilated)


class _Sums(RowSums):
    """lines: the rows of the image, whether there is one, and where; tap: of `_taps`; high, step: the window's height
    and stride, down."""

    lines: Any
    tap: Any
    y: Any
    ending: Any
    high: int
    step: int

    def add(self, column: Any, j: int, slots: list[int]) -> None:
        """Add each pixel to the rows that see it; what lies outside of the image is added to nothing."""
        sums = self.sums
        if within(column, self.planes.width):
            for i in range(len(self.lines)):
                inside, line = self.lines[i]
                if inside:
                    pixel = line.load(column * self.planes.pitch, self.lanes)
                    for d in range(self.depth):
                        for r in range(self.rows):
                            ky, kx = i - r * self.step, d * self.stride + j
                            if 0 <= ky < self.high and kx < self.size:
                                sums[r, slots[d]] = kl.fma(pixel, self.tap(ky, kx), sums[r, slots[d]])

    def finish(self, columns: Columns, done: Any, slot: int) -> None:
        """Write one output of each row."""
        for r in range(self.rows):
            row = columns.at + r * self.planes.out_width + done * columns.across
            found = self.ending(self.sums[r, slot], row, columns.c, self.lanes)
            (self.y + row * self.planes.out_pitch).store(found, columns.c)


def _taps(work: Any, filter: Any, channels: Any, size: tuple[int, int], lanes: int) -> Any:
    """A function (i, j) that gives the filter's vector there: from registers, where there are enough of them, or from
    a copy on the stack, which addresses known to the code reach."""
    n = size[0] * size[1]
    if n * -(-lanes // work.lanes(f32)) <= work.target.registers // 2:
        vectors = [filter.load(i * channels, lanes) for i in range(n)]
        return lambda i, j: vectors[i * size[1] + j]
    near = kl.stack(f32, n * lanes)
    for i in range(n):
        near.store(filter.load(i * channels, lanes), i * lanes)
    return lambda i, j: near.load((i * size[1] + j) * lanes, lanes)


@kl.family
def depthwise_any_f32(
    work,
    x: ptr[f32],
    filter: ptr[f32],
    y: ptr[f32],
    planes: Planes,
    taps: Taps,
    *more: i64,
    lanes: int,
    source: str,
    epilogue: Any,
):
    """Any window: see `convolve_window`."""
    convolve_window(work, x, filter, y, planes, taps, None, epilogue.bind(more), (lanes, dtypes.float32, source))
