"""Nothing lives longer than its last reader: in plans, loops, branches, and from a forward run to its gradient.

Lives here: peaks of memory, in buffers of one size.  Not here: whose memory is written (test_inplace.py).
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.compiler.plan import Plan
from opwright.ops.dispatch import quietly

SIZE = 128
BYTES = SIZE * SIZE * 4
SPEC = ow.TensorSpec([SIZE, SIZE])


def array(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (SIZE, SIZE)).astype(np.float32)


def peak(call: Callable[[], Any]) -> float:
    """The most memory that a call had at once above what there was before, in buffers: the least of three calls, as
    threads of other tests allocate meanwhile."""
    call()
    return min(_peak_once(call) for _ in range(3))


def _peak_once(call: Callable[[], Any]) -> float:
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    result = call()
    actual = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    del result
    return actual / BYTES


def plan_of(function: Callable[..., Any], *specs: ow.TensorSpec, inplace: bool = True) -> Plan:
    return Plan(ow.function(function).get_concrete_function(*specs).graph, inplace=inplace)


@pytest.mark.parametrize(("inplace", "most"), [(True, 1.2), (False, 2.2)])
def test_an_element_wise_chain(inplace: bool, most: float) -> None:
    def chain(x: Any) -> Any:
        for _ in range(20):
            x = ow.tanh(x * 1.5)
        return x

    plan, x = plan_of(chain, SPEC, inplace=inplace), array()
    assert most - 0.3 < peak(lambda: plan.run(x)) < most


@pytest.mark.parametrize(("inplace", "most"), [(True, 2.2), (False, 2.7)])
def test_a_deep_network(inplace: bool, most: float) -> None:
    ws, bs = [array(i) for i in range(12)], [array(i)[0] for i in range(12)]

    def network(x: Any) -> Any:
        for w, b in zip(ws, bs):
            x = ow.nn.relu(ow.matmul(x, w) + b)
        return x

    plan, x = plan_of(network, SPEC, inplace=inplace), array()
    assert peak(lambda: plan.run(x)) < most


@pytest.mark.parametrize(("inplace", "most"), [(True, 1.2), (False, 2.2)])
def test_a_loop_holds_its_variable_and_one_more(inplace: bool, most: float) -> None:
    def loop(x: Any) -> Any:
        return ow.while_loop(lambda i, t: i < 5, lambda i, t: (i + 1, ow.tanh(t) * 1.5), (0, x + 1.0))[1]

    plan, x = plan_of(loop, SPEC, inplace=inplace), array()
    assert most - 0.3 < peak(lambda: plan.run(x)) < most


def test_what_a_branch_reads_last_dies_in_it() -> None:
    def f(p: Any, x: Any) -> Any:
        t = x + 1.0

        def long() -> Any:
            u = ow.reduce_sum(t, 0)
            return ow.matmul(ow.tile(u[None], [SIZE, 1]), x)

        return ow.cond(p, long, lambda: x + 2.0)

    plan, x = plan_of(f, ow.TensorSpec([], ow.bool), SPEC), array()
    source = plan.source
    assert source.index("del t") < source.index("else:"), source
    assert peak(lambda: plan.run(np.bool_(True), x)) < 2.2


def test_inputs_that_nobody_else_holds_die_at_their_last_use() -> None:
    def f(x: Any, y: Any) -> Any:
        t = ow.matmul(x, x)
        u = ow.matmul(t, t)
        return ow.matmul(u, y)

    plan = plan_of(f, SPEC, SPEC)

    def fresh() -> list[np.ndarray]:
        return [np.ones((SIZE, SIZE), np.float32) for _ in range(2)]

    def held() -> Any:
        return quietly(plan.run, *fresh())  # as programs do: the arguments live in a tuple

    def consumed() -> Any:
        return quietly(plan.consume, fresh())

    assert held()[0].tobytes() == consumed()[0].tobytes()
    assert peak(consumed) < peak(held) - 0.9


def test_errors_of_a_run_that_consumes_name_the_line() -> None:
    plan = plan_of(lambda x, y: ow.matmul(x, y), ow.TensorSpec(None), ow.TensorSpec(None))
    with pytest.raises(ValueError, match="mismatch") as excinfo:
        plan.consume([np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)])
    assert "MatMul" in str(plan.explain(excinfo.value))


def deep(x: Any) -> Any:
    for _ in range(10):
        x = ow.tanh(x * 1.5)
    return x


def test_what_the_forward_run_kept_dies_while_the_gradient_runs() -> None:
    """The loss of a function under a tape: ten values kept. At the end of the gradient few are left, not ten."""
    alive: list[float] = []

    @ow.custom_gradient
    def look(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            def noted(value: np.ndarray) -> np.ndarray:
                alive.append(tracemalloc.get_traced_memory()[0] / BYTES)
                return value

            return ow.numpy_function(noted, [dy], ow.float32)

        return ow.identity(x), grad

    f = ow.function(lambda x: ow.reduce_sum(deep(look(x))))
    x = ow.constant(array())

    def step(persistent: bool) -> Any:
        with ow.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    for persistent in (False, True):
        step(persistent)
    expected = step(True).numpy()
    actual = {}
    for persistent in (False, True):
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0] / BYTES
        got = step(persistent)
        actual[persistent] = alive[-1] - before
        tracemalloc.stop()
        np.testing.assert_array_equal(got.numpy(), expected)
    assert actual[False] < 4.0
    assert actual[True] > 9.0  # a persistent tape may be asked again


def test_a_gradient_asked_for_twice_by_jacobian_keeps_what_it_needs() -> None:
    f = ow.function(lambda x: ow.tanh(x * 2.0) * x)
    x = ow.constant([0.5, -1.0])
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    got = tape.jacobian(y, x).numpy()
    v = x.numpy().astype(np.float64)
    t = np.tanh(2 * v)
    np.testing.assert_allclose(got, np.diag(t + 2 * v * (1 - t * t)), rtol=1e-6)


def test_shapes_are_read_as_soon_as_there_is_something_to_read() -> None:
    """With an unknown batch the gradient of the addition needs the shape of the product: its sizes, not the product."""
    ws, bs = [array(i) for i in range(8)], [array(i)[0] for i in range(8)]

    @ow.function(input_signature=[ow.TensorSpec([None, SIZE])], autograph=False)
    def network(x: Any) -> Any:
        for w, b in zip(ws, bs):
            x = ow.nn.relu(ow.matmul(x, w) + b)
        return ow.reduce_sum(x)

    x = ow.constant(array())

    def gradient() -> Any:
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = network(x)
        return tape.gradient(y, x)

    # What relu gave, and the gradient with its next one and a mask; 16 with the products.
    assert peak(gradient) < 8 + 4

    plan = plan_of(lambda x: ow.shape(ow.transpose(t := x * 2.0) + 1.0 + ow.reduce_sum(t)), ow.TensorSpec([None, None]))
    np.testing.assert_array_equal(plan.run(np.ones((2, 3), np.float32))[0], [3, 2])
