"""The threads of NumPy's BLAS: the libraries of this process, and limits of their threads.

Lives here: `thread_settings`, `num_threads`; `limit`, `remove_limit` and `at_most`, limits that hold together;
`follow_flags`, that of the switches.
Not here: who sets them (../ops/kernels.py, ../lite/interpreter.py).

BLAS splits each product among its threads, which wait for each other in a loop: on a busy machine a model of 35
products took 10 s and 840 ms of processor time by two threads, and 1.8 s and 55 ms by one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from collections.abc import Callable, Iterator

import numpy as np

from . import flags, forks
from .forks import once

# OpenBLAS under the names of its builds (NumPy's wheels prefix and suffix them), MKL, BLIS
_SYMBOLS = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)
_LIBRARY = re.compile(r"openblas|mkl_rt|libblis|libblas", re.IGNORECASE)

ThreadSetting = tuple[Callable[[], int], Callable[[int], None]]


def _blas_libraries() -> list[str]:
    """Return the files of BLAS libraries mapped by this process or shipped in NumPy's wheel."""
    paths: list[str] = []
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths += [parts[5].rstrip("\n") for line in maps if len(parts := line.split(maxsplit=5)) == 6]
    except OSError:
        pass  # not Linux
    package = os.path.dirname(np.__file__)
    for folder in (os.path.join(os.path.dirname(package), "numpy.libs"), os.path.join(package, ".dylibs")):
        if os.path.isdir(folder):
            paths += sorted(os.path.join(folder, name) for name in os.listdir(folder))
    return [path for path in dict.fromkeys(paths) if _LIBRARY.search(os.path.basename(path))]


@once
def thread_settings() -> tuple[ThreadSetting, ...]:
    """Return the getter and setter of the thread count of each loaded BLAS that has them."""
    settings: list[ThreadSetting] = []
    for path in _blas_libraries():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for get_threads, set_threads in _SYMBOLS:
            if hasattr(library, get_threads) and hasattr(library, set_threads):
                settings.append((getattr(library, get_threads), getattr(library, set_threads)))
                break
    return tuple(settings)


def num_threads() -> list[int]:
    """Return the thread count of each BLAS that reports it."""
    return [get() for get, _ in thread_settings()]


_lock = forks.lock()
_limits: dict[object, int] = {}
_unlimited: list[int] = []  # thread counts before the first limit


def limit(key: object, threads: int) -> None:
    """Limit BLAS to a number of threads until the limit of this key is removed."""
    with _lock:
        if not _limits:
            _unlimited[:] = num_threads()
        _limits[key] = threads
        _apply()


def remove_limit(key: object) -> None:
    """Remove a limit, if there is one of this key; with the last one, BLAS has its threads of before again."""
    with _lock:
        if _limits.pop(key, None) is not None:
            _apply()


_FLAGS = "flags"


def follow_flags() -> None:
    """Limit BLAS to one thread while the flag `deterministic` is on, otherwise to `num_threads`; restore its count when
    neither is set."""
    threads = 1 if flags.deterministic else flags.num_threads
    if threads:
        limit(_FLAGS, threads)
    else:
        remove_limit(_FLAGS)


def _apply() -> None:
    most = min(_limits.values(), default=None)
    for (get, put), count in zip(thread_settings(), _unlimited):
        wanted = count if most is None else min(count, most)
        if get() != wanted:
            put(wanted)


@contextlib.contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Limit BLAS to a number of threads in the context, for all of the process: its libraries have one count."""
    key = object()
    limit(key, threads)
    try:
        yield
    finally:
        remove_limit(key)


def _after_fork() -> None:
    """Drop the limits of contexts, which other threads may have been in."""
    for key in [key for key in _limits if not isinstance(key, str)]:
        remove_limit(key)


forks.in_child(_after_fork)
