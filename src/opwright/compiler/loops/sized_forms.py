"""Forms about sizes that elements decide: what a plan assumes of them, and results as long as there are elements.

Lives here: `Expected`, `Counted`, `GUARDS`, `Places`, `Distinct`, `Numbers`,
`BroadcastSizes`.  Not here: other forms (forms.py), their kernels
(../kernels/sized.py), where assumptions come from (lite/compiled/assuming.py).

A plan has fixed sizes. Where it was made for sizes seen at a run, it expects what they followed from, and stops where a
later run has something else. Results as long as there are elements have memory for the most there can be; a cell of
the caller's says how many there are, and a plan that finds another number stops, too: so that the caller looks.
"""

from __future__ import annotations

from dataclasses import dataclass

from .forms import Buffer, Form


@dataclass(frozen=True, eq=False)
class Expected(Form):
    """Nothing but a guard: the input has, to the bit, these elements. output: a byte that nobody reads or writes."""

    input: Buffer
    elements: Buffer


@dataclass(frozen=True, eq=False)
class Counted(Form):
    """Nothing but a guard: a form before has counted as many as the caller knows of. output: as of Expected.

    count: memory of the caller's, int64 [2]: the number now, and what it was when the caller looked last.
    """

    count: Buffer


GUARDS = (Expected, Counted)
"""Forms that are there for their guard alone."""


@dataclass(frozen=True, eq=False)
class Places(Form):
    """The coordinates of elements that are not 0, in row-major order, int64 [elements, rank], as far as there are any.
    count: memory of the caller's, int64 [2], of which the first gets their number."""

    input: Buffer
    count: Buffer


@dataclass(frozen=True, eq=False)
class Distinct(Form):
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
class Numbers(Form):
    """Numbers from start, up to but without limit, each the one before and delta; in memory for some number of them.

    start, limit, delta: one element each, of the output's dtype. count: as of Places. A delta that does not lead to the
    limit, and more numbers than there is memory for, are a failed guard, with a count of -1.
    """

    start: Buffer
    limit: Buffer
    delta: Buffer
    count: Buffer


@dataclass(frozen=True, eq=False)
class BroadcastSizes(Form):
    """The shape that two shapes, lists of integers, have together by the rules of broadcasting; two that do not go
    together, or have a negative size, are a failed guard."""

    a: Buffer
    b: Buffer
