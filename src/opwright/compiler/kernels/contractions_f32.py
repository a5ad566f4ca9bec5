"""Selectors of contractions of float32: which kernel, tile and work items a convolution or fully connected layer gets.

Lives here: the selector of `Contract`.  Not here: the kernels (gemm_f32.py, gemv_f32.py, convolution_f32.py,
winograd.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import bfloat16, float16, float32
from ..loops.buffers import Buffer
from ..loops.ops import Contract
from ..native import executor
from ..target import host
from ..tuning.choices import FEW_ROWS, LINES, WINOGRAD, Choice, choose
from . import NoKernel, selector
from .convolution_f32 import convolution
from .epilogue import ELEMENT, Epilogue, epilogue_of, without_bias
from .gemm_f32 import Panels, Product, gemm_step, panels_of
from .gemv_f32 import gemv
from .tiling import ITEM, ITEMS, Blocks, LineTiles, balanced, chunk_of, for_two, grain, sliding_of
from .weight_packing_f32 import packed_filter
from .winograd import scratch_of, size_of, sizes_of_patches, transform_filter, winograd, wins

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

FEW, SOME = 1, 8
"""Rows for which a constant filter is read as it is by default, not packed, and one that is no constant; no more than
SOME are asked about."""


class Group(NamedTuple):
    """One group of a contraction. channel, feature: its first ones; features: how many; depth: of its sums."""

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
    """Steps of a contraction of float32 with a filter of float32, float16 or bfloat16."""
    if form.input.dtype is not float32:
        raise NoKernel(f"a contraction of {form.input.dtype.name}")
    if form.filter.dtype not in (float32, float16, bfloat16):
        raise NoKernel(f"a filter of {form.filter.dtype.name} beside an input of float32")
    if any(n > 0 for n in form.window.padding) and not is_finite(form.filter):
        raise NoKernel("weights that are infinities or NaN, which are multiplied with zeros outside of the image")
    features = form.filter.shape[0] // form.groups
    channels = form.filter.shape[3]
    bias, expr, operands = without_bias(form.expr, form.operands)
    for g in range(form.groups):
        epilogue, more = epilogue_of(expr, operands, form.output, build, g * features)
        depth = math.prod(form.filter.shape[1:])
        group = Group(form, g * channels, g * features, features, depth, epilogue, more, bias)
        _make_group(group, build)
    share(form, build, operands, epilogue)


def is_finite(filter: Buffer) -> bool:
    """Return whether all weights of a constant filter are finite; computed weights are assumed to be."""
    return filter.constant is None or bool(np.isfinite(filter.constant).all())


def _make_group(group: Group, build: Builder) -> None:
    form = group.form
    rows = math.prod(form.output.shape[:-1])
    plain = _is_plain(form)
    if plain and _reads_as_it_is(group, build, rows):
        _make_gemv(group, build, rows)
    elif plain:
        _make_gemm(group, build, rows)
    elif patch := _winograd_patch(form, build.choose):
        _make_winograd(group, build, patch)
    else:
        _make_convolution(group, build, rows)


def _reads_as_it_is(group: Group, build: Builder, rows: int) -> bool:
    constant = group.form.filter.constant is not None
    few = rows <= (FEW if constant else SOME)
    ways = (0, 1) if 0 < rows <= SOME else (int(few),)
    return build.choose(FEW_ROWS, ways, int(few), rows, group.depth, group.features, int(constant)) > 0


def share(form: Any, build: Builder, operands: tuple[Buffer, ...], epilogue: Epilogue) -> None:
    """Let the output be written over an operand that has an element for each of its own."""
    read = form.inputs[:2]
    for operand, (kind, dtype) in zip(operands, epilogue.kinds):
        if kind == ELEMENT and dtype.size == form.output.dtype.size and operand not in read:
            build.share(operand)
            return


def _make_gemv(group: Group, build: Builder, rows: int) -> None:
    form = group.form
    bias, epilogue, more = group.bias, group.epilogue, group.more
    if bias is not None:  # there are no panels for it
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


def _make_gemm(group: Group, build: Builder, rows: int) -> None:
    form = group.form
    panels = panels_of(host(), group.features, group.depth)
    packed = packed_filter(build, panels, form.filter, group.feature, group.bias)
    x, out = build.pointer(form.input, group.channel), build.pointer(form.output, group.feature)
    product = Product(rows, form.input.pitch)
    gemm_step(build, panels, x, packed, out, form.output.pitch, product, group.epilogue, group.more)


Choose = Callable[..., int]


def _winograd_patch(form: Contract, choose: Choose) -> int:
    """The m x m outputs of a patch, or 0 where a direct convolution is quicker or the only way. choose: see Builder."""
    window = form.window
    if window.size != (3, 3) or window.strides != (1, 1) or window.dilations != (1, 1) or form.groups > 1:
        return 0
    if form.filter.constant is None or not is_finite(form.filter):
        return 0
    number, height, width, features = form.output.shape
    channels, lanes = form.filter.shape[3], host().vector_bytes // 4
    ways = sizes_of_patches(channels, features, (height, width), lanes)
    default = wins(channels, features, (height, width), lanes)
    return choose(WINOGRAD, ways, default, number, height, width, channels, features)


def _reads_lines(form: Contract, choose: Choose) -> bool:
    """Whether a convolution reads the image a line of the window at a time; else windows are copied, for tiles that go
    over several lines."""
    (number, height, width, features), window = form.output.shape, form.window
    channels = form.filter.shape[3]
    possible = form.input.pitch == channels and (window.size[1] == 1 or window.dilations[1] == 1)
    one = number * height == 1
    default = possible and (one or _fills_tiles(width, _panels_of_lines(form)))
    ways = (0, 1) if possible and not one else (int(default),)
    return (
        choose(
            LINES,
            ways,
            int(default),
            number,
            height,
            width,
            channels,
            features // form.groups,
            *window.size,
            window.strides[0],
        )
        > 0
    )


def same_in_bands(form: Contract) -> bool:
    """Whether bands of a contraction's lines are computed as the whole is, to the bit: not by Winograd's way, and not
    where short lines are put together to tiles, but one line alone is not. Bands take defaults, the whole what is
    measured."""
    if form.input.dtype is not float32 or _is_plain(form):
        return True
    same = _fills_tiles(form.output.shape[2], _panels_of_lines(form)) and _reads_lines(
        form, _by_default
    ) == _reads_lines(form, _by_measure)
    return same and not any(_winograd_patch(form, by) for by in (_by_default, _by_measure))


def _by_default(choice: Choice, ways: Sequence[int], default: int, *sizes: int) -> int:
    return default


def _by_measure(choice: Choice, ways: Sequence[int], default: int, *sizes: int) -> int:
    return choose(choice, ways, default, (), *sizes)


def _is_plain(form: Contract) -> bool:
    window = form.window
    return window.size == (1, 1) and window.strides == (1, 1) and window.padding == (0, 0, 0, 0)


def _panels_of_lines(form: Contract) -> Panels:
    """How a filter is packed where the image is read a line of the window at a time."""
    (ky, kx), features = form.window.size, form.filter.shape[0] // form.groups
    return panels_of(host(), features, kx * form.filter.shape[3], ky)


def _fills_tiles(width: int, panels: Panels) -> bool:
    """Whether tiles of one line of outputs each have most of the rows that they may have."""
    return balanced(width, panels.rows).height * 3 >= panels.rows * 2


def _make_winograd(group: Group, build: Builder, m: int) -> None:
    form = group.form
    epilogue, more = epilogue_of(form.expr, form.operands, form.output, build)
    number, height, width, channels = form.input.shape
    _, out_height, out_width, _ = form.output.shape
    down, across = -(-out_height // m), -(-out_width // m)
    panels = panels_of(host(), group.features, channels)
    cut = balanced(number * down * across, panels.rows)
    transform = transform_filter.code(dtype=form.filter.dtype, m=m)

    def fill(out: np.ndarray) -> None:
        words = transform_filter.words([np.ascontiguousarray(form.filter.constant), out, channels])
        executor.call(transform.address, words, 0, panels.number)

    key = (form.filter, "winograd", m, panels.lanes)
    packed = build.packed((size_of(channels, group.features, m),), np.float32, fill, key)
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
        group.features,
        down,
        across,
        cut.tall,
        *more,
    ]
    code = winograd.code(
        more=len(more), rows=cut.height, short=cut.tall != cut.tiles, m=m, dtype=form.filter.dtype, epilogue=epilogue
    )
    build.step(code, words, cut.tiles, scratch_of(channels, panels.width, cut.height, m))


def _make_convolution(group: Group, build: Builder, rows: int) -> None:
    form, window = group.form, group.form.window
    _, height, width, _ = form.input.shape
    _, out_height, out_width, _ = form.output.shape
    (ky, kx), channels = window.size, form.filter.shape[3]
    lined = _reads_lines(form, build.choose)
    panels = _panels_of_lines(form) if lined else panels_of(host(), group.features, group.depth)
    line = out_width if lined else rows
    cut = balanced(line, panels.rows)
    tiles = cut.tiles * (rows // line if line else 0)
    work = 2 * cut.height * group.depth * panels.width
    block = for_two(_blocks(tiles, panels.number, work), tiles, panels.number)
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
        *sliding_of(window, out_height, out_width, form.output.pitch),
        group.features,
        line,
        *LineTiles(cut.tiles, cut.tall, tiles, block.tiles, block.panels),
        *group.more,
    ]
    code = convolution.code(
        more=len(group.more),
        rows=cut.height,
        short=cut.tall != cut.tiles,
        wide=panels.wide,
        halves=panels.halves,
        lined=lined,
        epilogue=group.epilogue,
    )
    build.step(code, words, block.items, scratch, chunk_of(work * tiles * panels.number, block.items))


def _blocks(tiles: int, panels: int, work: int) -> Blocks:
    """All panels for a few tiles: what a tile has copied serves them all. Of few tiles, parts of the panels."""
    if tiles >= 4:
        each = max(1, min(tiles // ITEMS, ITEM // max(1, panels * work)))
        return Blocks(each, panels, -(-tiles // each))
    wide = max(1, -(-panels * tiles // 8)) if tiles else 1
    return Blocks(1, wide, tiles * -(-panels // wide))
