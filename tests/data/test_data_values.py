"""Test datasets: values, edge cases, errors at construction and errors of elements."""

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore:AutoGraph could not transform")


def vals(dataset):
    return [plain(x) for x in dataset]


def plain(x):
    if isinstance(x, tuple):
        return tuple(map(plain, x))
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return vals(x) if hasattr(x, "as_numpy_iterator") else x.numpy().tolist() if x.shape != () else x.numpy()


VALUES = {
    "ds": [0, 1, 2, 3, 4],
    "D.range(5, 1, -2)": [5, 3],
    "D.range(9000).skip(8998)": [8998, 8999],
    "D.from_tensors((1, 'a'))": [(1, b"a")],
    "D.from_tensor_slices({'a': [1, 2], 'b': [[3.0], [4.0]]})": [{"a": 1, "b": [3.0]}, {"a": 2, "b": [4.0]}],
    "D.from_tensor_slices(['x', 'yz'])": [b"x", b"yz"],
    "D.from_tensor_slices([])": [],
    "ds.map(lambda x: x * x)": [0, 1, 4, 9, 16],
    "ds.map(lambda x: x * x, num_parallel_calls=2)": [0, 1, 4, 9, 16],
    "ds.map(lambda x: (x, x + 1)).map(lambda a, b: a * b)": [0, 2, 6, 12, 20],
    "ds.map(lambda x: {'a': x}).map(lambda d: d['a'])": [0, 1, 2, 3, 4],
    "ds.filter(lambda x: x % 2 == 0)": [0, 2, 4],
    "ds.batch(2)": [[0, 1], [2, 3], [4]],
    "ds.batch(2, drop_remainder=True)": [[0, 1], [2, 3]],
    "ds.batch(9)": [[0, 1, 2, 3, 4]],
    "ds.map(lambda x: x).batch(2)": [[0, 1], [2, 3], [4]],
    "D.from_tensor_slices(['a', 'b', 'c']).map(lambda x: x + x).batch(2)": [[b"aa", b"bb"], [b"cc"]],
    "ds.take(0).batch(2)": [],
    "ds.batch(2).unbatch()": [0, 1, 2, 3, 4],
    "D.range(10).batch(4).rebatch(3)": [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]],
    "D.range(10).batch(4).rebatch([3, 2])": [[0, 1, 2], [3, 4], [5, 6, 7], [8, 9]],
    "D.range(10).batch(4).rebatch(3, drop_remainder=True)": [[0, 1, 2], [3, 4, 5], [6, 7, 8]],
    "ds.map(lambda x: tf.fill([x], x)).padded_batch(2)": [[[0], [1]], [[2, 2, 0], [3, 3, 3]], [[4, 4, 4, 4]]],
    "D.range(3).map(lambda x: tf.fill([x], x)).padded_batch(3, [4], tf.constant(-1, tf.int64))": [
        [[-1, -1, -1, -1], [1, -1, -1, -1], [2, 2, -1, -1]]
    ],
    "D.from_tensor_slices(['a', 'b']).map(lambda x: tf.stack([x])).padded_batch(2, [2])": [[[b"a", b""], [b"b", b""]]],
    "ds.take(2)": [0, 1],
    "ds.take(0)": [],
    "ds.take(-1)": [0, 1, 2, 3, 4],
    "ds.skip(3)": [3, 4],
    "ds.skip(-1)": [],
    "ds.skip(0)": [0, 1, 2, 3, 4],
    "ds.take(2).repeat(2)": [0, 1, 0, 1],
    "ds.repeat(0)": [],
    "D.range(0).repeat()": [],
    "ds.repeat().skip(4).take(3)": [4, 0, 1],
    "ds.shard(2, 1)": [1, 3],
    "ds.concatenate(ds.take(1))": [0, 1, 2, 3, 4, 0],
    "ds.enumerate(10).take(2)": [(10, 0), (11, 1)],
    "D.zip((ds, ds.skip(3)))": [(0, 3), (1, 4)],
    "D.zip(ds.take(1), {'a': ds})": [(0, {"a": 0})],
    "D.from_tensor_slices([3, 1, 3, 2, 1]).unique()": [3, 1, 2],
    "ds.scan(np.int64(0), lambda s, x: (s + x, s * 10))": [0, 0, 10, 30, 60],
    "ds.take_while(lambda x: x < 2)": [0, 1],
    "ds.flat_map(lambda x: D.range(x))": [0, 0, 1, 0, 1, 2, 0, 1, 2, 3],
    "ds.flat_map(lambda x: D.from_tensors(x).repeat(2)).take(3)": [0, 0, 1],
    "D.range(7).window(3, 2, 2)": [[0, 2, 4], [2, 4, 6], [4, 6], [6]],
    "D.range(7).window(3, 2, 2, drop_remainder=True)": [[0, 2, 4], [2, 4, 6]],
    "D.range(7).window(2, 3)": [[0, 1], [3, 4], [6]],
    "D.zip((ds, ds)).window(3)": [([0, 1, 2], [0, 1, 2]), ([3, 4], [3, 4])],
    "D.range(7).window(3).flat_map(lambda w: w.batch(3))": [[0, 1, 2], [3, 4, 5], [6]],
    "D.range(7).group_by_window(lambda x: x % 2, lambda k, d: d.batch(2), window_size=2)": [
        [0, 2],
        [1, 3],
        [4, 6],
        [5],
    ],
    "D.range(6).group_by_window(lambda x: x % 2, lambda k, d: d.batch(3), window_size_func=lambda k: k + 1)": [
        [0],
        [2],
        [1, 3],
        [4],
        [5],
    ],
    "D.choose_from_datasets([ds, ds.map(lambda x: x + 10)], D.from_tensor_slices(np.array([0, 1, 1, 0], np.int64)))": [
        0,
        10,
        11,
        1,
    ],
    "D.choose_from_datasets([ds.take(1), ds], D.from_tensor_slices(np.array([0, 0, 1], np.int64)))": [0],
    "D.choose_from_datasets([ds.take(1), ds], D.from_tensor_slices(np.array([0, 0, 1], np.int64)), False)": [0, 0],
    "ds.prefetch(0)": [0, 1, 2, 3, 4],
    "ds.prefetch(2)": [0, 1, 2, 3, 4],
    "ds.prefetch(-1)": [0, 1, 2, 3, 4],
    "D.counter(3, 2).take(3)": [3, 5, 7],
    "ds.apply(lambda d: d.skip(4))": [4],
    "ds.apply(tf.data.experimental.assert_cardinality(5))": [0, 1, 2, 3, 4],
}


