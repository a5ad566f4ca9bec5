"""Plans in memory: a plan's steps and words as integers, and the same bound to an arena, constants and threads.

Lives here: `PlanImage`, `BoundPlan`, `StepOrigin`.
Not here: what the steps are (loops/plans.py), images in files (plan_cache.py), the native call (native/executor.py).

The words of an image that are addresses hold offsets. Binding adds where the arena and the constants are; connecting
adds where inputs and outputs are, by the keys that the image's creator uses.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.named_tuples import NamedTuple
from .native import executor as native
from .native.executor import StepFailed, aligned

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

    def bind(
        self, threads: int = 1, address: Callable[[int], int] | None = None, ahead: Sequence[native.Step] = ()
    ) -> BoundPlan:
        """Return the plan bound to memory, ready to run once external memory is connected.

        address: returns the address of a constant tensor's elements, by number; ahead: steps to run first. raises
        ResourceExhaustedError
        """
        return BoundPlan(self, threads, address, ahead)


class BoundPlan:
    """A plan bound to its own arena and to threads. executor: runs the steps ahead, then the plan's; ahead: the words
    of the steps ahead."""

    def __init__(
        self,
        image: PlanImage,
        threads: int,
        address: Callable[[int], int] | None,
        ahead: Sequence[native.Step] = (),
        keep: Any = None,
    ) -> None:
        self.image, self._first = image, len(ahead)
        arena = aligned(image.arena)
        block, ends = (image.block, [image.block.size]) if not ahead else self._with(ahead)
        steps, keep = len(image.steps) + len(ahead), (arena, image.constants, image.keep, keep)
        self.executor = native.Executor.of_block(block, steps, image.scratch, threads, keep)
        block = self.executor.block
        self._block = block[native.ROW * len(ahead) :]  # that of the image, behind the rows of steps ahead
        self.ahead = [block[start:end] for start, end in itertools.pairwise(ends)]
        self._block[image.in_arena] += arena.__array_interface__["data"][0]
        if image.constants is not None:
            self._block[image.in_constants] += image.constants.__array_interface__["data"][0]
        for number, places in image.inside.items():
            assert address is not None
            self._block[places] += address(number)
        self._at: dict[Hashable, int] = {}

    def _with(self, ahead: Sequence[native.Step]) -> tuple[np.ndarray, list[int]]:
        """Return the block with further steps at its beginning, whose words are at its end, and the index of these."""
        count, steps = native.ROW * len(ahead), len(self.image.steps)
        block = np.concatenate([np.zeros(count, np.int64), self.image.block, *(step.words for step in ahead)])
        rows = block[: count + native.ROW * steps].reshape(-1, native.ROW)
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
        except native.StepError as error:
            raise self._failed(error) from None

    def profile(self) -> list[tuple[StepOrigin, float]]:
        """Run all steps, and return the seconds of each. Raises as run."""
        try:
            nanoseconds = self.executor.run_profiled()
        except native.StepError as error:
            raise self._failed(error) from None
        return [(step, ns * 1e-9) for step, ns in zip(self.image.steps, nanoseconds[self._first :].tolist())]

    def _failed(self, error: native.StepError) -> StepFailed:
        step = self.image.steps[error.step - self._first]
        return StepFailed.of(step.op, step.name, error.status)
