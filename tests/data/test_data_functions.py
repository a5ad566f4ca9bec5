"""Datasets and iterators in functions: made there, passed in, captured, returned; loops that stay loops."""

import numpy as np
import pytest


def vals(dataset):
    return [np.asarray(x).tolist() for x in dataset]


@pytest.fixture
def total(tf):
    @tf.function
    def total(d):
        s = tf.constant(0, tf.int64)
        for x in d:
            s += x
        return s

    return total


def test_one_trace_for_all_datasets_of_a_type(tf, total):
    dataset = tf.data.Dataset
    assert [int(total(dataset.range(n))) for n in (0, 5, 10)] == [0, 10, 45]
    assert int(total(dataset.range(5).map(lambda x: x * 2))) == 20
    assert total.experimental_get_tracing_count() == 1
    assert int(total(dataset.range(5).batch(5).map(tf.reduce_sum))) == 10


def test_the_graph_of_a_loop_does_not_grow(tf, total):
    sizes = {len(total.get_concrete_function(tf.data.Dataset.range(n)).graph.as_graph_def().node) for n in (3, 1000)}
    assert len(sizes) == 1
    assert sizes.pop() < 12

    @tf.function
    def train(dataset):
        loss = tf.constant(0)
        for x, y in dataset:
            loss += tf.abs(y - x)
        return loss

    def size(f, *args):
        return len(f.get_concrete_function(*args).graph.as_graph_def().node)

    small, big = [(1, 1)] * 3, [(1, 1)] * 10
    assert size(train, small) < size(train, big)
    sets = [tf.data.Dataset.from_generator(lambda d=d: d, (tf.int32, tf.int32)) for d in (small, big)]
    assert size(train, sets[0]) == size(train, sets[1])
    assert int(train(tf.data.Dataset.from_generator(lambda: [(1, 3), (2, 7)], (tf.int32, tf.int32)))) == 7


def test_next_consumes_when_it_runs(tf):
    @tf.function
    def consume_next(iterator):
        return next(iterator)

    iterator = iter(tf.data.Dataset.from_tensor_slices([1, 2, 3]))
    assert [int(consume_next(iterator)) for _ in range(3)] == [1, 2, 3]
    assert consume_next.experimental_get_tracing_count() == 1
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        consume_next(iterator)
    assert int(consume_next(iter(tf.data.Dataset.from_tensor_slices([7])))) == 7
    assert consume_next.experimental_get_tracing_count() == 1


def test_made_in_a_function(tf):
    dataset = tf.data.Dataset

    @tf.function
    def rows(x):
        out = tf.constant(0.0)
        for row in dataset.from_tensor_slices(x).map(lambda r: r * 2.0):
            out += tf.reduce_sum(row)
        return out

    assert float(rows(tf.constant([[1.0, 2.0], [3.0, 4.0]]))) == 20.0

    @tf.function
    def some(d, n):
        s = tf.constant(0, tf.int64)
        for x in d.take(n).shuffle(3).repeat(2):
            s += x
        return s

    assert [int(some(dataset.range(5), tf.constant(n, tf.int64))) for n in (3, 0, 5)] == [6, 0, 20]

    @tf.function
    def order():
        t = tf.TensorArray(tf.int64, 8)
        for i, x in dataset.range(8).shuffle(8, seed=3).enumerate():
            t = t.write(tf.cast(i, tf.int32), x)
        return t.stack()

    first = order().numpy().tolist()
    assert sorted(first) == list(range(8))
    assert order().numpy().tolist() == first  # each run makes its own dataset


def test_captured_and_returned(tf):
    ds = tf.data.Dataset.range(5)

    @tf.function
    def captured():
        s = tf.constant(0, tf.int64)
        for x in ds:
            s += x
        return s

    assert int(captured()) == int(captured()) == 10
    iterator = iter(ds)

    @tf.function
    def captured_iterator():
        return next(iterator)

    assert [int(captured_iterator()) for _ in range(3)] == [0, 1, 2]
    assert int(next(iterator)) == 3

    @tf.function
    def returned(n):
        return tf.data.Dataset.range(n).map(lambda x: x * n)

    assert vals(returned(tf.constant(3, tf.int64))) == [0, 3, 6]
    assert vals(returned(tf.constant(2, tf.int64))) == [0, 2]

    @tf.function
    def returned_iterator(n):
        return iter(tf.data.Dataset.range(n))

    assert vals(returned_iterator(tf.constant(3, tf.int64))) == [0, 1, 2]


