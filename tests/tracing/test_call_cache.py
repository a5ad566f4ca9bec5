"""Calls with a cached key run their plan directly, with the same results as uncached calls."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest


def test_the_same_tensor_twice_then_two(tf):
    @tf.function
    def f(x, y, *, scale):
        return x - y * scale

    a, b = tf.constant(5.0), tf.constant(2.0)
    for _ in range(3):
        assert float(f(y=a, x=a, scale=a)) == 5.0 - 25.0
        assert float(f(y=b, x=a, scale=b)) == 1.0
        assert float(f(scale=a, y=b, x=a)) == -5.0
        assert float(f(a, scale=b, y=a)) == -5.0
    assert f.experimental_get_tracing_count() == 1


def test_dictionaries_in_any_order(tf):
    @tf.function
    def f(d):
        return {"difference": d["a"] - d["b"], "all": [d["a"], (d["b"], None)]}

    a, b = tf.constant(5.0), tf.constant(2.0)
    for _ in range(3):
        for inputs in ({"a": a, "b": b}, {"b": b, "a": a}):
            result = f(inputs)
            assert list(result) == ["difference", "all"]
            assert float(result["difference"]) == 3.0
            assert float(result["all"][0]) == 5.0
            assert float(result["all"][1][0]) == 2.0
            assert result["all"][1][1] is None
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.ours  # to TensorFlow 1 and True are one literal
def test_python_values_are_distinguished_by_type_and_value(tf):
    @tf.function
    def f(x, n):
        return tf.strings.join([tf.strings.as_string(x), str(n)])

    x = tf.constant(1)
    values = [1, True, 1.0, 2, "1", None, (1,), [1], {"a": 1}, {"a": 2}, 0.0, 0.5]
    for _ in range(3):
        for value in values:
            assert f(x, value).numpy() == f"1{value}".encode()


def test_numpy_and_tensors_between_each_other(tf):
    @tf.function
    def f(x, y):
        return x + y

    a, b = np.array([1.0, 2.0], np.float32), tf.constant([3.0, 4.0])
    for _ in range(3):
        for x, y in ((a, b), (b, a), (a, a), (b, b)):
            assert f(x, y).numpy().tolist() == (np.asarray(x) + np.asarray(y)).tolist()
    result = f(a, a)
    a[0] = 7.0
    assert result.numpy().tolist() == [2.0, 4.0]


def test_an_array_given_back_is_not_the_callers(tf):
    @tf.function
    def same(x):
        return tf.identity(x)

    a = np.array([1.0, 2.0], np.float32)
    for _ in range(3):
        result = same(a)
        a[0] += 1.0
        assert result.numpy()[0] == a[0] - 1.0


def test_under_tapes_and_in_other_functions(tf):
    @tf.function
    def f(d, n):
        return d["x"] * n

    @tf.function
    def outer(x):
        return f({"x": x}, 2.0) + f({"x": x}, 3.0)

    x = tf.constant(3.0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f({"x": x}, 2.0)
        assert float(tape.gradient(y, x)) == 2.0
        assert float(outer(x)) == 15.0
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = outer(x)
        assert float(tape.gradient(y, x)) == 5.0
    assert f.experimental_get_tracing_count() == 2


def test_variables_by_identity_and_after_death(tf):
    @tf.function
    def f(v, x):
        return v * x

    x = tf.constant(2.0)
    for value in (1.0, 3.0, 5.0):
        v = tf.Variable(value)
        for _ in range(3):
            assert float(f(v, x)) == 2.0 * value
            assert float(f(x=x, v=v)) == 2.0 * value
        v.assign(value + 1.0)
        assert float(f(v, x)) == 2.0 * value + 2.0
        del v
        gc.collect()


@pytest.mark.ours
def test_zeros_of_two_signs():
    import opwright as ow

    @ow.function
    def f(x, n):
        return x / ow.constant(n)

    for _ in range(3):
        assert [float(f(ow.constant(1.0), n)) for n in (0.0, -0.0)] == [float("inf"), -float("inf")]


@pytest.mark.ours
def test_ways_keep_nothing_alive():
    import opwright as ow

    class Thing:
        pass

    @ow.function
    def f(x, thing):
        return x + 1.0

    thing, x = Thing(), ow.constant(np.ones(3, np.float32))
    for _ in range(3):
        f(x, thing)
    gone = weakref.ref(thing), weakref.ref(x)
    del thing, x
    gc.collect()
    assert [g() for g in gone] == [None, None]


def test_input_signature_with_tensors_and_numbers(tf):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.float32)])
    def f(x, y):
        return x * y

    x = tf.constant([1.0, 2.0])
    for _ in range(3):
        for y in (2.0, tf.constant(3.0), np.float32(4.0)):
            assert f(x, y).numpy().tolist() == [1.0 * float(y), 2.0 * float(y)]
            assert f(y=y, x=x).numpy().tolist() == [1.0 * float(y), 2.0 * float(y)]
    with pytest.raises((TypeError, ValueError)):
        f(tf.constant([1, 2]), 2.0)


def test_concrete_calls(tf):
    @tf.function
    def f(x, d):
        return x * d["k"] * 2.0

    x, k = tf.constant(3.0), tf.constant(4.0)
    concrete = f.get_concrete_function(x, {"k": k})
    for _ in range(3):
        assert float(concrete(x, {"k": k})) == 24.0
        assert float(concrete(k, {"k": k})) == 32.0
        assert float(concrete(d={"k": x}, x=k)) == 24.0
        with pytest.raises((TypeError, ValueError)):
            concrete(tf.constant([1, 2]), {"k": k})


@pytest.mark.ours
def test_errors_on_the_short_way_name_the_line():
    import opwright as ow

    @ow.function
    def f(x, i):
        return ow.gather(x, i)

    x = ow.constant([1.0, 2.0])
    for _ in range(2):
        assert float(f(x, i=ow.constant(1))) == 2.0
        with pytest.raises(ow.errors.InvalidArgumentError, match="test_call_cache"):
            f(x, i=ow.constant(5))
