"""SparseTensor: the nonzero elements of a tensor, with their positions.

Lives here: the type and its spec.
Not here: functions of sparse tensors (functions.py), sparse rows of gradients (../indexed_slices.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape, as_shape
from ...core.specs import TensorSpec
from ...core.type_spec import CompositeTensor, TypeSpec
from .. import array, dispatch, math
from ..tensor import Tensor, TensorLike

int64 = dtypes.int64


class SparseTensorSpec(TypeSpec):
    """The type of SparseTensors. shape: of the dense tensor, None where unknown."""

    __slots__ = ("_dtype", "_shape")

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape, self._dtype = as_shape(shape), dtypes.as_dtype(dtype)

    shape = property(lambda self: self._shape, doc="Shape of the dense tensor.")
    dtype = property(lambda self: self._dtype, doc="Element type.")

    @property
    def value_type(self) -> type[Any]:
        """SparseTensor."""
        return SparseTensor

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype

    @property
    def _component_specs(self) -> tuple[TensorSpec, ...]:
        rank = self._shape.rank
        return TensorSpec([None, rank], int64), TensorSpec([None], self._dtype), TensorSpec([rank], int64)

    def _to_components(self, value: Any) -> tuple[Any, ...]:
        return value.indices, value.values, value.dense_shape

    def _from_components(self, components: Any) -> SparseTensor:
        indices, values, dense_shape = components
        return SparseTensor.of(indices, values, dense_shape, self._shape)

    def _batch(self, size: int | None) -> SparseTensorSpec:
        return SparseTensorSpec(as_shape([size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> SparseTensorSpec:
        return SparseTensorSpec(self._shape[1:] if self._shape.rank else None, self._dtype)


class SparseTensor(CompositeTensor):
    """The elements of a tensor that are not 0, by position.

    .. math:: dense[indices_i] = values_i, \\quad 0 \\text{ elsewhere}

    indices: int64 [n, rank], in row-major order for most functions (`ow.sparse.reorder`); values: [n]; dense_shape:
    int64 [rank].
    raises InvalidArgumentError for shapes that do not match

    >>> x = ow.SparseTensor([[0, 0], [1, 2]], [1, 2], [3, 4])
    >>> ow.sparse.to_dense(x).numpy()
    array([[1, 0, 0, 0],
           [0, 0, 2, 0],
           [0, 0, 0, 0]], dtype=int32)
    """

    __slots__ = ("_static_shape", "dense_shape", "indices", "values")
    is_tensor_like = True

    indices: Any
    values: Any
    dense_shape: Any

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices, self.dense_shape = _positions(indices, 2), _positions(dense_shape, 1)
        self.values = values if isinstance(values, TensorLike) else dispatch.to_tensor(values)
        if self.values.shape.rank not in (1, None):
            raise InvalidArgumentError(
                op="SparseTensor", what="values must be a vector", found=self.values.spec.short(), wanted="[n]"
            )
        rows, rank = self.indices.shape[0], self.indices.shape[1]
        if not self.values.shape.is_compatible_with([rows]) or not self.dense_shape.shape.is_compatible_with([rank]):
            raise InvalidArgumentError(
                op="SparseTensor",
                what="indices, values and dense_shape do not match",
                found={
                    "indices": self.indices.shape,
                    "values": self.values.shape,
                    "dense_shape": self.dense_shape.shape,
                },
                wanted="[n, rank], [n] and [rank]",
            )
        self._static_shape = TensorShape(None)

    @classmethod
    def of(cls, indices: Any, values: Any, dense_shape: Any, static_shape: Any = None) -> SparseTensor:
        """Return the sparse tensor of matching parts, unchecked. static_shape: what is known of the shape."""
        sparse = cls.__new__(cls)
        sparse.indices, sparse.values, sparse.dense_shape = indices, values, dense_shape
        sparse._static_shape = as_shape(static_shape)
        return sparse

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """Return a SparseTensor of anything with indices, values and dense_shape."""
        value = sparse_tensor_value
        return value if isinstance(value, cls) else cls(value.indices, value.values, value.dense_shape)

    def shape_tensor(self, dtype: Any) -> Any:
        """Return `dense_shape` in a dtype; for `ow.shape`."""
        return array.cast(self.dense_shape, dtype)

    @property
    def dtype(self) -> DType:
        """Element type."""
        result: DType = self.values.dtype
        return result

    @property
    def shape(self) -> TensorShape:
        """The dense shape, as far as it is known."""
        sizes = self.dense_shape.constant
        if sizes is not None:
            return TensorShape([int(d) for d in sizes])
        if self._static_shape.rank is not None:
            return self._static_shape
        partial = getattr(self.dense_shape, "partial", None)
        if partial is not None:
            return TensorShape([None if d is None else int(d) for d in partial])
        rank = self.indices.shape[1]
        return TensorShape(None if rank is None else [None] * rank)

    def get_shape(self) -> TensorShape:
        """Return `shape`."""
        return self.shape

    @property
    def rank(self) -> int | None:
        """Number of dimensions."""
        return self.shape.rank

    @property
    def _type_spec(self) -> SparseTensorSpec:
        return SparseTensorSpec(self.shape, self.dtype)

    def with_values(self, new_values: Any) -> SparseTensor:
        """Return other values at the same positions."""
        return SparseTensor.of(self.indices, dispatch.to_tensor(new_values), self.dense_shape, self._static_shape)

    def consumers(self) -> list[Any]:
        """Return an empty list: nodes know their operands only."""
        return []

    def __neg__(self) -> SparseTensor:
        return self.with_values(-self.values)

    def __mul__(self, other: Any) -> SparseTensor:
        return self.with_values(self.values * self._at(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self.with_values(math.truediv(self.values, self._at(other)))

    def _at(self, other: Any) -> Tensor:
        """Return the elements of a tensor that broadcasts to the dense shape, at the positions of this one's."""
        dense = dispatch.to_tensor(other, self.dtype if not isinstance(other, TensorLike) else None)
        if dense.shape.rank == 0:
            return dense
        return array.gather_nd(array.broadcast_to(dense, self.dense_shape), self.indices)

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices!s}, values={self.values!s}, dense_shape={self.dense_shape!s})"

    __str__ = __repr__


def _positions(value: Any, rank: int) -> Any:
    """Return positions or sizes as int64. Raises InvalidArgumentError for another rank or dtype."""
    if isinstance(value, TensorShape):
        value = value.as_list()
    if isinstance(value, (list, tuple)) and any(isinstance(part, TensorLike) for part in value):
        value = array.stack([array.cast(part, int64) for part in value])
    if not isinstance(value, TensorLike):
        numbers = np.asarray(value)
        numbers = numbers.astype(np.int64) if numbers.size == 0 or numbers.dtype.kind in "iu" else numbers
        value = dispatch.to_tensor(numbers.reshape(0, 0) if rank == 2 and numbers.shape == (0,) else numbers)
    if not value.dtype.is_integer or value.shape.rank not in (rank, None):
        raise InvalidArgumentError(
            op="SparseTensor",
            what=f"{'indices' if rank == 2 else 'dense_shape'} must be integers of rank {rank}",
            found=value.spec.short(),
        )
    return array.cast(value, int64)
