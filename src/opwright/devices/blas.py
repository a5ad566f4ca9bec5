"""The threads of NumPy's BLAS: its sums of products have other last bits with another number of threads.

Lives here: finding the library's own switch, pinning it to one thread while the flag `deterministic` is on.
Not here: products (ops/linalg), our own threads (cpu.py).
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path

from ..core import flags, forks
from ..core.once import once

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
    """Files of BLAS libraries: those in this process's memory, and those that came with NumPy's wheel."""
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
