"""Sparse constants with their zeros: what a file stores of a tensor, put where it belongs.

Lives here: `dense_of`.
Not here: whether the index arrays are sound, which the verifier has seen (format/constants.py).

A file stores the elements in an order of its own: that of the levels in `traversal_order`, the tensor's dimensions
(counted in blocks where blocked) and after them the dimensions of the blocks. A dense level goes through all of its
places, a compressed one (CSR) through those that it lists for each position of the level above.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import DType
from ..ops.shapes import bounded


def dense_of(sparsity: Any, stored: np.ndarray, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """The tensor of `shape` whose stored elements are these, 0 elsewhere.

    raises ResourceExhaustedError above the flag max_activation_bytes
    """
    bounded(shape, dtype, "a sparse constant with its zeros")
    dense = np.zeros(shape, dtype.np)
    if not dense.size:
        return dense
    order, blocks = np.asarray(sparsity.traversal_order).tolist(), np.asarray(sparsity.block_map).tolist()
    rank = len(shape)
    places: dict[int, np.ndarray] = {}  # by level of the tensor and its blocks, where each position is along it
    positions = 1
    for level, metadata in zip(order, sparsity.dim_metadata):
        if metadata.format == 0:
            above = np.repeat(np.arange(positions), metadata.dense_size)
            here = np.tile(np.arange(metadata.dense_size), positions)
        else:
            counts: Any = np.diff(np.asarray(metadata.array_segments.values).astype(np.int64))
            above = np.repeat(np.arange(positions), counts)
            here = np.asarray(metadata.array_indices.values if len(above) else ()).astype(np.int64)
        places = {known: place[above] for known, place in places.items()} | {level: here}
        positions = len(here)
    sizes = {blocks[level - rank]: m.dense_size for level, m in zip(order, sparsity.dim_metadata) if level >= rank}
    for number, d in enumerate(blocks):
        places[d] = places[d] * sizes[d] + places[rank + number]
    dense[tuple(places[d] for d in range(rank))] = stored[:positions] if rank else stored[0]
    return dense
