"""TensorList: a persistent list of arrays, whose versions share memory.

Lives here: the persistent list, its errors.  Not here: operators on it (list_ops.py), `TensorArray` (tracing/).

These are persistent arrays after H. Baker: the newest version owns the elements, in a dict; every older one holds its
single difference to the next newer. A program that continues with the newest version, as loops do, pays O(1) per
change; an older version remains valid: when read it becomes the owner again (the differences are reversed), or receives
a copy of its own if rerooting has cost more than a copy. A chain of versions much longer than the list is cut by a copy
as well: the holder of the first version does not retain all later elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes, forks
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.shapes import UNKNOWN, TensorShape

NEAR = 8  # an older version within this distance becomes the owner at once, wherever the next read goes


def fail(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(what=what)


def shape_text(shape: Any) -> str:
    """Return a shape as TensorFlow's kernels print it: [2,?], <unknown>."""
    dims = TensorShape(shape).dims
    return "<unknown>" if dims is None else f"[{','.join('?' if d is None else str(d) for d in dims)}]"


def merged(a: TensorShape, b: TensorShape) -> TensorShape:
    """Return the most specific shape compatible with both. Raises InvalidArgumentError for contradictory shapes."""
    try:
        return a.merge_with(b)
    except ValueError:
        raise fail(
            f"PartialTensorShape: Incompatible shapes during merge: {shape_text(a)} vs. {shape_text(b)}"
        ) from None


