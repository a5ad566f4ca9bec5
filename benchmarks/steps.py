"""Where the time of a network's run goes, by operator and the slowest steps: `python -m benchmarks.steps NETWORK KIND`.

Lives here: the steps of one run from the interpreter's profile, with the work of each and the machine's peak.
Not here: whole runs (duels.py), the machine's peaks (probes.py).

A step stands under the first of the operators that run in it: a convolution's with its activation and what it adds.
Work is counted as the operator defines it: convolutions by Winograd's way do less, and may be above the peak.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import duels, models, report

RUNS = 30
SLOWEST = 12


def steps(network: str, kind: str) -> dict[str, Any]:
    """operators: seconds, share and share of peak by operator; slowest: the same of single steps, with their shapes."""
    from benchmarks import probes

    path = models.path_of(network, kind)
    interpreter = duels.ready("ours", path)
    interpreter.invoke()
    profile = interpreter.profile(RUNS)
    peak = probes.peak_int8() if kind == "int8" else probes.peak_f32()
    work = models.works_of(path)
    rows = [
        {
            "node": r["node"],
            "operator": r["operator"],
            "seconds": r["seconds"],
            "work": work[r["node"]][0],
            "shapes": work[r["node"]][1],
        }
        for r in profile
        if r["seconds"] > 0
    ]
    total = sum(r["seconds"] for r in rows) or 1.0
    by_operator: dict[str, list[dict[str, Any]]] = {}
    for r in rows:
        r["share"], r["of_peak"] = r["seconds"] / total, r["work"] / r["seconds"] / peak
        by_operator.setdefault(r["operator"], []).append(r)
    operators = []
    for name, result in by_operator.items():
        seconds = sum(r["seconds"] for r in result)
        operators.append(
            {
                "operator": name,
                "steps": len(result),
                "seconds": seconds,
                "share": seconds / total,
                "of_peak": sum(r["work"] for r in result) / seconds / peak,
            }
        )
    return {
        "operators": sorted(operators, key=lambda r: -float(r["seconds"])),
        "slowest": sorted(rows, key=lambda r: -float(r["seconds"]))[:SLOWEST],
    }


def everything() -> dict[str, Any]:
    """The steps of all networks, by name and kind."""
    return {f"{network}_{kind}": steps(network, kind) for network in models.NETWORKS for kind in models.KINDS}


def print_steps(name: str, result: dict[str, Any], console: Console, slowest: bool = True) -> None:
    """Tables of one network."""
    table = Table("operator", "steps", "time", "share", "of peak", title=f"{name}: where the time goes")
    for r in result["operators"]:
        table.add_row(r["operator"], str(r["steps"]), report.amount(r["seconds"], "s"), f"{r['share']:.0%}", _peak(r))
    console.print(table)
    if slowest:
        table = Table("node", "operator", "shapes", "time", "share", "of peak", title="the slowest steps")
        for r in result["slowest"]:
            table.add_row(
                str(r["node"]),
                r["operator"],
                r["shapes"],
                report.amount(r["seconds"], "s"),
                f"{r['share']:.0%}",
                _peak(r),
            )
        console.print(table)


def print_summary(result: dict[str, Any], console: Console) -> None:
    """One line a network: its operators by their share."""
    table = Table("network", "where the time of a run goes, and the share of peak there", title="Steps")
    for name, each in result.items():
        parts = [f"{r['operator']} {r['share']:.0%}{f' ({_peak(r)})' if _peak(r) else ''}" for r in each["operators"]]
        table.add_row(name, ", ".join(parts[:6]))
    console.print(table)


def _peak(row: dict[str, Any]) -> str:
    return f"{row['of_peak']:.0%}" if row["of_peak"] >= 0.005 else ""


if __name__ == "__main__":
    if sys.argv[1:] == ["--json"]:
        print(json.dumps(everything()))
    else:
        names = [tuple(sys.argv[1:])] if sys.argv[1:] else [(n, k) for n in models.NETWORKS for k in models.KINDS]
        for network, kind in names:
            width = None if sys.stdout.isatty() else 150
            print_steps(f"{network} {kind}", steps(network, kind), Console(width=width))
