"""Reducing what losses and metrics give for each sample to one number, with weights and masks.

Lives here: shapes brought together, weights applied, the reductions.  Not here: the losses themselves (losses/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType
from ..ops import array, dispatch, math
from ..ops.tensor import TensorLike
from . import backend

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

REDUCTIONS = ("sum", "sum_over_batch_size", "mean", "mean_with_sample_weight", "none")


def as_floating(value: Any, dtype: DType) -> TensorLike | Tensor:
    """`value` as a tensor of a floating dtype; tensors of others are cast, lists and arrays made so."""
    if isinstance(value, TensorLike):
        return value if value.dtype is dtype else array.cast(value, dtype)
    array_ = np.asarray(value)
    if array_.dtype == object or array_.dtype.kind in "SU":
        return array.cast(dispatch.to_tensor(value), dtype)
    return dispatch.to_tensor(array_.astype(dtype.np), dtype)


def same_rank(x: Any, y: Any, expand_rank_1: bool = True) -> tuple[Any, Any]:
    """The two with a last axis of size 1 taken off or put on where their ranks differ by one."""
    a, b = x.shape.rank, y.shape.rank
    if a is None or b is None or a == b:
        return x, y
    if a == b + 1 and x.shape[-1] == 1:
        return (x, array.expand_dims(y, -1)) if b == 1 and expand_rank_1 else (array.squeeze(x, [-1]), y)
    if b == a + 1 and y.shape[-1] == 1:
        return (array.expand_dims(x, -1), y) if a == 1 and expand_rank_1 else (x, array.squeeze(y, [-1]))
    return x, y


def weigh(values: Any, sample_weight: Any) -> Any:
    """Values times weights, which may have fewer axes: then each goes for all that lies under it."""
    if sample_weight is None:
        return values
    weight = array.cast(dispatch.to_tensor(sample_weight), values.dtype)
    values, weight = same_rank(values, weight)
    return values * under(weight, values)


def under(weight: Any, values: Any) -> Any:
    """The weights with axes of size 1 put on until they have the rank of the values."""
    if weight.shape.rank not in (None, 0) and values.shape.rank is not None:
        for _ in range(values.shape.rank - weight.shape.rank):
            weight = array.expand_dims(weight, -1)
    return weight


def with_mask(sample_weight: Any, mask: Any, dtype: DType, reduction: str) -> Any:
    """Sample weights that leave out what the mask does.

    Means are over what the mask leaves: the rest is scaled up so that a division by the number of all is one by theirs.
    """
    if mask is None:
        return sample_weight
    mask = array.cast(mask, dtype)
    if reduction in ("mean", "sum_over_batch_size"):
        every = array.cast(array.size(mask), dtype)
        mask = mask * (every / (math.reduce_sum(mask) + backend.epsilon()))
    if sample_weight is None:
        return mask
    weight = array.cast(dispatch.to_tensor(sample_weight), dtype)
    mask, weight = same_rank(mask, weight)
    return under(weight, mask) * mask


def reduced(values: Any, reduction: str, sample_weight: Any = None) -> Any:
    """One number of many: their sum, their sum by their count, or by the sum of the weights; or the values."""
    if reduction == "none":
        return values
    total = math.reduce_sum(values)
    if reduction == "sum" or values.shape.rank == 0:
        return total
    if reduction == "mean_with_sample_weight" and sample_weight is not None:
        weight = array.cast(dispatch.to_tensor(sample_weight), values.dtype)
        return math.divide_no_nan(
            total, math.reduce_sum(array.broadcast_to(under(same_rank(values, weight)[1], values), array.shape(values)))
        )
    return math.divide_no_nan(total, array.cast(array.size(values), values.dtype))


def checked(reduction: Any) -> str:
    """The reduction's name. Raises ValueError for one that is not known."""
    name = "none" if reduction is None else "sum_over_batch_size" if reduction == "auto" else str(reduction)
    if name not in REDUCTIONS:
        raise ValueError(
            f"Invalid value for argument `reduction`. Expected one of {set(REDUCTIONS)}. Received: "
            f"reduction={reduction}"
        )
    return name
