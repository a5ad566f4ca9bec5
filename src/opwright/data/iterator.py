"""Iterators over datasets, eager and in graphs.

Lives here: `IteratorState` (the value of an iterator's handle), `OwnedIterator`, `IteratorSpec`, `NumpyIterator`.
Not here: optionals (optional.py), datasets (base.py), loops over iterators in graphs (dataset.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from collections.abc import Iterator as PythonIterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..autograph.api import thread_state
from ..core import dtypes, forks
from ..core.errors import OutOfRangeError
from ..core.specs import TensorSpec
from ..core.type_spec import CompositeTensor
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..ops import control, dispatch
from ..tracing.trace import init_scope
from .functions import Failure, IteratorContext
from .optional import HandleSpec, Optional, OptionalValue, in_trace
from .structure import ElementStructure, Flat, map_leaves

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

state = dispatch.state
_UNSET: Any = object()
_MAX_UNROLLED_CALLS = 32  # more next() calls in one trace without AutoGraph indicate an endless Python loop

T = TypeVar("T")


class IteratorState:
    """Iteration in progress, usable from several threads."""

    __slots__ = ("__weakref__", "_dataset", "_epochs", "_flow", "_lock", "_peeked", "form", "taken")
    shape = ()

    def __init__(self, dataset: Any, form: ElementStructure) -> None:
        self._dataset, self.form = dataset, form
        self._epochs = [d._epoch for d in _shuffled_inputs(dataset)]
        self._flow: PythonIterator[Any] = dataset.flow(IteratorContext())
        self._lock = forks.lock()
        self._peeked: Any = _UNSET
        self.taken = 0  # elements taken so far, including errors

    def take(self) -> Flat:
        """Return the next element's arrays. Raises StopIteration at the end, or the error of this element."""
        with self._lock:
            if self._peeked is _UNSET:
                item = next(self._flow)
            else:
                item, self._peeked = self._peeked, _UNSET
            self.taken += 1
        if type(item) is Failure:
            raise item.error
        result: Flat = item
        return result

    def peek(self) -> bool:
        """Return whether `take` has another element or error."""
        with self._lock:
            if self._peeked is _UNSET:
                self._peeked = next(self._flow, _UNSET)
            return self._peeked is not _UNSET

    @property
    def position(self) -> np.ndarray:
        """Number of elements taken, followed by the number of earlier passes of each shuffled input."""
        return np.array([self.taken, *self._epochs], np.int64)

    def seek(self, position: np.ndarray) -> None:
        """Restart in the same order, and skip the elements before the position."""
        with self._lock:
            count, *self._epochs = position.tolist()
            for dataset, epoch in zip(_shuffled_inputs(self._dataset), self._epochs):
                dataset._epoch = epoch
            self._flow, self._peeked = self._dataset.flow(IteratorContext()), _UNSET
            self.taken = sum(1 for _ in itertools.islice(self._flow, count))

    def take_optional(self) -> OptionalValue:
        """Return the next element, or an empty optional."""
        try:
            return OptionalValue(self.take())
        except StopIteration:
            return OptionalValue(None)

    def __repr__(self) -> str:
        return f"<iterator of {self.form.spec!r}>"


def _shuffled_inputs(dataset: Any) -> list[Any]:
    """Return the datasets with a shuffle order among this one and its inputs."""
    own = [dataset] if hasattr(dataset, "_epoch") else []
    return own + [dataset_ for inner in dataset._inputs for dataset_ in _shuffled_inputs(inner)]


class IteratorPosition(Variable):
    """Checkpointed position of an iterator; assigning it moves the iterator."""

    __slots__ = ("_state",)

    def __init__(self, state: IteratorState) -> None:
        with init_scope():
            super().__init__(state.position, trainable=False, name="position")
        self._state = state

    def read_array(self) -> np.ndarray:
        """Return the position; see `IteratorState.position`."""
        return self._state.position

    def write_array(self, array: Any) -> None:
        """Move the iterator to a position."""
        self._state.seek(np.asarray(array))


class IteratorBase:
    """Base class of iterators: next(), get_next(), get_next_as_optional(), element_spec."""

    @property
    def element_spec(self) -> Any:
        """Type of an element."""
        raise TypeError(f"{type(self).__name__} must define element_spec")

    def get_next(self) -> Any:
        """Return the next element."""
        raise TypeError(f"{type(self).__name__} must define get_next()")

    def get_next_as_optional(self) -> Optional:
        """Return the next element as an Optional."""
        raise TypeError(f"{type(self).__name__} must define get_next_as_optional()")


