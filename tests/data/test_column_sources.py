"""Datasets of Arrow tables, Parquet files, Dask collections and Ray datasets: elements and types, errors."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import opwright as ow

Dataset = ow.data.Dataset
ROWS = 3000  # of several blocks


def columns():
    rng = np.random.default_rng(0)
    return {
        "f": rng.standard_normal(ROWS).astype(np.float32),
        "i": rng.integers(-9, 9, ROWS),
        "b": rng.integers(0, 2, ROWS).astype(bool),
        "t": rng.standard_normal((ROWS, 2, 3)).astype(np.float32),
        "s": np.array([f"row {i} é" for i in range(ROWS)], object),
    }


@pytest.fixture
def table():
    arrow = pytest.importorskip("pyarrow")
    values = columns()
    tensors = arrow.FixedShapeTensorArray.from_numpy_ndarray(values["t"])
    ragged = arrow.array([list(range(i % 4)) for i in range(ROWS)], arrow.list_(arrow.int32()))
    arrays = [tensors if name == "t" else arrow.array(value) for name, value in values.items()]
    return arrow.Table.from_arrays([*arrays, ragged], [*values, "r"])


def check(dataset):
    rows = list(dataset.as_numpy_iterator())
    assert len(rows) == ROWS
    for name, value in columns().items():
        if name == "s":
            assert [row[name] for row in rows] == [text.encode() for text in value]
        else:
            stacked = np.stack([row[name] for row in rows])
            np.testing.assert_array_equal(stacked, value)
            assert stacked.dtype == value.dtype
            assert dataset.element_spec[name] == ow.TensorSpec(value.shape[1:], value.dtype)
    return rows


@pytest.mark.parametrize("source", ["table", "parquet", "parquet folder", "feather", "two files"])
def test_rows_of_arrow_and_parquet(source, table, tmp_path):
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    half = ROWS // 2
    if source == "feather":
        feather.write_feather(table, tmp_path / "a.feather")
        dataset = Dataset.from_arrow(tmp_path / "a.feather")
    elif source == "table":
        dataset = Dataset.from_arrow(table)
    else:
        pq.write_table(table[:half], tmp_path / "a.parquet")
        pq.write_table(table[half:], tmp_path / "b.parquet")
        files = [tmp_path / "a.parquet", str(tmp_path / "b.parquet")]
        if source == "parquet":
            dataset = Dataset.from_parquet(files[0]).concatenate(Dataset.from_arrow(files[1]))
        else:
            dataset = Dataset.from_parquet(files if source == "two files" else tmp_path)
    rows = check(dataset)
    assert [row["r"].tolist() for row in rows] == [list(range(i % 4)) for i in range(ROWS)]
    assert rows[0]["r"].dtype == np.int32


def test_columns_are_chosen_and_nulls_are_nan_or_errors():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"f": [1.5, None], "i": [None, 3], "d": arrow.array([0, 1], arrow.date32())})
    values = [row["f"] for row in Dataset.from_arrow(table, ["f"]).as_numpy_iterator()]
    np.testing.assert_array_equal(values, [1.5, np.nan])
    with pytest.raises(ow.errors.DataLossError, match="column 'i' has nulls"):
        list(Dataset.from_arrow(table, ["i"]))
    with pytest.raises(ow.errors.UnimplementedError, match=r"column 'd'(?s:.)*date32"):
        Dataset.from_arrow(table)
    with pytest.raises(ow.errors.InvalidArgumentError, match="no such columns"):
        Dataset.from_arrow(table, ["f", "x"])


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ow.errors.FailedPreconditionError, match=r"pip install 'opwright\[arrow\]'"):
        Dataset.from_parquet("x.parquet")


def test_rows_of_a_dask_array():
    da = pytest.importorskip("dask.array")
    x = np.arange(120, dtype=np.float32).reshape(20, 3, 2)
    dataset = Dataset.from_dask(da.from_array(x, chunks=(7, 2, 1)))
    assert dataset.element_spec == ow.TensorSpec([3, 2], ow.float32)
    np.testing.assert_array_equal(list(dataset.as_numpy_iterator()), x)
    np.testing.assert_array_equal(list(dataset.shard(4, 1).as_numpy_iterator()), x[1::4])


def test_elements_of_a_dask_bag():
    bag = pytest.importorskip("dask.bag").from_sequence(range(10), npartitions=3)
    pairs = bag.map(lambda i: (i, i / 2))
    with pytest.raises(TypeError, match="output_signature"):
        Dataset.from_dask(pairs)
    signature = (ow.TensorSpec([], ow.int64), ow.TensorSpec([], ow.float32))
    with pytest.importorskip("dask").config.set(scheduler="synchronous"):
        elements = list(Dataset.from_dask(pairs, output_signature=signature).as_numpy_iterator())
    assert elements == [(i, i / 2) for i in range(10)]


def test_rows_of_a_dask_frame():
    pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    frame = pd.DataFrame({"a": np.arange(9, dtype=np.int32), "s": [f"x{i}" for i in range(9)]})
    rows = list(Dataset.from_dask(dd.from_pandas(frame, npartitions=2)).as_numpy_iterator())
    assert [(row["a"], row["s"]) for row in rows] == [(i, b"x%d" % i) for i in range(9)]


def test_other_types_are_refused():
    with pytest.raises(TypeError, match=r"dask\.bag, found list"):
        Dataset.from_dask([1, 2])


class RayDataset:
    """The part of `ray.data.Dataset` that is read: batches of columns in NumPy."""

    def __init__(self, values):
        self.values = values

    def iter_batches(self, batch_size, batch_format):
        assert batch_format == "numpy"
        count = len(next(iter(self.values.values()))) if self.values else 0
        for start in range(0, count, batch_size):
            yield {name: value[start : start + batch_size] for name, value in self.values.items()}


def test_rows_of_batches_as_ray_has_them():
    check(Dataset.from_ray(RayDataset(columns())))
    with pytest.raises(ValueError, match="empty"):
        Dataset.from_ray(RayDataset({}))


@pytest.mark.slow
def test_rows_of_a_ray_dataset():
    pytest.importorskip("pandas")
    ray = pytest.importorskip("ray")
    pytest.importorskip("pyarrow")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        rows = [{name: value[i] for name, value in columns().items()} for i in range(ROWS)]
        dataset = Dataset.from_ray(ray.data.from_items(rows, override_num_blocks=1))
        check(dataset)
    finally:
        ray.shutdown()
