"""`DeviceContext`: the resources of a device that a kernel may use.

Lives here: the base class: the interface of all devices, scratch memory, checks of results against specs. Not here: the
devices (cpu.py, cuda.py, simulated.py), the context of a place (pool.py).

A context holds all state of a device; operators have none.
"""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from ..core import forks
from ..core.errors import FailedPreconditionError, InvalidArgumentError
from ..core.places import Place

ALIGNMENT = 64
"""Alignment of arrays in bytes: a cache line, and the widest vector registers."""


class DeviceContext(ABC):
    """The resources of one place: memory, a stream of work, scratch memory, random numbers.

    There is one for each place, from `DeviceContextPool`; several threads may use it. A subclass for another device
    implements `empty`, `to_device`, `to_host`, `launch` and, if work is asynchronous, `wait` and `record_use`;
    `register_place_kind` registers it.

    place: the place of this context. rng: its random numbers, a `ContextRandom`.
    """

    asynchronous: ClassVar[bool] = False
    """Whether `launch` returns before the work has run."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.rng = ContextRandom(place.device_id)
        self._scratch = threading.local()
        self._closed = False

    # --- memory -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def empty(self, shape: Any, dtype: Any) -> Any:
        """Return a new array of this device with undefined contents. shape: ints; dtype: a DType or NumPy's."""

    def allocate(self, nbytes: int) -> Any:
        """Return `nbytes` bytes of this device, contents undefined: a uint8 array, which owns the memory."""
        return self.empty((nbytes,), np.uint8)

    @abstractmethod
    def to_device(self, array: Any) -> Any:
        """Return a copy of a host array on this device; an array of this device is returned unchanged.

        The host array may be overwritten after the call, unless it is page-locked (see memory.py).
        """

    @abstractmethod
    def to_host(self, array: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return a host copy of an array of this device, after the work queued before it.

        out: the destination, of the same shape and dtype. If it is page-locked the call only queues the copy, and `out`
        has the values after `wait()`.
        """

    def owns(self, array: Any) -> bool:
        """Return whether this is an array of this device."""
        return False

    def workspace(self, nbytes: int) -> Any:
        """Return scratch memory: `nbytes` bytes, a uint8 array with undefined contents.

        Each thread and stream has one block, which all kernels there share and which only grows: valid until the next
        call of `workspace` on this thread. Kernels queued on the stream may still use it then, as the work that reuses
        it is queued after them.
        """
        blocks: dict[Any, Any] | None = getattr(self._scratch, "blocks", None)
        if blocks is None:
            blocks = self._scratch.blocks = {}
        key = self._stream_key()
        block = blocks.get(key)
        if block is None or block.nbytes < nbytes:
            grown = 0 if block is None else block.nbytes + block.nbytes // 2
            block = blocks[key] = None  # freed first, so that the new block can reuse it
            block = blocks[key] = self.allocate(max(nbytes, grown, 256))
        return block[:nbytes]

    def _stream_key(self) -> object:
        return None

    # --- work -------------------------------------------------------------------------------------------------------

    @property
    def stream(self) -> Any:
        """The stream of this thread's work; None for a synchronous device."""
        return None

    @abstractmethod
    def launch(self, fn: Callable[..., Any], *args: Any, name: str | None = None) -> None:
        """Queue `fn(*args)` on the stream; a synchronous device runs it immediately.

        fn writes its results into its arguments; its return value is dropped. name: the name of the work in errors.
        """

    def compute(
        self, fn: Callable[..., Any], specs: Iterable[Any], *args: Any, name: str | None = None
    ) -> tuple[Any, ...]:
        """Return arrays with the results of `fn(*args)`, whose specs are known; fn may run later.

        fn: returns an array, or a tuple with one for each spec; depends only on its arguments. specs: objects with a
        full `shape` and a `dtype`. raises InvalidArgumentError if the results of fn do not match `specs`, immediately
        or at the next `wait`
        """
        with self:
            return checked(fn(*args), list(specs), name or name_of(fn))

    def wait(self) -> None:  # noqa: B027  nothing to wait for, unless a subclass has work that runs later
        """Wait for all work queued so far. Raises its errors."""

    def record_use(self, *arrays: Any, stream: Any = None) -> None:  # noqa: B027
        """Declare that work queued on `stream` (by default this thread's) uses these arrays.

        Their memory is then not reused before that work is done, even if the arrays are dropped. Required for an array
        that is used on another stream than it was allocated on, and for page-locked memory.
        """

    def parallel_for(self, n: int, fn: Callable[[int, int], Any], grain: int = 1) -> None:
        """Call fn(begin, end) on ranges that partition 0 ... n-1. A device without threads calls fn(0, n)."""
        if n > 0:
            fn(0, n)

    # --- lifetime ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> DeviceContext:
        """Make this device the current one of its library, if it has such a notion."""
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def close(self) -> None:
        """Wait, and release all resources. Only the pool closes contexts; using a closed one is an error."""
        self._closed = True

    def check_open(self) -> None:
        """Raise FailedPreconditionError if the context is closed."""
        if self._closed:
            raise FailedPreconditionError(
                op=type(self).__name__,
                what=f"the context of {self.place!r} is closed",
                do=f"get a new one: DeviceContextPool.instance().get({self.place!r})",
            )

    def describe(self) -> str:
        """Return a short description of the device, for reports."""
        return str(self.place)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.place!r}>"


