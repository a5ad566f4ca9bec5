"""Bounds of sizes that a run decides: parsing them, the inputs that they apply to, the sizes in them.

Lives here: `SizeParameter`, `parameters_of`, `counter_of`, `sizes_in`.
Not here: the plan for each size (model_plans.py), how a library chooses one (modules.py, c_source.py).

A size is the caller's (an axis of inputs), an element of an input that shapes depend on, or a number of rows that an
operator counts.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.errors import InvalidArgumentError, UnimplementedError
from .identifiers import unique

BATCH = "batch"
"""The bound of the first axis of every input whose size is unknown there."""
MOST_PLANS = 64
"""Combinations of sizes of a signature. Each has a plan of its own, with the same kernels and weights."""

Bounds = Mapping[str, tuple[int, int]]


class SizeParameter(NamedTuple):
    """A size that a run decides, between bounds. identifier: its field in C; name: of the bound; places: position of
    the input and axis of each dimension that has this size, which the caller states; element: position of the input
    and index of the element whose value it is; counter: index of the number (run_sizes.py) that it is; begin: the one
    that the first plan of a run is for, of numbers."""

    identifier: str
    name: str
    least: int
    most: int
    places: tuple[tuple[int, int], ...] = ()
    element: tuple[int, int] | None = None
    counter: int | None = None
    begin: int = 0

    @property
    def num_sizes(self) -> int:
        """How many sizes there are."""
        return self.most - self.least + 1


def parse_bounds(texts: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return bounds by name. texts: `batch=1..8`, `input:axis=1..8` or `input[element]=-1..8`. Raises
    InvalidArgumentError."""
    bounds = {}
    for text in texts:
        match = re.fullmatch(r"(.+)=(-?\d+)\.\.(-?\d+)", text)
        if match is None:
            raise InvalidArgumentError(op="aot.build", what="no bound", found=text, wanted="batch=1..8 or x:1=1..8")
        bounds[match[1]] = int(match[2]), int(match[3])
    return bounds


class InputFacts(NamedTuple):
    """An input that bounds may apply to. signature: its shape, with -1 for an unknown size; elements: how many integers
    it has, 0 for other types."""

    name: str
    signature: Sequence[int]
    elements: int


def parameters_of(bounds: Bounds, inputs: Sequence[InputFacts], taken: set[str]) -> list[SizeParameter]:
    """Return the sizes that the caller of a signature states, or that are elements of its inputs.

    taken: identifiers. raises InvalidArgumentError for bounds that no plans can have
    """
    open_places = [(i, axis) for i, x in enumerate(inputs) for axis, n in enumerate(x.signature) if n < 0]
    parameters = []
    for name, bound in bounds.items():
        places = tuple(p for p in open_places if name == (BATCH if p[1] == 0 else None) or name == _place(inputs, p))
        if places:
            _check(name, bound, 1)
            parameters.append(SizeParameter(unique(name, taken), name, *bound, places))
            open_places = [p for p in open_places if p not in places]
    for i, x in enumerate(inputs):
        names = [f"{x.name}[{k}]" for k in range(x.elements)] if any(f"{x.name}[" in name for name in bounds) else []
        given = [k for k, name in enumerate(names) if name in bounds]
        if given and len(given) < len(names):
            raise InvalidArgumentError(
                op="aot.build",
                what=f"bounds of some elements of {x.name!r}",
                found=[names[k] for k in given],
                wanted="bounds of each: " + ", ".join(names),
            )
        for k in given:
            _check(names[k], bounds[names[k]])
            parameters.append(SizeParameter(unique(names[k], taken), names[k], *bounds[names[k]], element=(i, k)))
    return check_count(parameters)


def bound_name(tensor: str) -> str:
    """Return the name of the bounds of a number that a node decides. tensor: its first result of unknown shape."""
    return f"{tensor}:0"


def check_bounded(bounds: Bounds, tensor: str, operator: str) -> None:
    """Raise UnimplementedError for a number without a limit that has no bounds. operator: which decides it."""
    name = bound_name(tensor)
    if name not in bounds:
        number = "numbers of RANGE" if operator == "RANGE" else f"iterations of {operator}"
        elements = ", or those of integer inputs that it follows from: 'INPUT[0]=1..8'" if operator == "RANGE" else ""
        raise UnimplementedError(
            op="aot.build",
            what=f"the shape of {tensor!r} follows from how many {number} there are, which has no limit",
            do=f"bounds={{{name!r}: (0, 16)}}{elements}",
        )


