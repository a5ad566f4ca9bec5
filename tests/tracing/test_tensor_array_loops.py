"""TensorArray in loops of a graph, and its gradients: against differences, formulas and TensorFlow.

Lives here: gradients of any order, loops of unknown length, costs.  Not here: single calls (test_tensor_array.py).
"""

from __future__ import annotations

import time

import numpy as np
import pytest

MODES = ["eager", "graph"]
X = np.array([[0.3, -1.2], [0.7, 0.9], [-0.4, 1.1]])


def of(tf, size, **more):
    return tf.TensorArray(tf.float64, size=size, **more)


# Each gives a scalar of a matrix x [3, 2]; the other function says the same in NumPy.
PROGRAMS = {
    "write, read": (
        lambda tf, x: tf.reduce_sum(of(tf, 2).write(0, x[0] * x[1]).write(1, x[2]).read(0) ** 2),
        lambda x: ((x[0] * x[1]) ** 2).sum(),
    ),
    "overwritten": (
        lambda tf, x: tf.reduce_sum(of(tf, 1).write(0, x[0] * 5.0).write(0, x[1] ** 3).stack()),
        lambda x: (x[1] ** 3).sum(),
    ),
    "one read before, one after": (
        lambda tf, x: tf.reduce_sum(_before_and_after(tf, x)),
        lambda x: (x[0] ** 2 * x[1] ** 3).sum(),
    ),
    "stack": (
        lambda tf, x: tf.reduce_sum(of(tf, 3).write(0, x[0] ** 2).write(2, x[1]).stack() ** 3),
        lambda x: (x[0] ** 6).sum() + (x[1] ** 3).sum(),
    ),
    "unstack, read twice": (
        lambda tf, x: tf.reduce_sum(_product(of(tf, 3, clear_after_read=False).unstack(x))),
        lambda x: (x[0] * x[0] * x[2]).sum(),
    ),
    "scatter": (
        lambda tf, x: tf.reduce_sum(of(tf, 4).scatter([3, 0, 1], x**2).stack() * [[1.0], [2.0], [3.0], [4.0]]),
        lambda x: (x**2 * [[4.0], [1.0], [2.0]]).sum(),
    ),
    "scatter over others": (
        lambda tf, x: tf.reduce_sum(of(tf, 3).unstack(x**3).scatter([1], x[:1] ** 2).stack()),
        lambda x: (x[0] ** 3).sum() + (x[0] ** 2).sum() + (x[2] ** 3).sum(),
    ),
    "gather, one twice": (
        lambda tf, x: tf.reduce_sum(of(tf, 3).unstack(x).gather([2, 0, 2]) ** 2),
        lambda x: (x[[2, 0, 2]] ** 2).sum(),
    ),
    "concat": (
        lambda tf, x: tf.reduce_sum(
            of(tf, 2, infer_shape=False).write(0, x[:1] ** 2).write(1, x[1:]).concat() * [[1.0], [2.0], [3.0]]
        ),
        lambda x: (x[0] ** 2).sum() + 2 * x[1].sum() + 3 * x[2].sum(),
    ),
    "split": (
        lambda tf, x: tf.reduce_sum(of(tf, 2, infer_shape=False).split(x, [1, 2]).read(1) ** 3),
        lambda x: (x[1:] ** 3).sum(),
    ),
    "dynamic size": (
        lambda tf, x: tf.reduce_sum(of(tf, 0, dynamic_size=True).write(1, x[0]).write(4, x[1]).stack() ** 2),
        lambda x: (x[:2] ** 2).sum(),
    ),
    "an element never written": (
        lambda tf, x: tf.reduce_sum(of(tf, 3, element_shape=[2]).write(1, x[0]).read(2) + x[1] ** 2),
        lambda x: (x[1] ** 2).sum(),
    ),
    "a version used twice": (
        lambda tf, x: tf.reduce_sum(_two_of_one(tf, x)),
        lambda x: (x[0] * x[1]).sum() + (x[0] * x[2]).sum(),
    ),
}


def _before_and_after(tf, x):
    ta = of(tf, 1, clear_after_read=False).write(0, x[0] ** 2)
    first = ta.read(0)
    return first * ta.write(0, x[1] ** 3).read(0)


def _product(ta):
    return ta.read(0) * ta.read(0) * ta.read(2)


def _two_of_one(tf, x):
    ta = of(tf, 2, clear_after_read=False).write(0, x[0])
    a = ta.write(1, x[1]).stack()
    b = ta.write(1, x[2]).stack()
    return a[0] * a[1] + b[0] * b[1]


