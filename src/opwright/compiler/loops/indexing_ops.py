"""Operations with computed indices or data-dependent sizes: gather and scatter, slices, cache updates, argmax pooling.

Lives here: `Gather`, `GatherAt`, `KeyPlaces`, `InsertionPlaces`, `ScatterAt`, `Segments`, `Counts`,
`SliceAt`, `UpdateSlice`; `SliceLayout`, `GatherSlices`, `ScatterSlices`, `PutEntries`, `AppendEntries`, `MaxPlaces`,
`PutInWindows`, `WindowGradient`, `ChannelFilterGradient`; `Expected`, `ExpectedCount`, `ExpectedNumber`, `GUARDS`,
`Places`, `Distinct`, `Numbers`, `BroadcastSizes`.
Not here: kernels (../kernels/gather.py, slices.py, scatter.py, counts.py, pooling.py, dynamic_sizes.py).

A plan has fixed sizes. A plan for the sizes of an earlier run asserts the elements from which those sizes followed, and
stops when a later run has others. A result with as many rows as elements satisfy a condition has memory for the largest
number, and a cell holds the actual one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...core.records import record
from .buffers import Buffer, Window
from .expressions import Expr
from .ops import LoopOp


@record
class Gather(LoopOp):
    """output[..., i, ...] = input[..., indices[i], ...] along an axis; indices outside are a failed guard."""

    input: Buffer
    indices: Buffer
    axis: int
    batch_dims: int = 0


@record
class KeyPlaces(LoopOp):
    """Index of the first occurrence of each wanted key among keys, -1 if there is none; all int32, of rank 1. Keys that
    do not ascend are a failed guard; in_order: they are known to ascend."""

    keys: Buffer
    wanted: Buffer
    in_order: bool = False


@record
class InsertionPlaces(LoopOp):
    """For each value of a row [rows, m], the number of elements of a sorted row [rows, n] below it; upper: or equal to
    it. NaN is above all."""

    sorted: Buffer
    values: Buffer
    upper: bool = False


@record
class GatherAt(LoopOp):
    """output[p, ...] = input[indices[p, 0], indices[p, 1] ...]: indices [..., coordinates], guarded as Gather's."""

    input: Buffer
    indices: Buffer


@record
class ScatterAt(LoopOp):
    """A number or the base, combined with each update at its coordinates, in order: updates [p..., inner...], indices
    [p..., coordinates], guarded as Gather's. kind: the combination; sums of booleans are disjunctions."""

    updates: Buffer
    indices: Buffer
    fill: float = 0.0
    base: tuple[Buffer, ...] = ()
    kind: Literal["sum", "prod", "max", "min", "set"] = "sum"


@record
class Segments(LoopOp):
    """output[s, inner...] = the reduction of input[i..., inner...] with ids[i...] equal to s.

    ids: int32 or int64; negative ones are skipped, ones beyond the last segment are a failed guard. kind: sum, prod,
    max, min. The maximum of no elements is the least finite number, and so is that of infinities below it and of NaN,
    unless extremes are `exact`: NaN if an element is, and of infinities infinite.
    """

    input: Buffer
    ids: Buffer
    kind: Literal["sum", "prod", "max", "min"]
    exact: bool = False


@record
class Counts(LoopOp):
    """output[r, v] = how many of numbers[r] are v, or the sum of their weights.

    numbers: int32 or int64 [rows, n]; those beyond the output's row are skipped, negative ones are a failed guard.
    weights: as numbers, of the output's type, or 1. once: 1 for what occurs at all.
    """

    numbers: Buffer
    weights: Buffer | None = None
    once: bool = False


@record
class ReverseStart(LoopOp):
    """Slices b along the axis `batch` with the first lengths[b] elements along the axis `time` reversed; a length that
    is negative or longer than the axis is a failed guard."""

    input: Buffer
    lengths: Buffer
    time: int
    batch: int


@record
class SliceAt(LoopOp):
    """The box of the output's shape at the computed `starts`, [rank]; a box outside of the input is a failed guard."""

    input: Buffer
    starts: Buffer


@record
class UpdateSlice(LoopOp):
    """The input with a box replaced by the update, at the computed `starts`, [rank], clamped to the input.

    guarded: a position outside along the first axis is a failed guard.
    """

    input: Buffer
    update: Buffer
    starts: Buffer
    guarded: bool = False


@dataclass(frozen=True)
class SliceLayout:
    """Layout of slices [batch..., window...] of a tensor in an array of slices, as in StableHLO.

    mapped: for each component of a start vector, its dimension of the tensor. offsets: the dimensions of the array of
    slices that run along a slice; the others number the slices. kept: the dimension of the tensor for each of the
    offsets. Along all other dimensions of the tensor, a slice has one element.
    """

    mapped: tuple[int, ...]
    offsets: tuple[int, ...]
    kept: tuple[int, ...]