class OwnedIterator(IteratorBase, CompositeTensor):
    """Iterator over a dataset.

    Eagerly, `next` raises StopIteration at the end. In a function, each run takes the next element, and a run past the
    end raises OutOfRangeError. A checkpoint saves the position; restoring restarts the dataset and skips as many
    elements, so that seeded shuffles repeat their order.
    """

    _is_trackable = True

    def __init__(self, dataset: Any = None, components: Any = None, element_spec: Any = None) -> None:
        if dataset is not None:
            self._form = dataset._form
            if state.trace is None:
                dataset.handle() if dataset._in_trace else None
                self._handle: Any = EagerTensor(dataset._make_state(), dtypes.resource)
            else:
                self._handle = control.MakeIterator(dataset.handle())
        else:
            self._form = ElementStructure(element_spec)
            self._handle = components
        self._take: Any = self._handle._array.take if type(self._handle) is EagerTensor else None
        self._pack = self._form.arrays_to_tensors
        self._unrolled = 0
        self._position: IteratorPosition | None = None

    def _trackable_children(self) -> dict[str, Any]:
        if type(self._handle) is not EagerTensor:
            return {}
        if self._position is None:
            holder: Any = self._handle._array
            self._position = IteratorPosition(holder)
        return {"position": self._position}

    def __iter__(self) -> OwnedIterator:
        return self

    def __next__(self) -> Any:
        if state.trace is None and self._take is not None:
            return self._pack(self._take())
        self._unrolled += 1
        if self._unrolled > _MAX_UNROLLED_CALLS and not thread_state.enabled:
            raise ValueError(
                "An unusually high number of `tf.data.Iterator.get_next()` calls was detected. This suggests that the "
                "`for elem in dataset: ...` idiom is used within `tf.function` with AutoGraph disabled. This idiom is "
                "only supported when AutoGraph is enabled."
            )
        return self.get_next()

    next = __next__

    def get_next(self) -> Any:
        """Return the next element.

        raises OutOfRangeError at the end
        """
        if state.trace is None:
            if type(self._handle) is not EagerTensor:
                self._handle._as_tensor()  # raises: it belongs to a trace
            try:
                return self._pack(self._take())
            except StopIteration:
                raise OutOfRangeError(op="IteratorNext", what="End of sequence") from None
        tensors: Any = control.IteratorNext(in_trace(self._handle), **self._form.attrs)
        return self._form.tensors_to_value(tensors)

    def get_next_as_optional(self) -> Optional:
        """Return the next element as an Optional, which is empty at the end."""
        if state.trace is None:
            return Optional(EagerTensor(self._handle._array.take_optional(), dtypes.resource), self._form)
        return Optional(control.IteratorNextAsOptional(in_trace(self._handle)), self._form)

    def has_next(self) -> bool | Tensor:
        """Return whether there is another element: a bool or, in a function, a tensor. It may be fetched."""
        if state.trace is None:
            return bool(self._handle._array.peek())
        return control.IteratorHasNext(in_trace(self._handle))

    @property
    def element_spec(self) -> Any:
        """Type of an element."""
        return self._form.spec

    @property
    def _type_spec(self) -> IteratorSpec:
        return IteratorSpec(self._form.spec)


class IteratorSpec(HandleSpec):
    """Type of an iterator by its element type; functions have one trace for all iterators of a type."""

    __slots__ = ()

    @property
    def element_spec(self) -> Any:
        """Type of an element."""
        return self._element_spec

    @property
    def value_type(self) -> type[OwnedIterator]:
        """OwnedIterator."""
        return OwnedIterator

    def _from_components(self, components: Any) -> OwnedIterator:
        return OwnedIterator(components=components, element_spec=self._element_spec)


# ---- NumPy -----------------------------------------------------------------------------------------------------------


class NumpyIterator:
    """Iterator over elements as read-only NumPy arrays and scalars; nested datasets remain datasets."""

    __slots__ = ("_pack", "_take")

    def __init__(self, dataset: Any) -> None:
        form = dataset._form
        self._take = OwnedIterator(dataset)._take
        self._pack = _numpy_packer(form)

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        return self._pack(self._take())

    next = __next__

    def __repr__(self) -> str:
        return "NumpyIterator()"


def _numpy_packer(form: ElementStructure) -> Callable[[Flat], Any]:
    if type(form.spec) is TensorSpec:
        return lambda flat: _numpy(flat[0])

    def pack(flat: Flat) -> Any:
        return map_leaves(_numpy_of, form.arrays_to_tensors(flat))

    return pack


def _numpy(array: np.ndarray) -> np.ndarray:
    if array.ndim == 0:
        return array[()]
    view = array.view()
    view.flags.writeable = False
    return view


def _numpy_of(value: T) -> T | np.ndarray:
    return _numpy(value._array) if isinstance(value, EagerTensor) else value
