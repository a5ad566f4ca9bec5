"""Tapes opened inside a function, watching tensors made outside it: what is computed from them is followed whichever
way they came in."""

import pytest


def plain(tf, x):
    return x * x


def traced_call(tf, x):
    return tf.function(lambda u: u * u)(x)


def concrete_call(tf, x):
    return tf.function(lambda u: u * u).get_concrete_function(tf.TensorSpec([], tf.float32))(x)


def captured_by_the_called(tf, x):
    return tf.function(lambda: x * x)()


def branch(tf, x):
    return tf.cond(x > 0.0, lambda: x * x, lambda: x)


def loop(tf, x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))[1]


def mapped(tf, x):
    return tf.map_fn(lambda e: e * x, tf.stack([x, x * 2.0]))


def array_in_a_loop(tf, x):
    array = tf.TensorArray(tf.float32, 3)
    for i in tf.range(3):
        array = array.write(i, x * tf.cast(i, tf.float32))
    return array.stack()


def python_called(tf, x):
    return tf.ensure_shape(tf.py_function(lambda z: z * z, [x], tf.float32), [])


def own_gradient(tf, x):
    return tf.custom_gradient(lambda z: (z * z, lambda dy: dy * 2.0 * z))(x)


def two_results(tf, x):
    return tf.function(lambda u: (u * u, tf.function(lambda w: w * x)(u)))(x)


def itself(tf, x):
    return x


CASES = {
    plain: 6.0,
    traced_call: 6.0,
    concrete_call: 6.0,
    captured_by_the_called: 6.0,
    branch: 6.0,
    loop: 108.0,
    mapped: 18.0,
    array_in_a_loop: 3.0,
    python_called: 6.0,
    own_gradient: 6.0,
    two_results: 12.0,
    itself: 1.0,
}


@pytest.fixture(params=CASES, ids=lambda f: f.__name__)
def case(request):
    return request.param, CASES[request.param]


def taken(tf, f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(tf, x)
    return tape.gradient(y, x)


def test_a_tensor_captured(tf, case):
    f, expected = case
    x = tf.constant(3.0)
    assert tf.function(lambda: taken(tf, f, x))().numpy() == expected


def test_a_constant_of_the_enclosing_function(tf, case):
    f, expected = case

    @tf.function
    def outer():
        x = tf.constant(3.0)
        return tf.function(lambda: taken(tf, f, x))()

    assert outer().numpy() == expected


def test_an_argument_of_the_enclosing_function(tf, case):
    f, expected = case

    @tf.function
    def outer(x):
        return tf.function(lambda: taken(tf, f, x))()

    assert outer(tf.constant(3.0)).numpy() == expected


# TensorFlow gives an empty array where a function of two results is differentiated in a loop.
@pytest.mark.parametrize(
    "case",
    [pytest.param(f, marks=[pytest.mark.ours] if f is two_results else []) for f in CASES],
    indirect=True,
    ids=lambda f: f.__name__,
)
def test_in_a_branch_and_in_a_loop(tf, case):
    f, expected = case

    @tf.function
    def outer(x, turns):
        total = tf.constant(0.0)
        if turns > 1:
            for _ in tf.range(turns):
                total += tf.ensure_shape(taken(tf, f, x), [])
        return total

    assert outer(tf.constant(3.0), tf.constant(2)).numpy() == 2 * expected


def test_second_order_of_a_tensor_captured(tf):
    x = tf.constant(3.0)

    @tf.function
    def f():
        with tf.GradientTape() as outer:
            outer.watch(x)
            dy = taken(tf, lambda tf, x: x * x * x, x)
        return dy, outer.gradient(dy, x)

    assert [y.numpy() for y in f()] == [27.0, 18.0]


def test_several_sources_and_those_not_reached(tf):
    x, y, z = (tf.constant(v) for v in (3.0, 5.0, 7.0))

    @tf.function
    def f(u):
        with tf.GradientTape() as tape:
            tape.watch([x, y, z, u])
            result = x * y * u
        return tape.gradient(result, {"x": x, "y": y, "z": z, "u": u}, unconnected_gradients="zero")

    actual = f(tf.constant(2.0))
    assert {k: v.numpy() for k, v in actual.items()} == {"x": 10.0, "y": 6.0, "z": 0.0, "u": 15.0}


def test_jacobian_of_a_tensor_captured(tf):
    x = tf.constant([1.0, 2.0])

    @tf.function
    def f():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.jacobian(y, x)

    assert f().numpy().tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_tf_gradients_of_a_tensor_captured(tf):
    x = tf.constant(3.0)
    assert tf.function(lambda: tf.gradients(x * x, x)[0])().numpy() == 6.0


def test_gradient_asked_for_in_a_branch(tf):
    x = tf.constant(3.0)

    @tf.function
    def f(c):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tf.cond(c, lambda: tape.gradient(y, x), lambda: x)

    assert f(tf.constant(True)).numpy() == 6.0


def through_cond(tf, s, n):
    return tf.cond(n > 0, lambda: tf.tanh(tf.sin(s)), lambda: s)


def through_switch(tf, s, n):
    return tf.switch_case(n, [lambda: s, lambda: tf.exp(tf.sin(s)), lambda: tf.tanh(tf.sin(s))])


def through_while(tf, s, n):
    return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, through_cond(tf, s, n - i)), (0, s))[1]


def through_loops_in_loops(tf, s, n):
    return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, through_while(tf, s, n)), (0, s))[1]


def through_map_fn(tf, s, n):
    return tf.reduce_sum(tf.map_fn(lambda e: tf.tanh(tf.sin(e * s)), tf.stack([s, s * 2.0])))


def through_scan(tf, s, n):
    return tf.reduce_sum(tf.scan(lambda a, e: tf.tanh(tf.sin(a * e)), tf.stack([s, s * 2.0]), initializer=s))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    "f",
    [through_cond, through_switch, through_while, through_loops_in_loops, through_map_fn, through_scan],
    ids=lambda f: f.__name__,
)
def test_nested_tapes_in_a_function_give_what_they_give_eagerly(tf, f, order):
    """A forward loop or branch gets more outputs for its gradient: the outer tape follows these too."""

    def derivative(s, n, order=order):
        if order == 0:
            return f(tf, s, n)
        with tf.GradientTape() as tape:
            tape.watch(s)
            y = derivative(s, n, order - 1)
        return tape.gradient(y, s)

    s, n = tf.constant(0.3, tf.float64), tf.constant(2)
    expected = derivative(s, n).numpy()
    assert tf.function(lambda s, n: derivative(s, n))(s, n).numpy() == pytest.approx(expected, rel=1e-9)


def test_a_persistent_tape_differentiates_its_own_gradient_through_a_loop(tf):
    @tf.function
    def f(s, n):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(s)
            y = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s * s), (0, s))[1]
            dy = tape.gradient(y, s)
        return tape.gradient(dy, s)

    assert f(tf.constant(0.5, tf.float64), tf.constant(2)).numpy() == 12 * 0.5**2
