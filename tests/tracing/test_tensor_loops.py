"""Loops and branches over tensors in compiled functions are parts of one native call: values against NumPy in float64,
gradients against its differences, errors and interrupts as without compilation."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

import opwright as ow
from opwright.compiler.native.image import runs_images

F32, F64, I32 = np.float32, np.float64, np.int32
RNG = np.random.default_rng(11)
X = RNG.standard_normal((32, 48)).astype(F32)
W = (RNG.standard_normal((48, 48)) * 0.1).astype(F32)
ROWS = RNG.standard_normal((9, 4, 48)).astype(F32)
STRONG = (np.eye(16) * 3 + RNG.standard_normal((16, 16)) * 0.1).astype(F32)


def cells(ns, x, w, n):
    for _ in ns.range(n):
        x = ns.tanh(ns.matmul(x, w))
    return x


def while_above(ns, x, w, limit):
    i = ns.constant(0)
    while i < 6 and ns.reduce_max(x) > limit:
        x = ns.tanh(ns.matmul(x, w))
        i += 1
    return x


def exchanged(ns, a, b, c, n):
    for _ in ns.range(n):
        a, b, c = b, c, a + b * 0.5
    return a, b, c


def rotated(ns, a, b, n):
    for _ in ns.range(n):
        a, b = b, a
    return a, b


def nested(ns, x, w, n):
    y = x
    for i in ns.range(n):
        z = y
        for _ in ns.range(i):
            z = z * 0.5 + ns.matmul(y, w)
        if ns.reduce_sum(z) > 0.0:
            y = y + z * 0.1
        else:
            y = y - z * 0.1
    return y


def left_early(ns, x, n):
    i = ns.constant(0)
    while i < n:
        i += 1
        if i % 3 == 0:
            continue
        x = x * 0.9 + 0.1
        if ns.reduce_max(x) < 1.1:
            break
    return x, i


def kept(ns, x, n):
    """A variable that no iteration changes, one that is set to a value from outside, and a constant."""
    a, b, c = x, x * 2.0, ns.zeros_like(x)
    y = ns.exp(x * 0.1)
    for _ in ns.range(n):
        c = c + a * y
        b = y
    return a, b, c


def inverse(ns, a):
    y, error, i = ns.eye(16) * 0.1, ns.constant(1.0), ns.constant(0)
    while error > 1e-6 and i < 60:
        step = y * 2.0 - ns.matmul(y, ns.matmul(a, y))
        error = ns.reduce_max(ns.abs(step - y))
        y = step
        i += 1
    return y


def branches(ns, x, c):
    shifted = x - c
    if ns.reduce_sum(shifted) > 0.0:
        y, z = ns.exp(x * 0.1) * 2.0, x
    elif c > 2.0:
        y, z = ns.tanh(x), shifted * shifted
    else:
        y, z = ns.tanh(x), x + 1.0
    return y - 1.0, z


def numbered(ns, x, k):
    return ns.switch_case(k, [lambda: x + 1.0, lambda: x * x, lambda: ns.sin(x)])


def written(ns, x):
    states = ns.TensorArray(ns.float32, size=20)
    for i in ns.range(10):
        x = ns.tanh(x) * 1.1
        states = states.write(2 * i, x)
        states = states.write(2 * i + 1, -x)
    return states.stack(), x


def with_gaps(ns, x):
    rows = ns.TensorArray(ns.float32, size=20, element_shape=[32, 48])
    for i in ns.range(5):
        rows = rows.write(3 * i, x * ns.cast(i, ns.float32))
    return rows.stack(), rows.read(3), rows.gather([1, 6])


def written_in_branches(ns, x, k):
    rows = ns.TensorArray(ns.float32, size=10, element_shape=[32, 48])
    for i in ns.range(10):
        if i % k == 0:
            rows = rows.write(i, x + ns.cast(i, ns.float32))
    return rows.stack()


def recurrent(ns, rows, w):
    inputs = ns.TensorArray(ns.float32, size=9, clear_after_read=False).unstack(rows)
    outputs, h = ns.TensorArray(ns.float32, size=9), ns.zeros([4, 48])
    for t in ns.range(9):
        h = ns.tanh(ns.matmul(h, w) + inputs.read(t) * inputs.read(8 - t))
        outputs = outputs.write(t, h)
    return outputs.stack(), h


class Array:
    """`TensorArray` of NumPy."""

    def __init__(self, size, element_shape=None):
        self.rows = [None if element_shape is None else np.zeros(element_shape) for _ in range(size)]

    def write(self, index, value):
        self.rows[index] = value
        return self

    def unstack(self, rows):
        self.rows = list(rows)
        return self

    def read(self, index):
        return self.rows[index]

    def stack(self):
        return np.stack(self.rows)

    def gather(self, indices):
        return np.stack([self.rows[i] for i in indices])


class OfNumPy:
    """The same functions in NumPy."""

    tanh, exp, sin, abs, eye, zeros, zeros_like = np.tanh, np.exp, np.sin, np.abs, np.eye, np.zeros, np.zeros_like
    matmul, reduce_sum, reduce_max, float32 = np.matmul, np.sum, np.max, None
    range = staticmethod(lambda n: range(int(n)))
    constant = staticmethod(lambda x: x)
    cast = staticmethod(lambda x, dtype: float(x))
    TensorArray = staticmethod(
        lambda dtype, size, element_shape=None, clear_after_read=True: Array(size, element_shape)
    )
    switch_case = staticmethod(lambda k, calls: calls[int(k) if 0 <= k < len(calls) else -1]())


CASES = {  # name: function, arguments
    "no iterations": (cells, X, W, I32(0)),
    "one iteration": (cells, X, W, I32(1)),
    "iterations": (cells, X, W, I32(37)),
    "exchanged": (exchanged, X, X * F32(2), X * F32(3), I32(5)),
    "exchanged, none": (exchanged, X, X * F32(2), X * F32(3), I32(0)),
    "two exchanged": (rotated, X, X * F32(2), I32(7)),
    "nested": (nested, X, W, I32(5)),
    "nested, none": (nested, X, W, I32(0)),
    "break and continue": (left_early, np.abs(X), I32(100)),
    "continue alone": (left_early, np.abs(X), I32(5)),
    "unchanged variables": (kept, X, I32(3)),
    "unchanged variables, none": (kept, X, I32(0)),
    "until it converges": (inverse, STRONG),
    "first branch": (branches, X, F32(-9)),
    "second branch": (branches, X, F32(9)),
    "last branch": (branches, X, F32(1.5)),
    "case 0": (numbered, X, I32(0)),
    "case 1": (numbered, X, I32(1)),
    "case below": (numbered, X, I32(-1)),
    "case beyond": (numbered, X, I32(7)),
    "array written": (written, X),
    "array with gaps": (with_gaps, X),
    "array written in branches": (written_in_branches, X, I32(3)),
    "array read and written": (recurrent, ROWS, W),
}


def report(function, *args):
    return function.experimental_get_compiler_ir(*args)()


@pytest.mark.parametrize("name", CASES)
def test_control_flow_is_part_of_one_native_call(name):
    function, *arguments = CASES[name]
    compiled = ow.function(lambda *args: function(ow, *args), jit_compile=True)
    args = [ow.constant(a) for a in arguments]
    exact = [a.astype(F64) if a.dtype == F32 else a for a in map(np.asarray, arguments)]
    expected = function(OfNumPy, *exact)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for _ in range(2):
        results = ow.nest.flatten(compiled(*args))
        for x, y in zip(results, expected, strict=True):
            np.testing.assert_allclose(x.numpy(), y, 2e-4, 2e-4)
    text = report(compiled, *args)
    assert "in 1 native calls, 0 as they are" in text


GRADIENTS = {  # name: function of float32 arrays, arguments
    "iterations": (lambda ns, x, w: cells(ns, x, w, 6), X, W),
    "no iterations": (lambda ns, x, w: while_above(ns, x, w, 1e9) + ns.matmul(x, w), X, W),
    "fewer iterations": (lambda ns, x, w: while_above(ns, x, w, 0.9), X, W),
    "branches in a loop": (lambda ns, x, w: nested(ns, x, w, 3), X, W),
    "arrays": (lambda ns, rows, w: recurrent(ns, rows, w)[0], ROWS, W),
    "first branch": (lambda ns, x: branches(ns, x, -9.0)[0], X),
    "last branch": (lambda ns, x: branches(ns, x, 1.5)[0], X),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_differences(name):
    function, *arguments = GRADIENTS[name]

    def gradient(*args):
        with ow.GradientTape() as tape:
            tape.watch(args)
            y = function(ow, *args)
            y = ow.reduce_sum(y * y)
        return tape.gradient(y, args)

    compiled = ow.function(gradient, jit_compile=True)
    args = [ow.constant(a) for a in arguments]
    exact, step, rng = [a.astype(F64) for a in arguments], 1e-6, np.random.default_rng(5)
    results = compiled(*args)
    for i in range(len(exact)):
        for _ in range(3):
            direction = rng.standard_normal(exact[i].shape)

            def along(t, i=i, direction=direction):
                return (function(OfNumPy, *exact[:i], exact[i] + t * direction, *exact[i + 1 :]) ** 2).sum()

            slope = (along(step) - along(-step)) / (2 * step)
            np.testing.assert_allclose((results[i].numpy() * direction).sum(), slope, 1e-3, 2e-3)
    text = report(compiled, *args)
    assert "While" not in text
    assert "List" not in text.partition(" for ")[0]


def test_later_calls_have_other_trip_counts_and_branches():
    compiled = ow.function(lambda *args: (cells(ow, *args[:3]), branches(ow, args[0], args[3])), jit_compile=True)
    for n, c in ((3, -9.0), (0, 9.0), (50, 1.5), (1, -9.0)):
        x = RNG.standard_normal(X.shape).astype(F32)
        y, (z, _) = compiled(ow.constant(x), ow.constant(W), ow.constant(n), ow.constant(c))
        np.testing.assert_allclose(y, cells(OfNumPy, x.astype(F64), W.astype(F64), n), 1e-4, 1e-4)
        np.testing.assert_allclose(z, branches(OfNumPy, x.astype(F64), c)[0], 1e-4, 1e-4)


def test_graphs_are_compiled_for_the_sizes_of_each_call():
    """In graphs of control flow, too, as long as no iteration changes them."""

    @ow.function(jit_compile=True, input_signature=[ow.TensorSpec([None, 48]), ow.TensorSpec([], ow.int32)])
    def turns(x, n):
        y = nested(ow, x, ow.constant(W), n)
        return y, branches(ow, y, 1.5)[0]

    for rows, n in ((3, 4), (32, 2), (3, 0), (1, 3)):
        x = RNG.standard_normal((rows, 48)).astype(F32)
        y, z = turns(x, ow.constant(n))
        exact = nested(OfNumPy, x.astype(F64), W, n)
        np.testing.assert_allclose(y, exact, 2e-4, 2e-4)
        np.testing.assert_allclose(z, branches(OfNumPy, exact, 1.5)[0], 2e-4, 2e-4)
        assert "While" not in report(turns, x, ow.constant(n))

    @ow.function(jit_compile=True, input_signature=[ow.TensorSpec([None, 48])])
    def growing(x):
        grown = [ow.TensorShape([None, 48]), ow.TensorShape([None, 48])]
        step = lambda x, y: (ow.concat([x, y], 0), ow.tanh(y))  # noqa: E731
        return ow.while_loop(lambda x, y: ow.shape(x)[0] < 9, step, [x, x], shape_invariants=grown)

    x, y = growing(X[:2])
    np.testing.assert_allclose(y, np.tanh(np.tanh(np.tanh(np.tanh(X[:2].astype(F64))))), 1e-5, 1e-6)
    assert x.shape == (10, 48)


def test_bodies_read_variables():
    weights, scale = ow.Variable(W), ow.Variable(F32(0.5))

    @ow.function(jit_compile=True)
    def turns(x, n, c):
        scale.assign(c)
        for _ in ow.range(n):
            if ow.reduce_sum(x) > 0.0:
                x = ow.tanh(ow.matmul(x, weights)) * scale
            else:
                x = x - scale
        scale.assign(c * 2.0)
        return x + scale

    def meaning(x, n, c):
        for _ in range(n):
            x = np.tanh(x @ weights.numpy().astype(F64)) * c if x.sum() > 0 else x - c
        return x + 2 * c

    for n, c, factor in ((3, -0.25, 1.0), (0, 2.0, 1.0), (2, 0.75, 2.0)):
        weights.assign(W * F32(factor))
        y = turns(ow.constant(X), ow.constant(n), ow.constant(c))
        np.testing.assert_allclose(y, meaning(X.astype(F64), n, c), 1e-4, 1e-4)
        assert float(scale) == 2 * c
    text = report(turns, ow.constant(X), ow.constant(2), ow.constant(0.75))
    assert "While" not in text


def test_inputs_stay_as_they_are():
    """Variables of loops are in memory of their own."""
    x, w = ow.constant(X), ow.constant(W)
    compiled = ow.function(lambda x, w, n: (cells(ow, x, w, n), rotated(ow, x, x, n)), jit_compile=True)
    for _ in range(2):
        compiled(x, w, ow.constant(4))
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(w, W)


def gathered(table, x, n):
    i = ow.constant(0)
    while i < n:
        x = x + ow.gather(table, i * 3)
        i += 1
    return x


def test_an_error_in_an_iteration_names_the_operator_and_its_line():
    compiled = ow.function(gathered, jit_compile=True)
    table = ow.constant(X)
    for _ in range(2):
        expected = sum(X[3 * i].astype(F64) for i in range(11))
        np.testing.assert_allclose(compiled(table, ow.zeros([48]), ow.constant(11)), expected, 1e-5, 1e-5)
        with pytest.raises(ow.errors.InvalidArgumentError, match=r"Gather.*test_tensor_loops.py:\d+"):
            compiled(table, ow.zeros([48]), ow.constant(12))


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("index", [-1, 5])
def test_an_element_that_is_not_there_is_the_array_s_error(jit, index):
    def put(x, index):
        rows = ow.TensorArray(ow.float32, size=5, element_shape=[32, 48])
        for i in ow.range(3):
            rows = rows.write(index * i, x)
        return rows.stack()

    def take(x, index):
        rows = ow.TensorArray(ow.float32, size=32).unstack(x)
        total = x[0]
        for i in ow.range(3):
            total = total + rows.read(7 * index * i)
        return total

    for function in (put, take):
        compiled = ow.function(function, jit_compile=jit)
        compiled(ow.constant(X), ow.constant(0 if function is take else 1))
        with pytest.raises(
            ow.errors.InvalidArgumentError, match=f"element -?{abs(index) * (7 if function is take else 1)}"
        ):
            compiled(ow.constant(X), ow.constant(index))


def test_a_check_of_numbers_sees_the_body():
    def roots(x):
        for _ in ow.range(4):
            x = ow.sqrt(x - 1.0)
        return x

    compiled = ow.function(roots, jit_compile=True)
    assert np.isnan(compiled(ow.constant(X)).numpy()).all()
    with ow.flags(check_numerics=True), pytest.raises(ow.errors.InvalidArgumentError, match="Sqrt"):
        ow.function(roots, jit_compile=True)(ow.constant(X))


def test_a_variable_of_another_dtype_or_shape_is_an_error():
    with pytest.raises(TypeError, match="float64"):
        ow.function(lambda x: ow.while_loop(lambda x: True, lambda x: ow.cast(x, ow.float64), [x]), jit_compile=True)(X)
    with pytest.raises(ValueError, match="shape"):
        ow.function(lambda x: ow.while_loop(lambda x: True, lambda x: x[1:], [x]), jit_compile=True)(X)


@pytest.mark.skipif(not runs_images(), reason="code is loaded by LLVM, and does not poll")
@pytest.mark.parametrize("quick_first", [False, True])
def test_a_signal_ends_a_loop(quick_first):
    @ow.function(jit_compile=True)
    def turns(x, w, n):
        return cells(ow, x, w, n)

    class Alarm(Exception):
        pass

    def ring(number, frame):
        raise Alarm

    turns(X, W, ow.constant(2 if quick_first else 0))
    before = signal.signal(signal.SIGALRM, ring)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            start = time.monotonic()
            with pytest.raises(Alarm):
                turns(X, W, ow.constant(2_000_000_000))
            assert time.monotonic() - start < 20
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_allclose(turns(X, W, ow.constant(1)), np.tanh(X.astype(F64) @ W), 1e-4, 1e-5)
