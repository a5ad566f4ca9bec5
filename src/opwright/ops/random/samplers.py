"""Distributions: from a NumPy generator to arrays of numbers.

Lives here: one function a distribution.  Not here: seeds (state.py), operators (drawing.py, stateless.py).

float32 and float64 are drawn in their own precision. Uniform 16-bit floats are multiples of 2^-11 (float16) and 2^-8
(bfloat16), of which every one is representable; other 16-bit distributions are float32's, rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, bfloat16, float16, float64
from ...core.errors import InvalidArgumentError

Shape = Sequence[int]


def _own(dtype: DType) -> Any:
    return np.float64 if dtype is float64 else np.float32


def uniform(rng: np.random.Generator, shape: Shape, dtype: DType) -> np.ndarray:
    """Evenly in [0, 1)."""
    if dtype in (float16, bfloat16):
        bits = 11 if dtype is float16 else 8
        return np.asarray(rng.integers(0, 1 << bits, shape, np.uint16) * np.float32(0.5**bits)).astype(dtype.np)
    return np.asarray(rng.random(shape, _own(dtype)))


def uniform_int(rng: np.random.Generator, shape: Shape, low: Any, high: Any, dtype: DType) -> np.ndarray:
    """Integers in [low, high), each as likely as any other (rejection, not remainders)."""
    return np.asarray(rng.integers(low, high, tuple(shape), dtype.np))


def full_int(rng: np.random.Generator, shape: Shape, dtype: DType) -> np.ndarray:
    """All integers of the dtype, each as likely as any other."""
    low, high = dtype.limits
    return np.asarray(rng.integers(low, high, shape, dtype.np, endpoint=True))


def normal(rng: np.random.Generator, shape: Shape, dtype: DType) -> np.ndarray:
    """The standard normal distribution."""
    return np.asarray(rng.standard_normal(shape, _own(dtype))).astype(dtype.np, copy=False)


def truncated_normal(rng: np.random.Generator, shape: Shape, dtype: DType) -> np.ndarray:
    """The standard normal distribution, what is two deviations or more from the mean drawn again."""
    own = _own(dtype)
    x: np.ndarray = np.asarray(rng.standard_normal(shape, own)).reshape(-1)
    again = np.flatnonzero(np.abs(x) >= 2)
    while again.size:
        x[again] = rng.standard_normal(again.size, own)
        again = again[np.abs(x[again]) >= 2]
    x = x.reshape(tuple(shape)).astype(dtype.np, copy=False)
    return np.where(np.abs(x) >= 2, np.copysign(_below_two(dtype), x), x) if own is not dtype.np.type else x


def _below_two(dtype: DType) -> Any:
    """The largest 16-bit float below 2: rounding may not reach the bound."""
    return dtype.np.type(2 - 2.0**-10 if dtype is float16 else 2 - 2.0**-7)


def gamma(rng: np.random.Generator, shape: Shape, alpha: np.ndarray) -> np.ndarray:
    """Gamma of shape parameter alpha and rate 1: `shape` draws for each alpha."""
    wide = alpha.astype(np.float64)
    if not (wide > 0).all():
        raise InvalidArgumentError(what="alpha must be positive", wanted="alpha > 0")
    drawn = rng.standard_gamma(np.broadcast_to(wide, (*shape, *alpha.shape)))
    return np.asarray(drawn).astype(alpha.dtype)


def poisson(rng: np.random.Generator, shape: Shape, rate: np.ndarray, dtype: DType) -> np.ndarray:
    """Counts at the given rate: `shape` draws for each rate. NaN for rates that are negative or not finite."""
    wide = rate.astype(np.float64)
    fine = np.isfinite(wide) & (wide >= 0)
    limit = 9.2e18  # what a 64-bit count holds; beyond, the normal approximation is exact in float64
    drawn = rng.poisson(np.broadcast_to(np.where(fine, np.minimum(wide, limit), 0), (*shape, *rate.shape)))
    if dtype.is_integer:
        return np.asarray(drawn).astype(dtype.np)
    return np.where(fine, drawn, np.nan).astype(dtype.np)


def binomial(rng: np.random.Generator, shape: Shape, counts: np.ndarray, probs: np.ndarray, dtype: DType) -> np.ndarray:
    """Successes among `counts` tries of chance `probs`, which broadcast to `shape`."""
    n, p = counts.astype(np.int64), probs.astype(np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise InvalidArgumentError(what="probs must be in [0, 1]", wanted="chances")
    if (n < 0).any():
        raise InvalidArgumentError(what="counts must not be negative", wanted="counts >= 0")
    return np.asarray(rng.binomial(np.broadcast_to(n, shape), np.broadcast_to(p, shape))).astype(dtype.np)


def categorical(rng: np.random.Generator, logits: np.ndarray, n: int, dtype: DType) -> np.ndarray:
    """For each row of logits n classes, by inverting the cumulated probabilities; a logit of -inf is never drawn."""
    batch, classes = logits.shape
    if classes == 0 and batch and n:
        raise InvalidArgumentError(what="num_classes should be positive, got 0", found=f"logits {list(logits.shape)}")
    x = logits.astype(np.float64)
    p = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    cumulated = np.cumsum(p, -1)
    cumulated /= cumulated[:, -1:]
    # one search over all rows: row r's numbers lie in [r, r + 1)
    row = np.arange(batch)[:, None]
    drawn = np.minimum(rng.random((batch, n)) + row, np.nextafter(row + 1.0, 0.0))
    at = np.searchsorted((cumulated + row).reshape(-1), drawn, side="right") - row * classes
    return np.clip(at, 0, max(classes - 1, 0)).astype(dtype.np)


def permuted(rng: np.random.Generator, value: np.ndarray) -> np.ndarray:
    """Rows in another order."""
    return value[rng.permutation(value.shape[0])] if value.ndim else value
