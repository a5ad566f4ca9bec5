"""Variables in the file: their names, and the subgraph that gives them their initial values.

Lives here: `kept_variables`, `initialized`.  Not here: which variables stay variables (freeze.py), the operators
(lite/ops/state.py).

As in the official converter's files every signature begins with a CALL_ONCE of one subgraph, which assigns all
variables: it runs when the interpreter runs any of the signatures for the first time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...core.dtypes import string
from ...core.specs import TensorSpec
from ...eager.variable import Variable
from ...graph import Graph, GraphBuilder, GraphRewriter, Node
from ...graph.builder import constant_node
from ...ops import registry
from ..ops import get
from .errors import ConverterError


class Kept(NamedTuple):
    """A variable that is one in the file, too, and its name there."""

    variable: Variable
    shared_name: str


def kept_variables(variables: Iterable[Variable]) -> dict[int, Kept]:
    """Variables by id, with a name each that no other has: their own, with _1, _2 ... where two are called the same.

    raises ConverterError for strings, which the official run time's variables do not hold
    """
    found: dict[int, Kept] = {}
    names: set[str] = set()
    for variable in variables:
        wanted = name = variable.name.removesuffix(":0")
        if variable.dtype is string:
            raise ConverterError(
                what=f"the function changes the variable {wanted}, which holds strings",
                wanted="numbers or truth values, as in the official run time",
                do="return the new value as an output, pass the old one as an argument",
                explain="OW202",
            )
        count = 0
        while name in names:
            count += 1
            name = f"{wanted}_{count}"
        names.add(name)
        found[id(variable)] = Kept(variable, name)
    return found


def initialized(graphs: Sequence[Graph], variables: Sequence[Kept]) -> list[Graph]:
    """The graphs of all signatures, each beginning with a CALL_ONCE of the subgraph that sets the variables."""
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


def _init(variables: Sequence[Kept]) -> Graph:
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
