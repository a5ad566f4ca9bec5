"""The simulated asynchronous device: a GPU's rules of lifetime and order, without a GPU.

Lives here: `SimulatedDeviceContext`.  Not here: its parts streams.py, memory.py; its arrays
(simulated_array.py).

For authors of device kernels: work runs later, on a thread; memory is reused at once and poisoned; only the operations
that wait on a GPU wait. With `held()` no work runs until it exits, so a temporary that is used after it was freed shows
in every run:

    device = ow.DeviceContextPool.instance().get(ow.SimulatedPlace(0))
    with device.held():
        run_my_operator(device)      # queues work, drops its temporaries
    device.wait()                    # now it runs; NaN in the result: memory was used after it was freed
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.places import Place, SimulatedPlace
from .context import DeviceContext, as_tuple, checked, name_of, numpy_dtype, sizes
from .memory import Allocator, Lease, PinnedPool, check_same, is_staged, lease_of, memory_kind, waits
from .simulated_array import SimulatedArray
from .streams import Event, Stream


class SimulatedDeviceContext(DeviceContext):
    """One simulated device. Its arrays are `SimulatedArray`, which NumPy's functions accept.

    memory_limit: the most bytes in use at a time; None for no limit. memory: its `Allocator`, with `in_use` and `peak`
    in bytes.
    """

    asynchronous = True

    def __init__(self, place: Place | None = None, memory_limit: int | None = None) -> None:
        super().__init__(place or SimulatedPlace(0))
        self.memory = Allocator(f"memory of {self.place}", memory_limit)
        self.pinned = PinnedPool()
        self._current = threading.local()
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._default = self.new_stream(f"{self.place} stream 0")

    # --- streams ----------------------------------------------------------------------------------------------------

    @property
    def stream(self) -> Stream:
        """The stream of this thread's work: the innermost `with stream:`, else the device's first."""
        stack = getattr(self._current, "stack", None)
        return stack[-1] if stack else self._default

    def new_stream(self, name: str | None = None) -> Stream:
        """Return a new stream of this device. Only events order the work of two streams."""
        stream = Stream(name or f"{self.place} stream {len(self._streams)}", self._current)
        self._streams.add(stream)
        return stream

    def held(self) -> AbstractContextManager[Stream]:
        """Pause this thread's stream within a `with` statement; queued work runs afterwards."""
        return self.stream.held()

    def _stream_key(self) -> Stream:
        return self.stream

    def wait(self) -> None:
        """Wait for all streams. Raises UnknownError naming the first work that failed; the streams continue."""
        failure = None
        for stream in sorted(self._streams, key=lambda s: s.name):
            try:
                stream.synchronize()
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure

    # --- memory -----------------------------------------------------------------------------------------------------

    def empty(self, shape: Any, dtype: Any) -> SimulatedArray:
        """Return a new array, poisoned: NaN in floating dtypes. Allocated on this thread's stream.

        raises InvalidArgumentError for strings and handles, which devices do not support; ResourceExhaustedError if the
        memory limit does not suffice
        """
        self.check_open()
        shape, dtype = sizes(shape), numpy_dtype(dtype)
        if dtype.hasobject:
            raise InvalidArgumentError(
                op=str(self.place),
                what="a device holds numbers, no Python objects",
                found=f"dtype {dtype}",
                do="place strings and handles on CPUPlace()",
            )
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        storage = self.memory.allocate(nbytes, self.stream)
        return SimulatedArray(self, storage, np.ndarray(shape, dtype, storage.memory))

    def pinned_empty(self, shape: Any, dtype: Any) -> np.ndarray:
        """Return a page-locked NumPy array, contents undefined, for asynchronous copies."""
        return self.pinned.empty(shape, dtype)

    def owns(self, array: Any) -> bool:
        """Return whether this is an array of this device."""
        return isinstance(array, SimulatedArray) and array.context is self

    def to_device(self, array: Any) -> SimulatedArray:
        """Return a copy on this device. Returns at once for a page-locked array, which must not change before a `wait`,
        and for 64 KB or fewer; waits for the copy of larger arrays.
        """
        if isinstance(array, SimulatedArray) and array.context is self:
            return array
        host = np.asarray(array)
        result = self.empty(host.shape, host.dtype)
        self.copy(result, host, asynchronous=memory_kind(host) == "pinned")
        if memory_kind(host) == "pinned":
            self.record_use(host)
        return result

    def to_host(self, array: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return the values on the host, after all work queued before on this thread's stream.

        out: a page-locked one has the values after the next `wait`; any other when this returns. raises UnknownError if
        that work failed
        """
        target = np.empty(array.shape, array.dtype) if out is None else out
        pinned = memory_kind(target) == "pinned"
        self.copy(target, array, asynchronous=pinned)
        if pinned:
            self.record_use(target)
        return target

    def copy(self, target: Any, source: Any, asynchronous: bool = False, stream: Stream | None = None) -> None:
        """Copy between two arrays of one shape, on the host or on this device, in stream order.

        asynchronous: as cudaMemcpyAsync instead of cudaMemcpy. See memory.py for the calls that wait. As in CUDA, an
        asynchronous copy does not keep page-locked memory in use: call `record_use`.
        """
        self.check_open()
        check_same(target, source, f"copy on {self.place}")
        stream = stream or self.stream
        kinds = memory_kind(source), memory_kind(target)
        from_array = np.array(source) if is_staged(*kinds, source.nbytes, asynchronous) else self.raw(source)
        to_array = self.raw(target)
        stream.submit(lambda: np.copyto(to_array, from_array), f"copy from {kinds[0]} to {kinds[1]}")
        if waits(*kinds, source.nbytes, asynchronous):
            stream.synchronize()

    def fill(self, array: SimulatedArray, byte: int = 0) -> None:
        """Set every byte of a contiguous array; returns at once, as cudaMemset does."""
        raw = self.raw(array).reshape(-1).view(np.uint8)
        self.stream.submit(lambda: raw.fill(byte), "memset")

    def record_use(self, *arrays: Any, stream: Stream | None = None) -> None:
        """Delay the reuse of these arrays' memory until the work queued on `stream` when they are dropped is done.

        Device arrays, and page-locked host arrays; others are ignored.
        """
        stream = stream or self.stream
        for array in arrays:
            lease: Lease | None
            if isinstance(array, SimulatedArray):
                array.storage.uses.add(stream)
            elif (lease := lease_of(array)) is not None:
                lease.uses.add(stream)

    def raw(self, value: Any) -> Any:
        """Return an argument as the device sees it: memory without references that keep it in use.

        Also arrays in lists, tuples and dicts. Pageable host arrays are returned unchanged. raises InvalidArgumentError
        for an array of another device
        """
        if isinstance(value, SimulatedArray):
            if value.context is not self:
                raise InvalidArgumentError(
                    op=str(self.place),
                    what="this array is on another device",
                    found=str(value.place),
                    do="devices.transfer(array, place)",
                )
            return value.raw
        if isinstance(value, np.ndarray):
            lease = lease_of(value)
            return value if lease is None else lease.raw(value)
        if type(value) in (list, tuple):
            return type(value)(self.raw(v) for v in value)
        if type(value) is dict:
            return {k: self.raw(v) for k, v in value.items()}
        return value

    def constants(self, value: Any) -> Any:
        """Return `raw`, with pageable host arrays copied."""
        if isinstance(value, np.ndarray) and lease_of(value) is None:
            return value.copy()
        kind: Any = type(value)
        if kind in (list, tuple):
            return kind(self.constants(v) for v in value)
        if type(value) is dict:
            return {k: self.constants(v) for k, v in value.items()}
        return self.raw(value)

    # --- work -------------------------------------------------------------------------------------------------------

    def launch(self, fn: Callable[..., Any], *args: Any, name: str | None = None, stream: Stream | None = None) -> None:
        """Queue `fn(*args)`; fn receives device arrays as NumPy arrays over their memory, host arrays with their
        current values.

        As on a GPU the queue keeps no argument alive: one that is freed meanwhile may be reused memory when fn runs, if
        it was used on another stream than it was allocated on without `record_use`. The next wait raises the errors of
        fn.
        """
        self.check_open()
        arguments = [self.constants(a) for a in args]

        def work() -> None:
            with np.errstate(all="ignore"):
                fn(*arguments)

        (stream or self.stream).submit(work, name or name_of(fn))

    def compute(
        self, fn: Callable[..., Any], specs: Iterable[Any], *args: Any, name: str | None = None
    ) -> tuple[SimulatedArray, ...]:
        """Return new arrays of these specs, which hold the results of `fn(*args)` once it has run. See `launch`."""
        specs = list(specs)
        results = tuple(self.empty(spec.shape, spec.dtype) for spec in specs)
        targets = [r.raw for r in results]
        name = name or name_of(fn)

        def run(*arguments: Any) -> None:
            for target, value in zip(targets, checked(as_tuple(fn(*arguments)), specs, name), strict=True):
                np.copyto(target, value)

        self.launch(run, *args, name=name)
        return results

    def record(self, event: Event | None = None) -> Event:
        """Return an event after the work queued on this thread's stream."""
        return self.stream.record(event)

    def close(self) -> None:
        """Wait for all work; raises its errors."""
        super().close()
        self.wait()

    def describe(self) -> str:
        """Return the memory in use."""
        return f"simulated, {self.memory.in_use} bytes in use, {len(self._streams)} streams"
