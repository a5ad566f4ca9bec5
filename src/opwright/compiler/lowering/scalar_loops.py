"""Loops of the catalogue as scalar programs: `While` nodes whose condition and body compute single elements only.

Lives here: `loop_of`: the program of a node, and how its inputs and outputs are passed.
Not here: programs (../loops/scalar_programs.py), the rules of operators, which are those of all nodes.

Each node of a body is lowered by its own rule; a map of single elements is an expression of them. Elements of
arrays from outside may be read. Nested `If`, `Case`
and `While` are steps of the program. A variable that is a list may be passed on, or grow by one element in each
iteration, as the loops do whose gradient is taken; lists from outside may be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, int64
from ...graph import Graph, Node, Value
from ...graph.ir import branch_inputs, loop_inputs
from ..kernels import NoKernel
from ..kernels.expression import check, tables
from ..loops.buffers import Buffer
from ..loops.expressions import Expr, arg, const, rewritten, substitute
from ..loops.indexing_ops import Gather
from ..loops.ops import Checked, LoopOp, Map, Move, Reduce, Reinterpret, View
from ..loops.scalar_programs import Append, Block, Choose, Compute, Guard, LoopProgram, ReadElement, Repeat, Step
from ..memory import ALIASES
from ..scalar_loops import APPENDED, ARRAY, ELEMENT, PASSED, READ, LoopInput
from .context import Buffers, LoweringContext, NoLowering
from .nodes import GraphNode, real_operand
from .registry import lower


class ScalarLoop(NamedTuple):
    """A loop as a program. inputs: of the node, in order, of which the first `outputs` are variables."""

    program: LoopProgram
    inputs: tuple[LoopInput, ...]
    outputs: int


def loop_of(node: Node) -> ScalarLoop:
    """Return a `While` node as a program. Raises NoLowering with the reason if it computes more than elements."""
    return _LoopReader(len(loop_inputs(node)[0])).loop(node)


class _LoopReader:
    """Reads one loop. variables: number of its variables, lists included."""

    def __init__(self, variables: int) -> None:
        self.variables = variables
        self.buffers = Buffers(real_operand)
        self.numbers: dict[int, int] = {}  # by identity of a buffer, the number of its value
        self.count = 0
        self.depth = 0
        self.lists: dict[Value, _List] = {}
        self.arrays: dict[int, _List] = {}  # by identity of a buffer
        self.appended: list[_List] = []
        self.read: list[_List] = []
        self.ops: list[LoopOp] = []  # so that identities of buffers stay unique

    def loop(self, node: Node) -> ScalarLoop:
        cond, body = node.attrs["cond"], node.attrs["body"]
        n = self.variables
        passed: list[Any] = []
        for i, v in enumerate(body.inputs):
            is_array = i >= n and not v.dtype.is_handle and self.buffers.of(v).size != 1
            passed.append(_List(i) if v.dtype.is_handle or is_array else self.fresh())
        dtypes = [v.dtype for v, p in zip(body.inputs, passed) if not isinstance(p, _List)]
        self.depth = 1
        test = self.bound(cond, passed)
        self.depth = 0
        turn = self.bound(body, passed)
        for i, v in enumerate(body.outputs):
            if v.dtype.is_handle and self.lists.get(v) is not passed[i].latest:
                raise NoLowering(f"the variable {v.name!r} is another list after an iteration")
        inputs = [
            LoopInput(*p.described()) if isinstance(p, _List) else LoopInput(ELEMENT, v.dtype.name, self.shape(v))
            for v, p in zip(body.inputs, passed)
        ]
        elements = [p for p in passed[:n] if not isinstance(p, _List)]
        program = LoopProgram(
            tuple(dtypes),
            len(elements),
            test,
            turn,
            tuple(x.element[0] for x in self.appended if x.element),
            tuple(x.element[0] for x in self.read if x.element),
        )
        return ScalarLoop(program, tuple(inputs), n)

    def fresh(self) -> int:
        self.count += 1
        return self.count - 1

    def shape(self, value: Value) -> tuple[int, ...]:
        return self.buffers.of(value).shape

    def buffer(self, value: Value) -> Buffer:
        """Return the buffer of a value of one element."""
        return _single(self.buffers.of(value).buffer)

    def bound(self, graph: Graph, passed: Sequence[Any]) -> Block:
        """Return a graph as a block. passed: the number or list of each input. The body returns its lists by itself."""
        for v, p in zip(graph.inputs, passed):
            if isinstance(p, _List) and v.dtype.is_handle:
                self.lists[v] = p
            elif isinstance(p, _List):
                self.arrays[id(self.buffers.of(v).buffer)] = p
            else:
                self.numbers[id(self.buffer(v))] = p
        steps: list[Step] = []
        for node in graph.nodes:
            self.node(node, steps)
        results = [v for v in graph.outputs if not (v.dtype.is_handle and self.depth == 0)]
        numbers = tuple([self.number(self.buffer(v), steps) for v in results])  # which may append constants
        return Block(tuple(steps), numbers)

    def number(self, buffer: Buffer, steps: list[Step]) -> int:
        """Return the number of an element; a constant is computed here."""
        if buffer.constant is not None:
            result = self.fresh()
            steps.append(Compute(result, _constant(buffer), ()))
            return result
        return self.numbers[id(buffer)]

    def passed(self, value: Value, steps: list[Step]) -> Any:
        if value.dtype.is_handle:
            return self.lists[value]
        return self.arrays.get(id(self.buffers.of(value).buffer)) or self.number(self.buffer(value), steps)

    def node(self, node: Node, steps: list[Step]) -> None:
        """Append the steps of one node."""
        name = node.op.name
        if name == "Const":
            return
        if name in ALIASES:
            (value,) = node.operands
            passed = self.passed(value, steps)
            if value.dtype.is_handle:
                self.lists[node.outputs[0]] = passed
            elif isinstance(passed, _List):
                self.arrays[id(self.buffers.of(node.outputs[0]).buffer)] = passed
            else:
                self.numbers[id(self.buffer(node.outputs[0]))] = passed
            return
        if node.op.catalogue and name in NODES:
            NODES[name](self, node, steps)
            return
        if node.effect is not None:
            raise NoLowering(f"{node.name!r} has effects ({node.effect})")
        if any(True for _ in node.subgraphs):
            raise NoLowering(f"{node.name!r} is control flow of {name}")
        try:
            for op in lower(LoweringContext(GraphNode(node), self.buffers)):
                self.operation(op, steps)
        except (NoLowering, NoKernel) as why:
            raise NoLowering(f"{name} {node.name!r}: {why}") from None

    def operation(self, op: LoopOp, steps: list[Step]) -> None:
        """Append the step of one operation."""
        self.ops.append(op)
        result = _single(op.output)
        if isinstance(op, Map):
            self.compute(result, op.expr, op.operands, steps)
        elif isinstance(op, Reduce):
            before = substitute(op.before, {0: arg(0, op.input.dtype)})
            self.compute(result, substitute(op.expr, {0: before}), (op.input,), steps)
        elif isinstance(op, Reinterpret):
            self.compute(result, Expr("bitcast", result.dtype, (arg(0, op.input.dtype),)), (op.input,), steps)
        elif isinstance(op, Gather) and len(op.input.shape) == 1:
            self.read_array(op.input, self.number(_single(op.indices), steps), result, steps)
        elif isinstance(op, Move) and len(op.operands) == 1 and id(op.operands[0]) in self.arrays:
            steps.append(Compute(self.fresh(), const(op.maps[0].offset, int64), ()))
            self.read_array(op.operands[0], self.count - 1, result, steps)
        elif isinstance(op, View | Checked) or (isinstance(op, Move) and _is_copy(op)):
            (source,) = op.inputs
            operand = self.number(_single(source), steps)
            if isinstance(op, Checked):
                steps.append(Guard(operand, op.refused, op.limit))
            self.numbers[id(result)] = operand
        else:
            raise NoLowering(f"{type(op).__name__} is not a function of single elements")

    def read_array(self, array: Buffer, at: int, result: Buffer, steps: list[Step]) -> None:
        """Append the read of an element of an array from outside. at: the value that is its index in a flat view."""
        source = self.arrays.get(id(array))
        if source is None:
            raise NoLowering(f"{array!r} changes in the loop")
        if source.position is None:
            source.add(ARRAY, self.read, array.dtype, array.shape)
        assert source.position is not None
        number = self.numbers[id(result)] = self.fresh()
        steps.append(ReadElement(number, source.position, at))

    def compute(self, result: Buffer, expr: Expr, operands: Sequence[Buffer], steps: list[Step]) -> None:
        """Append result = expr(operands), with constants in the expression."""
        if tables(expr):
            raise NoLowering("it looks up a table")
        check(expr)
        args: dict[int, Expr] = {}
        kept: list[int] = []
        for i, operand in enumerate(map(_single, operands)):
            if operand.constant is not None:
                args[i] = _constant(operand)
            else:
                args[i] = arg(len(kept), operand.dtype)
                kept.append(self.numbers[id(operand)])
        numbered = rewritten(
            expr, lambda e: args[e.value] if e.op == "arg" else const(e.value, e.dtype) if e.op == "scalar" else e
        )
        number = self.numbers[id(result)] = self.fresh()
        steps.append(Compute(number, numbered, tuple(kept)))

    # ---- control flow ---------------------------------------------------------------------------------------------

    def choose(self, node: Node, steps: list[Step]) -> None:
        """Append an `If` or a `Case`."""
        selector, operands = branch_inputs(node)
        graphs = node.attrs.get("branches") or (node.attrs["then_branch"], node.attrs["else_branch"])
        number = self.number(self.buffer(selector), steps)
        passed = [self.passed(v, steps) for v in operands]
        self.depth += 1
        arms = [self.bound(graph, passed) for graph in graphs]
        self.depth -= 1
        steps.append(Choose(number, tuple(arms), self.results(node)))

    def repeat(self, node: Node, steps: list[Step]) -> None:
        """Append a `While` inside the loop."""
        variables, captured = loop_inputs(node)
        initial = [self.number(self.buffer(v), steps) for v in variables]
        parameters = [self.fresh() for _ in initial]
        passed = [*parameters, *(self.passed(v, steps) for v in captured)]
        self.depth += 1
        cond, body = (self.bound(node.attrs[key], passed) for key in ("cond", "body"))
        self.depth -= 1
        steps.append(Repeat(tuple(initial), tuple(parameters), cond, body, self.results(node)))

    def results(self, node: Node) -> tuple[int, ...]:
        numbers = []
        for v in node.outputs:
            numbers.append(self.fresh())
            self.numbers[id(self.buffer(v))] = numbers[-1]
        return tuple(numbers)

    def undefined(self, node: Node, steps: list[Step]) -> None:
        """Append the placeholder of a value that is never read."""
        result = self.buffer(node.outputs[0])
        number = self.numbers[id(result)] = self.fresh()
        steps.append(Compute(number, const(0, result.dtype), ()))

    # ---- lists ----------------------------------------------------------------------------------------------------

    def push(self, node: Node, steps: list[Step]) -> None:
        """Append a `ListPush` to a variable."""
        source, item = node.inputs
        assert isinstance(source, Value)
        assert isinstance(item, Value)
        grown = self.lists[source]
        if self.depth or grown.input >= self.variables or grown.position is not None:
            raise NoLowering(f"{node.name!r} appends to a list in another way than once in each iteration")
        grown.add(APPENDED, self.appended, item.dtype, self.shape(item))
        steps.append(Append(len(self.appended) - 1, self.number(self.buffer(item), steps)))
        self.lists[node.outputs[0]] = grown.latest = _List(grown.input, APPENDED, grown.position)

    def get(self, node: Node, steps: list[Step]) -> None:
        """Append a `ListGet` from a list of outside."""
        source, index = node.inputs[:2]
        assert isinstance(source, Value)
        assert isinstance(index, Value)
        item = self.buffer(node.outputs[0])
        position = self.reading(source, item.dtype, item.shape, node)
        number = self.fresh()
        steps.append(ReadElement(number, position, self.number(self.buffer(index), steps)))
        self.numbers[id(item)] = number

    def reading(self, source: Value, dtype: DType, shape: tuple[int, ...], node: Node) -> int:
        """Return the position of a list among the lists that are read."""
        read = self.lists[source]
        if read.input < self.variables:
            raise NoLowering(f"{node.name!r} reads a list that changes")
        if read.position is None:
            read.add(READ, self.read, dtype, shape)
        elif read.element != (dtype, shape):
            raise NoLowering(f"{node.name!r} reads elements of another type")
        assert read.position is not None
        return read.position


class _List:
    """A list of a loop. input: of the loop; element: dtype and shape; position: among lists of its kind; latest: the
    list that it is at the end of an iteration."""

    def __init__(self, input: int, kind: str = PASSED, position: int | None = None) -> None:
        self.input, self.kind, self.position = input, kind, position
        self.element: tuple[DType, tuple[int, ...]] | None = None
        self.latest: _List = self

    def add(self, kind: str, lists: list[_List], dtype: DType, shape: tuple[int, ...]) -> None:
        """Become the next list of a kind. Raises NoLowering for elements that are not numbers."""
        if kind != ARRAY and (dtype.is_handle or np.prod(shape) != 1):
            raise NoLowering(f"a list of elements of {dtype.name}{list(shape)}")
        self.kind, self.position, self.element = kind, len(lists), (dtype, shape)
        lists.append(self)

    def described(self) -> tuple[str, str, tuple[int, ...]]:
        dtype, shape = self.element or (None, ())
        return self.kind, dtype.name if dtype else "", shape


NODES = {
    "If": _LoopReader.choose,
    "Case": _LoopReader.choose,
    "While": _LoopReader.repeat,
    "Undefined": _LoopReader.undefined,
    "ListPush": _LoopReader.push,
    "ListGet": _LoopReader.get,
}
"""Operators with steps of their own."""


def _single(buffer: Buffer) -> Buffer:
    """Return the buffer. Raises NoLowering unless it has one element of its own."""
    if buffer.size != 1 or buffer.parent is not None:
        raise NoLowering(f"{buffer!r} has {buffer.size} elements")
    return buffer


def _is_copy(op: Move) -> bool:
    """Return whether a move copies its one element."""
    return len(op.operands) == 1 and op.maps[0].offset == 0 and all(n == 1 for n in op.maps[0].extent)


def _constant(buffer: Buffer) -> Expr:
    assert buffer.constant is not None
    return const(buffer.constant.reshape(-1)[0].item(), buffer.dtype)
