"""`keras.ops.nn`: layers of networks as functions of tensors.

Lives here: activations under promotion, convolutions, pooling, normalization, attention, encodings, crossentropies.
Not here: their formulas (nn/activations.py, nn/layers/, nn/losses/, ops/nn/).

Images are [batch, *spatial, channels], or with data_format "channels_first" [batch, channels, *spatial].
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from ...ops import array, dispatch, linalg, math
from ...ops import nn as ops_nn
from .. import activations, backend, losses
from ..layers.configurable_layer import data_format_name, padding_name, sizes
from ..layers.convolution import FORMATS, transposed_convolution
from ..layers.depthwise import depthwise_convolution
from ..layers.pooling import adaptive_pool
from . import elementwise, products
from .elementwise import polar as polar
from .promotion import as_floating, as_number, as_tensor, convert, of_one, promote, rank_of
from .reductions import moments as moments
from .sequences import ctc_decode as ctc_decode
from .sequences import ctc_loss as ctc_loss

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def _activation(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return an activation whose argument becomes floating."""

    @wraps(function)
    def converted(x: Any, *args: Any, **kwargs: Any) -> Tensor:
        return function(as_floating(x), *args, **kwargs)

    return converted


relu = of_one(ops_nn.relu, first=as_number)
relu6 = of_one(activations.relu6, first=as_number)
leaky_relu = _activation(activations.leaky_relu)
elu = _activation(activations.elu)
celu = _activation(activations.celu)
selu = _activation(activations.selu)
sigmoid = _activation(math.sigmoid)
hard_sigmoid = _activation(activations.hard_sigmoid)
log_sigmoid = _activation(activations.log_sigmoid)
hard_tanh = _activation(activations.hard_tanh)
tanh_shrink = _activation(activations.tanh_shrink)
hard_shrink = _activation(activations.hard_shrink)
soft_shrink = _activation(activations.soft_shrink)
log_softmax = _activation(activations.log_softmax)
sparsemax = _activation(activations.sparsemax)
softplus = _activation(activations.softplus)
softsign = _activation(activations.softsign)
silu = swish = _activation(activations.silu)
hard_silu = hard_swish = _activation(activations.hard_silu)
glu = _activation(activations.glu)
sparse_plus = _activation(activations.sparse_plus)
sparse_sigmoid = _activation(activations.sparse_sigmoid)
squareplus = _activation(activations.squareplus)


def threshold(x: Any, threshold: Any, default_value: Any) -> Tensor:
    """Return x where x > threshold, else default_value, in the dtype to which the three promote."""
    return activations.threshold(promote(x, threshold, default_value)[0], threshold, default_value)


def softmax(x: Any, axis: Any = -1) -> Tensor:
    """Return exp(x) divided by its sum along axes, None for all. Warns of an axis of size 1, where it is 1."""
    x = as_floating(x)
    if isinstance(axis, int) and -x.shape.rank <= axis < x.shape.rank and x.shape[axis] == 1:
        warnings.warn(
            f"You are using a softmax over axis {axis} of a tensor of shape {tuple(x.shape)}. This axis has size 1. "
            "The softmax operation will always return the value 1, which is likely not what you intended. Did you mean "
            "to use a sigmoid instead?",
            UserWarning,
            stacklevel=2,
        )
    return activations.softmax(x, axis)


def gelu(x: Any, approximate: bool = True) -> Tensor:
    """Return x times the probability that a normal number is at most x; approximate: by a hyperbolic tangent."""
    return activations.gelu(as_floating(x), approximate)


# ---- windows ------------------------------------------------------------------------------------------------------


def _rank(inputs: Any) -> int:
    """Return the number of spatial axes. Raises ValueError unless it is 1, 2 or 3."""
    rank = int(inputs.shape.rank) - 2
    if not 1 <= rank <= 3:
        raise ValueError(f"Images have 1 to 3 spatial axes, a batch and channels. Received: shape={inputs.shape}")
    return rank


def _pool(inputs: Any, kind: str, pool_size: Any, strides: Any, padding: str, data_format: Any) -> Tensor:
    x = dispatch.to_tensor(inputs)
    n = _rank(x)
    window = sizes(pool_size, n, "pool_size")
    steps = window if strides is None else sizes(strides, n, "strides")
    layout = FORMATS[n, data_format_name(data_format)]
    return ops_nn.pool(x, list(window), kind, list(steps), padding_name(padding).upper(), layout)


def max_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: Any = None
) -> Tensor:
    """Compute the largest value of each window; strides: by default the window's size."""
    return _pool(inputs, "MAX", pool_size, strides, padding, data_format)


