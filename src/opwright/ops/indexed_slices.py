"""IndexedSlices: rows of a larger tensor, by index. What the gradient of `gather` is.

Lives here: the type, its spec and its conversions.  Not here: `gather` (array family), sparse updates (optimizers/).
"""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..core.dtypes import DType
from ..core.shapes import TensorShape, as_shape
from ..core.specs import TensorSpec
from ..core.type_spec import CompositeTensor, TypeSpec


class IndexedSlicesSpec(TypeSpec):
    """The type of IndexedSlices.

    shape: of the dense tensor. dtype: of the values. indices_dtype: int32 or int64. dense_shape_dtype: of the dense
    shape's tensor, None where there is none. indices_shape: [n] where n is known.
    """

    __slots__ = ("_dense_shape_dtype", "_dtype", "_indices_dtype", "_indices_shape", "_shape")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        self._shape, self._dtype = as_shape(shape), dtypes.as_dtype(dtype)
        self._indices_dtype = dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        self._indices_shape = as_shape(indices_shape).with_rank(1)

    shape = property(lambda self: self._shape, doc="The dense tensor's shape.")
    dtype = property(lambda self: self._dtype, doc="Element type of the values.")

    @property
    def value_type(self) -> Any:
        """IndexedSlices."""
        return IndexedSlices

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape

    @property
    def _component_specs(self) -> Any:
        values = self._indices_shape.concatenate(self._shape[1:] if self._shape.rank else None)
        specs = [TensorSpec(values, self._dtype), TensorSpec(self._indices_shape, self._indices_dtype)]
        if self._dense_shape_dtype is not None:
            specs.append(TensorSpec([self._shape.rank], self._dense_shape_dtype))
        return tuple(specs)

    def _to_components(self, value: Any) -> Any:
        shape = () if value.dense_shape is None else (value.dense_shape,)
        return (value.values, value.indices, *shape)

    def _from_components(self, components: Any) -> Any:
        return IndexedSlices(*components)


class IndexedSlices(CompositeTensor):
    """`values[i]` belongs at row `indices[i]` of a dense tensor of shape `dense_shape`; equal rows add up.

    values: [n, ...]; indices: int32 or int64 [n]; dense_shape: an integer tensor or None if unknown.
    Known elsewhere as SelectedRows.
    """

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values, self.indices, self.dense_shape = values, indices, dense_shape

    @property
    def dtype(self) -> DType:
        """Element type of the values."""
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        """The dense shape, as far as it is known."""
        rows = None
        if self.dense_shape is not None:
            constant = getattr(self.dense_shape, "constant", self.dense_shape)
            if constant is not None:
                return TensorShape([int(d) for d in constant])
        tail = self.values.shape[1:]
        return TensorShape([rows]).concatenate(tail)

    @property
    def _type_spec(self) -> IndexedSlicesSpec:
        dense = self.dense_shape
        return IndexedSlicesSpec(
            self.shape, self.dtype, self.indices.dtype,
            None if dense is None else getattr(dense, "dtype", dtypes.int32), self.indices.shape,
        )  # fmt: skip

    def merged(self) -> IndexedSlices:
        """The same with each index once, rows added up, indices ascending."""
        from . import array, math

        unique, position = array.unique(math.sort(self.indices), out_idx=self.indices.dtype)[:2]
        order = math.argsort(self.indices, stable=True)
        values = math.segment_sum(array.gather(self.values, order), position)
        return IndexedSlices(values, unique, self.dense_shape)

    def to_dense(self) -> Any:
        """The dense tensor: zeros where no row is given.

        raises ValueError if the dense shape is not known
        """
        from . import array

        if self.dense_shape is None:
            raise ValueError("IndexedSlices without dense_shape cannot be made dense; give dense_shape")
        return array.scatter_nd(array.expand_dims(self.indices, -1), self.values, self.dense_shape)

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self.values, self.indices, self.dense_shape)

    def __mul__(self, other: Any) -> IndexedSlices:
        """By a scalar."""
        return IndexedSlices(self.values * other, self.indices, self.dense_shape)

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices!r}, values={self.values!r}, dense_shape={self.dense_shape!r})"
