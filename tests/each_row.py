"""A check of many rows as one test: the overhead of a test exceeds the time of most rows.

Lives here: `each_row`.  Not here: tables of rows, and checks.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Check = Callable[..., None]
QUICK = os.environ.get("OPWRIGHT_QUICK") == "1"
"""Whether a test checks only the first row of its group: `make quick`."""


def each_row(
    names: str,
    rows: Iterable[Any],
    *,
    ids: Callable[[Any], str] | Sequence[str] = str,
    by: Callable[..., str] = lambda *row: "all",
) -> Callable[[Check], Check]:
    """Decorate a check of one row: a test runs it on every row of a group, and tells of each that fails by its name.

    names: the check's parameters that a row gives, with commas between. rows: values, tuples where there are several
    names; `pytest.param` with an id or marks, too. ids: a row's name, by its first value, or all names in order.
    by: the group that a row is in, called with the row's values. Fixtures are made once for a group.
    """
    parameters = [name.strip() for name in names.split(",")]
    groups: dict[tuple[str, str], tuple[Any, list[tuple[str, tuple[Any, ...]]]]] = {}
    for i, row in enumerate(rows):
        marks: Any = ()
        values = row if len(parameters) > 1 else (row,)
        name = None if callable(ids) else ids[i]
        if isinstance(row, type(pytest.param())):
            values, marks, name = tuple(row.values), tuple(row.marks), row.id or name
        if len(values) != len(parameters):
            raise TypeError(f"row {i} gives {len(values)} values, wanted {len(parameters)}: {names}")
        name = name or (ids(values[0]) if callable(ids) else str(i))
        groups.setdefault((by(*values), repr(marks)), (marks, []))[1].append((name, tuple(values)))

    def decorate(check: Check) -> Check:
        @functools.wraps(check)
        def test(*, group_of_rows: list[tuple[str, tuple[Any, ...]]], **fixtures: Any) -> None:
            _run(check, parameters, group_of_rows, fixtures)

        signature = inspect.signature(check)
        kept = [p.replace(kind=p.KEYWORD_ONLY) for n, p in signature.parameters.items() if n not in parameters]
        added = inspect.Parameter("group_of_rows", inspect.Parameter.KEYWORD_ONLY)
        test.__signature__ = signature.replace(parameters=[*kept, added])  # type: ignore[attr-defined]
        del test.__wrapped__  # type: ignore[attr-defined]
        params = [
            pytest.param(group[:1] if QUICK else group, id=name, marks=marks)
            for (name, _), (marks, group) in groups.items()
        ]
        marked: Check = pytest.mark.parametrize("group_of_rows", params)(test)
        return marked

    return decorate


def _run(
    check: Check, parameters: Sequence[str], rows: Sequence[tuple[str, tuple[Any, ...]]], fixtures: dict[str, Any]
) -> None:
    """Run a check on all rows, each with its name. Raises an ExceptionGroup of what those raise that fail."""
    failed: list[Exception] = []
    skipped: list[str] = []
    for name, values in rows:
        try:
            check(**dict(zip(parameters, values)), **fixtures)
        except pytest.skip.Exception as reason:
            skipped.append(str(reason))
        except (Exception, pytest.fail.Exception) as error:
            if not isinstance(error, Exception):  # pytest's exceptions do not derive from Exception
                error = AssertionError(str(error)).with_traceback(error.__traceback__)
            error.add_note(f"in the row {name}")
            failed.append(error)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(rows)} rows fail", failed)
    if rows and len(skipped) == len(rows):
        pytest.skip(skipped[0])