def average_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: Any = None
) -> Tensor:
    """Compute the mean of each window; strides: by default the window's size."""
    return _pool(inputs, "AVG", pool_size, strides, padding, data_format)


def _adaptive(inputs: Any, output_size: Any, data_format: Any, reduce: Any) -> Any:
    x = dispatch.to_tensor(inputs)
    return adaptive_pool(x, sizes(output_size, _rank(x), "output_size"), data_format_name(data_format), reduce)


def adaptive_max_pool(inputs: Any, output_size: Any, data_format: Any = None) -> Any:
    """Compute the largest value of each of output_size parts of images."""
    return _adaptive(inputs, output_size, data_format, math.reduce_max)


def adaptive_average_pool(inputs: Any, output_size: Any, data_format: Any = None) -> Any:
    """Compute the mean of each of output_size parts of images."""
    return _adaptive(inputs, output_size, data_format, math.reduce_mean)


def conv(
    inputs: Any, kernel: Any, strides: Any = 1, padding: str = "valid", data_format: Any = None, dilation_rate: Any = 1
) -> Tensor:
    """Compute a convolution. kernel: [*sizes, channels, filters]; fewer channels than the images' are groups."""
    x, k = promote(inputs, kernel)
    n = _rank(x)
    return ops_nn.convolution(
        x,
        k,
        list(sizes(strides, n, "strides")),
        padding_name(padding).upper(),
        FORMATS[n, data_format_name(data_format)],
        list(sizes(dilation_rate, n, "dilation_rate")),
    )


