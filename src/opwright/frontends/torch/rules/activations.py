"""Activations and dropout of ATen.

Lives here: their rules. Not here: other functions of one element (elementwise.py), normalisations (normalization.py).
"""

from __future__ import annotations

from typing import Any

from ....core.dtypes import bool as bool_
from ....core.errors import UnimplementedError
from ....nn import activations
from ....ops import array, math, nn
from .table import AtenCall, aten, tensor


@aten("gelu")
def gelu(op: AtenCall, x: Any, approximate: str = "none") -> Any:
    return nn.gelu(tensor(x), approximate=approximate == "tanh")


@aten("leaky_relu")
def leaky_relu(op: AtenCall, x: Any, slope: float = 0.01) -> Any:
    return nn.leaky_relu(tensor(x), alpha=float(slope))


@aten("elu")
def elu(op: AtenCall, x: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    x = tensor(x)
    if scale == input_scale == 1:
        return activations.elu(x, alpha)
    low = math.expm1(x * tensor(input_scale, op.dtype)) * tensor(alpha, op.dtype)
    return array.where(x > tensor(0, op.dtype), x, low) * tensor(scale, op.dtype)


@aten("celu")
def celu(op: AtenCall, x: Any, alpha: Any = 1.0) -> Any:
    return activations.celu(tensor(x), alpha)


@aten("softplus")
def softplus(op: AtenCall, x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    x = tensor(x)
    scaled = x if beta == 1 else x * tensor(beta, op.dtype)
    y = nn.softplus(scaled)
    y = y if beta == 1 else y / tensor(beta, op.dtype)
    return array.where(scaled > tensor(threshold, op.dtype), x, y)


@aten("threshold")
def threshold(op: AtenCall, x: Any, limit: Any, value: Any) -> Any:
    return activations.threshold(tensor(x, op.dtype), limit, value)


@aten("hardshrink")
def hardshrink(op: AtenCall, x: Any, lambd: Any = 0.5) -> Any:
    x = tensor(x)
    inside = math.less_equal(math.abs(x), tensor(lambd, op.dtype))
    return array.where(inside, tensor(0, op.dtype), x)


@aten("softshrink")
def softshrink(op: AtenCall, x: Any, lambd: Any = 0.5) -> Any:
    x = tensor(x)
    limit = tensor(lambd, op.dtype)
    return array.where(x > limit, x - limit, array.where(x < -limit, x + limit, x * tensor(0, op.dtype)))


@aten("prelu", "_prelu_kernel")
def prelu(op: AtenCall, x: Any, weight: Any) -> Any:
    x, weight = tensor(x), tensor(weight)
    rank = len(x.shape)
    if len(weight.shape) == 1 and rank > 2 and weight.shape[0] != 1:
        weight = array.reshape(weight, [-1] + [1] * (rank - 2))
    elif len(weight.shape) == 1 and weight.shape[0] == 1:
        weight = array.reshape(weight, [])
    return array.where(x > tensor(0, op.dtype), x, x * weight)


@aten("glu")
def glu(op: AtenCall, x: Any, dim: int = -1) -> Any:
    return activations.glu(tensor(x), dim)


def training_dropout() -> UnimplementedError:
    """Return the error of dropout with a probability."""
    return UnimplementedError(what="dropout of a program in training mode: export the module after module.eval()")


@aten("dropout", "feature_dropout", "alpha_dropout")
def dropout(op: AtenCall, x: Any, p: float = 0.5, train: bool = False) -> Any:
    if train and p == 1.0:
        return tensor(x) * tensor(0, op.dtype)
    if train and p:
        raise training_dropout()
    return tensor(x)


@aten("native_dropout")
def native_dropout(op: AtenCall, x: Any, p: float = 0.5, train: bool | None = False) -> Any:
    x = dropout(op, x, p, bool(train))
    return x, array.ones_like(x, bool_)