def made(tf, text):
    return eval(text, {"tf": tf, "np": np, "D": tf.data.Dataset, "ds": tf.data.Dataset.range(5)})


@pytest.mark.parametrize("text", VALUES)
def test_values(tf, text):
    dataset = made(tf, text)
    assert vals(dataset) == VALUES[text]
    assert vals(dataset) == VALUES[text]  # each iteration starts from the beginning


@pytest.mark.parametrize(
    ("cycle", "block", "wanted"),
    [
        (1, 1, [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]),
        (2, 1, [1, 2, 2, 3, 3, 4, 3, 4, 4, 4]),
        (2, 2, [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]),
        (3, 1, [1, 2, 3, 2, 3, 4, 3, 4, 4, 4]),
        (3, 2, [1, 2, 2, 3, 3, 4, 4, 3, 4, 4]),
    ],
)
@pytest.mark.parametrize("threads", [False, True])
def test_interleave(tf, cycle, block, wanted, threads):
    ds = tf.data.Dataset.range(1, 5)
    actual = ds.interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(x), cycle, block, cycle if threads else None
    )
    assert vals(actual) == wanted


def test_bucket_by_sequence_length(tf):
    lengths = tf.data.Dataset.from_tensor_slices([1, 5, 2, 9, 3, 1, 7])
    ds = lengths.map(lambda n: tf.fill([n], n)).bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], bucket_boundaries=[3, 6], bucket_batch_sizes=[2, 1, 2]
    )
    assert vals(ds) == [[[5] * 5], [[1, 0], [2, 2]], [[3, 3, 3]], [[9] * 9, [7] * 7 + [0, 0]], [[1]]] or sorted(
        vals(ds)
    ) == sorted([[[5] * 5], [[1, 0], [2, 2]], [[3, 3, 3]], [[1]], [[9] * 9, [7] * 7 + [0, 0]]])
    padded = (
        lengths.map(lambda n: tf.fill([n], n))
        .filter(lambda x: tf.shape(x)[0] < 6)
        .bucket_by_sequence_length(
            lambda x: tf.shape(x)[0],
            bucket_boundaries=[3, 6],
            bucket_batch_sizes=[2, 1, 2],
            pad_to_bucket_boundary=True,
        )
    )
    assert vals(padded)[0] == [[5] * 5]


def test_reduce(tf):
    ds = tf.data.Dataset.range(5)
    assert int(ds.reduce(np.int64(0), lambda s, x: s + x)) == 10
    assert int(ds.take(0).reduce(np.int64(7), lambda s, x: s + x)) == 7
    total, count = ds.reduce((np.int64(0), 0), lambda s, x: (s[0] + x, s[1] + 1))
    assert (int(total), int(count)) == (10, 5)
    result = ds.reduce(tf.zeros([0], tf.int64), lambda s, x: tf.concat([s, [x]], 0))  # shapes widen
    assert result.numpy().tolist() == [0, 1, 2, 3, 4]