def conv_transpose(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    output_padding: Any = None,
    data_format: Any = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """Compute a transposed convolution. kernel: [*sizes, filters, channels]; output_padding: see ConvTranspose."""
    x, k = promote(inputs, kernel)
    n = _rank(x)
    return transposed_convolution(
        x,
        k,
        sizes(strides, n, "strides"),
        padding_name(padding),
        None if output_padding is None else sizes(output_padding, n, "output_padding", allow_zero=True),
        sizes(dilation_rate, n, "dilation_rate"),
        data_format_name(data_format),
    )


def depthwise_conv(
    inputs: Any, kernel: Any, strides: Any = 1, padding: str = "valid", data_format: Any = None, dilation_rate: Any = 1
) -> Tensor:
    """Compute a depthwise convolution over one or two dimensions. kernel: [*sizes, channels, multiplier]."""
    x, k = promote(inputs, kernel)
    n = _rank(x)
    return depthwise_convolution(
        x,
        k,
        sizes(strides, n, "strides"),
        padding_name(padding),
        sizes(dilation_rate, n, "dilation_rate"),
        data_format_name(data_format),
    )


def separable_conv(
    inputs: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: Any = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """Compute a depthwise convolution, then a pointwise one. pointwise_kernel: [1, ..., channels, filters]."""
    y = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(y, pointwise_kernel, 1, "valid", data_format)


# ---- normalization ------------------------------------------------------------------------------------------------


def batch_normalization(
    x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None, epsilon: float = 1e-3
) -> Tensor:
    r"""Compute :math:`(x - mean) / \sqrt{variance + epsilon} \cdot scale + offset`, vectors along an axis."""
    x = as_floating(x)
    shape = [1] * x.shape.rank
    shape[axis] = -1
    m, v, o, s = (
        None if t is None else array.reshape(convert(t, x.dtype), shape) for t in (mean, variance, offset, scale)
    )
    return ops_nn.batch_normalization(x, m, v, o, s, epsilon)


def layer_normalization(
    x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1, epsilon: float | None = None, **kwargs: Any
) -> Tensor:
    """Subtract means over axes, divide by standard deviations, scale by gamma, add beta.

    epsilon: added to variances, by default `backend.epsilon`
    raises ValueError for other arguments
    """
    if kwargs.pop("rms_scaling", False):
        warnings.warn(
            "rms_scaling=True: use `rms_normalization`, which divides by roots of means of squares", stacklevel=2
        )
        return rms_normalization(x, gamma, axis, epsilon)
    if kwargs:
        raise ValueError(f"Unexpected arguments of layer_normalization: {sorted(kwargs)}")
    x = as_floating(x)
    axes = [axis] if isinstance(axis, int) else list(axis)
    wide = convert(x, "float32") if x.dtype.size < 4 else x
    m, v = ops_nn.moments(wide, axes, keepdims=True)
    y = (wide - m) * math.rsqrt(v + (backend.epsilon() if epsilon is None else epsilon))
    y = y if gamma is None else y * _along(gamma, wide, axes)
    y = y if beta is None else y + _along(beta, wide, axes)
    return convert(y, x.dtype)


def rms_normalization(x: Any, scale: Any = None, axis: Any = -1, epsilon: float | None = None) -> Tensor:
    """Divide by the root of the mean of squares over axes; scale: factors along these axes."""
    x = as_floating(x)
    axes = [axis] if isinstance(axis, int) else list(axis)
    wide = convert(x, "float32") if x.dtype.size < 4 else x
    squares = math.reduce_mean(math.square(wide), axes, True)
    y = wide * math.rsqrt(squares + (backend.epsilon() if epsilon is None else epsilon))
    return convert(y if scale is None else y * _along(scale, wide, axes), x.dtype)


def _along(weight: Any, x: Any, axes: list[int]) -> Tensor:
    """Return a weight of the sizes of axes in a shape that broadcasts with x."""
    places = sorted(a % x.shape.rank for a in axes)
    w = convert(weight, x.dtype)
    return array.reshape(w, [x.shape[a] if a in places else 1 for a in range(x.shape.rank)])


def normalize(x: Any, axis: int = -1, order: Any = 2, epsilon: float | None = None) -> Tensor:
    """Divide by norms along an axis, at least epsilon (by default `backend.epsilon`)."""
    x = as_floating(x)
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"Argument `order` must be an int >= 1. Received: order={order}")
    size = products.norm(x, order, axis, keepdims=True)
    return as_tensor(x) / math.maximum(size, convert(backend.epsilon() if epsilon is None else epsilon, x.dtype))


# ---- encodings and crossentropies ---------------------------------------------------------------------------------


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Tensor:
    """Return 1 at the place of each class along a new axis, else 0; negative classes are 0 everywhere."""
    if sparse:
        raise ValueError("one_hot gives dense tensors alone. Received: sparse=True")
    x = dispatch.to_tensor(x)
    x = x if x.dtype.is_integer and x.dtype.size >= 4 else array.cast(x, "int32")
    return array.one_hot(x, num_classes, axis=axis, dtype=dtype or backend.floatx())


def multi_hot(
    inputs: Any, num_classes: int | None = None, axis: int = -1, dtype: Any = None, sparse: bool = False, **kwargs: Any
) -> Tensor:
    """Return 1 at the places of all classes of a row, else 0."""
    classes = num_classes if num_classes is not None else kwargs.pop("num_tokens", None)
    if classes is None:
        raise ValueError("Argument `num_classes` must be specified.")
    x = dispatch.to_tensor(inputs)
    over = 1 if rank_of(x) > 1 else 0
    return math.reduce_max(one_hot(x, classes, axis, dtype, sparse), over)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """Compute the crossentropy of each element: of probabilities, or of logits."""
    output = as_floating(output)
    return _elementwise_crossentropy(convert(target, output.dtype), output, from_logits)


def _elementwise_crossentropy(target: Tensor, output: Tensor, from_logits: bool) -> Tensor:
    if target.shape.rank != output.shape.rank:
        raise ValueError(
            f"Arguments `target` and `output` must have the same rank. Received: {target.shape}, {output.shape}"
        )
    return losses.binary_crossentropy(array.expand_dims(target, -1), array.expand_dims(output, -1), from_logits)


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """Compute the crossentropy of distributions along an axis."""
    output = as_floating(output)
    return losses.categorical_crossentropy(convert(target, output.dtype), output, from_logits, axis=axis)


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """Compute the crossentropy of classes and of distributions along an axis."""
    return losses.sparse_categorical_crossentropy(target, as_floating(output), from_logits, axis=axis)


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Tensor:
    r"""Compute attention of heads: :math:`softmax(q k^T scale + bias) v`.

    query: [B, T, N, H]; key, value: [B, S, K, H] with N a multiple of K. bias: added to scores [B, N, T, S]; mask:
    Booleans of that shape, where to attend. scale: by default 1 / sqrt(H). is_causal: attend to earlier positions
    alone. attn_logits_soft_cap: scores s become cap tanh(s / cap). flash_attention: has no effect
    raises ValueError for other ranks
    """
    q, k, v = promote(query, key, value, floating=True)
    if any(t.shape.rank != 4 for t in (q, k, v)):
        raise ValueError(
            "`dot_product_attention` only supports 4D inputs. "
            f"Received: query.shape={q.shape}, key.shape={k.shape}, value.shape={v.shape}."
        )
    groups = q.shape[2] // k.shape[2]
    if groups > 1:
        k, v = array.repeat(k, groups, 2), array.repeat(v, groups, 2)
    factor = float(q.shape[3]) ** -0.5 if scale is None else scale
    scores = linalg.einsum("btnh,bsnh->bnts", q, k) * convert(factor, q.dtype)
    scores = convert(scores, "float32") if scores.dtype.size < 4 else scores
    if attn_logits_soft_cap is not None:
        cap = convert(float(attn_logits_soft_cap), scores.dtype)
        scores = cap * math.tanh(scores / cap)
    if bias is not None:
        scores += convert(bias, scores.dtype)
    allowed = None if mask is None else convert(mask, "bool")
    if is_causal:
        t, s = array.shape(q)[1], array.shape(k)[1]
        earlier = array.range(s)[None, None, None, :] <= array.range(t)[None, None, :, None]
        allowed = earlier if allowed is None else math.logical_and(allowed, earlier)
    if allowed is not None:
        scores = array.where(allowed, scores, convert(-0.7 * float(scores.dtype.max), scores.dtype))
    weights = convert(ops_nn.softmax(scores, -1), q.dtype)
    return linalg.einsum("bnts,bsnh->btnh", weights, v)


def psnr(x1: Any, x2: Any, max_val: float) -> Tensor:
    r"""Compute the peak signal-to-noise ratio of all elements in dB: :math:`20 \log_{10} max - 10 \log_{10} mse`."""
    a, b = promote(x1, x2, floating=True)
    if not a.shape.is_compatible_with(b.shape):
        raise ValueError(f"Input shapes {a.shape} and {b.shape} must match for PSNR calculation. ")
    error = math.reduce_mean(math.square(a - b))
    decibels: Tensor = 20 * elementwise.log10(convert(max_val, a.dtype)) - 10 * elementwise.log10(error)
    return decibels


# ---- patches ------------------------------------------------------------------------------------------------------


def space_to_depth(x: Any, block_size: int, data_format: str = "channels_last") -> Tensor:
    """Move blocks of pixels into channels: [n, h, w, c] to [n, h / block, w / block, block * block * c]."""
    return ops_nn.space_to_depth(dispatch.to_tensor(x), block_size, FORMATS[2, data_format_name(data_format)])


def depth_to_space(x: Any, block_size: int, data_format: str = "channels_last") -> Tensor:
    """Move channels into blocks of pixels: [n, h, w, c] to [n, h * block, w * block, c / (block * block)]."""
    return ops_nn.depth_to_space(dispatch.to_tensor(x), block_size, FORMATS[2, data_format_name(data_format)])


def _window_places(size: Any, kernel: int, dilation: int, padding: int, stride: int) -> tuple[list[list[int]], int]:
    """Return the places in a padded row that each window covers, and their number."""
    count = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    return [[w * stride + k * dilation for w in range(count)] for k in range(kernel)], count


def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return the windows of images [N, C, H, W] as columns [N, C * window, number of windows]."""
    x = dispatch.to_tensor(x)
    k, d, s = (sizes(v, 2, n) for v, n in ((kernel_size, "kernel_size"), (dilation, "dilation"), (stride, "stride")))
    p = sizes(padding, 2, "padding", allow_zero=True)
    padded = array.pad(x, [[0, 0], [0, 0], [p[0], p[0]], [p[1], p[1]]])
    rows, height = _window_places(x.shape[2], k[0], d[0], p[0], s[0])
    columns, width = _window_places(x.shape[3], k[1], d[1], p[1], s[1])
    y = array.gather(array.gather(padded, rows, axis=2), columns, axis=4)  # [N, C, k0, height, k1, width]
    return array.reshape(array.transpose(y, [0, 1, 2, 4, 3, 5]), [-1, x.shape[1] * k[0] * k[1], height * width])


def fold(x: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Sum windows [N, C * window, number of windows] at their places in images [N, C, *output_size]."""
    x = dispatch.to_tensor(x)
    o, k = sizes(output_size, 2, "output_size"), sizes(kernel_size, 2, "kernel_size")
    d, s = sizes(dilation, 2, "dilation"), sizes(stride, 2, "stride")
    p = sizes(padding, 2, "padding", allow_zero=True)
    rows, height = _window_places(o[0], k[0], d[0], p[0], s[0])
    columns, width = _window_places(o[1], k[1], d[1], p[1], s[1])
    channels = x.shape[1] // (k[0] * k[1])
    high, wide = o[0] + 2 * p[0], o[1] + 2 * p[1]
    place = [
        rows[a][h] * wide + columns[b][w]
        for a in range(k[0])
        for b in range(k[1])
        for h in range(height)
        for w in range(width)
    ]
    flat = array.transpose(array.reshape(x, [-1, channels, len(place)]), [2, 0, 1])
    y = math.unsorted_segment_sum(flat, place, high * wide)
    y = array.reshape(array.transpose(y, [1, 2, 0]), [-1, channels, high, wide])
    return y[:, :, p[0] : high - p[0], p[1] : wide - p[1]]
