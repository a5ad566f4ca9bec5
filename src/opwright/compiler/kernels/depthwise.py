"""Depthwise convolutions: kernel selection (the kernel, tile and work items), and the kernels of float32.

Lives here: the selectors of `Depthwise`, on floats and on integers; the two families of float32.
Not here: the kernels of integers (depthwise_int8.py), common loops (depthwise_rows.py), tiles and packed filters of
integers (register_tiles.py), convolutions that mix channels (convolution_f32.py), epilogues (epilogue.py).

In the kernels of float32 vectors lie along the channels. Two rows of outputs at a time share the pixels that they
load. The filter is read in place, as in the file. The last channels are a vector that overlaps the one before it, so
that no lane is masked.

Floats with a filter of integers are rounded first (quantization.py), each image with its own zero point and scale.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.buffers import Buffer, Ring, Window
from ..loops.ops import Contract, Depthwise
from ..target import host
from ..tuning.choices import DEPTHWISE_ROWS, DEPTHWISE_TEAMS
from . import NoKernel, selector
from .contractions_winograd import is_finite
from .depthwise_int8 import depthwise_any_int8, depthwise_int8, flip_of
from .depthwise_rows import (
    TAP_LIMIT,
    Bands,
    Columns,
    Planes,
    RowSums,
    Taps,
    WindowGeometry,
    add_window,
    bands_of,
    convolve_window,
    geometry_of,
    is_inside,
    line_of,
    planes_of,
)
from .epilogue import epilogue_of, without_bias
from .grouped_convolution_f32 import add_if_grouped
from .grouped_convolution_int8 import add_if_grouped_int8
from .quantization import rounded_rows
from .register_tiles import (
    FOURS,
    deep_on,
    depthwise_columns_of,
    depthwise_parts_of,
    depthwise_tile_of,
    depthwise_tiles_of,
    fill_initial_sums,
    lane_bytes,
    pack_depthwise,
)
from .tiling import LINE_BYTES, grain, vector_lanes

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder


AHEAD = 32
"""Floats by which a filter is prefetched on x86: an item's weights are as many cache lines as taps, far apart, which
networks evict between two runs. Items of images of 7 x 7 pixels waited for them as long as they computed (Zen 4)."""


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
    """Convolve. Items: `lanes` channels of a segment of a band of rows. rows > 1 requires bands.down = 1.

    dilated: bands.across may be above 1, with a stride of 1.
    """
    finish, unrolled = epilogue.bind(more), work.target.is_aarch64
    blocks = (planes.channels + (lanes - 1)) // lanes
    for item in work.items():
        segment = item // blocks % bands.segments
        band = item // (blocks * bands.segments)
        n = band // bands.count
        c = kl.minimum((item % blocks) * lanes, planes.channels - lanes)
        tap = _taps(work, filter + c, planes.channels, size, lanes)
        for i in range(size[0] * size[1] if work.target.is_x86 else 0):
            (filter + c).prefetch(i * planes.channels + AHEAD)
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
            sums.along_row(start, output, c, bands, segment, dilated)


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


BYTES = (dtypes.int8, dtypes.uint8)
BAND = 8
"""Rows of outputs of a work item, if items are numerous enough."""
RUN = 128
"""Pixels of the output of a work item in each channel, about, so that its initial loads are negligible."""


def _lanes(channels: int, window: Window) -> int:
    """Return the channels of an item: those of a vector; of a cache line for strided columns on x86.

    Few outputs use a pixel of strided columns, so that loads dominate. To fetch each line again for its other half
    takes 1.3 to 1.5 times as long.
    """
    target = host()
    size = lane_bytes(target)
    if window.strides[1] > 1 and target.is_x86:
        size = size * min(target.vector_bytes, LINE_BYTES) // LINE_BYTES
    return vector_lanes(channels, size)


def default_rows(out_height: int, several: bool = False) -> int:
    """Return the rows of outputs that are computed at a time by default.

    One if the last would be computed twice at a noticeable cost. several: whether items of several vectors take the
    registers.
    """
    return 1 if several or out_height == 1 or (out_height % 2 and out_height < 2 * BAND) else 2


def _rows(geometry: WindowGeometry, n: int, channels: int, lanes: int, build: Builder) -> int:
    """Return the rows of outputs that are computed at a time, and so share the lines that they read."""
    out_height, out_width, window = geometry[2:]
    if window.dilations[0] > 1 or window.strides[0] > window.size[0]:
        return 1
    ways = [rows for rows in (1, 2, 4) if rows <= out_height]
    default = default_rows(out_height, lanes > vector_lanes(channels, lane_bytes(host())))
    return build.choose(
        DEPTHWISE_ROWS, ways, default, n, out_height, out_width, channels, *window.size, window.strides[0]
    )


@selector(Depthwise)
def select_depthwise_f32(form: Depthwise, build: Builder) -> None:
    """Add the step of a depthwise convolution of float32."""
    x, out = form.input, form.output
    if (x.dtype, form.filter.dtype) != (dtypes.float32, dtypes.float32):
        raise NoKernel(f"depthwise convolution of {x.dtype.name} with {form.filter.dtype.name}")
    if form.filter.parent is not None:
        raise NoKernel("a filter that is a slice")
    grouped = _as_groups(form) if is_finite(form.filter) else None
    if grouped is not None and add_if_grouped(grouped, build):
        return
    geometry, pixels = geometry_of(form), (build.pointer(x), x.pitch)
    n, channels, size, strides = x.shape[0], out.shape[3], geometry.window.size, geometry.window.strides
    dilated = geometry.window.dilations[1] > 1
    if form.multiplier != 1 or size[0] * size[1] > TAP_LIMIT or (dilated and strides[1] > 1):
        if isinstance(x, Ring):
            raise NoKernel("any window over a ring")
        epilogue, more = epilogue_of(form.expr, form.operands, out, build)
        constants = {"lanes": vector_lanes(channels), "more": len(more), "epilogue": epilogue}
        add_window(form, geometry, build, depthwise_any_f32, pixels, more, **constants)
        return
    bias, expr, operands = without_bias(form.expr, form.operands)
    epilogue, more = epilogue_of(expr, operands, out, build)
    lanes = _lanes(channels, geometry.window)
    blocks = -(-channels // lanes)
    rows = _rows(geometry, n, channels, lanes, build)
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
    few = n * blocks * -(-geometry.out_height // BAND) < BAND
    bands = bands_of(form, geometry, rows if few else BAND, lanes)
    arrays = (
        build.pointer(x),
        build.pointer(form.filter),
        0 if bias is None else build.pointer(bias),
        build.pointer(out),
    )
    items = n * blocks * bands.count * bands.segments
    size_of_item = (strides[1] ** 2 + 1) * bands.columns * bands.size * lanes * 4
    build.step(
        code, [*arrays, *planes_of(form, geometry, x.pitch), *bands, *more], items, chunk=grain(size_of_item, items)
    )


def _as_groups(form: Depthwise) -> Contract | None:
    """Return a convolution of several outputs for each channel as one in groups of a channel; None for others."""
    filter = form.filter
    if form.multiplier == 1 or filter.constant is None or isinstance(form.input, Ring):
        return None
    taps = np.ascontiguousarray(filter.constant.transpose(2, 0, 1)[..., None])
    filters = Buffer(f"{filter.name}.groups", filter.dtype, taps.shape, taps)
    zeros = form.input_zero, form.filter_zero
    groups = form.input.shape[3]
    return Contract(form.output, form.input, filters, form.operands, form.expr, form.window, groups, *zeros)


@selector(Depthwise)
def select_depthwise_int8(form: Depthwise, build: Builder) -> None:
    """Add the step of a depthwise convolution of int8, uint8, int16, or floats to be rounded."""
    x, filter, out = form.input, form.filter, form.output
    if not (x.dtype in (*BYTES, dtypes.int16) or form.rounding) or filter.dtype not in (*BYTES, dtypes.int4):
        raise NoKernel(f"depthwise convolution of {x.dtype.name} with {filter.dtype.name}")
    if filter.parent is not None:
        raise NoKernel("a filter that is a slice")
    grouped = None if form.rounding or x.dtype is dtypes.int16 else _as_groups(form)
    if grouped is not None and add_if_grouped_int8(grouped, build):
        return
    unrolled = _is_unrolled(form)
    if not unrolled and filter.dtype is dtypes.int4:
        if filter.constant is None:
            raise NoKernel(f"a computed filter of {filter.dtype.name}")
        taps = filter.constant.astype(np.int8)
        form = dataclasses.replace(form, filter=Buffer(f"{filter.name}.bytes", dtypes.int8, filter.shape, taps))
    if isinstance(x, Ring) and not unrolled:
        raise NoKernel("any window over a ring")
    size = lane_bytes(host()) if unrolled else 8 if x.dtype is dtypes.int16 else 4
    (_add_unrolled if unrolled else _add_any_window)(form, vector_lanes(out.shape[-1], size), build)


def _is_unrolled(form: Depthwise) -> bool:
    window, filter = form.window, form.filter
    return (
        form.input.dtype is not dtypes.int16
        and filter.constant is not None
        and depthwise_parts_of(filter, form.filter_zero, deep_on(host())) <= 2
        and form.multiplier == 1
        and window.size[0] * window.size[1] <= TAP_LIMIT
        and (window.dilations[1] == 1 or window.strides[1] == 1)
    )


def _add_unrolled(form: Depthwise, lanes: int, build: Builder) -> None:
    x, out = form.input, form.output
    geometry = geometry_of(form)
    out_height, out_width, window = geometry[2:]
    bias, expr, operands = (None, form.expr, form.operands) if form.rounding else without_bias(form.expr, form.operands)
    epilogue, more = epilogue_of(expr, operands, out, build)
    n, channels = out.shape[0], out.shape[3]
    image, pitch, zeros, scales = _rounded(form, build) if form.rounding else (build.pointer(x), x.pitch, 0, 0)
    deep = deep_on(host())
    parts = depthwise_parts_of(form.filter, form.filter_zero, deep)
    tiles = depthwise_tiles_of(host(), window, out_height, parts, lanes)
    teams = build.choose(
        DEPTHWISE_TEAMS,
        range(1, len(tiles) + 1),
        1 + tiles.index(depthwise_tile_of(tiles, out_height)),
        n,
        out_height,
        out_width,
        channels,
        *window.size,
        window.strides[0],
    )
    tile = tiles[teams - 1]
    rows = tile.rows
    signed = x.dtype is not dtypes.uint8
    zero = -1 if form.rounding else form.input_zero + (flip_of(host(), signed) if deep == FOURS else 0)
    assert form.filter.constant is not None
    taps = form.filter.constant.reshape(*window.size, channels)
    blocks = -(-channels // lanes)
    packed = build.packed(
        (blocks, *tile.packed),
        np.int8 if deep == FOURS else np.int16,
        lambda o: pack_depthwise(o, taps, form.filter_zero, tile),
        key=(form.filter, "depthwise", tile.size, tile.strides, tile.team, lanes, deep, form.filter_zero),
    )
    initial = None if bias is None else bias.constant
    starts = build.packed(
        (channels,),
        np.int32,
        lambda o: fill_initial_sums(o, taps, form.filter_zero, initial, zero),
        key=(form.filter, "no bias" if bias is None else bias, "depthwise starts", zero, form.filter_zero),
    )
    columns = depthwise_columns_of(host(), tile, out, out_width, epilogue)
    code = depthwise_int8.code(
        tile=tile,
        signed=signed,
        dilated=window.dilations[1] > 1,
        rounded=bool(form.rounding),
        together=columns,
        more=len(more),
        epilogue=epilogue,
    )
    bands = bands_of(form, geometry, rows * max(1, RUN // (out_width * rows)), lanes)
    words = [image, packed, starts, build.pointer(out), *planes_of(form, geometry, pitch), *bands, zero, zeros, scales]
    items = n * blocks * bands.count * bands.segments
    scratch = (bands.columns + columns) * rows * lanes  # indices of the lookups after a row of columns
    build.step(code, [*words, *more], items, scratch, grain(12 * bands.columns * bands.size * lanes, items))


def _rounded(form: Depthwise, build: Builder) -> tuple[Any, int, Any, Any]:
    """Round images; return their address and pitch, the zero points and the scales."""
    x = form.input
    n, columns = x.shape[0], math.prod(x.shape[1:])
    if x.pitch != x.shape[3]:
        raise NoKernel("images of a slice to be rounded")
    rounded = rounded_rows(build, x, n, columns, columns, form.rounding == "symmetric", align=1)
    return rounded.x, x.pitch, rounded.zeros, rounded.scales


def _add_any_window(form: Depthwise, lanes: int, build: Builder) -> None:
    x = form.input
    epilogue, more = epilogue_of(form.expr, form.operands, form.output, build)
    image, pitch, zeros, scales = _rounded(form, build) if form.rounding else (build.pointer(x), x.pitch, 0, 0)
    code = {
        "lanes": lanes,
        "x_dtype": dtypes.int8 if form.rounding else x.dtype,
        "filter_dtype": form.filter.dtype,
        "rounded": bool(form.rounding),
        "more": len(more),
        "epilogue": epilogue,
    }
    (_, height, width, _), (_, out_height, out_width, _) = x.shape, form.output.shape
    geometry = WindowGeometry(height, width, out_height, out_width, form.window)
    numbers = [form.input_zero, form.filter_zero, zeros, scales, *more]
    add_window(form, geometry, build, depthwise_any_int8, (image, pitch), numbers, **code)
