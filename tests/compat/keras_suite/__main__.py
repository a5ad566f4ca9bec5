"""Run Keras's own test files on opwright.keras: `KERAS_SOURCES=... python tests/compat/keras_suite OUT [AREA ...]`.

KERAS_SOURCES is the folder of Keras's unpacked source distribution. Each file runs in its own process, at most LIMIT
seconds; OUT gets a file of results a test file, and files that have results are not run again. With SECONDS in the
environment, none begins later. `--table` only prints counts, `--write` keeps them in results.json, from which
make_compatibility.py writes a table.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from keras_counts import by_area, out_of_scope, reason, share  # noqa: E402

LIMIT = int(os.environ.get("LIMIT", "900"))
SECONDS = float(os.environ.get("SECONDS", "inf"))
AREAS = (
    *("losses", "metrics", "layers", "optimizers", "trainers", "models", "callbacks", "saving", "ops", "random"),
    *("activations", "initializers", "constraints", "regularizers", "dtype_policies", "tree", "utils", "legacy"),
    *("applications", "wrappers", "export", "quantizers", "distillation"),
)


def run(file: pathlib.Path, sources: pathlib.Path, results: pathlib.Path) -> None:
    """Run one test file and write its results."""
    part = results.with_suffix(".part")
    try:
        part.open("x").close()
    except FileExistsError:
        return  # another process runs it
    environment = {
        **os.environ,
        "KERAS_RESULTS": str(part),
        "PYTHONPATH": str(HERE) + ":" + os.environ.get("EXTRA", ""),
    }
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


def outcomes(out: pathlib.Path) -> dict[str, collections.Counter[str]]:
    """Return the counts of outcomes and of reasons of failures by test file."""
    counts: dict[str, collections.Counter[str]] = {}
    for results in sorted(out.glob("*.jsonl")):
        file = counts[results.stem.replace("--", "/")] = collections.Counter()
        last = {r["test"]: r for r in map(json.loads, results.read_text().splitlines())}
        for name, result in last.items():
            kind = result["outcome"]
            if kind in ("failed", "error"):
                kind = reason(f"{name.rpartition('keras/src/')[2]} {result['why']}")
            file[kind] += 1
    return counts


def main() -> None:
    """Run the areas and print the counts."""
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    out, areas = pathlib.Path(arguments[0]), arguments[1:] or AREAS
    out.mkdir(parents=True, exist_ok=True)
    sources, begin = pathlib.Path(os.environ["KERAS_SOURCES"]), time.monotonic()
    if "--table" not in sys.argv:
        for area in areas:
            for file in sorted((sources / "keras" / "src").glob(f"{area}/**/*_test.py" if "/" not in area else area)):
                if out_of_scope(str(file.relative_to(sources / "keras" / "src"))):
                    continue
                stem = "--".join(file.relative_to(sources / "keras" / "src").with_suffix("").parts)
                results = out / f"{stem}.jsonl"
                if not results.exists() and time.monotonic() - begin < SECONDS:
                    run(file, sources, results)
    rows = {file: dict(sorted(counts.items())) for file, counts in outcomes(out).items()}
    if "--write" in sys.argv:
        path = HERE / "results.json"
        kept = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(dict(sorted({**kept, **rows}.items())), indent=0) + "\n")
    for area, counts in by_area(rows).items():
        print(f"{area}: {counts}, {share(counts):.1%} of what is in scope")


if __name__ == "__main__":
    main()
