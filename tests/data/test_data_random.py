"""Seeded random operators in datasets: sequences go on within an iterator and begin again in a new one.

Lives here: the position of each random sequence, random access.  Not here: distributions (tests/ops/test_random.py).
Expected values are counts of distinct numbers: the streams themselves are each library's own.
"""

import numpy as np
import pytest


@pytest.fixture(params=["global seed", "operator's seed"])
def draw(tf, request):
    """A function of anything that draws one number, seeded in one of the two ways."""
    seed = 11 if request.param == "operator's seed" else None
    tf.random.set_seed(5)
    return lambda *_: tf.random.uniform([], seed=seed)


def in_branch(tf, draw):
    return lambda x: tf.cond(x >= 0, draw, lambda: 0.0)


def in_loop(tf, draw):
    return lambda x: tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s + draw()), [0, 0.0])[1]


def in_function(tf, draw):
    return tf.function(lambda x: draw())


# name: (the dataset of numbers drawn, how many different ones a single iterator gives)
PIPELINES = {
    "map": (lambda tf, d, r: d.map(r).repeat(3), 6),
    "map in a branch": (lambda tf, d, r: d.map(in_branch(tf, r)).repeat(3), 6),
    "map in a loop": (lambda tf, d, r: d.map(in_loop(tf, r)).repeat(3), 6),
    "map of a function": (lambda tf, d, r: d.map(in_function(tf, r)).repeat(3), 6),
    "map, then prefetch": (lambda tf, d, r: d.map(r).prefetch(1).repeat(3), 6),
    "map, then batch": (lambda tf, d, r: d.map(r).batch(2).repeat(3).unbatch(), 6),
    "map, then padded_batch": (lambda tf, d, r: d.map(r).padded_batch(2).repeat(3).unbatch(), 6),
    "map, then take": (lambda tf, d, r: d.map(r).take(1).repeat(3), 3),
    "map, then shuffle": (lambda tf, d, r: d.map(r).shuffle(2).repeat(3), 6),
    "map, then enumerate": (lambda tf, d, r: d.map(r).enumerate().map(lambda i, x: x).repeat(3), 6),
    "map, kept": (lambda tf, d, r: d.map(r).cache().repeat(3), 2),
    "map in parallel": (lambda tf, d, r: d.map(r, num_parallel_calls=2).repeat(3), 6),
    "flat_map": (lambda tf, d, r: d.flat_map(lambda x: tf.data.Dataset.from_tensors(r())).repeat(3), 6),
    "map below flat_map": (lambda tf, d, r: d.flat_map(lambda x: tf.data.Dataset.range(3).map(r)).repeat(2), 12),
    "interleave": (lambda tf, d, r: d.interleave(lambda x: tf.data.Dataset.from_tensors(r()), 2).repeat(3), 6),
    "map below interleave": (lambda tf, d, r: d.interleave(lambda x: tf.data.Dataset.range(3).map(r), 2).repeat(2), 12),
    "scan": (lambda tf, d, r: d.scan(0, lambda s, x: (s, r())).repeat(3), 6),
    "window": (lambda tf, d, r: d.map(r).repeat(3).window(2).flat_map(lambda w: w), 6),
    "group_by_window": (
        lambda tf, d, r: tf.data.Dataset.range(8).group_by_window(lambda x: x % 2, lambda key, w: w.map(r), 2),
        8,
    ),
    "zip with itself": (lambda tf, d, r: tf.data.Dataset.zip((d.map(r),) * 2).map(lambda a, b: a - b), 2),
    "concatenate": (lambda tf, d, r: d.map(r).concatenate(d.map(lambda x: 2.0 + r())), 4),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_numbers_differ_within_an_iterator_and_come_back_in_the_next(tf, draw, name):
    make, count = PIPELINES[name]
    dataset = make(tf, tf.data.Dataset.range(2), draw)
    first, second = ([float(x) for x in dataset] for _ in range(2))
    if name == "zip with itself":  # each occurrence has a sequence of its own
        assert first == second == [0.0, 0.0]
        return
    assert len(set(first)) == count
    if "parallel" not in name and "kept" not in name:
        assert sorted(first) == sorted(second)


@pytest.mark.parametrize("name", ["filter", "take_while"])
def test_what_a_predicate_draws_goes_on(tf, draw, name):
    dataset = getattr(tf.data.Dataset.range(1000), name)(lambda x: draw() < 0.99).repeat(3)
    result = [int(x) for x in dataset]
    starts = [i for i, x in enumerate(result) if x == min(result)][1:]
    passes = [result[a:b] for a, b in zip([0, *starts], [*starts, None])]
    assert passes[0] != passes[1]
    assert result == [int(x) for x in dataset]


def test_a_loop_in_a_function_goes_on_too(tf, draw):
    dataset = tf.data.Dataset.range(2).map(draw).repeat(3)

    @tf.function
    def total():
        numbers = tf.TensorArray(tf.float32, 6, element_shape=[])
        for i, x in dataset.enumerate():
            numbers = numbers.write(tf.cast(i, tf.int32), x)
        return numbers.stack()

    first = total().numpy()
    assert len(set(first.tolist())) == 6
    np.testing.assert_array_equal(first, total().numpy())


@pytest.mark.ours  # TensorFlow does not keep how far random numbers were drawn
def test_an_iterator_that_is_moved_draws_as_it_did(tf, draw, tmp_path):
    iterator = iter(tf.data.Dataset.range(2).map(draw).repeat(3))
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    first = [float(next(iterator)) for _ in range(3)]
    path = checkpoint.save(str(tmp_path / "position"))
    rest = [float(next(iterator)) for _ in range(3)]
    assert len({*first, *rest}) == 6
    checkpoint.restore(path)
    assert [float(next(iterator)) for _ in range(3)] == rest


# ---- random access ------------------------------------------------------------------------------------------------


SHUFFLED = {
    "a seed": lambda tf: tf.data.Dataset.range(10).shuffle(10, seed=1),
    "no seed": lambda tf: tf.data.Dataset.range(10).shuffle(10),
    "a small buffer": lambda tf: tf.data.Dataset.range(10).shuffle(3),
    "one order": lambda tf: tf.data.Dataset.range(10).shuffle(10, seed=1, reshuffle_each_iteration=False),
    "mapped": lambda tf: tf.data.Dataset.range(10).shuffle(10, seed=1).map(lambda x: x + 0),
    "mapped before": lambda tf: tf.data.Dataset.range(10).map(lambda x: x + 0).shuffle(10),
    "of tensors": lambda tf: tf.data.Dataset.from_tensor_slices(np.arange(10)).shuffle(10),
    "zipped": lambda tf: tf.data.Dataset.zip((tf.data.Dataset.range(10).shuffle(10), tf.data.Dataset.range(10))).map(
        lambda a, b: a
    ),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_random_access_sees_one_order(tf, name):
    dataset = SHUFFLED[name](tf)
    result = [int(tf.data.experimental.at(dataset, i)) for i in range(10)]
    assert sorted(result) == list(range(10))
    sorted(int(x) for x in dataset)  # an iteration in between shuffles again, and changes nothing here
    assert [int(tf.data.experimental.at(dataset, i)) for i in reversed(range(10))] == result[::-1]


def test_random_access_of_batches_of_a_shuffled_dataset(tf):
    dataset = tf.data.Dataset.range(6).shuffle(6).batch(2)
    rows = [tf.data.experimental.at(dataset, i).numpy().tolist() for i in range(3)]
    assert sorted(x for row in rows for x in row) == list(range(6))


@pytest.mark.ours  # TensorFlow has no random access of these
@pytest.mark.parametrize("seed", [None, 1])
def test_random_access_of_what_has_no_length(tf, seed):
    numbers = [tf.data.Dataset.from_tensors(i).repeat() for i in range(50)]
    for dataset in (
        tf.data.Dataset.random(seed, rerandomize_each_iteration=True),
        tf.data.Dataset.sample_from_datasets(numbers, seed=seed),
        tf.data.Dataset.range(50).shuffle(50, seed=seed).repeat(),
    ):
        result = [int(tf.data.experimental.at(dataset, i)) for i in range(8)]
        assert len(set(result)) > 4
        assert [int(tf.data.experimental.at(dataset, i)) for i in range(8)] == result


@pytest.mark.parametrize("index", [-1, 3])
def test_random_access_outside(tf, index):
    with pytest.raises(tf.errors.OutOfRangeError):
        tf.data.experimental.at(tf.data.Dataset.range(3), index)


def test_random_access_raises_what_the_element_raises(tf):
    dataset = tf.data.Dataset.from_tensor_slices([1.0, np.nan]).map(lambda x: tf.debugging.check_numerics(x, "not"))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.data.experimental.at(dataset, 1)
