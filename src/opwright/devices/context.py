"""DeviceContext: everything of a device that a kernel may use.

Lives here: the base class: what every device offers, scratch memory, results by their specs.
Not here: the devices (cpu.py, cuda.py, simulated.py), which context a place has (pool.py).

A context is the only state of a device. Operators have none of their own: what they compute with they get from here.
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
"""Bytes: a cache line, and the widest vector of today's processors."""


class DeviceContext(ABC):
    """The resources of one place: memory, a stream of work, scratch memory, random numbers.

    There is one for each place, from `DeviceContextPool`; it may be used by several threads. A subclass for a device of
    your own gives `empty`, `to_device`, `to_host`, `launch` and, where work runs later, `wait` and `record_use`;
    `register_place_kind` makes it known.

    place: whose context this is. rng: its random numbers, a `ContextRandom`.
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
        """A new array of this device, its contents undefined. shape: ints; dtype: a DType or NumPy's."""

    def allocate(self, nbytes: int) -> Any:
        """`nbytes` bytes of this device, contents undefined: a uint8 array. It lives as long as the array does."""
        return self.empty((nbytes,), np.uint8)

    @abstractmethod
    def to_device(self, array: Any) -> Any:
        """A copy of a host array on this device; an array of this device is given back as it is.

        The host array may be written again when this returns, unless it is page-locked (see copies.py).
        """

    @abstractmethod
    def to_host(self, array: Any, out: np.ndarray | None = None) -> np.ndarray:
        """A host copy of an array of this device: waits for the work before it.

        out: where to put it, of the same shape and dtype. If it is page-locked the copy only has been queued when this
        returns, and `out` holds it after `wait()`.
        """

    def owns(self, array: Any) -> bool:
        """Whether this is an array of this device."""
        return False

    def workspace(self, nbytes: int) -> Any:
        """Scratch memory: `nbytes` bytes, a uint8 array with undefined contents.

        One block for each thread and stream, shared by all kernels there and never smaller than it was: good until the
        next call of `workspace` on this thread. Kernels queued on the stream may still use it then: what they are given
        next is queued behind them.
        """
        blocks: dict[Any, Any] | None = getattr(self._scratch, "blocks", None)
        if blocks is None:
            blocks = self._scratch.blocks = {}
        key = self._stream_key()
        block = blocks.get(key)
        if block is None or block.nbytes < nbytes:
            grown = 0 if block is None else block.nbytes + block.nbytes // 2
            block = blocks[key] = None  # give back before asking, so that the old may be part of the new
            block = blocks[key] = self.allocate(max(nbytes, grown, 256))
        return block[:nbytes]

    def _stream_key(self) -> Any:
        return None

    # --- work -------------------------------------------------------------------------------------------------------

    @property
    def stream(self) -> Any:
        """The stream this thread's work goes to; None where work runs at once."""
        return None

    @abstractmethod
    def launch(self, fn: Callable[..., Any], *args: Any, name: str | None = None) -> None:
        """Queue `fn(*args)` on the stream; where there is none it runs at once.

        fn writes its results into arrays it is given; what it returns is dropped. name: what errors call the work.
        """

    def compute(self, fn: Callable[..., Any], specs: Iterable[Any], *args: Any, name: str | None = None) -> tuple:
        """Arrays with the results of `fn(*args)`, of which the specs are known; fn may run later.

        fn: gives an array, or as many in a tuple as there are specs, and is a function of its arguments alone.
        specs: objects with a full `shape` and a `dtype`.
        raises InvalidArgumentError where fn gives something else than `specs` say, at once or at the next `wait`
        """
        with self:
            return checked(fn(*args), list(specs), name or name_of(fn))

    def wait(self) -> None:  # noqa: B027  nothing to wait for, unless a subclass has work that runs later
        """Return when all work queued so far is done. Raises what went wrong in it."""

    def record_use(self, *arrays: Any, stream: Any = None) -> None:  # noqa: B027
        """Say that work on `stream` (this thread's, if left out) uses these arrays, after it was queued.

        Their memory is then not given to anybody else before that work is done, however soon the arrays are dropped.
        Needed where an array is used on another stream than the one it was allocated on, and for page-locked memory.
        """

    def parallel_for(self, n: int, fn: Callable[[int, int], Any], grain: int = 1) -> None:
        """Call fn(begin, end) so that each of 0 ... n-1 is covered once. On a device without threads: fn(0, n)."""
        if n > 0:
            fn(0, n)

    # --- life -------------------------------------------------------------------------------------------------------

    def __enter__(self) -> DeviceContext:
        """Makes this device the current one of its library, where there is such a thing."""
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def close(self) -> None:
        """Wait, and give back what is held. Only the pool closes contexts; a closed one says so when it is used."""
        self._closed = True

    def check_open(self) -> None:
        """Raises FailedPreconditionError if it is closed."""
        if self._closed:
            raise FailedPreconditionError(
                op=type(self).__name__,
                what=f"the context of {self.place!r} is closed",
                do=f"ask for it again: DeviceContextPool.instance().get({self.place!r})",
            )

    def describe(self) -> str:
        """The device in a few words, for reports."""
        return str(self.place)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.place!r}>"


