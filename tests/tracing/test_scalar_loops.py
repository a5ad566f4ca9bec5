"""Loops on single elements in compiled functions are one kernel: values, gradients and errors are those of NumPy."""

from __future__ import annotations

import math
import signal
import threading
import time

import numpy as np
import pytest

import opwright as ow
from opwright.compiler.native.image import runs_images

F32, F64, I32, I64 = np.float32, np.float64, np.int32, np.int64
RNG = np.random.default_rng(7)


def power(x, n):
    return ow.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), (ow.zeros_like(n), ow.ones_like(x)))


def collatz(n):
    steps = ow.constant(0)
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps, n


def collatz_of_python(n):
    steps, n = 0, int(n)
    while n > 1:
        n, steps = n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1
    return steps, n


def nested(n, x):
    total = ow.zeros_like(x)
    for i in ow.range(n):
        j = ow.constant(0)
        while j * j < i:
            total += x * ow.cast(j, x.dtype)
            j += 2
    return total


def nested_of_python(n, x):
    total = 0.0
    for i in range(int(n)):
        j = 0
        while j * j < i:
            total, j = total + float(x) * j, j + 2
    return total


def root(x):
    y = x
    for _ in ow.range(6):
        y = 0.5 * (y + x / y)
    return y


def branches(x):
    y, i = x, ow.constant(0, ow.int64)
    while i < 12:
        if y > 2.0:
            y = y * 0.5
        elif y < 0.0:
            y = x - y
        else:
            y = y * x + 0.25
        i += 1
    return y


def branches_of_python(x):
    x = y = float(x)
    for _ in range(12):
        y = y * 0.5 if y > 2 else x - y if y < 0 else y * x + 0.25
    return y


def cases(n):
    i, s = ow.constant(0), ow.constant(1)
    while i < n:
        s = ow.switch_case(i % 5, [lambda s=s: s + 1, lambda s=s: s * 2, lambda s=s: s - 3, lambda s=s, i=i: s + i])
        i += 1
    return s


def cases_of_python(n):
    s = 1
    for i in range(int(n)):
        s = (s + 1, s * 2, s - 3, s + i)[min(i % 5, 3)]
    return s


def limited(x):
    return ow.while_loop(lambda y: y < 1e30, lambda y: ow.exp(y * 0.01) * y, [x], maximum_iterations=25)


def limited_of_python(x):
    y = float(x)
    for _ in range(25):
        y = math.exp(y * 0.01) * y
    return y


def swapped(a, b, n):
    return ow.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, a + b), (ow.constant(0), a, b))[1:]


def swapped_of_python(a, b, n):
    for _ in range(int(n)):
        a, b = b, int(a) + int(b)
    return a, b


def single_row(x, n):
    """A variable of shape [1, 1], with views and sums of it."""
    y, i = x, ow.constant(0)
    while i < n:
        y = ow.reshape(ow.reduce_sum(y, axis=-1), [1, 1]) * 1.5 + ow.constant([0.5])
        i += 1
    return y


def picked(x, weights, n):
    """Reads elements of arrays from outside, in a branch and by constant indices, too."""
    total, i = x[0, 1] * 1.0, ow.constant(0)
    while i < n:
        if weights[i] > 0.0:
            total += ow.gather(weights, i) * x[1, 2]
        else:
            total -= weights[i]
        i += 1
    return total


def picked_of_python(x, weights, n):
    total = float(x[0, 1])
    for w in weights[: int(n)].astype(float):
        total += w * float(x[1, 2]) if w > 0 else -w
    return total


def backwards(x):
    total, i = ow.zeros_like(x[0]), ow.constant(-1)
    while i > -5:
        total = total * 2 + x[i]
        i -= 1
    return total


