"""The executor: runs plans, which are data, by machine code.

Lives here: `Step`, `Executor`, `StepError`, `StepFailed`, `call`, memory (`aligned`). Not here: the contents of steps
(loops/planner.py), their code (store.py), the machine code of the executor (executor.ll), its threads (workers.py).

A step calls one kernel, `i64 kernel(ptr words, i64 begin, i64 end, ptr scratch)`, for its items [0, items): at once
or in chunks, on any thread. Items are independent, so that results do not depend on the division.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import forks
from ...core.errors import InvalidArgumentError, ResourceExhaustedError
from ...core.forks import once
from ...core.named_tuples import NamedTuple
from .builtins import NO_ARGUMENTS, Method, bound
from .interrupts import raise_pending, state_address
from .workers import functions, pool_of

ALIGNMENT = 64  # bytes of a cache line
_PLAN, ROW = 16, 8  # words of a plan and of a step in executor.ll
_COVERS = 4  # index of the word of a step
_COUNT, _POOL, _SCRATCH, _SCRATCH_BYTES, _FAILED, _STATE, _POLLS = 1, 2, 3, 4, 5, 7, 8
_CHUNKS_A_THREAD = 8  # by default, so that threads finish at about the same time
_SHARED_LIMIT = 1 << 31  # items: sums of items and chunks fit 32 bits
_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_TIMED = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class Step(NamedTuple):
    """One kernel over its items.

    address: of its code; words: int64[n], its parameters; chunk: items that a thread claims at a time, 0 for the choice
    of the executor; from `items` on, the calling thread executes them alone; scratch: bytes per thread

    covers: number of the following steps that belong to the strands of this step, if it is the head of strands. It has
    no kernel then, and its items are the strands: a thread that claims one runs its steps in order. strand: of a step.
    """

    address: int
    words: Sequence[int] | np.ndarray
    items: int
    chunk: int = 0
    scratch: int = 0
    covers: int = 0
    strand: int = 0


class StepFailed(InvalidArgumentError):
    """A kernel's guard failed."""

    @classmethod
    def of(cls, form: Any, kernel: str, status: int) -> StepFailed:
        """Return the error of a step. form: its operation, with operators as `origin`; status: result of the kernel."""
        origin = " + ".join(form.origin) if form is not None else ""
        return cls(
            op=origin or kernel, what="an index points outside of what it indexes", found=f"{kernel} gave {status}"
        )


class StepError(Exception):
    """A kernel stopped the plan. step: its index; status: its result."""

    def __init__(self, step: int, status: int) -> None:
        super().__init__(f"step {step} gave {status}")
        self.step, self.status = step, status


def call(address: int, words: np.ndarray, begin: int = 0, end: int = 1) -> int:
    """Call a kernel without scratch memory once, for items [begin, end); return its status. words: int64[n]."""
    status: int = _KERNEL(address)(words.ctypes.data, begin, end, None)
    return status


