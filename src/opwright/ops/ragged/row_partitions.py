"""RowPartitioned: flat values in rows that partitions separate; the base of RaggedTensor.

Lives here: construction from row splits, lengths, starts, limits and numbers of rows; the same read back.
Not here: what makes it a tensor, and conversions (ragged_tensor.py).

Partitions are tensors of int64, so that everything also works while a function is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ...core import dtypes
from ...core.dtypes import int64
from ...core.errors import InvalidArgumentError
from .. import array, debugging, dispatch, math
from ..tensor import Tensor


class RowPartitioned:
    """Flat values, and the row splits of each partition from the outermost to the innermost."""

    __slots__ = ("flat_values", "nested_row_splits")

    flat_values: Any
    nested_row_splits: tuple[Any, ...]

    @classmethod
    def of(cls, flat_values: Any, nested_row_splits: Sequence[Any]) -> Self:
        """Return the ragged tensor of matching parts, unchecked."""
        ragged = cls.__new__(cls)
        ragged.flat_values, ragged.nested_row_splits = flat_values, tuple(nested_row_splits)
        return ragged

    @classmethod
    def _with_outer(cls, values: Any, splits: Any) -> Self:
        """Return values, which may be ragged, in the rows of one more partition."""
        if isinstance(values, RowPartitioned):
            return cls.of(values.flat_values, (splits, *values.nested_row_splits))
        return cls.of(values, (splits,))

    # ---- partitions in ---------------------------------------------------------------------------------------------

    @classmethod
    def from_row_splits(cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True) -> Any:
        """Return rows values[row_splits[i]:row_splits[i + 1]]. row_splits: increasing, from 0 to the rows of values.

        raises InvalidArgumentError for other row_splits
        """
        values = values if isinstance(values, RowPartitioned) else dispatch.to_tensor(values)
        splits = _partition(row_splits, "row_splits")
        if splits.shape.rank == 1 and splits.shape[0] == 0:
            raise ValueError("row_splits tensor may not be empty.")
        if validate:
            debugging.assert_equal(
                splits[0],
                array.cast(0, int64),
                "Arguments to from_row_splits do not form a valid RaggedTensor: row_splits must start with 0",
            )
            _check_increasing(splits, "row_splits")
            debugging.assert_equal(
                splits[-1],
                _count(values),
                "Arguments to from_row_splits do not form a valid "
                "RaggedTensor: the last of row_splits must be the number of values",
            )
        return cls._with_outer(values, splits)

    @classmethod
    def from_row_lengths(cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True) -> Any:
        """Return rows of these lengths. Raises InvalidArgumentError unless they sum to the number of values."""
        lengths = _partition(row_lengths, "row_lengths")
        return cls.from_row_splits(values, splits_of(lengths), validate=validate)

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None, validate: bool = True
    ) -> Any:
        """Return rows by the number of the row of each value, which increase. nrows: by default up to the last.

        raises InvalidArgumentError for numbers that decrease or are not below nrows
        """
        ids = _partition(value_rowids, "value_rowids")
        if nrows is None:
            nrows = math.reduce_max(array.concat([ids, array.cast([-1], int64)], 0)) + 1
        nrows = array.cast(nrows, int64)
        if validate:
            _check_increasing(ids, "value_rowids")
            last = math.reduce_max(array.concat([ids, array.cast([-1], int64)], 0))
            debugging.assert_less(
                last,
                nrows,
                "Arguments to from_value_rowids do not form a valid RaggedTensor: value_rowids must be less than nrows",
            )
        rows = array.range(nrows + 1, dtype=int64)
        return cls.from_row_splits(
            values, array.searchsorted(ids, rows, side="left", out_type=int64), validate=validate
        )

    @classmethod
    def from_row_starts(cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True) -> Any:
        """Return rows that begin at these positions."""
        values = values if isinstance(values, RowPartitioned) else dispatch.to_tensor(values)
        splits = array.concat([_partition(row_starts, "row_starts"), array.reshape(_count(values), [1])], 0)
        return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_row_limits(cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True) -> Any:
        """Return rows that end before these positions."""
        splits = array.concat([array.cast([0], int64), _partition(row_limits, "row_limits")], 0)
        return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True, name: str | None = None
    ) -> Any:
        """Return rows of one length. nrows: needed if it is 0."""
        values = values if isinstance(values, RowPartitioned) else dispatch.to_tensor(values)
        length = array.cast(uniform_row_length, int64)
        if nrows is None:
            nrows = math.floordiv(_count(values), math.maximum(length, array.cast(1, int64)))
        splits = array.range(array.cast(nrows, int64) + 1, dtype=int64) * length
        return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Return nested rows. nested_row_splits: row_splits from the outermost partition to the innermost."""
        result = flat_values
        for splits in reversed(list(nested_row_splits)):
            result = cls.from_row_splits(result, splits, validate=validate)
        return result

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Return nested rows by their lengths, from the outermost partition to the innermost."""
        result = flat_values
        for lengths in reversed(list(nested_row_lengths)):
            result = cls.from_row_lengths(result, lengths, validate=validate)
        return result

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Any,
        nested_nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Return nested rows by the numbers of their rows, from the outermost partition to the innermost."""
        ids = list(nested_value_rowids)
        counts = [None] * len(ids) if nested_nrows is None else list(nested_nrows)
        result = flat_values
        for rows, count in reversed(list(zip(ids, counts))):
            result = cls.from_value_rowids(result, rows, count, validate=validate)
        return result

    # ---- partitions out --------------------------------------------------------------------------------------------

    @property
    def values(self) -> Any:
        """The rows, concatenated: a tensor, or a ragged tensor for more than one partition."""
        rest = self.nested_row_splits[1:]
        return self.of(self.flat_values, rest) if rest else self.flat_values

    @property
    def row_splits(self) -> Tensor:
        """Where rows begin and end: int64 [rows + 1]."""
        splits: Tensor = self.nested_row_splits[0]
        return splits

    @property
    def ragged_rank(self) -> int:
        """The number of partitions."""
        return len(self.nested_row_splits)

    @property
    def uniform_row_length(self) -> None:
        """None: rows may differ in length."""
        return None

    def nrows(self, out_type: Any = int64, name: str | None = None) -> Tensor:
        """Return the number of rows."""
        splits = self.row_splits
        return array.cast(array.shape(splits, int64)[0] - 1, out_type)

    def row_starts(self, name: str | None = None) -> Tensor:
        """Return where rows begin."""
        return self.row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Return where rows end."""
        return self.row_splits[1:]

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """Return the lengths of the rows; axis: of the rows within rows, as a ragged tensor."""
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return self.row_splits[1:] - self.row_splits[:-1]
        values = self.values
        if isinstance(values, RowPartitioned):
            return self.with_values(values.row_lengths(axis - 1))
        length = array.shape(values, int64)[axis - 1]
        return self.with_values(array.fill(array.shape(values)[: axis - 1], length))

    def value_rowids(self, name: str | None = None) -> Tensor:
        """Return the number of the row of each value."""
        ids: Tensor = row_ids(self.row_splits, _count(self.values))
        return ids

    def nested_row_lengths(self, name: str | None = None) -> tuple[Any, ...]:
        """Return the lengths of the rows of each partition."""
        return tuple(splits[1:] - splits[:-1] for splits in self.nested_row_splits)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Any, ...]:
        """Return the numbers of rows of each partition."""
        counts = [array.shape(s, int64)[0] - 1 for s in self.nested_row_splits[1:]] + [_count(self.flat_values)]
        return tuple(row_ids(s, n) for s, n in zip(self.nested_row_splits, counts))

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = int64) -> Any:
        """Return the shape of the smallest tensor that has room for all rows, or its size along an axis."""
        sizes = [self.nrows()]
        for splits in self.nested_row_splits:
            lengths = splits[1:] - splits[:-1]
            sizes.append(math.reduce_max(array.concat([lengths, array.cast([0], int64)], 0)))
        inner = array.shape(self.flat_values, int64)[1:]
        shape = array.cast(array.concat([array.stack(sizes), inner], 0), out_type)
        return shape if axis is None else array.gather(shape, axis)

    # ---- others like this one --------------------------------------------------------------------------------------

    def with_values(self, new_values: Any) -> Any:
        """Return other values in the same rows."""
        return self._with_outer(new_values, self.row_splits)

    def with_flat_values(self, new_values: Any) -> Any:
        """Return other flat values in the same rows."""
        inner = list(getattr(new_values, "nested_row_splits", ()))
        return self.of(getattr(new_values, "flat_values", new_values), [*self.nested_row_splits, *inner])

    def with_row_splits_dtype(self, dtype: Any) -> Self:
        """Return this tensor: partitions are int64."""
        dtypes.as_dtype(dtype)
        return self


def _partition(value: Any, what: str) -> Any:
    tensor = dispatch.to_tensor(np.asarray(value, np.int64) if isinstance(value, (list, tuple)) else value)
    if not tensor.dtype.is_integer or tensor.shape.rank not in (1, None):
        raise InvalidArgumentError(
            op="RaggedTensor", what=f"{what} must be a vector of integers", found=tensor.spec.short()
        )
    return array.cast(tensor, int64)


def _check_increasing(numbers: Any, what: str) -> None:
    message = f"Arguments do not form a valid RaggedTensor: {what} must not decrease"
    debugging.assert_less_equal(numbers[:-1], numbers[1:], message)


def _count(values: Any) -> Tensor:
    """Return the number of rows of a tensor or ragged tensor."""
    return values.nrows() if isinstance(values, RowPartitioned) else array.shape(values, int64)[0]


def splits_of(lengths: Any) -> Any:
    """Return the row splits of rows of these lengths."""
    return array.concat([array.cast([0], int64), math.cumsum(lengths)], 0)


def row_ids(splits: Any, count: Any) -> Any:
    """Return the number of the row of each of `count` values."""
    return array.searchsorted(splits, array.range(count, dtype=int64), side="right", out_type=int64) - 1
