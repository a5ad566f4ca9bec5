"""Elements that are several datasets or batchable extension types, and iterators after an element that failed.

Lives here: slices, batches and rows of such elements; errors whose frames are cleared, as unittest's assertRaises does.
Not here: elements of tensors (test_data_pipelines.py).
"""

import traceback

import numpy as np
import pytest


def numbers(datasets):
    return [[int(x) for x in dataset] for dataset in datasets]


def test_slices_of_datasets(tf):
    data = tf.data.Dataset
    pair = [data.range(2), data.range(3)]
    assert numbers(data.from_tensor_slices(pair)) == [[0, 1], [0, 1, 2]]
    assert [(numbers([d]), int(n)) for d, n in data.from_tensor_slices((pair, [5, 6]))] == [
        ([[0, 1]], 5),
        ([[0, 1, 2]], 6),
    ]
    assert numbers(e["a"] for e in data.from_tensor_slices({"a": pair})) == [[0, 1], [0, 1, 2]]
    assert [int(x) for x in data.from_tensor_slices(pair).flat_map(lambda d: d)] == [0, 1, 0, 1, 2]
    assert sorted(map(len, numbers(data.from_tensor_slices(pair).shuffle(2).repeat(2)))) == [2, 2, 3, 3]


def test_slices_of_datasets_of_different_elements_are_refused(tf):
    with pytest.raises((TypeError, ValueError)):
        tf.data.Dataset.from_tensor_slices([tf.data.Dataset.range(2), tf.data.Dataset.from_tensors("a")])


def test_slices_of_datasets_as_an_argument_of_a_function(tf):
    @tf.function
    def total(datasets):
        return datasets.reduce(0, lambda s, d: s + d.reduce(0, lambda t, x: t + tf.cast(x, tf.int32)))

    assert int(total(tf.data.Dataset.from_tensor_slices([tf.data.Dataset.range(2), tf.data.Dataset.range(3)]))) == 4


def test_batches_of_windows(tf):
    windows = tf.data.Dataset.range(8).window(2)
    assert windows.batch(2).element_spec == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64), [None])
    assert windows.batch(2, drop_remainder=True).element_spec == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64), [2])
    assert numbers(windows.batch(2).unbatch()) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert numbers(windows.batch(2).batch(2).unbatch().unbatch()) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert len(list(windows.batch(3))) == 2
    repeated = tf.data.Dataset.from_tensors(tf.data.Dataset.range(2)).repeat(3).batch(3)
    assert numbers(repeated.unbatch()) == [[0, 1]] * 3


@pytest.fixture
def masked(tf):
    class Masked(tf.experimental.BatchableExtensionType):
        values: tf.Tensor
        weight: tf.Tensor
        scale: int = 3

    return Masked


def parts(values):
    return [(v.values.numpy().tolist(), v.weight.numpy().tolist(), v.scale) for v in values]


def test_batchable_types_are_sliced_and_batched(tf, masked):
    whole = masked(tf.constant([[1, 2], [3, 4]]), tf.constant([5.0, 6.0]), 4)
    rows = [([1, 2], 5.0, 4), ([3, 4], 6.0, 4)]
    dataset = tf.data.Dataset.from_tensor_slices(whole)
    assert parts(dataset) == rows
    assert dataset.element_spec == masked.Spec(tf.TensorSpec([2], tf.int32), tf.TensorSpec([], tf.float32), 4)
    assert parts(dataset.batch(2)) == [([[1, 2], [3, 4]], [5.0, 6.0], 4)]
    assert parts(tf.data.Dataset.from_tensors(whole).unbatch()) == rows
    assert sorted(parts(dataset.shuffle(2).repeat(2))) == sorted(rows * 2)
    doubled = dataset.map(lambda m: masked(m.values * 2, m.weight, m.scale)).batch(1)
    assert parts(doubled) == [([[2, 4]], [5.0], 4), ([[6, 8]], [6.0], 4)]
    assert float(tf.function(lambda: dataset.reduce(0.0, lambda s, m: s + m.weight))()) == 11.0


def test_batchable_types_inside_others(tf, masked):
    class Outer(tf.experimental.BatchableExtensionType):
        inner: masked
        rest: tuple[tf.Tensor, ...]

    whole = Outer(masked(tf.constant([1, 2]), tf.constant([3.0, 4.0])), (tf.constant([5, 6]),))
    result = [
        (int(o.inner.values), float(o.inner.weight), int(o.rest[0])) for o in tf.data.Dataset.from_tensor_slices(whole)
    ]
    assert result == [(1, 3.0, 5), (2, 4.0, 6)]


def test_types_that_are_not_batchable_are_refused(tf):
    class Plain(tf.experimental.ExtensionType):
        x: tf.Tensor

    with pytest.raises((TypeError, ValueError, AttributeError)):
        list(tf.data.Dataset.from_tensor_slices(Plain(tf.constant([1, 2]))))


# ---- after an element that failed ---------------------------------------------------------------------------------


def checked(tf):
    return lambda x: tf.debugging.check_numerics(x, "not finite")


FAILING = {
    "map": lambda tf, d: d.map(checked(tf)),
    "map in parallel": lambda tf, d: d.map(checked(tf), num_parallel_calls=2),
    "filter": lambda tf, d: d.filter(lambda x: checked(tf)(x) > 0),
    "scan": lambda tf, d: d.scan(0.0, lambda s, x: (s, checked(tf)(x))),
    "flat_map": lambda tf, d: d.flat_map(lambda x: tf.data.Dataset.from_tensors(checked(tf)(x))),
    "map below flat_map": lambda tf, d: tf.data.Dataset.range(1).flat_map(lambda _: d.map(checked(tf))),
    "interleave": lambda tf, d: d.interleave(lambda x: tf.data.Dataset.from_tensors(checked(tf)(x)), 1),
    "map of a map": lambda tf, d: d.map(checked(tf)).map(lambda x: x + 0),
    "prefetch": lambda tf, d: d.map(checked(tf)).prefetch(1),
    "zip": lambda tf, d: tf.data.Dataset.zip((d.map(checked(tf)), d)).map(lambda a, b: a),
}


@pytest.mark.parametrize("name", FAILING)
def test_an_iterator_outlives_an_error_whose_frames_are_cleared(tf, name):
    iterator = iter(FAILING[name](tf, tf.data.Dataset.from_tensor_slices(np.float32([1, np.nan, 3]))))
    result = []
    for _ in range(4):
        try:
            result.append(float(next(iterator)))
        except tf.errors.InvalidArgumentError as error:
            traceback.clear_frames(error.__traceback__)
            result.append("error")
        except StopIteration:
            result.append("end")
    assert result == [1.0, "error", 3.0, "end"]
