"""Kernel selection of contractions of float32: the kernel, tile and work items; fusion by row bands.

Lives here: the selectors of `Contract` (convolutions and dense layers) and of `Banded`.
Not here: the kernels (gemm_f32.py, gemv_f32.py, convolution_f32.py), Winograd's minimal filtering
(contractions_winograd.py), the cost model of bands (../loops/fusion.py).

Fused by row bands, a convolution, a depthwise convolution and a projection compute a few lines at a time, in cache.
The output lines of the first convolution are in a ring buffer, from which the depthwise convolution reads its window:
each band computes the lines of its window that are missing, in place of lines that are not read again. The selectors
of each part provide the kernels of each band.

An image is divided into strands, so that threads need no synchronization between bands; each has its own memory. Lines
that two strands read are computed by both.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import bfloat16, float16, float32
from ..loops.buffers import STRANDS, Buffer, Ring, RowBand, ring_lines
from ..loops.expressions import arg
from ..loops.ops import Banded, Contract, Depthwise, LoopOp, Reduce
from ..target import host
from ..tuning.choices import FEW_ROWS, LINES, Choice, choose
from . import NoKernel, selector
from .contraction_steps_f32 import ProductBatch, gemm_step
from .contractions_winograd import add_winograd_step, is_finite, winograd_patch
from .convolution_f32 import convolution
from .epilogue import Epilogue, epilogue_of, share_output, with_bounds, without_bias
from .gemv_f32 import blocks_of, gemv
from .grouped_convolution_f32 import add_if_grouped
from .narrow_images import columns_as_channels
from .tiling import (
    ITEM_OPERATIONS,
    ITEMS,
    MANY_TILES,
    LineTiles,
    WorkBlocks,
    chunk_of,
    evened,
    grain,
    row_tiles,
    window_words,
)
from .weight_packing_f32 import PanelsF32, pack_computed, packed_filter, panels_of

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder
    from ..loops.plans import Address

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
    if form.input.shape[2] == 1:  # of more columns, weights would multiply columns outside of their windows by 0
        form = columns_as_channels(form) or form
    features = form.filter.shape[0] // form.groups
    channels = form.filter.shape[3]
    bias, expr, operands = without_bias(form.expr, form.operands)
    depth = math.prod(form.filter.shape[1:])
    if add_if_grouped(form, build):
        return

    def add_group(g: int) -> Epilogue:
        epilogue, more = epilogue_of(expr, operands, form.output, build, g * features)
        _add_group(FloatGroup(form, g * channels, g * features, features, depth, epilogue, more, bias), build)
        return epilogue

    epilogues = [add_group(g) for g in range(form.groups)]
    share_output(form, build, operands, epilogues[-1])


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
    items = rows * blocks_of(group.features)
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
    build.step(
        code, words, items, chunk=grain(rows * group.features // items * group.depth * form.filter.dtype.size, items)
    )


def _add_gemm(group: FloatGroup, build: Builder, rows: int) -> None:
    form = group.form
    panels = panels_of(host(), group.features, group.depth)
    packed = packed_filter(build, panels, form.filter, group.feature, group.bias)
    x, out = build.pointer(form.input, group.channel), build.pointer(form.output, group.feature)
    batch = ProductBatch(rows, form.input.pitch)
    epilogue, more = with_bounds(group.epilogue, group.more)
    gemm_step(build, panels, x, packed, out, form.output.pitch, batch, epilogue, more)


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


def _panels_of_window(group: FloatGroup, lined: bool, lines: int) -> PanelsF32:
    """Return the layout of a filter of some lines of the window. lined: see `_is_lined`."""
    run = group.depth // group.form.window.size[0]
    return panels_of(host(), group.features, run, lines) if lined else panels_of(host(), group.features, lines * run)


def _fills_tiles(width: int, panels: PanelsF32) -> bool:
    """Return whether tiles of one line of outputs have at least two thirds of the possible rows."""
    return row_tiles(width, panels.rows).height * 3 >= panels.rows * 2


def _add_convolution(group: FloatGroup, build: Builder, rows: int) -> None:
    form = group.form
    lined = _is_lined(form, build.choose)
    height = form.window.size[0]
    panels = _panels_of_window(group, lined, height)
    cut = row_tiles(form.output.shape[2] if lined else rows, panels.rows)
    parts = _window_parts(group, rows, -(-rows // max(1, cut.height)) * panels.number)
    if parts == 1:
        packed = packed_filter(build, panels, form.filter, group.feature, group.bias)
        out = build.pointer(form.output, group.feature)
        _add_lines(group, build, rows, lined, range(height), packed, out)
        return
    sums = Buffer("sums", float32, (parts, *form.output.shape))

    def add_part(number: int) -> None:
        lines = range(height * number // parts, height * (number + 1) // parts)
        filters = build.pointer(form.filter, lines.start * (group.depth // height))
        of_part = _panels_of_window(group, lined, len(lines))
        packed = pack_computed(build, of_part, filters, form.filter.dtype, group.depth)
        _add_lines(group, build, rows, lined, lines, packed, build.pointer(sums, number * rows * group.features))

    build.strands(parts, add_part)
    total = arg(0, float32)
    build.part(Reduce(form.output, sums, (0,), "sum", total, total))


PARTS = 8
"""Parts of a window, at most."""
PART_DEPTH = 1 << 10
"""Steps of the sum of a part, at least."""


def _window_parts(group: FloatGroup, rows: int, blocks: int) -> int:
    """Return the number of parts of a window that are summed one by one, for threads and for accuracy.

    They are more than one for few outputs that are each a long sum, as the gradient by a first layer's filter is: with
    3 channels, 3 x 3 pixels and 32 x 30 x 30 steps, two threads would have 3 tiles, and each output an error that grows
    with 28,800 additions. blocks: tiles of rows by panels.
    """
    form = group.form
    is_sum = form.groups == 1 and group.bias is None and group.epilogue.expr.op == "arg" and not group.more
    if not is_sum or blocks >= MANY_TILES or not rows or form.filter.constant is not None:
        return 1
    return max(1, min(PARTS, form.window.size[0], group.depth // PART_DEPTH))


def _add_lines(
    group: FloatGroup, build: Builder, rows: int, lined: bool, lines: range, packed: Address, out: Address
) -> None:
    """Add the convolution by some lines of the window, for which the filter is packed. lined: see `_is_lined`."""
    form, window = group.form, group.form.window
    _, height, width, _ = form.input.shape
    _, out_height, out_width, _ = form.output.shape
    (_, kx), ky, channels = window.size, len(lines), form.filter.shape[3]
    depth = ky * kx * channels
    panels = _panels_of_window(group, lined, ky)
    line = out_width if lined else rows
    cut = row_tiles(line, panels.rows)
    tiles = cut.tiles * (rows // line if line else 0)
    work = 2 * cut.height * depth * panels.width
    block = evened(window_blocks(tiles, panels.number, work, tiles // ITEMS), tiles, panels.number)
    span = (cut.height - 1) * window.strides[1] + kx
    scratch = 4 * (panels.lanes + (ky * span * channels if lined else cut.height * depth))
    slide = window_words(window, out_height, out_width, form.output.pitch)
    epilogue, more = with_bounds(group.epilogue, group.more)
    words = [
        build.pointer(form.input, group.channel),
        packed,
        out,
        height,
        width,
        form.input.pitch,
        channels,
        ky,
        kx,
        *slide._replace(top=slide.top - lines.start * window.dilations[0]),
        group.features,
        line,
        *LineTiles(cut.tiles, cut.tall, tiles, block.tiles, block.panels),
        *more,
    ]
    code = convolution.code(
        more=len(more),
        rows=cut.height,
        short=cut.short,
        wide=panels.wide,
        halves=panels.halves,
        lined=lined,
        epilogue=epilogue,
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


@selector(Banded)
def select_banded(form: Banded, build: Builder) -> None:
    """Select for a Depthwise with a Contract before it, after it or both."""
    (index,) = (i for i, part in enumerate(form.parts) if isinstance(part, Depthwise))
    middle = form.parts[index]
    before, after = form.parts[:index], form.parts[index + 1 :]
    if not all(same_in_bands(part) for part in form.parts if isinstance(part, Contract)):
        raise NoKernel("a convolution whose results in bands would differ")
    assert isinstance(middle, Depthwise)
    number, height = middle.output.shape[:2]
    total = number * height

    def make_strand(strand: int) -> None:
        bands = _StrandBuilder(form.lines, before, middle, after, build)
        first, last = total * strand // STRANDS, total * (strand + 1) // STRANDS
        while first < last:
            n = first // height
            end = min(last, (n + 1) * height)
            bands.add(n, first - n * height, end - n * height)
            first = end

    build.strands(STRANDS, make_strand)


class _StrandBuilder:
    """The steps of the bands of one strand, with its memory."""

    def __init__(
        self, lines: int, before: tuple[LoopOp, ...], middle: Depthwise, after: tuple[LoopOp, ...], build: Builder
    ) -> None:
        self.lines, self.before, self.middle, self.after, self.build = lines, before, middle, after, build
        _, _, width, channels = middle.input.shape
        self.ring = Buffer("ring", middle.input.dtype, (ring_lines(middle.window, lines) * width, channels))
        _, _, out_width, out_channels = middle.output.shape
        self.band = Buffer("band", middle.output.dtype, (1, lines, out_width, out_channels))

    def add(self, n: int, first: int, last: int) -> None:
        """Add the steps for lines [first, last) of image n of the output."""
        window, (_, height, width, channels) = self.middle.window, self.middle.input.shape
        size, stride, top = window.size[0], window.strides[0], window.padding[0]
        lines, capacity = self.lines, ring_lines(window, self.lines)
        computed = max(0, first * stride - top)
        shift = -((first + lines - 1) * stride + size - top) % capacity  # the first band's window ends with the ring
        ring = Ring("ring", self.ring.dtype, (1, height, width, channels), of=self.ring, lines=capacity, shift=shift)
        for start in range(first, last, lines):
            end = min(start + lines, last)
            needed = min(height, (end - 1) * stride + size - top)
            if self.before and computed < needed:
                shape = (1, needed - computed, width, channels)
                band = RowBand("ring", ring.dtype, shape, of=self.ring, first=(computed + shift) % capacity * width)
                self._contract(self.before[0], n, computed, needed, band)
                computed = needed
            self._depthwise(n, start, end, ring)
            for part in self.after:
                self._contract(part, n, start, end, lines_of(part.output, n, start, end))

    def _depthwise(self, n: int, start: int, end: int, ring: Ring) -> None:
        part, (top, bottom, left, right) = self.middle, self.middle.window.padding
        source = ring if self.before else lines_of(part.input, n, 0, part.input.shape[1])
        out = lines_of(part.output, n, start, end)
        operands = tuple(lines_of(b, n, start, end) if b.shape == part.output.shape else b for b in part.operands)
        if self.after:
            out = RowBand("band", out.dtype, out.shape, of=self.band)
        padding = top - start * part.window.strides[0], bottom, left, right
        window = dataclasses.replace(part.window, padding=padding)
        self.build.part(dataclasses.replace(part, output=out, input=source, operands=operands, window=window))

    def _contract(self, part: LoopOp, n: int, start: int, end: int, out: Buffer) -> None:
        """Add the steps for lines [start, end) of a convolution of image n, written to `out`."""
        assert isinstance(part, Contract)
        window, height = part.window, part.input.shape[1]
        top, _, left, right = window.padding
        low = start * window.strides[0] - top
        high = (end - 1) * window.strides[0] - top + (window.size[0] - 1) * window.dilations[0] + 1
        input_lines = max(0, low), min(height, high)
        if input_lines[0] >= input_lines[1]:
            raise NoKernel("lines with windows in the padding")
        if part.input is self.middle.output:
            source: Buffer = RowBand("band", part.input.dtype, (1, end - start, *part.input.shape[2:]), of=self.band)
        else:
            source = lines_of(part.input, n, *input_lines)
        window = dataclasses.replace(window, padding=(input_lines[0] - low, high - input_lines[1], left, right))
        operands = tuple(lines_of(b, n, start, end) if b.shape == part.output.shape else b for b in part.operands)
        self.build.part(dataclasses.replace(part, output=out, input=source, operands=operands, window=window))


def lines_of(image: Buffer, n: int, start: int, end: int) -> RowBand:
    """Return lines [start, end) of image n."""
    _, height, width, channels = image.shape
    first = (n * height + start) * width
    return RowBand(image.name, image.dtype, (1, end - start, width, channels), of=image, first=first)