def name_of(fn: Callable[..., Any]) -> str:
    """What to call a function in an error."""
    return getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or type(fn).__name__


def numpy_dtype(dtype: Any) -> np.dtype:
    """NumPy's dtype of a DType or of anything NumPy takes for one."""
    return dtype.np if hasattr(dtype, "as_numpy_dtype") else np.dtype(dtype)


def sizes(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints. Raises TypeError or ValueError for one that is not fully known."""
    if isinstance(shape, int):
        return (shape,)
    return tuple(int(n) for n in (shape.as_list() if hasattr(shape, "as_list") else shape))


def as_tuple(results: Any) -> tuple:
    """What `compute` returned, as a tuple."""
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)


def checked(results: Any, specs: list[Any], name: str) -> tuple:
    """Return the results as a tuple. Raises InvalidArgumentError unless they fit the specs."""
    found = as_tuple(results)
    wanted = [(sizes(spec.shape), numpy_dtype(spec.dtype)) for spec in specs]
    if [(_shape(r), getattr(r, "dtype", None)) for r in found] != wanted:
        raise InvalidArgumentError(
            op=name,
            what="gives other results than were promised for it",
            found=", ".join(f"{getattr(r, 'dtype', type(r).__name__)}{list(_shape(r))}" for r in found) or "nothing",
            wanted=", ".join(f"{dtype}{list(shape)}" for shape, dtype in wanted) or "nothing",
        )
    return found


_MASK = (1 << 64) - 1


class ContextRandom:
    """A sequence of generators, each with 2^128 blocks of numbers that no other of them gives.

    device: the second word of the key, so that devices with one seed give different numbers.
    """

    def __init__(self, device: int = 0, seed: int | None = None) -> None:
        self._device = device
        self._lock = forks.lock()
        self.reseed(secrets.randbits(63) if seed is None else seed)

    def reseed(self, seed: int) -> None:
        """Begin the sequence of this seed; any integer, of which 64 bits count."""
        value = seed.__index__() & _MASK
        with self._lock:
            self._seed, self._counter = value, 0

    @property
    def state(self) -> tuple[int, int]:
        """(seed, generators given out); assigning one that was read continues from there."""
        with self._lock:
            return self._seed, self._counter

    @state.setter
    def state(self, value: tuple[int, int]) -> None:
        seed, counter = value
        with self._lock:
            self._seed, self._counter = seed & _MASK, counter & _MASK

    def next(self) -> np.random.Generator:
        """The next generator of the sequence. Threads get different ones, in the order they ask."""
        with self._lock:
            seed, call = self._seed, self._counter
            self._counter = (call + 1) & _MASK
        return np.random.Generator(np.random.Philox(key=[seed, self._device], counter=[0, 0, call, 0]))
