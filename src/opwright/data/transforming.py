"""Dataset's transformations: map, filter, shuffle, repeat, prefetch, batch, window, group_by_window ...

Lives here: the public signatures, and buckets by length, which are a group_by_window.
Not here: the classes they make (elementwise.py, ordering.py, batching.py, windows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core import dtypes
from ..core.shapes import TensorShape
from ..ops import array as array_ops
from ..ops import dispatch, math
from .base import DatasetBase, kinds
from .structure import is_structure, map_leaves

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


class Transforming(DatasetBase):
    """The methods of Dataset that give another dataset, element by element."""

    # ---- functions of elements --------------------------------------------------------------------------------------

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Any:
        """`map_func` of each element. It is traced once, with the element's type; a tuple is given as arguments.

        num_parallel_calls: how many calls may run at once; AUTOTUNE means as many as there are cores. deterministic:
        False lets results come as they are done. synchronous, use_unbounded_threadpool: accepted.
        """
        return kinds.MapDataset(self, map_func, None if synchronous else num_parallel_calls, deterministic)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """The elements for which `predicate` gives True. Raises ValueError unless it gives a scalar bool."""
        return kinds.FilterDataset(self, predicate)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """The elements before the first for which `predicate` gives False."""
        return kinds.TakeWhileDataset(self, predicate)

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None) -> Any:
        """Outputs of `scan_func(state, element) -> (new state, output)`, the state handed on.

        raises TypeError where the state changes its structure or dtypes
        """
        return kinds.ScanDataset(self, initial_state, scan_func)

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Any:
        """The elements of the datasets that `map_func` makes of each element, one dataset after the other."""
        return kinds.FlatMapDataset(self, map_func)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Any:
        """As flat_map, `cycle_length` datasets at a time, `block_length` elements of each in turn.

        cycle_length: by default num_parallel_calls, else the number of cores. With num_parallel_calls each dataset
        works ahead in a thread of its own; the order is the same.
        """
        return kinds.InterleaveDataset(self, map_func, cycle_length, block_length, num_parallel_calls)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        """The elements that could be made. log_warning: whether to warn of each that could not."""
        return kinds.IgnoreErrorsDataset(self, log_warning)

    def apply(self, transformation_func: Callable[[Any], Any]) -> DatasetBase:
        """`transformation_func(self)`. Raises TypeError unless that is a dataset."""
        dataset = transformation_func(self)
        if not isinstance(dataset, DatasetBase):
            raise TypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(dataset)}.")
        return dataset

    # ---- which elements, in what order ------------------------------------------------------------------------------

    def take(self, count: Any, name: str | None = None) -> Any:
        """The first `count` elements; all for -1."""
        return kinds.TakeDataset(self, count)

    def skip(self, count: Any, name: str | None = None) -> Any:
        """All but the first `count` elements; none for -1."""
        return kinds.SkipDataset(self, count)

    def repeat(self, count: Any = None, name: str | None = None) -> Any:
        """All elements `count` times over; without end for None or -1."""
        return kinds.RepeatDataset(self, count)

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Any:
        """Each `num_shards`-th element, beginning with number `index`. Raises InvalidArgumentError outside of them."""
        return kinds.ShardDataset(self, num_shards, index)

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = True, name: str | None = None
    ) -> Any:
        """Elements in a random order, out of a buffer of `buffer_size` (UNKNOWN_CARDINALITY: of all).

        The same seed gives the same orders: the same one in each iteration if not `reshuffle_each_iteration`.
        raises InvalidArgumentError for a buffer of none
        """
        return kinds.ShuffleDataset(self, buffer_size, seed, reshuffle_each_iteration)

    def concatenate(self, dataset: Any, name: str | None = None) -> Any:
        """The elements of this, then of the other. Shapes that differ become unknown.

        raises TypeError where structure or dtypes differ
        """
        return kinds.ConcatenateDataset(self, dataset)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Any:
        """(number, element), counted from `start` as int64."""
        return kinds.ZipDataset((kinds.Dataset.counter(start), self))

    def unique(self, name: str | None = None) -> Any:
        """Each element once. Raises TypeError unless elements are one tensor of int32, int64 or string."""
        return kinds.UniqueDataset(self)

    # ---- keeping and working ahead ----------------------------------------------------------------------------------

    def cache(self, filename: Any = "", name: str | None = None) -> Any:
        """Elements kept from the first whole iteration on, in memory or in a file.

        The file appears when it is whole; an iteration raises DataLossError where it is damaged.
        """
        return kinds.CacheDataset(self, filename)

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Any:
        """The same elements, made by a thread that is at most `buffer_size` ahead; AUTOTUNE or None chooses.

        raises InvalidArgumentError for a size below -1
        """
        return kinds.PrefetchDataset(self, buffer_size)

    def with_options(self, options: Any, name: str | None = None) -> Any:
        """The same elements; the options are kept for `options()`."""
        return kinds.OptionsDataset(self, options)

    # ---- balancing ----------------------------------------------------------------------------------------------

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: Any = None,
        name: str | None = None,
    ) -> Any:
        """(class, element) with classes as often as `target_dist` says, elements being dropped at random.

        class_func: the class of an element, an int32 scalar. initial_dist: how often classes are; None: counted as
        elements come.
        """
        return kinds.ResampleDataset(self, class_func, target_dist, initial_dist, seed)


class Grouping(DatasetBase):
    """The methods of Dataset that make elements of several elements, or several of one."""

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Any:
        """Elements stacked, `batch_size` at a time; a last smaller batch unless drop_remainder.

        num_parallel_calls, deterministic: accepted. raises InvalidArgumentError for a size below 1; iterating raises it
        where shapes differ
        """
        return kinds.BatchDataset(self, batch_size, drop_remainder)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Any:
        """Elements padded at the end of each dimension to one shape, then stacked.

        padded_shapes: nested as the elements: sizes, None or -1 where the longest of the batch decides; by default the
        elements' own shapes. padding_values: nested scalars, or one for all; by default zero and the empty string.
        raises ValueError or TypeError where these do not fit; iterating raises DataLossError for a longer element
        """
        return kinds.PaddedBatchDataset(self, batch_size, padded_shapes, padding_values, drop_remainder)

    def unbatch(self, name: str | None = None) -> Any:
        """The rows of each element. Raises ValueError for scalars and first dimensions that differ."""
        return kinds.UnbatchDataset(self)

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Any:
        """Batches of other sizes: `batch_size`, or several that come in turn."""
        return kinds.RebatchDataset(self, batch_size, drop_remainder)

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False, name: str | None = None
    ) -> Any:
        """Datasets of `size` elements, `stride` apart, the next beginning `shift` (size) elements further.

        Each component of an element becomes a dataset of its own.
        raises InvalidArgumentError for numbers below 1
        """
        return kinds.WindowDataset(self, size, shift, stride, drop_remainder)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        window_size: Any = None,
        window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Any:
        """Elements gathered by `key_func` (int64); of `window_size` with one key, `reduce_func(key, dataset)` makes the
        dataset whose elements come out. window_size_func: the size for a key, instead.
        """
        return kinds.GroupByWindowDataset(self, key_func, reduce_func, window_size, window_size_func)

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
    ) -> Any:
        """Batches of elements of like length: bucket i has lengths below bucket_boundaries[i], the last all others.

        element_length_func: an element's length, int32. bucket_batch_sizes: one more than there are boundaries.
        pad_to_bucket_boundary: pad to the boundary less one, not to the longest. no_padding: batch as they are.
        raises ValueError where sizes do not fit the boundaries
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
            """Padded shapes where unknown sizes become the bucket's."""
            end = array_ops.gather(dispatch.to_tensor([*boundaries, -1], dtypes.int64), number) - 1

            def one(leaf: Any, shape: Any) -> Tensor | list[Any]:
                dims = TensorShape(shape).as_list()
                return (
                    array_ops.stack([end if d is None else dispatch.to_tensor(d, dtypes.int64) for d in dims])
                    if dims
                    else []
                )

            given = map_leaves(lambda s: s.shape, spec) if padded_shapes is None else padded_shapes
            return map_leaves(one, spec, given) if is_structure(spec) else one(spec, given)

        def batches(number: Any, dataset: Any) -> Any:
            size = size_of(number)
            if no_padding:
                return dataset.batch(size, drop_remainder=drop_remainder)
            shapes = shapes_for(number) if pad_to_bucket_boundary else padded_shapes
            return dataset.padded_batch(size, shapes, padding_values, drop_remainder)

        return self.group_by_window(key, batches, window_size_func=size_of)
