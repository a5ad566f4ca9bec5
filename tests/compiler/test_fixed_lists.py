"""Lists that loops fill element by element: compiled as arrays, where nothing sees them while they grow.

Lives here: which programs are one native call, and which are left alone; values against NumPy.
Not here: arrays of a declared size (tests/tracing/test_tensor_array_loops.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.compiler.lowering import control_flow
from thorough import sampled

X = np.linspace(-2, 2, 48).reshape(12, 4).astype(np.float32)


def growing() -> Any:
    return ow.TensorArray(ow.float32, 0, dynamic_size=True)


def rows(x):
    ta = growing()
    for i in ow.range(12):
        ta = ta.write(i, x[i] * 2)
    return ta.stack()


def rows_by_shape(x):
    ta = growing()
    for i in ow.range(ow.shape(x)[0]):
        ta = ta.write(i, x[i] * 2)
    return ta.stack()


def two_lists(x):
    a, b = growing(), growing()
    for i in ow.range(12):
        a, b = a.write(i, x[i] + 1), b.write(i, ow.reduce_sum(x[i]))
    return a.stack() * ow.expand_dims(b.stack(), 1), a.size(), b.read(3)


def appended(x):
    results = []
    for i in ow.range(12):
        results.append(ow.tanh(x[i]))  # noqa: PERF401  # what is tested
    return ow.stack(results)


def mapped(x):
    return ow.map_fn(lambda row: ow.tanh(row) * ow.reduce_sum(row), x)


def scanned(x):
    return ow.scan(lambda before, row: before * 0.5 + row, x)


def gradient_of(program):
    def gradient(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.reduce_sum(program(x) ** 2)
        return tape.gradient(y, x)

    return gradient


def second_derivatives(x):
    with ow.GradientTape() as outer:
        outer.watch(x)
        with ow.GradientTape() as inner:
            inner.watch(x)
            h = ow.zeros([4])
            for i in ow.range(12):
                h = h * 0.5 + x[i] * x[i]
            y = ow.reduce_sum(h * h)
        z = ow.reduce_sum(inner.gradient(y, x) ** 2)
    return outer.gradient(z, x)


def states(x):
    """h[t] = h[t - 1] / 2 + x[t]^2"""
    ta, h = growing(), ow.zeros([4])
    for i in ow.range(12):
        h = h * 0.5 + x[i] * x[i]
        ta = ta.write(i, h)
    return ta.stack()


def states_of_12(x):
    ta, h = ow.TensorArray(ow.float32, 12), ow.zeros([4])
    for i in ow.range(12):
        h = h * 0.5 + x[i] * x[i]
        ta = ta.write(i, h)
    return ta.stack()


def concatenated(x):
    ta = growing()
    for i in ow.range(12):
        ta = ta.write(i, x[i] * 2)
    return ta.concat()


PLACES = np.array([[3, 1], [7, 3], [3, 3], [11, 0], [1, 7]], np.int32)


def rows_looked_up(x):
    """The gradient of a table, whose rows a loop looks up, some of them more than once."""
    with ow.GradientTape() as tape:
        tape.watch(x)
        y, number = ow.zeros([]), ow.zeros([])
        for i in ow.range(5):
            number += 1
            y += number * ow.reduce_sum(ow.gather(x, ow.constant(PLACES)[i]) ** 2)
    return ow.convert_to_tensor(tape.gradient(y, x))


def mapped_elements(x):
    return ow.map_fn(lambda v: v * v * v, ow.reshape(x, [-1]))


def second_derivatives_of(program):
    def second(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            z = ow.reduce_sum(gradient_of(program)(x) ** 2)
        return tape.gradient(z, x)

    return second


def backwards(x):
    """A list of a size that follows from a shape, filled from its end."""
    n = ow.shape(x)[0]
    ta, total = ow.TensorArray(ow.float32, n), ow.zeros([4])
    for i in ow.range(n):
        total = total + x[n - 1 - i]
        ta = ta.write(n - 1 - i, total)
    for i in ow.range(n):
        if ow.reduce_sum(x[i]) > 0:
            ta = ta.write(i, ta.read(i) * 2)
    return ta.stack()


def last_state(x, n):
    h = ow.zeros([4])
    for i in ow.range(n):
        h = h * 0.5 + x[i] * x[i]
    return h


def last_state_until_large(x, limit):
    h, i = ow.zeros([4]), ow.constant(0)
    while ow.reduce_sum(h) < limit:
        h = h * 0.5 + x[i] * x[i]
        i += 1
    return h


def gradient_of_last(program):
    def gradient(x, n):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.reduce_sum(program(x, n) ** 2)
        return tape.gradient(y, x)

    return gradient


def every_second(x):
    ta = growing()
    for i in ow.range(6):
        ta = ta.write(2 * i, x[i])
    return ta.stack()


def until_positive(x):
    ta = growing()
    for i in ow.range(12):
        if x[i, 0] > 0:
            break
        ta = ta.write(i, x[i])
    return ta.stack()


def as_many_as(x, n):
    ta = growing()
    for i in ow.range(n):
        ta = ta.write(i, x[i])
    return ta.stack()


def sizes_inside(x):
    ta, total = growing(), 0
    for i in ow.range(12):
        total += ta.size()
        ta = ta.write(i, x[i])
    return ta.stack(), total


SECOND = np.zeros((11, 4), np.float32)
SECOND[::2] = X[:6]
TANH, SUMS, SCANNED = np.tanh(X), X.sum(1, keepdims=True), X.copy()
for t in range(1, 12):
    SCANNED[t] += 0.5 * SCANNED[t - 1]
BACK = 2 * SCANNED
for t in range(10, -1, -1):
    BACK[t] += 0.5 * BACK[t + 1]
C = 0.5 ** np.arange(11.0, -1, -1)[:, None]
H, S = (C * X**2).sum(0), (C**2 * X**2).sum(0)  # dy/dx = 4 h c x, so that z = 16 sum(h^2 s)
A = np.tril(0.5 ** (np.arange(12.0)[:, None] - np.arange(12)))  # the states are A x^2
MX2 = A.T @ A @ X**2.0
G = 4 * X * MX2  # the gradient of the sum of their squares
SECOND_OF_STATES = 2 * (4 * G * MX2 + 8 * X * (A.T @ A @ (G * X)))
TIMES = np.zeros((12, 1), np.float32)
np.add.at(TIMES[:, 0], PLACES, np.arange(1, 6)[:, None])
WHOLE = [
    (concatenated, [2 * X.reshape(-1)]),
    (rows_looked_up, [2 * TIMES * X]),
    (backwards, [X[::-1].cumsum(0)[::-1] * np.where(X.sum(1) > 0, 2, 1)[:, None]]),
    (gradient_of(rows), [8 * X]),
    (gradient_of(states), [G]),
    (second_derivatives_of(states_of_12), [SECOND_OF_STATES]),
    (second_derivatives_of(mapped_elements), [360 * X.astype(np.float64) ** 9]),
    (second_derivatives, [16 * (4 * H * S * C * X + 2 * H**2 * C**2 * X)]),
    (appended, [TANH]),
    (mapped, [TANH * SUMS]),
    (scanned, [SCANNED]),
    (gradient_of(appended), [2 * TANH * (1 - TANH**2)]),
    (gradient_of(mapped), [2 * SUMS**2 * TANH * (1 - TANH**2) + 2 * SUMS * (TANH**2).sum(1, keepdims=True)]),
    (gradient_of(scanned), [BACK]),
    (rows, [2 * X]),
    (rows_by_shape, [2 * X]),
    (two_lists, [(X + 1) * X.sum(1, keepdims=True), 12, X[3].sum()]),
]
OTHERS = [
    (every_second, [SECOND]),
    (until_positive, [X[:6]]),
    (as_many_as, [X[:5]]),
    (sizes_inside, [X, 66]),
    (second_derivatives_of(rows), [128 * X]),
    (second_derivatives_of(states), [SECOND_OF_STATES]),
]


@pytest.mark.parametrize(
    ("program", "expected", "whole"), sampled([(*p, True) for p in WHOLE] + [(*p, False) for p in OTHERS], 4)
)
def test_lists_that_loops_fill(program, expected, whole):
    f = ow.function(program, jit_compile=True)
    arguments = [ow.constant(X)] + [ow.constant(5)] * (program is as_many_as)
    for actual, wanted in zip(ow.nest.flatten(f(*arguments)), expected, strict=True):
        assert actual.shape == np.shape(wanted)
        np.testing.assert_allclose(actual, wanted, rtol=2e-5, atol=1e-5)
    report = f.experimental_get_compiler_ir(*arguments)("report")
    assert ("in 1 native calls, 0 as they are" in report.splitlines()[0]) == whole, report


def _gradient_of_last(n):
    """The gradient of the sum of squares of `last_state` after n iterations."""
    c = np.where(np.arange(12) < n, 0.5 ** (n - 1.0 - np.arange(12)), 0)[:, None]
    return 4 * (c * X**2.0).sum(0) * c * X


@pytest.mark.parametrize("most", [1 << 16, 4], ids=["within memory", "beyond"])
def test_gradients_of_loops_of_unknown_length(most, tmp_path, monkeypatch):
    monkeypatch.setattr(control_flow, "MOST_APPENDED", most)
    with ow.flags(cache_dir=str(tmp_path)):
        counted = ow.function(gradient_of_last(last_state), jit_compile=True)
        tested = ow.function(gradient_of_last(last_state_until_large), jit_compile=True)
        x = ow.constant(X)
        for n in (5, 0, 1, 12, 7):
            np.testing.assert_allclose(counted(x, ow.constant(n)), _gradient_of_last(n), rtol=2e-5, atol=1e-5)
        sums = (A @ X**2.0).sum(1)
        for limit in (1.0, 20.0, -1.0):
            n = 0 if limit < 0 else int(np.argmax(sums >= limit)) + 1
            np.testing.assert_allclose(tested(x, ow.constant(limit)), _gradient_of_last(n), rtol=2e-5, atol=1e-5)
        for f, argument in ((counted, ow.constant(5)), (tested, ow.constant(20.0))):
            report = f.experimental_get_compiler_ir(x, argument)("report")
            assert "in 1 native calls, 0 as they are" in report.splitlines()[0], report