CASES = {  # name: function, arguments, the same in Python, relative tolerance
    "int32 counter": (power, (F32(1.0001), I32(1000)), lambda x, n: (n, float(x) ** int(n)), 1e-4),
    "int64 counter": (power, (F64(1.0001), I64(1000)), lambda x, n: (n, float(x) ** int(n)), 1e-11),
    "float counter": (power, (F64(0.5), F64(9.5)), lambda x, n: (10.0, 0.5**10), 0),
    "zero iterations": (power, (F32(7), I32(0)), lambda x, n: (0, 1.0), 0),
    "integers wrap": (power, (I32(3), I32(40)), lambda x, n: (40, (3**40 + 2**31) % 2**32 - 2**31), 0),
    "branches of int64": (collatz, (I64(97),), collatz_of_python, 0),
    "nested": (nested, (I32(30), F64(0.5)), nested_of_python, 1e-12),
    "no inner iterations": (nested, (I32(1), F32(0.5)), nested_of_python, 0),
    "range": (root, (F64(3),), math.sqrt, 1e-12),
    "three branches": (branches, (F64(1.3),), branches_of_python, 1e-12),
    "negative": (branches, (F64(-1.3),), branches_of_python, 1e-12),
    "cases": (cases, (I32(23),), cases_of_python, 0),
    "maximum_iterations": (limited, (F32(0.7),), limited_of_python, 1e-5),
    "variables swapped": (swapped, (I64(0), I64(1), I32(60)), swapped_of_python, 0),
    "elements of arrays": (
        picked,
        (RNG.standard_normal((3, 4)), RNG.standard_normal(6000), I32(6000)),
        picked_of_python,
        1e-11,
    ),
    "elements from the end": (backwards, (np.arange(9, dtype=I64),), lambda x: ((8 * 2 + 7) * 2 + 6) * 2 + 5, 0),
    "one element of rank 2": (single_row, (F32([[2.0]]), I32(5)), lambda x, n: [[(2 + 1) * 1.5**5 - 1]], 1e-6),
}


def report(function, *args):
    return function.experimental_get_compiler_ir(*args)()


@pytest.mark.parametrize("name", CASES)
def test_a_loop_is_one_kernel(name):
    function, arguments, meaning, tolerance = CASES[name]
    args = [ow.constant(a) for a in arguments]
    compiled, plain = (ow.function(function, jit_compile=jit) for jit in (True, False))
    expected = meaning(*arguments)
    expected = expected if isinstance(expected, tuple) else [expected]
    for _ in range(2):
        results = ow.nest.flatten(compiled(*args))
        for x, y, z in zip(results, expected, ow.nest.flatten(plain(*args)), strict=True):
            assert (x.dtype, x.shape) == (z.dtype, z.shape)
            np.testing.assert_allclose(x.numpy().astype(F64), y, tolerance, tolerance)
    text = report(compiled, *args)
    assert "native loop" in text
    assert "While" not in text


