"""Numbers of gradients on graphs, against central differences in float64, formulas and tapes.

Lives here: the cases of 8.7 of the operator model, control flow, rows, variables, random graphs.
Not here: names and what is left out (test_backward.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backward_graphs import RNG, differences, graph_of, run, spec
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright.graph import parse, same, text
from opwright.ops import registry
from opwright.scopes.backward import append_backward, graph_gradients
from thorough import examples

# ---- numbers (8.7) ---------------------------------------------------------------------------------------------------


def looped(x: Any, w: Any) -> Any:
    i = ow.constant(0)
    s = x
    while i < 3:
        s = ow.tanh(s * w + 0.1)
        i += 1
    return ow.reduce_sum(s * w)


def branched(x: Any, w: Any) -> Any:
    if ow.reduce_sum(x) > 0.0:
        y = ow.sin(x) * w
    else:
        y = x * x
    return ow.reduce_sum(y * w)


def nested(x: Any, w: Any) -> Any:
    total = ow.zeros([3], ow.float64)
    for i in ow.range(3):
        for _ in ow.range(i):
            if ow.reduce_sum(total) < 1.0:
                total = total * w + ow.sin(x)
            else:
                total = total * 0.5
        total += x
    return ow.reduce_sum(total)


def collected(x: Any, w: Any) -> Any:
    ta = ow.TensorArray(ow.float64, size=0, dynamic_size=True, element_shape=[3])
    for i in ow.range(3):
        ta = ta.write(i, x * w * ow.cast(i, ow.float64))
    return ow.reduce_sum(ta.stack() ** 2.0)


NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "fan-out 1": lambda x, w: ow.reduce_sum(ow.tanh(x) * w),
    "fan-out 2": lambda x, w: ow.reduce_sum(ow.tanh(x) * w + ow.sin(x)),
    "fan-out 3": lambda x, w: ow.reduce_sum(ow.tanh(x) * ow.exp(x) * ow.sin(x) * w),
    "x * x": lambda x, w: ow.reduce_sum(x * x * w),
    "x + x": lambda x, w: ow.reduce_sum((x + x) * w),
    "broadcast": lambda x, w: ow.reduce_sum(ow.reshape(x, [3, 1]) * w),
    "unused second output": lambda x, w: ow.reduce_sum(ow.math.top_k(x * w, 2)[0]),
    "mean": lambda x, w: ow.reduce_mean((x - w) ** 2.0),
    "loss of one element": lambda x, w: ow.reshape(ow.reduce_sum(x * w), [1, 1]),
    "loop": looped,
    "branch": branched,
    "nested control flow": nested,
    "lists": collected,
}


CASES = [
    pytest.param(f, known, id=f"{name}, {'known' if known else 'unknown'} shapes")
    for name, f in NUMBERS.items()
    for known in ([True] if f in (nested, collected) else [True, False])  # these two fix the shapes themselves
]


@pytest.mark.parametrize(("f", "known"), CASES)
def test_numbers_are_those_of_differences_and_tapes(f: Any, known: bool) -> None:
    n = 3 if known else None
    graph = graph_of(f, spec("x", n), spec("w", n))
    result = append_backward(graph, graph.outputs[0])
    arrays = [np.array([0.7, -0.4, 1.1]), np.array([0.3, 0.9, -0.5])]
    loss, *grads = run(result.graph, *arrays)
    np.testing.assert_array_equal(loss, run(graph, *arrays)[0])
    tensors = [ow.constant(a) for a in arrays]
    with ow.GradientTape() as tape:
        tape.watch(tensors)
        y = ow.function(f)(*tensors)
    taped = tape.gradient(y, tensors)
    by_name = {p.name: g for (p, _), g in zip(result.pairs, grads, strict=True)}
    for k, name in enumerate("xw"):
        np.testing.assert_allclose(by_name[name], differences(graph, arrays, k), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(by_name[name], taped[k], rtol=1e-12, atol=1e-14)
    assert all(g.spec.short() == p.spec.short() for p, g in result.pairs), "a gradient has the type of its variable"
    read = parse(text(result.graph), registry.get)
    assert same(read, result.graph)
    assert text(append_backward(graph, graph.outputs[0]).graph) == text(result.graph)


@pytest.mark.parametrize("f", NUMBERS.values(), ids=NUMBERS)
def test_second_order(f: Any) -> None:
    graph = graph_of(f, spec("x", 3), spec("w", 3))
    first = append_backward(graph, graph.outputs[0])
    target = first.gradient_of["x"]
    second = graph_gradients(first.graph, target, ["x", "w"])
    arrays = [np.array([0.7, -0.4, 1.1]), np.array([0.3, 0.9, -0.5])]
    out = list(first.graph.outputs).index(target)
    values = dict(zip((v.name for v in second.graph.outputs), run(second.graph, *arrays)))
    for k, grad in enumerate(second.gradients):
        result = np.zeros(3) if grad is None else values[grad.name]
        np.testing.assert_allclose(result, differences(first.graph, arrays, k, out), rtol=1e-5, atol=1e-7)


def test_second_order_names() -> None:
    graph = graph_of(lambda x: ow.reduce_sum(ow.pow(x, 3.0, name="y")), spec("x", 3))
    first = append_backward(graph, graph.outputs[0])
    second = graph_gradients(first.graph, "x@GRAD", ["x"])
    assert second.gradient_of["x@GRAD"].name == "x@GRAD@GRAD"
    assert second.value_of["x@GRAD@GRAD"] == "x@GRAD"
    assert second.gradient_of["x"].name == "x@GRAD_1", "x@GRAD is the first gradient's name"
    x = RNG.uniform(0.5, 2.0, 3)
    np.testing.assert_allclose(run(second.graph, x)[-1], 6 * x)
    third = graph_gradients(second.graph, second.gradient_of["x"], ["x"])
    np.testing.assert_allclose(run(third.graph, x)[-1], [6.0, 6.0, 6.0])


def test_two_losses() -> None:
    """Gradients of two losses one after the other, and of their sum at once."""

    def f(x: Any) -> Any:
        return ow.reduce_sum(ow.sin(x)), ow.reduce_sum(x * x * x)

    graph = graph_of(f, spec("x", 3))
    one = append_backward(graph, graph.outputs[0])
    both = append_backward(one.graph, one.graph.find(graph.outputs[1].name).outputs[0])
    x = RNG.standard_normal(3)
    values = run(both.graph, x)
    np.testing.assert_allclose(values[2], np.cos(x))
    np.testing.assert_allclose(values[3], 3 * x * x)
    assert [v.name for v in both.graph.outputs[2:]] == ["x@GRAD", "x@GRAD_1"]
    summed = graph_gradients(graph, list(graph.outputs), "x")
    np.testing.assert_allclose(run(summed.graph, x)[-1], np.cos(x) + 3 * x * x)


def test_gradients_start_from_what_is_given_and_targets_may_lie_on_each_others_way() -> None:
    def f(x: Any, seed: Any) -> Any:
        y = ow.multiply(x, x, name="y")
        return ow.multiply(y, 3.0, name="z"), ow.identity(seed, name="s")

    graph = graph_of(f, spec("x", 3), spec("seed", 3))
    result = graph_gradients(graph, ["z", "y"], ["x", "y"], target_gradients=["seed", None])
    x, seed = RNG.standard_normal((2, 3))
    values = dict(zip((v.name for v in result.graph.outputs), run(result.graph, x, seed)))
    np.testing.assert_allclose(values["y@GRAD"], 3 * seed + 1)
    np.testing.assert_allclose(values["x@GRAD"], (3 * seed + 1) * 2 * x)


UNARY = [
    ow.tanh,
    ow.sin,
    ow.identity,
    ow.exp,
    lambda x: x * 0.5,
    lambda x: ow.split(x, 2)[1],
    lambda x: ow.concat([x, x], 0)[1:3],
    ow.stop_gradient,
]
BINARY = [ow.add, ow.multiply, ow.subtract, ow.maximum]


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=10))
def test_random_graphs_have_the_gradients_of_tapes(program: list[tuple[int, int, int]]) -> None:
    def f(x: Any, w: Any) -> Any:
        pool = [x, w]
        for op, i, j in program:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            created = UNARY[op](a) if op < len(UNARY) else BINARY[op - len(UNARY)](a[:1], b)
            pool.append(
                ow.clip_by_value(created, -3.0, 3.0) if created.shape[0] == 2 else ow.concat([created, created], 0)
            )
        return ow.reduce_sum(pool[-1] * pool[-2])

    graph = graph_of(f, spec("x", 2), spec("w", 2))
    result = append_backward(graph, graph.outputs[0])
    arrays = [np.array([0.6, -0.3]), np.array([0.8, 0.45])]
    values = run(result.graph, *arrays)[1:]
    tensors = [ow.constant(a) for a in arrays]
    with ow.GradientTape() as tape:
        tape.watch(tensors)
        y = f(*tensors)
    for tensor, name in zip(tape.gradient(y, tensors), "xw"):
        at = [i for i, (p, _) in enumerate(result.pairs) if p.name == name]
        if tensor is None:
            assert not at
        else:
            np.testing.assert_allclose(values[at[0]], tensor, rtol=1e-12, atol=1e-14)


# ---- rows, variables, gradients of the user's own --------------------------------------------------------------------


def test_rows_of_a_table() -> None:
    """The gradient of a lookup is rows: the ids as they come, and the gradient of what was looked up."""
    graph = graph_of(lambda t, i: ow.reduce_sum(ow.gather(t, i) ** 2.0), spec("t", 4, 2), spec("i", 3, dtype=ow.int64))
    result = append_backward(graph, graph.outputs[0])
    grad = result.gradient_of["t"]
    assert grad.kind == "rows"
    assert grad.name == "t@GRAD"
    assert [v.name for v in grad.parts] == ["t@GRAD.values", "t@GRAD.indices", "t@GRAD.dense_shape"]
    assert grad.spec.short() == "f64[4,2]"
    table, ids = RNG.standard_normal((4, 2)), np.array([3, 1, 3])
    _, values, indices, shape = run(result.graph, table, ids)
    np.testing.assert_allclose(values, 2 * table[ids])
    np.testing.assert_array_equal(indices, ids)
    np.testing.assert_array_equal(shape, [4, 2])


@pytest.mark.parametrize("axis", [1, -1])
def test_a_lookup_along_another_axis_is_dense(axis: int) -> None:
    graph = graph_of(
        lambda t, i: ow.reduce_sum(ow.gather(t, i, axis=axis) ** 2.0), spec("t", 4, 2), spec("i", 3, dtype=ow.int64)
    )
    result = append_backward(graph, graph.outputs[0])
    assert result.gradient_of["t"] is result.graph.outputs[1]
    assert result.kinds["t@GRAD"] == "dense"


def test_sums_of_rows_are_merged_and_sums_with_dense_are_dense() -> None:
    ids = np.array([3, 1, 3])
    table = RNG.standard_normal((4, 2))

    def twice(t: Any, i: Any) -> Any:
        return ow.reduce_sum(ow.gather(t, i) ** 2.0) + ow.reduce_sum(ow.gather(t, i) * 3.0)

    graph = graph_of(twice, spec("t", 4, 2), spec("i", 3, dtype=ow.int64))
    result = append_backward(graph, graph.outputs[0])
    _, values, indices, _ = run(result.graph, table, ids)
    np.testing.assert_array_equal(indices, [1, 3])
    np.testing.assert_allclose(values, [2 * table[1] + 3, 4 * table[3] + 6])
    assert result.kinds["t@GRAD"] == "rows"

    def mixed(t: Any, i: Any) -> Any:
        return ow.reduce_sum(ow.gather(t, i) ** 2.0) + ow.reduce_sum(ow.sin(t))

    graph = graph_of(mixed, spec("t", 4, 2), spec("i", 3, dtype=ow.int64))
    result = append_backward(graph, graph.outputs[0])
    expected = np.cos(table)
    np.add.at(expected, ids, 2 * table[ids])
    np.testing.assert_allclose(run(result.graph, table, ids)[1], expected)
    assert result.kinds["t@GRAD"] == "dense"


def test_a_scope_holds_the_gradients_under_their_names() -> None:
    graph = graph_of(
        lambda t, i, w: ow.reduce_sum(ow.gather(t, i) * w), spec("t", 4, 2), spec("i", 2, dtype=ow.int64), spec("w", 2)
    )
    result = append_backward(graph, graph.outputs[0])
    table, w = RNG.standard_normal((4, 2)), RNG.standard_normal(2)
    scope = ow.Scope()
    for name, array in (("t", table), ("i", np.array([2, 2])), ("w", w)):
        scope.var(name).set(array)
    of_table, of_w = result.run(scope)
    assert of_table is scope.find_var("t@GRAD")
    assert of_table.kind == "rows"
    np.testing.assert_allclose(of_table.value.to_dense(), [[0, 0], [0, 0], 2 * w, [0, 0]])
    np.testing.assert_allclose(of_w.value, 2 * table[2])
    assert scope.find_var("Gather@GRAD") is None, "what is in between is not kept"


def test_variables_stand_for_what_they_hold() -> None:
    v = ow.Variable(RNG.standard_normal(3), name="v")

    def f(x: Any) -> Any:
        s = x
        for _ in ow.range(2):
            s = s * v
        return ow.reduce_sum(s * v)

    graph = graph_of(f, spec("x", 3))
    result = append_backward(graph, graph.outputs[0])
    x = RNG.standard_normal(3)
    values = dict(zip((o.name for o in result.graph.outputs), run(result.graph, x, v)))
    np.testing.assert_allclose(values["v@GRAD"], 3 * x * v.numpy() ** 2)
    np.testing.assert_allclose(values["x@GRAD"], v.numpy() ** 3)
    read = parse(text(graph), registry.get)  # the handle's text has no variable
    again = append_backward(read, read.outputs[0])
    np.testing.assert_allclose(run(again.graph, x, v)[-1], values["v@GRAD"])


def test_gradients_of_the_users_own_are_kept() -> None:
    @ow.custom_gradient
    def odd(x: Any) -> Any:
        return x * 2.0, lambda dy: dy * 100.0 * x

    graph = graph_of(lambda x: ow.reduce_sum(odd(x) * 3.0), spec("x", 3))
    result = append_backward(graph, graph.outputs[0])
    x = RNG.standard_normal(3)
    np.testing.assert_allclose(run(result.graph, x)[-1], 300 * x)
    second = graph_gradients(result.graph, result.gradient_of["x"], "x")
    np.testing.assert_allclose(run(second.graph, x)[-1], [300.0] * 3)
