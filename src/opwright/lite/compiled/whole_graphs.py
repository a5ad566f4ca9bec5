"""Whole subgraphs as loop graphs, for plans without an interpreter: every node is lowered, with the subgraphs it runs.

Lives here: `whole_graph`, `WholeGraph`; `SubgraphCalls`, the lowering of IF, WHILE, CALL, STABLEHLO_CASE and of
composites with effects.
Not here: rows that operators count (counted_rows.py), branches and loops whose results' shapes a run decides
(decided_control_flow.py), plans of partitions (partition_plans.py), control flow of the
loop graph (compiler/loops/control_flow.py).

A branch or a loop that writes variables or draws random numbers is a function of their values, as functions of the
catalogue are (compiler/functional_control_flow.py): the node reads them before, and assigns the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...compiler.loops.buffers import Buffer
from ...compiler.loops.control_flow import OpBlock, Switch, WhileLoop, Yielded
from ...compiler.loops.graph import LoopGraph
from ...compiler.loops.ops import LoopOp, View, slice_copy
from ...compiler.lowering.context import LoweringContext, NoLowering, RuleOperand
from ...compiler.lowering.stateful import Assignment, Reading, with_stores
from ...core.dtypes import uint8
from ...core.errors import UnimplementedError
from ..runtime.dynamic_shapes import is_folded
from ..runtime.node import Node
from ..runtime.resources import ResourceVariable
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import DYNAMIC, Tensor
from ..runtime.while_loop import LoopState
from .counted_rows import NO_NUMBERS, CountingBuffers, RunNumbers, empty_results
from .decided_control_flow import add_results, lower_branch, lower_iterations
from .partition_plans import PartitionPlanner, TensorBuffers, claim, is_caller

_BOUND_SIZES = "bounds of the elements of inputs that sizes or axes follow from: 'INPUT[0]=1..8'"

Variable = ResourceVariable | Tensor
"""Memory that persists from run to run: a resource, or a variable tensor of the subgraph."""


class WholeGraph(NamedTuple):
    """The loop graph of a subgraph. Its inputs are those of the subgraph in order, then variables, which operations
    update in place; its outputs begin with those of the subgraph. variables: in the order of their inputs; read:
    those whose values before the run matter; written: resources that operations assign; counts: memory of the numbers
    of rows that operations count, by tensor, in the order of the last inputs."""

    graph: LoopGraph
    variables: tuple[Variable, ...]
    read: frozenset[Variable]
    written: frozenset[Variable]
    counts: dict[int, Buffer]


def whole_graph(planner: PartitionPlanner, subgraph: Subgraph, numbers: RunNumbers = NO_NUMBERS) -> WholeGraph:
    """Return the loop graph of all nodes of a prepared subgraph.

    numbers: decided by a run, by tensor: of rows that operators count, of the branch that is taken, of
    iterations. raises UnimplementedError that lists the nodes which no rule lowers
    """
    name = subgraph.name or "model"
    calls = SubgraphCalls(planner)
    ops, buffers, missing = calls.lowered(subgraph, numbers=numbers)
    if missing:
        is_open = any("unknown before a run" in why or "is not a constant" in why for why in missing.values())
        raise UnimplementedError(
            op=name,
            what=f"{len(missing)} nodes have no machine code",
            found="; ".join(missing.values()),
            do=_BOUND_SIZES if is_open else None,
        )
    tensors = [t for t in subgraph.tensors if t.is_variable and buffers.graph.has(t.index)]
    for t in (*(subgraph.tensors[i] for i in (*subgraph.inputs, *subgraph.outputs)), *tensors):
        if t.is_object:
            raise UnimplementedError(op=name, what="strings and handles have no machine code", found=repr(t))
    inputs = [_input_at(buffers, subgraph, i) for i in subgraph.inputs]
    own = [buffers.at(t.index).buffer for t in tensors]
    used = {id(op.variable): op for op in ops if isinstance(op, Reading | Assignment)}
    resources = [(v, b) for v, (b, _) in buffers.state.items() if id(b) in used]
    taken = {id(b) for b in (*inputs, *own, *(b for _, b in resources))}
    outputs: list[Buffer] = []
    for position, i in enumerate(subgraph.outputs):
        buffer = _buffer_at(buffers, subgraph, i)
        if buffer.constant is not None or id(buffer) in taken:  # a copy is the caller's
            source, buffer = buffer, Buffer(f"{buffer.name}.output{position}", buffer.dtype, buffer.shape)
            ops.append(slice_copy(source, buffer, (f"output {position}",)))
        taken.add(id(buffer))
        outputs.append(buffer)
    read = {*tensors, *(v for v, b in resources if _is_read_first(ops, b))}
    assigned = {id(op.variable) for op in ops if isinstance(op, Assignment)}
    written = frozenset(v for v, b in resources if id(b) in assigned)
    ops, _, after = with_stores(ops)
    variables = [b for _, b in resources]
    graph = LoopGraph(name, (*inputs, *own, *variables, *buffers.counts.values()), (*outputs, *after), tuple(ops))
    return WholeGraph(graph, (*tensors, *(v for v, _ in resources)), frozenset(read), written, buffers.counts)


def _is_read_first(ops: Sequence[LoopOp], memory: Buffer) -> bool:
    first = next(op for op in ops if isinstance(op, Reading | Assignment) and op.variable is memory)
    return isinstance(first, Reading)


def _input_at(buffers: TensorBuffers, subgraph: Subgraph, index: int) -> Buffer:
    """Return the buffer of an input; of one whose elements are assumed, one that no operation reads."""
    t = subgraph.tensors[index]
    if t.constant is not None:
        return Buffer(f"t{index}.input", t.dtype, t.shape)
    return _buffer_at(buffers, subgraph, index)


def _buffer_at(buffers: TensorBuffers, subgraph: Subgraph, index: int) -> Buffer:
    """Return the buffer of a tensor, also of one that no node reads or writes."""
    if buffers.graph.has(index):
        return buffers.at(index).buffer
    t = subgraph.tensors[index]
    constant = t.constant
    elements = None if constant is None else np.ascontiguousarray(constant).reshape(t.shape)
    buffer = buffers.untouched.get(index)
    if buffer is None:
        buffer = buffers.untouched[index] = Buffer(f"t{index}", t.dtype, t.shape, elements)
    return buffer


class SubgraphCalls:
    """Lowers nodes that run subgraphs, and the subgraphs with them."""

    def __init__(self, planner: PartitionPlanner) -> None:
        self.planner = planner

    def lowered(
        self,
        subgraph: Subgraph,
        operands: Sequence[RuleOperand | None] = (),
        state: dict[Any, Any] | None = None,
        numbers: RunNumbers = NO_NUMBERS,
    ) -> tuple[list[LoopOp], TensorBuffers, dict[int, str]]:
        """Return the operations of a prepared subgraph's nodes, their buffers, and reasons of nodes without machine
        code. operands: of the inputs, None for handles; state: of the caller, by variable; numbers: as of
        `whole_graph`."""
        nodes = tuple(node.number for node in subgraph.execution_plan if not is_folded(node))
        graph = self.planner.loaded(subgraph).nodes(subgraph, nodes)
        buffers = CountingBuffers(graph, subgraph, numbers) if numbers else TensorBuffers(graph, subgraph)
        if state is not None:
            buffers.state = state
        for i, operand in zip(subgraph.inputs, operands):
            if operand is not None:
                buffers.place(i, operand.buffer)
        refused = self.planner.refused
        claimed = claim(subgraph.execution_plan, buffers, lambda t: t.kind != DYNAMIC, refused, calls=self.lower_node)
        missing = {
            n: f"{subgraph.nodes[n].name} {n}: {refused.get((subgraph.index, n))}" for n in nodes if n not in claimed
        }
        ops: list[LoopOp] = []
        for n in nodes:
            results = None
            node, own = subgraph.nodes[n], claimed[n].ops if n in claimed else ()
            if not (is_caller(node) or any(t.index in buffers.counts for t in node.tensors_out)):
                results = empty_results(LoweringContext(graph.node(n), buffers), own if n in claimed else None)
            if results is not None:
                ops += results
                missing.pop(n, None)
            else:
                ops += own
                ops += buffers.after(node) if isinstance(buffers, CountingBuffers) else ()
        return ops, buffers, missing

    def lower_node(self, node: Node, ctx: LoweringContext) -> None:
        """Add the operations of a node that runs subgraphs. Raises NoLowering."""
        decided = ctx.buffers.decided(node) if isinstance(ctx.buffers, CountingBuffers) else None
        if decided is not None:
            lower_decided = lower_iterations if isinstance(node.user_data, LoopState) else lower_branch
            lower_decided(self._block, node, ctx, *decided)
        elif isinstance(node.user_data, LoopState):
            self._lower_loop(node, node.user_data, ctx)
        elif isinstance(node.user_data, tuple) and node.user_data:
            self._lower_branches(node, node.user_data, ctx)
        else:
            raise NoLowering("its subgraphs are not prepared")

    def _lower_branches(self, node: Node, branches: Sequence[Any], ctx: LoweringContext) -> None:
        first = len(node.tensors_in) - len(branches[0].inputs)
        operands = [self._operand(ctx, t) for t in branches[0].inputs]
        if not first:  # a call
            branches[0].accept()
            add_results(ctx, *self._block(branches[0].subgraph, operands, ctx))
            return
        selector = ctx.operand(0)
        captured, parameters, inside = _parameters(operands)
        blocks = []
        for branch in branches:
            branch.accept()
            blocks.append(self._block(branch.subgraph, inside, ctx))
        state = _States(ctx, [ops for ops, _ in blocks])
        results = [None if t.is_object else ctx.output(index=i).buffer for i, t in enumerate(node.tensors_out)]
        kept = [i for i, y in enumerate(results) if y is not None]
        _add_control(
            ctx,
            Switch,
            [
                OpBlock(*state.block(ops, [_checked(values[i], results[i]) for i in kept], state.parameters))
                for ops, values in blocks
            ],
            ([results[i] for i in kept], state.results),
            (*captured, *state.captured),
            (*parameters, *state.all_parameters),
            selector=selector.buffer,
        )
        state.assign()

    def _lower_loop(self, node: Node, loop: LoopState, ctx: LoweringContext) -> None:
        if loop.changing:
            raise NoLowering(f"iterations change the shapes of variables {loop.changing}")
        operands = [self._operand(ctx, t) for t in loop.inputs]
        variables: list[RuleOperand | None] = [
            None if x is None else x.with_buffer(ctx.output(x.shape, i).buffer) for i, x in enumerate(operands)
        ]
        loop.accept(loop.cond)
        test = self._block(loop.cond, variables, ctx)
        loop.accept(loop.body)
        turn = self._block(loop.body, variables, ctx)
        state = _States(ctx, [test[0], turn[0]])
        if any(isinstance(op, Assignment) for op in test[0]):
            raise NoLowering("the condition writes a variable")
        kept = [i for i, x in enumerate(variables) if x is not None]
        results = [x.buffer for x in variables if x is not None]
        condition = test[1][0]
        assert condition is not None
        _add_control(
            ctx,
            WhileLoop,
            [
                OpBlock(state.block(test[0], [condition], state.results)[0], (condition,)),
                OpBlock(*state.block(turn[0], [_checked(turn[1][i], y) for i, y in zip(kept, results)], state.results)),
            ],
            (results, state.results),
            state.read_captured,
            state.read_parameters,
            initial=(*(x.buffer for x in operands if x is not None), *state.captured_written),
        )
        state.assign()

    def _operand(self, ctx: LoweringContext, t: Tensor) -> RuleOperand | None:
        """Return the operand of a tensor, None for a handle."""
        if t.is_object:
            return None
        assert isinstance(ctx.buffers, TensorBuffers)
        return ctx.buffers.at(t.index)

    def _block(
        self,
        subgraph: Subgraph,
        operands: Sequence[RuleOperand | None],
        ctx: LoweringContext,
        numbers: RunNumbers = NO_NUMBERS,
    ) -> tuple[list[LoopOp], list[Buffer | None]]:
        """Return the operations of a subgraph, and its results, None for handles. Raises NoLowering."""
        ops, buffers, missing = self.lowered(subgraph, operands, ctx.buffers.state, numbers)
        if missing:
            raise NoLowering(f"subgraph {subgraph.index}: {'; '.join(missing.values())}")
        if any(t.is_variable and buffers.graph.has(t.index) for t in subgraph.tensors):
            raise NoLowering(f"subgraph {subgraph.index} has variable tensors of its own")
        tensors = [subgraph.tensors[i] for i in subgraph.outputs]
        return ops, [None if t.is_object else _buffer_at(buffers, subgraph, t.index) for t in tensors]


def _checked(value: Buffer | None, result: Buffer | None) -> Buffer:
    """Return the value of a result in a block. Raises NoLowering if it is of another type."""
    if value is None or result is None or value.shape != result.shape or value.dtype is not result.dtype:
        raise NoLowering(f"{result!r} is {value!r} in a subgraph")
    return value


def _parameters(operands: Sequence[RuleOperand | None]) -> tuple[list[Buffer], list[Buffer], list[RuleOperand | None]]:
    """Return the captured buffers, their parameters, and the operands as blocks read them: constants themselves."""
    captured: list[Buffer] = []
    parameters: list[Buffer] = []
    inside: list[RuleOperand | None] = []
    for x in operands:
        if x is not None and x.buffer.constant is None:
            captured.append(x.buffer)
            parameters.append(Buffer(x.buffer.name, x.dtype, x.shape))
            x = x.with_buffer(parameters[-1])
        inside.append(x)
    return captured, parameters, inside


def _add_control(
    ctx: LoweringContext,
    make: Any,
    blocks: Sequence[OpBlock],
    results: tuple[Sequence[Any], Sequence[Buffer]],
    captured: Sequence[Buffer],
    parameters: Sequence[Buffer],
    **named: Any,
) -> None:
    token = ctx.new(uint8, (0,))
    both = (*results[0], *results[1])
    ctx.add(make, token, tuple(blocks), both, tuple(captured), tuple(parameters), **named)
    for y in both:
        ctx.add(Yielded, y, token)


class _States:
    """The variables that blocks read and write, as values. blocks: their operations.

    captured: values before, of those written first; results: values after control flow of those written
    """

    def __init__(self, ctx: LoweringContext, blocks: Sequence[Sequence[LoopOp]]) -> None:
        self._ctx = ctx
        effects = [op for ops in blocks for op in ops if isinstance(op, Reading | Assignment)]
        written = {id(op.variable): op.variable for op in effects if isinstance(op, Assignment)}
        read = {id(op.variable): op.variable for op in effects if id(op.variable) not in written}
        self._written = list(written.values())
        self._read = list(read.values())

        def buffers(variables: Sequence[Buffer], when: str) -> list[Buffer]:
            return [ctx.new(v.dtype, v.shape, f".{v.name}.{when}") for v in variables]

        self.captured_written = buffers(self._written, "before")
        self.read_captured = buffers(self._read, "before")
        for variable, value in zip((*self._written, *self._read), (*self.captured_written, *self.read_captured)):
            ctx.add(Reading, value, variable)
        self.parameters = buffers(self._written, "present")
        self.read_parameters = buffers(self._read, "present")
        self.results = buffers(self._written, "after")
        self.captured = (*self.captured_written, *self.read_captured)
        self.all_parameters = (*self.parameters, *self.read_parameters)

    def block(
        self, ops: Sequence[LoopOp], values: Sequence[Buffer], present: Sequence[Buffer]
    ) -> tuple[tuple[LoopOp, ...], tuple[Buffer, ...]]:
        """Return the operations of a block without effects, and its results with the values of the variables it may
        write. present: their values at its start."""
        now = {id(v): b for v, b in zip(self._written, present)}
        now |= {id(v): b for v, b in zip(self._read, self.read_parameters)}
        pure: list[LoopOp] = []
        for op in ops:
            if isinstance(op, Reading):
                pure.append(View(op.output, now[id(op.variable)], origin=op.origin))
            elif isinstance(op, Assignment):
                now[id(op.variable)] = op.input
            else:
                pure.append(op)
        after = []
        for v in self._written:
            value = now[id(v)]
            if value.shape != v.shape:  # of as many elements
                value = self._ctx.viewed(value, v.shape) if value.constant is not None else self._view(pure, value, v)
            after.append(value)
        return tuple(pure), (*values, *after)

    def _view(self, ops: list[LoopOp], value: Buffer, variable: Buffer) -> Buffer:
        result = Buffer(f"{value.name}.{variable.name}", variable.dtype, variable.shape)
        ops.append(View(result, value, origin=self._ctx.origin))
        return result

    def assign(self) -> None:
        """Assign the results."""
        for variable, value in zip(self._written, self.results):
            after = Buffer(f"{variable.name}.after", variable.dtype, variable.shape)
            self._ctx.add(Assignment, after, value, variable)
