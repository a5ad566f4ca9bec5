"""Worker threads: they sit in machine code of ours (executor.ll) and know nothing of Python.

Lives here: the executor's functions, `Pool`, `pool_of`, what a fork does to pools.  Not here: plans (executor.py).

A pool lives as long as the process, in memory that is never given back: its threads may run to the very end. After a
fork the child has no threads but one, so that its pools begin anew when a plan first wants them.
"""

from __future__ import annotations

import ctypes
import os
import re

from ...core import forks
from ...core.forks import once
from ...core.named_tuples import NamedTuple
from ..target import Target, host
from . import threads
from .image import address_of, memory, runs_images
from .interrupts import state_address
from .store import find_or_make, read_text

# How often a worker looks for work before it sleeps: 24 ns each with the pause of an EPYC 9005, 400 us and 100 us in
# all. Between two steps of a plan it should stay awake; between two plans that run one after the other likewise. Giving
# the processor away meanwhile would lose it to other processes. Where there are more threads than processors it is
# needed by the others.
SPIN_IN_PLAN, SPIN_AFTER_PLAN = 1 << 14, 1 << 12
SPIN_WHEN_CROWDED = 1 << 8
SPIN_FOR_OTHERS = 1 << 11  # of the caller, for the last chunks of a step: 50 us
# Where sharing did not pay: the caller works alone for so many times what that cost, a stall counting as a scheduler's
# slice at most. Nanoseconds: what it may wait, and what a plan's shared runs may be ahead of those alone, in advance.
REST, SLICE, CREDIT = 32, 4_000_000, 20_000_000
SHORT_PLAN = 30_000  # nanoseconds: waking a thread costs the caller 2 us, and takes 50
_STACK = 1 << 21
_LINE = threads.RECORD
_LOCK, _WORK, _DONE, _POOL_BYTES = 4 * _LINE, 5 * _LINE, 6 * _LINE, 7 * _LINE  # as executor.ll lays it out
_REST = 5 * 8
_DECLARED = r"(?m)^declare .*@(\w+)\("
_RELAX = {"x86_64": "llvm.x86.sse2.pause()", "aarch64": "llvm.aarch64.isb(i32 15)", "arm64": "llvm.aarch64.isb(i32 15)"}
_NUMBERS = {"SHORT_PLAN": SHORT_PLAN, "SPIN_FOR_OTHERS": SPIN_FOR_OTHERS, "CREDIT": CREDIT, "SLICE": SLICE}


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
    names = "executor.ll", threads.text_for(target.triple)
    text = "\n".join(map(read_text, names))
    text = text.replace("RELAX", _RELAX[target.triple.partition("-")[0]])
    for name, value in _NUMBERS.items():
        text = text.replace(name, str(value))
    return text


@once
def functions() -> Functions:
    """The machine code of executor.ll."""
    if not runs_images():
        from ..engine import provide  # LLVM

        provide({name: address_of(name) for name in re.findall(_DECLARED, executor_text(host()))})
    code = find_or_make("executor", "", None, lambda: (executor_text(host()), "executor"))
    table = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int64)(code.address)
    return Functions(*map(table, range(len(Functions._fields))))


class Pool:
    """Workers for plans that run on so many threads, the caller's among them. address: of its memory.

    One plan at a time has them; another that runs meanwhile does without, on its caller's thread alone.
    """

    def __init__(self, count: int) -> None:
        self.threads = count
        self._records = _POOL_BYTES + _LINE * count
        self.address = memory(self._records + 16 * count)
        self._lock = forks.lock()
        self._rest = REST
        self._begin()

    def _begin(self) -> None:
        """Nobody runs, sleeps or holds a lock."""
        ctypes.memset(self.address, 0, self._records)
        threads.make_lock(self.address + _LOCK)
        for at in _WORK, _DONE:
            threads.make_condition(self.address + at)
        crowded = self.threads > _processors()
        spins = (SPIN_WHEN_CROWDED,) * 2 if crowded else (SPIN_IN_PLAN, SPIN_AFTER_PLAN)
        words = (ctypes.c_int64 * 8).from_address(self.address + 8)
        words[:] = [self.threads, *spins, state_address(), self._rest, 0, 0, CREDIT]
        self._started = False

    def set_rest(self, times: int) -> None:
        """Set for how many times what sharing cost the caller works alone where it did not pay; 0: it always shares."""
        self._rest = ctypes.c_int64.from_address(self.address + _REST).value = times

    def start(self) -> None:
        """Start the workers if there are none. Where the system gives fewer threads, plans run with those."""
        with self._lock:
            if not self._started:
                self._started = True
                for which in range(1, self.threads):
                    self._start_worker(which)

    def _start_worker(self, which: int) -> None:
        record = self.address + self._records + 16 * which
        (ctypes.c_int64 * 2).from_address(record)[:] = [self.address, which]
        threads.start(functions().work, record, _STACK)


def _processors() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_pools: dict[int, Pool] = {}
_pools_lock = forks.lock()


def pool_of(count: int) -> Pool:
    """The pool for plans on so many threads, with its workers started."""
    with _pools_lock:
        pool = _pools.get(count)
        if pool is None:
            pool = _pools[count] = Pool(count)
    pool.start()
    return pool


def _after_fork() -> None:
    for pool in _pools.values():
        pool._begin()


forks.in_child(_after_fork)
