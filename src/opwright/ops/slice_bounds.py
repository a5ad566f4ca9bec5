"""Bounds of slices: how large a part of a tensor is, and whether the tensor has it.

Lives here: `slice_dims`, `SliceMasks` (strided slices), `part_sizes` (splits); for both dialects' operators.
Not here: the operators (array/slicing.py, array/splitting.py, lite/ops), Python's brackets (array/slicing.py).

A size or bound is an int, or None where it is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError

Sizes = Sequence[int | None]


def slice_dims(dims: Sizes, begin: Sizes, size: Sizes, known: bool = True) -> list[int | None]:
    """Return the sizes of a slice. known: whether all of `size` is known, so that -1 stands for the rest.

    raises InvalidArgumentError naming the first dimension in which the slice is not inside the tensor
    """
    return [_slice_size(i, d, b, s, known) for i, (d, b, s) in enumerate(zip(dims, begin, size))]


def _slice_size(i: int, d: int | None, begin: int | None, size: int | None, known: bool) -> int | None:
    if (size is not None and size < -1) or (size is not None and d is not None and size > d):
        raise InvalidArgumentError(what=f"Expected size[{i}] in [0, {d}], but got {size}")
    if begin is not None and (begin < 0 or (d is not None and begin > d)):
        raise InvalidArgumentError(what=f"Expected begin[{i}] in [0, {d}], but got {begin}")
    if size is None or size == -1:
        return d - begin if known and size == -1 and d is not None and begin is not None else None
    if begin is not None and d is not None and begin + size > d:
        raise InvalidArgumentError(what=f"Expected size[{i}] in [0, {d - begin}], but got {size}")
    return size


class SliceMasks:
    """The five masks of a strided slice, and the Python key that they spell together with begin, end and strides."""

    __slots__ = ("begin", "ellipsis", "end", "new_axis", "shrink_axis")

    def __init__(self, op: Any) -> None:
        self.begin, self.end, self.ellipsis = op.begin_mask, op.end_mask, op.ellipsis_mask
        self.new_axis, self.shrink_axis = op.new_axis_mask, op.shrink_axis_mask

    def plan(self, begin: Sizes, end: Sizes, strides: Sizes, dims: Sizes) -> list[Any]:
        """Return the key item by item: None for a new axis, an int, or a (begin, end, stride, size of the dimension)
        each of which is None where unknown or left out.

        raises InvalidArgumentError where the key does not fit a tensor of sizes `dims`
        """
        n = len(strides)
        if not len(begin) == len(end) == n:
            raise InvalidArgumentError(
                what="begin, end and strides differ in length",
                found={"begin": len(begin), "end": len(end), "strides": n},
            )
        if self.ellipsis & (self.ellipsis - 1):
            raise InvalidArgumentError(what="Multiple ellipses in slice spec not allowed", wanted="one at most")
        taken = sum(not (self.ellipsis | self.new_axis) >> i & 1 for i in range(n))
        if taken > len(dims):
            raise InvalidArgumentError(
                what=f"Index out of range using input dim {len(dims)}; input has only {len(dims)} dims",
                wanted=f"at most {len(dims)} indices besides None and ...",
            )
        items: list[Any] = []
        at = 0
        for i in range(n):
            bit = 1 << i
            if self.ellipsis & bit:
                rest = len(dims) - taken
                items.extend((None, None, 1, d) for d in dims[at : at + rest])
                at += rest
            elif self.new_axis & bit:
                items.append(None)
            else:
                items.append(self._item(i, bit, begin[i], end[i], strides[i], dims[at], at))
                at += 1
        items.extend((None, None, 1, d) for d in dims[at:])
        return items

    def _item(
        self, i: int, bit: int, begin: int | None, end: int | None, stride: int | None, d: int | None, at: int
    ) -> Any:
        if stride == 0:
            raise InvalidArgumentError(what=f"strides[{i}] must be non-zero")
        if self.shrink_axis & bit:
            if stride is not None and stride < 0:
                raise InvalidArgumentError(
                    what="only stride 1 allowed on non-range indexing.", found=f"strides[{i}] = {stride}", wanted="1"
                )
            if begin is not None and d is not None and not -d <= begin < d:
                raise InvalidArgumentError(
                    what=f"slice index {begin} of dimension {at} out of bounds", wanted=f"in [{-d}, {d})"
                )
            return -1 if begin is None else begin
        known = (begin is not None or self.begin & bit) and (end is not None or self.end & bit) and stride is not None
        return (None if self.begin & bit else begin, None if self.end & bit else end, stride, d if known else None)


def key_of_plan(items: Sequence[Any]) -> tuple[Any, ...]:
    """Return the NumPy index that a plan of `SliceMasks` spells."""
    return (*(slice(*item[:3]) if isinstance(item, tuple) else item for item in items), ...)


def dims_of_plan(items: Sequence[Any]) -> list[int | None]:
    """Return the sizes that a plan of `SliceMasks` reads, None where one is unknown."""
    return [_length(item) for item in items if not isinstance(item, int)]


def _length(item: Any) -> int | None:
    if item is None:
        return 1
    begin, end, stride, d = item
    return None if d is None else len(range(*slice(begin, end, stride).indices(d)))


def part_sizes(sizes: Sequence[int], n: int, axis: int) -> list[int]:
    """Return the sizes of a split with a -1 worked out.

    raises InvalidArgumentError where they do not make up n, the size of the axis
    """
    rest = [i for i, s in enumerate(sizes) if s == -1]
    total = sum(s for s in sizes if s > 0)
    if len(rest) > 1 or any(s < -1 for s in sizes) or (total > n if rest else total != n):
        raise InvalidArgumentError(
            what=f"size_splits do not make up dimension {axis} of size {n}",
            found=list(sizes),
            wanted=f"sizes that add up to {n}, of which one may be -1",
        )
    return [n - total if s == -1 else s for s in sizes]


def known_bounds(bounds: np.ndarray) -> list[int]:
    """Return bounds as numbers. Raises TypeError where one is unknown: tracing follows shapes through slices."""
    return bounds.tolist() if bounds.dtype != object else [int(b) for b in bounds]
