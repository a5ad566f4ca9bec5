"""append_backward and gradients on graphs: names, sums, what is left out, errors.

The shapes of the graphs (names and order of gradients) are those that PaddlePaddle 2.6.2 gives for the same programs,
printed with `append_backward(loss)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backward_graphs import RNG, graph_of, made_by, reads, run, spec

import opwright as ow
from opwright.core import errors
from opwright.graph import Graph, parse, same, text
from opwright.ops import registry
from opwright.scopes.backward import append_backward, graph_gradients

# ---- names and sums (8.1, 8.6) ---------------------------------------------------------------------------------------


def four_uses(x: Any, w: Any) -> Any:
    h = ow.matmul(x, w, name="h")
    a, _ = ow.split(h, 2, axis=1, name="ab")
    y = ow.multiply(h, h, name="y")
    return ow.reduce_sum(y) + ow.reduce_sum(ow.tanh(h, name="t")) + ow.reduce_sum(a)


def test_names_and_sums_are_those_of_the_field() -> None:
    """One sum of all parts in the order they come; x*x gives two; the unused half of a split gets zeros."""
    graph = graph_of(four_uses, spec("x", 2, 3), spec("w", 3, 2))
    result = append_backward(graph, graph.outputs[0])
    parts = [f"h@GRAD@RENAME@block0@{i}" for i in range(4)]
    assert reads(result.graph, "h@GRAD") == parts
    assert result.graph.find("h@GRAD").op.name == "AddN"
    assert result.input_gradients("t") == {"x": parts[0]}
    assert result.input_gradients("y") == {"x": parts[1], "y": parts[2]}
    assert result.input_gradients("ab") == {"value": parts[3]}
    assert reads(result.graph, parts[3]) == ["ab@GRAD", "ab.1@GRAD"]
    np.testing.assert_array_equal(result.graph.find("ab.1@GRAD").outputs[0].constant, np.zeros((2, 1)))
    assert result.input_gradients("h") == {"a": "x@GRAD", "b": "w@GRAD"}
    assert [(p.name, g.name) for p, g in result.pairs] == [("x", "x@GRAD"), ("w", "w@GRAD")]
    assert result.gradient_of["h"].name == "h@GRAD"
    assert result.gradient_of[graph.find("h").outputs[0]] is result.gradient_of["h"]
    assert result.value_of["h@GRAD"] == "h"
    loss = graph.outputs[0].name
    assert result.graph.find(f"{loss}@GRAD").outputs[0].constant == 1.0


def test_the_sum_stands_just_before_its_first_reader() -> None:
    graph = graph_of(four_uses, spec("x", 2, 3), spec("w", 3, 2))
    nodes = [n.name for n in append_backward(graph, graph.outputs[0]).graph.nodes]
    at = nodes.index("h@GRAD")
    assert nodes[at - 1] == "h@GRAD@RENAME@block0@3"
    assert nodes[at + 1] == "x@GRAD"


def test_the_forward_nodes_stay_as_they_were() -> None:
    graph = graph_of(four_uses, spec("x", 2, 3), spec("w", 3, 2))
    result = append_backward(graph, graph.outputs[0]).graph
    n = len(graph.nodes)
    assert same(Graph(graph.name, result.inputs, result.nodes[:n], result.outputs[:1]), graph)
    assert [v.name for v in result.outputs] == [graph.outputs[0].name, "x@GRAD", "w@GRAD"]


def test_two_builds_give_the_same_text_and_it_reads_back() -> None:
    graph = graph_of(four_uses, spec("x", 2, 3), spec("w", 3, 2))
    first, second = (text(append_backward(graph, graph.outputs[0]).graph) for _ in range(2))
    assert first == second
    again = parse(first, registry.get)
    assert text(again) == first
    read = parse(text(graph), registry.get)
    assert text(append_backward(read, read.outputs[0]).graph) == first


def test_runs_are_equal_to_the_bit() -> None:
    graph = graph_of(four_uses, spec("x", 2, 3, dtype=ow.float32), spec("w", 3, 2, dtype=ow.float32))
    arrays = [RNG.standard_normal(s).astype(np.float32) for s in ((2, 3), (3, 2))]
    results = [run(append_backward(graph, graph.outputs[0]).graph, *arrays) for _ in range(3)]
    for other in results[1:]:
        for a, b in zip(results[0], other):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_gradient_nodes_come_from_the_lines_of_their_forward_nodes() -> None:
    graph = graph_of(four_uses, spec("x", 2, 3), spec("w", 3, 2))
    result = append_backward(graph, graph.outputs[0])
    assert result.graph.find("x@GRAD").at == graph.find("h").at
    assert result.graph.find("h@GRAD@RENAME@block0@0").at == graph.find("t").at


def test_a_name_is_no_proof() -> None:
    """A value of the user's own named like a gradient is not taken for one: links are kept, not parsed."""

    def f(x: Any) -> Any:
        return ow.reduce_sum(ow.multiply(ow.tanh(x, name="x@GRAD"), x, name="loss_"))

    graph = graph_of(f, spec("x", 3))
    result = append_backward(graph, graph.outputs[0])
    assert result.gradient_of["x"].name == "x@GRAD_1"
    assert result.gradient_of["x@GRAD"].name == "x@GRAD@GRAD"
    x = RNG.standard_normal(3)
    np.testing.assert_allclose(run(result.graph, x)[-1], np.tanh(x) + x * (1 - np.tanh(x) ** 2))


