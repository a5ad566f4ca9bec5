"""Run graphs, and control flow, on the variables of a scope.

Lives here: `run_graph`; `If`, `Case` and `While` as operator instances. Not here: one operator (execution.py), graphs
as one Python function over arrays (compiler/plan.py), which is faster but without places and scopes.

Each run of a graph, including a branch or one iteration of a loop body, has its own scope inside the caller's: its
values are variables there, erased after their last use, and the scope is dropped after the run.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.errors import InvalidArgumentError, NotFoundError, SignatureError, UnimplementedError
from ..core.places import CPUPlace, place_of
from ..graph import Graph
from .execution import execute, install_control_flow
from .instance import OpInstance
from .scope import Scope, scope_or_global
from .variable import EMPTY, ScopeVariable


class NodeStep(NamedTuple):
    """One prepared node of a graph. call: its bound attributes, None for control flow. outputs: its results' names.
    dying: names with no later reader.
    """

    instance: OpInstance
    call: Any
    outputs: tuple[str, ...]
    dying: list[str]


_steps_of_graph: weakref.WeakKeyDictionary[Graph, list[NodeStep]] = (
    weakref.WeakKeyDictionary()
)  # by graph, for each that has run


def run_graph(graph: Graph, scope: Scope | None = None, place: Any = None) -> list[ScopeVariable]:
    """Run a graph: its inputs are variables looked up by name from this scope outward, its outputs are stored by name.

    An output is stored in the variable of its name, created in this scope if there is none; intermediate values leave
    no trace. scope: by default the global one. place: where every operator runs, as in `op.run`; by default the CPU.
    Returns the outputs' variables, in the graph's order.

    raises NotFoundError naming the graph and a missing input, InvalidArgumentError for an input of another dtype or
    shape; errors of operators, with their line. No output is written if one is raised
    """
    scope = scope_or_global(scope)
    checked_graph(graph, "run_graph")
    inputs = []
    for value in graph.inputs:
        variable = scope.find_var(value.name)
        if variable is None or not variable.is_initialized:
            raise NotFoundError(
                op="run_graph",
                what=f"graph {graph.name!r} has no value for its input {value.name!r}",
                found="no such variable" if variable is None else "a variable that is not initialized",
                wanted=value.spec.short(),
                do=f"scope.var({value.name!r}).set(...)",
            )
        spec = variable.spec
        if spec.dtype is not value.dtype or not spec.shape.is_compatible_with(value.shape):
            raise InvalidArgumentError(
                op="run_graph",
                what=f"input {value.name!r} of graph {graph.name!r} has another dtype or shape",
                found=variable,
                wanted=value.spec.short(),
            )
        inputs.append(variable)
    results = _run(graph, inputs, scope, CPUPlace() if place is None else place_of(place))
    outputs = []
    for value, result in zip(graph.outputs, results):
        variable = scope.find_var(value.name) or scope.var(value.name)
        variable.share(result)
        outputs.append(variable)
    return outputs


def checked_graph(graph: Any, op: str) -> None:
    """Raise SignatureError if this is not a graph."""
    if not isinstance(graph, Graph):
        raise SignatureError(
            op=op,
            what="this is not a graph",
            found=type(graph).__name__,
            wanted="a Graph",
            do="function.get_concrete_function(...).graph",
        )


def _steps(graph: Graph) -> list[NodeStep]:
    steps = _steps_of_graph.get(graph)
    if steps is None:
        last: dict[str, int] = {}
        for i, node in enumerate(graph.nodes):
            for value in (*node.outputs, *node.operands):  # an unread value dies where it is computed
                last[value.name] = i
        returned = {v.name for v in graph.outputs}
        dying: dict[int, list[str]] = {}
        for name, i in last.items():
            if name not in returned:
                dying.setdefault(i, []).append(name)
        steps = [_step(OpInstance.of_node(node), dying.get(i, [])) for i, node in enumerate(graph.nodes)]
        _steps_of_graph[graph] = steps
    return steps


def _step(instance: OpInstance, dying: list[str]) -> NodeStep:
    op = instance.type
    call = None if op.control else op.bind(dict(instance.attrs))
    return NodeStep(instance, call, tuple(instance.output_names()), dying)


def _run(graph: Graph, inputs: Sequence[ScopeVariable], scope: Scope, place: Any) -> list[ScopeVariable]:
    """Return the outputs of a graph, as variables that belong to no scope."""
    with scope.new_scope() as inner:
        for value, variable in zip(graph.inputs, inputs):
            inner.var(value.name).share(variable)
        for instance, call, outputs, dying in _steps(graph):
            for name in outputs:
                inner.var(name)  # shadows a variable of that name in an outer scope
            execute(instance, inner, place, call)
            if dying:
                inner.erase(dying)
        results = []
        for value in graph.outputs:
            result = ScopeVariable(value.name)
            result.share(inner.var(value.name))
            results.append(result)
        return results


# ---- control flow ---------------------------------------------------------------------------------------------------


def run_control_flow(instance: OpInstance, scope: Scope, place: Any) -> None:
    """Run an instance of a control flow operator. Raises UnimplementedError for one without a rule here."""
    op = instance.type
    rule = _CONTROL_FLOW.get(op.name)
    if rule is None:
        raise UnimplementedError(
            op=op.name,
            what="this control flow operator has no rule here",
            found="no rule",
            wanted=f"one of {', '.join(_CONTROL_FLOW)}",
        )
    slots = [_variables(instance, declared, scope) for declared in op.inputs]
    op.infer(op.bind(dict(instance.attrs)), slots)
    results = rule(instance.attrs, slots, lambda graph, values: _run(graph, values, scope, place))
    names = instance.outputs["outputs"]
    if len(names) != len(results):
        raise InvalidArgumentError(
            op=op.name,
            what=f"output 'outputs' gives {len(results)} tensors",
            found=f"{len(names)} names",
            wanted=f"{len(results)} names",
        )
    for name, result in zip(names, results):
        if name != EMPTY:
            (scope.find_var(name) or scope.var(name)).share(result)


def _variables(instance: OpInstance, declared: Any, scope: Scope) -> tuple[Any, ...] | ScopeVariable:
    variables = []
    for name in instance.inputs.get(declared.name, ()):
        variable = scope.find_var(name)
        if variable is None or not variable.is_initialized:
            raise InvalidArgumentError(
                op=instance.type.name,
                what=f"input {declared.name!r} is {'missing' if variable is None else 'not initialized'}",
                found=f"no variable {name!r}" if variable is None else f"variable {name!r} without a value",
                wanted="a tensor",
            )
        variables.append(variable)
    return tuple(variables) if declared.repeated else variables[0]


RunGraph = Callable[[Graph, Sequence[ScopeVariable]], list[ScopeVariable]]


def _if(attrs: Any, slots: Sequence[Any], run: RunGraph) -> list[ScopeVariable]:
    pred, inputs = slots
    return run(attrs["then_branch"] if bool(pred.value) else attrs["else_branch"], inputs)


def _case(attrs: Any, slots: Sequence[Any], run: RunGraph) -> list[ScopeVariable]:
    index, inputs = slots
    branches = attrs["branches"]
    selected = int(index.value)
    return run(branches[selected if 0 <= selected < len(branches) else -1], inputs)


def _while(attrs: Any, slots: Sequence[Any], run: RunGraph) -> list[ScopeVariable]:
    variables, captured = slots
    current = list(variables)
    while bool(run(attrs["cond"], (*current, *captured))[0].value):
        current = run(attrs["body"], (*current, *captured))
    return current


_CONTROL_FLOW: dict[str, Callable[[Any, Sequence[Any], RunGraph], list[ScopeVariable]]] = {
    "If": _if,
    "Case": _case,
    "While": _while,
}


install_control_flow(run_control_flow)
