"""Losses on independent logits; L2 loss.

Lives here: L2Loss; sigmoid and weighted cross entropies, Poisson loss as functions over operators.
Not here: losses over softmax (softmax.py), Keras's losses (nn/losses).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import floating
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch
from ..array import cast, where, zeros_like
from ..definition import operator
from ..math import exp, log, log1p, negative, reduce_sum
from ..slots import Input, OperatorDefinition, Output
from ..windows import wide

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


@operator
class L2Loss(OperatorDefinition):
    """Compute half the sum of squares.

    .. math:: output = \\frac{1}{2} \\sum_i t_i^2
    """

    t = Input(floating)
    output = Output(like="t")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return TensorSpec([], op.t.spec.dtype)

    def compute(op, t: np.ndarray) -> np.ndarray:
        flat = np.ravel(t).astype(wide(t.dtype), copy=False)
        output: np.ndarray = (np.dot(flat, flat) / 2).astype(t.dtype)
        return output

    def gradient(op, dy: Tensor) -> Tensor:
        return dy * op.t


l2_loss: signatures.L2Loss = L2Loss.as_function("l2_loss")


def _as_tensors(labels: Any, logits: Any, what: str, name: str | None) -> tuple[Tensor, Tensor]:
    """Convert labels and logits to tensors of one dtype. Raises InvalidArgumentError if the shapes differ."""
    logits = dispatch.to_tensor(logits)
    labels = dispatch.to_tensor(labels, None if hasattr(labels, "spec") else logits.dtype)
    if not logits.shape.is_compatible_with(labels.shape):
        raise InvalidArgumentError(
            op=what,
            node=name,
            what="`logits` and `labels` must have the same shape",
            found=f"logits {logits.spec.short()}, labels {labels.spec.short()}",
        )
    return labels, logits


def _relu_and_log1p_exp(x: Any) -> tuple[Tensor, Tensor]:
    """Return max(x, 0) and log(1 + exp(-|x|)), with derivatives at 0 whose sum is exact."""
    positive = x >= 0
    zeros = zeros_like(x)
    return where(positive, x, zeros), log1p(exp(where(positive, negative(x), x)))


def sigmoid_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Tensor:
    """Compute the element-wise cross entropy of independent probabilities and the sigmoid of logits.

    .. math:: loss = \\max(x, 0) - x z + \\log(1 + e^{-|x|}), \\quad x = logits, \\; z = labels
    """
    labels, logits = _as_tensors(labels, logits, "sigmoid_cross_entropy_with_logits", name)
    relu, softplus = _relu_and_log1p_exp(logits)
    result: Tensor = relu - logits * labels + softplus
    return result


def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Tensor:
    """Compute the element-wise sigmoid cross entropy with positive labels weighted by `pos_weight`.

    .. math:: loss = (1 - z) x + (1 + (q - 1) z) (\\log(1 + e^{-|x|}) + \\max(-x, 0)), \\quad q = pos\\_weight
    """
    labels, logits = _as_tensors(labels, logits, "weighted_cross_entropy_with_logits", name)
    if not hasattr(pos_weight, "spec"):
        pos_weight = dispatch.to_tensor(pos_weight, logits.dtype)
    weight = 1.0 + (pos_weight - 1.0) * labels
    relu, softplus = _relu_and_log1p_exp(logits)
    result: Tensor = (1.0 - labels) * logits + weight * (softplus + (relu - logits))
    return result


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Tensor:
    """Compute the negative log-likelihood of Poisson counts, given the logarithm of their rate, without log(z!).

    .. math:: loss = e^c - z c \\; [ + z \\log z - z + \\tfrac12 \\log(2 \\pi z) ]

    compute_full_loss: whether to add Stirling's approximation of log(z!), for z > 1.
    """
    targets, log_input = _as_tensors(targets, log_input, "log_poisson_loss", name)
    result: Tensor = exp(log_input) - log_input * targets
    if compute_full_loss:
        large = targets > 1
        z = where(large, targets, zeros_like(targets) + 1.0)
        stirling = z * log(z) - z + 0.5 * log(2.0 * math.pi * z)
        result = result + where(large, stirling, zeros_like(targets))
    return result


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """Divide the weighted sum of per-example losses by the batch size, by default their number."""
    losses = dispatch.to_tensor(per_example_loss)
    if sample_weight is not None:
        losses = losses * cast(sample_weight, losses.dtype)
    count = array.size(losses) if global_batch_size is None else global_batch_size
    return reduce_sum(losses) / cast(count, losses.dtype)
