"""Variables as arguments: one trace for all of a type, and still the right one wherever identity matters."""

import gc
import weakref

import numpy as np
import pytest


def count(f):
    return f.experimental_get_tracing_count()


def test_ever_new_variables_are_traced_once(tf):
    @tf.function
    def f(v):
        v.assign_add(1.0)
        return v * 10.0

    for i in range(5):
        v = tf.Variable(float(i))
        assert float(f(v)) == (i + 1) * 10.0
        assert float(v) == i + 1
    assert count(f) == 1


@pytest.mark.parametrize(
    "other",
    [{"initial_value": 1.0, "trainable": False}, {"initial_value": [1.0]}, {"initial_value": 1, "dtype": "int32"}],
)
def test_variables_of_another_type_are_not(tf, other):
    f = tf.function(lambda v: v + v)
    f(tf.Variable(1.0))
    f(tf.Variable(2.0, name="other"))
    assert count(f) == 1
    f(tf.Variable(**other))
    assert count(f) == 2


def test_two_that_trade_places_and_one_in_both(tf):
    @tf.function
    def f(x, y):
        x.assign_add(1.0)
        return x * 10.0 + y

    a, b = tf.Variable(1.0), tf.Variable(2.0)
    assert [float(f(a, b)), float(f(b, a)), float(f(a, a)), float(f(b, b))] == [22.0, 32.0, 33.0, 44.0]
    assert count(f) == 2
    c = tf.Variable(7.0)
    assert [float(f(c, a)), float(f(c, c)), float(f(a, c))] == [83.0, 99.0, 49.0]
    assert count(f) == 2


def test_parts_of_nestings(tf):
    f = tf.function(lambda d: d["a"] * d["b"][0] - d["b"][1])
    for k in (1.0, 2.0):
        a, b = tf.Variable(k), tf.Variable(k + 1.0)
        assert float(f({"a": a, "b": [b, tf.constant(1.0)]})) == k * (k + 1.0) - 1.0
    assert count(f) == 1
    assert float(f({"a": a, "b": [a, tf.constant(1.0)]})) == 3.0
    assert count(f) == 2


@pytest.mark.ours  # TensorFlow runs the reads and writes of the two in any order
def test_a_variable_that_is_also_captured(tf):
    v, w = tf.Variable(1.0), tf.Variable(5.0)

    @tf.function
    def f(x):
        x.assign_add(1.0)
        a = v * 10.0
        x.assign_add(1.0)
        return a + v

    def plain(x, v):
        same = x is v
        x, v = float(x), float(v)
        first = v + 1.0 if same else v
        return first * 10.0 + (v + 2.0 if same else v)

    for x in (w, v, w, v, v):
        expected = plain(x, v)
        assert float(f(x)) == expected


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("persistent", [False, True])
def test_gradients_go_to_the_variable_of_the_call(tf, nested, persistent):
    inner = tf.function(lambda x, y: x * x * y)

    def derivative(x, y):
        with tf.GradientTape(persistent=persistent) as tape:
            z = inner(x, y)
        return tape.gradient(z, [x, y])

    f = tf.function(derivative) if nested else derivative
    variables = [tf.Variable(float(k)) for k in (2, 3, 5)]
    for x in variables:
        for y in variables:
            a, b = float(x), float(y)
            result = [float(g) for g in f(x, y)]
            assert result == ([3.0 * a * a] * 2 if x is y else [2.0 * a * b, a * a])
    assert count(inner) == 2


@pytest.mark.ours  # TensorFlow: a deleted variable, as the loop keeps the first one
def test_second_derivatives_and_control_flow(tf):
    @tf.function
    def f(x, n):
        y = x * 1.0
        for _ in tf.range(n):
            if y < 100.0:
                y = y * x
        return y

    for k in (2.0, 3.0):
        x = tf.Variable(k)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = f(x, tf.constant(2))
            first = tape.gradient(y, x)
        assert [float(y), float(first), float(outer.gradient(first, x))] == [k**3, 3 * k**2, 6 * k]
    assert count(f) == 1


