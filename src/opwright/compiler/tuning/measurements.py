"""Measured rows: the times of the ways to compute one thing, what follows from them, and those of this machine.

Lives here: `MeasuredRow`, its form in JSON, `decided`; `find`, `keep`, the rows that this machine has measured.
Not here: rows that come with Opwright (tables.py), the clock (autotuner.py), the cache's files (../cache.py).

Each row of this machine is a file of its own in the object cache, named by a digest of the choice, the sizes, the
processor and Opwright's sources: processes that measure at once write different files, or the same one whole. Damaged
files and files from another cache count as missing, as the files have keyed digests. With the switch `deterministic`
nothing is read: results are to be the same before and after a measurement.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...core import flags
from ..cache import objects
from ..native.store import program_digest

MARGIN = 0.03
"""Minimum relative saving over the default, unless the noise is larger."""


class MeasuredRow(NamedTuple):
    """Measured times. ns: nanoseconds of a run by alternative, the minimum. noise: relative difference of
    repetitions."""

    ns: Mapping[int, float]
    noise: float


def decided(row: MeasuredRow, ways: Sequence[int], default: int, margin: float = MARGIN) -> int:
    """Return the fastest measured alternative if it saves more than the noise; otherwise the default."""
    measured_ways = [way for way in ways if way in row.ns]
    if default not in measured_ways:
        return default
    best = min(measured_ways, key=lambda way: row.ns[way])
    return best if row.ns[best] < row.ns[default] * (1 - max(margin, row.noise)) else default


def to_json(row: MeasuredRow) -> dict[str, Any]:
    """Return a row as a JSON value."""
    return {"ns": {str(way): round(ns) for way, ns in sorted(row.ns.items())}, "noise": round(row.noise, 3)}


def from_json(content: Any) -> MeasuredRow:
    """Return a row from the JSON value of `to_json`. Raises ValueError for anything else."""
    try:
        ns = {int(way): float(t) for way, t in content["ns"].items()}
        noise = float(content["noise"])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no measured row: {content!r:.80}") from error
    if not ns or not all(math.isfinite(t) and t > 0 for t in ns.values()) or not 0 <= noise <= 1:
        raise ValueError(f"times that cannot be: {content!r:.80}")
    return MeasuredRow(ns, noise)


_measured: dict[
    tuple[str | None, str], MeasuredRow
] = {}  # what this process measured, by cache, which may be none, and digest


def find(choice: str, sizes: Sequence[int]) -> MeasuredRow | None:
    """Return the row that this machine has measured for these sizes, if any."""
    if flags.deterministic:
        return None
    digest = _digest(choice, sizes)
    if (flags.cache_dir, digest) in _measured:
        return _measured[flags.cache_dir, digest]
    content = objects(flags.cache_dir).find(digest)
    try:
        return None if content is None else from_json(json.loads(content))
    except ValueError:
        return None


def keep(choice: str, sizes: Sequence[int], row: MeasuredRow) -> None:
    """Store a row."""
    digest = _digest(choice, sizes)
    _measured[flags.cache_dir, digest] = row
    objects(flags.cache_dir).keep(digest, json.dumps(to_json(row)).encode())


def _digest(choice: str, sizes: Sequence[int]) -> str:
    return program_digest("measured", choice, " ".join(map(str, sizes)))
