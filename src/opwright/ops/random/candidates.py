"""Samplers of classes by known distributions, for losses over some of many classes.

Lives here: the samplers. Not here: the losses (ops/nn/sampled.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import int64
from ...core.errors import InvalidArgumentError
from ...core.named_tuples import NamedTuple
from .. import array, dispatch, math
from ..tensor import Tensor
from .functions import uniform


class Candidates(NamedTuple):
    """Sampled classes [num_sampled], and how often a sample has each true and each sampled class, on average."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def _sample(
    probabilities: np.ndarray, true_classes: Any, num_sampled: int, unique: bool, seed: Any, caller: str
) -> Candidates:
    """Draw classes by their probabilities.

    unique: until num_sampled different ones are drawn. Which classes are new, in which order, is drawn without
    repetitions, by the largest of log p + Gumbel; then how many draws each of them took, a geometric number.
    """
    count = len(probabilities)
    if unique and num_sampled > count:
        raise InvalidArgumentError(
            op=caller, what="more samples than classes", found=f"num_sampled={num_sampled}", wanted=f"at most {count}"
        )
    rates = dispatch.to_tensor(probabilities.astype(np.float32))
    tiny = float(np.finfo(np.float32).tiny)
    if unique:
        seeds = (seed, None if seed is None else seed + 1)
        keys = math.log(rates) - math.log(-math.log(uniform([count], tiny, 1.0, seed=seeds[0])))
        ids = math.top_k(keys, num_sampled)[1]
        sampled = array.cast(ids, int64)
        seen = math.cumsum(array.gather(rates, sampled), exclusive=True)  # the share of classes drawn before each
        waits = math.floor(math.log(uniform([num_sampled], tiny, 1.0, seed=seeds[1])) / math.log(seen + tiny))
        draws = num_sampled + math.reduce_sum(array.where(seen > 0.0, waits, array.zeros_like(waits)))

        def expected(ids: Any) -> Tensor:
            return -math.expm1(draws * math.log1p(-array.gather(rates, ids)))
    else:
        edges = dispatch.to_tensor(np.cumsum(probabilities).astype(np.float32))
        found = array.searchsorted(edges, uniform([num_sampled], seed=seed), side="right")
        sampled = array.cast(math.minimum(found, count - 1), int64)

        def expected(ids: Any) -> Tensor:
            return array.gather(rates, ids) * num_sampled

    true = array.cast(dispatch.to_tensor(true_classes), int64)
    return Candidates(sampled, expected(true), expected(sampled))


def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: Any = None, name: Any = None
) -> Candidates:
    """Draw classes of [0, range_max) with P(k) = log((k + 2) / (k + 1)) / log(range_max + 1): frequent ones first.

    true_classes: integers [batch, num_true]; unique: whether all samples differ
    """
    k = np.arange(range_max, dtype=np.float64)
    probabilities = np.log1p(1 / (k + 1)) / np.log(range_max + 1)
    return _sample(probabilities, true_classes, num_sampled, unique, seed, "log_uniform_candidate_sampler")


def uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: Any = None, name: Any = None
) -> Candidates:
    """Draw classes of [0, range_max) with equal probabilities. Arguments: see `log_uniform_candidate_sampler`."""
    probabilities = np.full(range_max, 1.0 / range_max)
    return _sample(probabilities, true_classes, num_sampled, unique, seed, "uniform_candidate_sampler")


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: Any = None,
    name: Any = None,
) -> Candidates:
    """Draw classes in proportion to their frequencies to a power.

    unigrams: the frequencies of the classes from num_reserved_ids on, or vocab_file: their last column, lines of a CSV
    file; distortion: the power; the first num_reserved_ids classes are not drawn.
    raises InvalidArgumentError unless there is a frequency for each class, and for shards
    """
    if num_shards != 1 or shard:
        raise InvalidArgumentError(
            op="fixed_unigram_candidate_sampler", what="shards are not drawn", found=f"{shard} of {num_shards}"
        )
    if vocab_file:
        with open(vocab_file, encoding="utf-8") as lines:
            unigrams = [float(line.rsplit(",", 1)[1]) for line in lines if line.strip()]
    frequencies = np.concatenate([np.zeros(num_reserved_ids), np.asarray(unigrams, np.float64) ** distortion])
    if len(frequencies) != range_max:
        raise InvalidArgumentError(
            op="fixed_unigram_candidate_sampler",
            what="not a frequency for each class",
            found=f"{len(unigrams)} after {num_reserved_ids} reserved ones",
            wanted=f"range_max={range_max} in all",
        )
    probabilities = frequencies / frequencies.sum()
    return _sample(probabilities, true_classes, num_sampled, unique, seed, "fixed_unigram_candidate_sampler")


def all_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: Any = None, name: Any = None
) -> Candidates:
    """Return all classes of [0, num_sampled), each once, in order; expected counts are 1.

    true_classes: [batch, num_true]. num_true, unique and seed are accepted for the interface of samplers
    """
    true = dispatch.to_tensor(true_classes)
    return Candidates(array.range(num_sampled, dtype=int64), array.ones(array.shape(true)), array.ones([num_sampled]))