def name_of(fn: Callable[..., Any]) -> str:
    """Return the name of a function for error messages."""
    return getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or type(fn).__name__


def numpy_dtype(dtype: Any) -> np.dtype:
    """Return NumPy's dtype for a DType or for any argument that NumPy accepts as one."""
    result: np.dtype = dtype.np if hasattr(dtype, "as_numpy_dtype") else np.dtype(dtype)
    return result


def sizes(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of ints. Raises TypeError or ValueError for one that is not fully known."""
    if isinstance(shape, int):
        return (shape,)
    return tuple(int(n) for n in (shape.as_list() if hasattr(shape, "as_list") else shape))


def as_tuple(results: Any) -> tuple[Any, ...]:
    """Return the results of `compute` as a tuple."""
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)


def checked(results: Any, specs: list[Any], name: str) -> tuple[Any, ...]:
    """Return the results as a tuple. Raises InvalidArgumentError if they do not match the specs."""
    arrays = as_tuple(results)
    expected = [(sizes(spec.shape), numpy_dtype(spec.dtype)) for spec in specs]
    if [(_shape(r), getattr(r, "dtype", None)) for r in arrays] != expected:
        raise InvalidArgumentError(
            op=name,
            what="the results do not match their specs",
            found=", ".join(f"{getattr(r, 'dtype', type(r).__name__)}{list(_shape(r))}" for r in arrays) or "nothing",
            wanted=", ".join(f"{dtype}{list(shape)}" for shape, dtype in expected) or "nothing",
        )
    return arrays


_MASK = (1 << 64) - 1


class ContextRandom:
    """A sequence of random generators, each with 2^128 blocks of numbers that no other one produces.

    device: the second word of the key, so that devices with the same seed produce different numbers.
    """

    def __init__(self, device: int = 0, seed: int | None = None) -> None:
        self._device = device
        self._lock = forks.lock()
        self.reseed(secrets.randbits(63) if seed is None else seed)

    def reseed(self, seed: int) -> None:
        """Restart the sequence with this seed; any integer, of which 64 bits count."""
        value = seed.__index__() & _MASK
        with self._lock:
            self._seed, self._counter = value, 0

    @property
    def state(self) -> tuple[int, int]:
        """(seed, number of generators returned); assigning a saved state resumes the sequence there."""
        with self._lock:
            return self._seed, self._counter

    @state.setter
    def state(self, value: tuple[int, int]) -> None:
        seed, counter = value
        with self._lock:
            self._seed, self._counter = seed & _MASK, counter & _MASK

    def next(self) -> np.random.Generator:
        """Return the next generator of the sequence. Threads get different ones."""
        with self._lock:
            seed, call = self._seed, self._counter
            self._counter = (call + 1) & _MASK
        return np.random.Generator(np.random.Philox(key=[seed, self._device], counter=[0, 0, call, 0]))
