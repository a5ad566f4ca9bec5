"""Rows of the converter's tables (tests/lite/convert): the function eagerly and traced, its file by both engines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from control_cases import CONTROL
from convert_cases import CASES
from convert_harness import eager

import opwright as ow

from ..execution import outcome
from ..outcomes import Entry, inputs_digest
from . import files


def _rows() -> dict[str, object]:
    result: dict[str, object] = {}
    for row in (*CASES, *CONTROL):
        name = f"{row.name}-{row.inputs[0].dtype}" if row.inputs else row.name
        result[name.replace(" ", "_").replace("/", "|")] = row
    return result


def keys() -> list[str]:
    """The names of the rows."""
    return list(_rows())


def entries(key: str, name: str) -> Iterator[Entry]:
    """The entries of a row."""
    row = _rows()[key]
    of = inputs_digest(row.inputs)
    yield outcome(f"{name}/eager", lambda: eager(row), of)
    yield outcome(f"{name}/traced", lambda: _traced(row), of)
    for model in models(key):
        yield from files.entries(name, model, of)


def models(key: str) -> Iterator[files.Model]:
    """The file of a row."""
    row = _rows()[key]
    yield lambda: files.Made(files.converted(row.concrete()), row.inputs)


def _traced(row: object) -> list[np.ndarray]:
    result = row.concrete()(*map(ow.constant, row.inputs))
    return [np.asarray(y.numpy()) for y in ow.nest.flatten(result)]
