"""Loops and branches with effects, compiled: writes of variables against NumPy in float64, random numbers against the
operators without a compiler, which draw from NumPy's Philox."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import opwright as ow
from opwright.ops.optimizer_rules import RULES

F32 = np.float32
RNG = np.random.default_rng(5)
X = RNG.standard_normal((20, 96)).astype(F32)
W = (RNG.standard_normal((96, 96)) * 0.1).astype(F32)


def report(function, *args):
    return function.experimental_get_compiler_ir(*args)()


def compiled(function):
    return ow.function(function, jit_compile=True)


def test_a_loop_writes_variables():
    state, count = ow.Variable(X), ow.Variable(0.0)

    @compiled
    def run(x, w, n):
        for i in ow.range(n):
            state.assign(ow.tanh(ow.matmul(state, w)) + x)
            if i % 2 == 0:
                count.assign_add(ow.reduce_sum(state))
            else:
                count.assign_sub(1.0)
        return state * 2.0

    h, c = X.astype(float), 0.0
    for i in range(5):
        h = np.tanh(h @ W.astype(float)) + X
        c = c + h.sum() if i % 2 == 0 else c - 1.0
    y = run(ow.constant(X), ow.constant(W), ow.constant(5))
    np.testing.assert_allclose(y, 2 * h, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(state, h, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(count, c, rtol=1e-4)
    assert "While" not in report(run, ow.constant(X), ow.constant(W), ow.constant(5))
    run(ow.constant(X), ow.constant(W), ow.constant(0))
    np.testing.assert_allclose(state, h, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_a_loop_of_optimizer_steps_is_the_steps(rule):
    """A loop of steps by each rule writes what the rule itself does on arrays of float64."""
    states, scalars = RULES[rule].state, RULES[rule].scalars
    w0, slots0 = X[:3], [np.abs(X[3 + i : 6 + i]) / 9 + 1 - (name == "mean") for i, name in enumerate(states)]
    numbers = RNG.uniform(0.1, 0.3, len(scalars))
    variable, slots = ow.Variable(w0), [ow.Variable(s) for s in slots0]

    @compiled
    def steps(g, c):
        for i in ow.range(3):
            gradient = variable * 0.5 + g * ow.cast(i, ow.float32)
            ow.ops.get("UpdateVariable")(
                variable.handle, [s.handle for s in slots], gradient, [c[k] for k in range(len(scalars))], rule=rule
            )

    steps(ow.constant(X[:3]), ow.constant(numbers.astype(F32)))
    w, exact = w0.astype(float), [s.astype(float) for s in slots0]
    for i in range(3):
        RULES[rule].update(w * 0.5 + X[:3] * float(i), w, exact, [np.float64(F32(c)) for c in numbers])
    for actual, expected in zip((variable, *slots), (w, *exact)):
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)
    assert "While" not in report(steps, ow.constant(X[:3]), ow.constant(numbers.astype(F32)))


def noisy(x, w, n):
    for _ in ow.range(n):
        x = ow.nn.dropout(ow.tanh(ow.matmul(x, w)), rate=0.3) + ow.random.normal([20, 96], seed=3)
        if ow.reduce_sum(x) > 0.0:
            x += ow.cast(ow.random.uniform([20, 1], maxval=5, dtype=ow.int32, seed=4), ow.float32)
    return x


def gradient(x, w):
    with ow.GradientTape() as tape:
        tape.watch(w)
        loss = ow.reduce_sum(noisy(x, w, 4) ** 2)
    return tape.gradient(loss, w)


def test_a_loop_draws_the_numbers_of_its_operators():
    """Two calls of a seeded loop, then numbers behind it, are those of the same function without a compiler."""
    results = []
    for jit in (False, True):
        ow.random.set_seed(7)
        function = ow.function(lambda x, w, n: (noisy(x, w, n), ow.random.normal([3])), jit_compile=jit)
        args = ow.constant(X), ow.constant(W), ow.constant(3)
        results.append([np.asarray(y) for _ in range(2) for y in function(*args)])
        if jit:
            assert "While" not in report(function, *args)
    for plain, native in zip(*results):
        np.testing.assert_allclose(native, plain, rtol=1e-5, atol=1e-5)


def test_gradients_of_a_loop_with_dropout():
    results = []
    for jit in (False, True):
        ow.random.set_seed(8)
        function = ow.function(gradient, jit_compile=jit)
        results.append(np.asarray(function(ow.constant(X), ow.constant(W))))
    np.testing.assert_allclose(results[1], results[0], rtol=2e-4, atol=2e-4)
    assert "While" not in report(function, ow.constant(X), ow.constant(W))


def test_unseeded_draws_differ():
    @compiled
    def draws(n):
        y = ow.zeros([4, 50])
        for _ in ow.range(n):
            y = ow.concat([y[1:], ow.random.normal([1, 50])], 0)
        return y

    a, b = np.asarray(draws(ow.constant(4))), np.asarray(draws(ow.constant(4)))
    rows = np.concatenate([a, b])
    assert len(np.unique(rows[:, 0])) == 8
    assert "While" not in report(draws, ow.constant(4))


def test_threads_draw_different_numbers():
    ow.random.set_seed(1)

    @compiled
    def draw(n):
        y = ow.zeros([300])
        for _ in ow.range(n):
            y = ow.random.normal([300], seed=2)
        return y

    draw(ow.constant(3))
    results, barrier = [], threading.Barrier(4)

    def work():
        barrier.wait()
        results.extend(np.asarray(draw(ow.constant(50))) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({y.tobytes() for y in results}) == 80


def test_a_branch_writes_a_small_variable():
    v = ow.Variable(np.ones(5, F32))

    @compiled
    def update(x):
        if ow.reduce_sum(x) > 0:
            v.assign(x * 2)
        else:
            v.assign_add(x)
        return v + 0.0

    update(ow.constant(np.full(5, 3.0, F32)))
    np.testing.assert_array_equal(v, np.full(5, 6.0))
    y = update(ow.constant(np.full(5, -1.0, F32)))
    np.testing.assert_array_equal(v, np.full(5, 5.0))
    np.testing.assert_array_equal(y, np.full(5, 5.0))
    assert "If" not in report(update, ow.constant(np.ones(5, F32)))


def test_one_variable_as_two_arguments():
    def step(a, b, n):
        for _ in ow.range(n):
            a.assign(b * 2.0)
            b.assign_add(a * 0.5)
        return a + b

    values = []
    for jit in (False, True):
        v, u = ow.Variable(np.ones(7, F32)), ow.Variable(np.full(7, 2.0, F32))
        function = ow.function(step, jit_compile=jit)
        values.append([np.asarray(x) for x in (function(v, u, 3), function(v, v, 3), v, u)])
    for plain, native in zip(*values):
        np.testing.assert_allclose(native, plain, rtol=1e-6)


def test_an_error_in_an_iteration_leaves_variables_as_they_were():
    v = ow.Variable(np.zeros(6, F32))
    table = ow.constant(X[:4])

    @compiled
    def run(n):
        for i in ow.range(n):
            v.assign(v + ow.gather(table, i)[:6])

    run(ow.constant(4))
    expected = X[:4, :6].sum(0, dtype=float)
    np.testing.assert_allclose(v, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ow.errors.InvalidArgumentError, match="Gather"):
        run(ow.constant(5))
    np.testing.assert_allclose(v, expected, rtol=1e-5, atol=1e-6)


def test_variables_of_unknown_shape_stay():
    v = ow.Variable(np.zeros(3, F32), shape=ow.TensorShape(None))

    @compiled
    def grow(n):
        for _ in ow.range(n):
            v.assign(ow.concat([v, v], 0))

    grow(ow.constant(2))
    assert v.shape == (12,) or np.asarray(v).shape == (12,)
