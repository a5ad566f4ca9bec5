"""Decoding of connectionist temporal classification by beam search.

Lives here: CTCBeamSearch, `ctc_beam_search_decoder`.  Not here: the loss and greedy decoding (ctc.py).
Source: Hannun et al., First-Pass Large Vocabulary Continuous Speech Recognition using Bi-Directional Recurrent DNNs,
2014, algorithm 1, without a language model; names and conventions of TensorFlow.
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
from ..sparse.sparse_tensor import SparseTensor
from ..tensor import Tensor

Prefix = tuple[int, ...]


@operator
class CTCBeamSearch(OperatorDefinition):
    """Find the most probable label sequences of logits, each with the sum over all alignments that were kept.

    .. math:: labels = argmax_l \\sum_{\\pi: collapse(\\pi) = l} \\prod_t softmax(logits_t)_{\\pi_t}

    logits: [time, batch, classes]; sequence_length: [batch], steps that count; blank_index: the class of no label,
    negative from the last. labels: [batch, top_paths, time], -1 behind a sequence; lengths: [batch, top_paths];
    log_probability: [batch, top_paths], the most probable first. beam_width: prefixes that are kept after each step.
    raises InvalidArgumentError for more paths than beams, and for lengths out of range
    """

    logits = Input((dtypes.float32, dtypes.float64), rank=3)
    sequence_length = Input((dtypes.int32, dtypes.int64), rank=1)
    labels = Output(dtype=dtypes.int64)
    lengths = Output(dtype=dtypes.int64)
    log_probability = Output(like="logits")
    beam_width = Attr(int, default=100, check=at_least(1))
    top_paths = Attr(int, default=1, check=at_least(1))
    blank_index = Attr(int, default=-1)
    lod = "vanishes"
    gradient = None

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        if op.top_paths > op.beam_width:
            raise InvalidArgumentError(
                what="requested more paths than the beam width",
                found=f"top_paths={op.top_paths}, beam_width={op.beam_width}",
            )
        steps, batch, classes = op.logits.shape.dims or (None, None, None)
        if classes is not None and not -classes <= op.blank_index < classes:
            raise InvalidArgumentError(what=f"blank_index is not in [-{classes}, {classes})", found=op.blank_index)
        labels = TensorSpec([batch, op.top_paths, steps], dtypes.int64)
        scores = op.logits.spec.with_shape([batch, op.top_paths])
        return labels, TensorSpec([batch, op.top_paths], dtypes.int64), scores

    def compute(op, logits: Any, sequence_length: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        steps, batch, classes = logits.shape
        if sequence_length.shape != (batch,) or np.any((sequence_length < 0) | (sequence_length > steps)):
            raise InvalidArgumentError(
                what=f"sequence_length must have a length from 0 to {steps} for each of {batch} sequences",
                found=sequence_length,
            )
        wide = logits.astype(np.float64)
        wide = wide - np.max(wide, 2, keepdims=True, initial=-np.inf)
        logp = wide - np.log(np.sum(np.exp(wide), 2, keepdims=True))
        labels = np.full((batch, op.top_paths, steps), -1, np.int64)
        lengths = np.zeros((batch, op.top_paths), np.int64)
        scores = np.full((batch, op.top_paths), -np.inf)
        for b in range(batch):
            found = _search(logp[: sequence_length[b], b], op.beam_width, op.blank_index % classes)
            for k, (prefix, score) in enumerate(found[: op.top_paths]):
                labels[b, k, : len(prefix)], lengths[b, k], scores[b, k] = prefix, len(prefix), score
        return labels, lengths, scores.astype(logits.dtype)


def _search(logp: np.ndarray, width: int, blank: int) -> list[tuple[Prefix, float]]:
    """Return at most `width` label sequences with their log-probabilities, the most probable first.

    logp: [time, classes]. A prefix has the probability of its alignments that end with blank, and of the others.
    """
    beams: dict[Prefix, tuple[float, float]] = {(): (0.0, -np.inf)}
    for step in logp:
        following: dict[Prefix, list[float]] = {}
        for prefix, (with_blank, without) in beams.items():
            either = np.logaddexp(with_blank, without)
            same = following.setdefault(prefix, [-np.inf, -np.inf])
            same[0] = np.logaddexp(same[0], either + step[blank])
            for label in range(len(step)):
                if label == blank:
                    continue
                repeated = bool(prefix) and prefix[-1] == label
                if repeated:
                    same[1] = np.logaddexp(same[1], without + step[label])
                longer = following.setdefault((*prefix, label), [-np.inf, -np.inf])
                longer[1] = np.logaddexp(longer[1], (with_blank if repeated else either) + step[label])
        ranked = sorted(following.items(), key=lambda each: -float(np.logaddexp(each[1][0], each[1][1])))[:width]
        beams = {prefix: (pair[0], pair[1]) for prefix, pair in ranked}
    totals = [(prefix, float(np.logaddexp(pair[0], pair[1]))) for prefix, pair in beams.items()]
    return sorted(totals, key=lambda each: -each[1])


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """Return the most probable label sequences: a SparseTensor [batch, longest] for each of top_paths.

    inputs: logits [time, batch, classes], the last class is not a label; sequence_length: steps that count, [batch].
    Also returned: their log-probabilities, [batch, top_paths].
    raises InvalidArgumentError for more paths than beams
    """
    logits: Tensor = dispatch.to_tensor(inputs)
    labels, lengths, scores = CTCBeamSearch(
        logits, dispatch.to_tensor(sequence_length), beam_width=beam_width, top_paths=top_paths
    )
    return [_as_sparse(labels[:, k], lengths[:, k]) for k in range(top_paths)], scores


def _as_sparse(labels: Tensor, lengths: Tensor) -> SparseTensor:
    places = array.where(math.greater_equal(labels, array.cast(0, dtypes.int64)))
    longest = math.reduce_max(array.concat([lengths, array.zeros([1], dtypes.int64)], 0))
    shape = array.stack([array.shape(labels, dtypes.int64)[0], longest])
    return SparseTensor.of(places, array.gather_nd(labels, places), shape)
