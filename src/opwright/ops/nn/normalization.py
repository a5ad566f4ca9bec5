"""Batch, layer and local response normalization.

Lives here: FusedBatchNorm, LayerNorm, LRN, and batch_normalization by given statistics.
Not here: moments (tensor_moments.py), moving averages (nn/layers/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...core.dtypes import DType, bfloat16, float16, float32, float64, floating
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import dispatch, lod_propagation
from ..accumulation import mean_over, wide, wide_dtype
from ..array import cast, expand_dims, ones_like, reshape
from ..array import range as range_
from ..array.shape_operators import shape_op, sum_to_shape_of
from ..attributes import Attr, at_least, one_of
from ..definition import operator
from ..linalg import matmul
from ..math import abs as abs_
from ..math import maximum, reduce_mean, reduce_prod, reduce_sum, rsqrt
from ..math import pow as pow_
from ..registry import documented_by
from ..shape_inference import axes_in, static_axes
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from ..windows import channel_axis

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """Normalize x by given statistics, which broadcast with it. offset, scale: may be None.

    .. math:: y = scale \\frac{x - mean}{\\sqrt{variance + variance\\_epsilon}} + offset

    For 16-bit x, wider statistics and parameters are combined in float32, then rounded to the dtype of x.
    """
    x = dispatch.to_tensor(x)
    dtype = x.dtype
    if dtype.size == 2 and any(getattr(v, "dtype", dtype) != dtype for v in (mean, variance, offset, scale)):
        dtype = float32
    mean, variance = (cast(m, dtype) for m in (mean, variance))
    inverse = rsqrt(variance + variance_epsilon)
    if scale is not None:
        inverse = inverse * cast(scale, dtype)
    base = -mean * inverse if offset is None else cast(offset, dtype) - mean * inverse
    result: Tensor = x * cast(inverse, x.dtype) + cast(base, x.dtype)
    return result


def batch_norm_with_global_normalization(
    input: Any,
    mean: Any,
    variance: Any,
    beta: Any,
    gamma: Any,
    variance_epsilon: Any,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Tensor:
    """Compute batch_normalization, with its argument names of TensorFlow 1."""
    return batch_normalization(
        input, mean, variance, beta, gamma if scale_after_normalization else None, variance_epsilon, name
    )


BATCH_FORMATS = ("NHWC", "NCHW", "NDHWC", "NCDHW")


def _statistics_dtype(dtype: DType) -> DType:
    """Return the dtype of the statistics of x: at least float32."""
    return float64 if dtype is float64 else float32


@operator
class FusedBatchNorm(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Apply batch normalization over all dimensions but the channels.

    .. math:: y = scale \\frac{x - \\mu}{\\sqrt{\\sigma^2 + epsilon}} + offset

    is_training: mu and sigma^2 are moments of the batch; batch_mean is mu, batch_variance is sigma^2 n / (n - 1), each
    averaged with `mean` and `variance` with weights exponential_avg_factor and 1 - exponential_avg_factor. Otherwise mu
    and sigma^2 are `mean` and `variance`, which are also the outputs.
    x: [batch, *spatial, channels] or channels second; scale, offset, mean, variance: [channels], float32 (float64 for
    float64 x); mean and variance may be omitted, or empty, in training with exponential_avg_factor 1.
    raises InvalidArgumentError if channels differ
    """

    x = Input(floating, rank=(4, 5))
    scale = Input((float32, float64), rank=1)
    offset = Input((float32, float64), rank=1, like="scale")
    mean = Input((float32, float64), rank=1, like="scale", optional=True)
    variance = Input((float32, float64), rank=1, like="scale", optional=True)
    y = Output(like="x")
    batch_mean = Output(like="scale", rows=False)
    batch_variance = Output(like="scale", rows=False)
    epsilon = Attr(float, default=0.0001)
    exponential_avg_factor = Attr(float, default=1.0)
    data_format = Attr(str, default="NHWC", check=one_of(*BATCH_FORMATS))
    is_training = Attr(bool, default=True)
    lod = "as x"

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        spec, channel = op.x.spec, channel_axis(op.data_format)
        if spec.shape.rank not in (None, len(op.data_format)):
            raise InvalidArgumentError(
                what="x and data_format differ in rank", found=spec.short(), wanted=op.data_format
            )
        if op.scale.spec.dtype is not _statistics_dtype(spec.dtype):
            raise InvalidArgumentError(
                what="scale has the wrong dtype",
                found=op.scale.spec.dtype.name,
                wanted=f"{_statistics_dtype(spec.dtype).name} beside x of {spec.dtype.name}",
            )
        channels = None if spec.shape.dims is None else spec.shape[channel]
        required = ["scale", "offset"]
        if not op.is_training or op.exponential_avg_factor != 1.0:
            required += ["mean", "variance"]
        for name in required:
            operand = getattr(op, name)
            if operand is None:
                raise InvalidArgumentError(
                    what=f"{name} is missing",
                    wanted=f"{name} where is_training is False, or exponential_avg_factor is not 1",
                )
            size = operand.spec.shape[0] if operand.spec.shape.rank == 1 else None
            if size is not None and channels is not None and size != channels:
                raise InvalidArgumentError(
                    what=f"{name} must have the same number of elements as the channels of x",
                    found={name: size, "channels": channels},
                )
            channels = size if channels is None else channels
        dims = spec.shape.dims
        sizes = [None] * len(op.data_format) if dims is None else list(dims)
        sizes[channel] = channels
        statistics = TensorSpec([channels], op.scale.spec.dtype)
        return spec.with_shape(sizes), statistics, statistics

    def compute(op, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> tuple[Any, Any, Any]:
        channel = channel_axis(op.data_format)
        axes = tuple(i for i in range(x.ndim) if i != channel)
        broadcast_shape = tuple(-1 if i == channel else 1 for i in range(x.ndim))
        wide_x = x.astype(scale.dtype, copy=False)
        if op.is_training:
            n = x.size // max(x.shape[channel], 1)
            mu = mean_over(wide_x, axes, wide_x.dtype) if n else np.full_like(scale, np.nan)
            centered = wide_x - mu.reshape(broadcast_shape)
            sigma2 = mean_over(centered * centered, axes, wide_x.dtype) if n else np.full_like(scale, np.nan)
            factor = scale.dtype.type(op.exponential_avg_factor)
            batch_mean, batch_variance = mu, sigma2 * scale.dtype.type(n / max(n - 1, 1))
            if factor != 1:
                batch_mean = factor * mu + (1 - factor) * mean
                batch_variance = factor * batch_variance + (1 - factor) * variance
        else:
            mu, sigma2, batch_mean, batch_variance = mean, variance, mean, variance
            centered = wide_x - mu.reshape(broadcast_shape)
        inverse = scale / np.sqrt(sigma2 + scale.dtype.type(op.epsilon))
        y = centered * inverse.reshape(broadcast_shape) + offset.reshape(broadcast_shape)
        return y.astype(x.dtype, copy=False), batch_mean.astype(scale.dtype), batch_variance.astype(scale.dtype)

    def gradient(
        op, dy: Any, dbatch_mean: Any, dbatch_variance: Any
    ) -> tuple[Any, Any, Any, Any, Any] | tuple[Any, Any, Any, Any | None, Any | None]:
        channel, rank = channel_axis(op.data_format), len(op.data_format)
        axes = [i for i in range(rank) if i != channel]
        broadcast_shape = [-1 if i == channel else 1 for i in range(rank)]
        dtype = op.scale.dtype
        x, dy, scale = cast(op.x, dtype), cast(dy, dtype), op.scale
        doffset = reduce_sum(dy, axis=axes)
        if not op.is_training:
            inverse = rsqrt(op.variance + op.epsilon)
            centered = x - reshape(op.mean, broadcast_shape)
            weighted = reduce_sum(dy * centered, axis=axes)
            dx = dy * reshape(scale * inverse, broadcast_shape)
            dmean = dbatch_mean - doffset * scale * inverse
            dvariance = dbatch_variance - 0.5 * weighted * scale * inverse * inverse * inverse
            return cast(dx, op.x.dtype), weighted * inverse, doffset, dmean, dvariance
        centered = x - reduce_mean(x, axis=axes, keepdims=True)
        inverse = rsqrt(reduce_mean(centered * centered, axis=axes, keepdims=True) + op.epsilon)
        normalized = centered * inverse
        dscale = reduce_sum(dy * normalized, axis=axes)
        n = cast(reduce_prod([shape_op(x)[i] for i in axes]), dtype)
        residual = dy - reshape(doffset, broadcast_shape) / n - normalized * reshape(dscale, broadcast_shape) / n
        dx = reshape(scale, broadcast_shape) * inverse * residual
        # the running statistics are also outputs
        factor = op.exponential_avg_factor
        unbiased = maximum(n - 1.0, ones_like(n))
        dx = dx + factor * (
            reshape(dbatch_mean, broadcast_shape) / n
            + 2.0 * centered * reshape(dbatch_variance, broadcast_shape) / unbiased
        )
        dmean = None if op.mean is None or factor == 1.0 else dbatch_mean * (1.0 - factor)
        dvariance = None if op.variance is None or factor == 1.0 else dbatch_variance * (1.0 - factor)
        return cast(dx, op.x.dtype), dscale, doffset, dmean, dvariance


@documented_by(FusedBatchNorm)
def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize a batch; return (y, running mean, running variance). epsilon: at least 1.001e-5, as accelerators
    require.
    """
    return FusedBatchNorm(
        *(x, scale, offset, mean, variance),
        epsilon=max(epsilon, 1.001e-5),
        data_format=data_format,
        is_training=bool(is_training),
        exponential_avg_factor=exponential_avg_factor,
        name=name,
    )


@operator
class LayerNorm(OperatorDefinition):
    """Apply layer normalization over the dimensions `axis` (Ba et al. 2016).

    .. math:: y = scale \\frac{x - \\mu}{\\sqrt{\\sigma^2 + epsilon}} + offset

    scale, offset: of the sizes of x at `axis`; by default 1 and 0. 16-bit floats are computed in float32.
    raises InvalidArgumentError if sizes differ
    """

    x = Input(floating)
    scale = Input(floating, like="x", optional=True)
    offset = Input(floating, like="x", optional=True)
    y = Output(like="x")
    axis = Attr([int], default=(-1,))
    epsilon = Attr(float, default=1e-5)
    lod = lod_propagation.along("axis", "x")

    def infer(op) -> TensorSpec:
        shape = op.x.spec.shape
        if shape.dims is None:
            return op.x.spec
        expected = TensorShape([shape[i] for i in sorted(axes_in(op.axis, len(shape)))])
        for name in ("scale", "offset"):
            operand = getattr(op, name)
            if operand is not None and not operand.spec.shape.is_compatible_with(expected):
                raise InvalidArgumentError(
                    what=f"{name} does not have the shape of the normalised dimensions",
                    found=operand.spec.short(),
                    wanted=str(expected),
                )
        return op.x.spec

    def compute(op, x: np.ndarray, scale: Any, offset: Any) -> np.ndarray:
        axes: tuple[int, ...] = tuple(op.axis)
        wide_x = x.astype(wide(x.dtype), copy=False)
        broadcast_shape = _sizes_at(axes, x.ndim, x.shape)
        centered = wide_x - mean_over(wide_x, axes, wide_x.dtype, keepdims=True)
        variance = mean_over(centered * centered, axes, wide_x.dtype, keepdims=True)
        y = centered / np.sqrt(variance + wide_x.dtype.type(op.epsilon))
        if scale is not None:
            y = y * scale.reshape(broadcast_shape)
        if offset is not None:
            y = y + offset.reshape(broadcast_shape)
        result: np.ndarray = y.astype(x.dtype, copy=False)
        return result

    def gradient(op, dy: Any) -> tuple[Any, Any, Any]:
        dtype = wide_dtype(op.x.dtype)
        axes = list(op.axis)
        x, dy = cast(op.x, dtype), cast(dy, dtype)
        centered = x - reduce_mean(x, axis=axes, keepdims=True)
        inverse = rsqrt(reduce_mean(centered * centered, axis=axes, keepdims=True) + op.epsilon)
        normalized = centered * inverse
        scaled, dscale, doffset = dy, None, None
        if op.scale is not None:
            scaled = dy * _aligned(cast(op.scale, dtype), op.axis, x)
            dscale = cast(_over_others(dy * normalized, op.axis, op.scale), op.x.dtype)
        if op.offset is not None:
            doffset = cast(_over_others(dy, op.axis, op.offset), op.x.dtype)
        mean_scaled = reduce_mean(scaled, axis=axes, keepdims=True)
        mean_product = reduce_mean(scaled * normalized, axis=axes, keepdims=True)
        return cast(inverse * (scaled - mean_scaled - normalized * mean_product), op.x.dtype), dscale, doffset


def _sizes_at(axes: Any, rank: int, sizes: Any) -> list[int]:
    """Return `sizes` at the axes, 1 elsewhere."""
    positions = {a % rank for a in axes}
    return [sizes[i] if i in positions else 1 for i in range(rank)]


def _aligned(like: Tensor, axes: Any, x: Any) -> Tensor:
    """Reshape `like`, which has the sizes of x at `axes`, to broadcast with x.

    raises InvalidArgumentError if the rank of x is required and unknown
    """
    rank = x.shape.rank
    if sorted(axes) == list(range(-len(axes), 0)):
        return like
    if rank is None:
        raise InvalidArgumentError(
            op="LayerNorm",
            what="the gradient needs the rank of x",
            found=x.spec.short(),
            wanted="a known rank, or axis counted from the last dimension on",
        )
    positions = set(axes_in(axes, rank))
    for i in range(rank):
        if i not in positions:
            like = expand_dims(like, i)
    return like


def _over_others(g: Any, axes: Any, like: Any) -> Tensor:
    """Sum `g` over all dimensions but `axes`, to the shape of `like`."""
    return reshape(sum_to_shape_of(g, _aligned(like, axes, g)), shape_op(like))


@documented_by(LayerNorm)
def layer_normalization(
    x: Any, scale: Any = None, offset: Any = None, axis: Any = -1, epsilon: float = 1e-5, name: str | None = None
) -> Tensor:
    """Normalize over one or several axes."""
    return LayerNorm(x, scale, offset, axis=static_axes(axis) or (-1,), epsilon=epsilon, name=name)


@operator
class LRN(OperatorDefinition):
    """Apply local response normalization across channels (Krizhevsky et al. 2012, section 3.3).

    .. math:: output_c = input_c \\Big/ \\left( bias + alpha \\sum_{|j - c| \\le depth\\_radius}
              input_j^2 \\right)^{beta}

    input: [batch, height, width, channels]. 16-bit floats are computed in float32.
    """

    input = Input((float16, bfloat16, float32, float64), rank=4)
    output = Output(like="input")
    depth_radius = Attr(int, default=5, check=at_least(0))
    bias = Attr(float, default=1.0)
    alpha = Attr(float, default=1.0)
    beta = Attr(float, default=0.5)

    def compute(op, input: np.ndarray) -> np.ndarray:
        x = input.astype(wide(input.dtype), copy=False)
        r, kind = op.depth_radius, x.dtype.type
        squares = np.pad(x * x, [(0, 0)] * 3 + [(r, r)])
        window_sums = sliding_window_view(squares, 2 * r + 1, axis=-1).sum(-1) if x.size else x
        output: np.ndarray = (x * (kind(op.bias) + kind(op.alpha) * window_sums) ** kind(-op.beta)).astype(
            input.dtype, copy=False
        )
        return output

    def gradient(op, dy: Tensor) -> Tensor:
        x = cast(op.input, wide_dtype(op.input.dtype))
        dy = cast(dy, x.dtype)
        channels = range_(shape_op(x)[3])
        band = cast(
            abs_(channels[:, None] - channels[None, :]) <= op.depth_radius, x.dtype
        )  # [channels, channels], symmetric
        scale = op.bias + op.alpha * matmul(x * x, band)
        window_sums = matmul(dy * x * pow_(scale, -op.beta - 1.0), band)
        return cast(dy * pow_(scale, -op.beta) - (2.0 * op.alpha * op.beta) * x * window_sums, op.input.dtype)


local_response_normalization: signatures.LRN = LRN.as_function("local_response_normalization")
lrn = local_response_normalization
