"""Forms of slices at coordinates that are computed, along any dimensions.

Lives here: `SliceLayout`, `GatherSlices`, `ScatterSlices`.
Not here: whole rows by index (forms.py has Gather, GatherNd, ScatterNd), kernels (../kernels/slices.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .forms import Buffer, Form


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
class GatherSlices(Form):
    """output[b..., w...] = input[start[b...] + w]: a slice that would leave the input is moved inside.

    starts [b..., components]; sizes: of a slice, for each dimension of the input.
    """

    input: Buffer
    starts: Buffer
    layout: SliceLayout
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ScatterSlices(Form):
    """The base, with updates joined at start[b...] + w, in the order of their elements; those outside are left out.

    starts [b..., components]. kind: what becomes of the element there and the update. Truth values are or-ed and
    and-ed: sum and max, prod and min.
    """

    base: Buffer
    updates: Buffer
    starts: Buffer
    layout: SliceLayout
    kind: Literal["sum", "prod", "max", "min", "set"]
