"""Normalisations and softmax.

Lives here: rules of ATen's batch, layer, group and instance norms. Not here: moments alone (reductions.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.dtypes import float32
from ....ops import array, math, nn
from ....ops.nn.normalization import FusedBatchNorm
from .reductions import moments
from .table import AtenCall, aten, rank_of, sizes, tensor, to_nchw, to_nhwc


@aten("softmax", "_softmax", "special_softmax")
def softmax(op: AtenCall, x: Any, dim: int, *rest: Any, **options: Any) -> Any:
    x = tensor(x, op.dtype)
    return nn.softmax(x, axis=dim % rank_of(x)) if rank_of(x) else array.ones([], op.dtype)


@aten("_safe_softmax")
def safe_softmax(op: AtenCall, x: Any, dim: int, *rest: Any, **options: Any) -> Any:
    x = tensor(x, op.dtype)
    hidden = math.reduce_all(math.equal(x, tensor(float("-inf"), op.dtype)), [dim % max(rank_of(x), 1)], True)
    return array.where(hidden, tensor(0, op.dtype), softmax(op, x, dim))


@aten("log_softmax", "_log_softmax", "special_log_softmax")
def log_softmax(op: AtenCall, x: Any, dim: int, *rest: Any, **options: Any) -> Any:
    x = tensor(x, op.dtype)
    return nn.log_softmax(x, axis=dim % rank_of(x)) if rank_of(x) else array.zeros([], op.dtype)


def _by_channel(vector: Any, rank: int) -> Any:
    return array.reshape(tensor(vector), [-1] + [1] * (rank - 2)) if rank > 2 else tensor(vector)


def _normalized(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, eps: float) -> Any:
    """Return the batch norm of channels-first tensors by given moments of channels."""
    rank = rank_of(x)
    dtype = x.dtype
    if rank == 4 and dtype is float32 and x.shape[1] is not None:
        count = int(x.shape[1])
        scale = array.ones([count]) if weight is None else tensor(weight)
        offset = array.zeros([count]) if bias is None else tensor(bias)
        operands = to_nhwc(x), scale, offset, tensor(mean), tensor(variance)
        y, *_ = FusedBatchNorm(*operands, epsilon=float(eps), is_training=False)  # fused_batch_norm has a least epsilon
        return to_nchw(y)
    factor = math.rsqrt(tensor(variance) + tensor(eps, tensor(variance).dtype))
    if weight is not None:
        factor = factor * tensor(weight)
    offset = -tensor(mean) * factor
    if bias is not None:
        offset = offset + tensor(bias)
    return array.cast(x, factor.dtype) * _by_channel(factor, rank) + _by_channel(offset, rank)


def _batch_moments(x: Any) -> tuple[Any, Any]:
    axes = [0, *range(2, rank_of(x))]
    return moments(x, axes, False, 0)


@aten("_native_batch_norm_legit_no_training")
def batch_norm_inference(
    op: AtenCall, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    y = array.cast(_normalized(tensor(x), weight, bias, mean, variance, eps), op.dtype)
    return y, array.zeros([0], op.dtype), array.zeros([0], op.dtype)


@aten("batch_norm", "cudnn_batch_norm_inference")
def batch_norm(
    op: AtenCall,
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *rest: Any,
) -> Any:
    x = tensor(x)
    if training or mean is None:
        variance, mean = _batch_moments(x)
    return array.cast(_normalized(x, weight, bias, mean, variance, eps), op.dtype)


@aten("_native_batch_norm_legit_functional")
def batch_norm_training(
    op: AtenCall, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float
) -> Any:
    x = tensor(x)
    if not training:
        y = _normalized(x, weight, bias, mean, variance, eps)
        return y, array.zeros([0]), array.zeros([0]), tensor(mean), tensor(variance)
    batch_variance, batch_mean = _batch_moments(x)
    y = _normalized(x, weight, bias, batch_mean, batch_variance, eps)
    count = math.reduce_prod(array.gather(array.shape(x), [0, *range(2, rank_of(x))]))
    count = array.cast(count, batch_variance.dtype)
    unbiased = batch_variance * count / (count - tensor(1, count.dtype))
    rate = tensor(momentum, count.dtype)
    rest = tensor(1.0 - momentum, count.dtype)
    saved = math.rsqrt(batch_variance + tensor(eps, count.dtype))
    return (
        array.cast(y, op.dtype),
        batch_mean,
        saved,
        tensor(mean) * rest + batch_mean * rate,
        tensor(variance) * rest + unbiased * rate,
    )


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats(
    op: AtenCall, x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    x = tensor(x)
    variance, mean = _batch_moments(x)
    y = _normalized(x, weight, bias, mean, variance, eps)
    return y, mean, math.rsqrt(variance + tensor(eps, variance.dtype))


@aten("instance_norm")
def instance_norm(
    op: AtenCall,
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    *rest: Any,
) -> Any:
    x = tensor(x)
    if not use_input_stats:
        return _normalized(x, weight, bias, mean, variance, eps)
    return _affine(_standardized(x, list(range(2, rank_of(x))), eps), weight, bias)


def _standardized(x: Any, axes: list[int], eps: float) -> Any:
    variance, mean = moments(x, axes, True, 0)
    return (x - mean) * math.rsqrt(variance + tensor(eps, x.dtype))


def _affine(y: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        y = y * _by_channel(weight, rank_of(y))
    return y if bias is None else y + _by_channel(bias, rank_of(y))


@aten("layer_norm")
def layer_norm(
    op: AtenCall, x: Any, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5, *rest: Any
) -> Any:
    x = tensor(x)
    axes = list(range(-len(shape), 0))
    weight, bias = (None if v is None else tensor(v) for v in (weight, bias))
    return nn.layer_normalization(x, weight, bias, axis=axes, epsilon=float(eps))


@aten("native_layer_norm")
def native_layer_norm(op: AtenCall, x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    x = tensor(x)
    variance, mean = moments(x, [rank_of(x) - 1 - i for i in range(len(shape))], True, 0)
    return layer_norm(op, x, shape, weight, bias, eps), mean, math.rsqrt(variance + tensor(eps, x.dtype))


@aten("rms_norm")
def rms_norm(op: AtenCall, x: Any, shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    x = tensor(x)
    axes = [rank_of(x) - 1 - i for i in range(len(shape))]
    small = 1.1920929e-07 if eps is None else eps
    y = x * math.rsqrt(math.reduce_mean(math.square(x), axes, True) + tensor(small, x.dtype))
    return y if weight is None else y * tensor(weight)


@aten("group_norm")
def group_norm(
    op: AtenCall, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *rest: Any
) -> Any:
    x = tensor(x)
    n, channels, *space = sizes(x)
    if space.count(None) + (n is None) > 1:
        raise ValueError("a group norm of several unknown sizes")
    dims = [-1 if d is None else d for d in (n, groups, int(channels or 0) // groups, *space)]
    y = _standardized(array.reshape(x, dims), list(range(2, len(dims))), eps)
    return _affine(array.reshape(y, [-1 if d is None else d for d in (n, channels, *space)]), weight, bias)


@aten("native_group_norm")
def native_group_norm(
    op: AtenCall, x: Any, weight: Any, bias: Any, n: Any, channels: Any, space: Any, groups: int, eps: float
) -> Any:
    x = tensor(x)
    y = group_norm(op, x, groups, weight, bias, eps)
    flat = array.reshape(x, [-1, groups, int(channels) // groups * int(space)])
    variance, mean = moments(flat, [2], False, 0)
    return y, mean, math.rsqrt(variance + tensor(eps, x.dtype))
