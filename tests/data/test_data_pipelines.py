"""Random chains of transformations against the same chains on Python lists."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thorough import examples

small = st.integers(0, 7)
STEPS = st.one_of(
    st.tuples(st.just("take"), st.integers(-1, 7)),
    st.tuples(st.just("skip"), small),
    st.tuples(st.just("repeat"), st.integers(0, 3)),
    st.tuples(st.just("batch"), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("shard"), st.integers(1, 3)),
    st.tuples(st.just("map")),
    st.tuples(st.just("filter")),
    st.tuples(st.just("concatenate"), small),
    st.tuples(st.just("prefetch"), st.integers(0, 2)),
    st.tuples(st.just("cache")),
    st.tuples(st.just("shuffle"), st.integers(1, 4)),
    st.tuples(st.just("interleave")),
    st.tuples(st.just("window"), st.integers(1, 4), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("take_while")),
    st.tuples(st.just("zip")),
)


def batches(items, n, drop):
    result = [items[i : i + n] for i in range(0, len(items), n)]
    return [b for b in result if len(b) == n or not drop]


def windows(items, size, shift, drop):
    result = [items[i : i + size] for i in range(0, len(items), shift)]
    return [w for w in result if len(w) == size or not drop]


def interleaved(items):
    """cycle_length 2, block_length 1 of [x, x + 100]: two open at a time, a new one where one ends."""
    result, queue, slots, at = [], list(items), [None, None], 0
    while queue or any(s is not None for s in slots):
        if slots[at] is None:
            if queue:
                x = queue.pop(0)
                slots[at] = [x, x + 100]
                continue
        elif slots[at]:
            result.append(slots[at].pop(0))
        else:
            slots[at] = None
        at = 1 - at
    return result


def apply(tf, ds, items, step):
    """One step on a dataset of integers and on a list; batches and windows are flattened again."""
    name, *args = step
    if name == "take":
        return ds.take(args[0]), items if args[0] < 0 else items[: args[0]]
    if name == "skip":
        return ds.skip(args[0]), items[args[0] :]
    if name == "repeat":
        return ds.repeat(args[0]), items * args[0]
    if name == "batch":
        n, drop = args
        return ds.batch(n, drop_remainder=drop).unbatch(), list(itertools.chain(*batches(items, n, drop)))
    if name == "shard":
        return ds.shard(args[0], 0), items[:: args[0]]
    if name == "map":
        return ds.map(lambda x: x * 3 + 1), [x * 3 + 1 for x in items]
    if name == "filter":
        return ds.filter(lambda x: x % 2 == 0), [x for x in items if x % 2 == 0]
    if name == "concatenate":
        return ds.concatenate(tf.data.Dataset.range(args[0])), items + list(range(args[0]))
    if name == "prefetch":
        return ds.prefetch(args[0]), items
    if name == "cache":
        return ds.cache(), items
    if name == "shuffle":  # of one element it keeps the order; of more, batches of sums would differ: keep them apart
        return ds.shuffle(1), items
    if name == "interleave":
        f = lambda x: tf.data.Dataset.from_tensors(x).concatenate(tf.data.Dataset.from_tensors(x + 100))  # noqa: E731
        return ds.interleave(f, cycle_length=2), interleaved(items)
    if name == "window":
        size, shift, drop = args
        return ds.window(size, shift, drop_remainder=drop).flat_map(lambda w: w), list(
            itertools.chain(*windows(items, size, shift, drop))
        )
    if name == "take_while":
        return ds.take_while(lambda x: x < 50), list(itertools.takewhile(lambda x: x < 50, items))
    assert name == "zip"
    return tf.data.Dataset.zip(ds, ds.skip(1)).map(lambda a, b: a + b), [a + b for a, b in itertools.pairwise(items)]


@pytest.mark.ours  # TensorFlow takes 50 times as long
@settings(max_examples=examples(60))
@given(st.integers(0, 9), st.lists(STEPS, max_size=5))
def test_chains(n, steps):
    import opwright as tf

    ds, items = tf.data.Dataset.range(n), list(range(n))
    for step in steps:
        ds, items = apply(tf, ds, items, step)
        if len(items) > 300:
            return
    assert [int(x) for x in ds] == items
    assert [int(x) for x in ds] == items
    count = int(ds.cardinality())
    assert count == len(items) or count == -2
    assert [int(v) for b in ds.batch(3) for v in b.numpy()] == items
    assert sorted(int(x) for x in ds.shuffle(5)) == sorted(items)