def test_single_element(tf):
    ds = tf.data.Dataset.range(3)
    assert int(ds.batch(3).get_single_element()[2]) == 2
    for bad, text in ((ds, "more than one"), (ds.take(0), "empty")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            bad.get_single_element()


# ---- orders at random ------------------------------------------------------------------------------------------------


def test_shuffle_keeps_elements_and_seeds_repeat_orders(tf):
    def orders(**options):
        ds = tf.data.Dataset.range(40).shuffle(10, **options)
        return vals(ds), vals(ds)

    first, second = orders(seed=1)
    assert sorted(first) == sorted(second) == list(range(40))
    assert first != second != list(range(40))
    assert orders(seed=1) == (first, second)
    assert orders(seed=2)[0] != first
    same, again = orders(seed=1, reshuffle_each_iteration=False)
    assert same == again
    assert all(x <= i + 9 for i, x in enumerate(first))  # no element comes before it can be in the buffer
    repeated = vals(tf.data.Dataset.range(8).shuffle(8, seed=1).repeat(2))
    assert repeated[:8] != repeated[8:]
    assert sorted(repeated[:8]) == sorted(repeated[8:]) == list(range(8))


def test_global_seed(tf):
    def order():
        tf.random.set_seed(3)
        return vals(tf.data.Dataset.range(40).shuffle(40))

    assert order() == order()
    assert vals(tf.data.Dataset.random(seed=4).take(3)) == vals(tf.data.Dataset.random(seed=4).take(3))


def test_random_operators_begin_again_with_each_iterator(tf):
    ds = tf.data.Dataset.range(3).map(lambda x: tf.random.uniform([], seed=1))
    assert vals(ds) == vals(ds)
    assert len(set(vals(ds))) == 3


def test_sampling_follows_weights(tf):
    a, b = (tf.data.Dataset.from_tensors(i).repeat() for i in (0, 1))
    result = vals(tf.data.Dataset.sample_from_datasets([a, b], [0.8, 0.2], seed=1).take(1000))
    assert 120 < sum(result) < 280  # 200 +- 6 deviations
    assert sum(vals(tf.data.Dataset.sample_from_datasets([a, b], [1.0, 0.0]).take(20))) == 0


def test_rejection_resample(tf):
    ds = tf.data.Dataset.from_tensor_slices([0] * 9 + [1]).repeat(200)
    result = [int(c) for c, _ in vals(ds.rejection_resample(lambda x: x, [0.5, 0.5], [0.9, 0.1], seed=2))]
    assert 0.42 < np.mean(result) < 0.58


# ---- errors ----------------------------------------------------------------------------------------------------------

ERRORS = {
    "D.from_tensor_slices(1)": ("ValueError", "rank >= 1"),
    "D.from_tensor_slices(([1, 2], [1]))": ("ValueError", "Dimensions 2 and 1"),
    "D.from_generator(3, tf.int32)": ("TypeError", "must be a Python callable"),
    "D.from_generator(lambda: [1])": ("TypeError", "output_signature"),
    "D.range(0, 5, 0)": ("InvalidArgumentError", "non-zero"),
    "D.range(1.5)": ("TypeError", "1.5"),
    "D.zip([ds, ds])": ("TypeError", "list"),
    "ds.take('a')": ("TypeError", "int64"),
    "ds.batch(0)": ("InvalidArgumentError", "greater than zero"),
    "ds.shuffle(0)": ("InvalidArgumentError", "buffer_size"),
    "ds.prefetch(-5)": ("InvalidArgumentError", "buffer_size"),
    "ds.shard(2, 5)": ("InvalidArgumentError", "between 0 and 1"),
    "ds.map(3)": ("ValueError", "callable"),
    "ds.filter(lambda x: x)": ("ValueError", "tf.bool"),
    "ds.concatenate(D.range(3, output_type=tf.int32))": ("TypeError", "Incompatible dataset elements"),
    "ds.concatenate(D.from_tensors((1,)))": ("TypeError", "Incompatible dataset elements"),
    "ds.unbatch()": ("ValueError", "scalar"),
    "D.from_tensors(([1, 2], [1, 2, 3])).unbatch()": ("ValueError", "2 and 3"),
    "D.range(9).rebatch(3)": ("ValueError", "rank of >= 1"),
    "ds.apply(lambda d: 3)": ("TypeError", "tf.data.Dataset"),
    "ds.padded_batch(2, padded_shapes=[2])": ("ValueError", "not compatible"),
}


@pytest.mark.parametrize("text", ERRORS)
def test_errors_when_made(tf, text):
    kind, words = ERRORS[text]
    expected = getattr(tf.errors, kind, None) or {"ValueError": ValueError, "TypeError": TypeError}[kind]
    with pytest.raises(expected, match=words):
        made(tf, text)


def drain(dataset, tf):
    result, iterator = [], iter(dataset)
    while len(result) < 30:
        try:
            result.append(next(iterator).numpy().tolist())
        except StopIteration:
            return result
        except tf.errors.InvalidArgumentError:
            result.append("error")
    return result


FAILING = {
    "fail": [-1.0, "error", 1.0, 0.5],
    "fail.batch(2)": ["error", [1.0, 0.5]],
    "fail.take(2)": [-1.0, "error", 1.0],
    "fail.skip(2)": ["error", "end"],
    "fail.repeat(2)": [-1.0, "error", 1.0, 0.5, -1.0, "error", 1.0, 0.5],
    "fail.filter(lambda x: True)": [-1.0, "error", 1.0, 0.5],
    "fail.prefetch(2)": [-1.0, "error", 1.0, 0.5],
    "fail.ignore_errors()": [-1.0, 1.0, 0.5],
    "fail.enumerate().map(lambda i, x: i)": [0, "error", 2, 3],
    "fail.cache()": [-1.0, "error", 1.0, 0.5],
    "fail.concatenate(fail)": [-1.0, "error", 1.0, 0.5, -1.0, "error", 1.0, 0.5],
}


@pytest.mark.parametrize("text", FAILING)
def test_an_element_that_fails_leaves_the_iterator_usable(tf, text):
    ds = tf.data.Dataset.range(4)
    fail = ds.map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(x - 1, tf.float32), "bad"))
    assert drain(eval(text, {"fail": fail}), tf) == [v for v in FAILING[text] if v != "end"]


