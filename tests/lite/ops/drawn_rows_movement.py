"""Rows of operators that move elements: shapes, orders, parts, joining, padding (see drawn.Row).

Lives here: those whose elements stay what they are, of every type that an official kernel takes, without
scales and with one that stays.
Not here: outputs of other scales (drawn_rows_quantized.py), operators that make, sort or add up (drawn_rows_making.py).

Axes, sizes and places are constants in some models and computed in others, whose outputs then are dynamic. Of those the
official interpreter cannot give ones without elements, so sizes of 0 come with constants alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from drawn import NUMPY, Draw, Drawn, Row, T, plain

REALS = ("FLOAT32", "FLOAT16", "BFLOAT16")
WIDE = (
    *REALS,
    "FLOAT64",
    "INT8",
    "UINT8",
    "INT16",
    "UINT16",
    "INT32",
    "UINT32",
    "INT64",
    "UINT64",
    "BOOL",
    "COMPLEX64",
)
EVERY = (*WIDE, "COMPLEX128", "STRING", "INT4", "UINT4", "INT2")
SIX = ("FLOAT32", "INT8", "UINT8", "INT16", "INT32", "INT64")
USUAL = (*REALS, "INT8", "UINT8", "INT16", "INT32", "INT64", "BOOL")


def data(d: Draw, *shape: int) -> T:
    """Elements of the row's type; in the file where the official interpreter takes none from outside (int2) or takes
    something else (one string without dimensions)."""
    x = d.t(*shape, constant=d.kind == "INT2" or (d.kind == "STRING" and not shape))
    x.scale, x.zero = getattr(d, "scaled", (None, 0))
    return x


def sizes(d: Draw, low: int, high: int, zero: bool = False) -> tuple[int, ...]:
    """A shape of low to high dimensions. zero: one may be 0, but of a constant."""
    result = [d.size(1, 3) for _ in range(d.size(low, high))]
    if zero and result and d.kind != "INT2" and d.one(*[False] * 4, True):
        result[d.size(0, len(result) - 1)] = 0
    return tuple(result)


def places(d: Draw, values: Any, *kinds: str, fixed: bool = False) -> T:
    """Axes, sizes or places, of one of the types; in the file or given when the model runs. fixed: in the file."""
    kind = d.one(*(kinds or ("INT32", "INT64")))
    array = np.array(values, NUMPY[kind])
    return T(kind, array.shape, values=array, constant=fixed or d.one(True, False))


def either(d: Draw, axis: int, rank: int) -> int:
    """An axis counted from the front or from the end."""
    return int(d.one(axis, axis - rank))


def _made(d: Draw, *inputs: T, n: int = 1, **options: Any) -> Drawn:
    scale, zero = getattr(d, "scaled", (None, 0))
    return Drawn(list(inputs), [T(d.kind, (), scale, zero) for _ in range(n)], options)


def _count(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=int))


def _another_shape(d: Draw, n: int) -> list[int]:
    """Sizes whose product is n, one of them perhaps -1. (Of an option [0] alone means a scalar.)"""
    if not n:
        return [0, d.size(1, 3)]
    result: list[int] = []
    while n > 1 and len(result) < 5:
        by = d.one(*[i for i in range(1, n + 1) if n % i == 0])
        result.append(by)
        n //= by
    result = [*result, n] if n != 1 else [*result, *[1] * d.size(0, 2)]
    if result and d.one(True, False):
        result[d.size(0, len(result) - 1)] = -1
    return result


def reshape(d: Draw) -> Drawn:
    shape = sizes(d, 0, 6, zero=True)
    return _made(d, data(d, *shape), places(d, _another_shape(d, _count(shape)), "INT32", fixed=not _count(shape)))


def reshape_by_option(d: Draw) -> Drawn:
    shape = sizes(d, 0, 6, zero=True)
    new = _another_shape(d, _count(shape))
    return _made(d, data(d, *shape), new_shape=new or [0])


def squeeze(d: Draw) -> Drawn:
    shape = tuple(d.one(1, 1, n) for n in sizes(d, 1, 7, zero=True))
    ones = [i for i, n in enumerate(shape) if n == 1]
    named = [either(d, i, len(shape)) for i in ones if d.one(True, False)]
    return _made(d, data(d, *shape), squeeze_dims=named)


def expand(d: Draw) -> Drawn:
    shape = sizes(d, 0, 6, zero=True)
    axis = either(d, d.size(0, len(shape)), len(shape) + 1)
    return _made(d, data(d, *shape), places(d, d.one(axis, [axis]), fixed=not _count(shape)))


def shape_of(d: Draw) -> Drawn:
    kind = d.one("INT32", "INT64")
    return Drawn([data(d, *sizes(d, 1, 8, zero=True))], [plain(kind)], {"out_type": kind})


def rank_of(d: Draw) -> Drawn:
    return Drawn([data(d, *sizes(d, 0, 8, zero=True))], [plain("INT32")])


def transpose(d: Draw) -> Drawn:
    shape = sizes(d, 1, 6)
    order = [either(d, int(i), len(shape)) for i in d.rng.permutation(len(shape))]
    return _made(d, data(d, *shape), places(d, order, "INT32"))


def reverse(d: Draw) -> Drawn:
    """Axes that are next to each other: the official kernel takes no others."""
    shape = sizes(d, 1, 8)
    first = d.size(0, len(shape) - 1)
    axes = range(first, d.size(first, len(shape) - 1) + 1)
    return _made(d, data(d, *shape), places(d, [either(d, a, len(shape)) for a in axes], "INT32"))


def reverse_sequence(d: Draw) -> Drawn:
    shape = sizes(d, 2, 6)
    seq, batch = (int(i) for i in d.rng.permutation(len(shape))[:2])
    lengths = places(d, d.rng.integers(0, shape[seq], shape[batch], endpoint=True))
    return _made(d, data(d, *shape), lengths, seq_dim=seq, batch_dim=batch)


def gather(d: Draw) -> Drawn:
    shape = sizes(d, 1, 6)
    axis = d.size(0, len(shape) - 1)
    batch = d.size(0, axis)
    chosen = (*shape[:batch], *sizes(d, 0, 2))
    indices = places(d, d.rng.integers(0, shape[axis], chosen), "INT16", "INT32", "INT64")
    return _made(
        d,
        data(d, *shape),
        indices,
        axis=either(d, axis, len(shape)),
        batch_dims=either(d, batch, len(chosen)) if batch < len(chosen) else batch,
    )


def gather_lines(d: Draw) -> Drawn:
    """Along the first axis; int4 in whole bytes, as the official kernel copies."""
    shape = (d.size(1, 4), d.size(1, 3), 2) if d.kind == "INT4" else (d.size(1, 6),)
    return _made(d, data(d, *shape), places(d, d.rng.integers(0, shape[0], d.size(1, 4)), "INT16", "INT32", "INT64"))


def gather_nd(d: Draw) -> Drawn:
    shape = sizes(d, 1, 5)
    depth, outer = d.size(1, len(shape)), sizes(d, 0, 2)
    vectors = np.stack([d.rng.integers(0, n, outer) for n in shape[:depth]], -1)
    return _made(d, data(d, *shape), places(d, vectors, "INT16", "INT32", "INT64"))


def scatter_nd(d: Draw) -> Drawn:
    """Places are drawn with repetition: their updates add up."""
    shape = sizes(d, 1, 5)
    depth, outer = d.size(1, len(shape)), sizes(d, 1, 2)
    vectors = np.stack([d.rng.integers(0, n, outer) for n in shape[:depth]], -1)
    return _made(d, places(d, vectors, "INT32"), data(d, *outer, *shape[depth:]), places(d, shape, "INT32"))


def slice_(d: Draw) -> Drawn:
    shape = sizes(d, 1, 5)
    begin = [d.size(0, n - 1) for n in shape]
    size = [d.one(-1, d.size(1, n - b)) for n, b in zip(shape, begin)]
    kind = d.one("INT32", "INT64")
    return _made(d, data(d, *shape), places(d, begin, kind), places(d, size, kind))


def strided(d: Draw) -> Drawn:
    """Up to five dimensions with the new ones. Results without elements come of constants alone."""
    shape = tuple(d.size(2, 4) for _ in range(d.size(1, 4)))
    n = d.size(1, len(shape))
    strides = [d.one(1, 1, 2, -1, -2) for _ in range(n)]
    begin = [d.size(-k, k - 1) for k in shape[:n]]
    end = [d.size(-k - 2, k + 2) for k in shape[:n]]
    shrunk = sum(1 << i for i in range(n) if strides[i] > 0 and d.one(True, False, False))
    masks = {m: int(d.rng.integers(0, 1 << n)) & ~shrunk for m in ("begin_mask", "end_mask")}
    new = 0
    if len(shape) < 5 and d.one(True, False):
        place = d.size(0, n)
        begin, end, strides = ([*part[:place], 1, *part[place:]] for part in (begin, end, strides))
        below = (1 << place) - 1
        masks = {m: bits & below | (bits & ~below) << 1 for m, bits in masks.items()}
        shrunk, new = shrunk & below | (shrunk & ~below) << 1, 1 << place
    lists = [places(d, part, "INT32", fixed=True) for part in (begin, end, strides)]
    return _made(d, data(d, *shape), *lists, shrink_axis_mask=shrunk, new_axis_mask=new, **masks)


def strided_ellipsis(d: Draw) -> Drawn:
    """An ellipsis of at least one dimension: officially it takes no less."""
    shape = tuple(d.size(2, 4) for _ in range(d.size(3, 4)))
    n = d.size(1, 3)
    place = d.size(0, n - 1)
    begin = [d.size(0, 1) for _ in range(n)]
    lists = [places(d, part, "INT32") for part in (begin, [2] * n, [1] * n)]
    return _made(d, data(d, *shape), *lists, ellipsis_mask=1 << place)


def strided_offset(d: Draw) -> Drawn:
    """`end` counts from `begin`. (Computed ones, with strides in the file, crash the official kernel.)"""
    shape = tuple(d.size(2, 4) for _ in range(d.size(1, 4)))
    begin = [d.size(0, n - 1) for n in shape]
    count = [d.size(1, n - b) for n, b in zip(shape, begin)]
    lists = [places(d, part, "INT32", fixed=True) for part in (begin, count, [1] * len(shape))]
    return _made(d, data(d, *shape), *lists, offset=True)


def update_slice(d: Draw) -> Drawn:
    """Places that would leave the operand, too."""
    shape = sizes(d, 1, 6)
    part = tuple(d.size(1, n) for n in shape)
    return _made(d, data(d, *shape), data(d, *part), places(d, [d.size(-2, n + 1) for n in shape]))


def _widths(d: Draw, shape: Sequence[int], most: int = 2) -> list[list[int]]:
    return [[d.size(0, most), d.size(0, most)] for _ in shape]


def pad(d: Draw) -> Drawn:
    shape = sizes(d, 1, 5)
    return _made(d, data(d, *shape), places(d, _widths(d, shape), "INT8", "INT16", "INT32", "INT64"))


def pad_v2(d: Draw) -> Drawn:
    shape = sizes(d, 1, 5)
    return _made(d, data(d, *shape), places(d, _widths(d, shape), "INT8", "INT16", "INT32", "INT64"), data(d))


def mirror_pad(d: Draw) -> Drawn:
    mode, shape = d.one("REFLECT", "SYMMETRIC"), sizes(d, 1, 5)
    less = mode == "REFLECT"
    widths = [[d.size(0, n - less), d.size(0, n - less)] for n in shape]
    return _made(d, data(d, *shape), places(d, widths), mode=mode)


def concatenate(d: Draw) -> Drawn:
    shape = list(sizes(d, 1, 6))
    axis, parts = d.size(0, len(shape) - 1), []
    for _ in range(d.size(1, 5)):
        shape[axis] = d.one(0, d.size(1, 3), d.size(1, 3))
        parts.append(data(d, *shape))
    return _made(d, *parts, axis=either(d, axis, len(shape)))


def split(d: Draw) -> Drawn:
    shape, n = list(sizes(d, 1, 6)), d.size(2 if d.kind == "FLOAT16" else 1, 4)  # XNNPACK does not take one part
    axis = d.size(0, len(shape) - 1)
    shape[axis] *= n
    return _made(d, places(d, either(d, axis, len(shape)), "INT32", fixed=True), data(d, *shape), n=n, num_splits=n)


def split_v(d: Draw) -> Drawn:
    shape, parts = list(sizes(d, 1, 6)), [d.size(0, 3) for _ in range(d.size(1, 4))]
    axis = d.size(0, len(shape) - 1)
    shape[axis] = sum(parts) or 1
    parts[-1] += shape[axis] - sum(parts)
    if d.one(True, False):
        parts[d.size(0, len(parts) - 1)] = -1
    return _made(
        d,
        data(d, *shape),
        places(d, parts, fixed=True),
        places(d, axis, "INT32", fixed=True),
        n=len(parts),
        num_splits=len(parts),
    )


def pack(d: Draw) -> Drawn:
    shape, n = sizes(d, 0, 5), d.size(1, 4)
    axis = either(d, d.size(0, len(shape)), len(shape) + 1)
    return _made(d, *(data(d, *shape) for _ in range(n)), axis=axis, values_count=n)


def unpack(d: Draw) -> Drawn:
    shape = sizes(d, 1, 6)
    axis = d.size(0, len(shape) - 1)
    return _made(d, data(d, *shape), n=shape[axis], axis=either(d, axis, len(shape)), num=shape[axis])


def tile(d: Draw) -> Drawn:
    shape = sizes(d, 1, 6)
    return _made(d, data(d, *shape), places(d, [d.size(1, 2) for _ in shape]))


def tile_by_nothing(d: Draw) -> Drawn:
    shape = sizes(d, 1, 4)
    times = [d.size(0, 2) for _ in shape]
    times[-1] = 0
    return _made(d, data(d, *shape), places(d, times, fixed=True))


def broadcast_to(d: Draw) -> Drawn:
    expected = sizes(d, 0, 6)
    shape = tuple(d.one(1, n) for n in expected[d.size(0, len(expected)) :])
    return _made(d, data(d, *shape), places(d, expected))


def _blocks(d: Draw) -> tuple[list[int], int]:
    return [d.size(1, 3) for _ in range(d.size(1, 2))], d.size(1, 2)


def space_to_batch(d: Draw) -> Drawn:
    block, n = _blocks(d)
    widths = [[d.size(0, 2), d.size(0, 2)] for _ in block]
    space = [k * d.size(2, 4) - a - b if k > 1 else d.size(1, 3) for k, (a, b) in zip(block, widths)]
    space, widths = zip(*((s, w) if s > 0 else (k, [0, 0]) for s, w, k in zip(space, widths, block)))
    return _made(d, data(d, n, *space, d.size(1, 2)), places(d, block, "INT32"), places(d, widths, "INT32"))


def batch_to_space(d: Draw) -> Drawn:
    block, n = _blocks(d)
    space = [d.size(1, 3) for _ in block]
    crops = [[a := d.size(0, s * k - 1), d.size(0, s * k - 1 - a)] for s, k in zip(space, block)]
    return _made(
        d, data(d, n * _count(block), *space, d.size(1, 2)), places(d, block, "INT32"), places(d, crops, "INT32")
    )


def space_to_depth(d: Draw) -> Drawn:
    k = d.size(1, 3)
    return _made(d, data(d, d.size(0, 2), k * d.size(), k * d.size(1, 3), d.size(1, 3)), block_size=k)


def depth_to_space(d: Draw) -> Drawn:
    k = d.size(2 if d.kind == "FLOAT16" else 1, 3)  # XNNPACK does not take blocks of one pixel
    return _made(d, data(d, d.size(1, 2), d.size(), d.size(1, 3), k * k * d.size(1, 3)), block_size=k)


def _scaled(draw: Callable[[Draw], Drawn]) -> Callable[[Draw], Drawn]:
    """The same with a scale and a zero point, of inputs and outputs."""

    def scaled(d: Draw) -> Drawn:
        d.scaled = (d.scale(), d.zero())  # type: ignore[attr-defined]
        return draw(d)

    return scaled


def _without(*kinds: str) -> tuple[str, ...]:
    return tuple(k for k in EVERY if k not in kinds)


def _row(name: str, kinds: tuple[str, ...], draw: Any, label: str = "plain", path: str = "REF") -> Row:
    return Row(name, kinds, draw, label=f"{name} {label}", path=path)


ROWS = [
    _row("RESHAPE", EVERY, reshape),
    _row("RESHAPE", EVERY, reshape_by_option, "by option"),
    _row("SQUEEZE", EVERY, squeeze),
    _row("EXPAND_DIMS", EVERY, expand),
    _row("SHAPE", EVERY, shape_of),
    _row("RANK", EVERY, rank_of),
    _row("TRANSPOSE", _without("STRING", "COMPLEX128", "INT2"), transpose),
    _row("REVERSE_V2", USUAL, reverse),
    _row("REVERSE_SEQUENCE", ("FLOAT32", "UINT8", "INT16", "INT32", "INT64"), reverse_sequence),
    _row("GATHER", USUAL, gather),
    _row("GATHER", ("INT4", "STRING"), gather_lines, "of lines"),
    _row("GATHER_ND", (*USUAL, "STRING"), gather_nd),
    _row("SCATTER_ND", ("FLOAT32", "INT8", "UINT8", "INT32", "INT64", "BOOL"), scatter_nd),
    _row("SLICE", _without("UINT4", "INT2", "COMPLEX128"), slice_),
    _row("STRIDED_SLICE", (*WIDE, "STRING"), strided),
    _row("STRIDED_SLICE", (*WIDE, "STRING"), strided_ellipsis, "with ellipsis"),
    _row("STRIDED_SLICE", (*WIDE, "STRING"), strided_offset, "with offset"),
    _row("DYNAMIC_UPDATE_SLICE", (*WIDE, "COMPLEX128"), update_slice),
    _row("PAD", USUAL, pad),
    _row("PADV2", USUAL, pad_v2),
    _row("MIRROR_PAD", WIDE, mirror_pad),
    _row("CONCATENATION", (*USUAL, "UINT32", "INT4"), concatenate),
    _row("SPLIT", SIX, split),
    _row("SPLIT", ("FLOAT16",), split, path="AUTO"),
    _row("SPLIT_V", SIX, split_v),
    _row("PACK", (*SIX, "UINT32"), pack),
    _row("UNPACK", tuple(k for k in USUAL if k != "INT64"), unpack),
    _row("TILE", (*WIDE, "STRING"), tile),
    _row("TILE", WIDE, tile_by_nothing, "by nothing"),
    _row("BROADCAST_TO", (*WIDE, "COMPLEX128"), broadcast_to),
    _row("SPACE_TO_BATCH_ND", WIDE, space_to_batch),
    _row("BATCH_TO_SPACE_ND", WIDE, batch_to_space),
    _row("SPACE_TO_DEPTH", ("FLOAT32", "INT8", "UINT8", "INT32", "INT64"), space_to_depth),
    _row("DEPTH_TO_SPACE", ("FLOAT32", "INT8", "UINT8", "INT32", "INT64"), depth_to_space),
    _row("DEPTH_TO_SPACE", ("FLOAT16",), depth_to_space, path="AUTO"),
]

BYTES = ("INT8", "UINT8", "INT16", "INT4")
ROWS += [
    Row(row.name, tuple(k for k in row.kinds if k in BYTES), _scaled(row.draw), label=f"{row.label}, scaled")
    for row in ROWS
    if row.path == "REF" and row.name not in ("SHAPE", "RANK", "SCATTER_ND")
]
