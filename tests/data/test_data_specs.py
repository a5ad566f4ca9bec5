"""element_spec and cardinality of every transformation: what is known before anything runs."""

import collections

import pytest

Pair = collections.namedtuple("Pair", "a b")

SPECS = {  # expression of D (Dataset), tf, ds = range(5), rows = float32[3, 2] slices -> element_spec, as text
    "ds": "i64[]",
    "D.range(3, output_type=tf.int32)": "i32[]",
    "D.from_tensors([1, 2])": "i32[2]",
    "D.from_tensors((1, [2.0, 3.0], {'a': 4}))": "(i32[], f32[2], {'a': i32[]})",
    "D.from_tensor_slices([1, 2, 3])": "i32[]",
    "D.from_tensor_slices(([1, 2], [[3.0], [4.0]]))": "(i32[], f32[1])",
    "D.from_tensor_slices({'b': [1, 2], 'a': ['x', 'y']})": "{'b': i32[], 'a': str[]}",
    "D.from_tensor_slices([])": "f32[]",
    "D.from_generator(lambda: iter([1]), tf.int32)": "i32[?]",
    "D.from_generator(lambda: iter([1]), (tf.int32, tf.float32), ([], [None]))": "(i32[], f32[None])",
    "D.from_generator(lambda: iter([1]), output_signature=tf.TensorSpec([None, 2], tf.int32))": "i32[None,2]",
    "ds.map(lambda x: (x, {'a': x}))": "(i64[], {'a': i64[]})",
    "ds.map(lambda x: [x, x])": "(i64[], i64[])",
    "ds.map(lambda x: (x, [x, x]))": "(i64[], i64[2])",
    "ds.map(lambda x: tf.cast(x, tf.float32))": "f32[]",
    "ds.filter(lambda x: x > 2)": "i64[]",
    "ds.batch(2)": "i64[None]",
    "ds.batch(2, drop_remainder=True)": "i64[2]",
    "ds.batch(2).batch(2)": "i64[None,None]",
    "rows.batch(3)": "f32[None,2]",
    "ds.padded_batch(2)": "i64[None]",
    "ds.map(lambda x: tf.fill([x], x)).padded_batch(2)": "i64[None,None]",
    "ds.map(lambda x: tf.fill([x], x)).padded_batch(2, padded_shapes=[7])": "i64[None,7]",
    "ds.map(lambda x: tf.fill([x], x)).padded_batch(2, padded_shapes=[7], drop_remainder=True)": "i64[2,7]",
    "ds.batch(2).unbatch()": "i64[]",
    "ds.batch(2).rebatch(3)": "i64[None]",
    "ds.batch(2).rebatch(3, drop_remainder=True)": "i64[3]",
    "ds.shuffle(2)": "i64[]",
    "ds.repeat(2).take(3).skip(1).shard(2, 0).prefetch(1).cache()": "i64[]",
    "ds.enumerate()": "(i64[], i64[])",
    "D.zip((ds, ds))": "(i64[], i64[])",
    "D.zip(ds, rows)": "(i64[], f32[2])",
    "D.zip({'a': ds, 'b': (ds, rows)})": "{'a': i64[], 'b': (i64[], f32[2])}",
    "D.from_tensors([1, 2]).concatenate(D.from_tensors([1, 2, 3]))": "i32[None]",
    "D.from_tensors([1, 2]).concatenate(D.from_tensors(1))": "i32[?]",
    "ds.interleave(lambda x: rows)": "f32[2]",
    "ds.flat_map(lambda x: D.range(x).batch(2))": "i64[None]",
    "ds.scan(tf.constant(0, tf.int64), lambda s, x: (s + x, (s, 1.0)))": "(i64[], f32[])",
    "ds.take_while(lambda x: x < 2)": "i64[]",
    "ds.unique()": "i64[]",
    "ds.group_by_window(lambda x: x % 2, lambda k, d: d.batch(2), window_size=2)": "i64[None]",
    "D.random(1)": "i64[]",
    "D.counter()": "i64[]",
    "D.choose_from_datasets([ds, ds], ds)": "i64[]",
    "D.sample_from_datasets([rows, rows])": "f32[2]",
    "ds.map(lambda x: Pair(x, x))": "Pair(a=i64[], b=i64[])",
}


def shown(tf, spec):
    """A nested spec as short text."""
    if isinstance(spec, dict):
        return "{" + ", ".join(f"{k!r}: {shown(tf, v)}" for k, v in spec.items()) + "}"
    if hasattr(spec, "_fields"):
        return f"{type(spec).__name__}({', '.join(f'{k}={shown(tf, v)}' for k, v in zip(spec._fields, spec))})"
    if isinstance(spec, tuple):
        return "(" + ", ".join(shown(tf, v) for v in spec) + ")"
    assert isinstance(spec, tf.TensorSpec)
    short = {"int64": "i64", "int32": "i32", "float32": "f32", "string": "str"}[spec.dtype.name]
    return f"{short}[{'?' if spec.shape.rank is None else ','.join(str(d) for d in spec.shape)}]"


