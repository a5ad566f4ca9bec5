"""`data.experimental`: older names of methods of Dataset, and functions without such a method.

Lives here: functions for `Dataset.apply`, and aliases.  Not here: the transformations.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core import dtypes
from ..core.errors import OutOfRangeError
from ..io import records
from . import elementwise
from .base import INFINITE, UNKNOWN, DatasetSpec
from .buffers import AUTOTUNE
from .csv_files import CsvDataset, make_csv_dataset
from .dataset import (
    AutoShardPolicy,
    AutotuneOptions,
    Dataset,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ThreadingOptions,
)
from .functions import Failure, IteratorContext
from .optional import Optional
from .record_datasets import (
    DatasetInitializer,
    Reducer,
    SqlDataset,
    group_by_reducer,
    index_table_from_dataset,
    make_batched_features_dataset,
    pad_to_cardinality,
    parse_example_dataset,
    table_from_dataset,
)

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = INFINITE, UNKNOWN


class AutotuneAlgorithm(enum.Enum):
    """Values of `AutotuneOptions.autotune_algorithm`, which is stored without effect."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class DatasetWriter(records.TFRecordWriter):
    """Writer of datasets of records to a TFRecord file. compression_type: None, "", "GZIP" or "ZLIB"."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        super().__init__(filename, compression_type)

    def write(self, dataset: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  TensorFlow's name
        """Append every record of a dataset of scalar strings, and close the file; or append one record of bytes.

        raises TypeError for a dataset of other elements
        """
        if not isinstance(dataset, Dataset):
            super().write(dataset)
            return
        spec = dataset.element_spec
        if getattr(spec, "dtype", None) is not dtypes.string or spec.shape.rank not in (0, None):
            raise TypeError(f"`dataset` must produce scalar `DT_STRING` tensors, whereas it produces {spec}")
        with self:
            for record in dataset:
                super().write(record.numpy())


TFRecordWriter = DatasetWriter
Apply = Callable[[Dataset], Dataset]


def cardinality(dataset: Dataset) -> Tensor:
    """Return `dataset.cardinality()`."""
    return dataset.cardinality()


def assert_cardinality(expected_cardinality: int) -> Apply:
    """Return a function for `apply` that declares the number of elements; iterating checks it."""
    return lambda dataset: elementwise._AssertCardinalityDataset(dataset, int(expected_cardinality))


def ignore_errors(log_warning: bool = False) -> Apply:
    """Return a function for `apply`; see `Dataset.ignore_errors`."""
    return lambda dataset: dataset.ignore_errors(log_warning)


def enumerate_dataset(start: Any = 0) -> Apply:
    """Return a function for `apply`; see `Dataset.enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Apply:
    """Return a function for `apply`; see `Dataset.scan`."""
    return lambda dataset: dataset.scan(initial_state, scan_func)


def take_while(predicate: Callable[..., Any]) -> Apply:
    """Return a function for `apply`; see `Dataset.take_while`."""
    return lambda dataset: dataset.take_while(predicate)


def unbatch() -> Apply:
    """Return a function for `apply`; see `Dataset.unbatch`."""
    return lambda dataset: dataset.unbatch()


def unique() -> Apply:
    """Return a function for `apply`; see `Dataset.unique`."""
    return lambda dataset: dataset.unique()


def prefetch_to_device(device: str, buffer_size: Any = None) -> Apply:
    """Return a function for `apply`; see `Dataset.prefetch`. There is one device."""
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Apply:
    """Return the identity function for `apply`; there is one device."""
    return lambda dataset: dataset


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Apply:
    """Return a function for `apply`; see `Dataset.group_by_window`."""
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Apply:
    """Return a function for `apply`; see `Dataset.bucket_by_sequence_length`."""
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes,
        padding_values,
        pad_to_bucket_boundary,
        no_padding,
        drop_remainder,
    )


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: Any = None
) -> Apply:
    """Return a function for `apply`; see `Dataset.rejection_resample`."""
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Apply:
    """Return a function for `apply`: map, then batch."""
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Apply:
    """Return a function for `apply`: shuffle, then repeat."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Apply:
    """Return a function for `apply`: `Dataset.interleave` on threads."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, cycle_length)


def choose_from_datasets(datasets: Sequence[Any], choice_dataset: Any, stop_on_empty_dataset: bool = False) -> Dataset:
    """Return `Dataset.choose_from_datasets` of these arguments."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets: Sequence[Any], weights: Any = None, seed: Any = None, stop_on_empty_dataset: bool = False
) -> Dataset:
    """Return `Dataset.sample_from_datasets` of these arguments."""
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def get_single_element(dataset: Dataset) -> Any:
    """Return `dataset.get_single_element()`."""
    return dataset.get_single_element()


def get_next_as_optional(iterator: Any) -> Optional:
    """Return `iterator.get_next_as_optional()`."""
    result: Optional = iterator.get_next_as_optional()
    return result


def get_structure(dataset_or_iterator: Any) -> Any:
    """Return the `element_spec` of a dataset or iterator. Raises TypeError for other values."""
    try:
        return dataset_or_iterator.element_spec
    except AttributeError:
        raise TypeError(f"expected a dataset or an iterator, found {type(dataset_or_iterator)}") from None


def at(dataset: Dataset, index: Any) -> Any:
    """Return element number `index`, in the order of a first iteration.

    raises OutOfRangeError for an index out of range, and the errors of the element
    """
    number = int(index)
    chosen = dataset.skip(number).take(1)
    item: Any = next(chosen.flow(IteratorContext(random_access=True)), None) if number >= 0 else None
    if item is None:
        raise OutOfRangeError(op="data.experimental.at", what=f"Index out of range: {number}")
    if type(item) is Failure:
        raise item.error
    return dataset._form.arrays_to_tensors(item)


def from_list(elements: Sequence[Any], name: str | None = None) -> Dataset:
    """Return a dataset with one element per value of a list. Raises ValueError for an empty list."""
    if not elements:
        raise ValueError(
            "Invalid `elements`. `elements` should not be empty. If you want an empty dataset, use "
            "`tf.data.Dataset.range(0)`."
        )
    dataset = Dataset.from_tensors(elements[0])
    for element in elements[1:]:
        dataset = dataset.concatenate(Dataset.from_tensors(element))
    return dataset


def to_variant(dataset: Dataset) -> Tensor:
    """Return the tensor of a dataset."""
    return dataset.handle()


def from_variant(variant: Any, structure: Any) -> Dataset:
    """Return the dataset of a tensor. structure: its element_spec."""
    dataset: Dataset = DatasetSpec(structure)._from_components(variant)
    return dataset


def dense_to_ragged_batch(batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = dtypes.int64) -> Apply:
    """Return a function of datasets, `Dataset.ragged_batch` of these arguments."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Apply:
    """Return a function of datasets, `Dataset.sparse_batch` of these arguments."""
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)


def snapshot(path: str, compression: Any = "AUTO", reader_func: Any = None, shard_func: Any = None) -> Apply:
    """Return a function of datasets, `Dataset.snapshot` of these arguments."""
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def save(
    dataset: Dataset, path: str, compression: Any = None, shard_func: Any = None, checkpoint_args: Any = None
) -> None:
    """Write a dataset, by `Dataset.save`."""
    dataset.save(path, compression, shard_func, checkpoint_args)


def load(path: str, element_spec: Any = None, compression: Any = None, reader_func: Any = None) -> Dataset:
    """Return a dataset that `save` has written, by `Dataset.load`."""
    return Dataset.load(path, element_spec, compression, reader_func)


def Counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Dataset:
    """Return `Dataset.counter` of these arguments."""
    return Dataset.counter(start, step, dtype)


def RandomDataset(seed: Any = None, rerandomize_each_iteration: Any = None, name: str | None = None) -> Dataset:
    """Return `Dataset.random` of these arguments."""
    return Dataset.random(seed, rerandomize_each_iteration)


__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DatasetInitializer",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "Optional",
    "RandomDataset",
    "Reducer",
    "SqlDataset",
    "TFRecordWriter",
    "ThreadingOptions",
    "assert_cardinality",
    "at",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_list",
    "from_variant",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "index_table_from_dataset",
    "load",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_and_batch",
    "pad_to_cardinality",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "shuffle_and_repeat",
    "snapshot",
    "table_from_dataset",
    "take_while",
    "to_variant",
    "unbatch",
    "unique",
]
