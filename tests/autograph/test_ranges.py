"""`for` over tf.range counts; no array of the numbers is made."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("bounds", [(5,), (0,), (2, 9), (9, 2, -3), (-4, 5, 2), (3, 3)])
@pytest.mark.parametrize("known", [True, False])
def test_numbers(tf, dtype, bounds, known):
    def total(*bounds):
        s, last = tf.constant(0, dtype), tf.constant(-100, dtype)
        for i in tf.range(*bounds, dtype=dtype):
            s = s * 3 + i
            last = i
        return s, last

    expected, last = 0, -100
    for i in range(*bounds):
        expected, last = expected * 3 + i, i
    if known:
        actual = tf.function(lambda: total(*bounds))()
    else:
        *ends, step = bounds if len(bounds) == 3 else (*bounds, 1)
        ends = ends if len(ends) == 2 else [0, *ends]
        actual = tf.function(lambda a, b: total(a, b, step))(*(tf.constant(e, dtype) for e in ends))
    assert [int(v) for v in actual] == [expected, last]
    assert actual[1].dtype == getattr(tf, dtype)


def test_floats(tf):
    @tf.function
    def total(limit):
        s = tf.constant(0.0)
        for x in tf.range(0.0, limit, 0.5):
            s += x
        return s

    assert float(total(tf.constant(2.0))) == 3.0


@pytest.mark.parametrize("n", [2_000_000_000])
def test_a_long_range_left_early_takes_no_memory(tf, n):
    @tf.function
    def first_over(limit, n):
        result = tf.constant(-1)
        for i in tf.range(n):
            if i * i > limit:
                result = i
                break
        return result

    assert int(first_over(tf.constant(50), tf.constant(n))) == 8


def test_a_range_of_the_function_around(tf):
    @tf.function
    def f(n):
        numbers = tf.range(n)
        total = tf.constant(0)
        for _ in tf.range(2):
            for j in numbers:
                total += j
        return total, numbers

    total, numbers = f(tf.constant(4))
    assert int(total) == 12
    assert np.asarray(numbers).tolist() == [0, 1, 2, 3]
