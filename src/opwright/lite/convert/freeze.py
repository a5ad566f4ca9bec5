"""Freezing: the graphs of traced functions with what they captured: constants, and variables that stay variables.

Lives here: `freeze`, and which variables stay.  Not here: tracing, what writes become (writes.py), initial values in
the file (variables.py), the passes that simplify the result (prepare.py).

A variable that some of the functions converted together writes is one variable of the file for all of them: its reads
and writes stay, in program order, on a handle that each function makes by VAR_HANDLE and hands into branches and loops.
All other variables are constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...eager.tensor import EagerTensor
from ...eager.variable import Variable
from ...graph import Graph, Node, Value
from ...graph.builder import subgraphs_mapped
from ...graph.ir import flat
from ..ops import get
from .errors import ConverterError
from .variables import Kept, kept_variables
from .writes import WRITES, CatalogueRewriter

HANDED_ON = {"If": 1, "Case": 1, "While": 2}  # operators that hand operands into graphs: how many of their last inputs


class Frozen(NamedTuple):
    """graphs: one for each function, whose inputs are its arguments only. variables: those that stay variables."""

    graphs: list[Graph]
    variables: list[Kept]


def freeze(functions: Sequence[Any], keep_written: bool = True) -> Frozen:
    """The graphs of functions: captured tensors, and reads of variables nobody writes, are Const nodes with their
    values of this moment.

    keep_written: False to refuse functions that write variables.
    raises ConverterError where a function uses a variable in a way that files have no form for, returns a variable
    itself, or captured a tensor that has no value
    """
    opened = [_Opened(concrete) for concrete in functions]
    written: dict[int, Variable] = {}
    for part in opened:
        for node, variable in _writes(part.graph, part.handles):
            if not keep_written:
                raise _refused(
                    node,
                    variable,
                    "converter.experimental_enable_resource_variables is False; variables are frozen to their values",
                )
            written.setdefault(id(variable), variable)
    kept = kept_variables(written.values())
    return Frozen([_frozen(part, kept) for part in opened], list(kept.values()))


class _Opened:
    """A function's graph, with what stands behind its inputs: its arguments come first, the rest was captured."""

    def __init__(self, concrete: Any) -> None:
        self.graph: Graph = concrete.optimized_graph
        captured = list(concrete.captured_inputs)
        n = len(self.graph.inputs) - len(captured)
        self.arguments, placeholders = self.graph.inputs[:n], self.graph.inputs[n:]
        self.handles: dict[Value, Variable] = {}
        self.tensors: dict[Value, EagerTensor] = {}
        for placeholder, outer in zip(placeholders, captured):
            if isinstance(outer, Variable):
                self.handles[placeholder] = outer
            elif isinstance(outer, EagerTensor):
                self.tensors[placeholder] = outer
            else:
                raise ConverterError(
                    op=self.graph.name,
                    what=f"the function captured {outer}, which has no value of its own",
                    do="convert the outer function, or pass the tensor as an argument",
                )
        for value in self.graph.outputs:
            if value in self.handles:
                raise ConverterError(
                    op=self.graph.name,
                    what=f"the function returns the variable {self.handles[value].name} itself",
                    do="return its value: variable.value()",
                )


def _inside(node: Node, handles: dict[Value, Variable]) -> Iterator[tuple[Graph, dict[Value, Variable]]]:
    """The graphs a node holds, each with those of its inputs that are handles."""
    operands = flat(node.inputs[-HANDED_ON.get(node.op.name, 0) :])
    places = [(i, handles[v]) for i, v in enumerate(operands) if v in handles]
    for graph in node.subgraphs:
        yield graph, {graph.inputs[i]: variable for i, variable in places}


def _writes(graph: Graph, handles: dict[Value, Variable]) -> Iterator[tuple[Node, Variable]]:
    """Each node that writes a variable, in graphs of any depth, with the variable."""
    for node in graph.nodes:
        touched = [handles[v] for v in node.operands if v in handles]
        if not touched:
            continue
        if node.op.name in HANDED_ON:
            for inner, inside in _inside(node, handles):
                yield from _writes(inner, inside)
        elif node.op.name == "AssignVariable" or node.op.name in WRITES:
            yield from ((node, variable) for variable in touched)
        elif node.op.name != "ReadVariable":
            raise _refused(node, touched[0], "the file has no form for this use of it")


