"""Activations: functions of one tensor, by name.

Lives here: the activations of Keras; `get`, `serialize`, `deserialize`.
Not here: the operators (ops/nn/activation.py, softmax.py), the layers (layers/activation.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.dtypes import float16, float32
from ..ops import array, dispatch, math
from ..ops import nn as ops_nn
from .configuration import ObjectRegistry

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


T = TypeVar("T")


def linear(x: T) -> T:
    """Return x unchanged."""
    return x


def relu(x: object, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Tensor:
    """Return min(x, max_value) where x >= threshold, else negative_slope (x - threshold)."""
    x = dispatch.to_tensor(x)
    if negative_slope != 0 and max_value is None and threshold == 0:
        return ops_nn.leaky_relu(x, negative_slope)
    if threshold != 0:
        y = x * array.cast(x > threshold, x.dtype)
    elif max_value == 6:
        y = ops_nn.relu6(x)
    else:
        y = ops_nn.relu(x)
    if max_value is not None and (threshold != 0 or max_value != 6):
        low, high = (dispatch.to_tensor(float(v), x.dtype) for v in (0.0, max_value))
        y = math.clip_by_value(y, low, high)
    if negative_slope != 0:
        y = y - negative_slope * ops_nn.relu(threshold - x if threshold != 0 else -x)
    return y


def relu6(x: Any) -> Tensor:
    """Return min(max(x, 0), 6)."""
    return ops_nn.relu6(x)


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Tensor:
    """Return x where x > 0, else negative_slope x."""
    return ops_nn.leaky_relu(x, negative_slope)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return x where x > 0, else alpha (exp(x) - 1)."""
    x = dispatch.to_tensor(x)
    y = ops_nn.elu(x)
    return y if alpha == 1 else array.where(x > 0, y, alpha * y)