def differences(f, x, step=1e-6):
    grad = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[at] += step
        down[at] -= step
        grad[at] = (f(up) - f(down)) / (2 * step)
    return grad


def both_orders(tf, f, x):
    """Value, gradient, and the gradient of the gradient times a fixed direction."""
    x = tf.constant(x)
    direction = tf.constant(np.arange(1.0, 1.0 + np.size(x)).reshape(x.shape))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        dx = inner.gradient(y, x)
        along = tf.reduce_sum(dx * direction)
    second = outer.gradient(along, x)
    return y.numpy(), dx.numpy(), second.numpy()


def compare(tf, call, formula, x, rtol=1e-6):
    """Value and gradients of both orders against a NumPy formula and its differences."""
    y, dx, second = both_orders(tf, call, x)
    np.testing.assert_allclose(y, formula(x), rtol=rtol)
    np.testing.assert_allclose(dx, differences(formula, x), rtol=rtol, atol=1e-7)
    direction = np.arange(1.0, 1.0 + x.size).reshape(x.shape)
    along = differences(lambda v: (differences(formula, v, 1e-4) * direction).sum(), x, 1e-4)
    np.testing.assert_allclose(second, along, rtol=1e-3, atol=1e-4)


# TensorFlow's graphs lose one of two gradients that arrive at one element by `gather`.
NAMES = [pytest.param(n, marks=pytest.mark.ours) if n == "gather, one twice" else n for n in PROGRAMS]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_gradients(tf, mode, name):
    program, formula = PROGRAMS[name]
    call = lambda x: program(tf, x)  # noqa: E731
    compare(tf, call if mode == "eager" else tf.function(call), formula, X)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_unknown_shapes(tf, name):
    program, formula = PROGRAMS[name]
    f = tf.function(lambda x: program(tf, x), input_signature=[tf.TensorSpec([None, None], tf.float64)])
    compare(tf, f, formula, X)


# ---- loops ---------------------------------------------------------------------------------------------------------


def powers(tf, n, x, **more):
    """The array x, x^2, ... x^n (element by element)."""
    zero = tf.constant(0)
    ta = of(tf, n, **more)
    return tf.while_loop(
        lambda i, a, t: i < n, lambda i, a, t: (i + 1, a * x, t.write(i, a * x)), [zero, tf.ones_like(x), ta]
    )[2]


def power_sum(x, n):
    return sum((x**k).sum() for k in range(1, n + 1))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_written_in_a_loop(tf, n):
    f = tf.function(lambda n, x: tf.reduce_sum(powers(tf, n, x, element_shape=[3, 2]).stack()))
    compare(tf, lambda x: f(tf.constant(n), x), lambda x: power_sum(x, n) + 0.0 * x.sum(), X)


def test_the_shape_written_in_a_loop_is_known_behind_it(tf):
    shapes = []

    @tf.function
    def f(n, x):
        ta = powers(tf, n, x)
        shapes.append(ta.element_shape.as_list())
        return ta.stack()

    result = f(tf.constant(2), tf.constant(X))
    np.testing.assert_allclose(result.numpy(), [X, X * X])
    assert shapes == [[3, 2]]


def test_read_in_a_loop(tf):
    @tf.function
    def f(n, x):
        ta = of(tf, n).unstack(x)
        return tf.reduce_sum(
            tf.while_loop(
                lambda i, s: i < n,
                lambda i, s: (i + 1, s * 0.5 + ta.read(i) ** 2),
                [tf.constant(0), tf.zeros([2], tf.float64)],
            )[1]
        )

    def formula(x):
        return (0.25 * x[0] ** 2 + 0.5 * x[1] ** 2 + x[2] ** 2).sum()

    compare(tf, lambda x: f(tf.constant(3), x), formula, X)


def test_read_and_written_in_one_loop(tf):
    """Fibonacci with weights: each element is made of the two before it."""

    @tf.function
    def f(n, x):
        ta = of(tf, n, clear_after_read=False).write(0, x[0]).write(1, x[1])
        _, ta = tf.while_loop(
            lambda i, t: i < n,
            lambda i, t: (i + 1, t.write(i, t.read(i - 1) * x[2] + t.read(i - 2))),
            [tf.constant(2), ta],
        )
        return tf.reduce_sum(ta.stack() ** 2)

    def formula(x):
        created = [x[0], x[1]]
        for _ in range(4):
            created.append(created[-1] * x[2] + created[-2])
        return sum((m**2).sum() for m in created)

    compare(tf, lambda x: f(tf.constant(6), x), formula, X)


