"""Loops over the first dimension, against TensorFlow too: map_fn, vectorized_map, scan, foldl, foldr."""

import numpy as np
import pytest
from control_programs import both_ways


def test_map_fn(tf):
    x = tf.constant([[1.0, 2], [3, 4]])
    (got,) = both_ways(tf, lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * row, x), x)
    np.testing.assert_array_equal(got, [[3.0, 6.0], [21.0, 28.0]])


def test_map_fn_of_structures(tf):
    def f(x, y):
        return tf.map_fn(
            lambda pair: (pair[0] + pair[1], tf.cast(pair[0], tf.float32)),
            (x, y),
            fn_output_signature=(tf.int32, tf.float32),
        )

    total, floats = both_ways(tf, f, tf.constant([1, 2, 3]), tf.constant([10, 20, 30]))
    np.testing.assert_array_equal(total, [11, 22, 33])
    assert floats.dtype == np.float32


def test_map_fn_over_an_unknown_number(tf):
    f = tf.function(lambda x: tf.map_fn(lambda v: v * v, x), input_signature=[tf.TensorSpec([None], tf.float32)])
    for values in ([], [3.0], [1.0, 2.0, 3.0]):
        np.testing.assert_array_equal(f(tf.constant(values, tf.float32)).numpy(), np.square(values))


@pytest.mark.ours  # TensorFlow, eagerly, forgets the shape of the elements
def test_map_fn_of_nothing(tf):
    assert both_ways(tf, lambda x: tf.map_fn(lambda v: v * 2.0, x), tf.zeros([0, 3]))[0].shape == (0, 3)


def test_gradient_of_map_fn(tf):
    f = tf.function(lambda x, w: tf.map_fn(lambda v: tf.tanh(v * w), x))
    x, w = tf.constant([[0.1, 0.2], [0.3, 0.4]], tf.float64), tf.constant(2.0, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = f(x, w)
    dx, dw = tape.gradient(y, [x, w])
    slope = 1 - np.tanh(2 * x.numpy()) ** 2
    np.testing.assert_allclose(dx.numpy(), 2 * slope, rtol=1e-12)
    np.testing.assert_allclose(dw.numpy(), np.sum(slope * x.numpy()), rtol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("initial", [None, 100])
def test_scan(tf, reverse, initial):
    x = tf.constant([1, 2, 3, 4])
    start = None if initial is None else tf.constant(initial)
    (got,) = both_ways(tf, lambda x: tf.scan(lambda a, v: a * 2 + v, x, initializer=start, reverse=reverse), x)
    values = [4, 3, 2, 1] if reverse else [1, 2, 3, 4]
    expected, a = [], initial
    for v in values:
        a = v if a is None else a * 2 + v
        expected.append(a)
    np.testing.assert_array_equal(got, expected[::-1] if reverse else expected)


def test_scan_of_structures(tf):
    def f(x):
        return tf.scan(lambda a, v: (a[0] + v, a[1] * v), x, initializer=(tf.constant(0), tf.constant(1)))

    sums, products = both_ways(tf, f, tf.constant([1, 2, 3, 4]))
    np.testing.assert_array_equal(sums, [1, 3, 6, 10])
    np.testing.assert_array_equal(products, [1, 2, 6, 24])


def test_gradient_of_scan(tf):
    f = tf.function(lambda x: tf.scan(lambda a, v: a * v, x))
    x = tf.constant([2.0, 3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    # 2 + 2*3 + 2*3*4
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [1 + 3 + 12, 2 + 8, 6])


def test_folds(tf):
    x = tf.constant([1, 2, 3, 4])
    assert both_ways(tf, lambda x: tf.foldl(lambda a, v: a * 10 + v, x), x) == [1234]
    assert both_ways(tf, lambda x: tf.foldr(lambda a, v: a * 10 + v, x), x) == [4321]
    assert both_ways(tf, lambda x: tf.foldl(lambda a, v: a - v, x, initializer=tf.constant(0)), x) == [-10]


def test_vectorized_map(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(tf.vectorized_map(lambda row: row * 2.0, x).numpy(), [[2.0, 4.0], [6.0, 8.0]])
