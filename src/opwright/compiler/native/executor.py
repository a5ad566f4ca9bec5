"""The executor: runs a plan, which is data, through machine code.

Lives here: `Step`, `Executor`, `StepError`, `StepFailed`, `call`, memory (`aligned`).
Not here: what the steps are (loops/planning), their code (store.py), the machine code that runs them (executor.ll), the
threads it runs on (workers.py).

A step calls one kernel, `i64 kernel(ptr words, i64 begin, i64 end, ptr scratch)`, for its items [0, items): at once
or in chunks, on whichever thread is free. Items are independent, so that every split gives the same bits.
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

ALIGNMENT = 64  # bytes: memory starts on a line of the cache
_PLAN, ROW = 16, 8  # words of a plan and of a step in executor.ll
_COVERS = 4  # which word of a step
_COUNT, _POOL, _SCRATCH, _SCRATCH_BYTES, _FAILED, _STATE, _POLLS = 1, 2, 3, 4, 5, 7, 8
_CHUNKS_A_THREAD = 8  # of a step that leaves it to us: so that threads finish at about the same time
_MOST_SHARED = 1 << 31  # so that no sum of items and chunks has more than 32 bits
_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_TIMED = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class Step(NamedTuple):
    """One kernel over its items.

    address: of its code; words: int64[n], its parameters; chunk: how many items a thread is handed at a time, 0 for
    the executor's choice; from `items` on the calling thread does them alone; scratch: bytes a thread

    covers: where it is the head of strands, how many steps follow that are theirs. It has no kernel then, and its items
    are the strands: a thread that takes one runs its steps in order, each whole. strand: which one a step is of.
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
        """form: whose step it was, with the names of its operators as `origin`; status: what the kernel gave."""
        origin = " + ".join(form.origin) if form is not None else ""
        return cls(
            op=origin or kernel, what="an index points outside of what it indexes", found=f"{kernel} gave {status}"
        )


class StepError(Exception):
    """A kernel stopped the plan. step: which; status: what it gave."""

    def __init__(self, step: int, status: int) -> None:
        super().__init__(f"step {step} gave {status}")
        self.step, self.status = step, status


def call(address: int, words: np.ndarray, begin: int = 0, end: int = 1) -> int:
    """Call a kernel that needs no scratch, once, for items [begin, end). words: int64[n]. Gives its status."""
    status: int = _KERNEL(address)(words.ctypes.data, begin, end, None)
    return status


class Executor:
    """Runs steps in order. words: for each step, its parameters inside the plan: int64 views that may be changed.

    threads: how many work on a step; keep: what has to live as long as the plan; inner: how many threads the plans have
    that its steps run
    raises ResourceExhaustedError where there is no memory for the plan or its scratch
    """

    def __init__(self, steps: Sequence[Step], threads: int = 1, keep: Sequence[Any] = (), inner: int = 1) -> None:
        lengths = [len(step.words) for step in steps]
        block = np.zeros(ROW * len(steps) + sum(lengths), np.int64)
        at = ROW * len(steps)
        places = []
        for i, (step, length) in enumerate(zip(steps, lengths)):
            block[ROW * i : ROW * i + 6] = step.address, at, step.items, step.chunk, step.covers, step.strand
            block[at : at + length] = step.words
            places.append(slice(at, at + length))
            at += length
        self._set(block, len(steps), max((step.scratch for step in steps), default=0), threads, keep)
        self.words: list[np.ndarray] = [self.block[place] for place in places]
        self._inner = inner
        if inner > 1:
            _threaded.add(self)

    @classmethod
    def of_block(
        cls, block: np.ndarray, steps: int, scratch: int, threads: int = 1, keep: Sequence[Any] = ()
    ) -> Executor:
        """The executor of steps that are data already.

        block: int64[n], copied: a row of ROW words a step (address, where in the block its words begin, items, items a
        chunk, covers, strand, zeros), and all words. `words` is empty: change those in `block`, the executor's own.
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
        stride = -(-scratch // 128) * 128  # no line is two threads'
        self._scratch = aligned(stride * self.threads)
        self._plan[:_FAILED] = start, steps, 0, self._scratch.ctypes.data, stride
        self._plan[_STATE], self._plan[_POLLS] = state_address(), 1
        self._run: Callable[[], int]
        self._shares = bool(rows[:, 3].any())
        self._begin()
        if self._shares:
            _threaded.add(self)

    def _chunks(self, items: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """For each step: items a chunk, 0 where the caller does them all."""
        if self.threads == 1:
            return np.zeros_like(items)
        chosen = np.maximum(items // (_CHUNKS_A_THREAD * self.threads), 1)
        chunk = np.where(asked > 0, asked, chosen)
        shared = (chunk < items) & (items < _MOST_SHARED)
        return np.where(shared, np.minimum(chunk, _MOST_SHARED // (self.threads + 1)), 0)

    def _begin(self) -> None:
        """Make `_run` the native call, on started threads where there are to be some."""
        if self._shares:
            self._plan[_POOL] = pool_of(self.threads).address
        self._run = bound(_method(), self._plan.ctypes.data)

    def _run_anew(self) -> int:
        """The first run after a fork, which the threads did not come through."""
        self._begin()
        if self._inner > 1:
            pool_of(self._inner)
        return self._run()

    @property
    def address(self) -> int:
        """Of the plan, for `functions().run`: runs all steps and gives 0, or the status of the first that failed. Where
        it runs on threads, it is to be asked for anew after a fork."""
        if self._shares:
            self._plan[_POOL] = pool_of(self.threads).address
        return int(self._plan.ctypes.data)

    @property
    def entry(self) -> Callable[[], int]:
        """Runs all steps once, without the GIL, and gives 0, or the status of a kernel that stopped it: for `check`. To
        be asked for anew after a fork."""
        return self._run

    @property
    def failed(self) -> int:
        """Which step stopped the last run that was stopped."""
        return int(self._plan[_FAILED])

    def run(self) -> None:
        """Run all steps once, without the GIL. Raises StepError where a kernel gives something else than 0."""
        status = self._run()
        if status:
            self.check(status)

    def check(self, status: int) -> None:
        """Raise the error for a run that gave a status: what a signal's handler raised, or StepError."""
        if status:
            raise_pending()
            raise StepError(int(self._plan[_FAILED]), status)

    def run_profiled(self) -> np.ndarray:
        """Run all steps once. Gives int64[steps]: the nanoseconds that each took. Raises StepError."""
        times = np.zeros(self._steps, np.int64)
        self.check(_TIMED(functions().run_timed)(self._plan.ctypes.data, times.ctypes.data))
        return times


@once
def _method() -> Method:
    return Method(b"run", functions().call, NO_ARGUMENTS, None)


def aligned(nbytes: int) -> np.ndarray:
    """Zeros at a multiple of 64, uint8[nbytes]; they take no room until they are touched.

    raises ResourceExhaustedError where there is not so much
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
        executor._run = executor._run_anew


forks.in_child(_after_fork)
