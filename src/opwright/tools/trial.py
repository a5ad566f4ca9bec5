"""`opwright op test`: the checks of `opwright.testing` on operators by name or by file, printed.

Lives here: the report.  Not here: the checks and the inputs that are made up for them (testing/), the rules of words
and names (ops/linting.py), finding operators in a file (catalogue.py).
"""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from ..ops import registry
from ..testing import outcomes
from .catalogue import operators_in
from .report import BadFile, notes, out, print_json


def test_operators(targets: tuple[str, ...], as_json: bool) -> bool:
    """Check operators by name or by file, and print what was found; True if nothing failed."""
    chosen: list[Any] = []
    for target in targets:
        if target.endswith(".py"):
            chosen += operators_in(target)
            continue
        try:
            chosen.append(registry.get(target))
        except KeyError as error:
            raise BadFile(str(error.args[0])) from None
    found = [outcome for op in chosen for outcome in outcomes(op)]
    if as_json:
        print_json([o._asdict() for o in found])
    else:
        table = Table("operator", "check", "", "detail")
        for o in found:
            style = {"failed": "red", "not tried": "yellow"}.get(o.state, "")
            table.add_row(o.operator, o.check, Text(o.state, style), Text(o.detail))
        out().print(table)
    failed = sum(o.state == "failed" for o in found)
    notes().print(f"{len(chosen)} operators, {len(found)} checks, {failed} failed")
    return not failed
