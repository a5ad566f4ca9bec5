"""Run test files of another project on this package, a process a file, and keep one line of JSON a test.

Lives here: the loop over files, counts of outcomes, and what the suites' pytest plugins write.
Not here: the names under which the files find this package (names.py of each suite), scopes and reasons
(keras_counts.py, tensorflow_counts.py), the page (make_compatibility.py).

A suite is a folder with a pytest plugin, `plugin.py`. PEER_RESULTS names the file to which the plugin appends.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

LIMIT = int(os.environ.get("LIMIT", "900"))
SECONDS = float(os.environ.get("SECONDS", "inf"))


def write_line(name: str, outcome: str, text: str = "") -> None:
    """Append one result; for plugins."""
    with open(os.environ["PEER_RESULTS"], "a") as file:
        file.write(json.dumps({"test": name, "outcome": outcome, "why": text}) + "\n")


def write_collection(report: object) -> None:
    """Append a result for a file that cannot be imported; for `pytest_collectreport`."""
    if report.failed:  # type: ignore[attr-defined]
        write_line(report.nodeid, "error", str(report.longrepr)[-400:])  # type: ignore[attr-defined]


def write_test(report: object) -> None:
    """Append the result of a test; for `pytest_runtest_logreport`."""
    passed, skipped, failed = report.passed, report.skipped, report.failed  # type: ignore[attr-defined]
    if report.when != "call" and not failed and not skipped:  # type: ignore[attr-defined]
        return
    cause = report.longrepr  # type: ignore[attr-defined]
    if passed:
        text = ""
    elif skipped:
        text = str(cause[2]) if isinstance(cause, tuple) else "expected failure"
    else:
        crash = getattr(cause, "reprcrash", None)
        text = (crash.message if crash is not None else str(cause))[:400]
    write_line(report.nodeid, "failed" if failed else "passed" if passed else "skipped", text)  # type: ignore[attr-defined]


def run_file(suite: pathlib.Path, file: pathlib.Path, sources: pathlib.Path, results: pathlib.Path) -> None:
    """Run one test file and write its results, unless another process does."""
    part = results.with_suffix(".part")
    try:
        part.open("x").close()
    except FileExistsError:
        return
    path = ":".join([str(suite), str(suite.parent), os.environ.get("EXTRA", "")])
    environment = {**os.environ, "PEER_RESULTS": str(part), "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", "-q", str(file), "--rootdir", str(sources), "-c", os.devnull]
    command += ["-p", "plugin", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short", "-W", "ignore"]
    with open(results.with_suffix(".log"), "w") as log:
        try:
            subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            with open(part, "a") as lines:
                lines.write(json.dumps({"test": str(file), "outcome": "error", "why": "out of time"}) + "\n")
    if not part.read_text():
        part.write_text(json.dumps({"test": str(file), "outcome": "error", "why": "no test ran"}) + "\n")
    part.rename(results)


def run_files(
    suite: pathlib.Path, files: Iterable[pathlib.Path], root: pathlib.Path, sources: pathlib.Path, out: pathlib.Path
) -> None:
    """Run files that have no results yet; with SECONDS in the environment, none begins later.

    root: results are named by paths from here; sources: pytest's root
    """
    out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    for file in files:
        results = out / f"{'--'.join(file.relative_to(root).with_suffix('').parts)}.jsonl"
        if not results.exists() and time.monotonic() - begin < SECONDS:
            run_file(suite, file, sources, results)


def outcomes(out: pathlib.Path, reason: Callable[[str], str]) -> dict[str, dict[str, int]]:
    """Return the counts of outcomes and of reasons of failures by test file."""
    counts: dict[str, collections.Counter[str]] = {}
    for results in sorted(out.glob("*.jsonl")):
        file = counts[results.stem.replace("--", "/")] = collections.Counter()
        last = {r["test"]: r for r in map(json.loads, results.read_text().splitlines())}
        for name, result in last.items():
            kind = result["outcome"]
            file[reason(f"{name} {result['why']}") if kind in ("failed", "error") else kind] += 1
    return {file: dict(sorted(each.items())) for file, each in counts.items()}


def keep(path: pathlib.Path, rows: dict[str, dict[str, int]]) -> None:
    """Merge counts into a file of JSON."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(dict(sorted({**kept, **rows}.items())), indent=0) + "\n")
