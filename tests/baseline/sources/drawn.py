"""Drawn models of one operator (tests/lite/ops/drawn_rows_*.py), by both engines, a few seeds of each row and type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import drawn as drawing  # of tests/lite/ops
from drawn_table import ROWS

from . import files

SEEDS = 2


def _rows() -> dict[str, tuple[Any, str]]:
    return {f"{row.label}-{kind}-{row.path}".replace(" ", "_"): (row, kind) for row in ROWS for kind in row.kinds}


def keys() -> list[str]:
    """Rows with their types and paths."""
    return list(_rows())


def models(key: str) -> Iterator[files.Model]:
    """The models of a row of one type."""
    row, kind = _rows()[key]
    for seed in range(SEEDS):
        yield lambda seed=seed: _model(row, kind, seed)


def _model(row: Any, kind: str, seed: int) -> files.Made:
    result = row.draw(drawing.Draw(seed, kind))
    return files.Made(drawing.model_of(row.name, result).to_bytes(), drawing.feeds(result), result.runs)
