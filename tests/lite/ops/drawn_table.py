"""The table operator x type: cases tried against the official kernels, passed, largest error.

Lives here: the rows of all drawn_rows_*.py, counting, and the table, which
`PYTHONPATH=tests/lite:tests/lite/ops python tests/lite/ops/drawn_table.py [models a row] [--executor=NAME] [--write]`
prints, and writes to docs/operator_table.md; with --only=OPERATOR the rows of one, without the fixed cases. `make test`
prints how many were tried and passed.
Not here: drawing and comparing (drawn.py), the fixed cases (cases*.py), which are counted, too.
"""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from drawn import Row, differences, gap_of

from opwright import distribute

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "operator_table.md"

ROWS: list[Row] = [
    row for path in sorted(HERE.glob("drawn_rows_*.py")) for row in importlib.import_module(path.stem).ROWS
]


@dataclass
class Count:
    """Cases tried, those within what is allowed, the largest gap (see drawn.gap_of) and what is allowed."""

    tried: int = 0
    passed: int = 0
    largest: float = 0.0
    allowed: float = 0.0
    failed: str = ""

    def add(self, other: Count) -> None:
        self.tried, self.passed = self.tried + other.tried, self.passed + other.passed
        self.largest, self.allowed = max(self.largest, other.largest), max(self.allowed, other.allowed)
        self.failed = self.failed or other.failed


def counted(row: Row, kind: str, seeds: Iterable[int]) -> Count:
    """One model a seed; `failed` says of the first one out of bounds what was wrong."""
    count = Count(allowed=row.within)
    for seed in seeds:
        count.tried += 1
        try:
            gap = max((float(g.max(initial=0)) for g in differences(row, kind, seed)), default=0.0)
        except Exception as error:
            count.failed = count.failed or f"seed {seed}: {type(error).__name__}: {error}"
            continue
        count.largest = max(count.largest, gap)
        if gap <= row.within:
            count.passed += 1
        else:
            count.failed = count.failed or f"seed {seed}: {gap:.3g} from the official answer, allowed {row.within:.3g}"
    return count


def fixed_cases() -> dict[tuple[str, str, str], Count]:
    """The fixed cases that the official kernels take, by operator, type of the first input and path."""
    import cases
    from one_operator import array_of, feeds, model_of, official, ours, output_types

    from opwright.core.dtypes import of_numpy
    from opwright.lite.ops import types

    result: dict[tuple[str, str, str], Count] = defaultdict(Count)
    for name, rows in cases.CASES.items():
        for row in rows:
            if row.says or not row.oracle:
                continue
            first = next(array_of(v) for v in row.inputs if v is not None)
            kind = types.name_of(of_numpy(first.dtype))
            model = model_of(name, row, output_types(name, row))
            pairs = list(zip(ours(model, feeds(row)), official(model, feeds(row)), strict=True))
            gap = max((float(gap_of(a, b).max(initial=0)) for a, b in pairs), default=0.0)
            near = all(
                (a.dtype.kind not in "fc" and a.tolist() == b.tolist())
                or (
                    a.dtype.kind in "fc"
                    and np.allclose(a, b, max(row.rtol, np.finfo(a.dtype).eps * 2), row.atol, equal_nan=True)
                )
                for a, b in pairs
            )
            result[name, kind, "REF"].add(Count(1, int(near), gap, row.rtol if first.dtype.kind in "fc" else 0))
    return result


def summed(counts: dict[tuple[str, str, str], Count]) -> str:
    """The line below the table."""
    total = Count()
    for count in counts.values():
        total.add(count)
    operators = len({label.split()[0].rstrip(",") for label, _, _ in counts})
    return (
        f"operator x type: {operators} operators, {len(counts)} rows, {total.tried} cases tried against the "
        f"official kernels, {total.passed} passed"
    )


def page(counts: dict[tuple[str, str, str], Count]) -> str:
    """The table as Markdown."""
    lines = ["| operator | type | kernels | tried | passed | largest error | allowed |"]
    lines.append("|---|---|---|---:|---:|---:|---:|")
    for (label, kind, path), c in sorted(counts.items()):
        lines.append(f"| {label} | {kind} | {path} | {c.tried} | {c.passed} | {c.largest:.2g} | {c.allowed:.2g} |")
    return "\n".join(lines)


def counted_row(row: int, kind: str, models: int) -> Count:
    """Return the counts of a row by its number: a job of a sweep."""
    return counted(ROWS[row], kind, range(models))


def table(models: int, executor: str | None = None, only: str | None = None) -> dict[tuple[str, str, str], Count]:
    """Return the counts of every row with `models` models, on the workers of an executor, and of the fixed cases.

    only: rows of this operator alone
    """
    import drawn_table  # by this name on workers, where this module may not be __main__

    counts: dict[tuple[str, str, str], Count] = defaultdict(Count, fixed_cases() if only is None else {})
    chosen = [i for i, row in enumerate(ROWS) if only is None or row.label.split()[0].rstrip(",") == only]
    jobs = [{"row": i, "kind": kind, "models": models} for i in chosen for kind in ROWS[i].kinds]
    for trial in distribute.sweep(drawn_table.counted_row, jobs, executor, progress=True):
        row, kind = ROWS[trial.parameters["row"]], trial.parameters["kind"]
        count = trial.value or drawn_table.Count(models, 0, failed=str(trial.error and trial.error.message))
        counts[row.label, kind, row.path].add(count)
    return counts


def main(arguments: list[str]) -> None:
    executor, only = (
        next((a.partition("=")[2] for a in arguments if a.startswith(f"--{name}=")), None)
        for name in ("executor", "only")
    )
    counts = table(int(next((a for a in arguments if a.isdigit()), 20)), executor, only)
    text = page(counts)
    print(text, summed(counts), sep="\n\n")
    bad: list[Any] = [(key, c.failed) for key, c in counts.items() if c.passed != c.tried]
    for key, failed in bad:
        print(*key, failed)
    if "--write" in arguments and only is None:
        before, _, _ = PAGE.read_text("utf-8").partition("| operator |")
        PAGE.write_text(f"{before}{text}\n\n{summed(counts)}.\n", "utf-8")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main(sys.argv[1:])
