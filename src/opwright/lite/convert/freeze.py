"""Freezing: the graph of a traced function with everything it captured turned into constants.

Lives here: `freeze`.  Not here: tracing, the passes that simplify the result (prepare.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.specs import TensorSpec
from ...eager.tensor import EagerTensor
from ...eager.variable import Variable
from ...graph import Graph, Node, Value
from ...ops import registry
from .errors import ConverterError


def freeze(concrete: Any) -> Graph:
    """The graph whose inputs are the arguments only: captured tensors, and reads of variables, are Const nodes with
    their values of this moment.

    raises ConverterError where the function writes a variable, uses a handle for more than reading, or captured a
    tensor that has no value
    """
    graph: Graph = concrete.optimized_graph
    captured = list(concrete.captured_inputs)
    n_arguments = len(graph.inputs) - len(captured)
    const = registry.get("Const")
    became: dict[Value, Value] = {}
    handles: dict[Value, Variable] = {}
    nodes: list[Node] = []

    def constant(array: Any, dtype: Any, name: str, at: str | None) -> Value:
        array = np.asarray(array, dtype.np)
        array = array.copy() if array.flags.writeable else array  # the variable may change later
        array.setflags(write=False)
        nodes.append(Node(const, (), {"value": array}, [TensorSpec(array.shape, dtype)], name, at))
        return nodes[-1].outputs[0]

    for placeholder, outer in zip(graph.inputs[n_arguments:], captured):
        if isinstance(outer, Variable):
            handles[placeholder] = outer
        elif isinstance(outer, EagerTensor):
            became[placeholder] = constant(outer.constant, outer.dtype, placeholder.name, None)
        else:
            raise ConverterError(op=graph.name, what=f"the function captured {outer}, which has no value of its own",
                                 do="convert the outer function, or pass the tensor as an argument")  # fmt: skip
    _refuse_writes(graph, handles)
    read: dict[Value, Value] = {}
    for node in graph.nodes:
        if node.op.name == "ReadVariable" and node.inputs[0] in handles:
            handle: Any = node.inputs[0]
            if handle not in read:
                variable = handles[handle]
                read[handle] = constant(variable.read_array(), node.outputs[0].dtype, handle.name, node.at)
            became[node.outputs[0]] = read[handle]
            continue
        inputs = tuple(_operand(o, became) for o in node.inputs)
        if inputs != node.inputs:
            fresh = Node(node.op, inputs, node.attrs, [v.spec for v in node.outputs], node.name, node.at)
            became.update(zip(node.outputs, fresh.outputs))
            node = fresh
        nodes.append(node)
    outputs = [became.get(v, v) for v in graph.outputs]
    return Graph(graph.name, graph.inputs[:n_arguments], nodes, outputs)


def _operand(operand: Any, became: dict[Value, Value]) -> Any:
    if operand is None:
        return None
    if isinstance(operand, tuple):
        return tuple([became.get(v, v) for v in operand])
    return became.get(operand, operand)


def _refuse_writes(graph: Graph, handles: dict[Value, Variable]) -> None:
    for node in graph.nodes:
        touched = [handles[v].name for v in node.operands if v in handles]
        if touched and node.op.name != "ReadVariable":
            raise ConverterError(
                op=node.op.name, node=node.name, at=node.at,
                what=f"the function changes the variable {', '.join(touched)}; variables are frozen to their values",
                wanted="variables that are only read",
                do="return the new value as an output and pass the old one as an argument",
                explain="OW202")  # fmt: skip
    for value in graph.outputs:
        if value in handles:
            raise ConverterError(op=graph.name, what=f"the function returns the variable {handles[value].name} itself",
                                 do="return its value: variable.value()")  # fmt: skip
