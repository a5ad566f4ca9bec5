"""while_loop, against TensorFlow too: values, shapes, effects, errors.

Gradients are compared with formulas or with central differences in float64.
"""

import numpy as np
import pytest
from control_programs import both_ways, derivatives, power


@pytest.mark.parametrize("n", [0, 1, 5])
def test_while_loop(tf, n):
    assert both_ways(tf, lambda n: power(tf, tf.constant(3.0), n), tf.constant(n)) == [3.0**n]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_through_an_unknown_number_of_turns(tf, n, order):
    f = tf.function(lambda x, n: power(tf, x, n))
    x = tf.constant(1.5, tf.float64)
    got = derivatives(tf, lambda x: f(x, tf.constant(n)), x, order)[-1]
    expected = np.prod(np.arange(n, n - order, -1.0)) * 1.5 ** (n - order) if n >= order else 0.0
    np.testing.assert_allclose(0.0 if got is None else got.numpy(), expected, rtol=1e-12)


def test_gradient_of_a_loop_inside_the_function(tf):
    @tf.function
    def f(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = power(tf, x, n)
        return tape.gradient(y, x)

    assert f(tf.constant(2.0), tf.constant(5)).numpy() == 80.0


def test_nested_loops_and_their_gradients(tf):
    v = tf.Variable(0.3, dtype=tf.float64)

    @tf.function
    def f(n):
        def outer(i, a):
            _, b = tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * v + tf.sin(b)), (0, a))
            return i + 1, b

        return tf.while_loop(lambda i, a: i < n, outer, (0, tf.constant(0.5, tf.float64)))[1]

    def formula(v):
        a = 0.5
        for i in range(5):
            for _ in range(i):
                a = a * v + np.sin(a)
        return a

    with tf.GradientTape() as second, tf.GradientTape() as first:
        y = f(tf.constant(5))
        dy = first.gradient(y, v)
    h = 1e-4
    np.testing.assert_allclose(y.numpy(), formula(0.3), rtol=1e-12)
    np.testing.assert_allclose(dy.numpy(), (formula(0.3 + h) - formula(0.3 - h)) / (2 * h), rtol=1e-6)
    second_difference = (formula(0.3 + h) - 2 * formula(0.3) + formula(0.3 - h)) / h**2
    np.testing.assert_allclose(second.gradient(dy, v).numpy(), second_difference, rtol=1e-4)


def test_cond_inside_a_loop(tf):
    @tf.function
    def collatz(n):
        def step(n, count):
            return tf.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), count + 1

        return tf.while_loop(lambda n, _: n > 1, step, (n, 0))[1]

    assert collatz(tf.constant(27)).numpy() == 111


@pytest.mark.parametrize("x", [0.4, 1.7])
def test_gradient_of_cond_inside_a_loop(tf, x):
    @tf.function
    def f(x):
        def step(i, a):
            return i + 1, tf.cond(a > 1.0, lambda: a / 2.0, lambda: a * x + 0.3)

        return tf.while_loop(lambda i, a: i < 9, step, (0, x))[1]

    def formula(x):
        a = x
        for _ in range(9):
            a = a / 2.0 if a > 1.0 else a * x + 0.3
        return a

    t = tf.constant(x, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = f(t)
    np.testing.assert_allclose(y.numpy(), formula(x), rtol=1e-12)
    np.testing.assert_allclose(tape.gradient(y, t).numpy(), (formula(x + 1e-6) - formula(x - 1e-6)) / 2e-6, rtol=1e-5)


def test_loop_inside_cond(tf):
    @tf.function
    def f(x, n):
        return tf.cond(x > 0, lambda: power(tf, x, n), lambda: x)

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, tf.constant(3))
    assert (y.numpy(), tape.gradient(y, x).numpy()) == (8.0, 12.0)


def test_structures_as_loop_variables(tf):
    def f(x):
        def body(i, state):
            return i + 1, {"sum": state["sum"] + x, "pair": (state["pair"][1], state["pair"][0])}

        start = {"sum": tf.zeros([2]), "pair": (tf.constant(1), tf.constant(2))}
        return tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), start])

    i, one, two, total = both_ways(tf, f, tf.constant([1.0, 2.0]))
    assert (i, one, two) == (3, 2, 1)
    np.testing.assert_array_equal(total, [3.0, 6.0])


def test_maximum_iterations(tf):
    def f(limit):
        return tf.while_loop(lambda i: i < 100, lambda i: (i + 1,), (tf.constant(0),), maximum_iterations=limit)

    assert both_ways(tf, f, tf.constant(7)) == [7]
    assert both_ways(tf, f, tf.constant(200)) == [100]
    assert both_ways(tf, lambda: f(3)) == [3]


def test_shape_invariants(tf):
    def f():
        return tf.while_loop(
            lambda i, x: i < 3,
            lambda i, x: (i + 1, tf.concat([x, x], 0)),
            (tf.constant(0), tf.ones([1, 2])),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 2])),
        )[1]

    (got,) = both_ways(tf, f)
    assert got.shape == (8, 2)


def test_a_shape_that_changes_unannounced_is_an_error(tf):
    @tf.function
    def f():
        return tf.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, tf.concat([x, x], 0)), (tf.constant(0), tf.ones([1, 2]))
        )

    with pytest.raises(ValueError, match=r"enters the loop with shape \(1, 2\), but has shape \(2, 2\) after one"):
        f()


