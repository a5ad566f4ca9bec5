"""The identity of this host, and of the time since it was started.

Lives here: `boot_id`, `host_id`.  Not here: what depends on it (journal.py, communicators.py).
"""

from __future__ import annotations

import contextlib
import functools
import socket
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@functools.cache
def boot_id() -> str:
    """Return Linux's identity of the time since this host was started; elsewhere an empty string."""
    with contextlib.suppress(OSError):
        return _BOOT_ID.read_text("ascii").strip()
    return ""


def host_id() -> str:
    """Return the identity of this host: that of its kernel, which containers share, or else its name."""
    return boot_id() or socket.gethostname()
