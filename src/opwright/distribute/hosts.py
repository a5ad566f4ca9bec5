"""This host: its identity, that of the time since it was started, its processors and memory as workers share them.

Lives here: `boot_id`, `host_id`, `processors_of`, `keep_freed_memory`.
Not here: what depends on them (journal.py, communicators.py, strategy.py).
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
from pathlib import Path

from ..compiler.native.image import library

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
KEPT_BYTES, MAPPED_BYTES = 256 << 20, 32 << 20
"""Freed memory that the process keeps; size of blocks that are mapped for themselves, the largest that glibc takes."""


@functools.cache
def boot_id() -> str:
    """Return Linux's identity of the time since this host was started; elsewhere an empty string."""
    with contextlib.suppress(OSError):
        return _BOOT_ID.read_text("ascii").strip()
    return ""


def host_id() -> str:
    """Return the identity of this host: that of its kernel, which containers share, or else its name."""
    return boot_id() or socket.gethostname()


def processors_of(workers: int) -> int:
    """Return the number of processors of one of several workers on this host: as a launcher bound it, or its share."""
    count = os.cpu_count() or 1
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else count
    return bound if bound < count else max(1, count // workers)


@functools.cache
def keep_freed_memory() -> None:
    """Let glibc keep up to `KEPT_BYTES` of freed memory, unless the environment says otherwise.

    Otherwise megabytes that a step frees go back to the system, and the next step has their pages mapped and cleared.
    """
    if any(name.startswith("MALLOC_") for name in os.environ) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
        mallopt = library().mallopt
        mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
