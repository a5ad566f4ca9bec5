"""Whole graphs on the variables of a scope, and control flow, which runs graphs.

Lives here: `run_graph`, `If`, `Case` and `While` as instances.
Not here: one operator (running.py), graphs as one Python function over arrays (compiler/plan.py), which is faster and
knows neither places nor scopes.

Each run of a graph, be it a branch or one turn of a loop's body, has a scope of its own inside the caller's: its values
are variables there, dropped after their last use, and the scope is dropped when the run is done.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.errors import InvalidArgumentError, NotFoundError, SignatureError, UnimplementedError
from ..core.places import CPUPlace, place_of
from ..graph import Graph
from .instance import OpInstance
from .running import execute, install_control_flow
from .scope import Scope, scope_or_global
from .variable import EMPTY, ScopeVariable


class Step(NamedTuple):
    """One node of a graph made ready. call: its bound attributes; None of control flow. dying: the names that nobody
    reads after it. made: those it gives."""

    instance: OpInstance
    call: Any
    made: tuple[str, ...]
    dying: list[str]


_ready: weakref.WeakKeyDictionary[Graph, list[Step]] = weakref.WeakKeyDictionary()  # of every graph that ran


def run_graph(graph: Graph, scope: Scope | None = None, place: Any = None) -> list[ScopeVariable]:
    """Run a graph: its inputs are the variables of their names in the scope or around it, its outputs go there too.

    An output goes to the variable of its name, made in this scope if there is none; what is in between is nowhere to be
    seen afterwards. scope: by default the global one. place: where every operator runs, as in `op.run`; by default
    the CPU. Gives the outputs' variables, in the graph's order.
    raises NotFoundError naming the graph and an input that is not there, InvalidArgumentError for one of another dtype
    or shape; what an operator raises, with its line. Then
    no output has been written
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
        found = variable.spec
        if found.dtype is not value.dtype or not found.shape.is_compatible_with(value.shape):
            raise InvalidArgumentError(
                op="run_graph",
                what=f"input {value.name!r} of graph {graph.name!r} is another",
                found=variable,
                wanted=value.spec.short(),
            )
        inputs.append(variable)
    results = _run(graph, inputs, scope, CPUPlace() if place is None else place_of(place))
    written = []
    for value, result in zip(graph.outputs, results):
        variable = scope.find_var(value.name) or scope.var(value.name)
        variable.share(result)
        written.append(variable)
    return written


def checked_graph(graph: Any, op: str) -> None:
    """Raises SignatureError for what is no graph."""
    if not isinstance(graph, Graph):
        raise SignatureError(
            op=op,
            what="this is no graph",
            found=type(graph).__name__,
            wanted="a Graph",
            do="function.get_concrete_function(...).graph",
        )


def _steps(graph: Graph) -> list[Step]:
    known = _ready.get(graph)
    if known is None:
        last: dict[str, int] = {}
        for i, node in enumerate(graph.nodes):
            for value in (*node.outputs, *node.operands):  # one that nobody reads dies where it is made
                last[value.name] = i
        kept = {v.name for v in graph.outputs}
        dying: dict[int, list[str]] = {}
        for name, i in last.items():
            if name not in kept:
                dying.setdefault(i, []).append(name)
        known = [_step(OpInstance.of_node(node), dying.get(i, [])) for i, node in enumerate(graph.nodes)]
        _ready[graph] = known
    return known


def _step(instance: OpInstance, dying: list[str]) -> Step:
    op = instance.type
    call = None if op.control else op.bind(dict(instance.attrs))
    return Step(instance, call, tuple(instance.output_names()), dying)


def _run(graph: Graph, inputs: Sequence[ScopeVariable], scope: Scope, place: Any) -> list[ScopeVariable]:
    """The outputs of a graph, as variables that belong to no scope."""
    with scope.new_scope() as kid:
        for value, variable in zip(graph.inputs, inputs):
            kid.var(value.name).share(variable)
        for instance, call, made, dying in _steps(graph):
            for name in made:
                kid.var(name)  # the graph's own: a variable of that name around it is another
            execute(instance, kid, place, call)
            if dying:
                kid.erase(dying)
        results = []
        for value in graph.outputs:
            result = ScopeVariable(value.name)
            result.share(kid.var(value.name))
            results.append(result)
        return results


# ---- control flow ---------------------------------------------------------------------------------------------------


def run_control(instance: OpInstance, scope: Scope, place: Any) -> None:
    """Run an instance of an operator that runs graphs. Raises UnimplementedError for one that this module has not."""
    op = instance.type
    rule = _CONTROL.get(op.name)
    if rule is None:
        raise UnimplementedError(
            op=op.name,
            what="nothing says how this control flow runs",
            found="no rule",
            wanted=f"one of {', '.join(_CONTROL)}",
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


def _variables(instance: OpInstance, declared: Any, scope: Scope) -> Any:
    found = []
    for name in instance.inputs.get(declared.name, ()):
        variable = scope.find_var(name)
        if variable is None or not variable.is_initialized:
            raise InvalidArgumentError(
                op=instance.type.name,
                what=f"input {declared.name!r} is {'missing' if variable is None else 'not initialized'}",
                found=f"no variable {name!r}" if variable is None else f"variable {name!r} without a value",
                wanted="a tensor",
            )
        found.append(variable)
    return tuple(found) if declared.repeated else found[0]


Turn = Callable[[Graph, Sequence[ScopeVariable]], list[ScopeVariable]]


def _if(attrs: Any, slots: Sequence[Any], run: Turn) -> list[ScopeVariable]:
    pred, inputs = slots
    return run(attrs["then_branch"] if bool(pred.value) else attrs["else_branch"], inputs)


def _case(attrs: Any, slots: Sequence[Any], run: Turn) -> list[ScopeVariable]:
    index, inputs = slots
    branches = attrs["branches"]
    chosen = int(index.value)
    return run(branches[chosen if 0 <= chosen < len(branches) else -1], inputs)


def _while(attrs: Any, slots: Sequence[Any], run: Turn) -> list[ScopeVariable]:
    variables, captured = slots
    current = list(variables)
    while bool(run(attrs["cond"], (*current, *captured))[0].value):
        current = run(attrs["body"], (*current, *captured))
    return current


_CONTROL: dict[str, Callable[[Any, Sequence[Any], Turn], list[ScopeVariable]]] = {
    "If": _if,
    "Case": _case,
    "While": _while,
}


install_control_flow(run_control)