def test_grows_in_a_loop(tf):
    @tf.function
    def f(limit, x):
        """Appends x, 2x, 4x ... while their sum is below the limit."""
        ta = of(tf, 0, dynamic_size=True)
        _, _, ta = tf.while_loop(
            lambda i, a, t: tf.reduce_sum(tf.abs(a)) < limit,
            lambda i, a, t: (i + 1, 2.0 * a, t.write(i, a * a)),
            [tf.constant(0), x, ta],
        )
        return tf.reduce_sum(ta.stack()) + tf.cast(ta.size(), tf.float64)

    def formula(x):
        total, a, n = 0.0, x, 0
        while np.abs(a).sum() < 40.0:
            total, a, n = total + (a * a).sum(), 2 * a, n + 1
        return total + n

    compare(tf, lambda x: f(tf.constant(40.0, tf.float64), x), formula, X)


def test_nested_loops(tf):
    """out[i] = sum over j <= i of x[j]^2 * i, by an array in each loop."""

    @tf.function
    def f(n, x):
        rows = of(tf, n, clear_after_read=False).unstack(x)

        def outer(i, out):
            inner = of(tf, 0, dynamic_size=True, element_shape=[2])
            _, inner = tf.while_loop(
                lambda j, t: j <= i, lambda j, t: (j + 1, t.write(j, rows.read(j) ** 2)), [tf.constant(0), inner]
            )
            total = tf.reduce_sum(inner.stack(), 0) * tf.cast(i, tf.float64)
            return i + 1, out.write(i, total)

        _, out = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), of(tf, n)])
        return tf.reduce_sum(out.stack() ** 2)

    def formula(x):
        return sum((((x[: i + 1] ** 2).sum(0) * i) ** 2).sum() for i in range(len(x)))

    compare(tf, lambda x: f(tf.constant(3), x), formula, X)


def test_an_array_of_the_enclosing_loop_is_written_in_the_inner(tf):
    @tf.function
    def f(n, x):
        def outer(i, t):
            _, t = tf.while_loop(
                lambda j, _: j < n, lambda j, t: (j + 1, t.write(i * n + j, x[i] * x[j])), [tf.constant(0), t]
            )
            return i + 1, t

        _, t = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), of(tf, n * n)])
        return tf.reduce_sum(t.stack() ** 2)

    compare(tf, lambda x: f(tf.constant(3), x), lambda x: ((x[:, None] * x[None]) ** 2).sum(), X)


def test_branches_in_a_loop(tf):
    @tf.function
    def f(n, x):
        def body(i, t):
            t = tf.cond(i % 2 == 0, lambda: t.write(i, x[i] ** 2), lambda: t.write(i, x[i] * t.read(i - 1)))
            return i + 1, t

        _, t = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), of(tf, n, clear_after_read=False)])
        return tf.reduce_sum(t.stack())

    compare(tf, lambda x: f(tf.constant(3), x), lambda x: (x[0] ** 2 + x[1] * x[0] ** 2 + x[2] ** 2).sum(), X)


def test_only_part_of_the_array_is_used(tf):
    f = tf.function(lambda n, x: tf.reduce_sum(powers(tf, n, x).read(1)))
    compare(tf, lambda x: f(tf.constant(5), x), lambda x: (x**2).sum(), X)


def test_ragged_elements_in_a_loop(tf):
    @tf.function
    def f(n, x):
        ta = of(tf, n, infer_shape=False, element_shape=[None])
        _, ta = tf.while_loop(
            lambda i, t: i < n, lambda i, t: (i + 1, t.write(i, tf.reshape(x, [-1])[:i] ** 2)), [tf.constant(0), ta]
        )
        return tf.reduce_sum(ta.concat())

    compare(tf, lambda x: f(tf.constant(4), x), lambda x: 3 * x[0, 0] ** 2 + 2 * x[0, 1] ** 2 + x[1, 0] ** 2, X)


def test_eager_loops(tf):
    """Python's loop and eager arrays mean the same."""

    def f(x):
        ta = of(tf, 3)
        for i in range(3):
            ta = ta.write(i, x[i] * float(i + 1))
        zeros = tf.zeros([2], tf.float64)
        _, s = tf.while_loop(
            lambda i, s: i < 3, lambda i, s: (i + 1, s + ta.read(int(i)) ** 2), [tf.constant(0), zeros]
        )
        return tf.reduce_sum(s)

    compare(tf, f, lambda x: ((x * [[1.0], [2.0], [3.0]]) ** 2).sum(), X)


