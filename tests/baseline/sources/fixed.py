"""The fixed cases of operators of the lite dialect (tests/lite/ops/cases*.py), by both engines."""

from __future__ import annotations

from collections.abc import Iterator

import cases
import one_operator

from . import files


def keys() -> list[str]:
    """The operators of the table."""
    return list(cases.CASES)


def models(key: str) -> Iterator[files.Model]:
    """The models of an operator's cases."""
    for row in cases.CASES[key]:
        yield lambda row=row: _model(key, row)


def _model(name: str, row: one_operator.Case) -> files.Made:
    content = one_operator.model_of(name, row, one_operator.output_types(name, row)).to_bytes()
    return files.Made(content, one_operator.feeds(row))
