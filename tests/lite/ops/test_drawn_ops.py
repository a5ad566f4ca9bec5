"""Every row of the table operator x type: the reference kernels give the official kernels' answers, as far as the row
says. The compiled engine's rows are in test_compiled_*.py."""

from __future__ import annotations

import os
import random

import pytest
from drawn_table import PAGE, ROWS, counted

from each_row import each_row
from thorough import sampled

pytestmark = pytest.mark.usefixtures("reference_engine")

PAIRS = [(row, kind) for row in ROWS for kind in row.kinds]
EACH = [pytest.param(row, kind, id=f"{row.label}-{kind}-{row.path}") for row, kind in PAIRS]
MODELS, MORE = 1, 20  # drawn models of a row and type, in the quick run and in the slow one


@pytest.mark.parametrize("seeds", [range(MODELS), pytest.param(range(1, MORE), marks=pytest.mark.slow)], ids=str)
@each_row(
    "row, kind", sampled(EACH, by=lambda row, kind: row.label), by=lambda row, kind: row.label.split()[0].rstrip(",")
)
def test_agrees_with_the_official_kernels(row, kind, seeds, record_property):
    pytest.importorskip("ai_edge_litert.interpreter")
    if os.environ.get("OPWRIGHT_EXPLORE") == "1":
        seeds = [random.SystemRandom().getrandbits(32) for _ in seeds]
    count = counted(row, kind, seeds)
    record_property("operator x type", [row.label, kind, row.path, count.tried, count.passed])
    assert count.passed == count.tried, count.failed


def test_the_page_has_every_row():
    table = PAGE.read_text("utf-8").partition("| operator |")[2].splitlines()[2:]
    lines = [line.split("|") for line in table if line.startswith("| ")]
    kept = {tuple(cell.strip() for cell in cells[1:4]): cells[4:6] for cells in lines}
    missing = [key for row, kind in PAIRS if (key := (row.label, kind, row.path)) not in kept]
    assert not missing, "draw the table anew: make operator-table"
    assert all(int(tried) == int(passed) > 0 for tried, passed in kept.values())


def test_no_row_is_twice_there():
    keys = [(row.label, kind, row.path) for row, kind in PAIRS]
    assert len(keys) == len(set(keys)), sorted({k for k in keys if keys.count(k) > 1})
