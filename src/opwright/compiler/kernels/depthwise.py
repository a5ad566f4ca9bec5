"""Kernel selection of depthwise convolutions: the kernel, tile and work items.

Lives here: the selectors of `Depthwise`, on floats and on integers.
Not here: the kernels (depthwise_f32.py, depthwise_int8.py), their common loops (depthwise_rows.py), tiles and packed
filters (depthwise_tiles.py).

Floats with a filter of integers are rounded first (dynamic_quantization.py), each image with its own zero point and
scale.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ..loops.buffers import Buffer, Ring, Window
from ..loops.ops import Depthwise
from ..target import host
from ..tuning.choices import DEPTHWISE_ROWS, DEPTHWISE_TEAMS
from . import NoKernel, selector
from .depthwise_f32 import depthwise_any_f32, depthwise_f32
from .depthwise_int8 import depthwise_any_int8, depthwise_int8, flip_of
from .depthwise_rows import TAP_LIMIT, WindowGeometry, add_window, bands_of, geometry_of, planes_of
from .depthwise_tiles import (
    FOURS,
    columns_of,
    deep_on,
    fill_initial_sums,
    lane_bytes,
    pack,
    parts_of,
    tile_of,
    tiles_of,
)
from .dynamic_quantization import rounded_rows
from .epilogue import epilogue_of, without_bias
from .gemm_int16 import LINE
from .tiling import grain, vector_lanes

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

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
        size = size * min(target.vector_bytes, LINE) // LINE
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
    bands = bands_of(form, geometry, rows if few else BAND)
    arrays = (
        build.pointer(x),
        build.pointer(form.filter),
        0 if bias is None else build.pointer(bias),
        build.pointer(out),
    )
    items = n * blocks * bands.count
    size_of_item = (geometry.width * strides[1] + geometry.out_width) * bands.size * lanes * 4
    build.step(
        code, [*arrays, *planes_of(form, geometry, x.pitch), *bands, *more], items, chunk=grain(size_of_item, items)
    )


@selector(Depthwise)
def select_depthwise_int8(form: Depthwise, build: Builder) -> None:
    """Add the step of a depthwise convolution of int8, uint8, int16, or floats to be rounded."""
    x, filter, out = form.input, form.filter, form.output
    if not (x.dtype in (*BYTES, dtypes.int16) or form.rounding) or filter.dtype not in (*BYTES, dtypes.int4):
        raise NoKernel(f"depthwise convolution of {x.dtype.name} with {filter.dtype.name}")
    if filter.parent is not None:
        raise NoKernel("a filter that is a slice")
    unrolled = _is_unrolled(form)
    if not unrolled and filter.dtype is dtypes.int4:
        raise NoKernel(f"such a window with {filter.dtype.name}")
    if isinstance(x, Ring) and not unrolled:
        raise NoKernel("any window over a ring")
    size = lane_bytes(host()) if unrolled else 8 if x.dtype is dtypes.int16 else 4
    (_add_unrolled if unrolled else _add_any_window)(form, vector_lanes(out.shape[-1], size), build)


def _is_unrolled(form: Depthwise) -> bool:
    window, filter = form.window, form.filter
    return (
        form.input.dtype is not dtypes.int16
        and filter.constant is not None
        and parts_of(filter, form.filter_zero, deep_on(host())) <= 2
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
    tiles = tiles_of(host(), window, out_height, parts_of(form.filter, form.filter_zero, deep), lanes)
    teams = build.choose(
        DEPTHWISE_TEAMS,
        range(1, len(tiles) + 1),
        1 + tiles.index(tile_of(tiles, out_height)),
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
        lambda o: pack(o, taps, form.filter_zero, tile),
        key=(form.filter, "depthwise", tile.size, tile.strides, tile.team, lanes, deep, form.filter_zero),
    )
    initial = None if bias is None else bias.constant
    starts = build.packed(
        (channels,),
        np.int32,
        lambda o: fill_initial_sums(o, taps, form.filter_zero, initial, zero),
        key=(form.filter, _key(bias), "depthwise starts", zero, form.filter_zero),
    )
    columns = columns_of(host(), tile, out, out_width, epilogue)
    code = depthwise_int8.code(
        tile=tile,
        signed=signed,
        dilated=window.dilations[1] > 1,
        rounded=bool(form.rounding),
        together=columns,
        more=len(more),
        epilogue=epilogue,
    )
    bands = bands_of(form, geometry, rows * max(1, RUN // (out_width * rows)))
    words = [image, packed, starts, build.pointer(out), *planes_of(form, geometry, pitch), *bands, zero, zeros, scales]
    items = n * blocks * bands.count
    scratch = (out_width + columns) * rows * lanes  # indices of the lookups after a row of columns
    build.step(code, [*words, *more], items, scratch, grain(12 * out_width * bands.size * lanes, items))


def _rounded(form: Depthwise, build: Builder) -> tuple[Any, int, Any, Any]:
    """Round images; return their address and pitch, the zero points and the scales."""
    x = form.input
    n, columns = x.shape[0], math.prod(x.shape[1:])
    if x.pitch != x.shape[3] or (columns % 4 and n > 1):
        raise NoKernel("images of a slice to be rounded")
    rounded = rounded_rows(build, x, n, columns, columns, form.rounding == "symmetric")
    return rounded.x, x.pitch, rounded.zeros, rounded.scales


def _key(bias: Buffer | None) -> Any:
    return "no bias" if bias is None else bias


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
