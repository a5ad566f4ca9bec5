"""Datasets of ragged and sparse tensors: rows, batches, windows and checkpoints; older names of data.experimental.

Expected values follow from the definitions of rows and stacks, and agree with TensorFlow 2.21.
"""

import sqlite3

import numpy as np
import pytest

import opwright as ow
from opwright.data import experimental

Dataset = ow.data.Dataset
ROWS = [[1, 2], [3], [], [4, 5, 6]]


def lists(dataset):
    return [x.to_list() if isinstance(x, ow.RaggedTensor) else x.numpy().tolist() for x in dataset]


def dense(x):
    return ow.sparse.to_dense(x).numpy().tolist()


def test_rows_of_ragged_tensors_are_stacked_and_split_again():
    rows = Dataset.from_tensor_slices(ow.ragged.constant(ROWS))
    assert len(rows) == 4
    assert rows.element_spec == ow.RaggedTensorSpec([None], ow.int32, 0)
    assert lists(rows) == ROWS
    assert lists(rows.map(lambda x: x * 2)) == [[2, 4], [6], [], [8, 10, 12]]
    pairs = rows.batch(2)
    assert lists(pairs) == [ROWS[:2], ROWS[2:]]
    nested = pairs.batch(2)
    assert nested.element_spec == ow.RaggedTensorSpec([None, None, None], ow.int32, 2)
    assert lists(nested) == [[ROWS[:2], ROWS[2:]]]
    assert lists(nested.unbatch()) == lists(pairs)
    assert lists(nested.unbatch().unbatch()) == ROWS
    words = Dataset.from_tensor_slices((ow.ragged.constant([["a"], ["b", "c"]]), [1, 2]))
    assert [(x.numpy().tolist(), int(n)) for x, n in words.shuffle(2, seed=1).repeat(2)].count(([b"b", b"c"], 2)) == 2
    values = Dataset.from_tensors(ow.ragged.constant([[[1.0, 2.0]], []], ragged_rank=1, inner_shape=(2,))).unbatch()
    assert lists(values.batch(2)) == [[[[1.0, 2.0]], []]]


def test_rows_of_sparse_tensors_are_stacked_and_split_again():
    sparse = ow.SparseTensor([[0, 1], [2, 0], [2, 1]], [5, 6, 7], [3, 2])
    rows = Dataset.from_tensor_slices((sparse, [1, 2, 3]))
    assert [dense(x) for x, _ in rows] == [[0, 5], [0, 0], [6, 7]]
    assert [dense(x) for x, _ in rows.batch(2)] == [[[0, 5], [0, 0]], [[6, 7]]]
    assert [dense(x) for x, _ in rows.batch(2).unbatch()] == [[0, 5], [0, 0], [6, 7]]
    growing = Dataset.range(1, 4).map(lambda n: ow.sparse.from_dense(ow.fill([n], n)))
    assert [dense(x) for x in growing.batch(3)] == [[[1, 0, 0], [2, 2, 0], [3, 3, 3]]]


def test_examples_with_lists_of_any_length_are_batched():
    def message(words):
        features = {"w": ow.train.Feature(bytes_list=ow.train.BytesList(value=words))}
        return ow.train.Example(features=ow.train.Features(feature=features)).SerializeToString()

    features = {"w": ow.io.VarLenFeature(ow.string)}
    data = Dataset.from_tensor_slices([message([b"a"]), message([b"b", b"c"])])
    (batch,) = data.map(lambda m: ow.io.parse_single_example(m, features)).batch(2)
    assert dense(batch["w"]) == [[b"a", b""], [b"b", b"c"]]
    (whole,) = data.batch(2).apply(experimental.parse_example_dataset(features))
    assert dense(whole["w"]) == dense(batch["w"])


def test_an_iterator_over_ragged_elements_continues_from_a_checkpoint(tmp_path):
    data = Dataset.from_tensor_slices(ow.ragged.constant(ROWS)).batch(1).shuffle(4, seed=3)
    iterator = iter(data)
    next(iterator)
    path = ow.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    rest = lists(iterator)
    again = iter(data)
    ow.train.Checkpoint(iterator=again).restore(path)
    assert lists(again) == rest
    assert len(rest) == 3


def test_dense_elements_are_batched_as_ragged_and_sparse():
    growing = Dataset.range(1, 5).map(lambda n: ow.fill([n], n))
    assert lists(growing.ragged_batch(3)) == [[[1], [2, 2], [3, 3, 3]], [[4, 4, 4, 4]]]
    assert lists(growing.apply(experimental.dense_to_ragged_batch(3, True))) == [[[1], [2, 2], [3, 3, 3]]]
    squares = Dataset.range(1, 3).map(lambda n: ow.fill([n, n], n))
    assert lists(squares.ragged_batch(2)) == [[[[1]], [[2, 2], [2, 2]]]]
    assert [x.shape for x in Dataset.range(4).ragged_batch(2)] == [[2], [2]]
    assert [dense(x) for x in growing.sparse_batch(2, [None])] == [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]
    (batch,) = growing.apply(experimental.dense_to_sparse_batch(4, [6]))
    assert batch.dense_shape.numpy().tolist() == [4, 6]
    assert len(batch.values) == 10
    with pytest.raises(ow.errors.DataLossError, match="row_shape"):
        list(growing.sparse_batch(4, [3]))
    with pytest.raises(TypeError, match="sparse_batch"):
        Dataset.from_tensors((1, 2)).sparse_batch(1, [])


