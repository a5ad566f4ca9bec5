"""The executor: plans are data, which is bound to memory and run by machine code.

Lives here: `PlanImage`, a plan's steps and words as integers; `BoundPlan`, an image bound to an arena, constants and
threads; `StepOrigin`; `Step`, `Executor`, `StepError`, `StepFailed`, `call`, memory (`aligned`).
Not here: the contents of steps (loops/planner.py), images in files (plan_cache.py), the code of kernels (store.py), the
machine code of the executor (executor.ll), its threads (workers.py).

A step calls one kernel, `i64 kernel(ptr words, i64 begin, i64 end, ptr scratch)`, for its items [0, items): at once
or in chunks, on any thread. Items are independent, so that results do not depend on the division.

The words of an image that are addresses hold offsets. Binding adds the addresses of the arena and the constants;
connecting adds those of inputs and outputs, by the keys that the image's creator uses.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core import forks
from ...core.errors import InvalidArgumentError, ResourceExhaustedError
from ...core.forks import once
from ...core.named_tuples import NamedTuple
from .builtins import NO_ARGUMENTS, Method, bound
from .workers import functions, pool_of, raise_pending, state_address

ALIGNMENT = 64  # bytes of a cache line
_PLAN, ROW = 16, 8  # words of a plan and of a step in executor.ll
COVERS = 4  # index of the word of a step
_COUNT, _POOL, _SCRATCH, _SCRATCH_BYTES, _FAILED, _STATE, _POLLS = 1, 2, 3, 4, 5, 7, 8
_CHUNKS_A_THREAD = 8  # by default, so that threads finish at about the same time
_SHARED_LIMIT = 1 << 31  # items: sums of items and chunks fit 32 bits
KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_TIMED = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class Step(NamedTuple):
    """One kernel over its items.

    address: of its code; words: int64[n], its parameters; chunk: items that a thread claims at a time, 0 for the choice
    of the executor; from `items` on, the calling thread executes them alone; scratch: bytes per thread

    covers: number of the following steps that belong to the strands of this step, if it is the head of strands. It has
    no kernel then, and its items are the strands: a thread that claims one runs its steps in order. strand: of a step.
    A jump covers -1 and has no kernel; its strand is the distance to its target.
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


def call(address: int, words: np.ndarray, begin: int = 0, end: int = 1, scratch: np.ndarray | None = None) -> int:
    """Call a kernel once, for items [begin, end); return its status. words: int64[n]; scratch: its memory, if any."""
    status: int = KERNEL(address)(words.ctypes.data, begin, end, None if scratch is None else scratch.ctypes.data)
    return status


class Executor:
    """A plan that runs steps in order. steps: their number; words: parameters of each step inside the plan: int64 views
    that may change.

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
        a chunk, covers, strand, committed, zero), and all words. `words` is empty: change those in `block` of the
        executor.
        """
        self = object.__new__(cls)
        self._set(block, steps, scratch, threads, keep)
        self.words = []
        return self

    def _set(self, block: np.ndarray, steps: int, scratch: int, threads: int, keep: Sequence[Any]) -> None:
        self.threads = threads
        self._keep = tuple(keep)
        self._inner = 1
        self.steps = steps
        self._plan = aligned(8 * (_PLAN + block.size)).view(np.int64)
        self.block: np.ndarray = self._plan[_PLAN : _PLAN + block.size]
        self.block[:] = block
        start = self.block.ctypes.data
        rows = self.block[: ROW * steps].reshape(steps, ROW)
        rows[:, 1] = start + 8 * rows[:, 1]
        heads = np.flatnonzero(rows[:, COVERS] > 0)
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
        times = np.zeros(self.steps, np.int64)
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


NONE = np.zeros(0, np.int64)


class Origin(NamedTuple):
    """Origin of a step: names of operators."""

    origin: tuple[str, ...]


class StepOrigin(NamedTuple):
    """Description of a step, for messages. op: its origin, if any; name: of its kernel."""

    op: Any
    name: str


