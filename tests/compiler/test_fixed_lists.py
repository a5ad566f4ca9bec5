"""Lists that loops fill element by element: compiled as arrays, where nothing sees them while they grow.

Lives here: which programs are one native call, and which are left alone; values against NumPy.
Not here: arrays of a declared size (tests/tracing/test_tensor_array_loops.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow

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
WHOLE = [
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
    (gradient_of(rows), [8 * X]),
]


@pytest.mark.parametrize(("program", "expected", "whole"), [(*p, True) for p in WHOLE] + [(*p, False) for p in OTHERS])
def test_lists_that_loops_fill(program, expected, whole):
    f = ow.function(program, jit_compile=True)
    arguments = [ow.constant(X)] + [ow.constant(5)] * (program is as_many_as)
    for actual, wanted in zip(ow.nest.flatten(f(*arguments)), expected, strict=True):
        assert actual.shape == np.shape(wanted)
        np.testing.assert_allclose(actual, wanted, rtol=2e-5, atol=1e-5)
    report = f.experimental_get_compiler_ir(*arguments)("report")
    assert ("in 1 native calls, 0 as they are" in report.splitlines()[0]) == whole, report