def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return max(x, 0) + alpha (exp(min(x, 0) / alpha) - 1)."""
    x = dispatch.to_tensor(x)
    return math.maximum(x, 0.0) + alpha * math.expm1(math.minimum(x, 0.0) / alpha)


def selu(x: Any) -> Tensor:
    """Return 1.0507 x where x > 0, else 1.0507 * 1.6733 (exp(x) - 1)."""
    return ops_nn.selu(x)


def gelu(x: Any, approximate: bool = False) -> Tensor:
    """Return x times the standard normal distribution function of x; approximate: use the tanh approximation."""
    return ops_nn.gelu(x, approximate)


def sigmoid(x: Any) -> Tensor:
    """Return 1 / (1 + exp(-x))."""
    return math.sigmoid(x)


def hard_sigmoid(x: object) -> Tensor:
    """Return relu6(x + 3) / 6."""
    x = dispatch.to_tensor(x)
    return ops_nn.relu6(x + 3.0) / 6.0


def log_sigmoid(x: Any) -> Tensor:
    """Return log(sigmoid(x)), computed without overflow."""
    return math.log_sigmoid(x)


def tanh(x: Any) -> Tensor:
    """Return the hyperbolic tangent of x."""
    return math.tanh(x)


def hard_tanh(x: Any) -> Tensor:
    """Return x clipped to [-1, 1]."""
    y: Tensor = math.clip_by_value(dispatch.to_tensor(x), -1.0, 1.0)
    return y


def tanh_shrink(x: object) -> Tensor:
    """Return x - tanh(x)."""
    x = dispatch.to_tensor(x)
    return x - math.tanh(x)


def hard_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """Return x where |x| > threshold, else 0."""
    x = dispatch.to_tensor(x)
    return array.where(math.abs(x) > threshold, x, array.zero_of(x))


def soft_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """Return x moved toward 0 by threshold, and 0 where |x| <= threshold."""
    x = dispatch.to_tensor(x)
    return array.where(x > threshold, x - threshold, array.where(x < -threshold, x + threshold, array.zero_of(x)))


def threshold(x: Any, threshold: float, default_value: float) -> Tensor:
    """Return x where x > threshold, else default_value."""
    x = dispatch.to_tensor(x)
    return array.where(x > threshold, x, dispatch.to_tensor(default_value, x.dtype))


def _over_axes(x: Any, axis: int | Sequence[int] | None, function: Callable[..., Tensor]) -> Tensor:
    """Apply `function` along one axis of x, or along several (None: all), folded into the last one."""
    if axis is None:
        axis = list(range(x.shape.rank))
    axes = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    if len(axes) <= 1:
        return function(x, axes[0])
    axes = [a % x.shape.rank for a in axes]
    outer_axes = [i for i in range(x.shape.rank) if i not in axes]
    order = [*outer_axes, *axes]
    moved = array.transpose(x, order)
    sizes = array.shape(moved)
    flat = array.reshape(moved, array.concat([sizes[: len(outer_axes)], [-1]], 0))
    y = array.reshape(function(flat), sizes)
    y = array.transpose(y, [order.index(i) for i in range(len(order))])
    return array.ensure_shape(y, x.shape)


def softmax(x: Any, axis: Any = -1) -> Tensor:
    """Return exp(x) divided by its sum along one axis or several."""
    return _over_axes(dispatch.to_tensor(x), axis, ops_nn.softmax)


def log_softmax(x: Any, axis: Any = -1) -> Tensor:
    """Return log(softmax(x)), computed without overflow."""
    return _over_axes(dispatch.to_tensor(x), axis, ops_nn.log_softmax)


def sparsemax(x: Any, axis: int = -1) -> Tensor:
    """Return the Euclidean projection of x onto the probability simplex (Martins and Astudillo 2016)."""
    x = dispatch.to_tensor(x)
    ordered = math.sort(x, axis=axis, direction="DESCENDING")
    total = math.cumsum(ordered, axis=axis)
    along = [1] * x.shape.rank
    along[axis] = -1
    rank = array.reshape(array.range(1, array.shape(x)[axis] + 1, dtype=x.dtype), along)
    inside = 1.0 + rank * ordered > total
    count = math.reduce_sum(array.cast(inside, x.dtype), axis=axis, keepdims=True)
    top = math.reduce_sum(array.where(inside, ordered, array.zero_of(x)), axis=axis, keepdims=True)
    return math.maximum(x - (top - 1.0) / count, 0.0)


def softplus(x: Any) -> Tensor:
    """Return log(exp(x) + 1)."""
    return math.softplus(x)


def softsign(x: Any) -> Tensor:
    """Return x / (|x| + 1)."""
    return math.softsign(x)


def silu(x: Any) -> Tensor:
    """Return x sigmoid(x)."""
    return ops_nn.silu(x)


swish = silu


def hard_silu(x: object) -> Tensor:
    """Return x hard_sigmoid(x)."""
    x = dispatch.to_tensor(x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def exponential(x: Any) -> Tensor:
    """Return exp(x)."""
    return math.exp(x)


def mish(x: object) -> Tensor:
    """Return x tanh(softplus(x))."""
    x = dispatch.to_tensor(x)
    return x * math.tanh(math.softplus(x))


def glu(x: Any, axis: int = -1) -> Tensor:
    """Return the first half of x along an axis times the sigmoid of the second half."""
    first, second = array.split(dispatch.to_tensor(x), 2, axis=axis)
    return first * math.sigmoid(second)


def sparse_plus(x: Any) -> Tensor:
    """Return 0 for x <= -1, (x + 1)^2 / 4 for x < 1, else x."""
    x = dispatch.to_tensor(x)
    return array.where(x <= -1.0, array.zero_of(x), array.where(x < 1.0, 0.25 * math.square(x + 1.0), x))


def sparse_sigmoid(x: Any) -> Tensor:
    """Return (x + 1) / 2 clipped to [0, 1]."""
    x = dispatch.to_tensor(x)
    return array.where(x <= -1.0, array.zero_of(x), array.where(x >= 1.0, array.ones_like(x), 0.5 * (x + 1.0)))


def squareplus(x: object, b: float = 4) -> Tensor:
    """Return (x + sqrt(x^2 + b)) / 2.

    Evaluated as max(x, 0) + (b / 2) / (sqrt(x^2 + b) + |x|), which does not cancel for x < 0. Where x^2 overflows
    (|x| > 1.8e19 in float32) the second term is 0. float16 is computed in float32.
    """
    x = dispatch.to_tensor(x)
    if x.dtype is float16:
        return array.cast(squareplus(array.cast(x, float32), b), float16)
    return ops_nn.relu(x) + (0.5 * float(b)) / (math.sqrt(x * x + float(b)) + math.abs(x))


REGISTRY = ObjectRegistry("activation function", "keras.activations", functions=True)
REGISTRY.add(
    (
        linear,
        relu,
        relu6,
        leaky_relu,
        elu,
        celu,
        selu,
        gelu,
        sigmoid,
        hard_sigmoid,
        log_sigmoid,
        tanh,
        hard_tanh,
        tanh_shrink,
        hard_shrink,
        soft_shrink,
        threshold,
        softmax,
        log_softmax,
        sparsemax,
        softplus,
        softsign,
        silu,
        hard_silu,
        exponential,
        mish,
        glu,
        sparse_plus,
        sparse_sigmoid,
        squareplus,
    ),
    swish=silu,
    hard_swish=hard_silu,
)
serialize, deserialize = REGISTRY.serialize, REGISTRY.deserialize


def get(identifier: Any) -> Callable[..., Any]:
    """Return the activation for a name, a dictionary, a function or layer (unchanged), or None (linear)."""
    return linear if identifier is None else REGISTRY.get(identifier)


__all__ = [
    "celu",
    "deserialize",
    "elu",
    "exponential",
    "gelu",
    "get",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "serialize",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh",
    "tanh_shrink",
    "threshold",
]
