"""Depthwise convolution of float32.

Lives here: its two families.
Not here: the selector (depthwise.py), the loop along a row of the image (depthwise_rows.py), int8 (depthwise_int8.py),
convolutions that mix channels (convolution_f32.py), epilogues (epilogue.py).

Vectors lie along the channels. Two rows of outputs at a time share the pixels that they load. The filter is read in
place, as in the file. The last channels are a vector that overlaps the one before it, so that no lane is masked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from .. import language as kl
from ..language import f32, i64, ptr
from .depthwise_rows import Bands, Columns, Planes, RowSums, Taps, convolve_window, is_inside, line_of

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work


@kl.family
def depthwise_f32(
    work: Work,
    x: ptr[f32],
    filter: ptr[f32],
    bias: ptr[f32],
    y: ptr[f32],
    planes: Planes,
    bands: Bands,
    *more: i64,
    size: tuple[int, int],
    strides: tuple[int, int],
    rows: int,
    lanes: int,
    has_bias: bool,
    dilated: bool,
    epilogue: Any,
) -> None:
    """Convolve. Items: `lanes` channels of a band of rows. rows > 1 requires bands.down = 1.

    dilated: bands.across may be above 1, with a stride of 1.
    """
    finish, unrolled = epilogue.bind(more), work.target.is_aarch64
    blocks = (planes.channels + (lanes - 1)) // lanes
    for item in work.items():
        band = item // blocks
        n = band // bands.count
        c = kl.minimum((item % blocks) * lanes, planes.channels - lanes)
        tap = _taps(work, filter + c, planes.channels, size, lanes)
        start = (bias + c).load(0, lanes) if has_bias else kl.zeros(f32, lanes)
        first = (band % bands.count) * bands.size
        for row in range(first, kl.minimum(first + bands.size, planes.out_height), rows):
            oy = kl.minimum(row, planes.out_height - rows)
            lines = []  # rows of the image under these rows of outputs: whether inside, and address
            for i in range((rows - 1) * strides[0] + size[0]):
                iy = oy * strides[0] - planes.top + i * bands.down
                line = line_of(n * planes.height + iy, bands)
                lines.append((is_inside(iy, planes.height), x + (line * planes.width * planes.pitch + c)))
            output = (n * planes.out_height + oy) * planes.out_width
            sums = _FloatSums(planes, size[1], strides[1], rows, lanes, unrolled)
            sums.lines, sums.tap, sums.y, sums.ending = lines, tap, y, finish
            sums.high, sums.step = size[0], strides[0]
            sums.along_row(start, output, c, bands, dilated)


class _FloatSums(RowSums):
    """Sums of floats. lines: rows of the image, whether inside, and address; tap: of `_taps`; high, step: height of the
    window and stride, down."""

    lines: list[tuple[Value, Pointer]]
    tap: Callable[[int, int], Value]
    y: Pointer
    ending: Callable[..., Value]
    high: int
    step: int

    def add(self, column: Any, j: int, slots: list[int]) -> None:
        """Add each pixel to the outputs whose windows contain it, except outside of the image."""
        sums = self.sums
        if is_inside(column, self.planes.width):
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
            row = columns.output + r * self.planes.out_width + done * columns.across
            result = self.ending(self.sums[r, slot], row, columns.c, self.lanes)
            (self.y + row * self.planes.out_pitch).store(result, columns.c)


def _taps(
    work: Work, filter: Pointer, channels: Value, size: tuple[int, int], lanes: int
) -> Callable[[int, int], Value]:
    """Return a function (i, j) of the vectors of the filter.

    They are in registers if these suffice; otherwise in a copy on the stack, at constant addresses.
    """
    n = size[0] * size[1]
    if n * -(-lanes // work.lanes(f32)) <= work.target.registers // 2:
        vectors = [filter.load(i * channels, lanes) for i in range(n)]
        return lambda i, j: vectors[i * size[1] + j]
    copy = kl.stack(f32, n * lanes)
    for i in range(n):
        copy.store(filter.load(i * channels, lanes), i * lanes)
    return lambda i, j: copy.load((i * size[1] + j) * lanes, lanes)


@kl.family
def depthwise_any_f32(
    work: Work,
    x: ptr[f32],
    filter: ptr[f32],
    y: ptr[f32],
    planes: Planes,
    taps: Taps,
    *more: i64,
    lanes: int,
    source: str,
    epilogue: Any,
) -> None:
    """Convolve with any window: see `convolve_window`."""
    convolve_window(work, x, filter, y, planes, taps, None, epilogue.bind(more), (lanes, dtypes.float32, source))
