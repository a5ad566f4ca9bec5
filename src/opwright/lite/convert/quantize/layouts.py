"""Layouts of sparse tensors: which elements are stored, and where they belong.

Lives here: `Layout`, `layout_of`, `in_blocks`.  Not here: which tensors are stored so (sparsity.py).

Rows of the last dimension are compressed (CSR): for each row the places of what is not zero, elements or blocks of
them, in index vectors of the least type that holds them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ops.specs import Sparsity

LEAST_SPARSITY = 0.3  # part of the elements that are zero, below which nothing is tried
WHOLE_BLOCKS = 0.9  # so much of that must be in blocks of zeros for a layout in blocks
TABLES = 128  # bytes that a layout takes beside its arrays, about


class Layout(NamedTuple):
    """How a tensor is stored: places of the blocks in each row, the blocks in order, the elements in each."""

    segments: np.ndarray
    indices: np.ndarray
    stored: np.ndarray
    block: int

    @property
    def size(self) -> int:
        """Bytes in the file, about."""
        return sum(_narrow(a).nbytes for a in (self.segments, self.indices)) + self.stored.nbytes + TABLES

    def of(self, shape: tuple[int, ...]) -> Sparsity:
        """Return where the elements of a tensor of this shape are, as types have it."""
        blocked = self.block > 1
        levels: list[int | tuple[np.ndarray, np.ndarray]] = [*shape[:-1]]
        levels.append((_narrow(self.segments), _narrow(self.indices)))
        if blocked:
            levels.append(self.block)
        return Sparsity(tuple(range(len(levels))), (len(shape) - 1,) if blocked else (), tuple(levels))


def layout_of(array: np.ndarray, block: int = 1) -> Layout:
    """The layout of an array whose last dimension is a multiple of `block`."""
    blocks = array.reshape(-1, array.shape[-1] // block, block)
    kept = (blocks != 0).any(axis=-1)
    segments = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return Layout(segments, np.nonzero(kept)[1], blocks[kept].reshape(-1), block)


def _narrow(numbers: np.ndarray) -> np.ndarray:
    most = int(numbers.max(initial=0))
    return numbers.astype(np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int32)


def sparsity_of(array: np.ndarray) -> float:
    """Which part of the elements is zero."""
    return 1.0 - np.count_nonzero(array) / max(array.size, 1)


def in_blocks(array: np.ndarray, block: int) -> bool:
    """Whether the zeros of a matrix are many, and most of them in whole blocks."""
    if array.ndim != 2 or not array.size or array.shape[-1] % block:
        return False
    zeros = sparsity_of(array)
    return zeros >= LEAST_SPARSITY and 1.0 - layout_of(array, block).stored.size / array.size >= WHOLE_BLOCKS * zeros
