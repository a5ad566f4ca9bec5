"""Connectionist temporal classification: the loss of sequences without alignment, and greedy decoding.

Lives here: CTCLoss, `ctc_loss`, `ctc_greedy_decoder`, `collapse_repeated`, `ctc_unique_labels`.
Not here: other losses (softmax.py, sampled.py).
Source: Graves et al., Connectionist Temporal Classification, 2006; the names and conventions of TensorFlow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch, math
from ..attributes import Attr, at_least
from ..definition import operator
from ..slots import Input, OperatorDefinition, Output
from ..sparse.functions import to_dense
from ..sparse.sparse_tensor import SparseTensor
from ..tensor import Tensor


@operator
class CTCLoss(OperatorDefinition):
    """Compute the negative log-probability that a sequence of logits has a label sequence, whatever its alignment.

    .. math:: loss_b = -\\log \\sum_{\\pi: collapse(\\pi) = labels_b} \\prod_t softmax(logits_{t,b})_{\\pi_t}

    logits: [time, batch, classes]; labels: [batch, length], of which the first label_length count, in the
    first logit_length steps; collapse drops
    repetitions, then blank_index. logits_gradient: of the loss. A sequence that is too short for its labels has an
    infinite loss, and no gradient.
    raises InvalidArgumentError for lengths and labels out of range
    """

    logits = Input((dtypes.float32, dtypes.float64), rank=3)
    labels = Input((dtypes.int32, dtypes.int64), rank=2)
    label_length = Input((dtypes.int32, dtypes.int64), rank=1)
    logit_length = Input((dtypes.int32, dtypes.int64), rank=1)
    loss = Output(like="logits")
    logits_gradient = Output(like="logits", intermediate=True)
    blank_index = Attr(int, default=0, check=at_least(0))
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        logits = op.logits.spec
        return logits.with_shape([None if logits.shape.rank is None else logits.shape[1]]), logits

    def compute(op, logits: Any, labels: Any, label_length: Any, logit_length: Any) -> tuple[np.ndarray, np.ndarray]:
        steps, batch, classes = logits.shape
        for name, lengths, limit in (
            ("label_length", label_length, labels.shape[1]),
            ("logit_length", logit_length, steps),
        ):
            if lengths.shape != (batch,) or np.any((lengths < 0) | (lengths > limit)):
                raise InvalidArgumentError(
                    what=f"{name} must have a length from 0 to {limit} for each of {batch} sequences", found=lengths
                )
        inside = np.arange(labels.shape[1]) < label_length[:, None]
        if op.blank_index >= classes or np.any(inside & ((labels < 0) | (labels >= classes))):
            raise InvalidArgumentError(what=f"a label or blank_index is not in [0, {classes})", found=op.blank_index)
        return _loss_and_gradient(logits, np.where(inside, labels, op.blank_index), label_length, logit_length, op)

    def gradient(op, dloss: Any, dgradient: Any) -> tuple[Any, None, None, None]:
        return op.logits_gradient * array.expand_dims(array.expand_dims(dloss, 0), 2), None, None, None


def _loss_and_gradient(
    logits: np.ndarray, labels: np.ndarray, label_length: np.ndarray, logit_length: np.ndarray, op: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return losses and their gradients by the sums of all paths forward and backward, in logarithms of float64."""
    steps, batch, classes = logits.shape
    wide = logits.astype(np.float64)
    logp = wide - wide.max(2, keepdims=True)
    logp -= np.log(np.exp(logp).sum(2, keepdims=True))
    states = 2 * labels.shape[1] + 1  # blank, label, blank, ..., label, blank
    path = np.full((batch, states), op.blank_index, np.int64)
    path[:, 1::2] = labels
    skips = np.zeros((batch, states), bool)  # states that may follow the one before the blank before them
    skips[:, 3::2] = path[:, 3::2] != path[:, 1:-2:2]
    emitted = np.take_along_axis(logp, np.broadcast_to(path, (steps, batch, states)), 2)
    ends, last = 2 * label_length, logit_length - 1

    def shifted(x: np.ndarray, n: int) -> np.ndarray:
        return np.concatenate([np.full((batch, n), -np.inf), x[:, :-n]], 1)

    alpha = np.full((steps, batch, states), -np.inf)
    for t in range(steps):
        if t == 0:
            alpha[0, :, :2] = emitted[0, :, :2]
            continue
        before = alpha[t - 1]
        jump = np.where(skips, shifted(before, 2), -np.inf) if states > 2 else np.full_like(before, -np.inf)
        alpha[t] = np.logaddexp(np.logaddexp(before, shifted(before, 1)), jump) + emitted[t]
    rows, final = np.arange(batch), np.maximum(last, 0)
    total = np.logaddexp(
        alpha[final, rows, ends] if steps else np.zeros(batch),
        np.where(ends > 0, alpha[final, rows, np.maximum(ends - 1, 0)] if steps else -np.inf, -np.inf),
    )
    total = np.where(logit_length > 0, total, np.where(label_length == 0, 0.0, -np.inf))
    beta = np.full((batch, states), -np.inf)  # without the emission of its own step
    gradient = np.zeros_like(wide)
    possible = np.isfinite(total)
    for t in range(steps - 1, -1, -1):
        start = np.full((batch, states), -np.inf)
        start[rows, ends] = 0.0
        start[rows[ends > 0], ends[ends > 0] - 1] = 0.0
        if t + 1 < steps:
            after = beta + emitted[t + 1]
            one = np.concatenate([after[:, 1:], np.full((batch, 1), -np.inf)], 1)
            two = np.where(skips, after, -np.inf)
            two = np.concatenate([two[:, 2:], np.full((batch, min(2, states)), -np.inf)], 1)[:, :states]
            beta = np.logaddexp(np.logaddexp(after, one), two)
        beta = np.where(np.equal(last, t)[:, None], start, beta)
        share = np.exp(alpha[t] + beta - np.where(possible, total, 0.0)[:, None])
        occupied = np.zeros((batch, classes))
        np.add.at(occupied, (rows[:, None], path), share)
        active = np.logical_and(possible, t < logit_length)[:, None]
        gradient[t] = np.where(active, np.exp(logp[t]) - occupied, 0.0)
    return (-total).astype(logits.dtype), gradient.astype(logits.dtype)


