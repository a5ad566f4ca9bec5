"""Find the processes that outlive a test run: one keeps the pipe of its output open, and its reader waits.

Lives here: adoption of orphaned descendants (Linux's subreaper), `survivors`, the descendants that are still alive
after a grace period.  Not here: the hook that fails the run (conftest.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
GRACE_SECONDS = 15.0
"""Time that engines have to shut down: Ray's and Dask's nannies take seconds on a busy machine."""


def adopt() -> None:
    """Become the parent of descendants whose parent has ended. Only Linux can."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _parents() -> dict[int, int]:
    """Return the parent of each process that runs, without zombies."""
    parents = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[:2]
        except OSError:  # it has ended
            continue
        if state not in "ZX":
            parents[int(folder.name)] = int(parent)
    return parents


def _command(process: int) -> str:
    try:
        return pathlib.Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return "?"


def descendants() -> dict[int, str]:
    """Return the commands of all running descendants of this process, by number."""
    parents, family = _parents(), {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in family} - family:
        family |= more
    return {p: _command(p).strip()[:200] for p in sorted(family - {os.getpid()})}


def survivors(grace: float = GRACE_SECONDS) -> dict[int, str]:
    """Return the commands of descendants that do not end within the grace period (seconds), by number, and kill
    them."""
    end = time.monotonic() + grace
    while (alive := descendants()) and time.monotonic() < end:
        time.sleep(0.1)
    for process in alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return alive
