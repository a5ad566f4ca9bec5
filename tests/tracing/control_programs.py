"""Helpers of the tests of control flow: a function run in both ways, its derivatives, a loop to differentiate."""

import numpy as np


def both_ways(tf, function, *args):
    """The results eagerly and in a graph, which must agree; gives one of them, as arrays."""
    eager = function(*args)
    graph = tf.function(function)(*args)
    flat_eager, flat_graph = tf.nest.flatten(eager), tf.nest.flatten(graph)
    for a, b in zip(flat_eager, flat_graph, strict=True):
        if a.dtype == tf.string:
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        else:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
        assert a.dtype == b.dtype
    return [t.numpy() for t in flat_graph]


def derivatives(tf, function, x, order):
    """The derivatives of a scalar function of a scalar, up to `order`, by nested tapes around a graph."""
    if order == 0:
        return [function(x)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        values = derivatives(tf, function, x, order - 1)
    return [*values, tape.gradient(values[-1], x)]


def power(tf, x, n):
    return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0, tf.ones_like(x)))[1]