def test_break_continue_and_what_comes_after(tf):
    @tf.function
    def until(iterator, limit):
        s = tf.constant(0, tf.int64)
        for x in iterator:
            if x == limit:
                break
            if x % 2 == 0:
                continue
            s += x
        return s

    iterator = iter(tf.data.Dataset.range(10))
    assert int(until(iterator, tf.constant(4, tf.int64))) == 1 + 3
    assert int(next(iterator)) == 5  # nothing was lost
    assert int(until(iterator, tf.constant(99, tf.int64))) == 7 + 9


@pytest.mark.ours  # TensorFlow cannot return from a loop
def test_return_in_a_loop(tf):
    @tf.function
    def first_above(d, k):
        for x in d:
            if x > k:
                return x * 100
        return tf.constant(-1, tf.int64)

    ds = tf.data.Dataset.range(5)
    assert [int(first_above(ds, tf.constant(k, tf.int64))) for k in (2, 20)] == [300, -1]


def test_builtins_over_datasets(tf):
    @tf.function
    def f(d):
        s = tf.constant(0, tf.int64)
        for i, x in enumerate(d):
            s += i * x
        for a, b in zip(d, d.skip(1)):
            s += a * b
        for batch in d.batch(2).take(2):
            s += tf.reduce_sum(batch)
        for x in map(lambda x: x * 100, d.take(2)):  # noqa: C417
            s += x
        return s, len(d)

    result, n = f(tf.data.Dataset.range(5))
    assert (int(result), int(n)) == (30 + 20 + 6 + 100, 5)


def test_nested_loops(tf):
    @tf.function
    def f(d):
        s = tf.constant(0, tf.int64)
        for w in d.window(2):
            for x in w:
                s = s * 2 + x
        return s

    assert int(f(tf.data.Dataset.range(5))) == 26

    @tf.function
    def g(iterator, n):
        s = tf.constant(0, tf.int64)
        for _ in tf.range(n):
            s += next(iterator)
        return s

    iterator = iter(tf.data.Dataset.range(10))
    assert [int(g(iterator, tf.constant(n))) for n in (3, 0, 2)] == [3, 0, 7]
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        g(iterator, tf.constant(9))


def test_variables_and_captures_of_functions(tf):
    v = tf.Variable(2.0)
    ds = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x * v)
    assert vals(ds) == [2.0, 4.0]
    v.assign(3.0)
    assert vals(ds) == [3.0, 6.0]  # read when it runs

    @tf.function
    def train(d):
        for x in d:
            v.assign_add(x)
        return v.read_value()

    assert float(train(tf.data.Dataset.from_tensor_slices([1.0, 2.0]))) == 6.0
    assert float(train(tf.data.Dataset.from_tensor_slices([1.0]))) == 7.0


def test_python_runs_once_for_a_dataset(tf):
    calls = []

    def f(x):
        calls.append(x)
        if x > 2:
            return x
        return -x

    ds = tf.data.Dataset.range(5).map(f)
    assert vals(ds) == vals(ds) == [0, -1, -2, 3, 4]
    assert len(calls) == 1


def test_reduce_cardinality_and_single_elements_in_functions(tf):
    @tf.function
    def f(d, k):
        return (
            d.reduce(tf.constant(0, tf.int64), lambda s, x: s + x * k),
            d.cardinality(),
            d.batch(100).get_single_element(),
        )

    for n in (5, 3):
        total, count, all_ = f(tf.data.Dataset.range(n), tf.constant(2, tf.int64))
        assert (int(total), int(count), all_.numpy().tolist()) == (n * (n - 1), n, list(range(n)))

    @tf.function
    def single(d):
        return d.get_single_element()

    with pytest.raises(tf.errors.InvalidArgumentError, match="more than one"):
        single(tf.data.Dataset.range(2))


def test_optionals_in_functions(tf):
    @tf.function
    def next_or(iterator, default):
        result = iterator.get_next_as_optional()
        if result.has_value():
            return result.get_value()
        return default

    iterator = iter(tf.data.Dataset.range(2))
    assert [int(next_or(iterator, tf.constant(-1, tf.int64))) for _ in range(4)] == [0, 1, -1, -1]


def test_structures_in_loops(tf):
    @tf.function
    def f(d):
        s = tf.constant(0.0)
        for e in d:
            s += e["a"] * e["b"][0]
        return s

    assert float(f(tf.data.Dataset.from_tensor_slices({"a": [1.0, 2.0], "b": [[3.0], [4.0]]}))) == 11.0


def test_without_autograph_a_loop_is_refused(tf):
    @tf.function(autograph=False)
    def f(n):
        s = 0
        for x in tf.data.Dataset.range(n):
            s += x
        return s

    with pytest.raises(ValueError, match="AutoGraph"):
        f(tf.constant(3, tf.int64))
