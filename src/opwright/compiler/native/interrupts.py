"""Interrupts: how Ctrl-C, or any other signal, ends machine code.

Lives here: `state_address`, `INTERRUPTED`, `raise_pending`. Not here: the function that kernels call (workers.py), its
machine code (executor.ll), where kernels poll (../poll_budget.py).

The signal handler of Python only sets a flag, which the interpreter checks between its instructions; machine code
without the GIL never does. So it polls: on the main thread a poll acquires the GIL at most every 50 ms and lets Python
run the handlers; code that was called with the GIL releases it for a moment. If a handler raises, the exception is
saved, the code returns INTERRUPTED, and its caller raises the exception. On a worker thread a poll checks whether its
step failed or was interrupted. Handlers remain those of the user, and handlers that do not raise run while the code
does.
"""

from __future__ import annotations

import ctypes
import threading

from ...core import forks
from .image import memory
from .threads import make_key

INTERRUPTED = -(1 << 63)
"""The status of code that a signal handler ended. No kernel returns it."""

_MAIN, _PENDING, _KEY = 0, 2, 5  # words of the state in executor.ll
_lock = forks.lock()
_addresses: dict[str, int] = {}


def state_address() -> int:
    """Return the address of the words of polls: the main thread, when to ask Python next, a saved exception."""
    address = _addresses.get("state")
    if address is None:
        with _lock:
            address = _addresses.get("state")
            if address is None:
                address = memory(4096)
                words = (ctypes.c_int64 * 8).from_address(address)
                words[_KEY], words[_MAIN] = make_key(), _main_thread()
                _addresses["state"] = address
    return address


def _main_thread() -> int:
    ident = threading.main_thread().ident or 0
    return ident - (1 << 64) if ident >= 1 << 63 else ident


def raise_pending() -> None:
    """Raise the exception that a poll saved, if any."""
    if "state" not in _addresses:
        return
    words = (ctypes.c_int64 * 8).from_address(_addresses["state"])
    if not words[_PENDING]:
        return
    pending = [ctypes.c_void_p(word or None) for word in words[_PENDING : _PENDING + 3]]
    for i in range(_PENDING, _PENDING + 3):
        words[i] = 0
    restore = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 3)(("PyErr_Restore", ctypes.pythonapi))
    restore(*pending)  # ctypes propagates the exception that is set


def _after_fork() -> None:
    if "state" in _addresses:
        words = (ctypes.c_int64 * 8).from_address(_addresses["state"])
        words[_MAIN] = _main_thread()


forks.in_child(_after_fork)
