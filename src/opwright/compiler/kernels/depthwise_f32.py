"""Depthwise convolution of float32: each channel by itself.

Lives here: the maker of Depthwise on floats and its two families.
Not here: going along a row of the image (depthwise_rows.py), int8 (depthwise_int8.py), convolutions that mix channels
(convolution_f32.py), epilogues (epilogue.py).

Vectors lie along the channels. Two rows of outputs at a time share the pixels that they load. The filter is read where
it lies in the file.

The last channels are done by a vector that overlaps the one before it, so that no lane is masked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import dtypes
from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.forms import Depthwise, Ring, Window
from ..target import host
from ..tuning.choices import DEPTHWISE_ROWS
from . import Unmade, maker
from .depthwise_rows import (
    LARGEST,
    Bands,
    Columns,
    Planes,
    RowSums,
    Slide,
    Taps,
    add_window,
    bands_of,
    convolve_window,
    line_of,
    planes_of,
    slide_of,
    within,
)
from .depthwise_tiles import lane_bytes
from .epilogue import epilogue_of, without_bias
from .gemm_widened import LINE
from .tiling import grain, vector_lanes

if TYPE_CHECKING:
    from ..loops.planning import Builder

BAND = 8
"""Rows of outputs that a work item does, where there are enough items."""


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


def _lanes(channels: int, window: Window) -> int:
    """Channels of an item: those of a vector; where columns are strided on x86, those of a cache line.

    Few outputs see a pixel there, so that loads are most of the work. To fetch each line again for its other half takes
    1.3 to 1.5 times as long as this.
    """
    target = host()
    size = lane_bytes(target)
    if window.strides[1] > 1 and target.is_x86:
        size = size * min(target.vector_bytes, LINE) // LINE
    return vector_lanes(channels, size)


def rows_together(out_height: int, several: bool = False) -> int:
    """Rows of outputs that are computed at a time by default: one where the last would be done twice, and that
    counts. several: whether registers are taken by items of several vectors."""
    return 1 if several or out_height == 1 or (out_height % 2 and out_height < 2 * BAND) else 2


def _rows(slide: Slide, n: int, channels: int, lanes: int, build: Builder) -> int:
    """Rows of outputs that are computed at a time: together they read each line between them."""
    out_height, out_width, window = slide[2:]
    if window.dilations[0] > 1 or window.strides[0] > window.size[0]:
        return 1
    ways = [rows for rows in (1, 2, 4) if rows <= out_height]
    default = rows_together(out_height, lanes > vector_lanes(channels, lane_bytes(host())))
    return build.choose(
        DEPTHWISE_ROWS, ways, default, n, out_height, out_width, channels, *window.size, window.strides[0]
    )


@maker(Depthwise)
def make_depthwise_f32(form: Depthwise, build: Builder) -> None:
    """Of float32."""
    x, out = form.input, form.output
    if (x.dtype, form.filter.dtype) != (dtypes.float32, dtypes.float32):
        raise Unmade(f"depthwise convolution of {x.dtype.name} with {form.filter.dtype.name}")
    if form.filter.parent is not None:
        raise Unmade("a filter that is a slice")
    slide, pixels = slide_of(form), (build.pointer(x), x.pitch)
    n, wide, size, strides = x.shape[0], out.shape[3], slide.window.size, slide.window.strides
    dilated = slide.window.dilations[1] > 1
    if form.multiplier != 1 or size[0] * size[1] > LARGEST or (dilated and strides[1] > 1):
        if isinstance(x, Ring):
            raise Unmade("any window over a ring")
        epilogue, more = epilogue_of(form.expr, form.operands, out, build)
        constants = {"lanes": vector_lanes(wide), "more": len(more), "epilogue": epilogue}
        add_window(form, slide, build, depthwise_any_f32, pixels, more, **constants)
        return
    bias, expr, operands = without_bias(form.expr, form.operands)
    epilogue, more = epilogue_of(expr, operands, out, build)
    lanes = _lanes(wide, slide.window)
    blocks = -(-wide // lanes)
    rows = _rows(slide, n, wide, lanes, build)
    code = depthwise_f32.code(
        size=size,
        strides=strides,
        rows=rows,
        lanes=lanes,
        has_bias=bias is not None,
        dilated=dilated,
        more=len(more),
        epilogue=epilogue,
    )
    few = n * blocks * -(-slide.out_height // BAND) < BAND
    bands = bands_of(form, slide, rows if few else BAND)
    arrays = (
        build.pointer(x),
        build.pointer(form.filter),
        0 if bias is None else build.pointer(bias),
        build.pointer(out),
    )
    items = n * blocks * bands.count
    size_of_item = (slide.width * strides[1] + slide.out_width) * bands.size * lanes * 4
    build.step(
        code, [*arrays, *planes_of(form, slide, x.pitch), *bands, *more], items, chunk=grain(size_of_item, items)
    )
