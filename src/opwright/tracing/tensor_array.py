"""TensorArray: elements of one dtype, written and read one by one, eagerly and in graphs; its type, TensorArraySpec.

Lives here: the two classes. Not here: the list that stores the elements and the operators on it (ops/list_ops.py,
ops/list_tensor_ops.py).

In a graph a TensorArray never changes: `write` returns a new one, and a loop carries it as a variable. Eagerly `write`
modifies the array and returns it, as in TensorFlow; both are implemented by one persistent list.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..core import dtypes
from ..core.dtypes import as_dtype
from ..core.errors import InvalidArgumentError, OutOfRangeError
from ..core.shapes import UNKNOWN, TensorShape, as_shape
from ..core.specs import TensorSpec
from ..core.type_spec import CompositeTensor, TypeSpec
from ..eager.tensor import EagerTensor, convert_to_tensor
from ..ops import array, dispatch, list_ops, list_tensor_ops
from ..ops.shape_inference import known_value
from ..ops.tensor import TensorLike

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

state = dispatch.state


class TensorArraySpec(TypeSpec):
    """The type of a TensorArray.

    element_shape: of each element, None if unknown. dtype: of the elements. dynamic_size, infer_shape: as for
    TensorArray.
    """

    __slots__ = ("_dtype", "_dynamic_size", "_element_shape", "_infer_shape")

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self._element_shape = as_shape(element_shape)
        self._dtype = as_dtype(dtype)
        self._dynamic_size, self._infer_shape = bool(dynamic_size), bool(infer_shape)

    @classmethod
    def from_value(cls, value: Any) -> TensorArraySpec:
        """Return the type of a TensorArray. Raises TypeError for anything else."""
        if not isinstance(value, TensorArray):
            raise TypeError(f"Expected value to be a TensorArray, but got: {type(value)}")
        return cls(value.element_shape, value.dtype, value.dynamic_size, value._infer_shape)

    @property
    def value_type(self) -> type[TensorArray]:
        """TensorArray."""
        return TensorArray

    @property
    def element_shape(self) -> TensorShape:
        """The shape of each element, as far as it is known."""
        return self._element_shape

    @property
    def dtype(self) -> dtypes.DType:
        """The elements' dtype."""
        return self._dtype

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape

    @property
    def _component_specs(self) -> list[Any]:
        return [TensorSpec((), dtypes.variant)]

    def _to_components(self, value: Any) -> list[Any]:
        return [value.flow]

    def _from_components(self, components: Sequence[Any]) -> TensorArray:
        array = TensorArray(
            self._dtype,
            flow=components[0],
            dynamic_size=self._dynamic_size,
            infer_shape=self._infer_shape,
            clear_after_read=False,
        )
        array._inferred[0] = self._element_shape
        return array


