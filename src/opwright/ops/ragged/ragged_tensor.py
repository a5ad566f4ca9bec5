"""RaggedTensor: rows of different lengths, packed, with the offsets that separate them.

Lives here: the type, its spec, its partitions and conversions.
Not here: construction from lists (constructors.py), operators on ragged tensors (operations.py), packed sequences with
levels, for the operators of ../sequence (../lod_tensor.py).

    [[1, 2], [], [3]]       flat_values [1, 2, 3], row_splits [0, 2, 2, 3]
    [[[1], [2, 3]], []]     flat_values [1, 2, 3], nested_row_splits [0, 2, 2], [0, 1, 3]

Partitions are tensors of int64, so that everything also works while a function is traced.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError
from ...core.lazy_imports import later
from ...core.shapes import TensorShape, as_shape
from ...core.specs import TensorSpec
from ...core.type_spec import CompositeTensor, TypeSpec
from .. import array, debugging, dispatch, math
from ..tensor import Overriding, Tensor

if TYPE_CHECKING:
    from . import conversions, operations, rows, shapes, slices
else:
    conversions, operations = later(".conversions", __package__), later(".operations", __package__)
    rows, shapes, slices = later(".rows", __package__), later(".shapes", __package__), later(".slices", __package__)

int64 = dtypes.int64
_SPLITS = TensorSpec([None], int64)


class RaggedTensorSpec(TypeSpec):
    """The type of RaggedTensors.

    shape: None where sizes vary or are unknown. ragged_rank: the number of partitions; 0 is a tensor.
    """

    __slots__ = ("_dtype", "_ragged_rank", "_shape")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = int64,
        flat_values_spec: Any = None,
    ) -> None:
        self._shape, self._dtype = as_shape(shape), dtypes.as_dtype(dtype)
        if ragged_rank is None:
            if self._shape.rank is None:
                raise ValueError("Must specify ragged_rank or a shape with known rank.")
            ragged_rank = self._shape.rank - 1
        self._ragged_rank = int(ragged_rank)
        if self._shape.rank is not None and self._ragged_rank >= max(self._shape.rank, 1):
            raise ValueError(f"ragged_rank ({ragged_rank}) must be less than rank ({self._shape.rank}).")
        dtypes.as_dtype(row_splits_dtype)

    shape = property(lambda self: self._shape, doc="Shape, None where sizes vary.")
    dtype = property(lambda self: self._dtype, doc="Element type of the values.")
    ragged_rank = property(lambda self: self._ragged_rank, doc="Number of partitions.")
    row_splits_dtype = property(lambda self: int64, doc="Element type of the partitions.")

    @property
    def value_type(self) -> type[Any]:
        """RaggedTensor, or Tensor for a ragged_rank of 0."""
        return RaggedTensor if self._ragged_rank else Tensor

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._ragged_rank, int64

    @property
    def _component_specs(self) -> tuple[TensorSpec, list[TensorSpec]]:
        shape = self._shape
        if self._ragged_rank:
            shape = as_shape(None if shape.rank is None else [None, *shape[self._ragged_rank + 1 :]])
        rows = self._shape[0] if self._shape.rank else None
        splits = [_SPLITS] * self._ragged_rank
        if splits and rows is not None:
            splits[0] = TensorSpec([rows + 1], int64)
        return TensorSpec(shape, self._dtype), splits

    def _to_components(self, value: Any) -> tuple[Any, list[Any]]:
        if not self._ragged_rank:
            return dispatch.to_tensor(value, self._dtype), []
        return value.flat_values, list(value.nested_row_splits)

    def _from_components(self, components: Any) -> Any:
        values, splits = components
        return RaggedTensor.of(values, splits) if splits else values

    def _batch(self, size: int | None) -> RaggedTensorSpec:
        return RaggedTensorSpec(as_shape([size]).concatenate(self._shape), self._dtype, self._ragged_rank + 1)

    def _unbatch(self) -> TypeSpec:
        return RaggedTensorSpec(self._shape[1:], self._dtype, max(self._ragged_rank - 1, 0))


class RaggedTensor(Overriding, CompositeTensor):
    """A tensor whose rows have different lengths: `values` one after another, and `row_splits`, where rows start.

    .. math:: row_i = values[row\\_splits_i : row\\_splits_{i+1}]

    values may be ragged themselves. Create one by `ow.ragged.constant`, or by `from_row_splits` and its kin.
    Element-wise operators, reductions, `concat`, `stack`, `gather`, `expand_dims`, casts and strings' operators take
    ragged tensors; others take `to_tensor()`, padded, or `flat_values`.

    >>> ow.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1])
    <tf.RaggedTensor [[1, 2], [], [3]]>
    """

    __slots__ = ("flat_values", "nested_row_splits")
    is_tensor_like = True

    flat_values: Any
    nested_row_splits: tuple[Any, ...]

    @classmethod
    def of(cls, flat_values: Any, nested_row_splits: Sequence[Any]) -> RaggedTensor:
        """Return the ragged tensor of matching parts, unchecked."""
        ragged = cls.__new__(cls)
        ragged.flat_values, ragged.nested_row_splits = flat_values, tuple(nested_row_splits)
        return ragged

    # ---- partitions in ---------------------------------------------------------------------------------------------

    @classmethod
    def from_row_splits(cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True) -> Any:
        """Return rows values[row_splits[i]:row_splits[i + 1]]. row_splits: increasing, from 0 to the rows of values.

        raises InvalidArgumentError for other row_splits
        """
        values = values if isinstance(values, RaggedTensor) else dispatch.to_tensor(values)
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
        return _with_outer(values, splits)

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
        values = values if isinstance(values, RaggedTensor) else dispatch.to_tensor(values)
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
        values = values if isinstance(values, RaggedTensor) else dispatch.to_tensor(values)
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

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: Any = int64,
    ) -> Any:
        """Return the rows of a tensor, of full length; without what follows `lengths`, or trailing `padding`.

        lengths: int [rows], or a list of the lengths of each partition. padding: a value, in the shape of a row's
        element.
        """
        return conversions.from_tensor(tensor, lengths, padding, ragged_rank)

    @classmethod
    def from_sparse(cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = int64) -> Any:
        """Return the values of each row of a SparseTensor [rows, n], whose rows have no gaps.

        raises InvalidArgumentError for values behind a gap
        """
        indices, shape = st_input.indices, st_input.dense_shape
        ragged = cls.from_value_rowids(st_input.values, indices[:, 0], shape[0], validate=False)
        columns = rows.range_in_rows(ragged.row_lengths())
        debugging.assert_equal(indices[:, 1], columns, "SparseTensor is not right-ragged")
        return ragged

    # ---- partitions out --------------------------------------------------------------------------------------------

    @property
    def values(self) -> Any:
        """The rows, concatenated: a tensor, or a ragged tensor for more than one partition."""
        rest = self.nested_row_splits[1:]
        return RaggedTensor.of(self.flat_values, rest) if rest else self.flat_values

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
        if isinstance(values, RaggedTensor):
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
        return _with_outer(new_values, self.row_splits)

    def with_flat_values(self, new_values: Any) -> Any:
        """Return other flat values in the same rows."""
        inner = list(getattr(new_values, "nested_row_splits", ()))
        return RaggedTensor.of(getattr(new_values, "flat_values", new_values), [*self.nested_row_splits, *inner])

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """Return this tensor: partitions are int64."""
        dtypes.as_dtype(dtype)
        return self

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """Return a tensor in which the dimensions from outer_axis to inner_axis are one."""
        return shapes.merge_dims(self, outer_axis, inner_axis)

    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> Tensor:
        """Return the rows padded with default_value (0, or empty strings) to the longest, or to `shape`.

        shape: sizes at which rows are padded or cut, None for those of the longest.
        """
        padded: Tensor = conversions.to_tensor(self, default_value, shape)
        return padded

    def to_sparse(self, name: str | None = None) -> Any:
        """Return a SparseTensor with the same values."""
        return conversions.to_sparse(self)

    def to_list(self) -> list[Any]:
        """Return nested lists."""
        parts: Any = self.flat_values.numpy()
        parts = parts.tolist()
        for splits in reversed(self.nested_row_splits):
            ends: list[int] = splits.numpy().tolist()
            parts = [parts[a:b] for a, b in itertools.pairwise(ends)]
        return list(parts)

    def numpy(self) -> np.ndarray:
        """Return an array: of rows as arrays if their lengths differ."""

        def rows(values: np.ndarray, partitions: list[np.ndarray]) -> np.ndarray:
            if not partitions:
                return values
            ends, rest = partitions[0].tolist(), partitions[1:]
            inner = rows(values, rest)
            items = [inner[a:b] for a, b in itertools.pairwise(ends)]
            if items and all(item.shape == items[0].shape for item in items):
                return np.stack(items)
            result = np.empty(len(items), object)
            result[:] = items
            return result

        return rows(self.flat_values.numpy(), [s.numpy() for s in self.nested_row_splits])

    # ---- as a tensor -----------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """Element type of the values."""
        result: DType = self.flat_values.dtype
        return result

    @property
    def shape(self) -> TensorShape:
        """Shape, None where rows differ."""
        rows = self.row_splits.shape[0]
        outer: list[int | None] = [None if rows is None else rows - 1, *[None] * self.ragged_rank]
        return as_shape(outer).concatenate(self.flat_values.shape[1:])

    @property
    def spec(self) -> TensorSpec:
        """dtype and shape."""
        return TensorSpec(self.shape, self.dtype)

    @property
    def constant(self) -> None:
        """None: it is no array."""
        return None

    @property
    def _type_spec(self) -> RaggedTensorSpec:
        return RaggedTensorSpec(self.shape, self.dtype, self.ragged_rank)

    def __tf_tracing_type__(self, context: Any) -> RaggedTensorSpec:
        """Return a type for which one trace serves batches of any number of rows."""
        return RaggedTensorSpec([None, *self.shape[1:]], self.dtype, self.ragged_rank)

    def set_shape(self, shape: Any) -> None:
        """Check that a shape is compatible; the sizes of rows are known from the partitions alone."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Shape {shape} is incompatible with the RaggedTensor's {self.shape}")

    def __len__(self) -> int:
        rows: int | None = self.shape[0]
        if rows is None:
            raise TypeError("len() of a RaggedTensor whose number of rows is not known while tracing; use nrows()")
        return rows

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        return slices.getitem(self, key)

    def __bool__(self) -> bool:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        result = self.numpy()
        return result if dtype is None else result.astype(dtype)

    def record(self, op: Any, inputs: Any, bound: Any, name: str | None) -> Any:
        """Run or record the call of an operator."""
        return operations.call(op, inputs, bound, name)

    def __repr__(self) -> str:
        if any(getattr(part, "constant", None) is None for part in (self.flat_values, *self.nested_row_splits)):
            return f"tf.RaggedTensor(values={self.values!r}, row_splits={self.row_splits!r})"
        with np.printoptions(formatter={"all": _text}):
            return f"<tf.RaggedTensor {_text(self.numpy())}>"

    __str__ = __repr__


def _text(part: Any) -> str:
    """Return the text of rows, in lines where TensorFlow breaks them."""
    if not isinstance(part, np.ndarray):
        return repr(part.item() if isinstance(part, np.generic) else part)
    return np.array2string(part, separator=", ") if part.size else repr(part.tolist())


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
    return values.nrows() if isinstance(values, RaggedTensor) else array.shape(values, int64)[0]


def _with_outer(values: Any, splits: Any) -> RaggedTensor:
    if isinstance(values, RaggedTensor):
        return RaggedTensor.of(values.flat_values, (splits, *values.nested_row_splits))
    return RaggedTensor.of(values, (splits,))


def splits_of(lengths: Any) -> Any:
    """Return the row splits of rows of these lengths."""
    return array.concat([array.cast([0], int64), math.cumsum(lengths)], 0)


def row_ids(splits: Any, count: Any) -> Any:
    """Return the number of the row of each of `count` values."""
    return array.searchsorted(splits, array.range(count, dtype=int64), side="right", out_type=int64) - 1
