"""Branches and loops whose results' shapes a run decides, as loop operations for one way through
the branches, one number of iterations.

Lives here: `num_ways`, `set_shapes`, `lower_branch`, `lower_iterations`.
Not here: branches and loops whose results have known shapes (whole_graphs.py), the choice of the number
(aot/run_sizes.py).

A graph is for one number: that of the way through the branches, with those in branches, or of the iterations. A guard
ahead of each branch and of each iteration tells the number that the run has, as far as it is known there, and stops the
graph if it is another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...compiler.loops.buffers import Buffer
from ...compiler.loops.expressions import Expr, arg, const
from ...compiler.loops.indexing_ops import ExpectedNumber
from ...compiler.loops.ops import LoopOp, Map, View, slice_copy
from ...compiler.lowering.context import LoweringContext, RuleOperand
from ...compiler.lowering.operand_expressions import truth
from ...core.dtypes import int64, uint8
from ...core.errors import UnimplementedError
from ..runtime.node import Node
from ..runtime.subgraph import Subgraph
from ..runtime.subgraph_calls import Callee
from ..runtime.tensor import ARENA, DYNAMIC, Tensor
from ..runtime.while_loop import LoopState
from .counted_rows import NO_NUMBERS, RunNumber, RunNumbers


class BlockLowering(Protocol):
    """Returns the operations of a prepared subgraph, and its results, None for handles."""

    def __call__(
        self,
        subgraph: Subgraph,
        operands: Sequence[RuleOperand | None],
        ctx: LoweringContext,
        numbers: RunNumbers = NO_NUMBERS,
    ) -> tuple[list[LoopOp], list[Buffer | None]]: ...


BRANCHES = ("IF", "STABLEHLO_CASE")


class _Branch(NamedTuple):
    """A branch, prepared for its inputs, with the numbers of the ways through it. inner: the node in it which has
    branches whose results' shapes differ, too, and its first such result; first: its least number; ways: how many."""

    callee: Callee
    inner: tuple[Node, Tensor] | None
    first: int
    ways: int


def _branches(node: Node) -> list[_Branch]:
    """Return the branches of a prepared node. Raises OpErrors of their nodes."""
    branches: list[_Branch] = []
    for callee in node.user_data:
        callee.subgraph.accepted = None  # whose shapes may be those of another way
        callee.accept()
        found = [(n, t) for n in callee.subgraph.execution_plan if (t := _decided(n)) is not None]
        inner = found[0] if found else None
        ways = 1 if inner is None else num_ways(inner[0])
        branches.append(_Branch(callee, inner, sum(b.ways for b in branches), ways))
    return branches


def _decided(node: Node) -> Tensor | None:
    if node.name not in BRANCHES or any(x is not None and x.kind == DYNAMIC for x in node.tensors_in):
        return None
    return next((t for t in node.tensors_out if t.kind == DYNAMIC), None)


def num_ways(node: Node) -> int:
    """Return the number of ways through a prepared node: branches, and branches in these."""
    return sum(b.ways for b in _branches(node))


def set_shapes(node: Node, number: int) -> None:
    """Give the results of a prepared node the shapes that they have after one way, or a number of iterations. Raises
    OpErrors of nodes that do not accept these."""
    loop = node.user_data
    if isinstance(loop, LoopState):
        shapes = [t.shape for t in loop.inputs]
        for _ in range(number):
            loop.accept_shapes(loop.body, shapes)
            shapes = _shapes(loop.body)
    else:
        shapes = _shapes(_way(node, number)[1].callee.subgraph)
    for t, shape in zip(node.tensors_out, shapes):
        if t.kind == DYNAMIC:
            t.set_kind(ARENA)
            t.set_shape(shape)


def _way(node: Node, number: int) -> tuple[list[_Branch], _Branch]:
    """Return the branches of a node, and that of a way, prepared for it."""
    branches = _branches(node)
    way = next(b for b in branches if number < b.first + b.ways)
    if way.inner is not None:
        inner, subgraph = way.inner[0], way.callee.subgraph

        def prepare(node: Node) -> None:
            subgraph.prepare(node)
            if node is inner:
                set_shapes(inner, number - way.first)

        subgraph.prepare_all(subgraph.execution_plan, prepare)
    return branches, way


