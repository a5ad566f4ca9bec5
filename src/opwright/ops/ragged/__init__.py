"""Ragged tensors, `ow.ragged`: rows of different lengths.

Lives here: the public names.  Not here: packed sequences for recurrent operators (../sequence/).
"""

from __future__ import annotations

from .functions import (
    boolean_mask,
    constant,
    map_flat_values,
    range,
    row_splits_to_segment_ids,
    segment_ids_to_row_splits,
    stack,
)
from .ragged_tensor import RaggedTensor, RaggedTensorSpec

__all__ = [
    "RaggedTensor",
    "RaggedTensorSpec",
    "boolean_mask",
    "constant",
    "map_flat_values",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
]
