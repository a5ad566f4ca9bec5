"""The builder of plans: collects the steps that selectors emit for each operation.

Lives here: `Builder`.
Not here: the order of operations and the memory of buffers (planner.py, plan_memory.py), selectors (../kernels/).

Addresses stay symbolic until all operations are planned: a selector requests the word of a buffer, and the planner
resolves it to the arena, a constant or external memory at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import uint8
from ...core.errors import InternalError
from ..kernels import select
from ..tuning.choices import Choice, choose
from .buffers import Buffer
from .ops import LoopOp
from .plans import Address, Fill, KernelCode, PackedConstant, PlanStep, Strands


class Share(NamedTuple):
    """Permission to write a form's output over one of its operands."""

    place: int
    operand: Buffer
    output: Buffer


class Mark(NamedTuple):
    """How far a builder is."""

    steps: int
    constants: int
    shares: int


class Builder:
    """Collects the steps of a loop graph's forms; a selector is given one and the form."""

    def __init__(self) -> None:
        self.steps: list[PlanStep] = []
        self.constants: list[PackedConstant] = []
        self.shares: list[Share] = []
        self._by_key: dict[Any, PackedConstant] = {}
        self._op: LoopOp | None = None
        self._place = -1
        self._strand, self._in_part = 0, False

    def pointer(self, buffer: Buffer, offset: int = 0) -> Address:
        """The address of a buffer's element `offset`; a slice of another starts within that one (see buffer.pitch).

        raises InternalError for a constant whose elements do not lie in order
        """
        if buffer.constant is not None and not buffer.constant.flags.c_contiguous:
            raise InternalError(
                op="loop graph",
                what=f"the constant {buffer!r} is read where it is, but has gaps",
                found=buffer.constant.strides,
            )
        return Address(buffer, offset * buffer.dtype.size)

    def constant(self, array: np.ndarray, key: Any = None) -> Address:
        """The address of a copy of the array in the plan's block of constants, at a multiple of 64."""
        return self.packed(array.shape, array.dtype, lambda out: np.copyto(out, array), key)

    def packed(self, shape: Sequence[int], dtype: Any, fill: Fill, key: Any = None) -> Address:
        """The address of an array in the block of constants that `fill(out)` will write: later, into zeroed memory.

        key: equal keys mean equal elements, which are there once; it may hold arrays, which stand for their memory.
        """
        full = None if key is None else _key((key, tuple(shape), np.dtype(dtype).str))
        found = self._by_key.get(full) if full is not None else None
        if found is None:
            found = PackedConstant(tuple(shape), np.dtype(dtype), fill, full)
            self.constants.append(found)
            if full is not None:
                self._by_key[full] = found
        return Address(found)

    def temporary(self, nbytes: int) -> Address:
        """Memory that all steps of this form share, and no other form's."""
        return Address(Buffer("temporary", uint8, (nbytes,)))

    def choose(self, choice: Choice, ways: Sequence[int], default: int, *sizes: int) -> int:
        """The way to take, by measure. Parts of a form take the default: what says that a form may be done in parts
        relies on it."""
        assert self._op is not None
        return default if self._in_part else choose(choice, ways, default, (self._op,), *sizes)

    def share(self, operand: Buffer) -> None:
        """Say that this form's output may be written over the operand, where nobody reads that later: each item reads
        an element of it before it writes that place, and reads no place that another item writes."""
        assert self._op is not None
        if not self._in_part:  # else other parts of the whole form may read that place
            self.shares.append(Share(self._place, operand, self._op.output))

    def step(
        self, code: KernelCode, words: Sequence[Any], items: int, scratch: int = 0, chunk: int | None = None
    ) -> None:
        """Add a step: `code` over [0, items). words: addresses, ints and floats, one for each parameter.

        scratch: bytes for each thread. chunk: items that a thread takes at a time, where the selector knows better.
        """
        if items > 0:
            self.steps.append(
                PlanStep(code, tuple(words), items, scratch, chunk, self._place, self._op, strand=self._strand)
            )

    def strands(self, number: int, make_strand: Callable[[int], None]) -> None:
        """Add so many sequences of steps that are independent of each other: each is one thread's, from its first step
        to its last. make_strand: adds the steps of one, by `part`."""
        head = len(self.steps)
        self.steps.append(PlanStep(Strands(), (), number, 0, 1, self._place, None))
        try:
            for self._strand in range(number):
                make_strand(self._strand)
        finally:
            self._strand = 0
        self.steps[head] = self.steps[head]._replace(covers=len(self.steps) - head - 1)

    def part(self, op: LoopOp) -> None:
        """The steps of a form that does some of what the whole form does, by its own selectors. Raises NoKernel."""
        whole, self._op, self._in_part = self._op, op, True
        try:
            select(op, self)
        finally:
            self._op, self._in_part = whole, False

    # ---- what `make` calls ------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Where it is, to come back to."""
        return Mark(len(self.steps), len(self.constants), len(self.shares))

    def rewind(self, mark: Mark) -> None:
        """Forget what came after the mark."""
        del self.steps[mark.steps :], self.shares[mark.shares :]
        for constant in self.constants[mark.constants :]:
            self._by_key.pop(constant.key, None)
        del self.constants[mark.constants :]

    def begin(self, place: int, op: LoopOp) -> None:
        """The steps that follow are this form's."""
        self._place, self._op = place, op


def _key(part: Any) -> Any:
    """A key in which arrays are replaced by where their elements are, and buffers by their constants."""
    if isinstance(part, Buffer):
        part = part.constant if part.constant is not None else id(part)
    if isinstance(part, np.ndarray):
        return part.__array_interface__["data"][0], part.shape, part.dtype.str, part.strides
    if isinstance(part, tuple):
        return tuple(map(_key, part))
    return part