def beginning(
    parameters: list[SizeParameter], planned: Iterable[tuple[int, ...]], falling: Sequence[bool]
) -> list[SizeParameter]:
    """Return the sizes, with the numbers that the first plan of a run is for: one that exists for as many sizes of
    inputs as possible.

    planned: sizes for which there is a plan; falling: for each number that nodes decide, whether plans for greater ones
    are the better beginning, as those of loops, which tell how many iterations there are once they end
    """
    own = len(parameters) - len(falling)
    having: dict[tuple[int, ...], int] = {}
    for sizes in planned:
        having[sizes[own:]] = having.get(sizes[own:], 0) + 1

    def preference(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return (-having[numbers], *(-n if falls else n for n, falls in zip(numbers, falling)))

    first = min(having, key=preference)
    return [*parameters[:own], *(p._replace(begin=n) for p, n in zip(parameters[own:], first))]


def counter_of(bounds: Bounds, tensor: str, most: int, counter: int, taken: set[str]) -> SizeParameter:
    """Return the number that an operator decides, from 0 unless it has bounds. most: that there can be."""
    name = bound_name(tensor)
    if name in bounds:
        _check(name, bounds[name], 0)
    elif most >= MOST_PLANS:
        raise UnimplementedError(
            op="aot.build",
            what=f"operators read as many rows of {tensor!r} as a run counts, and each number has a plan",
            found=f"0..{most}",
            do=f"bounds={{{name!r}: (0, 16)}}: more rows are a status",
        )
    least, greatest = bounds.get(name, (0, most))
    return SizeParameter(unique(name, taken), name, least, min(greatest, most), counter=counter)


def _check(name: str, bound: tuple[int, int], smallest: int | None = None) -> None:
    least, most = bound
    if least > most or (smallest is not None and least < smallest):
        raise InvalidArgumentError(
            op="aot.build",
            what=f"the bounds of {name!r}",
            found=f"{least}..{most}",
            wanted=f"{'' if smallest is None else f'{smallest} <= '}least <= most",
        )


def check_count(parameters: list[SizeParameter]) -> list[SizeParameter]:
    """Return the sizes. Raises InvalidArgumentError if they have too many combinations."""
    count = math.prod(p.num_sizes for p in parameters)
    if count > MOST_PLANS:
        raise InvalidArgumentError(
            op="aot.build",
            what="too many sizes: each has a plan",
            found=count,
            wanted=f"at most {MOST_PLANS}",
            do="narrow the bounds, or build a library for each range",
        )
    return parameters


def check_used(bounds: Bounds, used: set[str], names: Iterable[str]) -> None:
    """Raise InvalidArgumentError for bounds that apply to no input. names: of the sizes that are unknown."""
    unused = set(bounds) - used
    if unused:
        raise InvalidArgumentError(
            op="aot.build",
            what="bounds of no size that is unknown in the model",
            found=sorted(unused),
            wanted=sorted(names) or "no bounds: the model's sizes are known",
        )


def unknown_sizes(inputs: Sequence[InputFacts]) -> set[str]:
    """Return the names of bounds that the inputs can have."""
    places = [(i, axis) for i, x in enumerate(inputs) for axis, n in enumerate(x.signature) if n < 0]
    return {_place(inputs, p) for p in places} | {BATCH for _, axis in places if axis == 0}


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


def elements_in(parameters: Sequence[SizeParameter], sizes: Sequence[int]) -> dict[int, list[int]]:
    """Return the elements of inputs that are sizes, by position of the input."""
    elements: dict[int, list[int]] = {}
    for parameter, size in zip(parameters, sizes):
        if parameter.element is not None:
            elements.setdefault(parameter.element[0], []).append(size)
    return elements


def _place(inputs: Sequence[InputFacts], place: tuple[int, int]) -> str:
    return f"{inputs[place[0]].name}:{place[1]}"


def note_of(parameter: SizeParameter) -> dict[str, Any]:
    """Return a parameter as JSON."""
    return parameter._asdict() | {"places": [list(place) for place in parameter.places]}
