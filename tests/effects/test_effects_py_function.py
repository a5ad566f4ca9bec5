"""`py_function` and `numpy_function`: calls back into Python, with gradients. Runs against TensorFlow too."""

import functools

import numpy as np
import pytest

MODES = pytest.mark.parametrize("mode", ["eager", "graph"])


def as_mode(tf, mode, function):
    return function if mode == "eager" else tf.function(function)


@MODES
def test_the_function_gets_values(tf, mode):
    seen = []

    def inner(x, n):
        seen.append((float(x), int(n), tf.executing_eagerly()))
        return x * 2.0 if x > 0 else -x

    f = as_mode(tf, mode, lambda x, n: tf.py_function(inner, [x, n], tf.float32))
    assert f(tf.constant(2.0), tf.constant(3)).numpy() == 4.0
    assert f(tf.constant(-2.0), tf.constant(3)).numpy() == 2.0
    assert seen == [(2.0, 3, True), (-2.0, 3, True)]


@MODES
def test_several_results(tf, mode):
    wanted = [tf.float32, tf.int64, tf.string]
    f = as_mode(tf, mode, lambda x: tf.py_function(lambda x: (x, int(x) + 1, "s"), [x], wanted))
    y, n, s = f(tf.constant(2.0))
    assert (y.numpy(), n.numpy(), s.numpy(), n.dtype) == (2.0, 3, b"s", tf.int64)


def _giving(tf, given, x):
    return tf.py_function(lambda x: given, [x], tf.float32)


@MODES
def test_results_become_the_dtype(tf, mode):
    for given in (1, 1.0, np.float64(1.0), np.array(1)):
        f = as_mode(tf, mode, functools.partial(_giving, tf, given))
        result = f(tf.constant(0.0))
        assert result.numpy() == 1.0
        assert result.dtype == tf.float32


@MODES
def test_nothing_comes_back(tf, mode):
    seen = []

    def f(x):
        tf.py_function(lambda x: seen.append(float(x)), [x], [])
        return x

    assert as_mode(tf, mode, f)(tf.constant(1.0)).numpy() == 1.0
    assert seen == [1.0]


def test_shapes_are_not_known_ahead(tf):
    shapes = []

    @tf.function
    def f(x):
        y = tf.py_function(lambda x: x[:2], [x], tf.float32)
        shapes.append(y.shape.rank)
        return y

    assert f(tf.constant([1.0, 2.0, 3.0])).numpy().tolist() == [1.0, 2.0]
    assert shapes == [None]


@pytest.mark.ours
def test_shapes_that_the_caller_says(tf):
    shapes = []

    @tf.function
    def f(x):
        y = tf.py_function(lambda x: x[:2], [x], tf.TensorSpec([2], tf.float32))
        shapes.append(y.shape.as_list())
        return y

    f(tf.constant([1.0, 2.0, 3.0]))
    assert shapes == [[2]]


ERRORS = [
    (ValueError("v"), "InvalidArgumentError"),
    (TypeError("t"), "InvalidArgumentError"),
    (RuntimeError("r"), "UnknownError"),
    (KeyError("k"), "UnknownError"),
    (ZeroDivisionError("z"), "UnknownError"),
    (StopIteration("s"), "OutOfRangeError"),
    (NotImplementedError("n"), "UnimplementedError"),
    (MemoryError("m"), "ResourceExhaustedError"),
]


@MODES
@pytest.mark.parametrize(("raised", "becomes"), ERRORS, ids=[type(e).__name__ for e, _ in ERRORS])
def test_exceptions(tf, mode, raised, becomes):
    def inner(x):
        raise raised

    f = as_mode(tf, mode, lambda x: tf.py_function(inner, [x], tf.float32))
    with pytest.raises(getattr(tf.errors, becomes), match=f"{type(raised).__name__}: {raised}"):
        f(tf.constant(1.0))