def scope(tf):
    dataset = tf.data.Dataset
    rows = dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return {"tf": tf, "D": dataset, "ds": dataset.range(5), "rows": rows, "Pair": Pair}


def made(tf, text):
    return eval(text, scope(tf))


@pytest.mark.filterwarnings("ignore:AutoGraph could not transform")
@pytest.mark.parametrize("text", SPECS)
def test_element_spec(tf, text):
    dataset = made(tf, text)
    assert shown(tf, dataset.element_spec) == SPECS[text]
    assert iter(dataset).element_spec == dataset.element_spec


@pytest.mark.filterwarnings("ignore:AutoGraph could not transform")
@pytest.mark.parametrize("text", [t for t in SPECS if "from_generator" not in t and "choose" not in t])
def test_elements_are_of_their_spec(tf, text):
    dataset = made(tf, text)
    for element in dataset.take(3):
        tf.nest.map_structure(lambda s, t: s.shape.assert_is_compatible_with(t.shape), dataset.element_spec, element)
        tf.nest.map_structure(lambda s, t: s.dtype.is_compatible_with(t.dtype) or 1 / 0, dataset.element_spec, element)


CARDINALITIES = {
    "ds": 5,
    "D.range(5, 1, -2)": 2,
    "ds.repeat()": -1,
    "ds.repeat(3)": 15,
    "ds.repeat(0)": 0,
    "D.range(0).repeat()": 0,
    "D.from_tensors(1)": 1,
    "ds.filter(lambda x: True)": -2,
    "ds.take(2)": 2,
    "ds.take(9)": 5,
    "ds.take(-1)": 5,
    "ds.skip(2)": 3,
    "ds.skip(9)": 0,
    "ds.skip(-1)": 0,
    "ds.repeat().take(3)": 3,
    "ds.repeat().skip(3)": -1,
    "ds.filter(lambda x: True).take(0)": -2,
    "ds.filter(lambda x: True).repeat(0)": 0,
    "ds.filter(lambda x: True).repeat()": -1,
    "ds.batch(2)": 3,
    "ds.batch(2, drop_remainder=True)": 2,
    "ds.padded_batch(2)": 3,
    "ds.padded_batch(2, drop_remainder=True)": 2,
    "ds.map(lambda x: x)": 5,
    "ds.batch(2).unbatch()": -2,
    "ds.batch(2, drop_remainder=True).unbatch()": 4,
    "ds.concatenate(ds)": 10,
    "ds.concatenate(ds.repeat())": -1,
    "ds.filter(lambda x: True).concatenate(ds)": -2,
    "D.zip((ds, ds.repeat()))": 5,
    "D.zip((ds, ds.filter(lambda x: True)))": -2,
    "D.zip((ds.repeat(), ds.repeat()))": -1,
    "ds.shard(3, 1)": 2,
    "D.range(10).shard(3, 0)": 4,
    "ds.interleave(lambda x: ds)": -2,
    "ds.flat_map(lambda x: ds)": -2,
    "ds.unique()": -2,
    "ds.take_while(lambda x: True)": -2,
    "ds.scan(0, lambda s, x: (s, x))": 5,
    "D.random()": -1,
    "D.counter()": -1,
    "ds.cache()": 5,
    "ds.prefetch(1)": 5,
    "ds.shuffle(2)": 5,
    "ds.ignore_errors()": -2,
    "D.range(7).window(3, 2)": 4,
    "D.range(7).window(3, 2, drop_remainder=True)": 3,
    "D.range(7).window(3)": 3,
    "ds.enumerate()": 5,
    "D.choose_from_datasets([ds, ds], ds)": -2,
    "D.sample_from_datasets([ds, ds])": -2,
    "ds.apply(tf.data.experimental.assert_cardinality(42))": 42,
    "D.from_generator(lambda: iter([1]), output_signature=tf.TensorSpec([], tf.int32))": -2,
}


@pytest.mark.filterwarnings("ignore:AutoGraph could not transform")
@pytest.mark.parametrize("text", CARDINALITIES)
def test_cardinality(tf, text):
    dataset = made(tf, text)
    assert int(dataset.cardinality()) == CARDINALITIES[text]
    if CARDINALITIES[text] >= 0:
        assert len(dataset) == CARDINALITIES[text]
    else:
        with pytest.raises(TypeError, match="infinite" if CARDINALITIES[text] == -1 else "unknown"):
            len(dataset)


def test_printing(tf):
    ds = tf.data.Dataset.range(5)
    spec = "TensorSpec(shape=(), dtype=tf.int64, name=None)"
    assert repr(ds) == f"<_RangeDataset element_spec={spec}>"
    assert repr(ds.batch(2)) == "<_BatchDataset element_spec=TensorSpec(shape=(None,), dtype=tf.int64, name=None)>"
    assert repr(ds.enumerate()) == f"<_ZipDataset element_spec=({spec}, {spec})>"
    assert repr(tf.data.DatasetSpec.from_value(ds)) == f"DatasetSpec({spec}, TensorShape([]))"
    assert repr(ds.window(2).element_spec) == f"DatasetSpec({spec}, TensorShape([]))"
