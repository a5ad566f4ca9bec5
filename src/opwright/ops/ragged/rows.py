"""Rows of ragged tensors: positions of their values, rows chosen by number."""

from __future__ import annotations

from typing import Any

from ...core.dtypes import int64
from .. import array
from .ragged_tensor import RaggedTensor
from .row_partitions import row_ids, splits_of


def ranges(starts: Any, lengths: Any, step: int = 1) -> Any:
    """Return start, start + step, ... of each row, `lengths` of them, one row after another: int64."""
    splits = splits_of(lengths)
    total = splits[-1]
    rows = row_ids(splits, total)
    return array.gather(starts - splits[:-1] * step, rows) + array.range(total, dtype=int64) * step


def range_in_rows(lengths: Any) -> Any:
    """Return the position of each value in its row."""
    return ranges(array.zeros_like(lengths), lengths)


def gather_rows(x: Any, rows: Any) -> Any:
    """Return the rows of a tensor or ragged tensor at positions int64 [n]."""
    if not isinstance(x, RaggedTensor):
        return array.gather(x, rows)
    starts, lengths = array.gather(x.row_starts(), rows), array.gather(x.row_lengths(), rows)
    values = gather_rows(x.values, ranges(starts, lengths))
    return RaggedTensor.from_row_splits(values, splits_of(lengths), validate=False)
