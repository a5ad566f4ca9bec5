"""How much a run of the suite tries: a part of the drawn examples and mutants, or all of them.

Lives here: `THOROUGH`, `examples`, `some`, `sampled`, `crossed`.
Not here: slow tests (the marker `slow`), first rows alone (each_row.py).
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

_Item = TypeVar("_Item")

THOROUGH = os.environ.get("OPWRIGHT_THOROUGH") == "1"
"""Whether drawn examples are tried in full: `make test-all`, which also runs what is marked `slow`."""
LEAST = 4


def examples(count: int) -> int:
    """Return how many of `count` drawn examples a run tries: all if thorough, otherwise an eighth, at least four."""
    return count if THOROUGH else min(count, max(LEAST, count // 8))


def some(items: Sequence[_Item]) -> Sequence[_Item]:
    """Return the items that a run tries: all if thorough, otherwise every fifth, the first among them."""
    return items if THOROUGH else items[::5]  # 5, as tables have periods of 2, 3 and 4


def sampled(cases: Iterable[Any], every: int = 2, by: Callable[..., Any] = lambda *values: None) -> list[Any]:
    """Return the cases of a test. All but one of each `every` are marked slow: each costs time of the compiler, and
    neighbours in a table are alike.

    cases: values, tuples of several, or `pytest.param` with marks of their own; by: returns the group of a case, which
    has at least one that is not slow
    """
    result, counts = [], Counter[Any]()
    for case in cases:
        is_param = isinstance(case, type(pytest.param()))
        values = case.values if is_param else case if isinstance(case, tuple) else (case,)
        marks = tuple(case.marks) if is_param else ()
        group = by(*values)
        if counts[group] % every:
            marks += (pytest.mark.slow,)
        counts[group] += 1
        result.append(pytest.param(*values, marks=marks, id=case.id if is_param else None))
    return result


def crossed(*values: Iterable[Any], every: int = 2) -> list[Any]:
    """Return the combinations of values of several parameters; all but one of each `every` are marked slow.

    The others have each value of each parameter, and each pair of values of two where a third has `every` values.
    """
    result = []
    for places in itertools.product(*map(enumerate, values)):
        marks = (pytest.mark.slow,) if sum(place for place, _ in places) % every else ()
        result.append(pytest.param(*(value for _, value in places), marks=marks))
    return result
