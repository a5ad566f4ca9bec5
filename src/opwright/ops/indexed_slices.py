"""IndexedSlices: rows of a larger tensor, by index, such as the gradient of `gather`.

Lives here: the type, its spec, its sums and conversions.
Not here: `gather`, merging (ops/array/scatter.py), updates by sparse rows (ops/optimizer_steps.py, optimizers/).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape, as_shape
from ..core.specs import TensorSpec
from ..core.type_spec import CompositeTensor, TypeSpec
from . import array, dispatch, registry

if TYPE_CHECKING:
    from .tensor import Tensor


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
    def value_type(self) -> type[IndexedSlices]:
        """IndexedSlices."""
        return IndexedSlices

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape

    @property
    def _component_specs(self) -> tuple[Any, ...]:
        values = self._indices_shape.concatenate(self._shape[1:] if self._shape.rank else None)
        specs = [TensorSpec(values, self._dtype), TensorSpec(self._indices_shape, self._indices_dtype)]
        if self._dense_shape_dtype is not None:
            specs.append(TensorSpec([self._shape.rank], self._dense_shape_dtype))
        return tuple(specs)

    def _to_components(self, value: Any) -> tuple[Any, ...]:
        shape = () if value.dense_shape is None else (value.dense_shape,)
        return (value.values, value.indices, *shape)

    def _from_components(self, components: Any) -> IndexedSlices:
        return IndexedSlices(*components)


class IndexedSlices(CompositeTensor):
    """Sparse rows: `values[i]` is added at row `indices[i]` of a dense tensor of shape `dense_shape`.

    .. math:: dense_r = \\sum_{i: indices_i = r} values_i

    values: [n, ...]; indices: int32 or int64 [n], in any order, any of them more than once; n may be 0. dense_shape: an
    integer tensor or None if unknown. Known elsewhere as SelectedRows, whose `rows` and `height` are there too.
    The gradient of `gather` and of what looks rows up by it. Where a tensor is wanted, it is made dense.

    Two add up to sparse rows that have the rows of both; added to a tensor they give a tensor.
    raises InvalidArgumentError for tensors that have not one index for each row. That indices are rows of the dense
    shape is found where the values are put to use: merged(), to_dense(), additions to a tensor or variable.
    """

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values, self.indices, self.dense_shape = values, indices, dense_shape
        value_array, indices_array = getattr(values, "_array", None), getattr(indices, "_array", None)
        if (
            type(value_array) is np.ndarray
            and type(indices_array) is np.ndarray
            and value_array.ndim
            and value_array.shape[: indices_array.ndim] != indices_array.shape
        ):
            raise InvalidArgumentError(
                op="IndexedSlices",
                what="indices and values differ in number",
                found={"indices": indices_array.shape, "values": value_array.shape},
                wanted="indices [n] and values [n, ...]",
            )

    @property
    def dtype(self) -> DType:
        """Element type of the values."""
        result: DType = self.values.dtype
        return result

    @property
    def shape(self) -> TensorShape:
        """The dense shape, as far as it is known."""
        rows = None
        if self.dense_shape is not None:
            constant = getattr(self.dense_shape, "constant", self.dense_shape)
            if constant is None:
                constant = getattr(self.dense_shape, "partial", None)  # what a trace knows of the elements
            if constant is not None:
                return TensorShape([None if d is None else int(d) for d in constant])
        tail = self.values.shape[1:]
        return TensorShape([rows]).concatenate(tail)

    @property
    def rows(self) -> Tensor:
        """The same as `indices`."""
        rows: Tensor = self.indices
        return rows

    @property
    def height(self) -> int | None:
        """How many rows the dense tensor has, None where that is not known."""
        result: int | None = self.shape[0]
        return result

    @property
    def _type_spec(self) -> IndexedSlicesSpec:
        dense = self.dense_shape
        return IndexedSlicesSpec(
            self.shape,
            self.dtype,
            self.indices.dtype,
            None if dense is None else getattr(dense, "dtype", dtypes.int32),
            self.indices.shape,
        )

    def merged(self) -> IndexedSlices:
        """Return the rows with each index once, duplicates summed in order, indices ascending.

        raises InvalidArgumentError where indices and values differ in number; where dense_shape is known, for an index
        that is not a row of it and for values that are not as wide as its rows
        """
        rows, where = array.MergeRows(self.values, self.indices, self.dense_shape)
        return IndexedSlices(rows, where, self.dense_shape)

    def lookup(self, ids: Any) -> Tensor:
        """Return the rows with these indices, each the sum of its values: [*ids.shape, ...].

        raises InvalidArgumentError for an index that is not there, even if the dense tensor has such a row
        """
        merged = self.merged()
        ids = array.cast(dispatch.to_tensor(ids), merged.indices.dtype)
        return array.RowsAt(merged.values, merged.indices, ids)

    def to_dense(self) -> Tensor:
        """Return the dense tensor, with zeros in all other rows.

        raises ValueError if the dense shape is not known
        """
        if self.dense_shape is None:
            raise ValueError("IndexedSlices without dense_shape cannot be made dense; give dense_shape")
        return array.scatter_nd(array.expand_dims(self.indices, -1), self.values, self.dense_shape)

    # ---- arithmetic: what is linear in the rows -----------------------------------------------------------------

    def _with(self, values: Any) -> IndexedSlices:
        return IndexedSlices(values, self.indices, self.dense_shape)

    def __neg__(self) -> IndexedSlices:
        return self._with(-self.values)

    def __mul__(self, other: Any) -> IndexedSlices:
        """Multiply by a scalar. Raises ValueError for what has dimensions: such factors depend on the row."""
        return self._with(self.values * self._scalar(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> IndexedSlices:
        """Divide by a scalar."""
        return self._with(self.values / self._scalar(other))

    def __add__(self, other: Any) -> IndexedSlices | Tensor:
        """Add sparse rows, which results in the rows of both, not merged; or a tensor, which results in a tensor."""
        if isinstance(other, IndexedSlices):
            return concatenated([self, other])
        return self.added_to(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> IndexedSlices | Tensor:
        difference: IndexedSlices | Tensor = self + -other
        return difference

    def __rsub__(self, other: Any) -> IndexedSlices | Tensor:
        difference: IndexedSlices | Tensor = -self + other
        return difference

    def added_to(self, dense: Any) -> Tensor:
        """Return a tensor with these rows added, without creating a dense tensor of them.

        raises InvalidArgumentError for rows that the tensor has not, or of another width
        """
        dense = dispatch.to_tensor(dense, self.dtype)
        shape = self.shape
        if not shape.is_compatible_with(dense.shape):
            shapes = {"rows of": shape, "tensor": dense.shape}
            raise InvalidArgumentError(
                op="IndexedSlices", what="rows of one shape, a tensor of another", found=shapes, wanted="equal shapes"
            )
        return array.tensor_scatter_nd_add(dense, array.expand_dims(self.indices, -1), self.values)

    @staticmethod
    def _scalar(factor: Any) -> object:
        rank = getattr(getattr(factor, "shape", ()), "rank", None) if hasattr(factor, "spec") else np.ndim(factor)
        if rank:
            raise ValueError(f"IndexedSlices are multiplied and divided by scalars only; found shape {factor.shape}")
        return factor

    # A NumPy number or array on the left leaves the operation to the methods above.
    __array_ufunc__ = None

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices!s}, values={self.values!s}, dense_shape={self.dense_shape!s})"


def concatenated(parts: Sequence[IndexedSlices]) -> IndexedSlices:
    """Return the rows of all parts, concatenated and not merged: a representation of their sum.

    raises InvalidArgumentError where their heights or widths are known to differ, or their dtypes do
    """
    first = parts[0]
    for i, other in enumerate(parts[1:], 1):
        if first.dtype is not other.dtype:
            raise InvalidArgumentError(
                op="IndexedSlices",
                what=f"sparse rows 0 and {i} differ in dtype",
                found=f"{first.dtype.name}, {other.dtype.name}",
                do="ow.cast",
            )
        if not first.shape.is_compatible_with(other.shape):
            raise InvalidArgumentError(
                op="IndexedSlices",
                what=f"sparse rows 0 and {i} do not add up",
                found=f"rows of shapes {first.shape}, {other.shape}",
                wanted="equal heights, rows of equal width",
            )
    if len(parts) == 1:
        return first
    indices = [p.indices for p in parts]
    if any(i.dtype is not indices[0].dtype for i in indices):  # one was looked up by int32, the other by int64
        indices = [array.cast(i, "int64") for i in indices]
    shape = next((p.dense_shape for p in parts if p.dense_shape is not None), None)
    return IndexedSlices(array.concat([p.values for p in parts], 0), array.concat(indices, 0), shape)


def summed(parts: Sequence[Any]) -> IndexedSlices | Tensor:
    """Return the sum of tensors and sparse rows: merged sparse rows if all are such, else a tensor.

    raises InvalidArgumentError where shapes or dtypes differ
    """
    slices = [p for p in parts if isinstance(p, IndexedSlices)]
    if len(slices) == len(parts):
        return concatenated(slices).merged()
    total = registry.get("AddN")([p for p in parts if not isinstance(p, IndexedSlices)])
    return concatenated(slices).added_to(total) if slices else total
