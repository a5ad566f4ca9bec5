"""TensorList: a list of arrays that never changes, and of which a changed one costs no copy.

Lives here: the persistent list, its errors.  Not here: the operators on it (list_ops.py), `TensorArray` (tracing/).

These are persistent arrays as H. Baker describes them: the newest version owns the elements, in a dict; every older
one holds the single difference to the next newer. A program that goes on with the newest version, as loops do, pays
O(1) for each change; an older version still means what it meant, and is made the owner again when it is asked (its
differences turn round), or gets a copy of its own where that happened more often than a copy costs. A line of versions
is cut off, by a copy too, when it is much longer than the list: whoever holds the first one does not hold all that was
ever written since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes, forks
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.shapes import UNKNOWN, TensorShape

NEAR = 8  # an older version as close as this becomes the owner at once, wherever the next question goes


def fail(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(what=what)


def shape_text(shape: Any) -> str:
    """A shape as TensorFlow's kernels write it: [2,?], <unknown>."""
    dims = TensorShape(shape).dims
    return "<unknown>" if dims is None else f"[{','.join('?' if d is None else str(d) for d in dims)}]"


def merged(a: TensorShape, b: TensorShape) -> TensorShape:
    """What both shapes say. Raises InvalidArgumentError where they contradict each other."""
    try:
        return a.merge_with(b)
    except ValueError:
        raise fail(
            f"PartialTensorShape: Incompatible shapes during merge: {shape_text(a)} vs. {shape_text(b)}"
        ) from None


