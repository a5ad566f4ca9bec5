"""Blocks of elements repeated or moved between space, depth and batch.

Lives here: the rules of TILE, SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND and MIRROR_PAD.
Not here: other views (views.py), joining and padding with a number (moving.py).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ..loops.forms import IndexMap, Move
from .context import LoweringContext, NoLowering, Operand
from .moving import row_major
from .quantized import same_numbers
from .registry import rule
from .views import layout, moved

MOST_BOXES = 100


def _moving(ctx: LoweringContext, rank: int | None = None) -> Operand:
    x = ctx.operand(0)
    if rank is not None and len(x.shape) != rank:
        raise NoLowering(f"{x} is of another rank than {rank}")
    return x


@rule("TILE")
def tile(ctx: LoweringContext) -> None:
    x, times = _moving(ctx), [int(n) for n in ctx.constant(1)]
    if len(times) != len(x.shape) or min(times, default=1) < 0:
        raise NoLowering(f"multiples {times}")
    y = ctx.output([n * t for n, t in zip(x.shape, times)])
    same_numbers(x, y)
    places = layout(x)
    apart = places.reshape([v for n in x.shape for v in (1, n)])
    moved(ctx, y, x, np.broadcast_to(apart, [v for n, t in zip(x.shape, times) for v in (t, n)]), places)


@rule("SPACE_TO_DEPTH")
def space_to_depth(ctx: LoweringContext) -> None:
    x, b = _moving(ctx, 4), ctx.attr("block_size")
    n, h, w, c = x.shape
    if b < 1 or h % b or w % b:
        raise NoLowering(f"blocks of {b} in {x}")
    y = ctx.output((n, h // b, w // b, b * b * c))
    same_numbers(x, y)
    places = layout(x)
    moved(ctx, y, x, places.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5), places)


@rule("DEPTH_TO_SPACE")
def depth_to_space(ctx: LoweringContext) -> None:
    x, b = _moving(ctx, 4), ctx.attr("block_size")
    n, h, w, c = x.shape
    if b < 1 or c % (b * b):
        raise NoLowering(f"blocks of {b} in {x}")
    y = ctx.output((n, h * b, w * b, c // (b * b)))
    same_numbers(x, y)
    places = layout(x)
    moved(ctx, y, x, places.reshape(n, h, w, b, b, c // (b * b)).transpose(0, 1, 3, 2, 4, 5), places)


def _blocks(ctx: LoweringContext, x: Operand) -> tuple[list[int], list[list[int]]]:
    """The sizes of blocks, and what is added or cut before and behind each axis of space."""
    block, pairs = [int(b) for b in ctx.constant(1).reshape(-1)], ctx.constant(2).tolist()
    fits = len(pairs) == len(block) < len(x.shape) and all(len(p) == 2 and min(p) >= 0 for p in pairs)
    if not fits or min(block, default=1) < 1:
        raise NoLowering(f"blocks {block}, pairs {pairs}")
    return block, pairs


@rule("SPACE_TO_BATCH_ND")
def space_to_batch(ctx: LoweringContext) -> None:
    """A box for each place in a block: the pixels of every block that are at this place."""
    x = _moving(ctx)
    block, pairs = _blocks(ctx, x)
    m, n = len(block), x.shape[0]
    padded = [s + before + behind for s, (before, behind) in zip(x.shape[1:], pairs)]
    if any(p % b for p, b in zip(padded, block)) or math.prod(block) > MOST_BOXES:
        raise NoLowering(f"blocks {block} in {padded}")
    rest = x.shape[m + 1 :]
    y = ctx.output((n * math.prod(block), *(p // b for p, b in zip(padded, block)), *rest))
    same_numbers(x, y)
    if not y.size:
        raise NoLowering("no elements")
    strides = row_major(x.shape)
    boxes = []
    for number, corner in enumerate(itertools.product(*map(range, block))):
        start, extent, offset = [number * n], [n], 0
        for axis, (k, b, (before, _)) in enumerate(zip(corner, block, pairs)):
            first = max(-(-(before - k) // b), 0)  # the first block whose place k is inside the image
            last = (before + x.shape[axis + 1] - 1 - k) // b
            start.append(first)
            extent.append(max(last - first + 1, 0))
            offset += (first * b + k - before) * strides[axis + 1]
        steps = (strides[0], *(s * b for s, b in zip(strides[1:], block)), *strides[m + 1 :])
        if 0 not in extent:
            boxes.append(IndexMap((*start, *(0,) * len(rest)), (*extent, *rest), offset, steps))
    fill = None if not any(map(any, pairs)) else float(x.zero if x.is_quantized else 0)
    ctx.form(Move, y.buffer, (x.buffer,) * len(boxes), tuple(boxes), fill)


@rule("BATCH_TO_SPACE_ND")
def batch_to_space(ctx: LoweringContext) -> None:
    x = _moving(ctx)
    block, crops = _blocks(ctx, x)
    m, space, rest = len(block), x.shape[1 : len(block) + 1], x.shape[len(block) + 1 :]
    if x.shape[0] % math.prod(block):
        raise NoLowering(f"blocks {block} of {x}")
    n = x.shape[0] // math.prod(block)
    whole = [s * b for s, b in zip(space, block)]
    sizes = [w - before - behind for w, (before, behind) in zip(whole, crops)]
    if min(sizes, default=0) < 0:
        raise NoLowering(f"crops {crops} of {whole}")
    y = ctx.output((n, *sizes, *rest))
    same_numbers(x, y)
    places = layout(x)
    split = places.reshape(*block, n, *space, *rest)
    apart = split.transpose(m, *(v for i in range(m) for v in (m + 1 + i, i)), *range(2 * m + 1, split.ndim))
    if not any(map(any, crops)):
        moved(ctx, y, x, apart, places)
        return
    steps = tuple(apart.strides)
    between = ctx.new(x.dtype, apart.shape)
    ctx.form(Move, between, (x.buffer,), (IndexMap((0,) * apart.ndim, apart.shape, 0, steps),))
    joined = ctx.viewed(between, (n, *whole, *rest))
    strides = row_major(joined.shape)
    offset = sum(before * s for (before, _), s in zip(crops, strides[1:]))
    ctx.form(Move, y.buffer, (joined,), (IndexMap((0,) * len(y.shape), y.shape, offset, strides),))


@rule("MIRROR_PAD")
def mirror_pad(ctx: LoweringContext) -> None:
    """A box for each part of each axis: what is before, the input, what is behind."""
    x, pairs = _moving(ctx), ctx.constant(1)
    edge = 1 if ctx.attr("mode") == "REFLECT" else 0  # whether the edge is not repeated
    rank = len(x.shape)
    if pairs.shape != (rank, 2) or any(not 0 <= p <= max(n - edge, 0) for n, two in zip(x.shape, pairs) for p in two):
        raise NoLowering(f"paddings {pairs.tolist()}")
    y = ctx.output([int(before) + n + int(behind) for n, (before, behind) in zip(x.shape, pairs)])
    same_numbers(x, y)
    parts = []
    for n, stride, (before, behind) in zip(x.shape, row_major(x.shape), pairs.tolist()):
        along = [  # start and extent in the output, where in the input, step
            (0, before, (before - 1 + edge) * stride, -stride),
            (before, n, 0, stride),
            (before + n, behind, (n - 1 - edge) * stride, -stride),
        ]
        parts.append([p for p in along if p[1]])
    if math.prod(map(len, parts)) > MOST_BOXES or not x.size:
        raise NoLowering(f"paddings {pairs.tolist()}")
    boxes = []
    for chosen in itertools.product(*parts):
        start, extent, offsets, strides = zip(*chosen) if chosen else ((), (), (), ())
        boxes.append(IndexMap(start, extent, sum(offsets), strides))
    ctx.form(Move, y.buffer, (x.buffer,) * len(boxes), tuple(boxes))