class Executor:
    """A plan that runs steps in order. words: parameters of each step inside the plan: int64 views that may change.

    threads: of a step; keep: objects that have to outlive the plan; inner: threads of plans that its steps run
    raises ResourceExhaustedError without memory for the plan or its scratch memory
    """

    def __init__(self, steps: Sequence[Step], threads: int = 1, keep: Sequence[Any] = (), inner: int = 1) -> None:
        lengths = [len(step.words) for step in steps]
        block = np.zeros(ROW * len(steps) + sum(lengths), np.int64)
        start = ROW * len(steps)
        slices = []
        for i, (step, length) in enumerate(zip(steps, lengths)):
            block[ROW * i : ROW * i + 6] = step.address, start, step.items, step.chunk, step.covers, step.strand
            block[start : start + length] = step.words
            slices.append(slice(start, start + length))
            start += length
        self._set(block, len(steps), max((step.scratch for step in steps), default=0), threads, keep)
        self.words: list[np.ndarray] = [self.block[words] for words in slices]
        self._inner = inner
        if inner > 1:
            _threaded.add(self)

    @classmethod
    def of_block(
        cls, block: np.ndarray, steps: int, scratch: int, threads: int = 1, keep: Sequence[Any] = ()
    ) -> Executor:
        """Return the executor of serialized steps.

        block: int64[n], copied: a row of ROW words per step (address, index of its words in the block, items, items of
        a chunk, covers, strand, zeros), and all words. `words` is empty: change those in `block` of the executor.
        """
        self = object.__new__(cls)
        self._set(block, steps, scratch, threads, keep)
        self.words = []
        return self

    def _set(self, block: np.ndarray, steps: int, scratch: int, threads: int, keep: Sequence[Any]) -> None:
        self.threads = threads
        self._keep = tuple(keep)
        self._inner = 1
        self._steps = steps
        self._plan = aligned(8 * (_PLAN + block.size)).view(np.int64)
        self.block: np.ndarray = self._plan[_PLAN : _PLAN + block.size]
        self.block[:] = block
        start = self.block.ctypes.data
        rows = self.block[: ROW * steps].reshape(steps, ROW)
        rows[:, 1] = start + 8 * rows[:, 1]
        heads = np.flatnonzero(rows[:, _COVERS])
        if heads.size:
            rows[heads, 0], rows[heads, 1] = functions().strands, start + 8 * ROW * heads
        rows[:, 3] = self._chunks(rows[:, 2], rows[:, 3])
        stride = -(-scratch // 128) * 128  # threads share no cache line
        self._scratch = aligned(stride * self.threads)
        self._plan[:_FAILED] = start, steps, 0, self._scratch.ctypes.data, stride
        self._plan[_STATE], self._plan[_POLLS] = state_address(), 1
        self._run: Callable[[], int]
        self._shares = bool(rows[:, 3].any())
        self._begin()
        if self._shares:
            _threaded.add(self)

    def _chunks(self, items: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """Return the items of a chunk for each step, 0 if the caller executes them all."""
        if self.threads == 1:
            return np.zeros_like(items)
        chosen = np.maximum(items // (_CHUNKS_A_THREAD * self.threads), 1)
        chunk = np.where(asked > 0, asked, chosen)
        shared = (chunk < items) & (items < _SHARED_LIMIT)
        return np.where(shared, np.minimum(chunk, _SHARED_LIMIT // (self.threads + 1)), 0)

    def _begin(self) -> None:
        """Set `_run` to the native call, with threads started if needed."""
        if self._shares:
            self._plan[_POOL] = pool_of(self.threads).address
        self._run = bound(_method(), self._plan.ctypes.data)

    def _run_after_fork(self) -> int:
        """Run for the first time after a fork, which ended the threads."""
        self._begin()
        if self._inner > 1:
            pool_of(self._inner)
        return self._run()

    @property
    def address(self) -> int:
        """Address of the plan, for `functions().run`: it runs all steps and returns 0 or the first status of a failure.

        Read it again after a fork if the plan runs on threads.
        """
        if self._shares:
            self._plan[_POOL] = pool_of(self.threads).address
        return int(self._plan.ctypes.data)

    @property
    def entry(self) -> Callable[[], int]:
        """Function that runs all steps once, without the GIL, and returns 0 or a status for `check`.

        Read it again after a fork.
        """
        return self._run

    @property
    def failed(self) -> int:
        """Index of the step that stopped the last run that failed."""
        return int(self._plan[_FAILED])

    def run(self) -> None:
        """Run all steps once, without the GIL. Raises StepError if a kernel returns other than 0."""
        status = self._run()
        if status:
            self.check(status)

    def check(self, status: int) -> None:
        """Raise the error of the status of a run: the exception of a signal handler, or StepError."""
        if status:
            raise_pending()
            raise StepError(int(self._plan[_FAILED]), status)

    def run_profiled(self) -> np.ndarray:
        """Run all steps once; return the nanoseconds of each, int64[steps]. Raises StepError."""
        times = np.zeros(self._steps, np.int64)
        self.check(_TIMED(functions().run_timed)(self._plan.ctypes.data, times.ctypes.data))
        return times


@once
def _method() -> Method:
    return Method(b"run", functions().call, NO_ARGUMENTS, None)


def aligned(nbytes: int) -> np.ndarray:
    """Return zeros at a multiple of 64, uint8[nbytes], whose pages are allocated on first use.

    raises ResourceExhaustedError
    """
    try:
        raw = np.zeros(nbytes + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as error:  # ValueError: more than there are addresses
        raise ResourceExhaustedError(what=f"no memory for {nbytes} bytes", found=str(error)) from None
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return raw[start : start + nbytes]


_threaded: weakref.WeakSet[Executor] = weakref.WeakSet()


def _after_fork() -> None:
    for executor in _threaded:
        executor._run = executor._run_after_fork


forks.in_child(_after_fork)
