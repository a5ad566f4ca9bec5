"""Freezing: captures of traced functions become constants, and written variables become variables of the file.

Lives here: `freeze`; `initialized`, which adds the subgraph that initialises variables.
Not here: tracing, lowering of variable updates (decompositions.py), the passes that follow (passes.py), the dialect's
operators on variables (lite/ops/state.py).

A variable that any of the functions converted together writes is one variable of the file for all of them: its reads
and writes stay, in program order, on a handle that each function creates by VAR_HANDLE and passes to branches and
loops. All other variables are constants.

As in files of the official converter every signature begins with a CALL_ONCE of one subgraph, which assigns all
variables: it runs when the interpreter first runs any of the signatures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import string
from ...core.specs import TensorSpec
from ...eager.tensor import EagerTensor
from ...eager.variable import Variable
from ...graph import Graph, GraphBuilder, GraphRewriter, Node, Value
from ...graph.builder import constant_node, subgraphs_mapped
from ...graph.ir import flat
from ...ops import registry
from ..ops import get
from .decompositions import WRITES, CatalogueRewriter
from .errors import ConverterError

HANDED_ON = {
    "If": 1,
    "Case": 1,
    "While": 2,
}  # operators that hand operands into graphs: the number of their last inputs that are passed


class FrozenFunctions(NamedTuple):
    """graphs: one for each function, whose inputs are its arguments only. variables: the variables of the file."""

    graphs: list[Graph]
    variables: list[FileVariable]


def freeze(functions: Sequence[Any], keep_written: bool = True, *, views: bool = False) -> FrozenFunctions:
    """Return the graphs of functions without captures.

    Captured tensors, and reads of variables that none of them writes, become Const nodes of the current values.

    keep_written: False to refuse functions that write variables. views: the constants are views on the variables'
    memory, for graphs that are dropped before these change.
    raises ConverterError for a function that uses a variable in a way that files cannot express, returns a variable
    itself, or captured a tensor without a value
    """
    opened = [_CapturedInputs(concrete) for concrete in functions]
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
    return FrozenFunctions([_frozen(part, kept, views) for part in opened], list(kept.values()))


class _CapturedInputs:
    """A function's graph, with the captured variables and tensors of its inputs, which follow the arguments."""

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
    """Yield the subgraphs of a node, each with the variables of its inputs that are handles."""
    operands = flat(node.inputs[-HANDED_ON.get(node.op.name, 0) :])
    places = [(i, handles[v]) for i, v in enumerate(operands) if v in handles]
    for graph in node.subgraphs:
        yield graph, {graph.inputs[i]: variable for i, variable in places}


def _writes(graph: Graph, handles: dict[Value, Variable]) -> Iterator[tuple[Node, Variable]]:
    """Yield each node that writes a variable, with the variable, in subgraphs too."""
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


def _frozen(part: _CapturedInputs, kept: dict[int, FileVariable], views: bool) -> Graph:
    walk = _FreezingRewriter(part.graph, kept, views)
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


class _FreezingRewriter(CatalogueRewriter):
    """The rewriter of one graph or subgraph. handles: the variables of the old graph's values."""

    def __init__(self, graph: Graph, kept: dict[int, FileVariable], views: bool) -> None:
        super().__init__(graph)
        self.kept, self.views = kept, views
        self.handles: dict[Value, Variable] = {}
        self._read: dict[int, Value] = {}

    def run(self, inputs: Sequence[Value]) -> Graph:
        """Return the new graph."""
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
            self.credit(node, "freeze: an update of a variable is a read, operators on tensors, and an assignment")
        else:
            self.copy(node)

    def _value_of(self, variable: Variable, node: Node) -> Value:
        """Return the constant that replaces a variable, one for each graph."""
        constant = self._read.get(id(variable))
        if constant is None:
            name = node.inputs[0].name  # type: ignore[union-attr]
            array = variable.read_array()
            if self.views:
                array = array.view()
                array.flags.writeable = False
            constant = self._read[id(variable)] = self.constant(array, variable.dtype, name, node.at)
        return constant

    def _control(self, node: Node) -> None:
        """Copy a node that passes variables to its graphs, omitting constant ones."""
        at = len(node.inputs) - HANDED_ON[node.op.name]
        lists: Any = node.inputs[at:]
        handed = flat(lists)
        dropped = {i for i, v in enumerate(handed) if v in self.handles and id(self.handles[v]) not in self.kept}
        frozen: dict[Graph, Graph] = {}
        for graph, handles in _inside(node, self.handles):
            walk = _FreezingRewriter(graph, self.kept, self.views)
            walk.handles = handles
            frozen[graph] = walk.run([v for i, v in enumerate(graph.inputs) if i not in dropped])
        attrs = subgraphs_mapped(node.attrs, frozen.__getitem__)
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


class FileVariable(NamedTuple):
    """A variable that remains one in the file, with its name there."""

    variable: Variable
    shared_name: str


def kept_variables(variables: Iterable[Variable]) -> dict[int, FileVariable]:
    """Return variables by id, each with a unique name: its own, or with _1, _2, ... appended.

    raises ConverterError for strings, which the official run time's variables do not hold
    """
    variables_by_id: dict[int, FileVariable] = {}
    names: set[str] = set()
    for variable in variables:
        base = name = variable.name.removesuffix(":0")
        if variable.dtype is string:
            raise ConverterError(
                what=f"the function changes the variable {base}, which holds strings",
                wanted="numbers or truth values, as in the official run time",
                do="return the new value as an output, pass the old one as an argument",
                explain="OW202",
            )
        count = 0
        while name in names:
            count += 1
            name = f"{base}_{count}"
        names.add(name)
        variables_by_id[id(variable)] = FileVariable(variable, name)
    return variables_by_id


def initialized(graphs: Sequence[Graph], variables: Sequence[FileVariable]) -> list[Graph]:
    """Prepend a CALL_ONCE of the subgraph that initialises the variables to the graphs of all signatures."""
    if not variables:
        return list(graphs)
    init = _init(variables)
    op = get("CALL_ONCE")
    call = op.bind({"init": init})
    rewriters = [GraphRewriter(graph) for graph in graphs]
    for rewriter in rewriters:
        rewriter.node(op, (), call.attrs, (), init.name)
        rewriter.nodes += rewriter.source.nodes
    return [rewriter.finish() for rewriter in rewriters]


def _init(variables: Sequence[FileVariable]) -> Graph:
    builder = GraphBuilder("initialize_variables")
    handle_op, assign_op = get("VAR_HANDLE"), get("ASSIGN_VARIABLE")
    initial = []
    for variable, name in variables:
        array = np.array(variable.read_array(), variable.dtype.np)
        spec = TensorSpec(array.shape, variable.dtype)
        constant = constant_node(registry.get("Const"), array, spec, f"{name}/initial")
        initial.append(builder.insert(constant).outputs[0])
    for (_, name), value in zip(variables, initial):
        attrs = handle_op.bind({"shared_name": name}).attrs
        handle = builder.insert(Node(handle_op, (), attrs, handle_op.infer(handle_op.bind({}), (), name), name))
        builder.insert(Node(assign_op, (*handle.outputs, value), assign_op.bind({}).attrs, (), f"{name}/assign"))
    return builder.build(())