BAD_GENERATORS = {"iter(['a'])": "expected type was int32", "iter([[1, 2]])": "shape", "iter([None])": "int32"}


@pytest.mark.parametrize("text", BAD_GENERATORS)
def test_generators_that_yield_something_else(tf, text):
    ds = tf.data.Dataset.from_generator(lambda: eval(text), output_signature=tf.TensorSpec([], tf.int32))
    with pytest.raises(tf.errors.InvalidArgumentError, match=BAD_GENERATORS[text]):
        next(iter(ds))


def test_generators(tf):
    def count(n):
        for i in range(n):
            yield i, [float(i)] * i

    ds = tf.data.Dataset.from_generator(
        count, args=(3,), output_signature=(tf.TensorSpec((), tf.int64), tf.TensorSpec((None,), tf.float32))
    )
    assert vals(ds) == vals(ds) == [(0, []), (1, [1.0]), (2, [2.0, 2.0])]

    def failing():
        yield 1
        raise ValueError("no more")

    iterator = iter(tf.data.Dataset.from_generator(failing, output_signature=tf.TensorSpec((), tf.int32)))
    assert int(next(iterator)) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="no more"):
        next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def test_iterators_eagerly(tf):
    iterator = iter(tf.data.Dataset.range(2))
    assert int(iterator.get_next()) == 0
    filled = iterator.get_next_as_optional()
    assert bool(filled.has_value())
    assert int(filled.get_value()) == 1
    empty = iterator.get_next_as_optional()
    assert not bool(empty.has_value())
    with pytest.raises(tf.errors.InvalidArgumentError):
        empty.get_value()
    with pytest.raises(StopIteration):
        next(iterator)
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        iterator.get_next()
    some = tf.experimental.Optional.from_value((1, "a"))
    assert some.get_value()[1].numpy() == b"a"
    assert not bool(tf.experimental.Optional.empty(tf.TensorSpec([], tf.int32)).has_value())


def test_numpy_iterators_protect_their_arrays(tf):
    result = next(tf.data.Dataset.from_tensor_slices([[1, 2]]).as_numpy_iterator())
    assert not result.flags.writeable
    assert isinstance(next(tf.data.Dataset.range(1).as_numpy_iterator()), np.int64)


def test_none_in_elements(tf):
    ds = tf.data.Dataset.from_tensors((1, None)).map(lambda x, n: (x + 1, n))
    assert repr(ds.element_spec) == "(TensorSpec(shape=(), dtype=tf.int32, name=None), NoneTensorSpec())"
    (element,) = ds
    assert int(element[0]) == 2
    assert element[1] is None


def test_extension_types_are_elements(tf):
    class Pair(tf.experimental.ExtensionType):
        a: tf.Tensor
        b: tf.Tensor

    ds = tf.data.Dataset.from_tensors(Pair(a=tf.constant(1), b=tf.constant(2.0)))
    (result,) = ds.map(lambda p: Pair(a=p.a + 1, b=p.b))
    assert int(result.a) == 2


def test_options(tf):
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 2
    ds = tf.data.Dataset.range(3).with_options(options).map(lambda x: x)
    assert ds.options().deterministic is False
    assert ds.options().threading.private_threadpool_size == 2
    with pytest.raises(AttributeError):
        options.nonsense = 1
    assert vals(ds) == [0, 1, 2]