@pytest.mark.ours
def test_exceptions_name_the_operator_and_the_line(tf):
    def inner(x):
        raise ValueError("bad luck")

    @tf.function
    def f(x):
        return tf.py_function(inner, [x], tf.float32, name="mine")

    line = f.python_function.__code__.co_firstlineno + 2
    words = rf"EagerPyFunc 'mine' \(.*:{line}\): ValueError: bad luck"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        f(tf.constant(1.0))


@MODES
def test_wrong_results(tf, mode):
    f = as_mode(tf, mode, lambda x: tf.py_function(lambda x: tf.constant(1), [x], tf.float32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Tensor conversion requested dtype float32"):
        f(tf.constant(1.0))
    f = as_mode(tf, mode, lambda x: tf.py_function(lambda x: [x], [x], [tf.float32, tf.float32]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="returns 1 values, but expects to see 2"):
        f(tf.constant(1.0))


def test_wrong_arguments(tf):
    with pytest.raises(ValueError, match="Expected func to be callable"):
        tf.py_function(3, [], tf.float32)
    with pytest.raises(TypeError, match="Missing required argument: 'Tout'"):
        tf.py_function(lambda: 1.0, [], None)


@MODES
def test_gradient(tf, mode):
    """The gradient follows the branch or loop of that run."""

    def inner(x):
        y = x
        for _ in range(int(tf.reduce_sum(x)) % 4):
            y = y * x
        return y

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = 3.0 * tf.py_function(inner, [x], tf.float32)
        return tape.gradient(y, x)

    f = as_mode(tf, mode, gradient)
    for x in (1.0, 2.0, 3.0, 4.0):
        n = 1 + int(x) % 4
        assert f(tf.constant([x])).numpy() == pytest.approx([3.0 * n * x ** (n - 1)])


@MODES
def test_gradient_of_several_inputs_and_results(tf, mode):
    def gradient(x, y, n):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            a, b, _ = tf.py_function(lambda x, y, n: (x * y, x + y, n), [x, y, n], [tf.float32, tf.float32, tf.int32])
            z = 2.0 * a + 5.0 * b
        return tape.gradient(z, [x, y])

    dx, dy = as_mode(tf, mode, gradient)(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.constant(1))
    assert (dx.numpy().tolist(), dy.numpy().tolist()) == ([11.0, 13.0], [7.0, 9.0])


@MODES
def test_no_gradient_where_nothing_depends(tf, mode):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(lambda x: tf.constant(1.0), [x], tf.float32)
        return tape.gradient(y, x)

    assert as_mode(tf, mode, gradient)(tf.constant(2.0)).numpy() == 0.0


def test_gradient_from_outside_the_function(tf):
    f = tf.function(lambda x: tf.py_function(lambda x: x**3, [x], tf.float32))
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).numpy() == 12.0


@pytest.mark.ours
@MODES
def test_gradients_of_any_order(tf, mode):
    def third(x):
        with tf.GradientTape() as t3:
            t3.watch(x)
            with tf.GradientTape() as t2:
                t2.watch(x)
                with tf.GradientTape() as t1:
                    t1.watch(x)
                    y = tf.py_function(lambda x: x**4 * tf.sin(x), [x], tf.float64)
                d1 = t1.gradient(y, x)
            d2 = t2.gradient(d1, x)
        return d1, d2, t3.gradient(d2, x)

    x = 0.7
    s, c = np.sin(x), np.cos(x)
    expected = [
        4 * x**3 * s + x**4 * c,
        12 * x**2 * s + 8 * x**3 * c - x**4 * s,
        24 * x * s + 36 * x**2 * c - 12 * x**3 * s - x**4 * c,
    ]
    found = as_mode(tf, mode, third)(tf.constant(x, tf.float64))
    assert [float(v) for v in found] == pytest.approx(expected, rel=1e-12)


def test_variables_read_inside_have_no_gradient(tf):
    v = tf.Variable(3.0)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(lambda x: x * v, [x], tf.float32)
        return tape.gradient(y, [x, v])

    for f in (gradient, tf.function(gradient)):
        dx, dv = f(tf.constant(2.0))
        assert dx.numpy() == 3.0
        assert dv is None


def test_nested(tf):
    def outer(x):
        return tf.py_function(lambda x: x + 1.0, [x], tf.float32) * 2.0

    f = tf.function(lambda x: tf.py_function(outer, [x], tf.float32))
    assert f(tf.constant(1.0)).numpy() == 4.0


def test_functions_inside(tf):
    inner = tf.function(lambda x: x * x)
    f = tf.function(lambda x: tf.py_function(lambda x: inner(x) + 1.0, [x], tf.float32))
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert y.numpy() == 10.0
    assert tape.gradient(y, x).numpy() == 6.0


def test_program_order_and_never_dropped(tf):
    told = []

    @tf.function
    def f(x):
        tf.py_function(lambda x: told.append("a"), [x], [])
        tf.py_function(lambda x: told.append("b"), [x], [])  # equal calls stay two
        tf.py_function(lambda x: told.append("b"), [x], [])
        tf.numpy_function(lambda x: told.append("c"), [x], [])
        return x

    f(tf.constant(1.0))
    f(tf.constant(2.0))
    assert told == ["a", "b", "b", "c"] * 2


def test_as_a_decorator(tf):
    @tf.py_function(Tout=tf.float32)
    def f(x):
        return x + 1.0

    assert f(tf.constant(1.0)).numpy() == 2.0
    assert tf.function(lambda x: f(x))(tf.constant(1.0)).numpy() == 2.0


# ---- numpy_function -------------------------------------------------------------------------------------------------


def test_numpy_function_gets_arrays(tf):
    seen = []

    def inner(x, s):
        seen.append((type(x), x.dtype, s.tolist()))
        return np.sinh(x)

    f = tf.function(lambda x, s: tf.numpy_function(inner, [x, s], tf.float32))
    result = f(tf.constant([1.0, 2.0]), tf.constant(["a", "b"]))
    assert result.numpy() == pytest.approx(np.sinh([1.0, 2.0]))
    assert seen == [(np.ndarray, np.float32, [b"a", b"b"])]


def test_numpy_function_eagerly(tf):
    assert tf.numpy_function(lambda x: x + 1, [np.float32([1.0])], tf.float32).numpy().tolist() == [2.0]
    with pytest.raises(ValueError, match="plain"):
        tf.numpy_function(_raise, [1.0], tf.float32)


def _raise(x):
    raise ValueError("plain")


def test_numpy_function_in_a_graph_reports_the_error(tf):
    with pytest.raises(tf.errors.InvalidArgumentError, match="ValueError: plain"):
        tf.function(lambda x: tf.numpy_function(_raise, [x], tf.float32))(tf.constant(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"0-th value returned by .*, but expects"):
        tf.function(lambda x: tf.numpy_function(lambda x: np.float64(x), [x], tf.float32))(tf.constant(1.0))


def test_numpy_function_several_results(tf):
    f = tf.function(lambda x: tf.numpy_function(lambda x: (x, x.sum()), [x], [tf.float32, tf.float32]))
    a, b = f(tf.constant([1.0, 2.0]))
    assert (a.numpy().tolist(), b.numpy()) == ([1.0, 2.0], 3.0)


def test_numpy_function_has_no_gradient(tf):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.numpy_function(lambda x: x**2, [x], tf.float32)
        return tape.gradient(y, x)

    assert gradient(tf.constant(1.0)) is None
    assert tf.function(gradient)(tf.constant(1.0)) is None


def test_stateless_calls_that_are_equal_may_become_one(tf):
    called = []

    @tf.function
    def f(x):
        tf.numpy_function(lambda x: called.append(1) or x, [x], tf.float32, stateful=False)  # nobody reads it
        return x

    f(tf.constant(1.0))
    assert called == []


@pytest.mark.ours
def test_results_are_copies(tf):
    kept = np.float32([1.0, 2.0])
    f = tf.function(lambda x: tf.numpy_function(lambda x: kept, [x], tf.float32))
    result = f(tf.constant(0.0))
    kept[0] = 9.0
    assert result.numpy().tolist() == [1.0, 2.0]
