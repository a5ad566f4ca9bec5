"""The measured rows that come with Opwright: a table for each micro-architecture on which somebody has measured.

Lives here: `TuningTable`, reading tables/*.json, which table serves a processor, `answer`.
Not here: rows and what follows from them (measurements.py), writing tables (benchmarks/tune.py).

A processor is served by the tables of its vector length and registers; for kernels of bytes also its instructions that
multiply them must be the same. The target's own name comes first, then the one with the fewest differences in
features, then the nearest second-level cache. Tables are read when the first question is put, which a process that
finds its plans in the cache never does.

A row answers for its own sizes, and for near ones: each size that need not be exact within a factor of NEAR, the
nearest row first. A near row must save more than a row of the very sizes.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..native.host import cache_bytes
from ..target import IMPLIED, Target
from .measurements import MeasuredRow, decided, from_json

if TYPE_CHECKING:
    from .choices import Choice

FOLDER = Path(__file__).with_name("tables")
NEAR = 1.3
NEAR_MARGIN = 0.1
"""Minimum relative saving by a row of other sizes."""
FEATURES = frozenset(feature for implied in IMPLIED.values() for feature in implied)
"""Features that kernels ask about."""


class TuningTable(NamedTuple):
    """A table of measured rows. target: of the code, whose name is the table's; cpu: the processor that ran it, in
    LLVM's terms; cache: bytes of its second-level cache; machine: its vendor's name; rows: by choice and sizes."""

    target: Target
    cpu: str
    cache: int
    machine: str
    rows: dict[str, dict[tuple[int, ...], MeasuredRow]]


def answer(choice: Choice, sizes: tuple[int, ...], ways: Sequence[int], default: int, target: Target) -> int:
    """Return the fastest alternative by the nearest table; the default if it has no row for similar sizes."""
    table = nearest(target, choice.of_bytes)
    rows = {} if table is None else table.rows.get(choice.name, {})
    row = rows.get(sizes)
    if row is not None:
        return decided(row, ways, default)
    exact, others = choice.exact_sizes(sizes), choice.other_sizes(sizes)
    near = [
        (distance, row_sizes)
        for row_sizes in rows
        if choice.exact_sizes(row_sizes) == exact
        and (distance := _distance(others, choice.other_sizes(row_sizes))) is not None
    ]
    return decided(rows[min(near)[1]], ways, default, NEAR_MARGIN) if near else default


def _distance(a: Sequence[int], b: Sequence[int]) -> float | None:
    """Return the sum of the logarithms of size ratios; None if one exceeds NEAR, or only one of two sizes is zero."""
    ratios = [max(x, y) / min(x, y) if x and y else math.inf for x, y in zip(a, b, strict=True) if x != y]
    return sum(map(math.log, ratios)) if all(r <= NEAR for r in ratios) else None


@functools.cache
def nearest(target: Target, of_bytes: bool) -> TuningTable | None:
    """Return the table for a processor; None if there is none of its kind. of_bytes: for kernels that multiply
    bytes."""
    candidates = [t for t in tables() if _kind(t.target, of_bytes) == _kind(target, of_bytes)]
    own = {f for f in FEATURES if target.has(f)}

    def distance(table: TuningTable) -> tuple[bool, int, float]:
        differing = sum(table.target.has(f) != (f in own) for f in FEATURES)
        return table.target.cpu != target.cpu, differing, abs(math.log2(table.cache / cache_bytes()))

    return min(candidates, key=distance, default=None)


def _kind(target: Target, of_bytes: bool) -> tuple[Any, ...]:
    """Return the properties that processors must share for comparable times."""
    kind = (target.is_x86, target.is_aarch64, target.vector_bytes, target.registers)
    products = (target.vnni_lanes, *(target.has(f) for f in ("amx-int8", "dotprod", "i8mm")))
    return (*kind, *products) if of_bytes else kind


@functools.cache
def tables() -> tuple[TuningTable, ...]:
    """Return all tables that ship with Opwright, by name; none if it is in an archive."""
    return tuple(parsed(file.stem, json.loads(file.read_bytes())) for file in sorted(FOLDER.glob("*.json")))


def parsed(name: str, content: Any) -> TuningTable:
    """Return a table from its file's content."""
    target = Target(name, *(content["target"][key] for key in ("triple", "cpu", "features", "vector_bytes")))
    rows = {choice: {tuple(row["sizes"]): from_json(row) for row in rows} for choice, rows in content["rows"].items()}
    return TuningTable(target, content["cpu"], content["cache_bytes"], content["machine"], rows)