@pytest.mark.ours  # TensorFlow lets it pass
def test_an_invariant_that_the_start_does_not_fit_is_an_error(tf):
    @tf.function
    def f():
        return tf.while_loop(
            lambda x: True, lambda x: (x,), (tf.ones([1, 2]),), shape_invariants=(tf.TensorShape([3, None]),)
        )

    with pytest.raises(ValueError, match="shape invariant"):
        f()


def test_a_dtype_that_changes_is_an_error(tf):
    @tf.function
    def f():
        return tf.while_loop(lambda x: x < 3, lambda x: (tf.cast(x, tf.float32),), (tf.constant(0),))

    with pytest.raises((TypeError, ValueError), match=r"float|dtype|type"):
        f()


def test_a_structure_that_changes_is_an_error(tf):
    @tf.function
    def f():
        return tf.while_loop(lambda x, y: x < 3, lambda x, y: (x, (y, y)), (tf.constant(0), tf.constant(1)))

    with pytest.raises((TypeError, ValueError), match="structure"):
        f()


def test_effects_in_a_loop_keep_their_order(tf):
    v = tf.Variable([0, 0, 0, 0, 0])

    @tf.function
    def f(n):
        def body(i):
            before = v.read_value()
            v.assign(before * 10 + i)
            return (i + 1,)

        tf.while_loop(lambda i: i < n, body, (0,))
        return v.read_value()

    np.testing.assert_array_equal(f(tf.constant(4)).numpy(), [123] * 5)


def test_a_condition_may_read_state(tf):
    v = tf.Variable(0)

    @tf.function
    def f():
        def body(i):
            v.assign_add(2)
            return (i + 1,)

        return tf.while_loop(lambda i: v < 9, body, (0,))

    (turns,) = f()
    assert (turns.numpy(), v.numpy()) == (5, 10)


def test_the_graph_of_a_loop_does_not_grow_with_its_turns(tf):
    f = tf.function(lambda n: power(tf, tf.constant(1.0), n))
    f(tf.constant(3))
    before = len(f.get_concrete_function(tf.constant(3)).graph.as_graph_def().node)
    f(tf.constant(3000))
    assert f.experimental_get_tracing_count() == 1
    assert len(f.get_concrete_function(tf.constant(3000)).graph.as_graph_def().node) == before


def test_zero_turns_and_empty_tensors(tf):
    def f(x):
        return tf.while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * 2.0), (0, x))[1]

    assert both_ways(tf, f, tf.zeros([0, 3]))[0].shape == (0, 3)
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(f)(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [1.0, 1.0])


def test_strings_in_a_loop(tf):
    def f(n):
        return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + "ab"), (0, tf.constant("")))[1]

    assert both_ways(tf, f, tf.constant(3)) == [b"ababab"]


@pytest.mark.ours  # TensorFlow takes minutes
def test_loops_nested_deeply(tf):
    depth = 22  # past what one Python function may nest

    @tf.function
    def f(n):
        def level(k, a):
            if k == 0:
                return a + 1
            return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, level(k - 1, a)), (0, a))[1]

        return level(depth, tf.constant(0))

    assert f(tf.constant(1)).numpy() == 1


def test_a_function_called_in_a_loop(tf):
    v = tf.Variable(2.0)

    @tf.function
    def inner(x):
        return x * v + 1.0

    @tf.function
    def f(n):
        return tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, inner(x)), (0, tf.constant(1.0)))[1]

    with tf.GradientTape() as tape:
        y = f(tf.constant(3))
    assert y.numpy() == 15.0
    assert tape.gradient(y, v).numpy() == 3 * 4 + 2 * 2 + 1


def test_a_function_with_a_loop_called_in_a_function(tf):
    inner = tf.function(lambda x, n: power(tf, x, n))

    @tf.function
    def f(x, n):
        return inner(x, n) + inner(x, n + 1)

    x = tf.constant(2.0)
    for _ in range(2):
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = f(x, tf.constant(3))
            dy = first.gradient(y, x)
        assert (y.numpy(), dy.numpy(), second.gradient(dy, x).numpy()) == (24.0, 44.0, 60.0)


def test_gradients_of_sparse_reads_in_a_loop(tf):
    table = tf.Variable(np.arange(12.0).reshape(4, 3))

    @tf.function
    def f(ids):
        def body(i, total):
            return i + 1, total + tf.reduce_sum(tf.gather(table, ids[i]) ** 2)

        return tf.while_loop(lambda i, _: i < 3, body, (0, tf.constant(0.0, tf.float64)))[1]

    with tf.GradientTape() as tape:
        y = f(tf.constant([1, 3, 1]))
    grad = tf.convert_to_tensor(tape.gradient(y, table)).numpy()
    rows = np.arange(12.0).reshape(4, 3)
    np.testing.assert_allclose(grad, rows * 2 * np.array([[0], [2], [0], [1]]))


def test_stop_gradient_in_a_loop(tf):
    @tf.function
    def f(x):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + tf.stop_gradient(y) * x), (0, x))[1]

    x = tf.constant(2.0, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    # y' = y + [y] x: dy'/dx = dy/dx + [y]
    assert tape.gradient(y, x).numpy() == 1 + 2 + 6 + 18
