"""Dropout.

Lives here: dropout, stateless_dropout.  Not here: the layer, which applies it in training only (nn/layers/).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtypes import DType
from ...core.shapes import TensorShape
from .. import dispatch
from ..array import cast, where, zeros_like
from ..array.shape_operators import shape_op
from ..random import stateless_uniform, uniform
from ..tensor import Tensor, TensorLike
from ..windows import wide_dtype


def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> Tensor:
    """Set elements to 0 with probability `rate`, and scale the others by 1 / (1 - rate) (Srivastava et al. 2014).

    .. math:: y_i = x_i m_i / (1 - rate), \\quad P(m_i = 0) = rate

    noise_shape: the shape of m, which broadcasts with x; None in it means x's size.
    raises ValueError for a rate outside [0, 1) and for x that is not floating
    """
    return _dropout(x, rate, noise_shape, lambda shape, dtype: uniform(shape, dtype=dtype, seed=seed), name)


def stateless_dropout(
    x: Any, rate: Any, seed: Any, rng_alg: Any = "auto_select", noise_shape: Any = None, name: str | None = None
) -> Tensor:
    """Apply dropout with zeros determined by `seed` (two integers)."""
    return _dropout(x, rate, noise_shape, lambda shape, dtype: stateless_uniform(shape, seed, dtype=dtype), name)


def _dropout(x: Any, rate: Any, noise_shape: Any, random: Callable[[Any, DType], Tensor], name: str | None) -> Tensor:
    x = dispatch.to_tensor(x)
    is_number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
    requirement = "`rate` must be a scalar tensor or a float in the range [0, 1)."
    if not is_number and not (isinstance(rate, TensorLike) or hasattr(rate, "dtype")):
        raise ValueError(f"{requirement} Received: rate={rate!r}")
    if is_number and not 0 <= rate < 1:
        raise ValueError(f"{requirement} Received: rate={rate!r}")
    if not x.dtype.is_floating:
        raise ValueError(
            f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype={x.dtype!r}"
        )
    if is_number and rate == 0:
        result: Tensor = x  # as in TensorFlow: no numbers are drawn
        return result
    if not is_number:
        rate = dispatch.to_tensor(rate)
        if rate.shape.rank not in (None, 0):
            raise ValueError(f"{requirement} Received: rate of shape {rate.shape}")
        rate = cast(rate, wide_dtype(x.dtype))
    noise = random(_noise_shape(x, noise_shape), wide_dtype(x.dtype))  # 16 bits are too coarse for a probability
    scaled = x * cast(1.0 / (1.0 - rate), x.dtype)
    return where(noise >= rate, scaled, zeros_like(scaled), name=name)


def _noise_shape(x: Any, noise_shape: Any) -> Any:
    if noise_shape is None:
        return shape_op(x)
    if isinstance(noise_shape, TensorLike):
        return noise_shape
    dims = TensorShape([None if d is None or d == -1 else d for d in noise_shape])
    if dims.is_fully_defined():
        return tuple(dims)
    sizes = shape_op(x)
    return [sizes[i] if d is None else d for i, d in enumerate(dims)]
