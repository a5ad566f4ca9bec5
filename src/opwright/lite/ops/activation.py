"""Activations with options or operands, and normalizations over the last dimension.

Lives here: LEAKY_RELU, PRELU, GELU, SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION.
Not here: activations of one element alone (elementwise.py), those fused into other operators (tiling.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtypes import float16, float32
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from ...scalar.formulas import GELU_CUBIC, GELU_SLOPE
from ...scalar.table import FUNCTIONS
from .definition import LiteDefinition, lite_operator
from .shapes import broadcast, refuse, text

_f = np.float32
_REALS = (float32, float16)


@lite_operator("LEAKY_RELU")
class LeakyReluOp(LiteDefinition):
    """.. math:: y = x > 0: x,\\ \\text{else}\\ \\alpha x"""

    x = Input(_REALS)
    y = Output(like="x")
    quantized = "activation.leaky_relu"
    elementwise = True

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        result: np.ndarray = FUNCTIONS["leaky_relu"].of_arrays(x, op.alpha)
        return result


@lite_operator("PRELU")
class PReluOp(LiteDefinition):
    """As LEAKY_RELU, with alpha as a tensor that is broadcast to x.

    .. math:: y = x \\ge 0: x,\\ \\text{else}\\ \\alpha x
    """

    x = Input(_REALS)
    alpha = Input(_REALS, like="x")
    y = Output(like="x")
    quantized = "activation.prelu"

    def infer(op: Any) -> TensorSpec:
        shape = broadcast(op.x, op.alpha)
        if not shape.is_compatible_with(op.x.spec.shape):
            raise refuse(
                "alpha is not broadcastable to x",
                found={"x": text(op.x.spec.shape), "alpha": text(op.alpha.spec.shape)},
                wanted="sizes of alpha that are 1 or those of x, aligned at the last dimension",
            )
        return TensorSpec(shape, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        return np.where(x >= 0, x, x * alpha)


@lite_operator("GELU")
class GeluOp(LiteDefinition):
    """Gaussian error linear unit, exact or by tanh.

    .. math:: y = x (1 + \\operatorname{erf}(x / \\sqrt 2)) / 2
    """

    x = Input((float32, float16))
    y = Output(like="x")
    quantized = "activation.gelu"
    elementwise = True

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        result: np.ndarray
        of = x.dtype.type  # every step of float16 is rounded
        if x.dtype == np.float32:
            result = FUNCTIONS["gelu_tanh" if op.approximate else "gelu"].numpy(x)
        elif op.approximate:
            result = of(0.5) * x * (of(1) + np.tanh(of(GELU_SLOPE) * (x + of(GELU_CUBIC) * (x * x * x))))
        else:
            result = of(0.5) * x * FUNCTIONS["erfc"].numpy(x * of(-math.sqrt(0.5)))
        return result


def _has_rank(op: Any) -> TensorSpec:
    if op.x.spec.shape.rank == 0:
        raise refuse("the input is a scalar", wanted="at least one dimension")
    return TensorSpec(op.x.spec.shape, op.x.spec.dtype)


def _shifted(x: np.ndarray) -> np.ndarray:
    """Subtract the maximum of each row, so that exp cannot overflow."""
    return x - x.max(-1, keepdims=True) if x.shape[-1] else x


@lite_operator("SOFTMAX")
class SoftmaxOp(LiteDefinition):
    """.. math:: y_i = e^{\\beta x_i} / \\sum_j e^{\\beta x_j}    over the last dimension"""

    x = Input((float32, float16))
    y = Output(like="x")
    quantized = "activation.softmax"
    by_row = True
    infer = _has_rank

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        e = np.exp(_shifted(x.astype(np.float32, copy=False)) * _f(op.beta))
        total = e.sum(-1, keepdims=True)
        result: np.ndarray = (e.astype(x.dtype, copy=False) / total).astype(x.dtype, copy=False)
        return result


@lite_operator("LOG_SOFTMAX")
class LogSoftmaxOp(LiteDefinition):
    """.. math:: y_i = x_i - \\ln \\sum_j e^{x_j}    over the last dimension

    Also of a scalar, which is a row of one.
    """

    x = Input((float32,))
    y = Output(like="x")
    quantized = "activation.log_softmax"
    by_row = True

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(op.x.spec.shape, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        shifted = _shifted(np.atleast_1d(x))  # a scalar is a row of its own
        result: np.ndarray = (shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))).reshape(x.shape)
        return result


@lite_operator("L2_NORMALIZATION")
class L2NormalizationOp(LiteDefinition):
    """.. math:: y = x / \\max(\\sqrt{\\sum x^2}, 10^{-6})    over the last dimension"""

    x = Input((float32,))
    y = Output(like="x")
    quantized = "activation.l2_normalization"
    by_row = True

    def infer(op: Any) -> TensorSpec:
        if op.fused_activation_function != "NONE":  # no official kernel applies one
            raise refuse("it takes no activation", found=op.fused_activation_function, wanted="NONE")
        return _has_rank(op)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        norm = np.sqrt(np.square(x).sum(-1, keepdims=True))
        result: np.ndarray = x / np.maximum(norm, _f(1e-6))
        return result


@lite_operator("LOCAL_RESPONSE_NORMALIZATION")
class LocalResponseNormalizationOp(LiteDefinition):
    """.. math:: y_i = x_i / (bias + \\alpha \\sum_{|j - i| \\le radius} x_j^2)^\\beta    over the channels"""

    x = Input((float32,), rank=4)
    y = Output(like="x")
    by_row = True

    def infer(op: Any) -> TensorSpec:
        if op.radius < 0:
            raise refuse("radius is negative", found=op.radius, wanted="at least 0")
        return TensorSpec(op.x.spec.shape, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        n = x.shape[-1]
        squares = np.concatenate([np.zeros((*x.shape[:-1], 1)), np.cumsum(np.square(x, dtype=np.float64), -1)], -1)
        channels = np.arange(n)
        window_sums = (
            squares[..., np.minimum(channels + op.radius, n - 1) + 1]
            - squares[..., np.maximum(channels - op.radius, 0)]
        )
        base = op.bias + op.alpha * window_sums
        base = np.where(np.abs(base) > np.finfo(np.float32).max, np.copysign(np.inf, base), base)  # overflows float32
        result: np.ndarray = (x * base**-op.beta).astype(np.float32)
        return result
