"""Worker threads, which execute machine code (executor.ll) without Python, and their interruption by signals.

Lives here: the functions of the executor, `WorkerPool`, `pool_of`, its state after a fork; threads, locks and
conditions of the operating system, for POSIX and for Windows; `state_address`, `INTERRUPTED`, `raise_pending`,
`poll_address`.
Not here: plans (executor.py), where kernels poll (../language/control.py).

A pool lives as long as the process, in memory that is never freed: its threads may run until the end. A forked child
has a single thread, so that its pools start again when a plan first needs them.

Linux, macOS and Windows differ in names, and in the clocks and limits of waits. Machine code calls the functions
`lock`, `unlock`, `notify`, `wait`, `now`, `thread`, `own_pool` and `keep_pool` of threads_*.ll.

The signal handler of Python only sets a flag, which the interpreter checks between its instructions; machine code
without the GIL never does. So it polls: on the main thread a poll acquires the GIL at most every 50 ms and lets Python
run the handlers; code that was called with the GIL releases it for a moment. If a handler raises, the exception is
saved, the code returns INTERRUPTED, and its caller raises the exception. On a worker thread a poll checks whether its
step failed or was interrupted. Handlers remain those of the user, and handlers that do not raise run while the code
does.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` wraps it in enums, which takes 0.7 ms
import ctypes
import os
import platform
import re
import struct
import sys
import threading
import time
from typing import Any

from ...core import forks
from ...core.errors import ResourceExhaustedError
from ...core.forks import once
from ...core.named_tuples import NamedTuple
from ...core.processors import usable_processors
from ..target import Target, host
from .image import Image, address_of, library, load_images, memory, runs_images, system_library
from .store import find_or_make, read_text

RECORD = 128
"""Bytes of a lock or a condition, at most, on any system."""
_ATTRIBUTES = 256  # bytes of attributes of either, at most
_DETACHED = 2 if sys.platform == "darwin" else 1  # PTHREAD_CREATE_DETACHED
_STACK_IS_A_RESERVATION = 0x10000  # Windows: the stack size of CreateThread is reserved, not committed


def threads_text(triple: str) -> str:
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


def start_thread(function: int, argument: int, stack: int) -> None:
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


# Iterations of a worker that spins before it sleeps: 24 ns each with the pause of an EPYC 9005, 400 us and 100 us in
# total. It should stay awake between two steps of a plan, and between two plans in succession. To yield the processor
# would lose it to other processes. With more threads than processors, the others need it.
SPIN_IN_PLAN, SPIN_AFTER_PLAN = 1 << 14, 1 << 12
SPIN_WHEN_CROWDED = 1 << 8
SPIN_FOR_OTHERS = 1 << 11  # of the caller, for the last chunks of a step: 50 us
# If sharing was slower, the caller works alone for REST times the loss; a stall counts as one scheduler slice at most.
# CREDIT: initial nanoseconds that it may wait, and that shared runs of a plan may be ahead of those alone.
REST, SLICE, CREDIT = 32, 4_000_000, 20_000_000
SHORT_PLAN = 30_000  # nanoseconds: waking a thread costs the caller 2 us, and takes 50
_STACK = 1 << 21
_LINE = RECORD
_LOCK, _WORK, _DONE, _POOL_BYTES = 4 * _LINE, 5 * _LINE, 6 * _LINE, 7 * _LINE  # as executor.ll lays it out
_REST = 5 * 8
DECLARED = r"(?m)^declare .*@(\w+)\("
_RELAX = {"x86_64": "llvm.x86.sse2.pause()", "aarch64": "llvm.aarch64.isb(i32 15)", "arm64": "llvm.aarch64.isb(i32 15)"}
_NUMBERS = {"SHORT_PLAN": SHORT_PLAN, "SPIN_FOR_OTHERS": SPIN_FOR_OTHERS, "CREDIT": CREDIT, "SLICE": SLICE}


class ExecutorFunctions(NamedTuple):
    """Addresses of the functions of executor.ll."""

    run: int
    run_timed: int
    call: int
    work: int
    strands: int
    poll: int
    nested: int
    branch: int
    loop: int
    tasks: int
    parallel_for: int
    thread_count: int


def executor_text(target: Target) -> str:
    """Return executor.ll for a target."""
    names = "executor.ll", threads_text(target.triple)
    text = "\n".join(map(read_text, names))
    text = text.replace("RELAX", _RELAX[target.triple.partition("-")[0]])
    for name, value in _NUMBERS.items():
        text = text.replace(name, str(value))
    return text


@once
def functions() -> ExecutorFunctions:
    """Return the functions of executor.ll, compiled or from the cache."""
    if not runs_images():
        from .linker import provide  # LLVM

        provide({name: address_of(name) for name in re.findall(DECLARED, executor_text(host()))})
    code = find_or_make("executor", "", None, lambda: (executor_text(host()), "executor"))
    table = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int64)(code.address)
    return ExecutorFunctions(*map(table, range(len(ExecutorFunctions._fields))))


class WorkerPool:
    """Workers for plans that run on `count` threads, including the caller. address: of its memory.

    They serve one plan at a time; another concurrent plan runs on the thread of its caller.
    """

    def __init__(self, count: int) -> None:
        self.threads = count
        self._records = _POOL_BYTES + _LINE * count
        self.address = memory(self._records + 16 * count)
        self._lock = forks.lock()
        self._rest = REST
        self._begin()

    def _begin(self) -> None:
        """Reset the state: no thread runs, sleeps or owns a lock."""
        ctypes.memset(self.address, 0, self._records)
        make_lock(self.address + _LOCK)
        for offset in _WORK, _DONE:
            make_condition(self.address + offset)
        crowded = self.threads > usable_processors()
        spins = (SPIN_WHEN_CROWDED,) * 2 if crowded else (SPIN_IN_PLAN, SPIN_AFTER_PLAN)
        words = (ctypes.c_int64 * 8).from_address(self.address + 8)
        words[:] = [self.threads, *spins, state_address(), self._rest, 0, 0, CREDIT]
        self._started = False

    def set_rest(self, times: int) -> None:
        """Set for how many times the loss of sharing the caller works alone; 0: it always shares."""
        self._rest = ctypes.c_int64.from_address(self.address + _REST).value = times

    def start(self) -> None:
        """Start the workers if there are none. If the system refuses some threads, plans run with fewer."""
        with self._lock:
            if not self._started:
                self._started = True
                for index in range(1, self.threads):
                    self._start_worker(index)

    def _start_worker(self, index: int) -> None:
        record = self.address + self._records + 16 * index
        (ctypes.c_int64 * 2).from_address(record)[:] = [self.address, index]
        start_thread(functions().work, record, _STACK)


_pools: dict[int, WorkerPool] = {}
_pools_lock = forks.lock()


def pool_of(count: int) -> WorkerPool:
    """Return the pool for plans on `count` threads, with its workers started."""
    with _pools_lock:
        pool = _pools.get(count)
        if pool is None:
            pool = _pools[count] = WorkerPool(count)
    pool.start()
    return pool


_polls: dict[str, int] = {}


def poll_address(symbol: str) -> int:
    """Return the address of a C function without arguments that returns 0, or INTERRUPTED if the code has to end.

    It is the poll of executor.ll, bound to the state of this process. symbol: POLL, its name in code.
    """
    address = _polls.get(symbol)
    if address is None:
        state, poll = state_address(), functions().poll
        if platform.machine() == "x86_64":  # mov rdi, state; mov rax, poll; jmp rax
            code = b"\x48\xbf" + struct.pack("<Q", state) + b"\x48\xb8" + struct.pack("<Q", poll) + b"\xff\xe0"
        else:  # ldr x0, state; ldr x16, poll; br x16; nop
            code = struct.pack("<IIIIQQ", 0x58000080, 0x580000B0, 0xD61F0200, 0xD503201F, state, poll)
        (entries,) = load_images([Image({"poll": 0}, (), (), code, 64)])
        address = _polls.setdefault(symbol, entries["poll"])
    return address


def _after_fork() -> None:
    if "state" in _addresses:
        words = (ctypes.c_int64 * 8).from_address(_addresses["state"])
        words[_MAIN] = _main_thread()
    for pool in _pools.values():
        pool._begin()


forks.in_child(_after_fork)
