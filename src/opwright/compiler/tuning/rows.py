"""Measured rows: the times of the ways to compute one thing, and what follows from them.

Lives here: `Row`, its form in JSON, `decided`.
Not here: where rows are kept (tables.py, kept.py), the clock (racing.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MARGIN = 0.03
"""The part of the default's time that another way must save at least, or more where a measurement's noise is more."""


class Row(NamedTuple):
    """ns: nanoseconds of a run by way, the least of many. noise: the part of a time by which repetitions of the whole
    measurement differed."""

    ns: Mapping[int, float]
    noise: float


def decided(row: Row, ways: Sequence[int], default: int, margin: float = MARGIN) -> int:
    """Return the quickest of the ways that a row has, where it saves more than noise; else the default."""
    there = [way for way in ways if way in row.ns]
    if default not in there:
        return default
    best = min(there, key=lambda way: row.ns[way])
    return best if row.ns[best] < row.ns[default] * (1 - max(margin, row.noise)) else default


def to_json(row: Row) -> dict[str, Any]:
    """A row as JSON can write it."""
    return {"ns": {str(way): round(ns) for way, ns in sorted(row.ns.items())}, "noise": round(row.noise, 3)}


def from_json(content: Any) -> Row:
    """A row that `to_json` wrote. Raises ValueError for anything else."""
    try:
        ns = {int(way): float(t) for way, t in content["ns"].items()}
        noise = float(content["noise"])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no measured row: {content!r:.80}") from error
    if not ns or not all(math.isfinite(t) and t > 0 for t in ns.values()) or not 0 <= noise <= 1:
        raise ValueError(f"times that cannot be: {content!r:.80}")
    return Row(ns, noise)
