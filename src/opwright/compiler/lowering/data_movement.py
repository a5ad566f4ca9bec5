"""Data movement: moves by index maps, padding and concatenation, blocks moved between space, depth and batch.

Lives here: `layout`, `move`, `move_view`; the rules of Pad, Concat, Pack, Tile, SpaceToDepth,
DepthToSpace, SpaceToBatchND and BatchToSpaceND, of their builtins, of MirrorPad, its gradient and Roll.
Not here: operators whose results are views (views.py), padding by a computed value (padding.py), `Move` itself
(../loops/ops.py).

An operator applied to a NumPy array of the operand's shape returns a view; its offset and strides are the index map.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import uint8
from ..loops.buffers import Buffer, IndexMap, row_major
from ..loops.expressions import apply, arg, lookup
from ..loops.ops import Map, Move, View
from .context import LoweringContext, NoLowering, RuleOperand
from .nodes import check_channels_last
from .operand_expressions import map_elements, same_numbers
from .registry import CATALOGUE, rule


def layout(operand: RuleOperand | Buffer) -> np.ndarray:
    """Return an array of one byte per element of the operand, whose views describe index maps; it is never written."""
    return np.empty(operand.shape, np.int8)


def move(
    ctx: LoweringContext, output: Buffer, *parts: tuple[Buffer, np.ndarray, Sequence[int]], fill: float | None = None
) -> None:
    """Add a move that writes the elements of views in order.

    parts: a buffer, a view of its layout, the start of its box in the output. fill: of all other elements.
    """
    maps, buffers = [], []
    for buffer, view, start in parts:
        if view.size:
            maps.append(IndexMap(tuple(start), view.shape, _offset(view), view.strides))
            buffers.append(buffer)
    ctx.add(Move, output, tuple(buffers), tuple(maps), fill)


def move_view(ctx: LoweringContext, output: Buffer, source: Buffer, view: np.ndarray, layout: np.ndarray) -> None:
    """Write the elements of a view of the source's layout in order; as a View if it contains all of them in order.

    layout: of the source. raises NoLowering if the array is not a view of it
    """
    if math.prod(view.shape) != output.size or (view.size and not np.may_share_memory(view, layout)):
        raise NoLowering(f"{view.shape} is not a view for {output}")
    offset, strides = _offset(view) if view.size else 0, tuple(view.strides)
    is_all = view.size == source.size and not offset
    if is_all and all(n == 1 or s == r for n, s, r in zip(view.shape, strides, row_major(view.shape))):
        ctx.add(View, output, source)
        return
    box = IndexMap((0,) * view.ndim, view.shape, offset, strides)
    with ctx.reshaped(output, view.shape) as y:
        ctx.add(Move, y, (source,), (box,))


def _offset(view: np.ndarray) -> int:
    """Return the offset of a view in its layout, in bytes and thus elements."""
    base: Any = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    return int(view.__array_interface__["data"][0] - base.__array_interface__["data"][0])


def margins_of(ctx: LoweringContext) -> tuple[list[int], list[int]]:
    """Return the sizes of padding before and after each axis of the first input. Raises NoLowering."""
    margins, rank = ctx.constant(1), len(ctx.operand(0).shape)
    if margins.shape != (rank, 2) or (margins < 0).any():
        raise NoLowering(f"paddings {margins.tolist()}")
    return margins[:, 0].tolist(), margins[:, 1].tolist()


@rule("Pad", "PAD")
def pad(ctx: LoweringContext) -> None:
    """Lower padding with a constant, by default the representation of 0."""
    x, value, (before, after) = ctx.operand(0), ctx.optional(2), margins_of(ctx)
    y = ctx.output([b + n + a for b, n, a in zip(before, x.shape, after)])
    same_numbers(x, y)
    fill = x.zero
    if value is not None:
        same_numbers(value, x)
        fill = ctx.constant(2).reshape(-1)[0].item()
    move(ctx, y.buffer, (x.buffer, layout(x), before), fill=fill)


@rule("Concat", "CONCATENATION", "Pack", "PACK")
def join(ctx: LoweringContext) -> None:
    """Lower concatenation along an axis, existing or new."""
    parts, axis, packs = ctx.operands, int(ctx.attr("axis")), ctx.operator in ("Pack", "PACK")
    shape = list(parts[0].shape)
    rank = len(shape) + packs
    if not -rank <= axis < rank or ctx.node.activation != "NONE":
        raise NoLowering(f"concatenation along axis {axis} of {rank}")
    axis %= rank
    size, others = 0, shape if packs else shape[:axis] + shape[axis + 1 :]
    moves: list[tuple[Buffer, np.ndarray, Sequence[int]]] = []
    for part in parts:
        if list(part.shape if packs else part.shape[:axis] + part.shape[axis + 1 :]) != others:
            raise NoLowering(f"concatenation of {parts} along axis {axis}")
        view = layout(part)
        view = view[(slice(None),) * axis + (None,)] if packs else view
        moves.append((part.buffer, view, [size if i == axis else 0 for i in range(rank)]))
        size += view.shape[axis]
    y = ctx.output((*others[:axis], size, *others[axis:]))
    if ctx.operator == "CONCATENATION" and y.dtype is uint8 and y.is_quantized:
        sources = _rescaled(ctx, parts, y, axis)
        moves = [(source, view, start) for source, (_, view, start) in zip(sources, moves)]
    else:
        for part in parts:
            same_numbers(part, y)
    move(ctx, y.buffer, *moves)


BYTE = 256
"""Values of a byte."""


def _rescaled(ctx: LoweringContext, parts: Sequence[RuleOperand], y: RuleOperand, axis: int) -> list[Buffer]:
    """Return the parts of a concatenation of uint8 in the output's scale: by tables of the operator's integer rule."""
    if any(part.dtype is not uint8 or not part.is_quantized for part in parts):
        raise NoLowering(f"concatenation of {parts} to {y}")
    if all((part.scale, part.zero) == (y.scale, y.zero) for part in parts):
        return [part.buffer for part in parts]
    shape = [BYTE if i == axis else 1 for i in range(len(y.shape))]
    values = np.arange(BYTE, dtype=np.uint8).reshape(shape)
    entries = np.empty([n * len(parts) if i == axis else 1 for i, n in enumerate(shape)], np.uint8)
    ctx.node.integer_kernel()([[values] * len(parts)], [entries])  # one input, repeated
    sources = []
    for i, (part, table) in enumerate(zip(parts, np.split(entries.reshape(-1), len(parts)))):
        if (part.scale, part.zero) == (y.scale, y.zero):
            sources.append(part.buffer)
            continue
        rescaled = ctx.new(uint8, part.shape, f".part{i}")
        steps = Buffer(f"{y.buffer.name}.table{i}", uint8, (BYTE,), np.ascontiguousarray(table))
        ctx.add(Map, rescaled, (part.buffer, steps), lookup(arg(0, uint8), arg(1, uint8)))
        sources.append(rescaled)
    return sources


@rule("Roll", custom=("Roll",))
def roll(ctx: LoweringContext) -> None:
    """Lower a rotation of elements, one axis after the other, to moves of two boxes."""
    x = ctx.operand(0)
    shifts = ctx.constant(1).reshape(-1).tolist()
    axes = ctx.attr("axis") if ctx.node.dialect == CATALOGUE else ctx.constant(2).reshape(-1).tolist()
    y, rank = ctx.output(x.shape), len(x.shape)
    same_numbers(x, y)
    if len(shifts) != len(axes) or not axes or not x.size or any(not -rank <= a < rank for a in axes):
        raise NoLowering(f"{x} rolled by {shifts} along {axes}")
    source, steps = x.buffer, row_major(x.shape)
    for number, (shift, axis) in enumerate(zip(shifts, axes)):
        target = y.buffer if number == len(axes) - 1 else ctx.new(x.dtype, x.shape, f".axis{number}")
        size, axis = x.shape[axis], axis % rank
        shift %= size
        boxes = []
        for first, extent, offset in ((0, shift, size - shift), (shift, size - shift, 0)):
            if extent:
                start = (*(0,) * axis, first, *(0,) * (rank - axis - 1))
                sizes = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
                boxes.append(IndexMap(start, sizes, offset * steps[axis], steps))
        ctx.add(Move, target, (source,) * len(boxes), tuple(boxes))
        source = target


MAX_BOXES = 100


@rule("Tile", "TILE")
def tile(ctx: LoweringContext) -> None:
    x, times = ctx.operand(0), [int(n) for n in ctx.constant(1)]
    if len(times) != len(x.shape) or min(times, default=1) < 0:
        raise NoLowering(f"multiples {times}")
    y = ctx.output([n * t for n, t in zip(x.shape, times)])
    same_numbers(x, y)
    source = layout(x)
    unsqueezed = source.reshape([v for n in x.shape for v in (1, n)])
    repeated = np.broadcast_to(unsqueezed, [v for n, t in zip(x.shape, times) for v in (t, n)])
    move_view(ctx, y.buffer, x.buffer, repeated, source)


@rule("SpaceToDepth", "DepthToSpace", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def space_and_depth(ctx: LoweringContext) -> None:
    x, b = ctx.operand(0), int(ctx.attr("block_size"))
    to_depth = ctx.operator in ("SpaceToDepth", "SPACE_TO_DEPTH")
    check_channels_last(ctx)
    if len(x.shape) != 4 or b < 1 or (x.shape[1] % b or x.shape[2] % b if to_depth else x.shape[3] % (b * b)):
        raise NoLowering(f"blocks of {b} in {x}")
    n, h, w, c = x.shape
    source = layout(x)
    if to_depth:
        shape, split = (n, h // b, w // b, b * b * c), source.reshape(n, h // b, b, w // b, b, c)
    else:
        shape, split = (n, h * b, w * b, c // (b * b)), source.reshape(n, h, w, b, b, c // (b * b))
    y = ctx.output(shape)
    same_numbers(x, y)
    move_view(ctx, y.buffer, x.buffer, split.transpose(0, 1, 3, 2, 4, 5), source)


def _blocks(ctx: LoweringContext, x: RuleOperand) -> tuple[list[int], list[list[int]]]:
    """Return the block sizes, and the padding or crops of each spatial axis."""
    block, pairs = [int(b) for b in ctx.constant(1).reshape(-1)], ctx.constant(2).tolist()
    fits = len(pairs) == len(block) < len(x.shape) and all(len(p) == 2 and min(p) >= 0 for p in pairs)
    if not fits or min(block, default=1) < 1:
        raise NoLowering(f"blocks {block}, pairs {pairs}")
    return block, pairs


@rule("SpaceToBatchND", "SPACE_TO_BATCH_ND")
def space_to_batch(ctx: LoweringContext) -> None:
    """Lower SpaceToBatchND to one box per position in a block: the pixels of every block at that position."""
    x = ctx.operand(0)
    block, pairs = _blocks(ctx, x)
    m, n = len(block), x.shape[0]
    padded = [s + before + after for s, (before, after) in zip(x.shape[1:], pairs)]
    if any(p % b for p, b in zip(padded, block)) or math.prod(block) > MAX_BOXES:
        raise NoLowering(f"blocks {block} in {padded}")
    inner = x.shape[m + 1 :]
    y = ctx.output((n * math.prod(block), *(p // b for p, b in zip(padded, block)), *inner))
    same_numbers(x, y)
    if not y.size:
        raise NoLowering("no elements")
    strides = row_major(x.shape)
    boxes = []
    for number, corner in enumerate(itertools.product(*map(range, block))):
        start, extent, offset = [number * n], [n], 0
        for axis, (k, b, (before, _)) in enumerate(zip(corner, block, pairs)):
            first = max(-(-(before - k) // b), 0)  # the first block whose position k is inside the image
            last = (before + x.shape[axis + 1] - 1 - k) // b
            start.append(first)
            extent.append(max(last - first + 1, 0))
            offset += (first * b + k - before) * strides[axis + 1]
        steps = (strides[0], *(s * b for s, b in zip(strides[1:], block)), *strides[m + 1 :])
        if 0 not in extent:
            boxes.append(IndexMap((*start, *(0,) * len(inner)), (*extent, *inner), offset, steps))
    fill = None if not any(map(any, pairs)) else float(x.zero if x.is_quantized else 0)
    ctx.add(Move, y.buffer, (x.buffer,) * len(boxes), tuple(boxes), fill)


@rule("BatchToSpaceND", "BATCH_TO_SPACE_ND")
def batch_to_space(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    block, crops = _blocks(ctx, x)
    m, space, inner = len(block), x.shape[1 : len(block) + 1], x.shape[len(block) + 1 :]
    if x.shape[0] % math.prod(block):
        raise NoLowering(f"blocks {block} of {x}")
    n = x.shape[0] // math.prod(block)
    uncut = [s * b for s, b in zip(space, block)]
    sizes = [w - before - after for w, (before, after) in zip(uncut, crops)]
    if min(sizes, default=0) < 0:
        raise NoLowering(f"crops {crops} of {uncut}")
    y = ctx.output((n, *sizes, *inner))
    same_numbers(x, y)
    source = layout(x)
    split = source.reshape(*block, n, *space, *inner)
    interleaved = split.transpose(m, *(v for i in range(m) for v in (m + 1 + i, i)), *range(2 * m + 1, split.ndim))
    if not any(map(any, crops)):
        move_view(ctx, y.buffer, x.buffer, interleaved, source)
        return
    steps = tuple(interleaved.strides)
    between = ctx.new(x.dtype, interleaved.shape)
    ctx.add(Move, between, (x.buffer,), (IndexMap((0,) * interleaved.ndim, interleaved.shape, 0, steps),))
    joined = ctx.viewed(between, (n, *uncut, *inner))
    strides = row_major(joined.shape)
    offset = sum(before * s for (before, _), s in zip(crops, strides[1:]))
    ctx.add(Move, y.buffer, (joined,), (IndexMap((0,) * len(y.shape), y.shape, offset, strides),))


@rule("MirrorPad", "MIRROR_PAD")
def mirror_pad(ctx: LoweringContext) -> None:
    """Lower mirrored padding to one box per segment of each axis: mirrored before, the input, mirrored after."""
    x, pairs = ctx.operand(0), ctx.constant(1)
    edge = 1 if ctx.attr("mode") == "REFLECT" else 0  # whether the edge is not repeated
    rank = len(x.shape)
    if pairs.shape != (rank, 2) or any(not 0 <= p <= max(n - edge, 0) for n, pair in zip(x.shape, pairs) for p in pair):
        raise NoLowering(f"paddings {pairs.tolist()}")
    y = ctx.output([int(before) + n + int(after) for n, (before, after) in zip(x.shape, pairs)])
    same_numbers(x, y)
    parts = []
    for n, stride, (before, after) in zip(x.shape, row_major(x.shape), pairs.tolist()):
        along = [  # start and extent in the output, offset in the input, stride
            (0, before, (before - 1 + edge) * stride, -stride),
            (before, n, 0, stride),
            (before + n, after, (n - 1 - edge) * stride, -stride),
        ]
        parts.append([p for p in along if p[1]])
    if math.prod(map(len, parts)) > MAX_BOXES or not x.size:
        raise NoLowering(f"paddings {pairs.tolist()}")
    boxes = []
    for chosen in itertools.product(*parts):
        start, extent, offsets, strides = zip(*chosen) if chosen else ((), (), (), ())
        boxes.append(IndexMap(start, extent, sum(offsets), strides))
    ctx.add(Move, y.buffer, (x.buffer,) * len(boxes), tuple(boxes))


@rule("MirrorPadGrad")
def mirror_pad_gradient(ctx: LoweringContext) -> None:
    """Lower the sum of each element and its mirror images, one axis after the other: both borders, turned round, are
    added to the middle."""
    x, pairs = ctx.operand(0), ctx.constant(1)
    y, skip = ctx.output(), 1 if ctx.attr("mode") == "REFLECT" else 0
    if pairs.shape != (len(x.shape), 2) or x.dtype is bool_ or not y.size:
        raise NoLowering(f"paddings {pairs.tolist()} of {x}")
    folded = x.buffer
    for axis, (before, after) in enumerate(pairs.tolist()):
        if not before and not after:
            continue
        n, stride = folded.shape[axis] - before - after, row_major(folded.shape)[axis]
        shape = (*folded.shape[:axis], n, *folded.shape[axis + 1 :])
        parts = []
        for name, first, size, offset, step in (  # of the result: the border before, the middle, the border after
            ("front", skip, before, before - 1, -1),
            ("middle", 0, n, before, 1),
            ("back", n - skip - after, after, before + n + after - 1, -1),
        ):
            if size:
                part = ctx.new(x.dtype, shape, f".{name}{axis}")
                start = tuple(first if i == axis else 0 for i in range(len(shape)))
                extent = tuple(size if i == axis else m for i, m in enumerate(shape))
                steps = tuple(step * s if i == axis else s for i, s in enumerate(row_major(folded.shape)))
                box = IndexMap(start, extent, offset * stride, steps)
                ctx.add(Move, part, (folded,), (box,), None if size == n else 0)
                parts.append(part)
        folded = ctx.new(x.dtype, shape, f".folded{axis}")
        map_elements(ctx, folded, parts, lambda *xs: functools.reduce(functools.partial(apply, "add"), xs))
    ctx.add(View, y.buffer, folded)
