"""RaggedTensor: rows of different lengths, packed, with the offsets that separate them.

Lives here: the type, its spec, its conversions, what it has of a tensor.
Not here: construction from partitions, and these (row_partitions.py), from lists (functions.py), operators on ragged
tensors (operations.py), packed sequences with levels, for the operators of ../sequence (../lod_tensor.py).

    [[1, 2], [], [3]]       flat_values [1, 2, 3], row_splits [0, 2, 2, 3]
    [[[1], [2, 3]], []]     flat_values [1, 2, 3], nested_row_splits [0, 2, 2], [0, 1, 3]

Partitions are tensors of int64, so that everything also works while a function is traced.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.lazy_imports import later
from ...core.shapes import TensorShape, as_shape
from ...core.specs import TensorSpec
from ...core.type_spec import CompositeTensor, TypeSpec
from .. import debugging, dispatch
from ..tensor import Overriding, Tensor
from .row_partitions import RowPartitioned

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


class RaggedTensor(RowPartitioned, Overriding, CompositeTensor):
    """A tensor whose rows have different lengths: `values` one after another, and `row_splits`, where rows start.

    .. math:: row_i = values[row\\_splits_i : row\\_splits_{i+1}]

    values may be ragged themselves. Create one by `ow.ragged.constant`, or by `from_row_splits` and its kin.
    Element-wise operators, reductions, `concat`, `stack`, `gather`, `expand_dims`, casts and strings' operators take
    ragged tensors; others take `to_tensor()`, padded, or `flat_values`.

    >>> ow.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1])
    <tf.RaggedTensor [[1, 2], [], [3]]>
    """

    __slots__ = ()
    is_tensor_like = True

    # ---- conversions -----------------------------------------------------------------------------------------------

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
            return np.fromiter(items, object, len(items))

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
        """None: it is not an array."""
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
