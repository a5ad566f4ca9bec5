"""Dataset's transformations of single elements and of their order: map, filter, shuffle, repeat, prefetch ...

Lives here: the public signatures.  Not here: the classes they make, transformations to and from groups (grouping.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base import DatasetBase, kinds


class Transforming(DatasetBase):
    """The methods of Dataset that give another dataset, element by element."""

    # ---- functions of elements --------------------------------------------------------------------------------------

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: bool | None = None,
            synchronous: bool | None = None, use_unbounded_threadpool: bool = False, name: str | None = None
            ) -> Any:  # fmt: skip
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

    def interleave(self, map_func: Callable[..., Any], cycle_length: Any = None, block_length: Any = None,
                   num_parallel_calls: Any = None, deterministic: bool | None = None, name: str | None = None
                   ) -> Any:  # fmt: skip
        """As flat_map, `cycle_length` datasets at a time, `block_length` elements of each in turn.

        cycle_length: by default num_parallel_calls, else the number of cores. With num_parallel_calls each dataset
        works ahead in a thread of its own; the order is the same.
        """
        return kinds.InterleaveDataset(self, map_func, cycle_length, block_length, num_parallel_calls)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        """The elements that could be made. log_warning: whether to warn of each that could not."""
        return kinds.IgnoreErrorsDataset(self, log_warning)

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
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

    def shuffle(self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = True,
                name: str | None = None) -> Any:  # fmt: skip
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

    def rejection_resample(self, class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None,
                           seed: Any = None, name: str | None = None) -> Any:  # fmt: skip
        """(class, element) with classes as often as `target_dist` says, elements being dropped at random.

        class_func: the class of an element, an int32 scalar. initial_dist: how often classes are; None: counted as
        elements come.
        """
        return kinds.ResampleDataset(self, class_func, target_dist, initial_dist, seed)