@pytest.mark.parametrize("converted", [True, False])
def test_rebinding_in_a_loop_with_several_arrays(tf, converted):
    """Two arrays in one structure, swapped each turn."""

    def f(n, x):
        def body(i, pair):
            a, b = pair["a"], pair["b"]
            return i + 1, {"a": b.write(i, x[i] ** 2), "b": a.write(i, x[i] ** 3)}

        _, pair = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), {"a": of(tf, n), "b": of(tf, n)}])
        return tf.reduce_sum(pair["a"].stack() + 2.0 * pair["b"].stack())

    call = tf.function(f, autograph=converted)

    # turns: 0 gives a the square, 1 swaps: what was a is b, which gets a cube ...
    def formula(x):
        a, b = [0, 0, 0], [0, 0, 0]
        for i in range(3):
            new_a, new_b = list(b), list(a)
            new_a[i], new_b[i] = x[i] ** 2, x[i] ** 3
            a, b = new_a, new_b
        return sum(np.sum(v) for v in a) + 2 * sum(np.sum(v) for v in b)

    compare(tf, lambda x: call(tf.constant(3), x), formula, X)


@pytest.mark.ours
def test_arrays_come_in_and_go_out_with_gradients(tf):
    """A function takes a TensorArray and gives one; the tape sees through both."""

    @tf.function
    def f(ta, n):
        square = lambda i, t: (i + 1, t.write(i, t.read(i) ** 2))  # noqa: E731
        return tf.while_loop(lambda i, t: i < n, square, [tf.constant(0), ta])[1]

    def call(x):
        return tf.reduce_sum(f(of(tf, 3).unstack(x), tf.constant(2)).stack() ** 2)

    compare(tf, call, lambda x: (x[:2] ** 4).sum() + (x[2] ** 2).sum(), X)


@pytest.mark.ours
def test_branches_that_make_arrays_of_other_shapes(tf):
    """The static shape of the result is the common part of both branches."""
    shapes = []

    @tf.function
    def f(p):
        ta = tf.cond(p, lambda: of(tf, 2).unstack([[1.0], [2]]), lambda: of(tf, 2).unstack([[1.0, 2], [3, 4]]))
        shapes.append(ta.element_shape.as_list())
        return ta.stack()

    assert f(tf.constant(True)).shape == [2, 1]
    assert f(tf.constant(False)).shape == [2, 2]
    assert shapes == [[None]]


@pytest.mark.ours
def test_arrays_of_another_dtype_are_refused(tf):
    def ints():
        return tf.TensorArray(tf.int32, 2).write(0, 1)

    with pytest.raises(TypeError, match=r"(?s)tf.cond.*tf.float64.*tf.int32"):
        tf.function(lambda p: tf.cond(p, lambda: of(tf, 2).write(0, 1.0), ints).stack())(tf.constant(True))
    with pytest.raises(TypeError, match=r"(?s)body of the loop.*tf.float64.*tf.int32"):
        tf.function(lambda n: tf.while_loop(lambda t: n > 0, lambda t: ints(), [of(tf, 2)]))(tf.constant(1))


def test_shape_invariants(tf):
    @tf.function
    def f(n):
        return tf.while_loop(
            lambda i, _: i < n,
            lambda i, t: (i + 1, t.write(i, 1.0)),
            [tf.constant(0), of(tf, 3)],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)],
        )[1].stack()

    assert f(tf.constant(2)).numpy().tolist() == [1, 1, 0]


# ---- AutoGraph -------------------------------------------------------------------------------------------------------


def squares(tf, n, x):
    ta = of(tf, n)
    for i in tf.range(n):
        ta = ta.write(i, x[i] ** 2)
    return tf.reduce_sum(ta.stack() * x)


def halves(tf, n, x):
    ta = of(tf, 0, dynamic_size=True)
    i = 0
    while tf.reduce_sum(x * x) > 0.5:
        ta = ta.write(i, x)
        x = x / 2.0
        i += 1
    return tf.reduce_sum(ta.stack() ** 2)


def positives(tf, n, x):
    ta = of(tf, 0, dynamic_size=True, element_shape=[])
    for v in tf.reshape(x, [-1]):
        if v < 0.0:
            continue
        if ta.size() >= n:
            break
        ta = ta.write(ta.size(), v**3)
    return tf.reduce_sum(ta.stack())


def triangle(tf, n, x):
    ta = of(tf, n, clear_after_read=False)
    for i in tf.range(n):
        ta = ta.write(i, x[i])
        for j in tf.range(i):
            ta = ta.write(i, ta.read(i) * ta.read(j))
    return tf.reduce_sum(ta.stack())


