"""Gradients of what does not depend on a source: None, or zeros where TensorFlow gives zeros; and recompute_grad."""

import math

import numpy as np
import pytest


def same(actual, expected):
    assert (actual is None) == (expected is None)
    assert expected is None or (actual.shape == np.shape(expected) and np.array_equal(actual.numpy(), expected))


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("connected", [None, "other output"])
def test_batch_jacobian_of_a_constant_is_zeros(tf, traced, connected):
    x = tf.constant([[2.0, 3.0]])

    def f(x):
        one = tf.constant([[1.0]])
        return one if connected is None else (one, x * 2.0)

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(f)(x) if traced else f(x)
    same(tape.batch_jacobian(y if connected is None else y[0], x), np.zeros((1, 1, 2)))


def test_batch_jacobian_inside_a_function(tf):
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.constant([[1.0]])
        return tape.batch_jacobian(y, x)

    same(f(tf.constant([[2.0]])), np.zeros((1, 1, 1)))


def test_a_function_none_of_whose_outputs_depends_on_the_source(tf):
    x, w = tf.constant([[2.0]]), tf.constant([[3.0]])
    f = tf.function(lambda x, w: x * 2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        y = f(x, w)
    for result in (tape.gradient(y, [x, w]), tape.jacobian(y, [x, w])):
        assert result[0] is not None
        assert result[1] is None


@pytest.mark.parametrize("persistent", [False, True])
def test_another_output_of_the_function_makes_it_zeros(tf, persistent):
    """What a function computes for one output, it has a gradient for by all of them."""
    x, v = tf.constant([[2.0]]), tf.Variable([[3.0]])
    f = tf.function(lambda x: (x * 2.0, tf.constant([[1.0]]), v * 2.0, tf.cast(tf.cast(x, tf.int32), tf.float32)))
    for k, expected in enumerate([(2.0, 0.0), (0.0, 0.0), (0.0, 2.0), (0.0, 0.0)]):
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = f(x)[k]
        for actual, number in zip(tape.gradient(y, [x, v]), expected):
            same(actual, [[number]])
        if persistent:
            for actual, number in zip(tape.jacobian(y, [x, v]), expected):
                same(actual, [[[[number]]]])


def orders(tf, f, x, n):
    """The n-th derivative of f at x, by nested tapes."""
    if n == 0:
        return f(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = orders(tf, f, x, n - 1)
    return tape.gradient(y, x)


WRAPPED = {
    "recompute": lambda tf, g: tf.recompute_grad(g),
    "recompute in a function": lambda tf, g: tf.function(tf.recompute_grad(g)),
    "recompute of a function": lambda tf, g: tf.recompute_grad(tf.function(g)),
}


@pytest.mark.ours  # TensorFlow refuses derivatives above the first
@pytest.mark.parametrize("kind", ["Variable", "constant"])
@pytest.mark.parametrize("wrapped", WRAPPED)
def test_recompute_grad_has_derivatives_of_every_order(tf, wrapped, kind):
    f = WRAPPED[wrapped](tf, lambda x: tf.sin(x) * x)
    s, c = math.sin(0.5), math.cos(0.5)
    for n, expected in enumerate([0.5 * s, s + 0.5 * c, 2 * c - 0.5 * s, -3 * s - 0.5 * c]):
        assert float(orders(tf, f, getattr(tf, kind)(0.5), n)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.ours
def test_recompute_grad_has_mixed_derivatives_by_variables(tf):
    v, x = tf.Variable(3.0), tf.constant(0.5)
    f = tf.recompute_grad(lambda x: tf.sin(x * v) * x)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        by_x, by_v = inner.gradient(y, [x, v])
    s, c = math.sin(1.5), math.cos(1.5)
    expected = [[6 * c - 4.5 * s, 2 * 0.5 * c - 0.5**2 * 3 * s], [2 * 0.5 * c - 0.5**2 * 3 * s, -(0.5**3) * s]]
    actual = [[float(outer.gradient(g, source)) for source in (x, v)] for g in (by_x, by_v)]
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_recompute_grad_of_a_dict_by_references(tf):
    x, y = tf.constant(0.5), tf.constant(1.5)
    f = tf.recompute_grad(lambda d: sum(v * v for v in d.values()))
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = f({x.ref(): x, y.ref(): y})
    assert float(tape.gradient(z, x)) == 1.0
