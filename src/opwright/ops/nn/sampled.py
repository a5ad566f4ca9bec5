"""Losses over some of many classes: candidates by a known distribution, and corrections by how often it gives them.

Lives here: `nce_loss`, `sampled_softmax_loss`, `compute_accidental_hits`.
Not here: losses over all classes (softmax.py), samplers (ops/random/candidates.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import int64
from .. import array, dispatch, math
from ..linalg import matmul
from ..random.candidates import Candidates, log_uniform_candidate_sampler
from ..tensor import Tensor
from .softmax import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits


def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: Any = None, name: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the positions at which a sampled class is a true one of a row: rows, positions among the samples, weights.

    true_classes: [batch, num_true]; sampled_candidates: [num_sampled]. The weights are the lowest float32 each, to add
    to logits.
    """
    hits = array.where(_hits(true_classes, sampled_candidates))
    lowest = array.fill([array.shape(hits)[0]], float(np.finfo(np.float32).min))
    return array.cast(hits[:, 0], "int32"), hits[:, 2], lowest


def _hits(true_classes: Any, sampled_candidates: Any) -> Tensor:
    """Return [batch, num_true, num_sampled]: whether a true class is a sampled one."""
    true, sampled = (array.cast(dispatch.to_tensor(x), int64) for x in (true_classes, sampled_candidates))
    return math.equal(array.expand_dims(true, -1), sampled)


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    candidates: Candidates | None,
    remove_accidental_hits: bool,
    seed: Any,
) -> tuple[Tensor, Tensor]:
    """Return logits and labels of the true classes, then of the sampled ones, [batch, num_true + num_sampled]."""
    labels = array.cast(dispatch.to_tensor(labels), int64)
    if labels.shape.rank == 1:
        labels = array.expand_dims(labels, -1)
    if candidates is None:
        candidates = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    sampled, true_count, sampled_count = (array.stop_gradient(x) for x in candidates)
    if isinstance(weights, (list, tuple)):
        weights = array.concat([dispatch.to_tensor(w) for w in weights], axis=0)
    inputs = dispatch.to_tensor(inputs)
    sampled = array.cast(sampled, int64)
    true_rows = array.gather(weights, labels)  # [batch, num_true, dim]
    true = math.reduce_sum(array.expand_dims(inputs, 1) * true_rows, axis=-1) + array.gather(biases, labels)
    others = matmul(inputs, array.gather(weights, sampled), transpose_b=True) + array.gather(biases, sampled)
    if remove_accidental_hits:
        hits = math.reduce_any(_hits(labels, sampled), axis=1)
        others = others + array.cast(hits, others.dtype) * float(np.finfo(np.float32).min)
    true = true - math.log(array.cast(array.reshape(true_count, array.shape(true)), true.dtype))
    others = others - math.log(array.cast(sampled_count, others.dtype))
    logits = array.concat([true, others], axis=1)
    targets = array.concat([array.ones_like(true) / num_true, array.zeros_like(others)], axis=1)
    return logits, targets


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: Any = None,
    name: str | None = "sampled_softmax_loss",
) -> Tensor:
    """Return the softmax cross-entropy over true and sampled classes, [batch] (Jean et al., 2014); for training.

    weights: [num_classes, dim], or a list of its parts; biases: [num_classes]; labels: [batch, num_true]; inputs:
    [batch, dim]; sampled_values: the result of a sampler, by default that of `log_uniform_candidate_sampler` without
    repeated classes; remove_accidental_hits: leave out samples that are true classes
    """
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        None if sampled_values is None else Candidates(*sampled_values),
        remove_accidental_hits,
        seed,
    )
    return softmax_cross_entropy_with_logits(array.stop_gradient(targets), logits)


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str | None = "nce_loss",
) -> Tensor:
    """Return the loss that tells true classes from sampled ones, [batch] (Gutmann and Hyvarinen, 2010); for training.

    The sum over true and sampled classes of the sigmoid cross-entropy of their logits, from which the logarithms of
    expected counts are subtracted. Arguments: see `sampled_softmax_loss`.
    """
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        None if sampled_values is None else Candidates(*sampled_values),
        remove_accidental_hits,
        None,
    )
    return math.reduce_sum(sigmoid_cross_entropy_with_logits(targets, logits), axis=1)