def test_parts_that_differ_are_errors():
    mixed = Dataset.from_tensors((ow.ragged.constant(ROWS), ow.zeros([3])))
    with pytest.raises(ValueError, match="matching leading dimension"):
        mixed.unbatch()
    ranks = Dataset.range(1, 3).map(lambda n: ow.sparse.from_dense(ow.ones(ow.ones([n], ow.int32))))
    with pytest.raises(ow.errors.InvalidArgumentError, match="ranks"):
        list(ranks.batch(2))


def test_tables_groups_and_databases(tmp_path):
    index = experimental.index_table_from_dataset(Dataset.from_tensor_slices(["a", "b", "c"]), vocab_size=2)
    assert index.lookup(ow.constant(["b", "c", "a"])).numpy().tolist() == [1, -1, 0]
    table = experimental.table_from_dataset(Dataset.from_tensor_slices((["a", "b"], ["x", "y"])))
    assert table.lookup(ow.constant(["b", "q"])).numpy().tolist() == [b"y", b""]
    reducer = experimental.Reducer(lambda key: ow.constant(0, ow.int64), lambda s, x: s + x, lambda s: s)
    groups = Dataset.range(10).apply(experimental.group_by_reducer(lambda x: x % 3, reducer))
    assert [int(x) for x in groups] == [18, 12, 15]
    padded = Dataset.from_tensor_slices({"a": [1, 2]}).apply(experimental.pad_to_cardinality(3))
    assert [(int(x["a"]), bool(x["valid"])) for x in padded] == [(1, True), (2, True), (0, False)]
    with pytest.raises(ValueError, match="at most 1"):
        Dataset.from_tensor_slices({"a": [1, 2]}).apply(experimental.pad_to_cardinality(1))
    path = tmp_path / "data.db"
    connection = sqlite3.connect(path)
    connection.execute("create table t(a text, b integer, c real)")
    connection.executemany("insert into t values(?, ?, ?)", [("x", 1, 2.5), (None, 2, None)])
    connection.commit()
    connection.close()
    rows = experimental.SqlDataset("sqlite", str(path), "select * from t", (ow.string, ow.int32, ow.float64))
    assert list(rows.as_numpy_iterator()) == [(b"x", 1, 2.5), (b"", 2, 0.0)]
    with pytest.raises(ValueError, match="sqlite"):
        experimental.SqlDataset("mysql", str(path), "select 1", (ow.int32,))


def test_features_of_files_are_read_in_batches(tmp_path):
    with ow.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        for i in range(5):
            features = {
                "x": ow.train.Feature(float_list=ow.train.FloatList(value=[i, i + 0.5])),
                "y": ow.train.Feature(int64_list=ow.train.Int64List(value=[i % 2])),
            }
            writer.write(ow.train.Example(features=ow.train.Features(feature=features)).SerializeToString())
    features = {"x": ow.io.FixedLenFeature([2], ow.float32), "y": ow.io.FixedLenFeature([], ow.int64)}
    read = experimental.make_batched_features_dataset
    batches = list(read(str(tmp_path / "*.tfrecord"), 2, features, label_key="y", num_epochs=1, shuffle=False))
    assert [y.numpy().tolist() for _, y in batches] == [[0, 1], [0, 1], [0]]
    assert np.array_equal(batches[1][0]["x"], [[2, 2.5], [3, 3.5]])
    with pytest.raises(ValueError, match="label_key"):
        read(str(tmp_path / "*"), 2, features, label_key="z")


def test_datasets_as_parts_and_symbolic_shapes():
    parts = Dataset.from_tensors([Dataset.range(3) for _ in range(2)]).unbatch().flat_map(lambda d: d)
    assert lists(parts) == [0, 1, 2, 0, 1, 2]
    sparse = Dataset.range(1, 3).map(lambda n: ow.SparseTensor([[0]], [n], [n]))
    assert [dense(x) for x in sparse.batch(2)] == [[[1, 0], [2, 0]]]


def test_padded_shapes_and_values_of_parts():
    data = Dataset.range(1, 3).map(lambda n: (ow.fill([n], n), {"s": ow.as_string(ow.fill([n], n))}))
    ((numbers, texts),) = data.padded_batch(2, ([None], {"s": [-1]}), (np.int64(-1), None))
    assert numbers.numpy().tolist() == [[1, -1], [2, 2]]
    assert texts["s"].numpy().tolist() == [[b"1", b""], [b"2", b"2"]]
    vectors = Dataset.from_tensors([1, 2, 3])
    with pytest.raises(ValueError, match=r"its shape was \(2, 2\)"):
        vectors.padded_batch(2, [[1, 1], [1, 1]])
    with pytest.raises(TypeError, match="element type was float"):
        vectors.padded_batch(2, ow.constant([1.5]))
    with pytest.raises(ValueError, match=r"input component shape \(3,\)"):
        vectors.padded_batch(2, ow.constant([1]))