def test_functions_in_functions_and_custom_gradients(tf):
    @tf.function
    def inner(v, x):
        return tf.recompute_grad(lambda x: tf.sin(x * v))(x)

    @tf.function
    def outer(v, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = inner(v, x)
        return tape.gradient(y, [x, v])

    for k in (2.0, 3.0):
        result = outer(tf.Variable(k), tf.constant(0.5))
        np.testing.assert_allclose([float(g) for g in result], [k * np.cos(0.5 * k), 0.5 * np.cos(0.5 * k)], rtol=1e-5)
    assert count(outer) == 1


@pytest.mark.ours  # TensorFlow's recompute_grad has no second derivatives
def test_second_derivatives_through_recomputation_in_functions(tf):
    inner = tf.function(lambda v, x: tf.recompute_grad(lambda x: tf.sin(x * v))(x))

    @tf.function
    def outer(v, x):
        with tf.GradientTape() as second:
            with tf.GradientTape() as first:
                first.watch(x)
                y = inner(v, x)
            gradient = first.gradient(y, x)
        return second.gradient(gradient, v)

    for k in (2.0, 3.0):  # d/dv of v cos(v x)
        expected = np.cos(0.5 * k) - k * 0.5 * np.sin(0.5 * k)
        assert float(outer(tf.Variable(k), tf.constant(0.5))) == pytest.approx(expected, rel=1e-5)


@pytest.mark.ours
@pytest.mark.parametrize("ask", [lambda v: float(v.numpy()), lambda v: hash(v.ref()) and 1.0], ids=["numpy", "ref"])
def test_what_only_one_variable_has_makes_a_trace_of_its_own(tf, ask):
    f = tf.function(lambda v: v * ask(v))
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    assert [float(f(a)), float(f(b)), float(f(a))] == [a.numpy() * ask(a), b.numpy() * ask(b), a.numpy() * ask(a)]


@pytest.mark.ours
def test_state_of_optimizers_belongs_to_each(tf):
    a, b = tf.Variable(1.0), tf.Variable(1.0)
    optimizer = tf.optimizers.SGD(1.0, momentum=0.5)
    optimizer.build([a, b])

    @tf.function
    def step(v, gradient):
        optimizer.apply_gradients([(gradient, v)])

    for v, gradient in ((a, 1.0), (b, 3.0), (a, 1.0)):
        step(v, tf.constant(gradient))
    assert [float(a), float(b)] == [1.0 - 1.0 - 1.5, 1.0 - 3.0]


@pytest.mark.ours
def test_arguments_are_not_kept_alive(tf):
    f = tf.function(lambda v: v * 2.0)
    v = tf.Variable(np.zeros(1000, np.float32))
    f(v)
    known = weakref.ref(v)
    del v
    gc.collect()
    assert known() is None
    f(tf.Variable(np.zeros(1000, np.float32)))
    assert count(f) == 1


@pytest.mark.ours
def test_a_stand_in_that_leaves_its_function_reports_it(tf):
    kept = []
    f = tf.function(lambda v: kept.append(v) or v * 2.0)
    f(tf.Variable(1.0))
    with pytest.raises(tf.errors.FailedPreconditionError, match="argument placeholder"):
        kept[0].numpy()
    with pytest.raises(tf.errors.FailedPreconditionError, match="argument placeholder"):
        tf.function(lambda: kept[0] + 1.0)()


def test_default_arguments_and_methods(tf):
    class Model:
        def __init__(self):
            self.v = tf.Variable(3.0)

        @tf.function
        def scaled(self, w, factor=2.0):
            return self.v * w * factor

    model = Model()
    for k in (1.0, 2.0):
        assert float(model.scaled(tf.Variable(k))) == 6.0 * k
    assert float(model.scaled(model.v)) == 18.0
