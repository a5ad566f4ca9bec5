"""Worker threads: they sit in machine code of ours (executor.ll) and know nothing of Python.

Lives here: the executor's functions, `Pool`, `pool_of`, what a fork does to pools.  Not here: plans (executor.py).

A pool lives as long as the process, in memory that is never given back: its threads may run to the very end. After a
fork the child has no threads but one, so that its pools begin anew when a plan first wants them.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import NamedTuple

from ...core import forks
from ...core.once import once
from ..target import Target, host
from .image import library, memory
from .interrupts import state_address
from .store import find_or_make

# How often a worker looks for work before it sleeps: 24 ns each with the pause of an EPYC 9005, 1.5 ms and 100 us in
# all. Between two steps of a plan it should stay awake; between two plans that run one after the other likewise. Giving
# the processor away meanwhile would lose it to other processes. Where there are more threads than processors it is
# needed by the others.
SPIN_IN_PLAN, SPIN_AFTER_PLAN = 1 << 16, 1 << 12
SPIN_WHEN_CROWDED = 1 << 8
SHORT_PLAN = 30_000  # nanoseconds: waking a thread costs the caller 2 us, and takes 50
_STACK = 1 << 21
_POOL_BYTES, _TICKET_BYTES = 6 * 128, 128  # as executor.ll lays it out
_RELAX = {"x86_64": "llvm.x86.sse2.pause()", "aarch64": "llvm.aarch64.isb(i32 15)"}


class Functions(NamedTuple):
    """The addresses of what executor.ll has."""

    run: int
    run_timed: int
    call: int
    work: int
    strands: int
    poll: int
    nested: int
    branch: int
    loop: int


def executor_text(target: Target) -> str:
    """executor.ll for a target."""
    text = Path(__file__).with_name("executor.ll").read_text(encoding="utf-8")
    return text.replace("RELAX", _RELAX[target.triple.partition("-")[0]]).replace("SHORT_PLAN", str(SHORT_PLAN))


@once
def functions() -> Functions:
    """The machine code of executor.ll."""
    code = find_or_make("executor", "", None, lambda: (executor_text(host()), "executor"))
    table = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int64)(code.address)
    return Functions(*map(table, range(len(Functions._fields))))


class Pool:
    """Workers for plans that run on so many threads, the caller's among them. address: of its memory.

    One plan at a time has them; another that runs meanwhile does without, on its caller's thread alone.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._records = _POOL_BYTES + _TICKET_BYTES * threads
        self.address = memory(self._records + 16 * threads)
        self._lock = forks.lock()
        self._begin()

    def _begin(self) -> None:
        """Nobody runs, sleeps or holds a lock."""
        ctypes.memset(self.address, 0, self._records)
        crowded = self.threads > _processors()
        spins = (SPIN_WHEN_CROWDED,) * 2 if crowded else (SPIN_IN_PLAN, SPIN_AFTER_PLAN)
        (ctypes.c_int64 * 4).from_address(self.address + 8)[:] = [self.threads, *spins, state_address()]
        self._started = False

    def start(self) -> None:
        """Start the workers if there are none. Where the system gives fewer threads, plans run with those."""
        with self._lock:
            if not self._started:
                self._started = True
                for which in range(1, self.threads):
                    self._start_worker(which)

    def _start_worker(self, which: int) -> None:
        import signal  # 2 ms: for threads alone

        record = self.address + self._records + 16 * which
        (ctypes.c_int64 * 2).from_address(record)[:] = [self.address, which]
        attributes, thread = ctypes.create_string_buffer(256), ctypes.c_size_t()
        c = library()
        c.pthread_attr_init(attributes)
        c.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_STACK))
        c.pthread_attr_setdetachstate(attributes, 1)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # signals are for the other threads
        try:
            work, given = ctypes.c_void_p(functions().work), ctypes.c_void_p(record)
            c.pthread_create(ctypes.byref(thread), attributes, work, given)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            c.pthread_attr_destroy(attributes)


def _processors() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_pools: dict[int, Pool] = {}
_pools_lock = forks.lock()


def pool_of(threads: int) -> Pool:
    """The pool for plans on so many threads, with its workers started."""
    with _pools_lock:
        pool = _pools.get(threads)
        if pool is None:
            pool = _pools[threads] = Pool(threads)
    pool.start()
    return pool


def _after_fork() -> None:
    for pool in _pools.values():
        pool._begin()


forks.in_child(_after_fork)
