"""Source code of plans: a graph as one Python function over its kernels.

Lives here: `Writer`.
Not here: plans (plan.py), reuse of memory (inplace.py), the order of lines (inplace.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from ..core import dtypes
from ..graph import Graph, Node, Value
from ..graph.ir import branch_inputs, loop_inputs
from .inplace import makes_own, own, own_like, reuse, shape_readers_first
from .memory import ALIASES, Lifetimes

T = TypeVar("T")

_NUMBERS = frozenset({dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64})
_FLOATS = frozenset({dtypes.float32, dtypes.float64})
_BOOLS = frozenset({dtypes.bool})
INFIX: dict[Any, tuple[str, frozenset[Any]]] = {  # Python's expression for a ufunc on scalars of these dtypes
    np.add: ("{} + {}", _NUMBERS),
    np.subtract: ("{} - {}", _NUMBERS),
    np.multiply: ("{} * {}", _NUMBERS),
    np.true_divide: ("{} / {}", _FLOATS),
    np.negative: ("-{}", _NUMBERS),
    np.less: ("{} < {}", _NUMBERS),
    np.less_equal: ("{} <= {}", _NUMBERS),
    np.greater: ("{} > {}", _NUMBERS),
    np.greater_equal: ("{} >= {}", _NUMBERS),
    np.equal: ("{} == {}", _NUMBERS | _BOOLS),
    np.not_equal: ("{} != {}", _NUMBERS | _BOOLS),
    np.logical_and: ("{} & {}", _BOOLS),
    np.logical_or: ("{} | {}", _BOOLS),
    np.logical_not: ("{} != true", _BOOLS),  # ~ of a NumPy scalar makes an array first
}
_EXACT = {  # casts by NumPy's scalar types, with one rounding at most
    (dtypes.int32, dtypes.int64),
    (dtypes.int32, dtypes.float32),
    (dtypes.int32, dtypes.float64),
    (dtypes.float32, dtypes.float64),
}
DEEPEST = 12  # CPython permits 20 nested loops and 100 levels of indentation


class Writer:
    """The source of a function `run`, its global names, and the node of each line.

    separate: builds a callable for a graph that is nested too deeply. wrap: applied to each kernel, with its node.
    inplace: whether results may be written into dying memory; never for wrapped kernels. source, consuming: the
    function of the inputs; and of one list of them, which it empties, so that each dies at its last use. Both differ in
    the first two lines only.
    """

    def __init__(
        self,
        graph: Graph,
        separate: Callable[[Graph], Callable[..., Any]],
        wrap: Callable[[Callable[..., Any], Node], Callable[..., Any]] | None = None,
        inplace: bool = True,
    ) -> None:
        self.scope: dict[str, Any] = {"true": np.True_, "own": own, "own_like": own_like}
        self._inplace = inplace and wrap is None
        self._made: set[str] = set()  # names of results of nodes, whose memory may be reused
        self.reused = 0  # number of lines
        self.node_of_line: dict[int, Node] = {}
        self._separate, self._wrap = separate, wrap
        self._lines: list[str] = []
        self._count = 0
        names: dict[Value, str] = {}
        for i, value in enumerate(graph.inputs):
            names[value] = f"x{i}"
        input_names = list(names.values())
        self._lines += [f"# {graph.name}", f"def run({', '.join(names.values())}):"]  # two lines: see `consuming`
        self._scalars: dict[str, str] = {}  # names of arrays of no dimensions -> of the same as NumPy's scalars
        if wrap is None:
            for name in sorted(names[v] for v in _read_as_scalars(graph, False) if v in names):
                self._scalars[name] = f"s{name}"
                self._line(1, f"s{name} = {name}[()]")
        self._block(graph, names, 1, set(names.values()))
        self._lines.append(f"    return ({''.join(f'{names[v]}, ' for v in graph.outputs)})")
        self.source = "\n".join(self._lines) + "\n"
        unpacked = "".join(f"{name}, " for name in input_names)
        self._lines[:2] = ["def consume(given):", f"    {unpacked}{'= ' if unpacked else ''}given; given.clear()"]
        self.consuming = "\n".join(self._lines) + "\n"

    def _line(self, depth: int, text: str, node: Node | None = None) -> None:
        self._lines.append("    " * depth + text)
        if node is not None:
            self.node_of_line[len(self._lines)] = node

    def _fresh(self) -> int:
        self._count += 1
        return self._count - 1

    def _block(self, graph: Graph, names: dict[Value, str], depth: int, own: set[str]) -> list[str]:
        """Write a graph's nodes. names: of its inputs, extended to all its values. own: names that may be dropped.

        Returns the block's own names that are alive at the end.
        """
        nodes = shape_readers_first(graph.nodes)
        reads: Lifetimes[Value] = Lifetimes()
        for i, node in enumerate(nodes):
            for value in node.operands:
                reads.touch(value, i)
        for value in graph.outputs:
            reads.touch(value, len(nodes))
        shared: dict[str, int] = {}  # number of values per own name, as aliases share names
        for value in graph.inputs:
            if names[value] in own:
                shared[names[value]] = shared.get(names[value], 0) + 1
        for i, node in enumerate(nodes):
            if node.op.name == "Const":
                name = f"c{self._fresh()}"
                self.scope[name] = node.attrs["value"]
                names[node.outputs[0]] = name
                continue
            if node.op.name in ALIASES:
                (value,) = node.operands
                names[node.outputs[0]] = names[value]
                if names[value] in shared:
                    shared[names[value]] += 1
            else:
                n = self._fresh()
                for value in node.outputs:
                    names[value] = f"t{n}" if value.index == 0 else f"t{n}_{value.index}"
                dying = self._drop(node.operands, names, shared, reads, i)
                dropped = self._node(node, n, names, depth, dying)
                for value in node.outputs:
                    shared[names[value]] = 1
                if makes_own(node):
                    self._made.update(names[v] for v in node.outputs)
                dead = dying - dropped | self._drop(node.outputs, names, shared, reads, i)
                if dead and (i + 1 < len(nodes) or depth > 1):
                    self._line(depth, f"del {', '.join(sorted(dead))}")
                continue
            dead = self._drop([*node.operands, *node.outputs], names, shared, reads, i)
            if dead and (i + 1 < len(nodes) or depth > 1):
                self._line(depth, f"del {', '.join(sorted(dead))}")
        return [name for name, count in shared.items() if count > 0]

    def _drop(
        self, values: Iterable[Value], names: dict[Value, str], shared: dict[str, int], reads: Lifetimes[Value], i: int
    ) -> set[str]:
        """Return the names of values that node i reads or computes and that have no later readers."""
        dead = set()
        for value in set(values):
            name = names[value]
            if name in shared and reads.is_dead_after(value, i):
                shared[name] -= 1
                if shared[name] == 0:
                    dead.add(name)
        return dead

    def _node(self, node: Node, n: int, names: dict[Value, str], depth: int, dying: set[str]) -> set[str]:
        """Write one node. dying: names that it is the last to read; returns the names dropped by its lines."""
        write = CONTROL.get(node.op.name)
        if write is not None:
            if depth > DEEPEST:
                inputs = list(dict.fromkeys(node.operands))
                self.scope[f"k{n}"] = self._separate(Graph(node.name, inputs, [node], node.outputs))
                targets = "".join(f"{names[v]}, " for v in node.outputs)
                arguments = ", ".join(names[v] for v in inputs)
                self._line(
                    depth, f"{targets + '= ' if targets else ''}k{n}({arguments})  # {node.op.name} {node.name}", node
                )
                return set()
            return write(self, node, names, depth, dying)
        op = node.op
        first = next(node.operands, None)
        infix = infix_of(node) if self._wrap is None else None
        if infix is not None:
            text = infix.format(*(self._scalar(names[v]) for v in node.operands))
            self._line(depth, f"{names[node.outputs[0]]} = {text}  # {op.name} {node.name}", node)
            return set()
        kernel = op.kernel(op.bind(dict(node.attrs)), None if first is None else first.dtype)
        if op.name == "Cast" and first is not None and _is_scalar(first):
            target = node.outputs[0].dtype
            kernel = target.np.type if (first.dtype, target) in _EXACT else kernel
        if any(v.dtype is dtypes.string and not v.spec.shape.rank for v in node.outputs):
            kernel = _boxing(kernel)
        self.scope[f"k{n}"] = kernel if self._wrap is None else self._wrap(kernel, node)
        arguments = ", ".join(_argument(o, names) for o in node.inputs)
        targets = ", ".join(names[v] for v in node.outputs) if op.profile.single else _targets(op, node, names)
        text = f"{targets + ' = ' if targets else ''}k{n}({arguments}"
        end = f"  # {op.name} {node.name}"
        reused = reuse(node, names, dying, self._made) if self._inplace else None
        if reused is None:
            self._line(depth, f"{text}){end}", node)
            return set()
        into, name = reused
        self.reused += 1
        self._line(depth, f"{text}, out={into}){end} into {name}", node)
        return set()

    def _scalar(self, name: str) -> str:
        """Return the name of the same value as a scalar, if it is a constant, or an argument read in loops."""
        scalar = self._scalars.get(name)
        if scalar is None:
            value = self.scope.get(name)
            if value is None:
                return name
            scalar = self._scalars[name] = f"s{name}"
            self.scope[scalar] = value[()]
        return scalar

    def _branch(
        self,
        node: Node,
        graph: Graph,
        operands: tuple[Value, ...],
        names: dict[Value, str],
        depth: int,
        dying: set[str],
    ) -> None:
        """Write a branch: its nodes, then its outputs under the names of the node's. dying: names that it drops."""
        inner = {v: names[o] for v, o in zip(graph.inputs, operands)}
        before = len(self._lines)
        alive = self._block(graph, inner, depth, dying)
        self._assign_outputs([names[v] for v in node.outputs], [inner[v] for v in graph.outputs], alive, depth)
        if len(self._lines) == before:
            self._line(depth, "pass")

    def _assign_outputs(self, targets: list[str], sources: list[str], alive: list[str], depth: int) -> None:
        moves = [(t, s) for t, s in zip(targets, sources) if t != s]
        if moves:
            self._line(depth, f"{', '.join(t for t, _ in moves)} = {', '.join(s for _, s in moves)}")
        dead = sorted(set(alive) - set(targets))
        if dead:
            self._line(depth, f"del {', '.join(dead)}")

    def if_(self, node: Node, names: dict[Value, str], depth: int, dying: set[str]) -> set[str]:
        """Write `If`. Its last operands die in each branch, after their last use there."""
        pred, operands = branch_inputs(node)
        inside = dying & {names[v] for v in operands}
        self._line(depth, f"if {names[pred]}:  # If {node.name}", node)
        self._branch(node, node.attrs["then_branch"], operands, names, depth + 1, inside)
        self._line(depth, "else:")
        self._branch(node, node.attrs["else_branch"], operands, names, depth + 1, inside)
        return inside

    def case(self, node: Node, names: dict[Value, str], depth: int, dying: set[str]) -> set[str]:
        """Write `Case`, whose last branch is the default."""
        index, operands = branch_inputs(node)
        inside = dying & {names[v] for v in operands}
        *branches, last = node.attrs["branches"]
        for i, branch in enumerate(branches):
            self._line(depth, f"{'if' if i == 0 else 'elif'} {names[index]} == {i}:  # Case {node.name}", node)
            self._branch(node, branch, operands, names, depth + 1, inside)
        self._line(depth, "else:" if branches else "if True:")
        self._branch(node, last, operands, names, depth + 1, inside)
        return inside

    def while_(self, node: Node, names: dict[Value, str], depth: int, dying: set[str]) -> set[str]:
        """Write `While`; the node's outputs are the names of the loop's variables throughout."""
        variables, captured = loop_inputs(node)
        current = [names[v] for v in node.outputs]
        if current:
            self._line(depth, f"{', '.join(current)} = {', '.join(names[v] for v in variables)}")
        started = dying & {names[v] for v in variables} - {names[v] for v in captured}
        if started:  # initial values die in the first iteration
            self._line(depth, f"del {', '.join(sorted(started))}")
        self._made.update(names[v] for v in node.outputs)
        self._line(depth, f"while True:  # While {node.name}", node)
        cond, body = node.attrs["cond"], node.attrs["body"]
        arguments = [*current, *(names[v] for v in captured)]
        inner = dict(zip(cond.inputs, arguments))
        alive = self._block(cond, inner, depth + 1, set())
        self._line(depth + 1, f"if not {inner[cond.outputs[0]]}:", node)
        self._line(depth + 2, "break")
        if alive:
            self._line(depth + 1, f"del {', '.join(sorted(alive))}")
        inner = dict(zip(body.inputs, arguments))
        alive = self._block(body, inner, depth + 1, {names[v] for v in node.outputs if not _is_scalar(v)})
        self._assign_outputs(current, [inner[v] for v in body.outputs], alive, depth + 1)
        return started


