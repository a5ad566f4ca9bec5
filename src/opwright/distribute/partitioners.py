"""`distribute.experimental.partitioners`: into how many shards a variable is divided.

A partitioner is called with a shape and a dtype; it returns the number of shards of each axis, of which one is divided.
"""

from __future__ import annotations

import math
from typing import Any

from ..core.dtypes import as_dtype, string
from ..core.shapes import TensorShape

__all__ = ["FixedShardsPartitioner", "MaxSizePartitioner", "MinSizePartitioner", "Partitioner"]


class ShardPartitioner:
    """Base of partitioners, which override `shards`."""

    bytes_per_string = 16

    def __call__(self, shape: Any, dtype: Any, axis: int = 0) -> list[int]:
        """Return the number of shards of each axis. Raises ValueError for shapes that are not fully known."""
        sizes = TensorShape(shape)
        if sizes.rank is None or None in sizes.as_list():
            raise ValueError(f"Shape of a variable must be fully known to divide it, found {sizes}")
        kind = as_dtype(dtype)
        bytes_per_element = self.bytes_per_string if kind is string else kind.size
        shards = [1] * sizes.rank
        if sizes.rank:
            shards[axis] = max(1, self.shards(sizes.as_list(), bytes_per_element, axis))
        return shards

    def shards(self, sizes: list[Any], bytes_per_element: int, axis: int) -> int:
        """Return the number of shards of an axis."""
        raise NotImplementedError(f"{type(self).__name__} must define shards(sizes, bytes_per_element, axis)")


class FixedShardsPartitioner(ShardPartitioner):
    """A fixed number of shards, at most the size of the axis."""

    def __init__(self, num_shards: int) -> None:
        self.num_shards = num_shards

    def shards(self, sizes: list[Any], bytes_per_element: int, axis: int) -> int:
        return int(min(self.num_shards, sizes[axis]))


class MinSizePartitioner(ShardPartitioner):
    """As many shards as have a least size each, at most max_shards. Raises ValueError for numbers below 1."""

    def __init__(self, min_shard_bytes: int = 256 << 10, max_shards: int = 1, bytes_per_string: int = 16) -> None:
        if min(min_shard_bytes, max_shards, bytes_per_string) < 1:
            raise ValueError("min_shard_bytes, max_shards and bytes_per_string must be positive")
        self.min_shard_bytes, self.max_shards, self.bytes_per_string = min_shard_bytes, max_shards, bytes_per_string

    def shards(self, sizes: list[Any], bytes_per_element: int, axis: int) -> int:
        total = math.prod(sizes) * bytes_per_element
        return int(min(total // self.min_shard_bytes, self.max_shards, sizes[axis]))


class MaxSizePartitioner(ShardPartitioner):
    """As few shards as have a greatest size each, at most max_shards. Raises ValueError for numbers below 1."""

    def __init__(self, max_shard_bytes: int, max_shards: int | None = None, bytes_per_string: int = 16) -> None:
        if max_shard_bytes < 1 or bytes_per_string < 1 or (max_shards is not None and max_shards < 1):
            raise ValueError("max_shard_bytes, max_shards and bytes_per_string must be positive")
        self.max_shard_bytes, self.max_shards, self.bytes_per_string = max_shard_bytes, max_shards, bytes_per_string

    def shards(self, sizes: list[Any], bytes_per_element: int, axis: int) -> int:
        slice_bytes = math.prod(sizes) * bytes_per_element / sizes[axis]
        count = math.ceil(sizes[axis] / max(1, math.floor(self.max_shard_bytes / slice_bytes)))
        return int(count if self.max_shards is None else min(count, self.max_shards))


Partitioner = ShardPartitioner
