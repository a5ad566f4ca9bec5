"""Arrays: making, shaping, joining, slicing, indexing, moving and selecting tensors.

Lives here: the family's public names.  Not here: arithmetic (math/), matrices (linalg/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.importing import lazily

if TYPE_CHECKING:
    from . import run_time_axes as run_time_axes
    from .casting import bitcast, cast, saturate_cast
    from .checking import (
        broadcast_dynamic_shape,
        broadcast_static_shape,
        ensure_shape,
        guarantee_const,
        identity_n,
        shape_n,
    )
    from .constants import Const, eye, fill, linspace, one_hot, ones, ones_like, range, zeros, zeros_like
    from .indexing import gather, gather_nd, unravel_index
    from .joining import concat, parallel_stack, repeat, stack, tile
    from .moving import reverse, reverse_sequence, roll, transpose
    from .padding import pad
    from .partitioning import dynamic_partition, dynamic_stitch
    from .rows import MergeRows as MergeRows
    from .rows import RowsAt as RowsAt
    from .scattering import (
        scatter_nd,
        tensor_scatter_nd_add,
        tensor_scatter_nd_max,
        tensor_scatter_nd_min,
        tensor_scatter_nd_sub,
        tensor_scatter_nd_update,
    )
    from .selecting import boolean_mask, meshgrid, searchsorted, sequence_mask, unique, unique_with_counts, where
    from .shaping import (
        broadcast_to,
        expand_dims,
        identity,
        identity_without_record,
        rank,
        reshape,
        shape_op,
        size,
        squeeze,
        stop_gradient,
        sum_to_shape_of,
    )
    from .shaping import (
        shape_op as shape,
    )
    from .slicing import getitem, strided_slice
    from .slicing import slice_op as slice
    from .spaces import batch_to_space, depth_to_space, space_to_batch, space_to_batch_nd, space_to_depth
    from .splitting import split, unstack

_HOMES = {
    ".": "run_time_axes",
    ".casting": "bitcast, cast, saturate_cast",
    ".checking": "broadcast_dynamic_shape, broadcast_static_shape, ensure_shape, guarantee_const, identity_n, shape_n",
    ".constants": "Const, eye, fill, linspace, one_hot, ones, ones_like, range, zeros, zeros_like",
    ".indexing": "gather, gather_nd, unravel_index",
    ".joining": "concat, parallel_stack, repeat, stack, tile",
    ".moving": "reverse, reverse_sequence, roll, transpose",
    ".padding": "pad",
    ".partitioning": "dynamic_partition, dynamic_stitch",
    ".rows": "MergeRows, RowsAt",
    ".scattering": (
        "scatter_nd, tensor_scatter_nd_add, tensor_scatter_nd_max, tensor_scatter_nd_min, tensor_scatter_nd_sub, "
        "tensor_scatter_nd_update"
    ),
    ".selecting": "boolean_mask, meshgrid, searchsorted, sequence_mask, unique, unique_with_counts, where",
    ".shaping": (
        "broadcast_to, expand_dims, identity, identity_without_record, rank, reshape, shape_op, shape_op as shape, "
        "size, squeeze, stop_gradient, sum_to_shape_of"
    ),
    ".slicing": "getitem, slice_op as slice, strided_slice",
    ".spaces": "batch_to_space, depth_to_space, space_to_batch, space_to_batch_nd, space_to_depth",
    ".splitting": "split, unstack",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

newaxis = None

__all__ = [
    "Const",
    "batch_to_space",
    "bitcast",
    "boolean_mask",
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "broadcast_to",
    "cast",
    "concat",
    "depth_to_space",
    "dynamic_partition",
    "dynamic_stitch",
    "ensure_shape",
    "expand_dims",
    "eye",
    "fill",
    "gather",
    "gather_nd",
    "getitem",
    "guarantee_const",
    "identity",
    "identity_n",
    "identity_without_record",
    "linspace",
    "meshgrid",
    "newaxis",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "parallel_stack",
    "range",
    "rank",
    "repeat",
    "reshape",
    "reverse",
    "reverse_sequence",
    "roll",
    "saturate_cast",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "shape",
    "shape_n",
    "shape_op",
    "size",
    "slice",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
    "split",
    "squeeze",
    "stack",
    "stop_gradient",
    "strided_slice",
    "sum_to_shape_of",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tile",
    "transpose",
    "unique",
    "unique_with_counts",
    "unravel_index",
    "unstack",
    "where",
    "zeros",
    "zeros_like",
]
