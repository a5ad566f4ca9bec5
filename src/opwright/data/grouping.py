"""Dataset's transformations to and from groups of elements: batch, window, group_by_window ...

Lives here: the public signatures, and buckets by length, which are a group_by_window.
Not here: the classes they make (batching.py, windows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import dtypes
from ..core.shapes import TensorShape
from ..ops import array as array_ops
from ..ops import dispatch, math
from .base import DatasetBase, kinds
from .structure import is_structure, map_leaves


class Grouping(DatasetBase):
    """The methods of Dataset that make elements of several elements, or several of one."""

    def batch(self, batch_size: Any, drop_remainder: bool = False, num_parallel_calls: Any = None,
              deterministic: bool | None = None, name: str | None = None) -> Any:  # fmt: skip
        """Elements stacked, `batch_size` at a time; a last smaller batch unless drop_remainder.

        num_parallel_calls, deterministic: accepted. raises InvalidArgumentError for a size below 1; iterating raises it
        where shapes differ
        """
        return kinds.BatchDataset(self, batch_size, drop_remainder)

    def padded_batch(self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None,
                     drop_remainder: bool = False, name: str | None = None) -> Any:  # fmt: skip
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

    def window(self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False,
               name: str | None = None) -> Any:  # fmt: skip
        """Datasets of `size` elements, `stride` apart, the next beginning `shift` (size) elements further.

        Each component of an element becomes a dataset of its own.
        raises InvalidArgumentError for numbers below 1
        """
        return kinds.WindowDataset(self, size, shift, stride, drop_remainder)

    def group_by_window(self, key_func: Callable[..., Any], reduce_func: Callable[..., Any], window_size: Any = None,
                        window_size_func: Callable[..., Any] | None = None, name: str | None = None
                        ) -> Any:  # fmt: skip
        """Elements gathered by `key_func` (int64); of `window_size` with one key, `reduce_func(key, dataset)` makes the
        dataset whose elements come out. window_size_func: the size for a key, instead.
        """
        return kinds.GroupByWindowDataset(self, key_func, reduce_func, window_size, window_size_func)

    def bucket_by_sequence_length(self, element_length_func: Callable[..., Any], bucket_boundaries: Sequence[int],
                                  bucket_batch_sizes: Sequence[int], padded_shapes: Any = None,
                                  padding_values: Any = None, pad_to_bucket_boundary: bool = False,
                                  no_padding: bool = False, drop_remainder: bool = False, name: str | None = None
                                  ) -> Any:  # fmt: skip
        """Batches of elements of like length: bucket i has lengths below bucket_boundaries[i], the last all others.

        element_length_func: an element's length, int32. bucket_batch_sizes: one more than there are boundaries.
        pad_to_bucket_boundary: pad to the boundary less one, not to the longest. no_padding: batch as they are.
        raises ValueError where sizes do not fit the boundaries
        """
        boundaries, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
        if len(sizes) != len(boundaries) + 1:
            raise ValueError("`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but got "
                             f"{len(sizes)} and {len(boundaries)}.")  # fmt: skip
        bounds = dispatch.to_tensor(boundaries, dtypes.int64)._array if boundaries else None
        spec = self.element_spec

        def key(*element: Any) -> Any:
            length = array_ops.cast(element_length_func(*element), dtypes.int64)
            if bounds is None:
                return dispatch.to_tensor(0, dtypes.int64)
            return math.reduce_sum(array_ops.cast(math.greater_equal(length, bounds), dtypes.int64))

        def size_of(number: Any) -> Any:
            return array_ops.gather(dispatch.to_tensor(sizes, dtypes.int64), number)

        def shapes_for(number: Any) -> Any:
            """Padded shapes where unknown sizes become the bucket's."""
            end = array_ops.gather(dispatch.to_tensor([*boundaries, -1], dtypes.int64), number) - 1

            def one(leaf: Any, shape: Any) -> Any:
                dims = TensorShape(shape).as_list()
                return array_ops.stack([end if d is None else dispatch.to_tensor(d, dtypes.int64) for d in dims]) \
                    if dims else []  # fmt: skip

            given = map_leaves(lambda s: s.shape, spec) if padded_shapes is None else padded_shapes
            return map_leaves(one, spec, given) if is_structure(spec) else one(spec, given)

        def batches(number: Any, dataset: Any) -> Any:
            size = size_of(number)
            if no_padding:
                return dataset.batch(size, drop_remainder=drop_remainder)
            shapes = shapes_for(number) if pad_to_bucket_boundary else padded_shapes
            return dataset.padded_batch(size, shapes, padding_values, drop_remainder)

        return self.group_by_window(key, batches, window_size_func=size_of)