def ctc_loss(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the losses of label sequences, [batch].

    labels: integers [batch, length], or a SparseTensor of them; label_length: how many of a row count, None for sparse
    labels. logits: [time, batch, classes], or with logits_time_major=False [batch, time, classes]; logit_length: how
    many steps count. blank_index: the class of no label, 0 by default, negative from the last; needed for sparse
    labels. unique: accepted.
    raises InvalidArgumentError for lengths and labels out of range
    """
    values: Tensor = dispatch.to_tensor(logits)
    if not logits_time_major:
        values = array.transpose(values, [1, 0, 2])
    classes = values.shape[2]
    if isinstance(labels, SparseTensor):
        if blank_index is None:
            raise ValueError("Argument `blank_index` must be provided when labels is a SparseTensor.")
        ones = labels.with_values(array.ones_like(labels.values))
        label_length = math.reduce_sum(to_dense(ones), axis=1)
        labels = to_dense(labels)
    blank = 0 if blank_index is None else int(blank_index)
    if blank < 0:
        if classes is None:
            raise ValueError("nn.ctc_loss: a negative blank_index needs a known number of classes")
        blank += classes
    loss: Any = CTCLoss(values, labels, label_length, logit_length, blank_index=blank, name=name)
    result: Tensor = loss
    return result


def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return labels [batch, time] without repetitions, and the lengths of the rows without them.

    seq_length: labels that count, [batch]. Zeros follow the last label of a row.
    """
    labels = dispatch.to_tensor(labels)
    lengths = dispatch.to_tensor(seq_length)
    kept: Any = array.concat(
        [array.ones_like(labels[:, :1], dtypes.bool), math.not_equal(labels[:, 1:], labels[:, :-1])], 1
    )
    steps = array.range(array.shape(labels, lengths.dtype)[1])
    kept = math.logical_and(kept, steps < array.expand_dims(lengths, 1))
    counts = math.reduce_sum(array.cast(kept, lengths.dtype), 1)
    places = array.where(kept)
    order = array.gather_nd(math.cumsum(array.cast(kept, dtypes.int64), axis=1) - 1, places)
    shape = array.stack([array.shape(labels, dtypes.int64)[0], array.cast(math.reduce_max(counts), dtypes.int64)])
    rows = array.stack([places[:, 0], order], 1)
    return array.scatter_nd(rows, array.gather_nd(labels, places), shape), counts


def ctc_unique_labels(labels: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the distinct labels of each row [batch, length] in the order of their first occurrence, and their indices.

    Distinct labels are int64, and zeros follow them; row i is labels[i][indices[i]], of int32 indices.
    """
    labels = array.cast(labels, dtypes.int64)
    same = math.equal(array.expand_dims(labels, 2), array.expand_dims(labels, 1))
    first = math.argmax(array.cast(same, dtypes.int32), axis=2)  # where each label occurs first
    is_first = math.equal(first, array.range(array.shape(labels, dtypes.int64)[1]))
    order = math.cumsum(array.cast(is_first, dtypes.int64), axis=1) - 1
    places = array.where(is_first)
    rows = array.stack([places[:, 0], array.gather_nd(order, places)], 1)
    distinct = array.scatter_nd(rows, array.gather_nd(labels, places), array.shape(labels, dtypes.int64))
    return distinct, array.cast(array.gather(order, first, axis=1, batch_dims=1), dtypes.int32)


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[SparseTensor], Tensor]:
    """Return the most probable class of each step, without blanks and repetitions: a list of one SparseTensor.

    inputs: logits [time, batch, classes]; sequence_length: steps that count, [batch]. blank_index: the last class by
    default, negative from the last. Also returned: the negative sum of the greatest logits, [batch, 1].
    """
    logits: Tensor = dispatch.to_tensor(inputs)
    classes = logits.shape[2]
    if classes is None:
        raise ValueError("nn.ctc_greedy_decoder: the number of classes must be known")
    blank = classes - 1 if blank_index is None else blank_index + classes * (blank_index < 0)
    best = array.transpose(math.argmax(logits, axis=2), [1, 0])
    greatest = array.transpose(math.reduce_max(logits, axis=2), [1, 0])
    steps = array.range(array.shape(best, dtypes.int64)[1])
    counted = steps < array.expand_dims(array.cast(sequence_length, dtypes.int64), 1)
    kept = math.logical_and(counted, math.not_equal(best, array.cast(blank, best.dtype)))
    if merge_repeated:
        before = array.concat([-array.ones_like(best[:, :1]), best[:, :-1]], 1)
        kept = math.logical_and(kept, math.not_equal(best, before))
    places = array.where(kept)
    order = array.gather_nd(math.cumsum(array.cast(kept, dtypes.int64), axis=1) - 1, places)
    lengths = math.reduce_sum(array.cast(kept, dtypes.int64), axis=1)
    longest = math.reduce_max(array.concat([lengths, array.zeros([1], dtypes.int64)], 0))
    indices = array.stack([places[:, 0], order], 1)
    shape = array.stack([array.shape(best, dtypes.int64)[0], longest])
    decoded = SparseTensor.of(indices, array.gather_nd(best, places), shape)
    scores = math.reduce_sum(array.where(counted, greatest, array.zero_of(greatest)), axis=1, keepdims=True)
    return [decoded], -scores