class TensorList:
    """An immutable list of arrays of one dtype, some of which may be unset; updates return a new list.

    length: the number of elements, set or not. dtype, element_shape: of the elements; new ones are checked against
    them. Thread-safe.
    """

    __slots__ = (
        "__weakref__",
        "_age",
        "_at",
        "_effort",
        "_lock",
        "_newer",
        "_old",
        "_packed",
        "_store",
        "dtype",
        "elastic",
        "element_shape",
        "length",
    )
    shape = ()  # as a handle in a tensor has it
    ndim, size = 0, 1

    def __init__(
        self,
        length: int,
        dtype: DType,
        element_shape: TensorShape = UNKNOWN,
        elements: dict[int, Any] | None = None,
        lock: Any = None,
    ) -> None:
        self.length, self.dtype, self.element_shape = length, dtype, element_shape
        self.elastic = False  # whether it is an empty sum, which takes the length of its addend
        self._store: dict[int, Any] | None = {} if elements is None else elements
        self._packed: np.ndarray | None = None  # all elements, instead of the store, until a version follows
        self._age = 0  # number of versions of this store
        self._newer: TensorList | None = None  # from here on: the difference of an older version to the next newer
        self._at, self._old = -1, None
        self._effort = 0  # accumulated cost of reads of this version
        self._lock = forks.lock() if lock is None else lock  # shared by all versions of a store

    @classmethod
    def nothing(cls, dtype: DType = dtypes.variant) -> TensorList:
        """Return the neutral element of `add`, of any length."""
        empty = cls(0, dtype)
        empty.elastic = True
        return empty

    @classmethod
    def of_array(cls, array: np.ndarray, dtype: DType, element_shape: TensorShape = UNKNOWN) -> TensorList:
        """Return the list of the elements along the first axis of an array, which no caller changes afterwards."""
        packed = cls(len(array), dtype, element_shape)
        packed._packed = array
        return packed

    # ---- versions -------------------------------------------------------------------------------------------------

    def _own(self) -> dict[int, Any]:
        """Make this version the owner and return its elements. The caller holds the lock."""
        if self._packed is not None:
            self._store = {i: self._packed[i, ...] for i in range(self.length)}
            self._packed = None
        store = self._store
        if store is not None:
            return store
        path: list[TensorList] = []
        node: Any = self
        while node._store is None:
            path.append(node)
            node = node._newer
        store = node._store
        self._effort += len(path)
        if self._effort > len(store) + NEAR:
            store = dict(store)
            for one in reversed(path):
                _put(store, one._at, one._old)
            self._age = 0
        else:
            for one in reversed(path):
                node._newer, node._at, node._old = one, one._at, store.get(one._at)
                node._store, one._age = None, node._age + 1
                _put(store, one._at, one._old)
                node = one
        self._newer, self._old, self._store, self._effort = None, None, store, 0
        return store

    def _next(self, index: int, value: Any, length: int) -> TensorList:
        """Return the version that differs in one element (and in length); this one becomes the older. None: unset."""
        with self._lock:
            store = self._own()
            if self._age > 2 * len(store) + 2 * NEAR:
                store = dict(store)
                new = TensorList(length, self.dtype, self.element_shape, store)
            else:
                new = TensorList(length, self.dtype, self.element_shape, store, self._lock)
                new._age = self._age + 1
                self._newer, self._at, self._old = new, index, store.get(index)
                self._store = None
            _put(store, index, value)
        return new

    def _get(self, index: int) -> TensorList | np.ndarray | None:
        """Return the element, None if unset."""
        with self._lock:
            if self._packed is not None:
                return self._packed[index, ...] if 0 <= index < self.length else None
            store = self._store
            if store is not None:
                return store.get(index)
            node: Any = self
            steps = 0
            while node._store is None:
                if node._at == index:
                    break
                node = node._newer
                steps += 1
            value: TensorList | np.ndarray | None = node._old if node._store is None else node._store.get(index)
            self._effort += steps
            if steps <= NEAR or self._effort > self.length:
                self._own()
            return value

    def items(self) -> list[tuple[int, Any]]:
        """Return the elements that are set with their indices, unordered."""
        with self._lock:
            return list(self._own().items())

    def elements(self) -> list[Any]:
        """Return all elements in order, None for unset ones."""
        with self._lock:
            return list(map(self._own().get, range(self.length)))

    def count(self) -> int:
        """Return the number of elements that are set."""
        with self._lock:
            return len(self._own())

    def packed(self, dtype: DType, shape: tuple[int, ...]) -> np.ndarray | None:
        """Return all elements along a first axis, read-only; None if one is unset, or has another dtype or shape."""
        array = self._packed
        if self.dtype is not dtype:
            return None
        if array is None:
            elements = self.elements()
            if any(x is None or x.shape != shape for x in elements):
                return None
            array = np.empty((len(elements), *shape), dtype.np)
            for i, x in enumerate(elements):
                array[i, ...] = x
        return array if array.shape[1:] == shape else None

    # ---- reading --------------------------------------------------------------------------------------------------

    def check_dtype(self, dtype: DType) -> None:
        """Raise InvalidArgumentError for elements of another dtype."""
        if dtype is not self.dtype:
            raise fail(f"Invalid data types; op elements {dtype.name} but list elements {self.dtype.name}")

    def get(self, index: int, shape: TensorShape = UNKNOWN) -> TensorList | np.ndarray:
        """Return the element at `index`; zeros if it is unset and its shape is known, from `shape` or the others."""
        if not 0 <= index < self.length:
            raise fail(f"Trying to access element {index} in a list with {self.length} elements.")
        item = self._get(index)
        return self.unset(shape, "get") if item is None else item

    def unset(self, shape: TensorShape, use: str) -> TensorList | np.ndarray:
        """Return zeros for an element that is unset. Raises InvalidArgumentError if its shape is unknown."""
        if self.dtype is dtypes.variant:
            return TensorList.nothing(dtypes.variant)
        return _zeros(self.full_shape(shape, use), self.dtype)

    def full_shape(self, shape: TensorShape, use: str) -> tuple[int, ...]:
        """Return the shape of unset elements: from `shape`, the list's own, else from elements that are set.

        raises InvalidArgumentError where these do not tell
        """
        merged_shape = merged(shape, self.element_shape)
        if not merged_shape.is_fully_defined():
            items = self.items()
            for _, item in items:
                merged_shape = merged(merged_shape, TensorShape(item.shape))
            if not items:
                raise fail(_UNKNOWN_SHAPE[use if self.length else f"{use} of none"].format(shape_text(merged_shape)))
        return tuple(merged_shape.as_list())  # type: ignore[arg-type]

    def stack(self, shape: TensorShape = UNKNOWN, indices: Iterable[int] | None = None) -> np.ndarray:
        """Return the elements (at `indices`, if any) along a new first dimension; zeros for unset ones."""
        use = "stack" if indices is None else "gather"
        if self.dtype.is_handle:
            raise fail(f"Cannot {use} a list whose elements are handles of dtype {self.dtype.name}")
        elements = self.elements()
        if indices is not None:
            elements = [elements[i] for i in self._checked(indices)]
        merged_shape: Any = merged(shape, self.element_shape)
        for shape_ in {x.shape: None for x in elements if x is not None}:
            merged_shape = merged(merged_shape, TensorShape(shape_))
        full_shape = (
            tuple(merged_shape.as_list()) if merged_shape.is_fully_defined() else self.full_shape(merged_shape, use)
        )
        if any(x is None for x in elements):
            result = _zeros((len(elements), *full_shape), self.dtype)
        else:
            result = np.empty((len(elements), *full_shape), self.dtype.np)
        for i, x in enumerate(elements):
            if x is not None:
                result[i, ...] = x
        return result

    def _checked(self, indices: Iterable[int]) -> Iterable[int]:
        for i in indices:
            if not 0 <= i < self.length:
                raise fail(f"Trying to gather element {i} in a list with {self.length} elements.")
            yield i

    # ---- changing -------------------------------------------------------------------------------------------------

    def set(self, index: int, item: Any, grow: bool = False) -> TensorList:
        """Return the list with another element at `index`. grow: extend the list if the index is beyond its end."""
        length = self.length
        if not 0 <= index < length:
            if index < 0 or not grow:
                raise fail(f"Trying to modify element {index} in a list with {length} elements.")
            length = index + 1
        return self._next(index, self._fit(item, "set"), length)

    def unset_at(self, indices: Iterable[int]) -> TensorList:
        """Return the list with the elements at `indices` unset."""
        new = self
        for index in indices:
            if not 0 <= index < self.length:
                raise fail(f"Trying to modify element {index} in a list with {self.length} elements.")
            new = new._next(index, None, self.length)
        return new

    def push(self, item: Any) -> TensorList:
        """Return the list with one element appended."""
        return self._next(self.length, self._fit(item, "push"), self.length + 1)

    def pop(self, shape: TensorShape = UNKNOWN) -> tuple[TensorList, Any]:
        """Return the list without its last element, and that element."""
        if self.length == 0:
            if self.elastic:
                return self, self.unset(shape, "get")
            raise fail("Trying to pop from an empty list.")
        last = self.length - 1
        item = self.get(last, shape)
        return self._next(last, None, last), item

    def resize(self, length: int) -> TensorList:
        """Return the list truncated to `length`, or extended by unset elements."""
        if length < 0:
            raise fail(f"TensorListSlice expects size to be non-negative. Got: {length}")
        if length == self.length:
            return self
        if length > self.length:
            return self._next(-1, None, length)
        elements = {i: x for i, x in self.items() if i < length}
        return TensorList(length, self.dtype, self.element_shape, elements)

    def zeros_like(self) -> TensorList:
        """Return a list of the same length with all elements unset."""
        zeros = TensorList(self.length, self.dtype, self.element_shape)
        zeros.elastic = self.elastic
        return zeros

    def add(self, other: TensorList) -> TensorList:
        """Return element-wise sums; unset elements count as zeros. Costs the smaller number of set elements."""
        if self.elastic or other.elastic:
            return other if self.elastic else self
        if self.length != other.length:
            raise fail(
                "Trying to add two lists of tensors with different lengths. "
                f"One is {self.length} and the other is {other.length}"
            )
        if self.dtype is not other.dtype:
            raise fail(
                "Trying to add two lists of tensors with different dtypes. "
                f"One is {self.dtype.name} and the other is {other.dtype.name}"
            )
        small, large = (self, other) if self.count() <= other.count() else (other, self)
        new = large
        for i, x in small.items():
            before = new._get(i)
            new = new._next(i, x if before is None else added(before, x), self.length)
        return new

    def _fit(self, item: Any, verb: str) -> object:
        """Return `item` as an element. Raises InvalidArgumentError for an incompatible dtype or shape."""
        if self.dtype.is_handle:
            return item
        if type(item) is not np.ndarray:
            item = element(item, self.dtype)
        elif item.dtype != self.dtype.np:
            self.check_dtype(dtypes.of_numpy(item.dtype))
        expected = self.element_shape
        if expected.dims is not None and expected.dims != item.shape and not expected.is_compatible_with(item.shape):
            raise fail(_MISFIT[verb].format(shape_text(item.shape), shape_text(expected)))
        return item

    def __len__(self) -> int:
        return self.length

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "<TensorList>"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorList, (self.length, self.dtype, self.element_shape, dict(self.items()))


