"""Selectors of depthwise convolutions: which kernel, tile and work items one gets.

Lives here: the selectors of `Depthwise`, on floats and on integers.
Not here: the kernels (depthwise_f32.py, depthwise_int8.py), what they share (depthwise_rows.py), tiles and packed
filters (depthwise_tiles.py).

Floats with a filter of integers are rounded first (dynamic_quantization.py), each image with a zero point and a scale
of its own.
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
from .depthwise_rows import LARGEST, Slide, add_window, bands_of, planes_of, slide_of
from .depthwise_tiles import FOURS, columns_of, deep_on, lane_bytes, pack, parts_of, starts_of, tile_of, tiles_of
from .dynamic_quantization import rounded_rows
from .epilogue import epilogue_of, without_bias
from .gemm_int16 import LINE
from .tiling import grain, vector_lanes

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

BYTES = (dtypes.int8, dtypes.uint8)
BAND = 8
"""Rows of outputs that a work item does, where there are enough items."""
RUN = 128
"""Pixels of the output that a work item does in each channel, about: what it loads first is not much beside them."""


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


@selector(Depthwise)
def select_depthwise_f32(form: Depthwise, build: Builder) -> None:
    """Of float32."""
    x, out = form.input, form.output
    if (x.dtype, form.filter.dtype) != (dtypes.float32, dtypes.float32):
        raise NoKernel(f"depthwise convolution of {x.dtype.name} with {form.filter.dtype.name}")
    if form.filter.parent is not None:
        raise NoKernel("a filter that is a slice")
    slide, pixels = slide_of(form), (build.pointer(x), x.pitch)
    n, wide, size, strides = x.shape[0], out.shape[3], slide.window.size, slide.window.strides
    dilated = slide.window.dilations[1] > 1
    if form.multiplier != 1 or size[0] * size[1] > LARGEST or (dilated and strides[1] > 1):
        if isinstance(x, Ring):
            raise NoKernel("any window over a ring")
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


@selector(Depthwise)
def select_depthwise_int8(form: Depthwise, build: Builder) -> None:
    """Of int8, uint8 and int16, and of floats to be rounded."""
    x, filter, out = form.input, form.filter, form.output
    if not (x.dtype in (*BYTES, dtypes.int16) or form.rounding) or filter.dtype not in (*BYTES, dtypes.int4):
        raise NoKernel(f"depthwise convolution of {x.dtype.name} with {filter.dtype.name}")
    if filter.parent is not None:
        raise NoKernel("a filter that is a slice")
    quick = _is_quick(form)
    if not quick and filter.dtype is dtypes.int4:
        raise NoKernel(f"such a window with {filter.dtype.name}")
    if isinstance(x, Ring) and not quick:
        raise NoKernel("any window over a ring")
    size = lane_bytes(host()) if quick else 8 if x.dtype is dtypes.int16 else 4
    (_quick if quick else _any)(form, vector_lanes(out.shape[-1], size), build)


def _is_quick(form: Depthwise) -> bool:
    window, filter = form.window, form.filter
    return (
        form.input.dtype is not dtypes.int16
        and filter.constant is not None
        and parts_of(filter, form.filter_zero, deep_on(host())) <= 2
        and form.multiplier == 1
        and window.size[0] * window.size[1] <= LARGEST
        and (window.dilations[1] == 1 or window.strides[1] == 1)
    )


def _quick(form: Depthwise, lanes: int, build: Builder) -> None:
    x, out = form.input, form.output
    slide = slide_of(form)
    out_height, out_width, window = slide[2:]
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
    known = None if bias is None else bias.constant
    starts = build.packed(
        (channels,),
        np.int32,
        lambda o: starts_of(o, taps, form.filter_zero, known, zero),
        key=(form.filter, _key(bias), "depthwise starts", zero, form.filter_zero),
    )
    together = columns_of(host(), tile, out, out_width, epilogue)
    code = depthwise_int8.code(
        tile=tile,
        signed=signed,
        dilated=window.dilations[1] > 1,
        rounded=bool(form.rounding),
        together=together,
        more=len(more),
        epilogue=epilogue,
    )
    bands = bands_of(form, slide, rows * max(1, RUN // (out_width * rows)))
    words = [image, packed, starts, build.pointer(out), *planes_of(form, slide, pitch), *bands, zero, zeros, scales]
    items = n * blocks * bands.count
    scratch = (out_width + together) * rows * lanes  # for what is looked up after a row of columns
    build.step(code, [*words, *more], items, scratch, grain(12 * out_width * bands.size * lanes, items))


def _rounded(form: Depthwise, build: Builder) -> tuple[Any, int, Any, Any]:
    """Images as integers: their address and pitch, the zero points and the scales."""
    x = form.input
    n, columns = x.shape[0], math.prod(x.shape[1:])
    if x.pitch != x.shape[3] or (columns % 4 and n > 1):
        raise NoKernel("images of a slice to be rounded")
    made = rounded_rows(build, x, n, columns, columns, form.rounding == "symmetric")
    return made.x, x.pitch, made.zeros, made.scales


def _key(bias: Buffer | None) -> Any:
    return "no bias" if bias is None else bias


def _any(form: Depthwise, lanes: int, build: Builder) -> None:
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
    slide = Slide(height, width, out_height, out_width, form.window)
    numbers = [form.input_zero, form.filter_zero, zeros, scales, *more]
    add_window(form, slide, build, depthwise_any_int8, (image, pitch), numbers, **code)
