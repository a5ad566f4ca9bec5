"""Kernel selection of convolutions by Winograd's minimal filtering: where it is faster, its tiles, its steps.

Lives here: `winograd_patch` and `add_winograd_step` of float32; the selector of `Contract` of int8, tried before that
of direct convolutions; `possible_patches`, `default_patch`.
Not here: the kernels (winograd.py, winograd_int8.py), direct convolutions (contractions_f32.py, contractions_int8.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...core.dtypes import int8, int32
from ..loops.buffers import Buffer
from ..loops.ops import Contract
from ..native import executor
from ..target import Target, host
from ..tuning.choices import WINOGRAD, WINOGRAD_INT8
from . import NoKernel, selector
from .epilogue import epilogue_of, share_output, without_bias
from .tiling import ITEMS, chunk_of, row_tiles
from .weight_packing_f32 import panels_of
from .winograd import PATCH, filter_size, scratch_size, transform_filter, winograd
from .winograd_int8 import padded_stride, sum_bits, transform_filter_int8, transform_patches_int8, winograd_int8

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

FILTER_BYTES = 5 << 20
"""Bytes of a transformed filter up to which the method is faster."""
SMALLEST = 6
"""Pixels of a side of the output below which too much of a patch lies outside of it."""
LEAST_PIXELS = 256
"""Outputs of a channel from which it is faster with a filter that is computed at run time, and transformed then."""


# ---- float32 ---------------------------------------------------------------------------------------------------------


def is_finite(filter: Buffer) -> bool:
    """Return whether all weights of a constant filter are finite; computed weights are assumed to be."""
    return filter.constant is None or bool(np.isfinite(filter.constant).all())


def winograd_patch(form: Contract, choose: Callable[..., int]) -> int:
    """Return the m of patches of m x m outputs, or 0 for a direct convolution. choose: see Builder."""
    window = form.window
    if window.size != (3, 3) or window.strides != (1, 1) or window.dilations != (1, 1) or form.groups > 1:
        return 0
    if not is_finite(form.filter):
        return 0
    number, height, width, features = form.output.shape
    if form.filter.constant is None and number * height * width < LEAST_PIXELS:
        return 0
    channels, lanes = form.filter.shape[3], host().vector_bytes // 4
    full = channels % lanes == 0 and features % (2 * lanes) == 0
    ways = (0, *(m for m in PATCH if full and min(height, width) >= m))
    default = faster_patch(channels, features, (height, width), lanes)
    return choose(WINOGRAD, ways, default, number, height, width, channels, features)


def faster_patch(channels: int, features: int, pixels: tuple[int, int], lanes: int) -> int:
    """Return the m for which the method is faster than a direct convolution, or 0. pixels: the output's sides.

    Measured: it needs enough channels for the products to outweigh the transforms, and a transformed filter that fits
    the caches: m of 4 has four times the numbers of the filter, m of 2 not quite twice.
    """
    if channels % lanes or features % (2 * lanes) or min(channels, features) < 2 * lanes or min(pixels) < SMALLEST:
        return 0
    return next((m for m in (4, 2) if (m + 2) ** 2 * 4 * channels * features <= FILTER_BYTES), 0)


def add_winograd_step(form: Contract, m: int, build: Builder) -> None:
    """Add the step of a convolution of float32 by patches of m x m outputs."""
    epilogue, more = epilogue_of(form.expr, form.operands, form.output, build)
    number, height, width, channels = form.input.shape
    _, out_height, out_width, features = form.output.shape
    down, across = -(-out_height // m), -(-out_width // m)
    panels = panels_of(host(), features, channels)
    cut = row_tiles(number * down * across, panels.rows)
    transform = transform_filter.code(dtype=form.filter.dtype, m=m)

    def fill(out: np.ndarray) -> None:
        words = transform_filter.words([np.ascontiguousarray(form.filter.constant), out, channels])
        executor.call(transform.address, words, 0, panels.number)

    size = filter_size(channels, features, m)
    if form.filter.constant is None:
        packed = build.temporary(size * 4)
        build.step(transform, [build.pointer(form.filter), packed, channels], panels.number)
    else:
        packed = build.packed((size,), np.float32, fill, (form.filter, "winograd", m, panels.lanes))
    words = [
        build.pointer(form.input),
        packed,
        build.pointer(form.filter),
        build.pointer(form.output),
        height,
        width,
        form.input.pitch,
        channels,
        form.window.padding[0],
        form.window.padding[2],
        out_height,
        out_width,
        form.output.pitch,
        features,
        down,
        across,
        cut.tall,
        *more,
    ]
    code = winograd.code(
        more=len(more), rows=cut.height, short=cut.short, m=m, dtype=form.filter.dtype, epilogue=epilogue
    )
    build.step(code, words, cut.tiles, scratch_size(channels, panels.width, cut.height, m))


# ---- int8 ------------------------------------------------------------------------------------------------------------

DEEP = {False: 16, True: 32}
"""Channels from which the products outweigh the transforms, by whether the target has dot products of bytes. These take
half the time of products of int16, so that m of 2 is no faster there."""
BLOCK = 24
"""Patches whose sums are computed before they are transformed back, about: 55 KB with 256-bit vectors."""
PATCH_BYTES = 2 << 20
"""Bytes of transformed patches whose memory is reused for further ones: memory is slower than the transform."""
VECTORS = 2
"""Vectors of channels in a panel."""


def _tile_rows(target: Target) -> int:
    """Return the patches of a tile, at most: registers also hold vectors of weights."""
    return (target.registers - (4 if target.vnni_lanes else 6)) // VECTORS


def possible_patches(form: Contract, target: Target) -> tuple[int, ...]:
    """Return every m for which patches of m x m outputs are possible, the largest first.

    Constant weights bound the sums, which must fit the bits of the result.
    """
    window, weights = form.window, form.filter.constant
    if (window.size, window.strides, window.dilations) != ((3, 3), (1, 1), (1, 1)) or form.groups > 1:
        return ()
    if form.input.dtype is not int8 or form.filter.dtype is not int8 or form.filter_zero or weights is None:
        return ()
    features, channels = weights.shape[0], weights.shape[3]
    lanes = target.vector_bytes // 2
    supported = target.is_x86 and target.has("avx2") and not target.has("amx-int8")
    if not supported or channels % lanes or features % lanes:
        return ()
    bound = 128 * int(np.abs(weights.astype(np.int16)).sum((1, 2, 3), dtype=np.int64).max())
    side = min(form.output.shape[1:3])
    return tuple(m for m in (4, 2) if bound < 1 << sum_bits(m) - 1 and side >= m)


def default_patch(form: Contract, target: Target, possible: Sequence[int] | None = None) -> int:
    """Return the default m of patches, or 0 for a direct convolution. possible: from `possible_patches`, if known."""
    features, channels = form.filter.shape[0], form.filter.shape[3]
    if min(form.output.shape[1:3]) < SMALLEST or min(channels, features) < DEEP[bool(target.vnni_lanes)]:
        return 0
    possible = possible_patches(form, target) if possible is None else possible
    fitting = (m for m in possible if (m + 2) ** 2 * 2 * features * channels <= FILTER_BYTES)
    return next((m for m in fitting if m == 4 or not target.vnni_lanes), 0)


@selector(Contract, before="contractions_int8")
def select_winograd_int8(form: Contract, build: Builder) -> None:
    """Add the steps of a convolution of int8 by a constant filter of 3x3 windows with strides of 1."""
    plain = form.rounding == "" and form.scales is None
    ways = possible_patches(form, host()) if plain else ()
    default = default_patch(form, host(), ways)
    m = build.choose(
        WINOGRAD_INT8, (0, *ways), default, *form.output.shape[:3], form.filter.shape[3], form.filter.shape[0]
    )
    bias, expr, operands = without_bias(form.expr, form.operands)
    if not m or (bias is not None and bias.dtype is not int32):
        raise NoKernel("a window, a filter or channels for which a direct convolution is faster")
    weights = form.filter.constant
    assert weights is not None
    epilogue, more = epilogue_of(expr, operands, form.output, build)
    (number, height, width, channels), (_, out_height, out_width, features) = form.input.shape, form.output.shape
    down, across = -(-out_height // m), -(-out_width // m)
    patches, elements, lanes = number * down * across, (m + 2) ** 2, host().vector_bytes // 4
    panels = features // (VECTORS * lanes)
    transform = transform_filter_int8.code(m=m, vectors=VECTORS)

    def fill(out: np.ndarray) -> None:
        words = transform_filter_int8.words([np.ascontiguousarray(weights), out, channels])
        executor.call(transform.address, words, 0, panels)

    def fill_initial(out: np.ndarray) -> None:
        np.multiply(weights.sum((1, 2, 3), dtype=np.int32), np.int32(-form.input_zero), out=out)
        if bias is not None and bias.constant is not None:
            out += bias.constant.reshape(-1)

    packed = build.packed((elements * channels * features,), np.int16, fill, (form.filter, "winograd int8", m, lanes))
    key = (form.filter, "no bias" if bias is None else bias, "winograd starts", form.input_zero)
    initial = build.packed((features,), np.int32, fill_initial, key)
    input_bytes = (math.prod(form.input.shape[:3]) - 1) * form.input.pitch + channels
    pieces = -(-2 * elements * patches * channels // PATCH_BYTES)
    piece = -(-patches // pieces)
    transformed = build.temporary(2 * elements * padded_stride(piece * channels, 2))
    for first in range(0, patches, piece):
        count = min(piece, patches - first)
        stride = padded_stride(count * channels, 2)
        words = [
            build.pointer(form.input),
            transformed,
            input_bytes,
            height,
            width,
            form.input.pitch,
            channels,
            form.input_zero,
            form.window.padding[0],
            form.window.padding[2],
            down,
            across,
            first,
            stride,
        ]
        build.step(
            transform_patches_int8.code(m=m),
            words,
            count,
            elements * channels + host().vector_bytes,
            chunk_of(16 * elements * count * channels // lanes, count),
        )
        cut = row_tiles(count, _tile_rows(host()))
        tile_block = max(1, min(BLOCK // cut.height, cut.tiles))
        panel_block = max(1, panels * -(-cut.tiles // tile_block) // ITEMS)
        items = -(-cut.tiles // tile_block) * -(-panels // panel_block)
        words = [
            transformed,
            packed,
            initial,
            build.pointer(form.output),
            channels,
            stride,
            out_height,
            out_width,
            form.output.pitch,
            down,
            across,
            cut.tiles,
            cut.tall,
            tile_block,
            panels,
            panel_block,
            first,
            *more,
        ]
        code = winograd_int8.code(
            more=len(more), rows=cut.height, vectors=VECTORS, short=cut.short, m=m, epilogue=epilogue
        )
        scratch = 4 * elements * padded_stride(tile_block * cut.height * VECTORS * lanes, 4)
        build.step(code, words, items, scratch, chunk_of(elements * count * channels * features, items))
    share_output(form, build, operands, epilogue)
