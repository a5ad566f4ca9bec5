"""Forms with computed indices or sizes: slices at coordinates, cache updates, argmax pooling, data-dependent sizes.

Lives here: `SliceLayout`, `GatherSlices`, `ScatterSlices`, `PutEntries`, `MaxPlaces`, `PutInWindows`; `Expected`,
`ExpectedCount`, `GUARDS`, `Places`, `Distinct`, `Numbers`, `BroadcastSizes`.
Not here: whole rows by index (indexing_ops.py has Gather, GatherNd, ScatterNd), kernels (slices.py, scatter.py,
pooling.py and sized.py of ../kernels/).

A plan has fixed sizes. A plan for the sizes of an earlier run asserts the elements that those sizes followed from, and
stops when a later run has others. A result with as many rows as elements satisfy a condition has memory for the largest
number, and a cell holds the actual one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .buffers import Buffer, Window
from .expressions import Expr
from .ops import LoopOp


@dataclass(frozen=True, eq=False)
class Gather(LoopOp):
    """output[..., i, ...] = input[..., indices[i], ...] along an axis; indices outside are a failed guard."""

    input: Buffer
    indices: Buffer
    axis: int
    batch_dims: int = 0


@dataclass(frozen=True, eq=False)
class KeyPlaces(LoopOp):
    """Where each of `wanted` first is among keys, -1 where it is not there; all int32, of rank 1. Keys that fall are a
    failed guard; in_order: whether they are known to rise."""

    keys: Buffer
    wanted: Buffer
    in_order: bool = False


@dataclass(frozen=True, eq=False)
class GatherNd(LoopOp):
    """output[p, ...] = input[indices[p, 0], indices[p, 1] ...]: indices [..., coordinates], guarded as Gather's."""

    input: Buffer
    indices: Buffer


@dataclass(frozen=True, eq=False)
class ScatterNd(LoopOp):
    """A number, or the base, and each update joined at its coordinates, in their order: updates [p..., rest...],
    indices [p..., coordinates], guarded as Gather's. kind: what is done with the element there and the update; sums of
    truth values are or-ed."""

    updates: Buffer
    indices: Buffer
    fill: float = 0.0
    base: tuple[Buffer, ...] = ()
    kind: Literal["sum", "prod", "max", "min", "set"] = "sum"


@dataclass(frozen=True, eq=False)
class Segments(LoopOp):
    """output[s, rest...] = what is joined of input[i..., rest...] where ids[i...] is s. ids int32; those below 0 are
    left out, others behind the last segment are a failed guard. kind: sum, prod, max, min; NaN is no extreme, and of no
    elements the greatest is the least finite number."""

    input: Buffer
    ids: Buffer
    kind: Literal["sum", "prod", "max", "min"]


@dataclass(frozen=True, eq=False)
class ReverseStart(LoopOp):
    """Of each slice b along the axis `batch`, the first lengths[b] elements along the axis `time` in reverse order; a
    length that is negative or longer than the axis is a failed guard."""

    input: Buffer
    lengths: Buffer
    time: int
    batch: int


@dataclass(frozen=True, eq=False)
class SliceAt(LoopOp):
    """The box of the output's shape that starts where `starts` says, [rank], when it runs; outside: a failed guard."""

    input: Buffer
    starts: Buffer


@dataclass(frozen=True, eq=False)
class UpdateSlice(LoopOp):
    """The input, a box of it replaced by the update. starts: where, [rank]; what would be outside is moved inside.

    guarded: whether a place outside along the first axis fails instead.
    """

    input: Buffer
    update: Buffer
    starts: Buffer
    guarded: bool = False


