"""custom_gradient whose backward function uses what the forward one computed: inlined, and differentiated again."""

import math

import pytest


def make(tf):
    @tf.custom_gradient
    def f(x):
        e = tf.exp(x)

        def gradient(upstream):
            return upstream * e * 10.0

        return e * 2.0, gradient

    return f


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_first_and_second_order(tf, depth):
    def nested(inner):
        def f(x):
            return inner(x) + 1.0

        return tf.function(f)

    run = make(tf)
    for _ in range(depth):
        run = nested(run)
    x = tf.constant(0.5)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        first = tape.gradient(y, x)
    assert float(first) == pytest.approx(10 * math.exp(0.5), rel=1e-6)
    assert float(outer.gradient(first, x)) == pytest.approx(10 * math.exp(0.5), rel=1e-6)
