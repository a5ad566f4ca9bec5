"""The results of a run as a table and as JSON, and the machine of the run.

Lives here: the result of a row and its forms.  Not here: measuring (measure.py), running rows (__main__.py).
"""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from benchmarks.rows import Row


@dataclass(slots=True)
class Result:
    """ours: the figure, or None with the reason in `error`; peers: a figure for each peer that was there.

    share: ours as a part of the machine's limit, or of the models where the row is of many, which `of` names; files:
    whose converter made what was run; worst: of many models, those furthest behind or all, in words, the slowest
    first; errors: of the results of ours and of peers, as parts of the greatest number of a run in float64.
    """

    row: Row
    ours: float | None = None
    error: str | None = None
    peers: dict[str, float] = field(default_factory=dict)
    peer_errors: dict[str, str] = field(default_factory=dict)
    share: float | None = None
    of: str = ""
    files: str = ""
    worst: list[str] = field(default_factory=list)
    errors: dict[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the targets are met; None where there are none, or no figure."""
        row, kept = self.row, []
        if self.ours is None:
            return None
        if row.target is not None:
            kept.append(self.ours >= row.target if row.unit == "x" else self.ours <= row.target)
        if row.ahead and self.peers:
            kept.append(all(self.ours * row.times <= figure for figure in self.peers.values()))
        if row.share is not None and self.share is not None:
            kept.append(self.share >= row.share)
        return all(kept) if kept else None

    @property
    def wanted(self) -> str:
        """The targets in words."""
        row = self.row
        actual = [amount(row.target, row.unit)] if row.target is not None else []
        actual += [f"the peer's{f' / {row.times:g}' if row.times != 1.0 else ''}"] * row.ahead
        actual += [f"{row.share:.0%} of {self.of or 'limit'}"] if row.share is not None else []
        return ", ".join(actual)


_SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "x": ((0.0, "x"),),
}


def amount(value: float | None, unit: str) -> str:
    """Three digits and a unit that suits the size: 2.41 µs, 187 MB."""
    if value is None:
        return ""
    scale, name = next((s for s in _SCALES[unit] if abs(value) >= s[0]), _SCALES[unit][-1])
    return f"{value / (scale or 1.0):.3g} {name}"


def print_table(results: Sequence[Result], console: Console) -> None:
    """Row, ours, target, met or missed, share of the machine's limit; of each peer figure, ratio to ours; errors."""
    table = Table(Column("row", min_width=40), title="Opwright, one thread on one core but where rows say otherwise")
    for heading in ("ours", "target", "", "of limit", "peer", "peer / ours", "error"):
        table.add_column(heading, no_wrap=True)
    for result in results:
        row, ours = result.row, result.ours
        verdict = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[result.met]
        peers = [f"{name} {amount(value, row.unit)}" for name, value in result.peers.items()]
        ratios = [f"{value / ours:.2g}x" if ours else "" for value in result.peers.values()]
        table.add_row(
            row.what,
            "[red]error[/]" if result.error else amount(ours, row.unit),
            result.wanted,
            verdict,
            f"{result.share:.0%} of {result.of}" if result.share is not None else "",
            "\n".join(peers),
            "\n".join(ratios),
            "\n".join(f"{name} {error:.1e}" for name, error in result.errors.items()),
        )
    console.print(table)
    for result in results:
        if result.worst:
            console.print(
                f"{result.row.what}: the slowest first", *result.worst, sep="\n  ", markup=False, highlight=False
            )
    for result in results:
        for who, error in [("ours", result.error), *result.peer_errors.items()]:
            if error:
                console.print(f"{result.row.name}, {who}: {error}", style="red", markup=False, highlight=False)


def as_json(results: Sequence[Result], pinned: str, limits: dict[str, float]) -> dict[str, Any]:
    """The same as plain data; figures in seconds or bytes. limits: of the machine, operations and bytes in a second."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine() | {"pinning": pinned, "limits": limits},
        "rows": {
            result.row.name: {
                "what": result.row.what,
                "unit": result.row.unit,
                "ours": result.ours,
                "target": result.row.target,
                "met": result.met,
                "peers": result.peers,
            }
            | ({"share": result.share, "of": result.of} if result.share is not None else {})
            | ({"files": result.files} if result.files else {})
            | ({"worst": result.worst} if result.worst else {})
            | ({"errors": result.errors} if result.errors else {})
            | ({"error": result.error} if result.error else {})
            | ({"peer_errors": result.peer_errors} if result.peer_errors else {})
            for result in results
        },
    }


def machine() -> dict[str, Any]:
    """The processor, the system and the versions that figures depend on; nothing that names the host."""
    versions: dict[str, str | None] = {}
    for name in ("opwright", "numpy", "llvmlite", "ai-edge-litert"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{sys.implementation.name} {platform.python_version()}",
        "versions": versions,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()
