"""IndexedSlices: rows of a larger tensor, by index. What the gradient of `gather` is.

Lives here: the type and its conversions.  Not here: `gather` (array family), sparse updates (optimizers/).
"""

from __future__ import annotations

from typing import Any

from ..core.dtypes import DType
from ..core.shapes import TensorShape


class IndexedSlices:
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
