"""Branches by functions, against TensorFlow too: cond, switch_case, case; values, gradients, errors."""

import numpy as np
import pytest
from control_programs import both_ways, derivatives


@pytest.mark.parametrize("x", [2.0, -2.0])
def test_cond_takes_the_branch(tf, x):
    (got,) = both_ways(tf, lambda x: tf.cond(x > 0.0, lambda: x * 3.0, lambda: x - 1.0), tf.constant(x))
    assert got == (6.0 if x > 0 else -3.0)


def test_cond_results_are_structures(tf):
    def f(x):
        return tf.cond(x > 0, lambda: {"a": (x, [x + 1])}, lambda: {"a": (x * 2, [x * 3])})

    assert both_ways(tf, f, tf.constant(2)) == [2, 3]
    assert both_ways(tf, f, tf.constant(-1)) == [-2, -3]


def test_cond_of_python_numbers(tf):
    f = tf.function(lambda x: tf.cond(x, lambda: 1.0, lambda: 2.0))
    assert f(tf.constant(True)).numpy() == 1.0
    assert f(tf.constant(False)).numpy() == 2.0


def test_cond_without_results_runs_its_effects(tf):
    v = tf.Variable(0)

    @tf.function
    def f(x):
        def up():
            v.assign_add(1)

        def down():
            v.assign_sub(1)

        tf.cond(x, up, down)

    for x in (True, True, False):
        f(tf.constant(x))
    assert v.numpy() == 1


def test_only_the_taken_branch_runs(tf):
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        return tf.cond(x > 0, lambda: v.assign(10.0) + 0.0, lambda: tf.identity(v))

    assert f(tf.constant(-1.0)).numpy() == 1.0
    assert v.numpy() == 1.0
    assert f(tf.constant(1.0)).numpy() == 10.0


def test_cond_merges_shapes(tf):
    @tf.function
    def f(x):
        y = tf.cond(x, lambda: tf.zeros([2, 3]), lambda: tf.zeros([2, 4]))
        assert y.shape.as_list() == [2, None]
        return y

    assert f(tf.constant(True)).shape == (2, 3)
    assert f(tf.constant(False)).shape == (2, 4)


@pytest.mark.parametrize(
    "results",
    [(1.0, 1), pytest.param(([1.0], [1.0, 2.0]), marks=pytest.mark.ours), ({"a": 1.0}, {"b": 1.0})],
    ids=["dtype", "number", "keys"],
)
def test_cond_refuses_unlike_results(tf, results):
    one, other = results

    @tf.function
    def f(x):
        return tf.cond(
            x, lambda: tf.nest.map_structure(tf.constant, one), lambda: tf.nest.map_structure(tf.constant, other)
        )

    with pytest.raises((TypeError, ValueError), match=r"true_fn and false_fn|structure|dtype"):
        f(tf.constant(True))


@pytest.mark.parametrize("value", [2.0, -2.0, 0.0])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_gradients_of_cond(tf, value, order):
    f = tf.function(lambda x: tf.cond(x > 0, lambda: x**4, lambda: tf.exp(x) * x))
    got = derivatives(tf, f, tf.constant(value, tf.float64), order)[-1].numpy()
    if value > 0:
        expected = [4 * value**3, 12 * value**2, 24 * value][order - 1]
    else:
        expected = np.exp(value) * (value + order)  # the n-th derivative of x exp(x)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_gradient_of_cond_inside_the_function(tf):
    @tf.function
    def f(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = tf.cond(x > y, lambda: x * x * y, lambda: tf.sin(y))
        return tape.gradient(z, [x, y], unconnected_gradients="zero")

    dx, dy = f(tf.constant(3.0), tf.constant(2.0))
    assert (dx.numpy(), dy.numpy()) == (12.0, 9.0)
    dx, dy = f(tf.constant(1.0), tf.constant(2.0))
    assert dx.numpy() == 0.0
    np.testing.assert_allclose(dy.numpy(), np.cos(2.0), rtol=1e-6)


def test_gradients_of_variables_used_in_a_branch(tf):
    v, w = tf.Variable(2.0), tf.Variable(5.0)
    f = tf.function(lambda x: tf.cond(x > 0, lambda: v * v * x, lambda: w * x))
    with tf.GradientTape() as tape:
        y = f(tf.constant(3.0))
    dv, dw = tape.gradient(y, [v, w])
    assert dv.numpy() == 12.0
    assert dw.numpy() == 0.0


def test_random_numbers_of_a_branch_are_not_drawn_again_for_its_gradient(tf):
    @tf.function
    def f(x):
        def noisy():
            noise = tf.random.uniform([4])
            return tf.reduce_sum(noise * x), noise

        return tf.cond(tf.reduce_sum(x) > 0, noisy, lambda: (tf.reduce_sum(x), x))

    x = tf.ones([4])
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, noise = f(x)
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), noise.numpy())


