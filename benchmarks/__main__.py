"""The runner: each row in a process of its own, then a table and `benchmarks/results/latest.json`.

Lives here: the command line and the running of measured processes.  Not here: the rows (rows.py), what they do
(ours.py, duels.py, peers/), how time is taken (measure.py), how results look (report.py).

A peer is another Python, named by OPWRIGHT_PEER_TENSORFLOW, OPWRIGHT_PEER_JAX or OPWRIGHT_PEER_TORCH; a peer without
its variable is left out.  Exit code 1 if one of our rows failed, 0 otherwise: a missed target is a finding, no failure.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import measure, report, steps
from benchmarks.report import Result
from benchmarks.rows import PEERS, ROWS, Peer, Row

ROOT = Path(__file__).resolve().parent.parent
LATEST = ROOT / "benchmarks" / "results" / "latest.json"
LIMIT_S = 600


def figure_from(python: str, module: str, row: str) -> tuple[Any, str | None]:
    """Return the figure that `python -m module row` prints, or None and the last line of its error.

    A figure; or {"ours": figure, "litert": figure, "share": of the machine's limit, "of": which, "files": whose,
    "worst": models, "errors": by whom}.
    """
    try:
        done = subprocess.run([python, "-m", module, row], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return None, f"took more than {LIMIT_S} s"
    except OSError as error:
        return None, f"cannot run: {error.strerror}"
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])[row], None
    except (IndexError, KeyError, TypeError, ValueError):
        reason = _last_word(done.stderr) or f"no figure, exit code {done.returncode}"
        return None, reason.replace(python, "python").replace(str(ROOT), ".")  # results name no folder of this machine


def _last_word(stderr: str) -> str:
    """From a traceback the error it ends with, which may be of several lines; else the last line."""
    lines = stderr.strip().splitlines()
    raised = [i for i, line in enumerate(lines) if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
    return "\n".join(lines[raised[-1] :] if raised else lines[-1:])


def python_of(peer: Peer) -> str | None:
    return sys.executable if peer.variable is None else os.environ.get(peer.variable) or None


def run_row(row: Row, with_peers: bool) -> Result:
    result = Result(row)
    actual, result.error = figure_from(sys.executable, row.module, row.name)
    if isinstance(actual, dict):
        result.ours, result.share = actual["ours"], actual.get("share")
        result.of, result.files, result.worst = actual.get("of", ""), actual.get("files", ""), actual.get("worst", [])
        result.errors = actual.get("errors", {})
        result.peers.update({name: actual[name] for name in PEERS if name in actual and with_peers})
    else:
        result.ours = actual
    for name in row.peers if with_peers else ():
        python = python_of(PEERS[name])
        if python is None:
            continue
        value, error = figure_from(python, PEERS[name].module, row.name)
        if value is not None:
            result.peers[name] = value
        else:
            result.peer_errors[name] = error or "no figure"
    return result


def step_tables() -> dict[str, Any]:
    """Where the time of each network's run goes; empty where that cannot be told."""
    command = [sys.executable, "-m", "benchmarks.steps", "--json"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=True)
        result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.SubprocessError, IndexError, ValueError):
        return {}
    return result


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, formatter_class=_Format)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"only these of: {', '.join(r.name for r in ROWS)}")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--no-peers", action="store_true", help="measure only this package")
    options = parser.parse_args()
    unknown = set(options.rows) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")

    os.environ.update(measure.QUIET)  # for the processes that measure; nothing is measured in this one
    pinned = measure.pin()
    notes = Console(stderr=True)
    results = []
    with notes.status("measuring") as status:
        for row in ROWS:
            if not options.rows or row.name in options.rows:
                status.update(f"measuring {row.name}")
                results.append(run_row(row, with_peers=not options.no_peers))

    limits, _ = figure_from(sys.executable, "benchmarks.duels", "limits")
    actual = report.as_json(results, pinned, limits or {})
    if not options.rows:
        actual["steps"] = step_tables()
    if not options.rows:  # part of the rows must not pass for a whole run
        LATEST.parent.mkdir(exist_ok=True)
        LATEST.write_text(json.dumps(actual, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(actual, indent=2, ensure_ascii=False))
    else:
        console = Console(width=None if sys.stdout.isatty() else 150)
        report.print_table(results, console)
        if actual.get("steps"):
            steps.print_summary(actual["steps"], console)
    return 1 if any(result.error for result in results) else 0


class _Format(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of this module's docstring."""


if __name__ == "__main__":
    sys.exit(main())