CONTROL: dict[str, Callable[[Writer, Node, dict[Value, str], int, set[str]], set[str]]] = {
    "If": Writer.if_,
    "Case": Writer.case,
    "While": Writer.while_,
}


def _boxing(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel with single strings as arrays of shape (), as an item of an object array is `bytes`, without
    dtype."""

    def boxed(*arrays: Any, **options: Any) -> Any:
        result = kernel(*arrays, **options)
        if isinstance(result, (list, tuple)):
            return type(result)([_boxed(r) for r in result])
        return _boxed(result)

    return boxed


def _boxed(value: T) -> T | np.ndarray:
    return np.asarray(value, object) if isinstance(value, (bytes, str)) else value


def _is_scalar(value: Value) -> bool:
    return value.spec.shape.rank == 0


def infix_of(node: Node) -> str | None:
    """Return the expression of a node between scalars, with {} for each operand; None if its kernel is called."""
    op = node.op
    rule = op.compute_rule
    if type(rule) is not np.ufunc or rule not in INFIX or op.cpu_kernels or op.profile.narrows:
        return None
    text, operand_dtypes = INFIX[rule]
    return text if all(_is_scalar(v) and v.dtype in operand_dtypes for v in node.operands) else None


def _read_as_scalars(graph: Graph, in_loop: bool) -> set[Value]:
    """Return the values of a graph that expressions between scalars read in each iteration of a loop."""
    values: set[Value] = set()
    for node in graph.nodes:
        if node.op.name == "While":
            variables, captured = loop_inputs(node)
            for inner in (node.attrs["cond"], node.attrs["body"]):
                read = _read_as_scalars(inner, True)
                values.update(o for v, o in zip(inner.inputs[len(variables) :], captured) if v in read)
        elif node.op.name in CONTROL:
            _, operands = branch_inputs(node)
            branches = node.attrs.get("branches") or (node.attrs["then_branch"], node.attrs["else_branch"])
            for inner in branches:
                read = _read_as_scalars(inner, in_loop)
                values.update(o for v, o in zip(inner.inputs, operands) if v in read)
        elif in_loop and infix_of(node) is not None:
            values.update(node.operands)
    return values


def _argument(operand: Any, names: dict[Value, str]) -> str:
    if operand is None:
        return "None"
    if isinstance(operand, tuple):
        return f"[{', '.join(names[v] for v in operand)}]"
    return names[operand]


def _targets(op: Any, node: Node, names: dict[Value, str]) -> str:
    """Return the assignment targets of an operator with several outputs, in the structure that its kernel returns."""
    packed = op.pack_all([names[v] for v in node.outputs])
    if len(op.outputs) == 1:  # one repeated output: the kernel returns the list itself
        return f"[{', '.join(packed[0])}]"
    return ", ".join(f"[{', '.join(p)}]" if isinstance(p, list) else p for p in packed)
