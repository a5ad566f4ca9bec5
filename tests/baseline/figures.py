"""Figures of the benchmarks, as `make bench` left them in benchmarks/results/latest.json; nothing is measured here.

Lives here: the rows, when two figures are the same.  Not here: measuring (benchmarks/).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .outcomes import Entry, entry

TOLERANCE = 0.02

_rows: dict[str, Any] = {}


def prepare(tree: Path, folder: Path) -> None:
    """Read the figures."""
    latest = json.loads((tree / "benchmarks" / "results" / "latest.json").read_text("utf-8"))
    _rows.update({"rows": dict(latest["rows"])})


def units() -> list[str]:
    """All rows are one."""
    return ["rows"]


def run(unit: str) -> Iterator[Entry]:
    """The figure of each row."""
    for name, row in _rows[unit].items():
        figure = {"figure": row.get("ours"), "unit": row.get("unit"), "error": row.get("error")}
        yield entry(f"{unit}/{name}", json.dumps(figure).encode())


def same(before: bytes, after: bytes) -> bool:
    """Whether a figure is worse by no more than the tolerance: of times and sizes more is worse, of ratios less."""
    a, b = json.loads(before), json.loads(after)
    if None in (a["figure"], b["figure"]) or a["unit"] != b["unit"]:
        return bool(b["figure"] is not None and a["unit"] == b["unit"])
    if a["unit"] == "x":
        return bool(b["figure"] >= a["figure"] * (1 - TOLERANCE))
    return bool(b["figure"] <= a["figure"] * (1 + TOLERANCE))


def difference(before: bytes, after: bytes) -> str:
    """Two figures and their ratio."""
    a, b = json.loads(before), json.loads(after)
    text = f"was {a['figure']} {a['unit']}, now {b['figure']} {b['unit']}"
    if not a["figure"] or not b["figure"]:
        return f"{text} {b['error'] or ''}".rstrip()
    return f"{text}: {b['figure'] / a['figure']:.3f} times"
