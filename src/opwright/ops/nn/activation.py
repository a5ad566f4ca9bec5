"""Activation functions, and the other element-wise functions of a layer: bias addition, dropout.

Lives here: Relu, Relu6, LeakyRelu, Elu, Selu, Gelu and silu, crelu over operators; BiasAdd and its gradient
BiasAddGrad; dropout, stateless_dropout.
Not here: softmax (softmax.py), sigmoid, tanh and other mathematical functions (ops/math/), the layer of dropout, which
applies it in training only (nn/layers/).

At discontinuities of the derivative the gradient is the left-sided one, as in TensorFlow: 0 for relu at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, float32, floating, numeric, real
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...scalar.formulas import GELU_CUBIC, GELU_SLOPE, SELU_ALPHA, SELU_SCALE
from ...scalar.table import FUNCTIONS
from .. import dispatch
from ..accumulation import sum_over, wide, wide_dtype
from ..array import cast, concat, where, zero_of, zeros_like
from ..array.shape_operators import shape_op
from ..attributes import Attr, one_of
from ..definition import operator
from ..math import erfc, exp, logical_and, multiply_no_nan, negative, sigmoid
from ..random import stateless_uniform, uniform
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor, TensorLike

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures
    from ..tensor import Tensor


@operator
class Relu(OperatorDefinition):
    """Apply the rectified linear unit; NaN is preserved.

    .. math:: activations = \\max(features, 0)
    """

    features = Input(real)
    activations = Output(like="features")
    elementwise = True
    inplace = {"activations": "features"}

    def compute(op, features: np.ndarray, *, out: Any = None) -> np.ndarray:
        activations: np.ndarray = FUNCTIONS["relu"].numpy(features, out)
        return activations

    def gradient(op, dy: Any) -> Tensor:
        return where(op.activations > 0, dy, zero_of(dy))


relu: signatures.Relu = Relu.as_function("relu")


@operator
class Relu6(OperatorDefinition):
    """Apply the rectified linear unit, clipped at 6.

    .. math:: activations = \\min(\\max(features, 0), 6)
    """

    features = Input(real)
    activations = Output(like="features")
    elementwise = True
    inplace = {"activations": "features"}

    def compute(op, features: np.ndarray, *, out: Any = None) -> np.ndarray:
        activations: np.ndarray = FUNCTIONS["relu6"].numpy(features, out)
        return activations

    def gradient(op, dy: Any) -> Tensor:
        y = op.activations
        return where(logical_and(y > 0, y < 6), dy, zero_of(dy))


relu6: signatures.Relu6 = Relu6.as_function("relu6")


@operator
class LeakyRelu(OperatorDefinition):
    """Apply the leaky rectified linear unit: negative numbers are scaled by alpha.

    .. math:: activations = features \\text{ if } features > 0 \\text{ else } alpha \\cdot features
    """

    features = Input(floating)
    activations = Output(like="features")
    alpha = Attr(float, default=0.2)
    elementwise = True
    inplace = {"activations": "features"}

    def compute(op, features: np.ndarray) -> np.ndarray:
        activations: np.ndarray = FUNCTIONS["leaky_relu"].numpy(features, op.alpha)
        return activations

    def gradient(op, dy: Any) -> Tensor:
        return where(op.features > 0, dy, dy * op.alpha)


@documented_by(LeakyRelu)
def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """Apply the leaky rectified linear unit.

    Integers are converted to float32. alpha: may be a tensor, through which gradients flow.
    """
    features = dispatch.to_tensor(features)
    if features.dtype.is_integer:
        features = cast(features, float32)
    if isinstance(alpha, TensorLike):
        return where(features > 0, features, features * cast(alpha, features.dtype), name=name)
    return LeakyRelu(features, alpha=float(alpha), name=name)


@operator
class Elu(OperatorDefinition):
    """Apply the exponential linear unit (Clevert et al. 2015).

    .. math:: activations = features \\text{ if } features \\ge 0 \\text{ else } e^{features} - 1
    """

    features = Input(floating)
    activations = Output(like="features")
    elementwise = True
    inplace = {"activations": "features"}

    def compute(op, features: np.ndarray) -> np.ndarray:
        activations: np.ndarray = FUNCTIONS["elu"].numpy(features)
        return activations

    def gradient(op, dy: Any) -> Tensor:
        return where(op.activations < 0, dy * (op.activations + 1), dy)


elu: signatures.Elu = Elu.as_function("elu")


@operator
class Selu(OperatorDefinition):
    """Apply the scaled exponential linear unit (Klambauer et al. 2017).

    .. math:: activations = s \\cdot features \\text{ if } features \\ge 0 \\text{ else } s a (e^{features} - 1),
              \\quad s = 1.0507009873554805, \\; a = 1.6732632423543772
    """

    features = Input(floating)
    activations = Output(like="features")
    elementwise = True
    inplace = {"activations": "features"}

    def compute(op, features: np.ndarray) -> np.ndarray:
        activations: np.ndarray = FUNCTIONS["selu"].numpy(features)
        return activations

    def gradient(op, dy: Any) -> Tensor:
        y = op.activations
        return where(y < 0, dy * (y + SELU_SCALE * SELU_ALPHA), dy * SELU_SCALE)


selu: signatures.Selu = Selu.as_function("selu")


@operator
class Gelu(OperatorDefinition):
    """Apply the Gaussian error linear unit (Hendrycks and Gimpel 2016).

    .. math:: activations = \\frac{x}{2} erfc(-x / \\sqrt 2), \\quad
              \\text{approximately } \\frac{x}{2} (1 + \\tanh(\\sqrt{2 / \\pi} (x + 0.044715 x^3)))

    approximate: whether to use the second formula. NumPy's code and kernels of the exact functions avoid cancellation
    for negative x: 1 + erf(-a) is computed as erfc(a), 1 + tanh(t) as 2 / (1 + exp(-2 t)). Compiled models
    and functions are within 2.4e-7 |x| of the exact value, -0.0 below -5.5. At minus infinity the result is NaN, as in
    TensorFlow.
    """

    features = Input(floating, doc="the argument x")
    activations = Output(like="features")
    approximate = Attr(bool, default=False)
    elementwise = True

    def compute(op, features: np.ndarray) -> np.ndarray:
        x = features.astype(np.float32, copy=False) if features.dtype.itemsize == 2 else features
        row = FUNCTIONS["gelu_tanh" if op.approximate else "gelu"]
        activations: np.ndarray = row.numpy(x).astype(features.dtype, copy=False)
        return activations

    def gradient(op, dy: Tensor) -> Tensor:
        x = op.features
        if op.approximate:
            square = x * x
            below = sigmoid(x * (square * (2 * GELU_SLOPE * GELU_CUBIC) + 2 * GELU_SLOPE))
            above = sigmoid(x * (square * (-2 * GELU_SLOPE * GELU_CUBIC) - 2 * GELU_SLOPE))
            slope = square * (6 * GELU_SLOPE * GELU_CUBIC) + 2 * GELU_SLOPE
            return dy * (below + multiply_no_nan(x * slope, below * above))
        below = 0.5 * erfc(x * -math.sqrt(0.5))
        return dy * (below + x * exp(-0.5 * (x * x)) * (1 / math.sqrt(2 * math.pi)))


gelu: signatures.Gelu = Gelu.as_function("gelu")


def silu(features: Any, beta: Any = 1.0, name: str | None = None) -> Tensor:
    """Apply the sigmoid linear unit, also called swish (Ramachandran et al. 2017).

    .. math:: activations = features \\cdot sigmoid(beta \\cdot features)
    """
    x = dispatch.to_tensor(features)
    if not hasattr(beta, "spec") and beta == 1.0:
        return x * sigmoid(x)
    return x * sigmoid(cast(beta, x.dtype) * x)


swish = silu


def crelu(features: Any, axis: Any = -1, name: str | None = None) -> Tensor:
    """Concatenate the rectified x and the rectified -x along `axis` (Shang et al. 2016).

    .. math:: [\\max(x, 0), \\max(-x, 0)]
    """
    features = dispatch.to_tensor(features)
    return relu(concat([features, negative(features)], axis), name=name)


def _channel_axis(op: Any, rank: int) -> int:
    """Return the channel dimension of a tensor of the given rank. Raises InvalidArgumentError for ranks below 2."""
    if rank < 2:
        raise InvalidArgumentError(
            what="the rank must be at least 2", found=f"rank {rank}", wanted="[batch, ..., channels]"
        )
    return 1 if op.data_format == "NCHW" else rank - 1


@operator
class BiasAdd(OperatorDefinition):
    """Add a bias to each channel.

    .. math:: output_{..., c} = value_{..., c} + bias_c

    value: [batch, ..., channels], with data_format NCHW [batch, channels, ...]; bias: [channels].
    raises InvalidArgumentError if the numbers of channels differ
    """

    value = Input(numeric)
    bias = Input(numeric, like="value", rank=1)
    output = Output(like="value")
    data_format = Attr(str, default="NHWC", check=one_of("NHWC", "NCHW"))
    inplace = {"output": "value"}
    lod = "as value"

    def infer(op) -> TensorSpec:
        shape, bias = op.value.spec.shape, op.bias.spec.shape
        if shape.dims is None:
            return op.value.spec
        axis = _channel_axis(op, len(shape))
        if bias.rank == 1 and None not in (bias[0], shape[axis]) and bias[0] != shape[axis]:
            position = "last" if axis == len(shape) - 1 else "second"
            raise InvalidArgumentError(
                what=f"Must provide as many biases as the {position} dimension of the input tensor: "
                f"{list(bias)} vs. {list(shape)}",
                found=f"value {op.value.spec.short()}, bias {op.bias.spec.short()}",
            )
        return op.value.spec

    def compute(op, value: np.ndarray, bias: np.ndarray, *, out: Any = None) -> np.ndarray:
        axis = _channel_axis(op, value.ndim)
        if bias.shape[0] != value.shape[axis]:
            raise InvalidArgumentError(
                what=f"Must provide as many biases as channels: {bias.shape[0]} vs. {value.shape[axis]}"
            )
        output: np.ndarray = np.add(value, bias.reshape([-1 if i == axis else 1 for i in range(value.ndim)]), out)
        return output

    def gradient(op, doutput: Any) -> tuple[Any, Tensor]:
        return doutput, BiasAddGrad(doutput, data_format=op.data_format)


@operator
class BiasAddGrad(OperatorDefinition):
    """Compute the gradient of a bias: sum over all dimensions but the channels.

    .. math:: output_c = \\sum_{...} out\\_backprop_{..., c}
    """

    out_backprop = Input(numeric)
    output = Output(like="out_backprop")
    data_format = Attr(str, default="NHWC", check=one_of("NHWC", "NCHW"))
    no_need_buffer = ("out_backprop",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        shape = op.out_backprop.spec.shape
        return op.out_backprop.spec.with_shape([None if shape.dims is None else shape[_channel_axis(op, len(shape))]])

    def compute(op, out_backprop: np.ndarray) -> np.ndarray:
        axis = _channel_axis(op, out_backprop.ndim)
        axes = tuple(i for i in range(out_backprop.ndim) if i != axis)
        output: np.ndarray = sum_over(out_backprop, axes, wide(out_backprop.dtype)).astype(out_backprop.dtype)
        return output

    def gradient(op, doutput: Any) -> Tensor:
        return BiasAdd(zeros_like(op.out_backprop), doutput, data_format=op.data_format)


@documented_by(BiasAdd)
def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Add a bias to each channel. data_format: channels are the second dimension if it begins with "NC"."""
    if data_format is not None and not data_format.startswith("N"):
        raise InvalidArgumentError(
            op="BiasAdd",
            node=name,
            what="`data_format` must be of the form `N...C` or `NC...`",
            found=repr(data_format),
        )
    second = data_format is not None and data_format.startswith("NC")
    value = dispatch.to_tensor(value)
    return BiasAdd(value, bias, data_format="NCHW" if second else "NHWC", name=name)


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
    """Apply `dropout` with zeros that are a function of `seed`, two integers.

    x, rate, noise_shape: see `dropout`, which has the errors, too. rng_alg: accepted, and ignored
    """
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
    return where(noise >= rate, scaled, zero_of(scaled), name=name)


def _noise_shape(x: Tensor, noise_shape: Any) -> TensorLike | Sequence[Any]:
    if noise_shape is None:
        return shape_op(x)
    if isinstance(noise_shape, TensorLike):
        return noise_shape
    dims = TensorShape([None if d is None or d == -1 else d for d in noise_shape])
    if dims.is_fully_defined():
        return tuple(dims)
    sizes = shape_op(x)
    return [sizes[i] if d is None else d for i, d in enumerate(dims)]
