"""Control flow of the loop graph: branches and loops whose blocks are operations, planned as steps with jumps.

Lives here: `Switch`, `WhileLoop`, their blocks and results; `plan_control_flow`, which plans the blocks one after the
other among the steps of the plan.
Not here: the rules of operators (../lowering/control_flow.py), the order and memory of other operations (planner.py),
the machine code of jumps (../native/executor.ll).

All blocks of a plan have one arena and one list of steps, so that lifetimes, in-place results and constants are those
of any plan. Three facts follow from the jumps instead of the order of steps:

    a buffer from before a loop that an iteration accesses lives until the end of the loop
    a result of a switch is written by each of its blocks, a result of a loop before it and at the end of each iteration
    the next value of a variable is computed in place if nothing reads the present one afterwards in the iteration
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple, Protocol

from ...core.records import record
from ..kernels import NoKernel
from .buffers import Buffer, SameMemory
from .ops import LoopOp, Store, slice_copy


class OpBlock(NamedTuple):
    """Operations that are executed together. results: buffers that they, or operations outside, write."""

    ops: tuple[LoopOp, ...]
    results: tuple[Buffer, ...]


@record
class BlockOp(LoopOp):
    """Blocks of operations, of which some are executed. output: an empty buffer, which `Yielded` operations read.

    results: the buffers that the blocks write, by the results of the blocks. captured: buffers from outside that blocks
    read, each under its own name in `parameters`.
    """

    blocks: tuple[OpBlock, ...]
    results: tuple[Buffer, ...]
    captured: tuple[Buffer, ...]
    parameters: tuple[Buffer, ...]

    @property
    def parameters_of_blocks(self) -> tuple[Buffer, ...]:
        """Buffers that blocks read and do not write."""
        return self.parameters

    def with_blocks(self, blocks: Sequence[OpBlock]) -> BlockOp:
        """Return the operation with other blocks."""
        return dataclasses.replace(self, blocks=tuple(blocks))


@record
class Switch(BlockOp):
    """The block whose number the selector, int32 or bool, has: block 0 of a bool is executed if it is true. Any other
    number executes the last block."""

    selector: Buffer = field(kw_only=True)

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The selector and the captured buffers."""
        return (self.selector, *self.captured)


@record
class WhileLoop(BlockOp):
    """Blocks (condition, body), executed in turn until the condition, a bool, is false. Both read the present values of
    the variables in `results`; initial: values before the first iteration, None for any."""

    initial: tuple[Buffer | None, ...] = field(kw_only=True)

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The initial values and the captured buffers."""
        return (*(b for b in self.initial if b is not None), *self.captured)

    @property
    def parameters_of_blocks(self) -> tuple[Buffer, ...]:
        """Parameters and variables."""
        return (*self.results, *self.parameters)


@record
class Yielded(LoopOp):
    """A result of control flow, which its blocks have written. input: the output of the operation."""

    input: Buffer


@record
class Jump(LoopOp):
    """A jump unless the selector equals `value`; without a selector, in any case. output: an empty buffer."""

    selector: Buffer | None
    value: int = 1


class Planning(Protocol):
    """The planner's state for control flow. position: of the next operation."""

    @property
    def position(self) -> int: ...

    def plan(self, ops: Sequence[LoopOp]) -> None:
        """Plan operations after all others."""

    def jump(self, op: Jump) -> int:
        """Plan a jump; return the index of its step."""
        ...

    def land(self, jump: int, target: int | None = None) -> None:
        """Set the target of a jump, by default the next step."""

    @property
    def next_step(self) -> int: ...

    def store(self, stores: Sequence[Store], first: int) -> None:
        """Write values, computed from the operation `first` on, to other buffers: in place or by copies."""

    def alias(self, buffer: Buffer, of: Buffer) -> None:
        """Let a buffer be another one."""

    def repeat(self, first: int) -> None:
        """Declare that the operations from `first` on are repeated."""


def plan_control_flow(op: BlockOp, planning: Planning) -> None:
    """Plan the blocks of an operation. Raises NoKernel."""
    for parameter, buffer in zip(op.parameters, op.captured, strict=True):
        if buffer.parent is not None:
            raise NoKernel(f"control flow on a slice: {buffer!r}")
        planning.alias(parameter, buffer)
    if isinstance(op, Switch):
        _plan_switch(op, planning)
    elif isinstance(op, WhileLoop):
        _plan_loop(op, planning)


def _plan_switch(op: Switch, planning: Planning) -> None:
    *others, last = range(len(op.blocks))
    ends = []
    for i in others:
        value = 1 - i if op.selector.dtype.is_bool else i
        past = planning.jump(Jump(op.output, op.selector, value, origin=op.origin))
        _plan_block(op, i, planning)
        ends.append(planning.jump(Jump(op.output, None, origin=op.origin)))
        planning.land(past)
    _plan_block(op, last, planning)
    for end in ends:
        planning.land(end)


def _plan_loop(op: WhileLoop, planning: Planning) -> None:
    planning.plan([slice_copy(x, v, op.origin) for v, x in zip(op.results, op.initial) if x is not None])
    first, start = planning.position, planning.next_step
    test = op.blocks[0]
    planning.plan(test.ops)
    end = planning.jump(Jump(op.output, test.results[0], origin=op.origin))
    _plan_block(op, 1, planning)
    planning.land(planning.jump(Jump(op.output, None, origin=op.origin)), start)
    planning.repeat(first)
    planning.land(end)


def _plan_block(op: BlockOp, index: int, planning: Planning) -> None:
    """Plan a block, and the stores of its results."""
    first, block = planning.position, op.blocks[index]
    planning.plan(block.ops)
    planning.store(
        [
            Store(SameMemory(result.name, result.dtype, result.shape, of=result), value, origin=op.origin)
            for result, value in zip(op.results, block.results, strict=True)
        ],
        first,
    )