class PlanImage(NamedTuple):
    """A plan as arrays. arena, scratch: sizes of the arena and of each thread's memory; steps: for messages.

    block: steps and words in the executor's format, with offsets as addresses; in_arena, in_constants: indices of words
    that are addresses in the arena and in `constants`; outside: indices of words that are addresses in external memory,
    by its key; inside: of words in constant tensors that are read in place, by number; keep: objects to keep alive.
    """

    block: np.ndarray
    steps: Sequence[StepOrigin]
    arena: int
    scratch: int
    in_arena: np.ndarray
    outside: Mapping[Hashable, np.ndarray]
    constants: Any = None
    in_constants: np.ndarray = NONE
    inside: Mapping[int, np.ndarray] = {}
    keep: Any = None

    def located(self, tensors: Mapping[int, np.ndarray]) -> PlanImage:
        """Return the image for constant tensors in place, which it keeps alive."""
        read = {number: tensors[number] for number in self.inside}
        block = self.block.copy()
        for number, array in read.items():
            block[self.inside[number]] += array.__array_interface__["data"][0]
        return self._replace(block=block, inside={}, keep=read)

    def works_in_place(self, source: Hashable, target: Hashable, kernels: Container[str]) -> bool:
        """Return whether the external memory of an output may be that of an input, by their keys.

        It may if the last step that reads the input comes before the first one that accesses the output, or is that
        step and has one of these kernels. Plans with loops may not.
        """
        rows = self.block[: ROW * len(self.steps)].reshape(-1, ROW)
        if (rows[:, COVERS] < 0).any():
            return False
        position = np.arange(len(rows))  # of a step that runs at any time of its strands, that of their head
        for head in np.flatnonzero(rows[:, COVERS] > 0):
            position[head : head + rows[head, COVERS] + 1] = head
        steps = [np.searchsorted(rows[:, 1], self.outside.get(key, NONE), side="right") - 1 for key in (source, target)]
        if not steps[0].size or not steps[1].size:
            return True
        last, first = steps[0].max(), steps[1].min()
        alone = last == first and not rows[position[last], COVERS]
        is_free = alone and self.steps[last].name.rpartition(".")[2] in kernels
        return bool(is_free or position[last] < position[first])

    def bind(
        self, threads: int = 1, address: Callable[[int], int] | None = None, ahead: Sequence[Step] = ()
    ) -> BoundPlan:
        """Return the plan bound to memory, ready to run once external memory is connected.

        address: returns the address of a constant tensor's elements, by number; ahead: steps to run first. raises
        ResourceExhaustedError
        """
        return BoundPlan(self, threads, address, ahead)


class BoundPlan:
    """A plan bound to its own arena and to threads. executor: runs the steps ahead, then the plan's; ahead: the words
    of the steps ahead; first: their number."""

    def __init__(
        self,
        image: PlanImage,
        threads: int,
        address: Callable[[int], int] | None,
        ahead: Sequence[Step] = (),
        keep: Any = None,
    ) -> None:
        self.image, self.first = image, len(ahead)
        arena = aligned(image.arena)
        block, ends = (image.block, [image.block.size]) if not ahead else self._with(ahead)
        steps, keep = len(image.steps) + len(ahead), (arena, image.constants, image.keep, keep)
        self.executor = Executor.of_block(block, steps, image.scratch, threads, keep)
        block = self.executor.block
        self._block = block[ROW * len(ahead) :]  # that of the image, behind the rows of steps ahead
        self.ahead = [block[start:end] for start, end in itertools.pairwise(ends)]
        self._block[image.in_arena] += arena.__array_interface__["data"][0]
        if image.constants is not None:
            self._block[image.in_constants] += image.constants.__array_interface__["data"][0]
        for number, places in image.inside.items():
            assert address is not None
            self._block[places] += address(number)
        self._at: dict[Hashable, int] = {}

    def _with(self, ahead: Sequence[Step]) -> tuple[np.ndarray, list[int]]:
        """Return the block with further steps at its beginning, whose words are at its end, and the index of these."""
        count, steps = ROW * len(ahead), len(self.image.steps)
        block = np.concatenate([np.zeros(count, np.int64), self.image.block, *(step.words for step in ahead)])
        rows = block[: count + ROW * steps].reshape(-1, ROW)
        rows[len(ahead) :, 1] += count
        ends = [count + self.image.block.size]
        for row, step in zip(rows, ahead):
            row[:4] = step.address, ends[-1], step.items, step.chunk
            ends.append(ends[-1] + len(step.words))
        return block, ends

    def connect(self, addresses: Mapping[Any, int]) -> None:
        """Set the addresses of inputs and outputs, by their keys."""
        for key, address in addresses.items():
            before = self._at.get(key, 0)
            if before != address:
                self._at[key] = address
                places = self.image.outside.get(key)
                if places is not None:
                    self._block[places] += address - before

    def places(self, key: Hashable) -> list[tuple[int, int]]:
        """Return the words that refer to external memory: their addresses, each with the offset to add."""
        places: Iterable[int] = self.image.outside.get(key, NONE).tolist()
        start = self._block.ctypes.data
        return [(start + 8 * index, int(self.image.block[index])) for index in places]

    def run(self) -> None:
        """Run all steps. Raises StepFailed naming the operator whose step failed."""
        try:
            self.executor.run()
        except StepError as error:
            raise self.failure(error) from None

    def profile(self) -> list[tuple[StepOrigin, float]]:
        """Run all steps, and return the seconds of each. Raises as run."""
        try:
            nanoseconds = self.executor.run_profiled()
        except StepError as error:
            raise self.failure(error) from None
        return [(step, ns * 1e-9) for step, ns in zip(self.image.steps, nanoseconds[self.first :].tolist())]

    def failure(self, error: StepError) -> StepFailed:
        """Return the error that names the operator of a step that failed."""
        step = self.image.steps[error.step - self.first]
        return StepFailed.of(step.op, step.name, error.status)