def lower_branch(block: BlockLowering, node: Node, ctx: LoweringContext, decided: RunNumber, count: Buffer) -> None:
    """Add the operations of one way through branches, after a guard that it is the one which is taken."""
    number, offset = decided.number, decided.offset
    assert number is not None
    selector = ctx.operand(0)
    branches, way = _way(node, number)
    which = arg(0, selector.dtype)
    *others, last = (offset + (number if b is way else b.first) for b in branches)
    taken = const(last, int64)
    for n, other in reversed([*enumerate(others)]):  # the first branch of IF if it is true
        is_taken = which if selector.dtype.is_bool else truth("equal", which, const(n, which.dtype))
        taken = Expr("select", int64, (is_taken, const(other, int64), taken))
    _guard(ctx, selector.buffer, taken, count)
    inner = NO_NUMBERS
    if way.inner is not None:
        inner = {way.inner[1].index: RunNumber(number - way.first, way.ways - 1, offset + way.first, count)}
    operands = [_operand(ctx, t) for t in way.callee.inputs]
    add_results(ctx, *block(way.callee.subgraph, operands, ctx, inner))


def lower_iterations(block: BlockLowering, node: Node, ctx: LoweringContext, decided: RunNumber, count: Buffer) -> None:
    """Add the operations of a number of iterations, one after the other. A guard ahead of each, and after the last,
    tells how many a run has."""
    loop: LoopState = node.user_data
    number = decided.number or 0
    variables = [_operand(ctx, t) for t in loop.inputs]
    for done in range(number + 1):
        shapes = [t.shape if x is None else x.shape for t, x in zip(loop.inputs, variables)]
        loop.accept_shapes(loop.cond, shapes)
        ops, (condition,) = block(loop.cond, variables, ctx)
        ctx.ops += ops
        assert condition is not None
        if_true, if_false = const(max(done + 1, number), int64), const(done, int64)
        _guard(ctx, condition, Expr("select", int64, (arg(0, condition.dtype), if_true, if_false)), count)
        if done < number:
            loop.accept_shapes(loop.body, shapes)
            ops, values = block(loop.body, variables, ctx)
            ctx.ops += ops
            variables = [None if x is None or y is None else x.with_buffer(y) for x, y in zip(variables, values)]
    add_results(ctx, [], [None if x is None else x.buffer for x in variables])


def _guard(ctx: LoweringContext, source: Buffer, number: Expr, count: Buffer) -> None:
    """Add a guard that a number, computed from one element, is the expected one."""
    value = ctx.new(int64, ())
    ctx.add(Map, value, (ctx.viewed(source, ()),), number)
    ctx.add(ExpectedNumber, ctx.new(uint8, (1,)), value, count)


def _operand(ctx: LoweringContext, t: Tensor) -> RuleOperand | None:
    return None if t.is_object else ctx.buffers.at(t.index)  # type: ignore[attr-defined]


def add_results(ctx: LoweringContext, ops: Sequence[LoopOp], results: Sequence[Buffer | None]) -> None:
    """Add operations and let the results of the node be theirs."""
    ctx.ops += ops
    for i, x in enumerate(results):
        if x is not None:
            y = ctx.output(x.shape, i).buffer
            ctx.ops.append(slice_copy(x, y, ctx.origin) if x.constant is not None else View(y, x, origin=ctx.origin))


def _shapes(subgraph: Subgraph) -> list[tuple[int, ...]]:
    """Return the shapes of the results of a prepared subgraph. Raises UnimplementedError if its own values decide
    them."""
    outputs = [subgraph.tensors[i] for i in subgraph.outputs]
    unknown = [t.short() for t in outputs if t.kind == DYNAMIC]
    if unknown:
        raise UnimplementedError(
            what=f"values in subgraph {subgraph.index} {subgraph.name!r} decide the shapes of its results",
            found=unknown,
            do="the nodes that decide them ahead of the branch or the loop",
        )
    return [t.shape for t in outputs]
