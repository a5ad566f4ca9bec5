"""Kernel selection of contractions of float32: the kernel, tile and work items of convolutions and dense layers.

Lives here: the selector of `Contract`.
Not here: the kernels (gemm_f32.py, gemv_f32.py, convolution_f32.py), Winograd's minimal filtering
(contractions_winograd.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import bfloat16, float16, float32
from ..loops.buffers import Buffer
from ..loops.ops import Contract
from ..target import host
from ..tuning.choices import FEW_ROWS, LINES, Choice, choose
from . import NoKernel, selector
from .contractions_winograd import add_winograd_step, is_finite, winograd_patch
from .convolution_f32 import convolution
from .epilogue import Epilogue, epilogue_of, share_output, without_bias
from .gemm_f32 import ProductBatch, gemm_step
from .gemv_f32 import gemv
from .tiling import ITEM_OPERATIONS, ITEMS, LineTiles, WorkBlocks, chunk_of, evened, grain, row_tiles, window_words
from .weight_packing_f32 import PanelsF32, packed_filter, panels_of

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

FEW, SOME = 1, 8
"""Rows up to which a constant filter, and a computed one, is read unpacked by default; tuning considers up to SOME."""


class FloatGroup(NamedTuple):
    """One group of a contraction. channel, feature: its first ones; features: their number; depth: of its sums."""

    form: Contract
    channel: int
    feature: int
    features: int
    depth: int
    epilogue: Epilogue
    more: list[Any]
    bias: Buffer | None


@selector(Contract)
def select_contract(form: Contract, build: Builder) -> None:
    """Add the steps of a contraction of float32 with a filter of float32, float16 or bfloat16."""
    if form.input.dtype is not float32:
        raise NoKernel(f"a contraction of {form.input.dtype.name}")
    if form.filter.dtype not in (float32, float16, bfloat16):
        raise NoKernel(f"a filter of {form.filter.dtype.name} with an input of float32")
    if any(n > 0 for n in form.window.padding) and not is_finite(form.filter):
        raise NoKernel("weights that are infinities or NaN, which are multiplied with zeros outside of the image")
    features = form.filter.shape[0] // form.groups
    channels = form.filter.shape[3]
    bias, expr, operands = without_bias(form.expr, form.operands)
    for g in range(form.groups):
        epilogue, more = epilogue_of(expr, operands, form.output, build, g * features)
        depth = math.prod(form.filter.shape[1:])
        group = FloatGroup(form, g * channels, g * features, features, depth, epilogue, more, bias)
        _add_group(group, build)
    share_output(form, build, operands, epilogue)


def _add_group(group: FloatGroup, build: Builder) -> None:
    form = group.form
    rows = math.prod(form.output.shape[:-1])
    pointwise = _is_pointwise(form)
    if pointwise and _is_unpacked(group, build, rows):
        _add_gemv(group, build, rows)
    elif pointwise:
        _add_gemm(group, build, rows)
    elif patch := winograd_patch(form, build.choose):
        add_winograd_step(form, patch, build)
    else:
        _add_convolution(group, build, rows)


def _is_unpacked(group: FloatGroup, build: Builder, rows: int) -> bool:
    """Return whether a product of few rows reads the filter unpacked."""
    constant = group.form.filter.constant is not None
    few = rows <= (FEW if constant else SOME)
    ways = (0, 1) if 0 < rows <= SOME else (int(few),)
    return build.choose(FEW_ROWS, ways, int(few), rows, group.depth, group.features, int(constant)) > 0


def _add_gemv(group: FloatGroup, build: Builder, rows: int) -> None:
    form = group.form
    bias, epilogue, more = group.bias, group.epilogue, group.more
    if bias is not None:  # without panels, the bias remains in the epilogue
        epilogue, more = epilogue_of(form.expr, form.operands, form.output, build, group.feature)
    lanes = host().vector_bytes // 4
    items = rows * -(-group.features // lanes)
    words = [
        build.pointer(form.input, group.channel),
        build.pointer(form.filter, group.feature * group.depth),
        build.pointer(form.output, group.feature),
        group.depth,
        group.features,
        form.input.pitch,
        group.depth,
        form.output.pitch,
        rows,
        0,
        0,
        *more,
    ]
    code = gemv.code(more=len(more), dtype=form.filter.dtype, epilogue=epilogue)
    build.step(code, words, items, chunk=grain(lanes * group.depth * form.filter.dtype.size, items))


def _add_gemm(group: FloatGroup, build: Builder, rows: int) -> None:
    form = group.form
    panels = panels_of(host(), group.features, group.depth)
    packed = packed_filter(build, panels, form.filter, group.feature, group.bias)
    x, out = build.pointer(form.input, group.channel), build.pointer(form.output, group.feature)
    batch = ProductBatch(rows, form.input.pitch)
    gemm_step(build, panels, x, packed, out, form.output.pitch, batch, group.epilogue, group.more)


Choose = Callable[..., int]


def _is_lined(form: Contract, choose: Choose) -> bool:
    """Return whether a convolution reads the image line by line of the window.

    Otherwise windows are copied, for tiles that cover several lines.
    """
    (number, height, width, features), window = form.output.shape, form.window
    channels = form.filter.shape[3]
    possible = form.input.pitch == channels and (window.size[1] == 1 or window.dilations[1] == 1)
    single = number * height == 1
    default = possible and (single or _fills_tiles(width, _panels_of_lines(form)))
    ways = (0, 1) if possible and not single else (int(default),)
    sizes = number, height, width, channels, features // form.groups, *window.size, window.strides[0]
    return choose(LINES, ways, int(default), *sizes) > 0


def same_in_bands(form: Contract) -> bool:
    """Return whether bands of lines of a contraction are bit-identical to those lines of the full result.

    They are not by Winograd's minimal filtering, nor if tiles combine short lines but a single line is computed alone.
    Bands use default kernels, the full computation the tuned ones.
    """
    if form.input.dtype is not float32 or _is_pointwise(form):
        return True
    same = _fills_tiles(form.output.shape[2], _panels_of_lines(form)) and _is_lined(form, _default) == _is_lined(
        form, _tuned
    )
    return same and not any(winograd_patch(form, by) for by in (_default, _tuned))


def _default(choice: Choice, ways: Sequence[int], default: int, *sizes: int) -> int:
    return default


def _tuned(choice: Choice, ways: Sequence[int], default: int, *sizes: int) -> int:
    return choose(choice, ways, default, (), *sizes)


def _is_pointwise(form: Contract) -> bool:
    window = form.window
    return window.size == (1, 1) and window.strides == (1, 1) and window.padding == (0, 0, 0, 0)


def _panels_of_lines(form: Contract) -> PanelsF32:
    """Return the layout of a filter for a convolution that reads the image line by line of the window."""
    (ky, kx), features = form.window.size, form.filter.shape[0] // form.groups
    return panels_of(host(), features, kx * form.filter.shape[3], ky)


def _fills_tiles(width: int, panels: PanelsF32) -> bool:
    """Return whether tiles of one line of outputs have at least two thirds of the possible rows."""
    return row_tiles(width, panels.rows).height * 3 >= panels.rows * 2


def _add_convolution(group: FloatGroup, build: Builder, rows: int) -> None:
    form, window = group.form, group.form.window
    _, height, width, _ = form.input.shape
    _, out_height, out_width, _ = form.output.shape
    (ky, kx), channels = window.size, form.filter.shape[3]
    lined = _is_lined(form, build.choose)
    panels = _panels_of_lines(form) if lined else panels_of(host(), group.features, group.depth)
    line = out_width if lined else rows
    cut = row_tiles(line, panels.rows)
    tiles = cut.tiles * (rows // line if line else 0)
    work = 2 * cut.height * group.depth * panels.width
    block = evened(window_blocks(tiles, panels.number, work, tiles // ITEMS), tiles, panels.number)
    span = (cut.height - 1) * window.strides[1] + kx
    scratch = 4 * (panels.lanes + (ky * span * channels if lined else cut.height * group.depth))
    packed = packed_filter(build, panels, form.filter, group.feature, group.bias)
    words = [
        build.pointer(form.input, group.channel),
        packed,
        build.pointer(form.output, group.feature),
        height,
        width,
        form.input.pitch,
        channels,
        ky,
        kx,
        *window_words(window, out_height, out_width, form.output.pitch),
        group.features,
        line,
        *LineTiles(cut.tiles, cut.tall, tiles, block.tiles, block.panels),
        *group.more,
    ]
    code = convolution.code(
        more=len(group.more),
        rows=cut.height,
        short=cut.short,
        wide=panels.wide,
        halves=panels.halves,
        lined=lined,
        epilogue=group.epilogue,
    )
    build.step(code, words, block.items, scratch, chunk_of(work * tiles * panels.number, block.items))


def window_blocks(tiles: int, panels: int, work: int, height: int) -> WorkBlocks:
    """Return work items of all panels for up to `height` tiles, as windows copied for a tile serve all of its panels.

    Few tiles are divided by panels instead.
    """
    if tiles >= 4:
        height = max(1, min(height, ITEM_OPERATIONS // max(1, panels * work)))
        return WorkBlocks(height, panels, -(-tiles // height))
    width = max(1, -(-panels * tiles // 8)) if tiles else 1
    return WorkBlocks(1, width, tiles * -(-panels // width))
