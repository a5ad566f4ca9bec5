"""Every check on every row of every table (cases_*.py).

Lives here: collection.  Not here: the checks (checks.py), whether the catalogue is covered (test_catalogue.py).
"""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path

import checks
import checks_floats  # noqa: F401  enters its check
import checks_graphs  # noqa: F401  enters its checks
import checks_lod  # noqa: F401  enters its check
import harness
import pytest

from each_row import each_row

BROKEN: dict[str, str] = {}


def tables() -> dict[str, list[harness.Case]]:
    """All rows by key; a file that does not load is noted in BROKEN and fails by itself."""
    merged: dict[str, list[harness.Case]] = {}
    for path in sorted(Path(__file__).parent.glob("cases_*.py")):
        try:
            module = importlib.import_module(path.stem)
        except Exception:
            BROKEN[path.name] = traceback.format_exc()
            continue
        checks.SHAPE_DEPENDS_ON_DATA.update(getattr(module, "SHAPE_DEPENDS_ON_DATA", ()))
        for key, rows in module.CASES.items():
            others = merged.setdefault(key, [])
            for number, row in enumerate(rows, len(others)):
                row.key, row.number = key, number
            others.extend(rows)
    return merged


TABLES = tables()


def rows() -> list[object]:
    """One test for each row."""
    result = []
    for key, cases in TABLES.items():
        try:
            harness.resolve(key)
        except LookupError as error:
            BROKEN[key] = str(error)
            continue
        result += [pytest.param(row, id=f"{key}-{i}") for i, row in enumerate(cases)]
    return result


@each_row("row", rows(), by=lambda row: row.key)
def test_operator(row: harness.Case) -> None:
    """Every check that is for the row; all that fail are told, each by its name."""
    failed = []
    for name, (applies, check) in checks.CHECKS.items():
        if not applies(row):
            continue
        try:
            check(row)
        except Exception as error:
            error.add_note(f"in the check {name}")
            failed.append(error)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of the checks of {row.key}", failed)


def test_every_table_loads() -> None:
    assert not BROKEN, "\n".join(f"{name}: {why}" for name, why in BROKEN.items())
