"""Names that programs use around graphs: order, devices, gradients without a tape. Runs against TensorFlow too."""

import numpy as np
import pytest


def test_control_dependencies(tf):
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        with tf.control_dependencies([v.assign(x)]):
            return v + 1.0

    assert f(tf.constant(5.0)).numpy() == 6.0
    with tf.control_dependencies([tf.constant(1)]):
        assert tf.constant(2).numpy() == 2


def test_group_and_no_op(tf):
    v, w = tf.Variable(1.0), tf.Variable(2.0)

    @tf.function
    def f():
        tf.group(v.assign_add(1.0), w.assign_add(1.0), tf.no_op())
        tf.group([v.assign_add(1.0)])

    f()
    assert (v.numpy(), w.numpy()) == (3.0, 3.0)
    assert tf.no_op() is None
    assert tf.group() is None


def test_tuple(tf):
    a, b = tf.tuple([tf.constant(1), tf.constant(2.0)])
    assert (a.numpy(), b.numpy()) == (1, 2.0)


def test_where_we_are(tf):
    seen = []

    @tf.function
    def f(x):
        with tf.name_scope("here"):
            seen.append((tf.inside_function(), tf.is_symbolic_tensor(x), tf.get_current_name_scope()))
        return x

    f(tf.constant(1.0))
    assert seen == [(True, True, "here")]
    assert not tf.inside_function()
    assert not tf.is_symbolic_tensor(tf.constant(1.0))


def test_device(tf):
    for name in ("/device:CPU:0", "CPU:0", "/cpu:0", "/job:localhost/replica:0/task:0/device:CPU:0", None):
        with tf.device(name):
            assert (tf.constant(1) + 1).numpy() == 2
    with pytest.raises(ValueError, match="nonsense"), tf.device("nonsense"):
        pass


def test_timestamp(tf):
    import time

    f = tf.function(lambda: tf.timestamp())
    a, b = f(), f()
    assert a.dtype == tf.float64
    assert abs(a.numpy() - time.time()) < 60
    assert b.numpy() >= a.numpy()


def test_gradients(tf):
    @tf.function
    def f(x, y):
        z = x * x * y
        return tf.gradients(z, [x, y]), tf.gradients([z, x], x, grad_ys=[2.0, 10.0])

    (dx, dy), (both,) = f(tf.constant(3.0), tf.constant(2.0))
    assert (dx.numpy(), dy.numpy(), both.numpy()) == (12.0, 9.0, 34.0)
    with pytest.raises(RuntimeError, match="GradientTape"):
        tf.gradients(tf.constant(1.0), tf.constant(1.0))


def test_gradients_that_are_none(tf):
    @tf.function
    def f(x, y):
        none = tf.gradients(x * 2.0, [y])
        zero = tf.gradients(x * 2.0, [y], unconnected_gradients=tf.UnconnectedGradients.ZERO)
        h = x * x
        stopped = tf.gradients(h * x, [x], stop_gradients=[h])
        return none, zero, stopped

    none, zero, stopped = f(tf.constant(3.0), tf.constant([1.0, 2.0]))
    assert none == [None]
    assert zero[0].numpy().tolist() == [0.0, 0.0]
    assert stopped[0].numpy() == 9.0


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_grad_pass_through(tf, mode):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.grad_pass_through(tf.sign)(x) * 3.0
        return y, tape.gradient(y, x)

    y, dx = (f if mode == "eager" else tf.function(f))(tf.constant([-2.0, 5.0]))
    assert y.numpy().tolist() == [-3.0, 3.0]
    assert dx.numpy().tolist() == [3.0, 3.0]


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_recompute_grad(tf, mode):
    v = tf.Variable(2.0)
    called = []

    @tf.recompute_grad
    def inner(x):
        called.append(1)
        return tf.sin(x) * v

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = inner(x)
        return tape.gradient(y, [x, v])

    dx, dv = (f if mode == "eager" else tf.function(f))(tf.constant(0.5))
    assert dx.numpy() == pytest.approx(2.0 * np.cos(0.5))
    assert dv.numpy() == pytest.approx(np.sin(0.5))
    assert len(called) >= 2


def test_assertions_at_top_level(tf):
    assert tf.assert_equal is not None
    tf.assert_less(1, 2)
    tf.assert_greater(2, 1)
    tf.assert_rank(tf.constant(1), 0)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.assert_equal(1, 2)
