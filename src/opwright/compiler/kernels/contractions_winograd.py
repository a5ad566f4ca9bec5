"""The selector of convolutions of int8 by Winograd's way: where it wins, its tiles, its steps.

Lives here: the selector of `Contract` that is asked before the direct one, `patches_of`, `patch_of`.
Not here: the kernels (winograd_int8.py), direct convolutions (contractions_int8.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...core.dtypes import int8, int32
from ..loops.ops import Contract
from ..native import executor
from ..target import Target, host
from ..tuning.choices import WINOGRAD_INT8
from . import NoKernel, selector
from .contractions_f32 import share
from .epilogue import epilogue_of, without_bias
from .tiling import ITEMS, balanced, chunk_of
from .winograd import LARGEST
from .winograd_int8 import apart, bits_of, transform_filter_int8, transform_patches_int8, winograd_int8

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

SMALLEST = 6
"""Pixels of a side of the output below which patches reach too far beyond it."""
DEEP = {False: 16, True: 32}
"""Channels from which the products outweigh the transforms, by whether the target has instructions for products of
bytes. Those take half as long as products of int16, so that m of 2 is no quicker there."""
BLOCK = 24
"""Patches whose sums are made before they are transformed back, about: 55 KB with 256-bit vectors."""

CACHE = 2 << 20
"""Bytes of transformed patches after which those of more are written over them: memory is slower than to transform."""
VECTORS = 2
"""Vectors of channels in a panel."""


def rows_of(target: Target) -> int:
    """The most patches of a tile, beside its vectors of weights."""
    return (target.registers - (4 if target.vnni_lanes else 6)) // VECTORS


def patches_of(form: Contract, target: Target) -> tuple[int, ...]:
    """Every m for which the outputs of a patch can be m x m, the largest first.

    Constant weights say how large sums can be: they must have the bits that come out.
    """
    window, weights = form.window, form.filter.constant
    if (window.size, window.strides, window.dilations) != ((3, 3), (1, 1), (1, 1)) or form.groups > 1:
        return ()
    if form.input.dtype is not int8 or form.filter.dtype is not int8 or form.filter_zero or weights is None:
        return ()
    features, channels = weights.shape[0], weights.shape[3]
    lanes = target.vector_bytes // 2
    wanted = target.is_x86 and target.has("avx2") and not target.has("amx-int8")
    if not wanted or channels % lanes or features % lanes:
        return ()
    most = 128 * int(np.abs(weights.astype(np.int16)).sum((1, 2, 3), dtype=np.int64).max())
    side = min(form.output.shape[1:3])
    return tuple(m for m in (4, 2) if most < 1 << bits_of(m) - 1 and side >= m)


def patch_of(form: Contract, target: Target, possible: Sequence[int] | None = None) -> int:
    """The m of patches by default, or 0 where a direct convolution is quicker or the only way. possible: if known."""
    features, channels = form.filter.shape[0], form.filter.shape[3]
    if min(form.output.shape[1:3]) < SMALLEST or min(channels, features) < DEEP[bool(target.vnni_lanes)]:
        return 0
    possible = patches_of(form, target) if possible is None else possible
    fitting = (m for m in possible if (m + 2) ** 2 * 2 * features * channels <= LARGEST)
    return next((m for m in fitting if m == 4 or not target.vnni_lanes), 0)


@selector(Contract, before="contractions_int8")
def select_winograd_int8(form: Contract, build: Builder) -> None:
    """Steps of a convolution of int8 by a constant filter of 3x3 windows, one pixel apart."""
    possible = form.rounding == "" and form.scales is None
    ways = patches_of(form, host()) if possible else ()
    m = build.choose(
        WINOGRAD_INT8,
        (0, *ways),
        patch_of(form, host(), ways),
        *form.output.shape[:3],
        form.filter.shape[3],
        form.filter.shape[0],
    )
    bias, expr, operands = without_bias(form.expr, form.operands)
    if not m or (bias is not None and bias.dtype is not int32):
        raise NoKernel("a window, a filter or channels for which a direct convolution is quicker")
    weights = form.filter.constant
    assert weights is not None
    epilogue, more = epilogue_of(expr, operands, form.output, build)
    (number, height, width, channels), (_, out_height, out_width, features) = form.input.shape, form.output.shape
    down, across = -(-out_height // m), -(-out_width // m)
    patches, places, lanes = number * down * across, (m + 2) ** 2, host().vector_bytes // 4
    panels = features // (VECTORS * lanes)
    transform = transform_filter_int8.code(m=m, vectors=VECTORS)

    def fill(out: np.ndarray) -> None:
        words = transform_filter_int8.words([np.ascontiguousarray(weights), out, channels])
        executor.call(transform.address, words, 0, panels)

    def fill_starts(out: np.ndarray) -> None:
        np.multiply(weights.sum((1, 2, 3), dtype=np.int32), np.int32(-form.input_zero), out=out)
        if bias is not None and bias.constant is not None:
            out += bias.constant.reshape(-1)

    packed = build.packed((places * channels * features,), np.int16, fill, (form.filter, "winograd int8", m, lanes))
    key = (form.filter, "no bias" if bias is None else bias, "winograd starts", form.input_zero)
    starts = build.packed((features,), np.int32, fill_starts, key)
    room = (math.prod(form.input.shape[:3]) - 1) * form.input.pitch + channels
    pieces = -(-2 * places * patches * channels // CACHE)
    piece = -(-patches // pieces)
    patch_room = build.temporary(2 * places * apart(piece * channels, 2))
    for first in range(0, patches, piece):
        count = min(piece, patches - first)
        between = apart(count * channels, 2)
        words = [
            build.pointer(form.input),
            patch_room,
            room,
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
            between,
        ]
        build.step(
            transform_patches_int8.code(m=m),
            words,
            count,
            places * channels + host().vector_bytes,
            chunk_of(16 * places * count * channels // lanes, count),
        )
        cut = balanced(count, rows_of(host()))
        block = max(1, min(BLOCK // cut.height, cut.tiles))
        each = max(1, panels * -(-cut.tiles // block) // ITEMS)
        items = -(-cut.tiles // block) * -(-panels // each)
        words = [
            patch_room,
            packed,
            starts,
            build.pointer(form.output),
            channels,
            between,
            out_height,
            out_width,
            form.output.pitch,
            down,
            across,
            cut.tiles,
            cut.tall,
            block,
            panels,
            each,
            first,
            *more,
        ]
        code = winograd_int8.code(
            more=len(more), rows=cut.height, vectors=VECTORS, short=cut.tall != cut.tiles, m=m, epilogue=epilogue
        )
        scratch = 4 * places * apart(block * cut.height * VECTORS * lanes, 4)
        build.step(code, words, items, scratch, chunk_of(places * count * channels * features, items))
    share(form, build, operands, epilogue)