@pytest.mark.ours  # TensorFlow fails an assertion of its own
def test_custom_gradients_hold_in_branches(tf):
    @tf.custom_gradient
    def clipped(x):
        def backward(dy):
            return tf.clip_by_value(dy * x, -1.0, 1.0)

        return x * 100.0, backward

    f = tf.function(lambda x: tf.cond(x > 0, lambda: clipped(x), lambda: x))
    x = tf.constant(0.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).numpy() == 0.5


def test_nested_cond(tf):
    def f(x):
        return tf.cond(x > 0.0, lambda: tf.cond(x > 10.0, lambda: x * x, lambda: x * 2.0), lambda: -x)

    for value, expected, slope in ((20.0, 400.0, 40.0), (3.0, 6.0, 2.0), (-1.0, 1.0, -1.0)):
        x = tf.constant(value)
        assert both_ways(tf, f, x) == [expected]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.function(f)(x)
        assert tape.gradient(y, x).numpy() == slope


@pytest.mark.parametrize(("index", "wanted"), [(0, 10.0), (1, 20.0), (2, 30.0), (7, 30.0), (-1, 30.0)])
def test_switch_case(tf, index, wanted):
    x = tf.constant(10.0)
    (got,) = both_ways(tf, lambda i: tf.switch_case(i, [lambda: x, lambda: x * 2, lambda: x * 3]), tf.constant(index))
    assert got == wanted


@pytest.mark.parametrize(("index", "wanted"), [(0, 1), (1, 2), (2, -1), (-3, -1)])
def test_switch_case_default(tf, index, wanted):
    def f(i):
        branches = {1: lambda: tf.constant(2), 0: lambda: tf.constant(1)}
        return tf.switch_case(i, branches, default=lambda: tf.constant(-1))

    assert both_ways(tf, f, tf.constant(index)) == [wanted]


def test_switch_case_keys(tf):
    with pytest.raises(ValueError, match=r"must|contiguous"):
        tf.function(lambda i: tf.switch_case(i, {1: lambda: 1.0, 3: lambda: 2.0}))(tf.constant(0))


@pytest.mark.parametrize(("index", "slope"), [(0, 1.0), (1, 4.0), (2, 12.0)])
def test_gradient_of_switch_case(tf, index, slope):
    f = tf.function(lambda i, x: tf.switch_case(i, [lambda: x, lambda: x**2, lambda: x**3]))
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(tf.constant(index), x)
    assert tape.gradient(y, x).numpy() == slope


@pytest.mark.parametrize(("x", "wanted"), [(1, 17), (5, 23), (3, -1)])
def test_case(tf, x, wanted):
    def f(x):
        return tf.case(
            [(tf.less(x, 2), lambda: tf.constant(17)), (tf.greater(x, 4), lambda: tf.constant(23))],
            default=lambda: tf.constant(-1),
        )

    assert both_ways(tf, f, tf.constant(x)) == [wanted]


def test_case_without_default_and_nothing_true(tf):
    f = tf.function(lambda x: tf.case([(x > 1, lambda: tf.constant(1)), (x > 2, lambda: tf.constant(2))]))
    assert f(tf.constant(2)).numpy() == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions evaluated as True"):
        f(tf.constant(0))


def test_case_exclusive(tf):
    f = tf.function(
        lambda x: tf.case(
            [(x > 1, lambda: tf.constant(1)), (x > 2, lambda: tf.constant(2))], lambda: tf.constant(0), exclusive=True
        )
    )
    assert f(tf.constant(2)).numpy() == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1 conditions"):
        f(tf.constant(3))
