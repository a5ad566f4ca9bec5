"""Forms about sizes that elements decide: what a plan assumes of them, and results as long as there are elements.

Lives here: `Expected`, `Places`, `Distinct`, `BroadcastSizes`.  Not here: other forms (forms.py), their kernels
(../kernels/sized.py), where assumptions come from (lite/compiled/assuming.py).

A plan has fixed sizes. One that was made for sizes seen at a run stops where a later run has others: the number of
elements is a guard of these forms, as an index outside is of a Gather.
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
class Places(Form):
    """The coordinates of elements that are not 0, in row-major order, int64 [count, rank]; another number of them is a
    failed guard."""

    input: Buffer


@dataclass(frozen=True, eq=False)
class Distinct(Form):
    """The different elements of a row, in the order of their first occurrence, and for each element which of them it is.

    -0.0 is 0.0, and each NaN is different. results: the elements [count], the places [n], int32 or int64, and the byte
    in `output` where each begins; another number of different elements is a failed guard.
    """

    input: Buffer
    results: tuple[tuple[Buffer, int], ...]


@dataclass(frozen=True, eq=False)
class BroadcastSizes(Form):
    """The shape that two shapes, lists of integers, have together by the rules of broadcasting; two that do not go
    together are a failed guard."""

    a: Buffer
    b: Buffer
