"""Arrays: making, shaping, joining, slicing, indexing, moving and selecting tensors.

Lives here: the family's public names.  Not here: arithmetic (math/), matrices (linalg/).
"""

from __future__ import annotations

from .casting import bitcast, cast, saturate_cast
from .constants import Const, eye, fill, linspace, one_hot, ones, ones_like, range, zeros, zeros_like
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
from .shaping import shape_op as shape

__all__ = [
    "Const",
    "bitcast",
    "broadcast_to",
    "cast",
    "expand_dims",
    "eye",
    "fill",
    "identity",
    "identity_without_record",
    "linspace",
    "one_hot",
    "ones",
    "ones_like",
    "range",
    "rank",
    "reshape",
    "saturate_cast",
    "shape",
    "shape_op",
    "size",
    "squeeze",
    "stop_gradient",
    "sum_to_shape_of",
    "zeros",
    "zeros_like",
]
