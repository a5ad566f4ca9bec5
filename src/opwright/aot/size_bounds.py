"""Bounds of sizes that a library's callers choose: parsing them, the inputs that they apply to, the sizes in them.

Lives here: `SizeParameter`, `bounds_of`, `sizes_in`.
Not here: the plan for each size (model_plans.py), how a library chooses one (modules.py).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.errors import InvalidArgumentError
from .identifiers import unique

BATCH = "batch"
"""The bound of the first axis of every input whose size is unknown there."""
MOST_PLANS = 32
"""Combinations of sizes of a signature. Each has a plan of its own, with the same kernels and weights."""

Bounds = Mapping[str, tuple[int, int]]


class SizeParameter(NamedTuple):
    """A size that the caller states. identifier: its field in C; name: of the bound; places: position of the input and
    axis of each dimension that has this size."""

    identifier: str
    name: str
    least: int
    most: int
    places: tuple[tuple[int, int], ...]


def parse_bounds(texts: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return bounds by name. texts: `batch=1..8` or `input:axis=1..8`. Raises InvalidArgumentError."""
    bounds = {}
    for text in texts:
        match = re.fullmatch(r"(.+)=(\d+)\.\.(\d+)", text)
        if match is None:
            raise InvalidArgumentError(op="aot.build", what="no bound", found=text, wanted="batch=1..8 or x:1=1..8")
        bounds[match[1]] = int(match[2]), int(match[3])
    return bounds


def parameters_of(
    bounds: Bounds, names: Sequence[str], signatures: Sequence[Sequence[int] | None], taken: set[str]
) -> list[SizeParameter]:
    """Return the sizes that the caller of a signature states.

    names, signatures: of the inputs, with -1 for an unknown size. taken: identifiers. raises InvalidArgumentError for
    bounds that no plans can have
    """
    open_places = [(i, axis) for i, s in enumerate(signatures) for axis, n in enumerate(s or ()) if n < 0]
    parameters = []
    for name, (least, most) in bounds.items():
        if not 1 <= least <= most:
            raise InvalidArgumentError(
                op="aot.build", what=f"the bounds of {name!r}", found=f"{least}..{most}", wanted="1 <= least <= most"
            )
        places = tuple(p for p in open_places if name == (BATCH if p[1] == 0 else None) or name == _place(names, p))
        if places:
            parameters.append(SizeParameter(unique(name, taken), name, least, most, places))
            open_places = [p for p in open_places if p not in places]
    count = math.prod(p.most - p.least + 1 for p in parameters)
    if count > MOST_PLANS:
        raise InvalidArgumentError(
            op="aot.build",
            what="too many sizes: each has a plan",
            found=count,
            wanted=f"at most {MOST_PLANS}",
            do="narrow the bounds, or build a library for each range",
        )
    return parameters


def check_used(bounds: Bounds, used: Iterable[SizeParameter], names: Iterable[str]) -> None:
    """Raise InvalidArgumentError for bounds that apply to no input. names: of the sizes that are unknown."""
    unused = set(bounds) - {p.name for p in used}
    if unused:
        raise InvalidArgumentError(
            op="aot.build",
            what="bounds of no size that is unknown in the model",
            found=sorted(unused),
            wanted=sorted(names) or "no bounds: the model's sizes are known",
        )


def unknown_sizes(names: Sequence[str], signatures: Sequence[Sequence[int] | None]) -> set[str]:
    """Return the names of bounds that the inputs can have."""
    places = [(i, axis) for i, s in enumerate(signatures) for axis, n in enumerate(s or ()) if n < 0]
    return {_place(names, p) for p in places} | {BATCH for _, axis in places if axis == 0}


def sizes_in(parameters: Sequence[SizeParameter]) -> list[tuple[int, ...]]:
    """Return all sizes, the last parameter's first, as `modules` numbers the plans."""
    return list(itertools.product(*(range(p.least, p.most + 1) for p in parameters)))


def with_sizes(
    shapes: Sequence[Sequence[int]], parameters: Sequence[SizeParameter], sizes: Sequence[int]
) -> list[tuple[int, ...]]:
    """Return the shapes of the inputs for sizes of the parameters."""
    changed = [list(shape) for shape in shapes]
    for parameter, size in zip(parameters, sizes):
        for position, axis in parameter.places:
            changed[position][axis] = size
    return [tuple(shape) for shape in changed]


def _place(names: Sequence[str], place: tuple[int, int]) -> str:
    return f"{names[place[0]]}:{place[1]}"


def note_of(parameter: SizeParameter) -> dict[str, Any]:
    """Return a parameter as JSON."""
    return parameter._asdict() | {"places": [list(place) for place in parameter.places]}
