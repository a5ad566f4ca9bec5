"""What the operating system gives threads: starting one, locks and conditions, a word that each thread has of its own.

Lives here: what Python calls of it, for POSIX and for Windows; which text has what machine code calls of it.
Not here: what the threads do (workers.py, executor.ll).

Linux, macOS and Windows differ in names, in how a wait is limited and by which clock. Machine code knows them by the
functions `lock`, `unlock`, `notify`, `wait`, `now`, `thread`, `own_pool` and `keep_pool` of threads_*.ll.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps in enums, in 0.7 ms
import ctypes
import os
import sys
import time
from typing import Any

from ...core.errors import ResourceExhaustedError
from .image import library, system_library

RECORD = 128
"""Bytes that are enough for a lock or a condition anywhere."""
_ATTRIBUTES = 256  # bytes that are enough for attributes of either
_DETACHED = 2 if sys.platform == "darwin" else 1  # PTHREAD_CREATE_DETACHED
_STACK_IS_A_RESERVATION = 0x10000  # Windows: CreateThread's size is what may be used, not what is used at once


def text_for(triple: str) -> str:
    """The name of the text with the functions that machine code for a triple of LLVM's calls.

    Systems that are none of the three are taken to have Linux's, which are those of POSIX.
    """
    system = triple.partition("-")[2]
    if any(name in system for name in ("apple", "darwin", "macosx")):
        return "threads_darwin.ll"
    return "threads_windows.ll" if "windows" in system else "threads_linux.ll"


def make_key() -> int:
    """A key, by which each thread finds a word of its own. Raises ResourceExhaustedError."""
    if os.name == "nt":
        key: int = system_library().TlsAlloc()
        failed = key == -1
    else:
        made = ctypes.c_ulong()  # macOS has longs, Linux the half of that
        failed = library().pthread_key_create(ctypes.byref(made), None) != 0
        key = made.value
    if failed:
        raise ResourceExhaustedError(what="no key for words of threads")
    return key


def make_lock(address: int) -> None:
    """Make zeros a lock that nobody holds. Windows takes zeros for one."""
    if os.name != "nt":
        library().pthread_mutex_init(ctypes.c_void_p(address), None)


def make_condition(address: int) -> None:
    """Make zeros a condition that nobody waits for; where waits end at a time, that of CLOCK_MONOTONIC."""
    if os.name == "nt":
        return
    c, attributes = library(), ctypes.create_string_buffer(_ATTRIBUTES)
    c.pthread_condattr_init(attributes)
    if hasattr(c, "pthread_condattr_setclock"):  # macOS waits for so long, not until
        c.pthread_condattr_setclock(attributes, time.CLOCK_MONOTONIC)
    c.pthread_cond_init(ctypes.c_void_p(address), attributes)
    c.pthread_condattr_destroy(attributes)


def start(function: int, argument: int, stack: int) -> None:
    """Run a C function of one pointer on a thread of its own, with signals for other threads, if the system has one."""
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