# ---- what gradients do not flow into (8.4, 8.5) ----------------------------------------------------------------------


def joined(a: Any, b: Any, c: Any) -> Any:
    parts = [ow.multiply(x, 2.0, name=f"{n}2") for n, x in zip("abc", (a, b, c))]
    return ow.reduce_sum(ow.concat(parts, 0, name="all"))


def test_list_slots_keep_their_places() -> None:
    graph = graph_of(joined, *(spec(n, 2) for n in "abc"))
    result = append_backward(graph, graph.outputs[0], no_grad_set=["b2"])
    assert result.input_gradients("all")["values"] == ["a2@GRAD", "@EMPTY@", "c2@GRAD"]
    assert set(result.gradient_of) >= {"a", "c", "a2", "c2", "all"}
    assert "b" not in result.gradient_of
    assert "b2" in result.no_grad
    assert [p.name for p, _ in result.pairs] == ["a", "c"]
    assert not any("b2@GRAD" in v.name for v in result.graph.values())


def test_no_grad_on_one_of_two_inputs() -> None:
    def f(x: Any, y: Any) -> Any:
        return ow.reduce_sum(ow.multiply(x, y, name="xy"))

    graph = graph_of(f, spec("x", 3), spec("y", 3))
    result = append_backward(graph, graph.outputs[0], no_grad_set=["y"])
    assert result.input_gradients("xy") == {"x": "x@GRAD", "y": "@EMPTY@"}
    x, y = RNG.standard_normal((2, 3))
    np.testing.assert_array_equal(run(result.graph, x, y)[-1], y)


def test_stop_gradient_in_the_middle() -> None:
    def f(x: Any) -> Any:
        y = ow.multiply(x, x, name="y")
        return ow.reduce_sum(ow.multiply(ow.stop_gradient(y, name="s"), x, name="z"))

    graph = graph_of(f, spec("x", 3))
    result = append_backward(graph, graph.outputs[0])
    x = RNG.standard_normal(3)
    np.testing.assert_allclose(run(result.graph, x)[-1], x * x)
    assert "s" in result.no_grad
    assert result.input_gradients("z") == {"x": "@EMPTY@", "y": "x@GRAD"}
    assert result.input_gradients("y") == {"x": "@EMPTY@", "y": "@EMPTY@"}
    assert "y" not in result.gradient_of


def test_unread_outputs_are_in_the_no_grad_set() -> None:
    graph = graph_of(four_uses, spec("x", 2, 3), spec("w", 3, 2))
    assert append_backward(graph, graph.outputs[0]).no_grad == {"ab.1"}


def test_chosen_parameters_alone() -> None:
    """Nodes that contribute to no requested gradient are omitted."""
    graph = graph_of(four_uses, spec("x", 2, 3), spec("w", 3, 2))
    result = append_backward(graph, graph.outputs[0], parameters=["w"])
    assert [v.name for v in result.graph.outputs[1:]] == ["w@GRAD"]
    assert "x@GRAD" not in made_by(result.graph)
    assert result.input_gradients("h") == {"a": "@EMPTY@", "b": "w@GRAD"}


def test_what_the_loss_does_not_depend_on_has_no_gradient() -> None:
    def f(x: Any, y: Any) -> Any:
        ow.tanh(y, name="aside")
        return ow.reduce_sum(x)

    graph = graph_of(f, spec("x", 3), spec("y", 3))
    result = append_backward(graph, graph.outputs[0])
    assert [p.name for p, _ in result.pairs] == ["x"]
    assert result.graph.find("aside")
    assert graph_gradients(graph, graph.outputs[0], ["y", "x"]).gradients[0] is None


