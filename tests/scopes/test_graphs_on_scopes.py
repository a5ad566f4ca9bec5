"""Graphs run on scopes: equal to the function they came from, on any place; control flow with scopes of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.scopes import scope as scope_module

CPU, SIM = ow.CPUPlace(), ow.SimulatedPlace(0)


def filled(graph: ow.Graph, *values: Any) -> ow.Scope:
    scope = ow.Scope()
    for value, given in zip(graph.inputs, values, strict=True):
        scope.var(value.name).set(given)
    return scope


def straight(x: Any, y: Any) -> Any:
    z = x * y + 1.0
    return z, ow.reduce_sum(z * z), x


def branching(x: Any, y: Any) -> Any:
    if ow.reduce_sum(x) > 3.0:
        z = x + y
    else:
        z = x - y
    return z


def looping(x: Any, y: Any) -> Any:
    n = 0
    while ow.reduce_sum(x) < 40.0:
        if n % 2 == 0:
            x = x + y
        else:
            x = x * 2.0
        n = n + 1
    return x, n


def choosing(x: Any, y: Any) -> Any:
    index = ow.cast(ow.reduce_max(x), ow.int32)
    return ow.switch_case(index, [lambda: x, lambda: x + y, lambda: x * y])


@pytest.mark.parametrize("place", [CPU, SIM], ids=str)
@pytest.mark.parametrize("values", [((1.0, 2.0), (3.0, 4.0)), ((0.5, 0.0), (5.0, 6.0)), ((7.0, 1.0), (1.0, 1.0))])
@pytest.mark.parametrize("body", [straight, branching, looping, choosing], ids=lambda f: f.__name__)
def test_equal_to_the_function(body: Any, values: Any, place: Any) -> None:
    function = ow.function(body)
    graph = function.get_concrete_function(ow.TensorSpec([2]), ow.TensorSpec([2])).graph
    scope = filled(graph, *(np.float32(v) for v in values))
    wanted = function(*(ow.constant(v) for v in values))
    before = set(scope.local_var_names())
    results = ow.run_graph(graph, scope, place)
    for result, want in zip(results, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        np.testing.assert_array_equal(result.value.numpy(), want.numpy())
    assert set(scope.local_var_names()) == before | {v.name for v in graph.outputs}  # nothing in between is left
    assert scope.kids == ()


def test_a_graphs_values_shadow_what_is_around_and_are_dropped_after_their_last_use(monkeypatch: Any) -> None:
    @ow.function
    def chain(x: Any) -> Any:
        for _ in range(6):
            x = x + 1.0
        return x * 2.0

    graph = chain.get_concrete_function(ow.TensorSpec([2])).graph
    scope = filled(graph, [1.0, 2.0])
    for name in {v.name for v in graph.values()} - {v.name for v in (*graph.inputs, *graph.outputs)}:
        scope.var(name).set("mine")
    most = []
    erase = scope_module.Scope.erase

    def counting(self: Any, names: Any) -> None:
        most.append(len(self.local_var_names()))
        erase(self, names)

    monkeypatch.setattr(scope_module.Scope, "erase", counting)
    (out,) = ow.run_graph(graph, scope, CPU)
    assert out.value.numpy().tolist() == [14.0, 16.0]
    assert max(most) <= 4  # of 8 or more values
    inner = [scope.var(v.name) for n in graph.nodes for v in n.outputs if v not in graph.outputs]
    assert all(v.value.numpy() == b"mine" for v in inner)


def test_each_turn_of_a_loop_has_a_scope_of_its_own(monkeypatch: Any) -> None:
    graph = ow.function(looping).get_concrete_function(ow.TensorSpec([2]), ow.TensorSpec([2])).graph
    made, new_scope = [], scope_module.Scope.new_scope

    def counting(self: Any) -> Any:
        made.append(new_scope(self))
        return made[-1]

    monkeypatch.setattr(scope_module.Scope, "new_scope", counting)
    _, turns = ow.run_graph(graph, filled(graph, [1.0, 2.0], [3.0, 4.0]), CPU)
    n = int(turns.value)
    assert n >= 3
    assert len(made) >= 1 + (n + 1) + n + n  # the graph's, each condition's, each body's, each branch's
    assert all(kid.is_dropped for kid in made)


def test_variables_random_numbers_and_prints_work(capsys: pytest.CaptureFixture[str]) -> None:
    v = ow.Variable([1.0, 2.0])

    @ow.function
    def step(x: Any) -> Any:
        v.assign_add(x)
        ow.print("sum", ow.reduce_sum(v))
        return v * 2.0, ow.random.uniform([3])

    concrete = step.get_concrete_function(ow.TensorSpec([2]))
    scope = ow.Scope()
    for value, given in zip(concrete.graph.inputs, [np.float32([1, 1]), v], strict=True):
        scope.var(value.name).set(given)
    for place in (CPU, SIM):
        doubled, numbers = ow.run_graph(concrete.graph, scope, place)
        assert numbers.shape == [3]
    assert v.numpy().tolist() == [3.0, 4.0]
    assert doubled.value.numpy().tolist() == [6.0, 8.0]
    printed = capsys.readouterr()
    assert "sum 5" in printed.out + printed.err


def test_an_input_that_is_not_there_is_named() -> None:
    graph = ow.function(straight).get_concrete_function(ow.TensorSpec([2]), ow.TensorSpec([2])).graph
    scope = ow.Scope()
    scope.var("x").set([1.0, 2.0])
    with pytest.raises(ow.errors.NotFoundError, match=r"'straight'.*'y'(.|\n)*no such variable"):
        ow.run_graph(graph, scope, CPU)
    scope.var("y")
    with pytest.raises(ow.errors.NotFoundError, match="not initialized"):
        ow.run_graph(graph, scope, CPU)


def test_a_failing_node_names_its_own_line_and_leaves_no_output() -> None:
    @ow.function
    def broken(x: Any) -> Any:
        return ow.reshape(x, [5])

    graph = broken.get_concrete_function(ow.TensorSpec([None])).graph
    scope = filled(graph, [1.0, 2.0])
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"Reshape.*test_graphs_on_scopes.py"):
        ow.run_graph(graph, scope, CPU)
    assert scope.local_var_names() == [graph.inputs[0].name]
    assert scope.kids == ()


def test_control_flow_as_an_instance() -> None:
    graph = ow.function(branching).get_concrete_function(ow.TensorSpec([2]), ow.TensorSpec([2])).graph
    node = next(n for n in graph.nodes if n.type == "If")
    choose = ow.ops.get("If").on({"pred": "p", "inputs": ["a", "b"]}, {"outputs": ["c"]}, **node.attrs)
    scope = ow.Scope()
    names = [v.name for v in node.inputs[1]]
    given = {"x": np.float32([5, 6]), "y": np.float32([1, 1])}
    for variable, name in zip(("a", "b"), names, strict=True):
        scope.var(variable).set(given[name])
    for pred, wanted in ((True, [6.0, 7.0]), (False, [4.0, 5.0])):
        scope.var("p").set(pred)
        found = choose.run(scope, CPU)
        assert found.branch == "control"
        assert scope.var("c").value.numpy().tolist() == wanted
    scope.erase("p")
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"If.*'pred' is missing(.|\n)*'p'"):
        choose.run(scope, CPU)
    assert choose.explain(scope).branch == "control"