def _refused(node: Node, variable: Variable, why: str) -> ConverterError:
    return ConverterError(
        op=node.op.name,
        node=node.name,
        at=node.at,
        what=f"the function changes the variable {variable.name}; {why}",
        wanted="variables that are only read, or set by assign, assign_add, assign_sub, scatter_update, _add, _sub, "
        "_max and _min or an optimizer",
        do="set converter.experimental_enable_resource_variables = True, or return the new value as an output and "
        "pass the old one as an argument",
        explain="OW202",
    )


def _frozen(part: _Opened, kept: dict[int, Kept]) -> Graph:
    walk = _Walk(part.graph, kept)
    for placeholder, tensor in part.tensors.items():
        walk.mapping[placeholder] = walk.constant(tensor.constant, tensor.dtype, placeholder.name, None)
    for placeholder, variable in part.handles.items():
        walk.handles[placeholder] = variable
        if id(variable) in kept:
            handle = get("VAR_HANDLE")
            bound, specs = walk.infer(handle, (), {"shared_name": kept[id(variable)].shared_name})
            node = walk.insert(Node(handle, (), bound, specs, placeholder.name))
            walk.mapping[placeholder] = node.outputs[0]
    return walk.run(part.arguments)


class _Walk(CatalogueRewriter):
    """A walk over one graph, or one that a node holds. handles: which of the old graph's values are of variables."""

    def __init__(self, graph: Graph, kept: dict[int, Kept]) -> None:
        super().__init__(graph)
        self.kept = kept
        self.handles: dict[Value, Variable] = {}
        self._read: dict[int, Value] = {}

    def run(self, inputs: Sequence[Value]) -> Graph:
        """The new graph."""
        self.inputs = list(inputs)
        for node in self.source.nodes:
            self.begin(node)
            self._node(node)
        return self.finish()

    def _node(self, node: Node) -> None:
        name = node.op.name
        variables = [self.handles[v] for v in node.operands if v in self.handles]
        if variables and name in HANDED_ON:
            self._control(node)
        elif name == "ReadVariable" and variables and id(variables[0]) not in self.kept:
            self.mapping[node.outputs[0]] = self._value_of(variables[0], node)
        elif variables and name in WRITES:
            WRITES[name](self, self.remap(node), variables)
        else:
            self.copy(node)

    def _value_of(self, variable: Variable, node: Node) -> Value:
        """The constant that a variable is; one in a graph."""
        found = self._read.get(id(variable))
        if found is None:
            name = node.inputs[0].name  # type: ignore[union-attr]
            found = self._read[id(variable)] = self.constant(variable.read_array(), variable.dtype, name, node.at)
        return found

    def _control(self, node: Node) -> None:
        """A node that hands variables into its graphs: those that are constants are handed no more."""
        at = len(node.inputs) - HANDED_ON[node.op.name]
        lists: Any = node.inputs[at:]
        handed = flat(lists)
        dropped = {i for i, v in enumerate(handed) if v in self.handles and id(self.handles[v]) not in self.kept}
        made: dict[Graph, Graph] = {}
        for graph, handles in _inside(node, self.handles):
            walk = _Walk(graph, self.kept)
            walk.handles = handles
            made[graph] = walk.run([v for i, v in enumerate(graph.inputs) if i not in dropped])
        attrs = subgraphs_mapped(node.attrs, made.__getitem__)
        carried = [i for i in dropped if node.op.name == "While" and i < len(lists[0])]
        if carried:
            raise ConverterError(
                op="While",
                node=node.name,
                at=node.at,
                what=f"the loop changes which variable {handed[carried[0]].name} is",
            )
        count, inputs = 0, list(node.inputs[:at])
        for values in lists:
            inputs.append(tuple(v for i, v in enumerate(values, count) if i not in dropped))
            count += len(values)
        fresh = self.insert(node.replaced(inputs=tuple(map(self.operand, inputs)), attrs=attrs))
        self.replace(node, fresh.outputs)
