"""Activation functions.

Lives here: Relu, Relu6, LeakyRelu, Elu, Selu, Gelu and silu, crelu over operators.
Not here: softmax (softmax.py), sigmoid, tanh and other mathematical functions (ops/math/).

At discontinuities of the derivative the gradient is the left-sided one, as in TensorFlow: 0 for relu at 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.constants import GELU_CUBIC, GELU_SLOPE, SELU_ALPHA, SELU_SCALE
from ...core.dtypes import float32, floating, real
from ...scalar.table import FUNCTIONS
from .. import dispatch
from ..array import cast, concat, where, zeros_like
from ..attributes import Attr
from ..definition import operator
from ..math import erfc, exp, logical_and, multiply_no_nan, negative, sigmoid
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import TensorLike

if TYPE_CHECKING:
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
        return where(op.activations > 0, dy, zeros_like(dy))


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
        return where(logical_and(y > 0, y < 6), dy, zeros_like(dy))


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

    approximate: whether to use the second formula. Both avoid cancellation for negative x: 1 + erf(-a) is computed as
    erfc(a), 1 + tanh(t) as 2 / (1 + exp(-2 t)). At minus infinity the result is NaN, as in TensorFlow.
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
