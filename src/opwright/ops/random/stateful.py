"""Stateful random operators and their distributions.

Lives here: RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal, RandomGamma, RandomPoisson,
RandomShuffle, Multinomial; a function from a NumPy generator to an array for each distribution.
Not here: the public functions (functions.py), operators with an explicit seed (stateless.py), seeds (state.py).

seed, seed2, stream: identify the sequence, as returned by state.seeds_for; all 0 for a nondeterministic one.
float32 and float64 are drawn in their own precision. Uniform 16-bit floats are multiples of 2^-11 (float16) and 2^-8
(bfloat16), all representable; other 16-bit distributions are float32's, rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import (
    DType,
    any_dtype,
    bfloat16,
    float16,
    float32,
    float64,
    floating,
    index,
    int32,
    int64,
    of_numpy,
    real,
)
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ..attributes import Attr
from ..definition import operator
from ..shape_inference import shape_from
from ..slots import Input, OperatorDefinition, Output
from .state import generator_for

if TYPE_CHECKING:
    from ..definition import Operator

Shape = Sequence[int]


def _native_dtype(dtype: DType) -> type[np.float64] | type[np.float32]:
    """Return the dtype in which NumPy draws numbers for `dtype`."""
    return np.float64 if dtype is float64 else np.float32


def uniform(rng: np.random.Generator, shape: Shape, dtype: DType) -> np.ndarray:
    """Draw from U[0, 1)."""
    if dtype in (float16, bfloat16):
        bits = 11 if dtype is float16 else 8
        return np.asarray(rng.integers(0, 1 << bits, shape, np.uint16) * np.float32(0.5**bits)).astype(dtype.np)
    return np.asarray(rng.random(shape, _native_dtype(dtype)))


def uniform_int(rng: np.random.Generator, shape: Shape, low: Any, high: Any, dtype: DType) -> np.ndarray:
    """Draw uniform integers in [low, high), by rejection sampling."""
    return np.asarray(rng.integers(low, high, tuple(shape), dtype.np))


def full_int(rng: np.random.Generator, shape: Shape, dtype: DType) -> np.ndarray:
    """Draw uniform integers of the full range of the dtype."""
    low, high = dtype.limits
    return np.asarray(rng.integers(low, high, shape, dtype.np, endpoint=True))


def normal(rng: np.random.Generator, shape: Shape, dtype: DType) -> np.ndarray:
    """Draw from the standard normal distribution."""
    return np.asarray(rng.standard_normal(shape, _native_dtype(dtype))).astype(dtype.np, copy=False)


def truncated_normal(rng: np.random.Generator, shape: Shape, dtype: DType) -> np.ndarray:
    """Draw from the standard normal distribution truncated to (-2, 2), by rejection sampling."""
    native = _native_dtype(dtype)
    x: np.ndarray = np.asarray(rng.standard_normal(shape, native)).reshape(-1)
    rejected = np.flatnonzero(np.abs(x) >= 2)
    while rejected.size:
        x[rejected] = rng.standard_normal(rejected.size, native)
        rejected = rejected[np.abs(x[rejected]) >= 2]
    x = x.reshape(tuple(shape)).astype(dtype.np, copy=False)
    if native is dtype.np.type:
        return x
    below_two = dtype.np.type(2 - 2.0**-10 if dtype is float16 else 2 - 2.0**-7)  # rounding must not reach the bound
    return np.where(np.abs(x) >= 2, np.copysign(below_two, x), x)


def gamma(rng: np.random.Generator, shape: Shape, alpha: np.ndarray) -> np.ndarray:
    """Draw from gamma distributions of shape parameter alpha and rate 1: `shape` numbers for each alpha."""
    wide = alpha.astype(np.float64)
    if not (wide > 0).all():
        raise InvalidArgumentError(what="alpha must be positive", wanted="alpha > 0")
    numbers = rng.standard_gamma(np.broadcast_to(wide, (*shape, *alpha.shape)))
    return np.asarray(numbers).astype(alpha.dtype)


def poisson(rng: np.random.Generator, shape: Shape, rate: np.ndarray, dtype: DType) -> np.ndarray:
    """Draw from Poisson distributions: `shape` counts for each rate. NaN for rates that are negative or not finite."""
    wide = rate.astype(np.float64)
    valid = np.isfinite(wide) & (wide >= 0)
    limit = 9.2e18  # largest 64-bit count; beyond, the normal approximation is exact in float64
    counts = rng.poisson(np.broadcast_to(np.where(valid, np.minimum(wide, limit), 0), (*shape, *rate.shape)))
    if dtype.is_integer:
        return np.asarray(counts).astype(dtype.np)
    return np.where(valid, counts, np.nan).astype(dtype.np)


def binomial(rng: np.random.Generator, shape: Shape, counts: np.ndarray, probs: np.ndarray, dtype: DType) -> np.ndarray:
    """Draw from binomial distributions of `counts` trials of probability `probs`, which broadcast to `shape`."""
    n, p = counts.astype(np.int64), probs.astype(np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise InvalidArgumentError(what="probs must be in [0, 1]", wanted="chances")
    if (n < 0).any():
        raise InvalidArgumentError(what="counts must not be negative", wanted="counts >= 0")
    return np.asarray(rng.binomial(np.broadcast_to(n, shape), np.broadcast_to(p, shape))).astype(dtype.np)


def categorical(rng: np.random.Generator, logits: np.ndarray, n: int, dtype: DType) -> np.ndarray:
    """Draw n classes per row of logits by inverse transform sampling; a logit of -inf is never drawn."""
    batch, classes = logits.shape
    if classes == 0 and batch and n:
        raise InvalidArgumentError(what="num_classes should be positive, got 0", found=f"logits {list(logits.shape)}")
    x = logits.astype(np.float64)
    p = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    cdf = np.cumsum(p, -1)
    cdf /= cdf[:, -1:]
    # one binary search for all rows: numbers of row r are in [r, r + 1)
    row = np.arange(batch)[:, None]
    uniforms = np.minimum(rng.random((batch, n)) + row, np.nextafter(row + 1.0, 0.0))
    samples = np.searchsorted((cdf + row).reshape(-1), uniforms, side="right") - row * classes
    result: np.ndarray = np.clip(samples, 0, max(classes - 1, 0))
    return result.astype(dtype.np)


def permuted(rng: np.random.Generator, value: np.ndarray) -> np.ndarray:
    """Permute the rows of an array."""
    shuffled: np.ndarray = value[rng.permutation(value.shape[0])] if value.ndim else value
    return shuffled


def sampling_effect(attrs: Any) -> str:
    """Return the effect of an operator: "write" for a Generator, whose sequence other operators continue."""
    return "write" if attrs["stream"] < 0 else "random"


def infer_shape(op: Any, dtype: DType, allowed: tuple[DType, ...]) -> TensorSpec:
    """Infer the spec of numbers of the shape in input `shape`. Raises InvalidArgumentError for a dtype not allowed."""
    if dtype not in allowed:
        raise InvalidArgumentError(
            what="random numbers do not come in this dtype",
            found=dtype.name,
            wanted=f"one of {', '.join(d.name for d in allowed)}",
        )
    sizes = op.shape.constant
    if sizes is not None and (sizes < 0).any():
        raise InvalidArgumentError(what=f"Dimension {sizes.min()} must be >= 0", found=f"shape {sizes.tolist()}")
    return TensorSpec(shape_from(op.shape), dtype)


def _define(name: str, sample: Callable[..., np.ndarray], summary: str, distribution: str) -> Operator:
    """Define an operator that draws floats from one distribution without parameters."""

    class StatefulSampler:
        shape = Input(index, rank=1)
        output = Output()
        dtype = Attr(DType, default=float32)
        seed = Attr(int, default=0)
        seed2 = Attr(int, default=0)
        stream = Attr(int, default=0)
        effect = "random"
        effect_rule = sampling_effect
        lod = "vanishes"
        gradient = None

        def infer(op) -> TensorSpec:
            return infer_shape(op, op.dtype, floating)

        def compute(op, shape: Any) -> np.ndarray:
            return sample(generator_for(op), tuple(shape.tolist()), op.dtype)

    StatefulSampler.__doc__ = f"""{summary}.

    .. math:: output_i \\sim {distribution}

    shape: the output's sizes.
    """
    return operator(name=name)(StatefulSampler)


RandomUniform = _define("RandomUniform", uniform, "Draw floats uniformly from [0, 1)", "U[0, 1)")
RandomStandardNormal = _define(
    "RandomStandardNormal", normal, "Draw floats from the standard normal distribution", "N(0, 1)"
)
TruncatedNormal = _define(
    "TruncatedNormal",
    truncated_normal,
    "Draw floats from the standard normal distribution truncated at two standard deviations",
    "N(0, 1) \\;|\\; -2 < output_i < 2",
)


def check_bounds(op: Any) -> None:
    """Check that minval is below maxval, if both are constants. Raises InvalidArgumentError."""
    low, high = op.minval.constant, op.maxval.constant
    if low is not None and high is not None:
        check_order(low, high)


def check_order(low: Any, high: Any) -> None:
    """Raise InvalidArgumentError unless low < high."""
    if not low < high:
        raise InvalidArgumentError(what=f"Need minval < maxval, got {low} >= {high}")


class _Sampling(OperatorDefinition):
    """Base of draws from the sequence of a seed."""

    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    effect = "random"
    effect_rule = sampling_effect
    lod = "vanishes"
    gradient = None


@operator
class RandomUniformInt(_Sampling):
    """Draw integers uniformly from [minval, maxval).

    .. math:: output_i \\sim U\\{minval, ..., maxval - 1\\}

    raises InvalidArgumentError unless minval < maxval
    """

    shape = Input(index, rank=1)
    minval = Input((int32, int64), rank=0)
    maxval = Input((int32, int64), rank=0, like="minval")
    output = Output(like="minval")

    def infer(op) -> TensorSpec:
        check_bounds(op)
        return infer_shape(op, op.minval.spec.dtype, (int32, int64))

    def compute(op, shape: Any, minval: Any, maxval: Any) -> np.ndarray:
        check_order(minval, maxval)
        return uniform_int(generator_for(op), tuple(shape.tolist()), minval, maxval, of_numpy(minval.dtype))


@operator
class RandomGamma(_Sampling):
    """Draw from gamma distributions of rate 1: `shape` numbers for each alpha.

    .. math:: output \\sim \\frac{x^{alpha - 1} e^{-x}}{\\Gamma(alpha)}

    Output: [*shape, *alpha's shape]. raises InvalidArgumentError for an alpha that is not positive
    """

    shape = Input(index, rank=1)
    alpha = Input(floating)
    output = Output(like="alpha")

    def infer(op) -> TensorSpec:
        spec = infer_shape(op, op.alpha.spec.dtype, floating)
        return spec.with_shape(spec.shape + op.alpha.spec.shape)

    def compute(op, shape: Any, alpha: Any) -> np.ndarray:
        return gamma(generator_for(op), tuple(shape.tolist()), alpha)


@operator
class RandomPoisson(OperatorDefinition):
    """Draw from Poisson distributions: `shape` counts for each rate.

    .. math:: P(output = k) = \\frac{rate^k e^{-rate}}{k!}

    Output: [*shape, *rate's shape], in dtype. NaN for rates that are negative or not finite.
    """

    shape = Input(index, rank=1)
    rate = Input((*floating, int32, int64))
    output = Output()
    dtype = Attr(DType, default=int64)
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    effect = "random"
    effect_rule = sampling_effect
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        spec = infer_shape(op, op.dtype, (*floating, int32, int64))
        return spec.with_shape(spec.shape + op.rate.spec.shape)

    def compute(op, shape: Any, rate: Any) -> np.ndarray:
        return poisson(generator_for(op), tuple(shape.tolist()), rate, op.dtype)


@operator
class RandomShuffle(_Sampling):
    """Shuffle rows, all permutations with equal probability.

    .. math:: output_i = value_{\\pi(i)}
    """

    value = Input(any_dtype)
    output = Output(like="value")
    views = {"output": "value"}

    def compute(op, value: Any) -> np.ndarray:
        return permuted(generator_for(op), value)


def check_samples(op: Any) -> TensorSpec:
    """Infer the spec of samples from rows of logits. Raises InvalidArgumentError for an invalid dtype or number."""
    if op.output_dtype not in index:
        raise InvalidArgumentError(what="output_dtype is int32 or int64", found=op.output_dtype.name)
    n = op.num_samples.constant
    if n is not None and n < 0:
        raise InvalidArgumentError(what=f"num_samples should be nonnegative, got {n}")
    shape = op.logits.spec.shape
    return TensorSpec([shape[0] if shape.rank == 2 else None, None if n is None else int(n)], op.output_dtype)


@operator
class Multinomial(_Sampling):
    """Draw classes by unnormalized log-probabilities, with replacement.

    .. math:: P(output_{b,k} = c) = \\frac{e^{logits_{b,c}}}{\\sum_j e^{logits_{b,j}}}

    logits: [batch, classes]; num_samples: a scalar. Output: [batch, num_samples] of output_dtype.
    """

    logits = Input(real, rank=2)
    num_samples = Input(index, rank=0)
    output = Output()
    output_dtype = Attr(DType, default=int64)
    lod = "as logits"

    infer = check_samples

    def compute(op, logits: Any, num_samples: Any) -> np.ndarray:
        return categorical(generator_for(op), logits, int(num_samples), op.output_dtype)