class TensorList:
    """A list of arrays of one dtype, some of which may be unset. Immutable: every change gives another list.

    length: how many elements, set or not. dtype: theirs. element_shape: what is known of their shape, and demanded.
    Safe to use in several threads at once.
    """

    __slots__ = (
        "__weakref__",
        "_age",
        "_at",
        "_effort",
        "_lock",
        "_newer",
        "_old",
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
        self.elastic = False  # whether it stands for a sum of nothing, of whatever length is added to it
        self._store: dict[int, Any] | None = {} if elements is None else elements
        self._age = 0  # how many versions this store has seen
        self._newer: TensorList | None = None  # from here on: an older version's difference to the next newer
        self._at, self._old = -1, None
        self._effort = 0  # what finding this version's elements has cost so far
        self._lock = forks.lock() if lock is None else lock  # one for all versions that share a store

    @classmethod
    def nothing(cls, dtype: DType = dtypes.variant) -> TensorList:
        """The neutral element of `add`, of any length."""
        made = cls(0, dtype)
        made.elastic = True
        return made

    # ---- versions -------------------------------------------------------------------------------------------------

    def _own(self) -> dict[int, Any]:
        """Make this version the owner; gives its elements. The lock is held."""
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

    def _next(self, at: int, value: Any, length: int) -> TensorList:
        """The version that differs in one element (and in length); this one becomes the older. None: unset."""
        with self._lock:
            store = self._own()
            if self._age > 2 * len(store) + 2 * NEAR:
                store = dict(store)
                new = TensorList(length, self.dtype, self.element_shape, store)
            else:
                new = TensorList(length, self.dtype, self.element_shape, store, self._lock)
                new._age = self._age + 1
                self._newer, self._at, self._old = new, at, store.get(at)
                self._store = None
            _put(store, at, value)
        return new

    def _get(self, index: int) -> Any:
        """The element, None where unset."""
        with self._lock:
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
            value = node._old if node._store is None else node._store.get(index)
            self._effort += steps
            if steps <= NEAR or self._effort > self.length:
                self._own()
            return value

    def items(self) -> list[tuple[int, Any]]:
        """The elements that are set, with their places, in no order."""
        with self._lock:
            return list(self._own().items())

    def elements(self) -> list[Any]:
        """All elements in order, None where unset."""
        with self._lock:
            return list(map(self._own().get, range(self.length)))

    def count(self) -> int:
        """How many elements are set."""
        with self._lock:
            return len(self._own())

    # ---- reading --------------------------------------------------------------------------------------------------

    def check_dtype(self, dtype: DType) -> None:
        """Raises InvalidArgumentError where elements of another dtype are asked for or given."""
        if dtype is not self.dtype:
            raise fail(f"Invalid data types; op elements {dtype.name} but list elements {self.dtype.name}")

    def get(self, index: int, shape: TensorShape = UNKNOWN) -> Any:
        """The element at `index`; zeros where it is unset and its shape is known, from `shape` or other elements."""
        if not 0 <= index < self.length:
            raise fail(f"Trying to access element {index} in a list with {self.length} elements.")
        found = self._get(index)
        return self.unset(shape, "get") if found is None else found

    def unset(self, shape: TensorShape, use: str) -> TensorList | np.ndarray:
        """What stands for an element that is unset: zeros. Raises InvalidArgumentError where its shape is unknown."""
        if self.dtype is dtypes.variant:
            return TensorList.nothing(dtypes.variant)
        return _zeros(self.full_shape(shape, use), self.dtype)

    def full_shape(self, shape: TensorShape, use: str) -> tuple[int, ...]:
        """The shape of elements that are unset: by `shape`, the list's own, else that of the ones that are set.

        raises InvalidArgumentError where these do not tell
        """
        wanted = merged(shape, self.element_shape)
        if not wanted.is_fully_defined():
            items = self.items()
            for _, item in items:
                wanted = merged(wanted, TensorShape(item.shape))
            if not items:
                raise fail(_UNKNOWN_SHAPE[use if self.length else f"{use} of none"].format(shape_text(wanted)))
        return tuple(wanted.as_list())  # type: ignore[arg-type]

    def stack(self, shape: TensorShape = UNKNOWN, indices: Iterable[int] | None = None) -> np.ndarray:
        """The elements (at `indices`, if given) as one array, along a new first dimension; unset ones are zeros."""
        use = "stack" if indices is None else "gather"
        if self.dtype.is_handle:
            raise fail(f"Cannot {use} a list whose elements are handles of dtype {self.dtype.name}")
        elements = self.elements()
        if indices is not None:
            elements = [elements[i] for i in self._checked(indices)]
        wanted: Any = merged(shape, self.element_shape)
        for found in {x.shape: None for x in elements if x is not None}:
            wanted = merged(wanted, TensorShape(found))
        whole = tuple(wanted.as_list()) if wanted.is_fully_defined() else self.full_shape(wanted, use)
        if any(x is None for x in elements):
            result = _zeros((len(elements), *whole), self.dtype)
        else:
            result = np.empty((len(elements), *whole), self.dtype.np)
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
        """The list with another element at `index`. grow: longer, where the index is behind its end."""
        length = self.length
        if not 0 <= index < length:
            if index < 0 or not grow:
                raise fail(f"Trying to modify element {index} in a list with {length} elements.")
            length = index + 1
        return self._next(index, self._fit(item, "set"), length)

    def unset_at(self, indices: Iterable[int]) -> TensorList:
        """The list without its elements at `indices`."""
        new = self
        for index in indices:
            if not 0 <= index < self.length:
                raise fail(f"Trying to modify element {index} in a list with {self.length} elements.")
            new = new._next(index, None, self.length)
        return new

    def push(self, item: Any) -> TensorList:
        """The list with one element more, at the end."""
        return self._next(self.length, self._fit(item, "push"), self.length + 1)

    def pop(self, shape: TensorShape = UNKNOWN) -> tuple[TensorList, Any]:
        """The list without its last element, and that."""
        if self.length == 0:
            if self.elastic:
                return self, self.unset(shape, "get")
            raise fail("Trying to pop from an empty list.")
        last = self.length - 1
        item = self.get(last, shape)
        return self._next(last, None, last), item

    def resize(self, length: int) -> TensorList:
        """The list with so many elements: the first ones, or more that are unset."""
        if length < 0:
            raise fail(f"TensorListSlice expects size to be non-negative. Got: {length}")
        if length == self.length:
            return self
        if length > self.length:
            return self._next(-1, None, length)
        kept = {i: x for i, x in self.items() if i < length}
        return TensorList(length, self.dtype, self.element_shape, kept)

    def zeros_like(self) -> TensorList:
        """A list of the same length with nothing set."""
        made = TensorList(self.length, self.dtype, self.element_shape)
        made.elastic = self.elastic
        return made

    def add(self, other: TensorList) -> TensorList:
        """Element by element sums; unset ones count as zeros. Costs the number of elements set in the smaller one."""
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

    def _fit(self, item: Any, verb: str) -> Any:
        """`item` as an element. Raises InvalidArgumentError for another dtype or a shape the list does not take."""
        if self.dtype.is_handle:
            return item
        if type(item) is not np.ndarray:
            item = element(item, self.dtype)
        elif item.dtype != self.dtype.np:
            self.check_dtype(dtypes.of_numpy(item.dtype))
        wanted = self.element_shape
        if wanted.dims is not None and wanted.dims != item.shape and not wanted.is_compatible_with(item.shape):
            raise fail(_MISFIT[verb].format(shape_text(item.shape), shape_text(wanted)))
        return item

    def __len__(self) -> int:
        return self.length

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "<TensorList>"

    def __reduce__(self) -> Any:
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


def _put(store: dict[int, Any], at: int, value: Any) -> None:
    if value is not None:
        store[at] = value
    else:
        store.pop(at, None)


def _zeros(shape: Sequence[int], dtype: DType) -> np.ndarray:
    return np.full(tuple(shape), b"", object) if dtype is dtypes.string else np.zeros(tuple(shape), dtype.np)


def element(item: Any, dtype: DType) -> np.ndarray:
    """A kernel's scalar as an array of shape ()."""
    if dtype is dtypes.string:
        array = np.empty((), object)
        array[()] = item
        return array
    return np.asarray(item, dtype.np)


def added(a: Any, b: Any) -> TensorList | np.ndarray:
    """The sum of two elements: arrays, or lists themselves."""
    return a.add(b) if isinstance(a, TensorList) else element(a + b, dtypes.of_numpy(a.dtype))