@record
class GatherSlices(LoopOp):
    """output[b..., w...] = input[start[b...] + w]: a slice that would leave the input is moved inside.

    starts [b..., components]; sizes: of a slice, for each dimension of the input.
    """

    input: Buffer
    starts: Buffer
    layout: SliceLayout
    sizes: tuple[int, ...]


@record
class ScatterSlices(LoopOp):
    """The base with updates combined at start[b...] + w, in the order of their elements; those outside are skipped.

    starts [b..., components]. kind: the combination. Booleans use max for sum and min for prod.
    """

    base: Buffer
    updates: Buffer
    starts: Buffer
    layout: SliceLayout
    kind: Literal["sum", "prod", "max", "min", "set"]


@record
class PutEntries(LoopOp):
    """The input [entries, ...] with update[i] at positions[i], int32 [n], in order. The first position below its
    predecessor ends the list; a position out of bounds before that is a failed guard."""

    input: Buffer
    update: Buffer
    positions: Buffer


@record
class AppendEntries(LoopOp):
    """The input [entries, ...] with an update [n, ...] at position offset, int64 [1], not negative. If that passes the
    end, the last n entries are the update, and those before move to the beginning by as many as it passes the end by;
    they stay if none of them would be left."""

    input: Buffer
    update: Buffer
    offset: Buffer


@record
class MaxPlaces(LoopOp):
    """The first maximum of each window, then expr of it; and its tap's index plus `more`.

    input [N, H, W, C]; results: both [N, OH, OW, C], and the byte in `output` where each begins. Elements outside of
    the image, and NaN, are ignored; a window of nothing else has the least finite number, at tap 0.
    """

    input: Buffer
    results: tuple[tuple[Buffer, int], ...]
    expr: Expr
    window: Window
    more: float = 0.0


@record
class PutInWindows(LoopOp):
    """Zeros, with each element of the input [N, P, Q, C] at a tap of its window over the output [N, H, W, C].

    places: [N, P, Q, C], the taps, truncated; those outside are skipped, and the last of several at one position wins.
    """

    input: Buffer
    places: Buffer
    window: Window


@record
class WindowGradient(LoopOp):
    """Zeros, to which each element of the gradient [N, P, Q, C m] is added in its window of the output [N, H, W, C].

    kind: "max", at the first maximum of the window in the source [N, H, W, C], NaN above all numbers; "mean", in equal
    shares at all pixels inside of the image; "filter", at each pixel times the source [KH, KW, C, m]. m is 1 for pools.
    """

    gradient: Buffer
    source: tuple[Buffer, ...]
    kind: Literal["max", "mean", "filter"]
    window: Window


@record
class ChannelFilterGradient(LoopOp):
    """The gradient of a depthwise convolution by its filter: output [KH, KW, C, m], of the sums over n, p, q of the
    input [N, H, W, C] at each tap of the window times the gradient [N, P, Q, C m]."""

    input: Buffer
    gradient: Buffer
    window: Window


@record
class Expected(LoopOp):
    """A guard: the input equals these elements bit for bit. output: a byte without readers and writers."""

    input: Buffer
    elements: Buffer


@record
class ExpectedCount(LoopOp):
    """A guard: an earlier operation has counted as many as the caller expects. output: as of Expected.

    count: the caller's memory, int64 [2]: the number now, and the one that the caller observed last. results: of the
    operation that counts, which is before the guard also where nothing else reads them.
    """

    count: Buffer
    results: tuple[Buffer, ...] = ()


@record
class ExpectedNumber(LoopOp):
    """A guard: a number is the one that the caller expects. output: as of Expected; number: int64, one element; count:
    as of ExpectedCount, whose first element receives the number."""

    number: Buffer
    count: Buffer


GUARDS = (Expected, ExpectedCount, ExpectedNumber)
"""Operations without results, executed for their guards."""


@record
class Places(LoopOp):
    """Coordinates of the elements that are not 0, in row-major order, int64 [elements, rank].

    count: the caller's memory, int64 [2], whose first element receives their number.
    """

    input: Buffer
    count: Buffer


@record
class Distinct(LoopOp):
    """The distinct elements of a row in the order of first occurrence, and for each element the index of its equal.

    -0.0 equals 0.0, and each NaN is distinct. results: the elements, the indices [n], int32 or int64, and the byte in
    `output` where each begins. count: as of Places. Too many collisions in the hash table are a failed guard, with a
    count of -1.
    """

    input: Buffer
    count: Buffer
    results: tuple[tuple[Buffer, int], ...]


@record
class Numbers(LoopOp):
    """An arithmetic sequence from start, up to but without limit, in memory of a maximum size.

    start, limit, delta: one element each, of the output's dtype. count: as of Places. A delta of the wrong sign, and
    more numbers than fit, are a failed guard, with a count of -1.
    """

    start: Buffer
    limit: Buffer
    delta: Buffer
    count: Buffer


@record
class BroadcastSizes(LoopOp):
    """The broadcast shape of two shapes, lists of integers; incompatible shapes and negative sizes are a failed
    guard."""

    a: Buffer
    b: Buffer
