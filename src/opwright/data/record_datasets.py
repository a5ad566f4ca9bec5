"""Datasets of Example messages, and tables, groups and files by older names of `data.experimental`.

Lives here: `make_batched_features_dataset`, `parse_example_dataset`, tables of datasets, `group_by_reducer`,
`pad_to_cardinality`, `SqlDataset`.
Not here: messages (io/examples.py), tables (eager/lookup.py), functions that are methods of Dataset (experimental.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core import dtypes, nest
from ..eager import lookup
from ..io import examples
from ..ops import array, dispatch
from .buffers import AUTOTUNE
from .dataset import Dataset
from .files import TFRecordDataset

Apply = Callable[[Dataset], Dataset]


def parse_example_dataset(features: Any, num_parallel_calls: Any = 1, deterministic: bool | None = None) -> Apply:
    """Return a function of datasets of batches of serialized Examples, which returns their features by name."""
    return lambda dataset: dataset.map(
        lambda messages: examples.parse_example(messages, features), num_parallel_calls, deterministic
    )


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: Any,
    features: Any,
    reader: Any = None,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: Any = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Return batches of the features of Examples in files, as dictionaries; with label_key, pairs with that feature.

    file_pattern: a pattern or a list of them. reader: the class of datasets of serialized messages by file name,
    TFRecordDataset by default. num_epochs: None repeats forever.
    """
    make = TFRecordDataset if reader is None else reader
    files = Dataset.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    records = files.interleave(
        lambda name: make(name, *(reader_args or ())),
        cycle_length=reader_num_threads or 1,
        num_parallel_calls=reader_num_threads,
        deterministic=not sloppy_ordering,
    )
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        records = records.repeat(num_epochs)
    batches = records.batch(batch_size, drop_final_batch or num_epochs is None)
    parsed: Any = batches.apply(parse_example_dataset(features, parser_num_threads or 2))
    if label_key is not None:
        if label_key not in features:
            raise ValueError(f"The `label_key` provided ({label_key}) must be one of the `features` keys: {features}")
        parsed = parsed.map(lambda values: ({k: v for k, v in values.items() if k != label_key}, values[label_key]))
    result: Dataset = parsed.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)
    return result


class Reducer:
    """Functions: init_func(key) makes a state, reduce_func(state, element) the next, finalize_func(state) a result."""

    def __init__(self, init_func: Callable[..., Any], reduce_func: Callable[..., Any], finalize_func: Any) -> None:
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Apply:
    """Return a function of datasets, which returns one result of `reducer` for each key, in the order of the keys.

    key_func: returns a scalar of int64
    """

    def apply(dataset: Dataset) -> Dataset:
        def reduced(key: Any, group: Dataset) -> Dataset:
            def step(state: Any, element: Any) -> Any:
                arguments = element if isinstance(element, tuple) else (element,)
                return reducer.reduce_func(state, *arguments)

            return Dataset.from_tensors(reducer.finalize_func(group.reduce(reducer.init_func(key), step)))

        largest = np.iinfo(np.int64).max
        return dataset.group_by_window(lambda *e: array.cast(key_func(*e), dtypes.int64), reduced, largest)

    return apply


class DatasetInitializer(lookup.KeyValueTensorInitializer):
    """Content of a table: a dataset of pairs of scalars, key and value."""

    def __init__(self, dataset: Dataset) -> None:
        keys, values = dataset.element_spec
        pairs = [(k.numpy(), v.numpy()) for k, v in dataset]
        columns = list(zip(*pairs)) if pairs else [(), ()]
        super().__init__(list(columns[0]), list(columns[1]), keys.dtype, values.dtype)


def table_from_dataset(
    dataset: Dataset,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: Any = None,
    hasher_spec: Any = None,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """Return the lookup table of a dataset of pairs of key and value.

    num_oov_buckets: further values for unknown keys, by their hash; without them default_value (-1 or the empty
    string). vocab_size: how many pairs count.
    """
    if num_oov_buckets < 0:
        raise ValueError(f"`num_oov_buckets` must not be negative, found {num_oov_buckets}")
    content = DatasetInitializer(dataset if vocab_size is None else dataset.take(vocab_size))
    if num_oov_buckets:
        return lookup.StaticVocabularyTable(content, num_oov_buckets)
    if default_value is None:
        default_value = "" if content.value_dtype is dtypes.string else -1
    return lookup.StaticHashTable(content, default_value)


def index_table_from_dataset(
    dataset: Dataset,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: Any = -1,
    hasher_spec: Any = None,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """Return the lookup table of the positions of a dataset's elements, int64; see `table_from_dataset`."""
    pairs = dataset.enumerate().map(lambda i, key: (key, i))
    return table_from_dataset(pairs, num_oov_buckets, vocab_size, default_value, hasher_spec, key_dtype, name)


def pad_to_cardinality(cardinality: Any, mask_key: str = "valid") -> Apply:
    """Return a function of datasets of dictionaries, which appends elements of zeros up to a number of elements.

    mask_key: the new part, whether an element is one of the dataset
    raises ValueError for other elements, or more than `cardinality`
    """

    def apply(dataset: Dataset) -> Dataset:
        if not isinstance(dataset.element_spec, dict):
            raise ValueError("tf.data.experimental.pad_to_cardinality requires its input dataset to be a dictionary.")
        count = int(dataset.cardinality())
        if count < 0 or count > int(cardinality):
            raise ValueError(
                f"The dataset must have at most {int(cardinality)} elements, a known number; it has {count}"
            )

        def zeros(element: Any) -> Any:
            return {**nest.map_structure(array.zeros_like, element), mask_key: False}

        real = dataset.map(lambda element: {**element, mask_key: True})
        return real.concatenate(dataset.take(1).map(zeros).repeat(int(cardinality) - count))

    return apply


def SqlDataset(driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> Dataset:
    """Return the rows of a query of an SQLite database, as tuples of scalars.

    driver_name: "sqlite". data_source_name: the file. output_types: a tuple of dtypes, one a column.
    raises ValueError for other drivers
    """
    driver, path, text = (_text(dispatch.to_tensor(v).numpy()) for v in (driver_name, data_source_name, query))
    if driver != "sqlite":
        raise ValueError(f"The driver must be 'sqlite', found {driver!r}; use Dataset.from_generator for others")
    types = tuple(dtypes.as_dtype(t) for t in output_types)

    def rows() -> Iterator[Any]:
        import sqlite3  # loads a C library that few programs need

        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            for row in connection.execute(text):
                yield tuple("" if v is None and t is dtypes.string else v or 0 for v, t in zip(row, types, strict=True))
        finally:
            connection.close()

    return Dataset.from_generator(rows, output_types=types, output_shapes=((),) * len(types))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
