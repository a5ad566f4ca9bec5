"""Worker threads, which execute machine code (executor.ll) without Python; and the poll by which code is interrupted.

Lives here: the functions of the executor, `WorkerPool`, `pool_of`, its state after a fork; `poll_address`.
Not here: plans (executor.py), the state that a poll reads (interrupts.py), where kernels poll (../poll_budget.py).

A pool lives as long as the process, in memory that is never freed: its threads may run until the end. A forked child
has a single thread, so that its pools start again when a plan first needs them.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct

from ...core import forks
from ...core.forks import once
from ...core.named_tuples import NamedTuple
from ..target import Target, host
from . import threads
from .image import Image, address_of, load_images, memory, runs_images
from .interrupts import state_address
from .source_digest import read_text
from .store import find_or_make

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
_LINE = threads.RECORD
_LOCK, _WORK, _DONE, _POOL_BYTES = 4 * _LINE, 5 * _LINE, 6 * _LINE, 7 * _LINE  # as executor.ll lays it out
_REST = 5 * 8
_DECLARED = r"(?m)^declare .*@(\w+)\("
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


def executor_text(target: Target) -> str:
    """Return executor.ll for a target."""
    names = "executor.ll", threads.text_for(target.triple)
    text = "\n".join(map(read_text, names))
    text = text.replace("RELAX", _RELAX[target.triple.partition("-")[0]])
    for name, value in _NUMBERS.items():
        text = text.replace(name, str(value))
    return text


@once
def functions() -> ExecutorFunctions:
    """Return the functions of executor.ll, compiled or from the cache."""
    if not runs_images():
        from ..engine import provide  # LLVM

        provide({name: address_of(name) for name in re.findall(_DECLARED, executor_text(host()))})
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
        threads.make_lock(self.address + _LOCK)
        for offset in _WORK, _DONE:
            threads.make_condition(self.address + offset)
        crowded = self.threads > _processors()
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
        threads.start(functions().work, record, _STACK)


def _processors() -> int:
    """Return the number of processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    for pool in _pools.values():
        pool._begin()


forks.in_child(_after_fork)
