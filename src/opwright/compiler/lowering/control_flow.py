"""Control flow of the catalogue: branches and loops whose blocks compute arrays of static shapes.

Lives here: the rules of If, Case, While and Undefined; `lower_node`, the operations of one node of any graph.
Not here: the planning of blocks (../loops/control_flow.py), loops on single elements, which are one kernel
(scalar_loops.py), operators on lists (tensor_lists.py).

The nodes of a block are lowered by their own rules, on values of its own graph: a captured value is a parameter, a
variable of a loop is the buffer of the loop's result throughout. A block with effects, or with a node without a rule,
has no lowering.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...core.dtypes import int32, uint8
from ...graph import Graph, Node, Value
from ...graph.passes.control_flow import most_iterations
from ..inlined_kernels import own_kernel
from ..loops.buffers import Buffer
from ..loops.control_flow import OpBlock, Switch, WhileLoop, Yielded
from ..loops.expressions import const
from ..loops.graph import parents
from ..loops.ops import LoopOp, Map
from ..memory import ALIASES
from .context import Buffers, LoweringContext, NoLowering, RuleOperand
from .nodes import GraphNode, catalogue_operand
from .registry import rule
from .tensor_lists import MOST_BYTES, ListOperand, changes_in, element_shape_in, in_bounds, with_rows
from .type_conversion import lower_widened

MOST_APPENDED, MOST_APPENDED_BYTES = 1 << 16, 1 << 26
"""Elements and bytes for which a list has memory that grows in a loop of unknown length: a longer one fails a guard.
The memory of elements that are never written is not in use: it is of pages that the system has not provided."""


def lower_node(node: Node, buffers: Buffers, is_read: Callable[[Value], bool]) -> list[LoopOp]:
    """Return the operations of a node. is_read: whether a value has readers; each of those must be computed.

    raises NoLowering
    """
    if getattr(node.op, "cpu_kernels", False) and own_kernel(node.op) is None:
        raise NoLowering("it has a kernel of its own")
    ops = lower_widened(LoweringContext(GraphNode(node), buffers))
    computed = {id(b) for op in ops for b in (op.output, *parents(op.output))}
    if any(is_read(v) and v not in buffers.lists and id(buffers.of(v).buffer) not in computed for v in node.outputs):
        raise NoLowering("a result with readers is not computed")
    return ops


@rule("If", "Case")
def choose(ctx: LoweringContext) -> None:
    """Lower a choice between graphs of the same inputs, by a truth value or a number."""
    graphs: Sequence[Graph] = ctx.attr("branches") or (ctx.attr("then_branch"), ctx.attr("else_branch"))
    selector, operands = ctx.operand(0), _passed(ctx, 1)
    captured, parameters, inside = _parameters(ctx, operands)
    lowered = [_block(ctx, graph, inside) for graph in graphs]
    results: list[Passed] = []
    for i, value in enumerate(ctx.node.outputs):
        if value.dtype.is_handle:
            x = next((r for r in (block.results[i] for block in lowered) if isinstance(r, ListOperand)), None)
            if x is None or x.rows is None:
                raise NoLowering(f"{value.name!r} is a list of unknown type")
            results.append(_list_buffers(ctx, in_bounds(x)))
        else:
            results.append(ctx.output(index=i))
    blocks = tuple([block.checked(results) for block in lowered])
    token = ctx.new(uint8, (0,))
    ctx.add(Switch, token, blocks, _flat(results), captured, parameters, selector=selector.buffer)
    _yield(ctx, token, results)


@rule("While")
def loop(ctx: LoweringContext) -> None:
    """Lower a loop whose variables have static shapes; of a list that grows, memory for every iteration if there is
    a limit of their number."""
    variables, outside = _passed(ctx, 0), _passed(ctx, 1)
    cond, body = ctx.attr("cond"), ctx.attr("body")
    initial: list[Buffer | None] = []
    results: list[Passed] = []
    for i, x in enumerate(variables):
        if isinstance(x, ListOperand):
            x, starts = _variable_list(ctx, i, x)
            initial += starts
            results.append(_list_buffers(ctx, x))
        else:
            initial.append(x.buffer)
            results.append(ctx.output(x.shape, i))
    captured, parameters, inside = _parameters(ctx, outside)
    test, turn = (_block(ctx, graph, [*results, *inside]) for graph in (cond, body))
    blocks = OpBlock(test.ops, _flat(test.results)), turn.checked(results)
    token = ctx.new(uint8, (0,))
    ctx.add(WhileLoop, token, blocks, _flat(results), captured, parameters, initial=tuple(initial))
    _yield(ctx, token, results)


def _variable_list(ctx: LoweringContext, index: int, x: ListOperand) -> tuple[ListOperand, list[Buffer | None]]:
    """Return the type of a list that is a variable of a loop, and its initial buffers, None for any elements.

    raises NoLowering
    """
    body: Graph = ctx.attr("body")
    if x.shape is None:
        x = x._replace(shape=element_shape_in(body, body.inputs[index]))
    changes = changes_in(body, index)
    appends = changes["ListPush"]
    if not appends:
        x = with_rows(ctx, x)
        if (changes["ListPop"] or changes["ListResize"]) and x.size is None:
            x = x._replace(size=Buffer(f"{ctx.node.prefix}.size{index}", int32, (), np.array(x.length, np.int32)))
        return x, list(x.buffers)
    if x.size is not None and x.rows is not None:  # it has had more elements, as lists of gradients have
        return x, list(x.buffers)
    if x.length or x.size is not None or x.shape is None:
        raise NoLowering("a list grows that has elements before the loop, or elements of unknown shape")
    turns, item_bytes = most_iterations(ctx.node.node), max(1, math.prod(x.shape) * x.dtype.size)
    if turns is None:
        length = min(MOST_APPENDED, MOST_APPENDED_BYTES // item_bytes)
    else:
        length = max(1, turns * appends)  # kernels read from arrays with elements
    if length < appends or length * item_bytes > MOST_BYTES:
        raise NoLowering(f"a list of {turns or 'many'} elements of the shape {list(x.shape)}")
    rows, size = ctx.new(x.dtype, (length, *x.shape)), ctx.new(int32, ())
    start = Buffer(f"{size.name}.0", int32, (), np.zeros((), np.int32))
    return x._replace(length=length, bounded=turns is not None).with_buffers(rows, size), [None, start]


@rule("Undefined")
def undefined(ctx: LoweringContext) -> None:
    """Lower a value that is never read: its elements are zeros."""
    y = ctx.output().buffer
    ctx.add(Map, y, (), const(0, y.dtype))


Passed = RuleOperand | ListOperand
"""A value that control flow passes on."""


def _passed(ctx: LoweringContext, index: int) -> list[Passed]:
    """Return the values of a repeated input, lists with their elements in buffers."""
    values = ctx.node.inputs[index]
    assert isinstance(values, tuple)
    for v in values:
        if v.dtype.is_handle and v not in ctx.buffers.lists:
            raise NoLowering(f"elements of type {v.dtype.name}")
    return [ctx.buffers.lists[v] if v.dtype.is_handle else ctx.buffers.of(v) for v in values]


def _list_buffers(ctx: LoweringContext, x: ListOperand) -> ListOperand:
    """Return a list of the same type in buffers of its own."""
    return x.with_buffers(*(ctx.new(b.dtype, b.shape, f".list{i}") for i, b in enumerate(x.buffers)))


def _flat(values: Sequence[Passed]) -> tuple[Buffer, ...]:
    return tuple([b for x in values for b in (x.buffers if isinstance(x, ListOperand) else (x.buffer,))])


def _parameters(
    ctx: LoweringContext, operands: Sequence[Passed]
) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...], list[Passed]]:
    """Return the captured buffers, their parameters, and the operands as blocks read them: constants themselves, others
    under buffers of their own."""
    captured: list[Buffer] = []
    parameters: list[Buffer] = []

    def parameter(buffer: Buffer) -> Buffer:
        captured.append(buffer)
        parameters.append(Buffer(buffer.name, buffer.dtype, buffer.shape))
        return parameters[-1]

    inside: list[Passed] = []
    for x in operands:
        if isinstance(x, ListOperand):
            unset = x.rows is None and x.single is None
            inside.append(x if unset else x.with_buffers(*map(parameter, with_rows(ctx, x).buffers)))
        else:
            inside.append(x if x.is_constant else x.with_buffer(parameter(x.buffer)))
    return tuple(captured), tuple(parameters), inside


class _Lowered(NamedTuple):
    """A lowered graph. results: of its outputs."""

    ops: tuple[LoopOp, ...]
    results: list[Passed]

    def checked(self, results: Sequence[Passed]) -> OpBlock:
        """Return the block that writes the results of a node. Raises NoLowering if it has results of other types."""
        for x, y in zip(self.results, results, strict=True):
            if isinstance(x, ListOperand) != isinstance(y, ListOperand):
                raise NoLowering(f"{y!r} is {x!r} in a block")
            for a, b in zip(_flat([x]), _flat([y]), strict=True):
                if a.shape != b.shape or a.dtype is not b.dtype:
                    raise NoLowering(f"{b!r} is {a!r} in a block")
        return OpBlock(self.ops, _flat(self.results))


def _block(ctx: LoweringContext, graph: Graph, operands: Sequence[Passed]) -> _Lowered:
    """Return the operations of a graph on operands. Raises NoLowering that names the node without a rule."""
    buffers = Buffers(catalogue_operand)
    for value, operand in zip(graph.inputs, operands, strict=True):
        buffers.rename(value, operand)
    read = {v for node in graph.nodes for v in node.operands} | set(graph.outputs)
    ops: list[LoopOp] = []
    for node in graph.nodes:
        if node.op.name == "Const":
            continue
        try:
            if node.op.name in ALIASES:
                (value,) = node.operands
                buffers.rename(node.outputs[0], buffers.lists.get(value) or buffers.of(value))
                continue
            if node.effect is not None:
                raise NoLowering(f"it has effects ({node.effect})")
            ops += lower_node(node, buffers, read.__contains__)
        except NoLowering as why:
            raise NoLowering(f"{node.op.name} {node.name!r}: {why}") from None
    end = LoweringContext(ctx.node, buffers)
    results: list[Passed] = [
        with_rows(end, buffers.lists[v]) if v in buffers.lists else buffers.of(v) for v in graph.outputs
    ]
    return _Lowered((*ops, *end.ops), results)


def _yield(ctx: LoweringContext, token: Buffer, results: Sequence[Passed]) -> None:
    for y in _flat(results):
        ctx.add(Yielded, y, token)
    for value, x in zip(ctx.node.outputs, results):
        if isinstance(x, ListOperand):
            ctx.buffers.rename(value, x)