@dataclass(frozen=True)
class SliceLayout:
    """How slices [batch..., window...] of a tensor lie in an array of slices, as in StableHLO.

    mapped: for each component of a start vector, the dimension of the tensor that it is of. offsets: the dimensions of
    the array of slices that run along a slice; the others number the slices. kept: the dimension of the tensor for each
    of the offsets. Along dimensions of the tensor that are not kept, a slice has one element.
    """

    mapped: tuple[int, ...]
    offsets: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class GatherSlices(LoopOp):
    """output[b..., w...] = input[start[b...] + w]: a slice that would leave the input is moved inside.

    starts [b..., components]; sizes: of a slice, for each dimension of the input.
    """

    input: Buffer
    starts: Buffer
    layout: SliceLayout
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ScatterSlices(LoopOp):
    """The base, with updates joined at start[b...] + w, in the order of their elements; those outside are left out.

    starts [b..., components]. kind: what becomes of the element there and the update. Truth values are or-ed and
    and-ed: sum and max, prod and min.
    """

    base: Buffer
    updates: Buffer
    starts: Buffer
    layout: SliceLayout
    kind: Literal["sum", "prod", "max", "min", "set"]


@dataclass(frozen=True, eq=False)
class PutEntries(LoopOp):
    """The input [entries, ...] with update[i] at positions[i], int32 [n], in their order. The first position below the
    one before it ends the list; one outside of the entries before that is a failed guard."""

    input: Buffer
    update: Buffer
    positions: Buffer


@dataclass(frozen=True, eq=False)
class MaxPlaces(LoopOp):
    """Each window's greatest element, of equal ones the first, then expr of it; and which tap that is, plus `more`.

    input [N, H, W, C]; results: both [N, OH, OW, C], and the byte in `output` where each begins. What is outside of the
    image, and NaN, is never the greatest; where nothing else is there, it is the least finite number, at tap 0.
    """

    input: Buffer
    results: tuple[tuple[Buffer, int], ...]
    expr: Expr
    window: Window
    more: float = 0.0


@dataclass(frozen=True, eq=False)
class PutInWindows(LoopOp):
    """Zeros, and each element of the input [N, P, Q, C] at a tap of its window over the output [N, H, W, C]: the whole
    part of places [N, P, Q, C]; those outside are left out, and of several at one place the last counts."""

    input: Buffer
    places: Buffer
    window: Window


@dataclass(frozen=True, eq=False)
class Expected(LoopOp):
    """Nothing but a guard: the input has, to the bit, these elements. output: a byte that nobody reads or writes."""

    input: Buffer
    elements: Buffer


@dataclass(frozen=True, eq=False)
class ExpectedCount(LoopOp):
    """Nothing but a guard: a form before has counted as many as the caller knows of. output: as of Expected.

    count: memory of the caller's, int64 [2]: the number now, and what it was when the caller looked last.
    """

    count: Buffer


GUARDS = (Expected, ExpectedCount)
"""Forms that are there for their guard alone."""


@dataclass(frozen=True, eq=False)
class Places(LoopOp):
    """The coordinates of elements that are not 0, in row-major order, int64 [elements, rank], as far as there are any.
    count: memory of the caller's, int64 [2], of which the first gets their number."""

    input: Buffer
    count: Buffer


@dataclass(frozen=True, eq=False)
class Distinct(LoopOp):
    """The different elements of a row, in the order of their first occurrence, and for each element which of them it
    is.

    -0.0 is 0.0, and each NaN is different. results: the elements, as far as there are different ones, the places [n],
    int32 or int64, and the byte in `output` where each begins. count: as of Places. Elements that meet too often in a
    table are a failed guard, with a count of -1.
    """

    input: Buffer
    count: Buffer
    results: tuple[tuple[Buffer, int], ...]


@dataclass(frozen=True, eq=False)
class Numbers(LoopOp):
    """Numbers from start, up to but without limit, each the one before and delta; in memory for some number of them.

    start, limit, delta: one element each, of the output's dtype. count: as of Places. A delta that does not lead to the
    limit, and more numbers than there is memory for, are a failed guard, with a count of -1.
    """

    start: Buffer
    limit: Buffer
    delta: Buffer
    count: Buffer


@dataclass(frozen=True, eq=False)
class BroadcastSizes(LoopOp):
    """The shape that two shapes, lists of integers, have together by the rules of broadcasting; two that do not go
    together, or have a negative size, are a failed guard."""

    a: Buffer
    b: Buffer
