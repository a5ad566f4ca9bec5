"""Weighted reduction of losses and metrics per sample to a scalar.

Lives here: matching of shapes, weights, masks, the reductions.  Not here: the losses (losses/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType
from ..ops import array, dispatch, math
from ..ops.tensor import TensorLike
from . import backend

if TYPE_CHECKING:
    from ..ops.tensor import Tensor, TensorValue

REDUCTIONS = ("sum", "sum_over_batch_size", "mean", "mean_with_sample_weight", "none")


def as_floating(value: Any, dtype: DType) -> TensorLike | Tensor:
    """Convert a value to a tensor of a floating dtype."""
    if isinstance(value, TensorLike):
        return value if value.dtype is dtype else array.cast(value, dtype)
    array_ = np.asarray(value)
    if array_.dtype == object or array_.dtype.kind in "SU":
        return array.cast(dispatch.to_tensor(value), dtype)
    return dispatch.to_tensor(array_.astype(dtype.np), dtype)


def same_rank(x: Any, y: Any, expand_rank_1: bool = True) -> tuple[Any, Any]:
    """Squeeze or expand the last axis of size 1 so that the ranks match."""
    a, b = x.shape.rank, y.shape.rank
    if a is None or b is None or a == b:
        return x, y
    if a == b + 1 and x.shape[-1] == 1:
        return (x, array.expand_dims(y, -1)) if b == 1 and expand_rank_1 else (array.squeeze(x, [-1]), y)
    if b == a + 1 and y.shape[-1] == 1:
        return (array.expand_dims(x, -1), y) if a == 1 and expand_rank_1 else (x, array.squeeze(y, [-1]))
    return x, y


def apply_weights(values: Tensor, sample_weight: Any) -> Tensor:
    """Multiply values by weights, which may have fewer axes and then broadcast over the trailing ones."""
    if sample_weight is None:
        return values
    weight = array.cast(dispatch.to_tensor(sample_weight), values.dtype)
    values, weight = same_rank(values, weight)
    return values * expand_weights(weight, values)


def expand_weights(weight: TensorLike, values: Tensor) -> TensorLike:
    """Expand weights with trailing axes to the rank of the values."""
    if weight.shape.rank and values.shape.rank is not None:
        for _ in range(values.shape.rank - weight.shape.rank):
            weight = array.expand_dims(weight, -1)
    return weight


def mask_weights(
    sample_weight: TensorValue | None, mask: Tensor | None, dtype: DType, reduction: str
) -> TensorValue | None:
    """Return sample weights that are 0 where the mask is False.

    Means are over unmasked positions: weights are scaled so that division by the total count divides by theirs.
    """
    if mask is None:
        return sample_weight
    weights = array.cast(mask, dtype)
    if reduction in ("mean", "sum_over_batch_size"):
        every = array.cast(array.size(weights), dtype)
        weights = weights * (every / (math.reduce_sum(weights) + backend.epsilon()))
    if sample_weight is None:
        return weights
    factors: Tensor
    weights, factors = same_rank(weights, array.cast(dispatch.to_tensor(sample_weight), dtype))
    product: Tensor = expand_weights(factors, weights) * weights
    return product


def reduce_losses(values: Tensor, reduction: str, sample_weight: Any = None) -> Tensor:
    """Reduce values to a scalar: sum, mean, or mean by the sum of weights; or return them unreduced."""
    if reduction == "none":
        return values
    total = math.reduce_sum(values)
    if reduction == "sum" or values.shape.rank == 0:
        return total
    if reduction == "mean_with_sample_weight" and sample_weight is not None:
        weight = array.cast(dispatch.to_tensor(sample_weight), values.dtype)
        return math.divide_no_nan(
            total,
            math.reduce_sum(
                array.broadcast_to(expand_weights(same_rank(values, weight)[1], values), array.shape(values))
            ),
        )
    return math.divide_no_nan(total, array.cast(array.size(values), values.dtype))


def check_reduction(reduction: Any) -> str:
    """Return the reduction's name. Raises ValueError for an unknown one."""
    name = "none" if reduction is None else "sum_over_batch_size" if reduction == "auto" else str(reduction)
    if name not in REDUCTIONS:
        raise ValueError(
            f"Invalid value for argument `reduction`. Expected one of {set(REDUCTIONS)}. Received: "
            f"reduction={reduction}"
        )
    return name