_MISFIT = {
    "set": "Tried to set a tensor with incompatible shape at a list index. Item element shape: {} list shape: {}",
    "push": "Tried to append a tensor with incompatible shape to a list. Op element shape: {} list shape: {}",
}
_STACK = "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape: {}"
_GATHER = "Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: {}"
_UNKNOWN_SHAPE = {
    "get": "Trying to read an uninitialized tensor but element_shape is not fully defined: {} "
    "and no list element is set.",
    "get of none": "Trying to read an uninitialized tensor but element_shape is not fully defined: {} "
    "and no list element is set.",
    "stack": _STACK,
    "stack of none": "Tried to stack elements of an empty list with non-fully-defined element_shape: {}",
    "gather": _GATHER,
    "gather of none": _GATHER,
}


def _put(store: dict[int, Any], index: int, value: Any) -> None:
    if value is not None:
        store[index] = value
    else:
        store.pop(index, None)


def _zeros(shape: Sequence[int], dtype: DType) -> np.ndarray:
    return np.full(tuple(shape), b"", object) if dtype is dtypes.string else np.zeros(tuple(shape), dtype.np)


def element(item: Any, dtype: DType) -> np.ndarray:
    """Return a kernel's scalar as an array of shape ()."""
    return np.asarray(item, dtype.np)


def added(a: Any, b: Any) -> TensorList | np.ndarray:
    """Return the sum of two elements: arrays, or lists."""
    return a.add(b) if isinstance(a, TensorList) else element(a + b, dtypes.of_numpy(a.dtype))
