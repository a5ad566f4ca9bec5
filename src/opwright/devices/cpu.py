"""The processor: a pool of threads, aligned memory, synchronous work.

Lives here: `CPUDeviceContext`, `ThreadPool`. Not here: kernels, products (ops/linalg),
page-locked memory (memory.py), the threads of NumPy's BLAS (../core/blas_threads.py).
"""

from __future__ import annotations

import contextvars
import os
import platform
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from ..core import flags
from ..core.places import CPUPlace, Place
from ..core.processors import usable_processors
from .context import ALIGNMENT, DeviceContext, numpy_dtype, sizes

_CHUNKS_PER_THREAD = 4  # for load balance


class ThreadPool:
    """Threads that share a range of indices; the calling thread is one of them.

    Started on first use, as many as the flag `num_threads` says (0: one per core). They end with the process. A forked
    child inherits none and starts its own.
    """

    def __init__(self) -> None:
        self._begin()
        _pools.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._size = 0
        self._inside = threading.local()

    @property
    def num_threads(self) -> int:
        """The number of threads one `parallel_for` may use, including the caller."""
        return flags.num_threads or usable_processors()

    def parallel_for(self, n: int, fn: Callable[[int, int], Any], grain: int = 1) -> None:
        """Call fn(begin, end) on ranges that partition 0 ... n-1, on several threads.

        grain: the length of the shortest range, except the last. A single range, or a call within another
        `parallel_for`, runs on the calling thread. With the flag `deterministic` the ranges depend only on n and grain,
        not on the number of threads. raises the error of fn for the lowest failed range; ranges not begun by then are
        skipped
        """
        if n <= 0:
            return
        grain = max(int(grain), 1)
        threads = 1 if getattr(self._inside, "value", False) else min(self.num_threads, -(-n // grain))
        step = grain if flags.deterministic else max(grain, -(-n // (threads * _CHUNKS_PER_THREAD)))
        if threads == 1 and not flags.deterministic:
            fn(0, n)
            return
        starts = iter(range(0, n, step))
        lock = threading.Lock()
        failed: list[tuple[int, BaseException]] = []

        def work() -> None:
            self._inside.value = True
            try:
                while True:
                    with lock:
                        begin = next(starts, None)
                        if begin is None or failed:
                            return
                    try:
                        fn(begin, min(begin + step, n))
                    except BaseException as error:
                        with lock:
                            failed.append((begin, error))
            finally:
                self._inside.value = False

        nested = getattr(self._inside, "value", False)
        helpers = self._start(threads - 1, work) if threads > 1 else []
        try:
            work()
        finally:
            wait([helper for helper in helpers if not helper.cancel()])  # one that has not begun has no work left
            self._inside.value = nested
        if failed:
            raise min(failed, key=lambda pair: pair[0])[1]

    def _start(self, count: int, work: Callable[[], None]) -> list[Any]:
        """Run `work` on `count` other threads, each in a copy of the caller's context with NumPy's errstate."""
        started: list[Any] = []
        with self._lock:
            executor = self._executor
            if executor is None or self._size < count:
                if executor is not None:
                    executor.shutdown(wait=False)  # running work completes
                executor = self._executor = ThreadPoolExecutor(count, thread_name_prefix="opwright-cpu")
                self._size = count
            for _ in range(count):
                try:
                    started.append(executor.submit(contextvars.copy_context().run, work))
                except RuntimeError:  # at interpreter shutdown the caller does all work
                    break
        return started

    def close(self) -> None:
        """Stop the threads after their current work."""
        with self._lock:
            if self._executor is not None:
                self._executor.shutdown()
            self._executor, self._size = None, 0


_pools: weakref.WeakSet[ThreadPool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def aligned_empty(shape: Any, dtype: Any) -> np.ndarray:
    """Return a host array aligned to ALIGNMENT bytes, contents undefined."""
    shape, dtype = sizes(shape), numpy_dtype(dtype)
    if dtype.hasobject:
        return np.empty(shape, dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    begin = -raw.ctypes.data % ALIGNMENT
    array: np.ndarray = raw[begin : begin + nbytes].view(dtype).reshape(shape)
    return array


class CPUDeviceContext(DeviceContext):
    """The processor's resources. Arrays are NumPy's, work is synchronous, `parallel_for` uses a thread pool."""

    def __init__(self, place: Place | None = None) -> None:
        super().__init__(place or CPUPlace())
        self.threads = ThreadPool()

    @property
    def num_threads(self) -> int:
        """The number of threads one `parallel_for` may use, including the caller."""
        return self.threads.num_threads

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        """Return a new NumPy array, aligned to 64 bytes, contents undefined."""
        self.check_open()
        return aligned_empty(shape, dtype)

    def to_device(self, array: Any) -> np.ndarray:
        """Return the array as NumPy's; no copy, as host memory is this device's memory."""
        return np.asarray(array)

    def to_host(self, array: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return the array itself, or `out` with its values."""
        if out is None:
            return np.asarray(array)
        np.copyto(out, array, casting="no")
        return out

    def owns(self, array: Any) -> bool:
        """Return whether this is a NumPy array."""
        return isinstance(array, np.ndarray | np.generic)

    def launch(self, fn: Callable[..., Any], *args: Any, name: str | None = None) -> None:
        """Run `fn(*args)` immediately."""
        self.check_open()
        fn(*args)

    def parallel_for(self, n: int, fn: Callable[[int, int], Any], grain: int = 1) -> None:
        """Call fn(begin, end) on ranges that partition 0 ... n-1: see `ThreadPool.parallel_for`."""
        self.check_open()
        self.threads.parallel_for(n, fn, grain)

    def close(self) -> None:
        """Stop the threads."""
        super().close()
        self.threads.close()

    def describe(self) -> str:
        """Return the machine, its cores and threads."""
        return f"{platform.machine()}, {usable_processors()} cores, {self.num_threads} threads"
