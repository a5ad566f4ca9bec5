"""Interrupts: how Ctrl-C, or whatever signal, ends machine code.

Lives here: `state_address`, `INTERRUPTED`, `raise_pending`.
Not here: the function that kernels call now and then (poll.py), its machine code (executor.ll), where kernels poll
(../polling.py).

Python's own handler of signals only sets a flag, which the interpreter looks at between its instructions; machine code
that runs without the GIL is between none. So it polls: on the main thread a poll takes the GIL at most every 50 ms and
lets Python run the handlers; code that was called with the GIL lets other threads have it for a moment. Where one
raises, the exception is put aside, the code returns INTERRUPTED, and who called it raises the exception. On a worker's
thread a poll asks whether the step that it works on has failed or ended so. Handlers stay the user's, and what a
handler does that raises nothing is done while the code runs.
"""

from __future__ import annotations

import ctypes
import threading

from ...core import forks
from .image import memory
from .threads import make_key

INTERRUPTED = -(1 << 63)
"""The status of code that a signal's handler ended. No kernel gives it."""

_MAIN, _PENDING, _KEY = 0, 2, 5  # words of the state, as executor.ll lays it out
_lock = forks.lock()
_made: dict[str, int] = {}


def state_address() -> int:
    """Of the words that polls read: the main thread, when Python is asked next, the exception that is put aside."""
    found = _made.get("state")
    if found is None:
        with _lock:
            found = _made.get("state")
            if found is None:
                found = memory(4096)
                words = (ctypes.c_int64 * 8).from_address(found)
                words[_KEY], words[_MAIN] = make_key(), _main_thread()
                _made["state"] = found
    return found


def _main_thread() -> int:
    ident = threading.main_thread().ident or 0
    return ident - (1 << 64) if ident >= 1 << 63 else ident


def raise_pending() -> None:
    """Raise the exception that a poll put aside, if there is one."""
    if "state" not in _made:
        return
    words = (ctypes.c_int64 * 8).from_address(_made["state"])
    if not words[_PENDING]:
        return
    pending = [ctypes.c_void_p(word or None) for word in words[_PENDING : _PENDING + 3]]
    for i in range(_PENDING, _PENDING + 3):
        words[i] = 0
    restore = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 3)(("PyErr_Restore", ctypes.pythonapi))
    restore(*pending)  # ctypes then finds an exception set, and lets it go on


def _after_fork() -> None:
    if "state" in _made:
        words = (ctypes.c_int64 * 8).from_address(_made["state"])
        words[_MAIN] = _main_thread()


forks.in_child(_after_fork)