def test_effects_and_integers_do_not_stand_in_the_way() -> None:
    def f(x: Any, i: Any) -> Any:
        picked = ow.gather(ow.reshape(x, [-1]), i, axis=0)
        return ow.reduce_sum(picked * ow.cast(ow.shape(x)[0], ow.float64))

    graph = graph_of(f, spec("x", None, 2), spec("i", 2, dtype=ow.int32))
    result = append_backward(graph, graph.outputs[0])
    x = RNG.standard_normal((3, 2))
    assert [p.name for p, _ in result.pairs] == ["x"]
    np.testing.assert_array_equal(run(result.graph, x, np.array([1, 1], np.int32))[-1], [[0, 6], [0, 0], [0, 0]])


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_an_operator_without_gradient_is_named() -> None:
    @ow.operator
    class BackwardLess:
        x = ow.Input(ow.floating)
        y = ow.Output(like="x")

        def compute(op, x: Any) -> Any:
            return x

    graph = graph_of(lambda x: ow.reduce_sum(BackwardLess(x, name="less")), spec("x", 3))
    with pytest.raises(LookupError, match=r"BackwardLess 'less' .*no gradient[\s\S]*stop_gradient"):
        append_backward(graph, graph.outputs[0])
    graph = graph_of(lambda x: ow.reduce_sum(x + ow.stop_gradient(BackwardLess(x))), spec("x", 3))
    assert append_backward(graph, graph.outputs[0]).pairs

    def inside(x: Any) -> Any:
        for _ in ow.range(2):
            x = BackwardLess(x)
        return ow.reduce_sum(x)

    graph = graph_of(inside, spec("x", 3))
    with pytest.raises(LookupError, match=r"While 'for' .*inside it BackwardLess has no gradient"):
        append_backward(graph, graph.outputs[0])


ERRORS: dict[str, tuple[Callable[[Graph], Any], type[Exception], str]] = {
    "loss of several": (
        lambda g: append_backward(g, "y"),
        errors.InvalidArgumentError,
        r"one floating.*[\s\S]*f64\[3\][\s\S]*reduce_mean",
    ),
    "loss of integers": (lambda g: append_backward(g, "n"), errors.InvalidArgumentError, r"floating"),
    "no such loss": (lambda g: append_backward(g, "tanhh"), errors.NotFoundError, r"no such loss[\s\S]*tanh"),
    "no such parameter": (lambda g: append_backward(g, "l", ["q"]), errors.NotFoundError, "parameter"),
    "an integer parameter": (lambda g: append_backward(g, "l", ["i"]), errors.InvalidArgumentError, "no gradient"),
    "no such no-grad": (lambda g: append_backward(g, "l", no_grad_set=["q"]), errors.NotFoundError, "no_grad_set"),
    "an integer target": (lambda g: graph_gradients(g, "n", "x"), errors.InvalidArgumentError, "target"),
    "another type": (lambda g: graph_gradients(g, "l", "x", ["y"]), errors.InvalidArgumentError, "differ in"),
    "too many": (lambda g: graph_gradients(g, "l", "x", ["l", "l"]), errors.InvalidArgumentError, "target gradients"),
    "unknown node": (lambda g: append_backward(g, "l").input_gradients("q"), KeyError, "no node 'q'"),
    "another graph's value": (
        lambda g: append_backward(g, "l").gradient_of[graph_of(ow.tanh, spec("x")).inputs[0]],
        KeyError,
        "another graph",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    def f(x: Any, i: Any) -> Any:
        y = ow.tanh(x, name="y")
        ow.add(i, 1, name="n")
        ow.tanh(x, name="tanh")
        return ow.reduce_sum(y, name="l")

    call, error, words = ERRORS[name]
    with pytest.raises(error, match=words):
        call(graph_of(f, spec("x", 3), spec("i", dtype=ow.int32)))


def test_a_loss_of_unknown_size_is_refused_with_the_reason() -> None:
    graph = graph_of(lambda x: x * x, spec("x", None))
    with pytest.raises(errors.InvalidArgumentError, match=r"not known[\s\S]*f64\[\?\][\s\S]*reduce_sum"):
        append_backward(graph, graph.outputs[0])


def test_a_sum_that_a_rule_hands_on_keeps_its_name() -> None:
    """Sub hands its gradient, a sum, on to x as it is: that part is a value of its own, also at second order."""

    def f(x: Any) -> Any:
        d = ow.subtract(x, ow.reduce_mean(x), name="d")
        return ow.reduce_sum(ow.multiply(d, d, name="square"), name="loss")

    graph = graph_of(f, spec("x", 3))
    first = append_backward(graph, "loss")
    names = [v.name for v in first.graph.values()]
    assert {"d@GRAD", "d@GRAD@RENAME@block0@0", "d@GRAD@RENAME@block0@1", "x@GRAD@RENAME@block0@0"} <= set(names)
    assert first.gradient_of["d"].name == "d@GRAD"
    second = graph_gradients(first.graph, first.gradient_of["x"], ["x"])
    names = [v.name for v in second.graph.values()]
    assert len(names) == len(set(names))
    np.testing.assert_allclose(run(second.graph, np.array([1.0, 2.0, 4.0]))[-1], np.zeros(3), atol=1e-12)
