"""Control flow by functions: cond, switch_case, case, while_loop, map_fn, scan, folds; values, gradients, errors.

Runs against TensorFlow too. Gradients of loops are compared with formulas or with central differences in float64.
"""

import numpy as np
import pytest


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


# ---- cond ----------------------------------------------------------------------------------------------------------


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
        wanted = [4 * value**3, 12 * value**2, 24 * value][order - 1]
    else:
        wanted = np.exp(value) * (value + order)  # the n-th derivative of x exp(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


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

    for value, wanted, slope in ((20.0, 400.0, 40.0), (3.0, 6.0, 2.0), (-1.0, 1.0, -1.0)):
        x = tf.constant(value)
        assert both_ways(tf, f, x) == [wanted]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.function(f)(x)
        assert tape.gradient(y, x).numpy() == slope


# ---- switch_case, case ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("index", "wanted"), [(0, 10.0), (1, 20.0), (2, 30.0), (7, 30.0), (-1, 30.0)])
def test_switch_case(tf, index, wanted):
    x = tf.constant(10.0)
    (got,) = both_ways(
        tf, lambda i: tf.switch_case(i, [lambda: x, lambda: x * 2, lambda: x * 3]), tf.constant(index)
    )
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


# ---- while_loop ----------------------------------------------------------------------------------------------------


def power(tf, x, n):
    return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0, tf.ones_like(x)))[1]


@pytest.mark.parametrize("n", [0, 1, 5])
def test_while_loop(tf, n):
    assert both_ways(tf, lambda n: power(tf, tf.constant(3.0), n), tf.constant(n)) == [3.0**n]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_through_an_unknown_number_of_turns(tf, n, order):
    f = tf.function(lambda x, n: power(tf, x, n))
    x = tf.constant(1.5, tf.float64)
    got = derivatives(tf, lambda x: f(x, tf.constant(n)), x, order)[-1]
    wanted = np.prod(np.arange(n, n - order, -1.0)) * 1.5 ** (n - order) if n >= order else 0.0
    np.testing.assert_allclose(0.0 if got is None else got.numpy(), wanted, rtol=1e-12)


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


# ---- map_fn, scan, folds -------------------------------------------------------------------------------------------


def test_map_fn(tf):
    x = tf.constant([[1.0, 2], [3, 4]])
    (got,) = both_ways(tf, lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * row, x), x)
    np.testing.assert_array_equal(got, [[3.0, 6.0], [21.0, 28.0]])


def test_map_fn_of_structures(tf):
    def f(x, y):
        return tf.map_fn(
            lambda pair: (pair[0] + pair[1], tf.cast(pair[0], tf.float32)), (x, y),
            fn_output_signature=(tf.int32, tf.float32),
        )  # fmt: skip

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
    wanted, a = [], initial
    for v in values:
        a = v if a is None else a * 2 + v
        wanted.append(a)
    np.testing.assert_array_equal(got, wanted[::-1] if reverse else wanted)


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


# ---- ours alone ----------------------------------------------------------------------------------------------------


@pytest.mark.ours
def test_graphs_with_control_flow_print_and_parse_back(tf):
    from opwright.graph import same
    from opwright.graph.text import parse, text
    from opwright.ops import registry

    f = tf.function(lambda x, n: tf.cond(n > 2, lambda: power(tf, x, n), lambda: tf.sin(x)))
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        f(x, tf.constant(3))
    graph = f.get_concrete_function(x, tf.constant(3)).graph
    again = parse(text(graph), registry.get)
    assert same(again, graph)
    from opwright.compiler.plan import Plan

    (y,) = Plan(again).run(np.float32(2.0), np.int32(5))
    assert y == 32.0


@pytest.mark.ours
def test_graphs_read_from_text_are_differentiated(tf):
    from opwright.graph.text import parse, text
    from opwright.ops import registry
    from opwright.tracing.control.body import of_graph
    from opwright.tracing.program import Program

    f = tf.function(lambda x, n: tf.cond(n > 2, lambda: power(tf, x, n), lambda: tf.sin(x)))
    graph = f.get_concrete_function(tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)).graph
    body = of_graph(parse(text(graph), registry.get))
    body.trace.inputs.extend(body.inputs)
    program = Program(body.trace, body.outputs)
    x = tf.constant(2.0)
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch(x)
            (y,) = program.call([x, tf.constant(3)])
        dy = first.gradient(y, x)
    assert (y.numpy(), dy.numpy(), second.gradient(dy, x).numpy()) == (8.0, 12.0, 12.0)


@pytest.mark.ours
def test_errors_inside_a_branch_name_node_and_line(tf):
    @tf.function
    def f(x, i):
        return tf.cond(i >= 0, lambda: tf.gather(x, i), lambda: x[0])

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_control_flow\.py"):
        f(tf.constant([1.0, 2.0]), tf.constant(5))


@pytest.mark.ours
def test_a_python_bool_chooses_while_tracing(tf):
    f = tf.function(lambda x: tf.cond(True, lambda: x, lambda: x * 2.0))
    assert f(tf.constant(3.0)).numpy() == 3.0


def test_shapes_that_were_stated_go_on_behind_branches_and_loops(tf):
    shapes = {}

    @tf.function(input_signature=[tf.TensorSpec(None), tf.TensorSpec([2]), tf.TensorSpec([], tf.int32)])
    def f(x, y, n):
        def stated():
            z = x * 2.0
            z.set_shape([2])
            return z

        shapes["cond"] = tf.cond(n > 1, stated, lambda: y).shape
        shapes["scan"] = tf.cond(n > 1, lambda: tf.scan(lambda s, e: s * e, y, 1.0), lambda: y).shape
        shapes["map_fn"] = tf.cond(n > 1, lambda: y, lambda: tf.map_fn(lambda e: e * e, y)).shape
        while n > 0:
            n -= 1
            if n > 3:
                break
            y = tf.scan(lambda s, e: s * e, y, 2.0)
        return y

    assert f([1.0, 2.0], [1.0, 3.0], 1).numpy().tolist() == [2.0, 6.0]
    assert {k: s.as_list() for k, s in shapes.items()} == {"cond": [2], "scan": [2], "map_fn": [2]}
