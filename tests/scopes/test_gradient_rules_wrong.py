"""Gradient rules of users that give what cannot be a gradient: an error by tape and on graphs, never a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow

X = np.float64([1, 2, 3])


def define(rule: Any, **parts: Any) -> Any:
    body = {
        "x": ow.Input(dtypes=ow.floating),
        "y": ow.Output(like="x"),
        "infer": lambda op: op.x.spec,
        "gradient": rule,
        "compute": lambda op, x: x * 2,
        "__doc__": ".. math:: y = 2 x",
    } | parts
    return ow.operator(type("Ruled", (), body))


def by_tape(op: Any) -> Any:
    x = ow.constant(X)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = op(x)
    return tape.gradient(y, x).numpy().tolist()


def on_a_graph(op: Any) -> Any:
    graph = ow.function(lambda x: ow.reduce_sum(op(x))).get_concrete_function(ow.TensorSpec([3], ow.float64, "x")).graph
    scope = ow.Scope()
    scope.var("x").set(X)
    (result,) = ow.append_backward(graph, graph.outputs[0]).run(scope)
    return result.value.numpy().tolist()


WRONG = {
    "a sum": (lambda op, dy: ow.reduce_sum(dy), "another shape"),
    "another dtype": (lambda op, dy: ow.cast(dy, ow.float32), "another dtype"),
    "text": (lambda op, dy: "dy", "gradient gave no tensor for input 'x'"),
    "an object": (lambda op, dy: object(), "gradient gave no tensor for input 'x'"),
}


@pytest.mark.parametrize("run", [by_tape, on_a_graph])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_a_gradient(wrong: str, run: Any) -> None:
    rule, words = WRONG[wrong]
    with pytest.raises(ow.errors.DefinitionError, match=f"Ruled.*{words}"):
        run(define(rule))


@pytest.mark.parametrize("run", [by_tape, on_a_graph])
def test_arrays_are_tensors(run: Any) -> None:
    assert run(define(lambda op, dy: np.float64([2, 2, 2]))) == [2, 2, 2]


def test_a_list_of_another_length_shifts_nothing() -> None:
    op = define(
        lambda op, dy: [dy],
        x=ow.Input(dtypes=ow.floating, repeated=True),
        y=ow.Output(),
        infer=lambda op: op.x[0].spec,
        compute=lambda op, x: x[0] + x[1],
    )
    x = ow.constant(X)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = op([x, x])
    with pytest.raises(ow.errors.DefinitionError, match=r"Ruled: gradient gives a list for(?s:.)*found +1 of"):
        tape.gradient(y, x)


def test_a_maker_of_no_operator() -> None:
    with pytest.raises(ow.errors.SignatureError, match=r"this is not an operator(?s:.)*found +3"):
        by_tape(define(ow.ops.SingleGradient(3)))
