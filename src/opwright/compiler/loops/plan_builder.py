"""The builder of plans: collects the steps that selectors emit for each operation.

Lives here: `Builder`.
Not here: the order of operations and the memory of buffers (planner.py), selectors (../kernels/).

Addresses stay symbolic until all operations are planned: a selector requests the word of a buffer, and the planner
resolves it to the arena, a constant or external memory at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import uint8
from ...core.errors import InternalError
from ..kernels import select
from ..tuning.choices import Choice, choose
from .buffers import Buffer
from .control_flow import Jump
from .ops import LoopOp
from .plans import JUMP, Address, Fill, JumpCode, KernelCode, KernelStep, PackedConstant, Strands, Views


class Share(NamedTuple):
    """Permission to write an operation's output over one of its operands."""

    position: int
    operand: Buffer
    output: Buffer


class Mark(NamedTuple):
    """The state of a builder, to rewind to."""

    steps: int
    constants: int
    shares: int


class Builder:
    """The steps of a loop graph's operations; selectors receive one with the operation.

    copied: bytes of the arrays that the graph's updates copy if they have later readers or are inputs. root: returns
    the buffer that contains a buffer, and its first byte there.
    """

    def __init__(self, copied: int = 0, root: Callable[[Buffer], tuple[Buffer, int]] = lambda x: (x, 0)) -> None:
        self.copied, self._root = copied, root
        self.steps: list[KernelStep] = []
        self.constants: list[PackedConstant] = []
        self.shares: list[Share] = []
        self._by_key: dict[Any, PackedConstant] = {}
        self._derived: dict[Hashable, tuple[Any, int]] = {}  # and the number of steps after its own
        self._op: LoopOp | None = None
        self._position = -1
        self._strand, self._in_part = 0, False

    def pointer(self, buffer: Buffer, offset: int = 0) -> Address:
        """Return the address of a buffer's element `offset`; a slice starts within its parent (see buffer.pitch).

        raises InternalError for a constant that is not contiguous
        """
        if buffer.constant is not None and not buffer.constant.flags.c_contiguous:
            raise InternalError(
                op="loop graph",
                what=f"the constant {buffer!r} is read in place but not contiguous",
                found=buffer.constant.strides,
            )
        return Address(buffer, offset * buffer.dtype.size)

    def constant(self, array: np.ndarray, key: Any = None) -> Address:
        """Return the address of a copy of the array in the plan's block of constants, 64-byte aligned."""
        return self.packed(array.shape, array.dtype, lambda out: np.copyto(out, array), key)

    def packed(
        self, shape: Sequence[int], dtype: Any, fill: Fill, key: Any = None, numbers: Views | None = None
    ) -> Address:
        """Return the address of an array in the block of constants, which `fill(out)` writes later, into zeroed memory.

        key: equal keys mean equal elements, which are stored once; it may contain arrays, identified by their memory.
        numbers: `numbers(out)` returns views of the parts that are numbers of their dtypes; the others are bytes.
        Without it, all elements are numbers.
        """
        full_key = None if key is None else _key((key, tuple(shape), np.dtype(dtype).str))
        constant = self._by_key.get(full_key) if full_key is not None else None
        if constant is None:
            constant = PackedConstant(tuple(shape), np.dtype(dtype), fill, full_key, numbers)
            self.constants.append(constant)
            if full_key is not None:
                self._by_key[full_key] = constant
        return Address(constant)

    def temporary(self, nbytes: int) -> Address:
        """Return memory that all steps of this operation share exclusively."""
        return Address(Buffer("temporary", uint8, (nbytes,)))

    def derived(self, key: Hashable, of: Buffer, add: Callable[[], Any]) -> Any:
        """Return the result of `add`, which adds steps that write temporary memory from a buffer alone.

        Later operations that ask with an equal key for the same elements share it, as long as no jump is between.
        """
        if self._in_part:  # parts may run on another thread
            return add()
        buffer, offset = self._root(of)
        full_key = key, id(buffer), offset
        if full_key not in self._derived:
            self._derived[full_key] = add(), len(self.steps)
        return self._derived[full_key][0]

    def choose(self, choice: Choice, alternatives: Sequence[int], default: int, *sizes: int) -> int:
        """Return the alternative to use, by measurement. Parts of an operation use the default, which decisions about
        partial execution rely on."""
        assert self._op is not None
        return default if self._in_part else choose(choice, alternatives, default, (self._op,), *sizes)

    def share(self, operand: Buffer) -> None:
        """Permit writing this operation's output over the operand, if it has no later readers: each item reads an
        element before it writes that position, and reads no position that another item writes."""
        assert self._op is not None
        if not self._in_part:  # otherwise other parts may read that position
            self.shares.append(Share(self._position, operand, self._op.output))

    def step(
        self, code: KernelCode, words: Sequence[Any], items: int, scratch: int = 0, chunk: int | None = None
    ) -> None:
        """Add a step: `code` over [0, items). words: addresses, ints and floats, one per parameter.

        scratch: bytes per thread. chunk: items that a thread takes at a time, to override the executor's choice.
        """
        if items > 0:
            self.steps.append(
                KernelStep(code, tuple(words), items, scratch, chunk, self._position, self._op, strand=self._strand)
            )

    def strands(self, number: int, make_strand: Callable[[int], None]) -> None:
        """Add independent sequences of steps, each executed by one thread. make_strand: adds the steps of one by
        `part`."""
        head = len(self.steps)
        self.steps.append(KernelStep(Strands(), (), number, 0, 1, self._position, None))
        try:
            for self._strand in range(number):
                make_strand(self._strand)
        finally:
            self._strand = 0
        self.steps[head] = self.steps[head]._replace(covers=len(self.steps) - head - 1)

    def jump(self, op: Jump) -> int:
        """Add a jump, whose target `land` sets; return the index of its step."""
        selector = op.selector
        words: list[Any] = [0, 0] if selector is None else [self.pointer(selector), selector.dtype.size]
        step = KernelStep(JumpCode(), (*words, op.value, 0), 0, 0, 0, self._position, op, covers=JUMP)
        self.steps.append(step)
        self._derived.clear()
        return len(self.steps) - 1

    def land(self, jump: int, target: int) -> None:
        """Set the target of a jump: the index of a step, or the number of all."""
        self.steps[jump] = self.steps[jump]._replace(strand=target - jump)
        self._derived.clear()

    def part(self, op: LoopOp) -> None:
        """Add the steps of an operation that computes part of the current one, by its own selectors. Raises
        NoKernel."""
        outer, self._op, self._in_part = self._op, op, True
        try:
            select(op, self)
        finally:
            self._op, self._in_part = outer, False

    def mark(self) -> Mark:
        """Return the current state, to rewind to."""
        return Mark(len(self.steps), len(self.constants), len(self.shares))

    def rewind(self, mark: Mark) -> None:
        """Remove everything added after the mark."""
        del self.steps[mark.steps :], self.shares[mark.shares :]
        self._derived = {key: entry for key, entry in self._derived.items() if entry[1] <= mark.steps}
        for constant in self.constants[mark.constants :]:
            self._by_key.pop(constant.key, None)
        del self.constants[mark.constants :]

    def reorder(self, places: Mapping[int, int]) -> None:
        """Move operations, with their steps, to other positions. No jump leads across an operation that moves."""
        self.steps = sorted(
            (step._replace(position=places[step.position]) for step in self.steps), key=lambda step: step.position
        )
        self.shares = [share._replace(position=places[share.position]) for share in self.shares]

    def commit(self, position: int) -> None:
        """Let no signal stop the plan from the operation at a position on."""
        self.steps = [step._replace(committed=step.position >= position) for step in self.steps]

    def begin(self, position: int, op: LoopOp) -> None:
        """Set the operation to which the following steps belong."""
        self._position, self._op = position, op


def _key(part: Any) -> Hashable:
    """Return a key with arrays replaced by their addresses, and buffers by their constants."""
    if isinstance(part, Buffer):
        part = part.constant if part.constant is not None else id(part)
    if isinstance(part, np.ndarray):
        return part.__array_interface__["data"][0], part.shape, part.dtype.str, part.strides
    if isinstance(part, tuple):
        return tuple(map(_key, part))
    key: Hashable = part
    return key