GRADIENTS = {  # name: function of float64 arguments, arguments, its gradients
    "power": (lambda x: power(x, ow.constant(200))[1], (1.01,), lambda x: 200 * x**199),
    "captured twice": (
        lambda x, y: power(x * y, ow.constant(5))[1] * x,
        (1.5, 0.5),
        lambda x, y: (6 * x**5 * y**5, 5 * x**6 * y**4),
    ),
    "branches": (lambda x: branches(x) * 1.0, (1.3,), None),
    "zero iterations": (lambda x: power(x, ow.constant(0))[1] + x, (2.5,), lambda x: 1.0),
    "root": (root, (3.0,), lambda x: 0.5 / math.sqrt(x)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_loops_are_loops_with_lists(name):
    function, arguments, meaning = GRADIENTS[name]

    def gradient(*args):
        with ow.GradientTape() as tape:
            tape.watch(args)
            y = function(*args)
        return tape.gradient(y, args)

    args = [ow.constant(a, ow.float64) for a in arguments]
    compiled = ow.function(gradient, jit_compile=True)
    if meaning is None:  # central differences of the function in Python
        (x,), step = arguments, 1e-6
        expected = (branches_of_python(x + step) - branches_of_python(x - step)) / (2 * step)
    else:
        expected = meaning(*arguments)
    for _ in range(2):
        results = [g.numpy() for g in compiled(*args)]
        np.testing.assert_allclose(results, np.atleast_1d(expected), 1e-7)
    assert "While" not in report(compiled, *args)


def test_lists_outgrow_their_memory():
    compiled = ow.function(lambda x, n: power(x, n)[1], jit_compile=True)
    for n in (3, 5000, 64, 65, 20_000, 0):
        x = ow.constant(1.0001, ow.float64)
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = compiled(x, ow.constant(n))
        np.testing.assert_allclose(tape.gradient(y, x), n * 1.0001 ** (n - 1.0), 1e-9)


def quotients(n, d):
    total, i = ow.constant(0), ow.constant(0)
    while i < n:
        total += 100 // (d - i)
        i += 1
    return total


def test_guards_name_the_operator_and_its_line():
    compiled = ow.function(quotients, jit_compile=True)
    assert int(compiled(ow.constant(4), ow.constant(5))) == sum(100 // (5 - i) for i in range(4))
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"FloorDiv.*test_scalar_loops.py:\d+"):
        compiled(ow.constant(6), ow.constant(5))
    assert int(compiled(ow.constant(4), ow.constant(5))) == sum(100 // (5 - i) for i in range(4))


@pytest.mark.parametrize("jit", [True, False])
def test_an_index_outside_of_an_array_is_the_slice_s_error(jit):
    def total(x, n):
        y, i = ow.constant(0.0), ow.constant(0)
        while i < n:
            y += x[i]
            i += 1
        return y

    compiled = ow.function(total, jit_compile=jit)
    assert float(compiled(ow.ones([10]), ow.constant(10))) == 10.0
    with pytest.raises(ow.errors.InvalidArgumentError, match="slice index 10 of dimension 0 out of bounds"):
        compiled(ow.ones([10]), ow.constant(11))


def test_bodies_of_unknown_types_stay_and_effects_are_values():
    count = ow.Variable(0.0)

    def counted(x):
        i = ow.constant(0)
        while i < 3:
            count.assign_add(x)
            i += 1
        return count.read_value()

    def joined(n):
        i, s = ow.constant(0), ow.constant("")
        while i < n:
            s = s + "a"
            i += 1
        return s

    compiled = ow.function(counted, jit_compile=True)
    assert float(compiled(ow.constant(2.0))) == 6.0
    assert "native loop: 3 operations for while" in report(compiled, ow.constant(2.0))
    assert ow.function(joined, jit_compile=True)(ow.constant(4)).numpy() == b"aaaa"


def test_checks_of_numbers_see_the_operators_of_a_body():
    compiled = ow.function(root, jit_compile=True)
    assert np.isnan(compiled(ow.constant(0.0)).numpy())
    with ow.flags(check_numerics=True), pytest.raises(ow.errors.InvalidArgumentError, match="truediv"):
        ow.function(root, jit_compile=True)(ow.constant(0.0))


def test_threads_call_one_loop():
    compiled = ow.function(lambda x, n: power(x, n)[1], jit_compile=True)
    compiled(ow.constant(1.0, ow.float64), ow.constant(1))
    wrong = []

    def run(number):
        for n in range(number, 4000, 97):
            y = compiled(ow.constant(1.0 + number * 1e-6, ow.float64), ow.constant(n))
            if not math.isclose(float(y), (1.0 + number * 1e-6) ** n, rel_tol=1e-9):
                wrong.append((number, n))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not runs_images(), reason="code is loaded by LLVM, and does not poll")
def test_a_signal_ends_a_loop():
    @ow.function(jit_compile=True)
    def endless(n):
        i = ow.constant(0)
        while i >= 0:
            i = (i * 3 + n) % 1024
        return i

    class Alarm(Exception):
        pass

    def ring(number, frame):
        raise Alarm

    assert "native loop" in report(endless, ow.constant(1))  # compiled, not run
    before = signal.signal(signal.SIGALRM, ring)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            start = time.monotonic()
            with pytest.raises(Alarm):
                endless(ow.constant(1))
            assert time.monotonic() - start < 20
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
