"""Threads of the operating system: starting them, locks and conditions, thread-local words.

Lives here: the functions that Python calls, for POSIX and for Windows; the text of functions that machine code calls.
Not here: the work of the threads (workers.py, executor.ll).

Linux, macOS and Windows differ in names, and in the clocks and limits of waits. Machine code calls the functions
`lock`, `unlock`, `notify`, `wait`, `now`, `thread`, `own_pool` and `keep_pool` of threads_*.ll.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` wraps it in enums, which takes 0.7 ms
import ctypes
import os
import sys
import time
from typing import Any

from ...core.errors import ResourceExhaustedError
from .image import library, system_library

RECORD = 128
"""Bytes of a lock or a condition, at most, on any system."""
_ATTRIBUTES = 256  # bytes of attributes of either, at most
_DETACHED = 2 if sys.platform == "darwin" else 1  # PTHREAD_CREATE_DETACHED
_STACK_IS_A_RESERVATION = 0x10000  # Windows: the stack size of CreateThread is reserved, not committed


def text_for(triple: str) -> str:
    """Return the name of the text with the functions that machine code for a triple of LLVM calls.

    Other systems than the three use that of Linux, which is POSIX.
    """
    system = triple.partition("-")[2]
    if any(name in system for name in ("apple", "darwin", "macosx")):
        return "threads_darwin.ll"
    return "threads_windows.ll" if "windows" in system else "threads_linux.ll"


def make_key() -> int:
    """Create the key of a thread-local word. Raises ResourceExhaustedError."""
    if os.name == "nt":
        key: int = system_library().TlsAlloc()
        failed = key == -1
    else:
        result = ctypes.c_ulong()  # a long on macOS, half of it on Linux
        failed = library().pthread_key_create(ctypes.byref(result), None) != 0
        key = result.value
    if failed:
        raise ResourceExhaustedError(what="no key for words of threads")
    return key


def make_lock(address: int) -> None:
    """Initialize a lock in zeros. On Windows zeros are a lock."""
    if os.name != "nt":
        library().pthread_mutex_init(ctypes.c_void_p(address), None)


def make_condition(address: int) -> None:
    """Initialize a condition in zeros, with timeouts by CLOCK_MONOTONIC."""
    if os.name == "nt":
        return
    c, attributes = library(), ctypes.create_string_buffer(_ATTRIBUTES)
    c.pthread_condattr_init(attributes)
    if hasattr(c, "pthread_condattr_setclock"):  # macOS: timeouts are durations
        c.pthread_condattr_setclock(attributes, time.CLOCK_MONOTONIC)
    c.pthread_cond_init(ctypes.c_void_p(address), attributes)
    c.pthread_condattr_destroy(attributes)


def start(function: int, argument: int, stack: int) -> None:
    """Run a C function of one pointer on a new thread, with signals blocked, if the system has threads left."""
    (_start_on_windows if os.name == "nt" else _start_on_posix)(function, argument, stack)


def _start_on_windows(function: int, argument: int, stack: int) -> None:
    kernel32: Any = system_library()
    kernel32.CreateThread.restype = ctypes.c_void_p
    handle = kernel32.CreateThread(
        None,
        ctypes.c_size_t(stack),
        ctypes.c_void_p(function),
        ctypes.c_void_p(argument),
        _STACK_IS_A_RESERVATION,
        None,
    )
    if handle:
        kernel32.CloseHandle(ctypes.c_void_p(handle))


def _start_on_posix(function: int, argument: int, stack: int) -> None:
    attributes, thread = ctypes.create_string_buffer(_ATTRIBUTES), ctypes.c_size_t()
    c = library()
    c.pthread_attr_init(attributes)
    c.pthread_attr_setstacksize(attributes, ctypes.c_size_t(stack))
    c.pthread_attr_setdetachstate(attributes, _DETACHED)
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    try:
        c.pthread_create(ctypes.byref(thread), attributes, ctypes.c_void_p(function), ctypes.c_void_p(argument))
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
        c.pthread_attr_destroy(attributes)