class TensorArray(CompositeTensor):
    """Elements of one dtype at indices 0 to size - 1, written and read one by one.

    dtype: of the elements. size: the number of elements, an int or int32 scalar; omitted only if `flow` is given.
    dynamic_size: whether writing past the end extends it. clear_after_read: eagerly, whether an element may be read
    only once (the default); its memory is released afterwards. infer_shape: whether all elements have one shape,
    inferred from the first that is written. element_shape: that shape, as far as it is known; always checked. flow: the
    list of another TensorArray. handle, tensor_array_name, colocate_with_first_write_call, name: ignored, as in
    TensorFlow's own lists.

    Elements that were never written are zeros if their shape is known. Gradients of any order pass through.

    >>> squares = ow.TensorArray(ow.float32, size=3)
    >>> for i in range(3):
    ...     squares = squares.write(i, float(i) ** 2)
    >>> squares.stack()
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0., 1., 4.], dtype=float32)>

    raises ValueError if size is missing, or given together with flow
    """

    __slots__ = (
        "__weakref__",
        "_clear",
        "_declared",
        "_dtype",
        "_dynamic",
        "_flow",
        "_infer_shape",
        "_inferred",
        "_read",
        "_size",
    )

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if flow is None and size is None:
            raise ValueError(
                "Size must be declared for TensorArrays when eager execution is enabled."
                if state.trace is None
                else "Argument `size` must be provided if argument `flow` is not provided."
            )
        for other, argument in (("size", size), ("element_shape", element_shape)):
            if flow is not None and argument is not None:
                raise ValueError(f"Cannot provide both `flow` and `{other}` arguments at the same time.")
        self._dtype = as_dtype(dtype)
        self._dynamic, self._infer_shape = bool(dynamic_size), bool(infer_shape)
        self._clear = clear_after_read is None or bool(clear_after_read)
        self._declared = UNKNOWN if element_shape is None else as_shape(element_shape)
        self._inferred = [self._declared]  # shared by all arrays derived from this one in a graph
        self._read: set[int] = set()
        self._size: int | None = None  # the number of elements, if it is known and fixed
        if flow is not None:
            self._flow: Any = flow
            return
        if not isinstance(size, TensorLike):
            size = operator.index(size)
        size = dispatch.to_tensor(size, dtypes.int32)
        length = known_value(size)
        if not self._dynamic and length is not None:
            self._size = int(length)
        self._flow = list_ops.ListReserve(size, element_dtype=self._dtype, element_shape=self._declared, name=name)

    # ---- properties -----------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> dtypes.DType:
        """The elements' dtype."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether writing past the end extends the array."""
        return self._dynamic

    @property
    def element_shape(self) -> TensorShape:
        """The shape of each element, as far as it is known."""
        return self._inferred[0]

    @property
    def flow(self) -> Tensor:
        """The list that holds the elements: a scalar tensor of dtype variant."""
        flow: Tensor = self._flow
        return flow

    @property
    def handle(self) -> None:
        """None: the flow represents the array."""
        return

    @property
    def _type_spec(self) -> TensorArraySpec:
        return TensorArraySpec(self.element_shape, self._dtype, self._dynamic, self._infer_shape)

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of elements, an int32 scalar."""
        if self._size is not None and state.trace is not None:
            return dispatch.to_tensor(self._size, dtypes.int32, name)
        return list_ops.ListLength(self._flow, name=name)

    def identity(self) -> TensorArray:
        """Return an array with the same elements."""
        return self if self._eager else self._with(array.identity(self._flow))

    def close(self, name: str | None = None) -> None:
        """Release the elements, if eager; the array is empty afterwards."""
        if self._eager:
            self._flow, self._size = list_ops.ListResize(self._flow, 0), 0

    def grad(self, source: Any, flow: Any = None, name: str | None = None) -> NoReturn:
        """Raise NotImplementedError, as TensorFlow does: gradients are those of the elements."""
        raise NotImplementedError(
            "TensorArray.grad is not supported: gradients of operations that use TensorArrays do not need it. "
            "Use ow.GradientTape"
        )

    @property
    def _eager(self) -> bool:
        return state.trace is None and type(self._flow) is EagerTensor

    def _with(self, flow: Any, size: int | None = None) -> TensorArray:
        """Return the array with another list: eagerly this one, modified, else a new one. size: the new size, if it
        differs.
        """
        if self._eager:
            self._flow = flow
            self._size = self._size if size is None else size
            return self
        return self._like(flow, self._size if size is None else size)

    def _with_components(self, components: Any) -> TensorArray:
        return self._like(components[0], self._size)

    def _like(self, flow: Any, size: int | None) -> TensorArray:
        new = TensorArray.__new__(TensorArray)
        new._dtype, new._dynamic, new._infer_shape, new._clear = (
            self._dtype,
            self._dynamic,
            self._infer_shape,
            self._clear,
        )
        # A shape inferred in a graph applies to all derived arrays there, but not to the initial eager array.
        new._declared = self._declared
        new._inferred = [self._inferred[0]] if type(self._flow) is EagerTensor else self._inferred
        new._read, new._flow, new._size = self._read, flow, size
        return new

    # ---- checks ---------------------------------------------------------------------------------------------------

    def _value(self, value: Any) -> Tensor:
        """Convert `value` to a tensor. Raises InvalidArgumentError for another dtype."""
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        if tensor.dtype is not self._dtype:
            raise InvalidArgumentError(
                what=f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype {tensor.dtype.name}"
            )
        return tensor

    def _record_shape(self, shape: TensorShape) -> None:
        """Check an element's shape, and record it if all elements have one shape. Raises ValueError."""
        inferred = self._inferred[0]
        if not inferred.is_compatible_with(shape):
            do = "; infer_shape=False allows it" if self._declared.is_compatible_with(shape) else ""
            if self._eager:
                raise ValueError(f"Incompatible shape for value ({shape}), expected ({inferred}){do}")
            raise ValueError(f"Inconsistent shapes: saw {shape} but expected {inferred}{do}")
        if self._infer_shape:
            self._inferred[0] = inferred.merge_with(shape)

    def _index(self, index: Any, verb: str) -> Any:
        """Return the index for an operator; eagerly an int that is in range. Raises OutOfRangeError, TypeError."""
        if isinstance(index, EagerTensor) and state.trace is None:
            index = operator.index(index)
        if not isinstance(index, TensorLike):
            if not hasattr(index, "__index__"):
                raise TypeError(f"the index of a TensorArray is an integer, found {index!r}")
            index = operator.index(index)
        if not self._eager:
            return index
        size = self._flow._array.length
        if index < 0:
            raise OutOfRangeError(what=f"{verb} negative indices (index {index}) is not allowed.")
        if index >= size and verb == "Reading from":
            raise OutOfRangeError(what=f"Tried to read from index {index} but array size is: {size}")
        if index >= size and not self._dynamic:
            raise OutOfRangeError(
                what=f"Tried to write to index {index} but array is not resizeable and size is: {size}"
            )
        return index

    # ---- one element ----------------------------------------------------------------------------------------------

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Read the element at `index`, an int or int32 scalar.

        raises OutOfRangeError eagerly, InvalidArgumentError in a graph, for an index out of range; InvalidArgumentError
        eagerly for an element that was read before (see clear_after_read), and for one that was never written and whose
        shape is unknown
        """
        index = self._index(index, "Reading from")
        eager = self._eager
        if eager and self._clear and index in self._read and self._flow._array._get(index) is None:
            raise InvalidArgumentError(
                what=f"Could not read index {index} twice because it was cleared after a previous read "
                "(perhaps try setting clear_after_read = false?)"
            )
        item = list_ops.ListGet(
            self._flow, index, element_dtype=self._dtype, element_shape=self.element_shape, name=name
        )
        if eager and self._clear:
            self._flow = list_ops.ListUnset(self._flow, index)
            self._read.add(index)
        return item

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Write `value` at `index` and return the array. Use the result: in a graph this array does not change.

        raises OutOfRangeError eagerly, InvalidArgumentError in a graph, for an index out of range (see dynamic_size);
        InvalidArgumentError for another dtype; ValueError for another shape (see infer_shape)
        """
        index = self._index(index, "Writing to")
        value = self._value(value)
        self._record_shape(value.shape)
        return self._with(list_ops.ListSet(self._flow, index, value, grow=self._dynamic, name=name))

    # ---- many elements --------------------------------------------------------------------------------------------

    def stack(self, name: str | None = None) -> Tensor:
        """Stack all elements into one tensor [size, ...element_shape]; elements never written are zeros.

        raises InvalidArgumentError if shapes differ or none is known
        """
        if self._eager and self._flow._array.length == 0 and not self.element_shape.is_fully_defined():
            return dispatch.to_tensor(np.zeros([0], self._dtype.np), self._dtype, name)
        return list_tensor_ops.ListStack(
            self._flow,
            element_dtype=self._dtype,
            element_shape=self.element_shape,
            num=-1 if self._size is None else self._size,
            name=name,
        )

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Gather the elements at `indices`, an int32 vector, into one tensor [len(indices), ...element_shape].

        raises InvalidArgumentError for an index out of range, if shapes differ, or if none is known
        """
        return list_tensor_ops.ListGather(
            self._flow, indices, element_dtype=self._dtype, element_shape=self.element_shape, name=name
        )

    def concat(self, name: str | None = None) -> Tensor:
        """Concatenate all elements along their first dimension, whose size may differ.

        raises InvalidArgumentError for scalar elements, if other dimensions differ, or if none are known
        """
        shape = self.element_shape
        if shape.rank == 0:
            raise InvalidArgumentError(what="Concat saw a scalar shape at index 0 but requires at least vectors.")
        return list_tensor_ops.ListConcat(self._flow, element_dtype=self._dtype, element_shape=shape, name=name)[0]

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Return the array whose elements are the rows of `value`.

        raises ValueError for more rows than a fixed size, for rows of another shape, and for a scalar
        """
        value = self._value(value)
        count = value.shape[0] if value.shape.rank else None
        if not self._dynamic and self._size is not None and count is not None and count > self._size:
            raise ValueError(f"Cannot unstack {count} tensors into a TensorArray of static size {self._size}")
        if value.shape.rank:
            if self._eager:
                self._inferred[0] = self._declared  # discard the shape of the old elements
            self._record_shape(value.shape[1:])
        flow = list_tensor_ops.ListFromTensor(value, element_shape=self._declared, name=name)
        self._read.clear()
        return self._with(flow, None if self._dynamic else count)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Write the rows of `value` at `indices`, an int32 vector, and return the array; for equal indices the last row
        counts.

        raises OutOfRangeError eagerly, InvalidArgumentError in a graph, for an index out of range; InvalidArgumentError
        for another dtype or number of rows, ValueError for rows of another shape
        """
        value = self._value(value)
        indices = dispatch.to_tensor(indices, dtypes.int32)
        if value.shape.rank:
            self._record_shape(value.shape[1:])
        if self._eager:
            for index in indices._array.reshape(-1).tolist():
                self._index(index, "Writing to")
        return self._with(list_tensor_ops.ListScatter(self._flow, indices, value, grow=self._dynamic, name=name))

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Return the array whose elements are pieces of `value` with the numbers of rows in `lengths`, a vector.

        raises InvalidArgumentError if lengths is not a vector, does not add up to the rows of `value`, or differs in
        number from a fixed size; for a scalar
        """
        value = self._value(value)
        lengths = dispatch.to_tensor(lengths)
        constant_lengths = lengths.constant
        lengths = array.cast(lengths, dtypes.int64)
        if lengths.shape.rank not in (None, 1):
            dims = lengths.shape.as_list()
            raise InvalidArgumentError(what=f"Expected lengths to be a vector, received shape: {dims}")
        if value.shape.rank == 0:
            raise InvalidArgumentError(what="Expected value to be at least a vector, but received shape: []")
        count = None if lengths.shape.rank is None else lengths.shape[0]
        if not self._dynamic and self._size is not None and count is not None and count != self._size:
            raise InvalidArgumentError(
                what=f"TensorArray's size is not equal to the size of lengths ({self._size} vs. {count}), and the "
                "TensorArray is not marked as dynamically resizeable."
            )
        if constant_lengths is not None and value.shape.rank is not None:
            total, length = int(constant_lengths.sum()), value.shape[0]
            if length is not None and total != length:
                raise InvalidArgumentError(
                    what="Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
                    f"{total} and value's shape is: {value.shape.as_list()}"
                )
            if constant_lengths.size and constant_lengths.min() == constant_lengths.max():
                if self._eager:
                    self._inferred[0] = self._declared
                self._record_shape(TensorShape([int(constant_lengths[0]), *value.shape[1:]]))
        self._read.clear()
        return self._with(list_tensor_ops.ListSplit(value, lengths, name=name))

    def __repr__(self) -> str:
        return f"<tf.TensorArray dtype={self._dtype.name} element_shape={self.element_shape}>"
