"""The processor: a pool of threads, aligned memory, work that runs at once; the threads of NumPy's BLAS.

Lives here: `CPUDeviceContext`, `ThreadPool`; the switch of the BLAS library, which is pinned to one thread while the
flag `deterministic` is on.
Not here: kernels, products (ops/linalg), page-locked memory (pinned.py).
"""

from __future__ import annotations

import contextvars
import ctypes
import os
import platform
import re
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np

from ..core import flags, forks
from ..core.forks import once
from ..core.places import CPUPlace, Place
from .context import ALIGNMENT, DeviceContext, numpy_dtype, sizes

# OpenBLAS under the names of its builds (NumPy's wheels prefix and suffix them), MKL, BLIS
_NAMES = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)
_LIBRARY = re.compile(r"openblas|mkl_rt|libblis|libblas", re.IGNORECASE)

Switch = tuple[Callable[[], int], Callable[[int], None]]


def _loaded() -> list[str]:
    """Return the files of BLAS libraries mapped by this process or shipped in NumPy's wheel."""
    import numpy as np

    found: list[str] = []
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
        found += [line.split(maxsplit=5)[5] for line in maps.splitlines() if len(line.split(maxsplit=5)) == 6]
    except OSError:
        pass  # no such system
    root = Path(np.__file__).parent
    for folder in (root.parent / "numpy.libs", root / ".dylibs"):
        if folder.is_dir():
            found += sorted(map(str, folder.iterdir()))
    return [path for path in dict.fromkeys(found) if _LIBRARY.search(Path(path).name)]


@once
def switches() -> tuple[Switch, ...]:
    """How to read and set the number of threads of each BLAS that has a switch for it; none where none is found."""
    found: list[Switch] = []
    for path in _loaded():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for get, put in _NAMES:
            if hasattr(library, get) and hasattr(library, put):
                found.append((getattr(library, get), getattr(library, put)))
                break
    return tuple(found)


def num_threads() -> list[int]:
    """The number of threads of each BLAS that says it."""
    return [get() for get, _ in switches()]


_lock = forks.lock()
_before: list[int] | None = None  # what the libraries had when they were pinned


def follow() -> None:
    """Pin to one thread under the flag `deterministic`, and give back what there was when it goes off."""
    global _before
    with _lock:
        if flags.deterministic and _before is None:
            _before = num_threads()
            for _, put in switches():
                put(1)
        elif not flags.deterministic and _before is not None:
            for (_, put), count in zip(switches(), _before):
                put(count)
            _before = None


_CHUNKS_A_THREAD = 4  # so that threads which get slow chunks do not hold up the rest


def cores() -> int:
    """The cores this process may run on, 1 or more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


class ThreadPool:
    """Threads that share out a range of numbers; the calling thread is one of them.

    Started when first needed, as many as the flag `num_threads` says then (0: a thread for each core). They end with
    the process. A forked child has none of its parent's and starts its own.
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
        """How many threads one `parallel_for` may use, the caller included."""
        return flags.num_threads or cores()

    def parallel_for(self, n: int, fn: Callable[[int, int], Any], grain: int = 1) -> None:
        """fn(begin, end) for ranges that cover 0 ... n-1, each number once, on several threads.

        grain: no range is shorter, but for the last; what is too short to be worth a thread. Runs on the calling thread
        where there is one range or one thread, and inside another `parallel_for`. With the flag `deterministic` the
        ranges follow from n and grain alone, not from the threads there are.
        raises what fn raised, for the lowest range if several did; ranges not begun by then are left out
        """
        if n <= 0:
            return
        grain = max(int(grain), 1)
        threads = 1 if getattr(self._inside, "value", False) else min(self.num_threads, -(-n // grain))
        step = grain if flags.deterministic else max(grain, -(-n // (threads * _CHUNKS_A_THREAD)))
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
            wait([helper for helper in helpers if not helper.cancel()])  # one not begun has nothing left to do
            self._inside.value = nested
        if failed:
            raise min(failed, key=lambda pair: pair[0])[1]

    def _start(self, count: int, work: Callable[[], None]) -> list[Any]:
        """`work` on so many other threads, each in a copy of the caller's context: NumPy's errstate is there too."""
        started: list[Any] = []
        with self._lock:
            executor = self._executor
            if executor is None or self._size < count:
                if executor is not None:
                    executor.shutdown(wait=False)  # it finishes what it has
                executor = self._executor = ThreadPoolExecutor(count, thread_name_prefix="opwright-cpu")
                self._size = count
            for _ in range(count):
                try:
                    started.append(executor.submit(contextvars.copy_context().run, work))
                except RuntimeError:  # the interpreter is ending and takes no new work: the caller does it all
                    break
        return started

    def close(self) -> None:
        """End the threads, when what they do is done."""
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
    """A host array that begins at a multiple of ALIGNMENT bytes, contents undefined."""
    shape, dtype = sizes(shape), numpy_dtype(dtype)
    if dtype.hasobject:
        return np.empty(shape, dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    begin = -raw.ctypes.data % ALIGNMENT
    return raw[begin : begin + nbytes].view(dtype).reshape(shape)


class CPUDeviceContext(DeviceContext):
    """The processor's resources. Arrays are NumPy's, work runs at once, `parallel_for` shares it out to threads."""

    def __init__(self, place: Place | None = None) -> None:
        super().__init__(place or CPUPlace())
        self.threads = ThreadPool()

    @property
    def num_threads(self) -> int:
        """How many threads one `parallel_for` may use, the caller included."""
        return self.threads.num_threads

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        """A new NumPy array, aligned to 64 bytes, contents undefined."""
        self.check_open()
        return aligned_empty(shape, dtype)

    def to_device(self, array: Any) -> np.ndarray:
        """The array as NumPy's: itself if it is one, as the host's memory is this device's."""
        return np.asarray(array)

    def to_host(self, array: Any, out: np.ndarray | None = None) -> np.ndarray:
        """The array itself, or `out` with its values."""
        if out is None:
            return np.asarray(array)
        np.copyto(out, array, casting="no")
        return out

    def owns(self, array: Any) -> bool:
        """Whether this is a NumPy array."""
        return isinstance(array, np.ndarray | np.generic)

    def launch(self, fn: Callable[..., Any], *args: Any, name: str | None = None) -> None:
        """Runs `fn(*args)` now."""
        self.check_open()
        fn(*args)

    def parallel_for(self, n: int, fn: Callable[[int, int], Any], grain: int = 1) -> None:
        """fn(begin, end) for ranges that cover 0 ... n-1, on several threads: see `ThreadPool.parallel_for`."""
        self.check_open()
        self.threads.parallel_for(n, fn, grain)

    def close(self) -> None:
        """End the threads."""
        super().close()
        self.threads.close()

    def describe(self) -> str:
        """Cores and threads."""
        return f"{platform.machine()}, {cores()} cores, {self.num_threads} threads"
