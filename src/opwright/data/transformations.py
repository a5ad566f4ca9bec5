"""Dataset's transformations: map, filter, shuffle, repeat, prefetch, batch, window, group_by_window ...

Lives here: the public signatures, and bucket_by_sequence_length, which is a group_by_window.
Not here: the classes (elementwise.py, order.py, batch.py, combination.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core import dtypes
from ..core.lazy_imports import import_module
from ..core.shapes import TensorShape
from ..ops import array as array_ops
from ..ops import debugging, dispatch, math
from .base import DatasetBase, dataset_classes
from .structure import is_structure, map_leaves

if TYPE_CHECKING:
    from ..ops.tensor import Tensor
    from .dataset import Dataset


class ElementTransformations(DatasetBase):
    """Methods of Dataset that return another dataset, element by element."""

    # ---- functions of elements --------------------------------------------------------------------------------------

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Return a dataset of `map_func` of each element, traced once; tuples become several arguments.

        num_parallel_calls: the number of concurrent calls; AUTOTUNE: the number of cores. deterministic: False permits
        results in completion order. synchronous, use_unbounded_threadpool: accepted.
        """
        return dataset_classes.MapDataset(self, map_func, None if synchronous else num_parallel_calls, deterministic)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Return the elements for which `predicate` is True. Raises ValueError unless it returns a scalar bool."""
        return dataset_classes.FilterDataset(self, predicate)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Return the elements before the first for which `predicate` is False."""
        return dataset_classes.TakeWhileDataset(self, predicate)

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """Return the outputs of `scan_func(state, element) -> (new state, output)`.

        raises TypeError if the state changes its structure or dtypes
        """
        return dataset_classes.ScanDataset(self, initial_state, scan_func)

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """Return the concatenated elements of the datasets `map_func(element)`."""
        return dataset_classes.FlatMapDataset(self, map_func)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Return `flat_map` interleaved: `cycle_length` datasets at a time, `block_length` elements of each in turn.

        cycle_length: by default num_parallel_calls, else the number of cores. With num_parallel_calls each dataset is
        prefetched by its own thread; the order is the same.
        """
        return dataset_classes.InterleaveDataset(self, map_func, cycle_length, block_length, num_parallel_calls)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """Return the elements without errors. log_warning: whether to warn about dropped elements."""
        return dataset_classes.IgnoreErrorsDataset(self, log_warning)

    def apply(self, transformation_func: Callable[[Any], Any]) -> DatasetBase:
        """Return `transformation_func(self)`. Raises TypeError unless it is a dataset."""
        dataset = transformation_func(self)
        if not isinstance(dataset, DatasetBase):
            raise TypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(dataset)}.")
        return dataset

    # ---- selection and order ----------------------------------------------------------------------------------------

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """Return the first `count` elements; all for -1."""
        return dataset_classes.TakeDataset(self, count)

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """Return all but the first `count` elements; none for -1."""
        return dataset_classes.SkipDataset(self, count)

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """Return the elements repeated `count` times; infinitely for None or -1."""
        return dataset_classes.RepeatDataset(self, count)

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Return every `num_shards`-th element, starting at `index`.

        Raises InvalidArgumentError for an invalid index.
        """
        return dataset_classes.ShardDataset(self, num_shards, index)

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = True, name: str | None = None
    ) -> Dataset:
        """Return the elements shuffled by a buffer of `buffer_size` (UNKNOWN_CARDINALITY: all elements).

        Equal seeds yield equal orders; without `reshuffle_each_iteration` every iteration has the same order.
        raises InvalidArgumentError for a buffer size below 1
        """
        return dataset_classes.ShuffleDataset(self, buffer_size, seed, reshuffle_each_iteration)

    def concatenate(self, dataset: Any, name: str | None = None) -> Dataset:
        """Return the elements of this dataset followed by those of the other. Shapes that differ become unknown.

        raises TypeError if structure or dtypes differ
        """
        return dataset_classes.ConcatenateDataset(self, dataset)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        """Return pairs (index, element), counted from `start` as int64."""
        return dataset_classes.ZipDataset((dataset_classes.Dataset.counter(start), self))

    def unique(self, name: str | None = None) -> Dataset:
        """Return distinct elements. Raises TypeError unless they are one tensor of int32, int64 or string."""
        return dataset_classes.UniqueDataset(self)

    # ---- caching and prefetching ------------------------------------------------------------------------------------

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """Return the same elements, cached by the first complete iteration in memory or in a file.

        The file is written atomically; iterating raises DataLossError if it is corrupt.
        """
        return dataset_classes.CacheDataset(self, filename)

    def save(
        self, path: Any, compression: str | None = None, shard_func: Any = None, checkpoint_args: Any = None
    ) -> None:
        """Write all elements to a folder, which `Dataset.load` reads; what is in the way there is replaced.

        compression: None. shard_func, checkpoint_args: accepted. raises TypeError for elements that are datasets
        """
        import_module(".saved_elements", __package__).save(self, path, compression)

    def snapshot(
        self,
        path: Any,
        compression: str | None = "AUTO",
        reader_func: Any = None,
        shard_func: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """Return the same elements, which the first complete iteration writes to a folder, and later ones read there.

        compression, reader_func, shard_func: accepted
        """
        return self.cache(os.path.join(os.fspath(path), "elements"))

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Dataset:
        """Return the same elements, prefetched by a thread up to `buffer_size` ahead; AUTOTUNE or None chooses.

        raises InvalidArgumentError for a size below -1
        """
        return dataset_classes.PrefetchDataset(self, buffer_size)

    def with_options(self, options: Any, name: str | None = None) -> Dataset:
        """Return the same elements with options, which `options()` returns."""
        return dataset_classes.OptionsDataset(self, options)

    # ---- balancing ----------------------------------------------------------------------------------------------

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """Return pairs (class, element) with the class distribution `target_dist`, dropping elements at random.

        class_func: the class of an element, an int32 scalar. initial_dist: the class frequencies; None: estimated from
        the elements.
        """
        return dataset_classes.ResampleDataset(self, class_func, target_dist, initial_dist, seed)


class GroupTransformations(DatasetBase):
    """Methods of Dataset that combine several elements to one, or split one into several."""

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Return batches of `batch_size` stacked elements; the last may be smaller unless drop_remainder.

        num_parallel_calls, deterministic: accepted. Raises InvalidArgumentError for a size below 1; iterating raises it
        if shapes differ.
        """
        return dataset_classes.BatchDataset(self, batch_size, drop_remainder)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Return batches of elements padded to a common shape.

        padded_shapes: sizes in the elements' structure, None or -1 for the maximum of the batch; by default the
        elements' shapes. padding_values: scalars in the elements' structure, or one for all; by default zero and the
        empty string.
        raises ValueError or TypeError on mismatch; iterating raises DataLossError for an element that is too large
        """
        return dataset_classes.PaddedBatchDataset(self, batch_size, padded_shapes, padding_values, drop_remainder)

    def unbatch(self, name: str | None = None) -> Dataset:
        """Return the rows of each element. Raises ValueError for scalars and for first dimensions that differ."""
        return dataset_classes.UnbatchDataset(self)

    def ragged_batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        row_splits_dtype: Any = dtypes.int64,
        name: str | None = None,
    ) -> Dataset:
        """Return batches of elements as ragged tensors where their sizes are not known, so that they may differ."""
        return dataset_classes.RaggedElementsDataset(self).batch(batch_size, drop_remainder)

    def sparse_batch(self, batch_size: Any, row_shape: Any, name: str | None = None) -> Dataset:
        """Return batches of dense elements as sparse tensors [batch_size, *row_shape].

        row_shape: None for the size of the largest of the batch
        raises TypeError for elements of several parts; iterating raises DataLossError for one that is too large
        """
        return dataset_classes.SparseElementsDataset(self, row_shape).batch(batch_size)

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Return batches of other sizes: `batch_size`, or several in turn."""
        return dataset_classes.RebatchDataset(self, batch_size, drop_remainder)

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False, name: str | None = None
    ) -> Dataset:
        """Return datasets of `size` elements with step `stride`, each starting `shift` (default: size) elements later.

        Each component of an element becomes a separate dataset.
        raises InvalidArgumentError for numbers below 1
        """
        return dataset_classes.WindowDataset(self, size, shift, stride, drop_remainder)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        window_size: Any = None,
        window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Return the elements of `reduce_func(key, dataset)` for groups of `window_size` elements with equal key.

        key_func: the key of an element, int64. window_size_func: the group size of a key, instead of window_size.
        """
        return dataset_classes.GroupByWindowDataset(self, key_func, reduce_func, window_size, window_size_func)

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Return batches of elements of similar length: bucket i has lengths below bucket_boundaries[i].

        element_length_func: an element's length, int32. The last bucket has all other lengths. bucket_batch_sizes: one
        more than boundaries. pad_to_bucket_boundary: pad to the boundary minus one, instead of the longest element.
        no_padding: do not pad. raises ValueError if the numbers of sizes and boundaries do not match
        """
        boundaries, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
        if len(sizes) != len(boundaries) + 1:
            raise ValueError(
                "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but got "
                f"{len(sizes)} and {len(boundaries)}."
            )
        bounds = dispatch.to_tensor(boundaries, dtypes.int64).constant if boundaries else None
        spec = self.element_spec

        def key(*element: Any) -> Tensor:
            length = array_ops.cast(element_length_func(*element), dtypes.int64)
            if bounds is None:
                return dispatch.to_tensor(0, dtypes.int64)
            return math.reduce_sum(array_ops.cast(math.greater_equal(length, bounds), dtypes.int64))

        def size_of(number: Any) -> Tensor:
            return array_ops.gather(dispatch.to_tensor(sizes, dtypes.int64), number)

        def shapes_for(number: Any) -> Any:
            """Return padded shapes with the bucket's length for unknown sizes."""
            debugging.assert_less(
                number,
                dispatch.to_tensor(len(boundaries), dtypes.int64),
                "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries).",
            )
            end = array_ops.gather(dispatch.to_tensor([*boundaries, -1], dtypes.int64), number) - 1

            def padded_shape(leaf: Any, shape: Any) -> Tensor | list[Any]:
                dims = TensorShape(shape).as_list()
                return (
                    array_ops.stack([end if d is None else dispatch.to_tensor(d, dtypes.int64) for d in dims])
                    if dims
                    else []
                )

            shapes = map_leaves(lambda s: s.shape, spec) if padded_shapes is None else padded_shapes
            return map_leaves(padded_shape, spec, shapes) if is_structure(spec) else padded_shape(spec, shapes)

        def batches(number: Any, dataset: Dataset) -> Dataset:
            size = size_of(number)
            if no_padding:
                return dataset.batch(size, drop_remainder=drop_remainder)
            shapes = shapes_for(number) if pad_to_bucket_boundary else padded_shapes
            return dataset.padded_batch(size, shapes, padding_values, drop_remainder)

        return self.group_by_window(key, batches, window_size_func=size_of)
