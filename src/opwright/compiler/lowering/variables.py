"""Variables and states of random generators: READ_VARIABLE, ASSIGN_VARIABLE, CALL_ONCE.

Lives here: their rules; `ResourceState`, memory that persists from run to run; the operations `Reading` and
`Assignment`,
and `with_stores`, which replaces those of one plan by views at its start and Stores at its end.
Not here: resources, which the graph's owner has; in-place computation of stored values (../loops/plan_memory.py).

After an assignment, a variable is the assigned buffer, so that no read within a plan waits for memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...core.dtypes import uint64
from ...graph import Node, Value
from ..loops.buffers import Buffer, SameMemory
from ..loops.ops import LoopOp, Store, View
from .context import LoweringContext, NoLowering
from .registry import rule
from .type_conversion import check_whole_bytes


class ResourceState(Protocol):
    """Resources of a graph: variables by the values of their handles, generator states by node."""

    def variable(self, handle: Value) -> tuple[str, Hashable] | None:
        """Return the name of a handle's memory and the variable, or None if it is determined at run time."""

    def sequence(self, node: Node, seeds: tuple[int, int]) -> tuple[str, Hashable]:
        """Return the name of the memory and the resource of a node's random numbers."""


@dataclass(frozen=True, eq=False)
class Reading(LoopOp):
    """The value of a variable at this point of the plan."""

    variable: Buffer


@dataclass(frozen=True, eq=False)
class Assignment(LoopOp):
    """An assignment of a variable. output: a placeholder without readers."""

    input: Buffer
    variable: Buffer


def with_stores(ops: Sequence[LoopOp]) -> tuple[list[LoopOp], list[Buffer], list[Buffer]]:
    """Return a plan's operations with views for reads and Stores at the end; the variables; their values afterwards."""
    lowered: list[LoopOp] = []
    variables: dict[int, Buffer] = {}
    now: dict[int, Assignment] = {}
    for op in ops:
        if isinstance(op, Reading | Assignment):
            variables[id(op.variable)] = op.variable
        if isinstance(op, Assignment):
            now[id(op.variable)] = op
        elif isinstance(op, Reading):
            last = now.get(id(op.variable))
            lowered.append(View(op.output, op.variable if last is None else last.input, origin=op.origin))
        else:
            lowered.append(op)
    after: list[Buffer] = []
    for key, op in now.items():
        v = variables[key]
        after.append(SameMemory(v.name, v.dtype, v.shape, of=v))
        lowered.append(Store(after[-1], op.input, origin=op.origin))
    return lowered, list(variables.values()), after


def sequence_of(ctx: LoweringContext, seeds: tuple[int, int]) -> Buffer:
    """Return the memory of the node's random generator. Raises NoLowering if sizes are assumed."""
    name, resource = _resources(ctx).sequence(ctx.node.node, seeds)
    memory = Buffer(name, uint64, (3,))
    ctx.buffers.state[resource] = memory, None
    return memory


def _resources(ctx: LoweringContext) -> ResourceState:
    if ctx.buffers.seen is not None or ctx.buffers.resources is None:  # plans of assumed sizes bind tensors alone
        raise NoLowering("it has state, and sizes that are known at run time only")
    return ctx.buffers.resources


def _variable_of(ctx: LoweringContext, value: Buffer, assigned: bool = False) -> Buffer:
    """Return the memory of the variable whose handle is the first input, for values like this one.

    raises NoLowering if the handle is known at run time only, or other nodes read or assign values of another type or
    shape
    """
    handle: Any = ctx.node.inputs[0] if ctx.node.inputs else None
    if handle is None:
        raise NoLowering("input 0 is omitted")
    variable_of_handle = _resources(ctx).variable(handle)
    if variable_of_handle is None:
        raise NoLowering(f"the variable of {handle!r} is unknown before a run")
    name, variable = variable_of_handle
    memory, shape = ctx.buffers.state.get(variable, (None, None))
    if memory is None:
        memory = Buffer(name, value.dtype, value.shape)
    if memory.dtype is not value.dtype or memory.size != value.size:
        raise NoLowering(f"{variable!r} is {memory} elsewhere")
    if assigned and shape not in (None, value.shape):
        raise NoLowering(f"{variable!r} gets the shape {list(shape or ())} elsewhere")
    ctx.buffers.state[variable] = memory, value.shape if assigned else shape
    return memory


@rule("READ_VARIABLE")
def read(ctx: LoweringContext) -> None:
    y = ctx.output()
    check_whole_bytes(y)
    ctx.add(Reading, y.buffer, _variable_of(ctx, y.buffer))


@rule("ASSIGN_VARIABLE")
def assign(ctx: LoweringContext) -> None:
    x = ctx.operand(1)
    check_whole_bytes(x)
    variable = _variable_of(ctx, x.buffer, assigned=True)
    ctx.add(Assignment, Buffer(f"{variable.name}.after", x.dtype, x.shape), x.buffer, variable)


@rule("CALL_ONCE")
def call_once(ctx: LoweringContext) -> None:
    """Add no operation: the caller runs the subgraph before the plan."""