def halves_formula(x):
    total = 0.0
    while (x * x).sum() > 0.5:
        total, x = total + (x * x).sum(), x / 2
    return total


CONVERTED = {
    squares: lambda x: (x**3).sum(),
    halves: halves_formula,
    positives: lambda x: sum(v**3 for v in [v for v in x.ravel() if v >= 0][:3]),
    triangle: lambda x: (x[0] + x[1] * x[0] + x[2] * x[0] * x[1] * x[0]).sum(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", CONVERTED, ids=lambda p: p.__name__)
def test_python_loops(tf, mode, program):
    call = program if mode == "eager" else tf.function(program)
    compare(tf, lambda x: call(tf, tf.constant(3), x), CONVERTED[program], X)


@pytest.mark.ours
def test_for_over_an_array(tf):
    @tf.function
    def f(x):
        s = 0.0
        for v in tf.TensorArray(tf.float32, 3).unstack(x):
            s = s * 2.0 + v
        return s

    assert f(tf.constant([1.0, 2, 3])).numpy() == 11


# ---- costs ---------------------------------------------------------------------------------------------------------


def seconds(function):
    """Return the least processor time of this thread in three calls: other processes do not count."""
    best = float("inf")
    for _ in range(3):
        start = time.thread_time()
        function()
        best = min(best, time.thread_time() - start)
    return best


@pytest.mark.ours
def test_ten_thousand_writes_cost_ten_times_a_thousand(tf):
    """Forward and forward with gradients: writing, reading, both linear in the number of turns."""

    @tf.function
    def f(n, x):
        ta = powers(tf, n, x)
        return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + ta.read(i)), [tf.constant(0), x * 0.0])[1]

    def backward(n):
        x = tf.constant([0.5])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(tf.constant(n), tf.cast(x, tf.float64))
        return tape.gradient(y, x)

    few, many = 1000, 10_000
    x = tf.constant([0.5], tf.float64)
    f(tf.constant(2), x)
    backward(2)
    assert f(tf.constant(many), x).numpy() == pytest.approx(1.0)
    assert seconds(lambda: f(tf.constant(many), x)) < 25 * seconds(lambda: f(tf.constant(few), x))
    assert backward(many).numpy() == pytest.approx(4.0)  # d/dx x/(1-x) = 1/(1-x)^2
    assert seconds(lambda: backward(many)) < 25 * seconds(lambda: backward(few))


@pytest.mark.ours
def test_memory_of_a_loop_that_overwrites_is_flat(tf):
    import tracemalloc

    @tf.function(jit_compile=False)  # a compiler in the background has memory of its own
    def f(n):
        ta = tf.TensorArray(tf.float64, 2, clear_after_read=False).unstack(tf.zeros([2, 1000], tf.float64))
        _, ta = tf.while_loop(
            lambda i, t: i < n, lambda i, t: (i + 1, t.write(i % 2, t.read(1 - i % 2) + 1.0)), [tf.constant(0), ta]
        )
        return ta.stack()

    f(tf.constant(2))

    def peak(n):
        tracemalloc.start()
        f(tf.constant(n))
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    peak(10)
    least = min(peak(2000) for _ in range(3))  # what threads of other tests allocate meanwhile is counted, too
    assert least < peak(20) + 20 * 8000


@pytest.mark.parametrize("way", ["autograph", "branch", "while_loop"])
def test_loops_learn_element_shapes(tf, way):
    """What is written in a loop or branch is known of the array behind it: shapes, and the number of elements."""
    seen = []

    @tf.function
    def run(n):
        array = tf.TensorArray(tf.float32, 4)
        row = tf.ones([2, 3])
        if way == "while_loop":
            _, array = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, row)), (0, array))
        for i in tf.range(n):
            if way == "autograph" or i > 2:
                array = array.write(i, row)
            else:
                array = array.write(i, row * 2)
        seen.append([array.stack().shape, array.element_shape, array.read(0).shape])
        total = tf.zeros([2, 3])
        for row in array.stack():
            total += row
        for i in tf.range(n):
            total += array.read(i)
        return total

    n = 4
    factor = {"autograph": 8.0, "while_loop": 14.0, "branch": 14.0}[way]
    np.testing.assert_array_equal(run(tf.constant(n)), np.full([2, 3], factor, np.float32))
    assert [s.as_list() for s in seen[0]] == [[4, 2, 3], [2, 3], [2, 3]]
