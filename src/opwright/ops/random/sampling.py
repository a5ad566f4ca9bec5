"""Random operators with a state, and the distributions they draw from: each run draws new numbers.

Lives here: RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal, RandomGamma, RandomPoisson,
RandomShuffle, Multinomial; a function from a NumPy generator to an array for each distribution.
Not here: the public functions (functions.py), operators of an explicit seed (stateless.py), seeds (state.py).

seed, seed2, stream: the sequence to draw from, as returned by state.seeds_for; all 0 for one that never repeats.
float32 and float64 are drawn in their own precision. Uniform 16-bit floats are multiples of 2^-11 (float16) and 2^-8
(bfloat16), all representable; other 16-bit distributions are float32's, rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from ..inference import shape_from
from ..slots import Input, OperatorDefinition, Output
from .state import generator_for

if TYPE_CHECKING:
    from ..definition import Operator

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
    array: np.ndarray = np.clip(at, 0, max(classes - 1, 0)).astype(dtype.np)
    return array


def permuted(rng: np.random.Generator, value: np.ndarray) -> np.ndarray:
    """Rows in another order."""
    return value[rng.permutation(value.shape[0])] if value.ndim else value


def drawn(attrs: Any) -> str:
    """The effect of drawing: a Generator's sequence goes on for whoever draws next, so no draw may be left out."""
    return "write" if attrs["stream"] < 0 else "random"


def infer_shape(op: Any, dtype: DType, allowed: tuple[DType, ...]) -> TensorSpec:
    """The spec of numbers of the shape that input `shape` says. Raises InvalidArgumentError for a dtype not allowed."""
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


def _one_dtype(name: str, sample: Any, words: str, distribution: str) -> Operator:
    """An operator that draws floats of one distribution without parameters."""

    class Drawn:
        shape = Input(index, rank=1)
        output = Output()
        dtype = Attr(DType, default=float32)
        seed = Attr(int, default=0)
        seed2 = Attr(int, default=0)
        stream = Attr(int, default=0)
        effect = "random"
        effect_rule = drawn
        lod = "vanishes"
        gradient = None

        def infer(op) -> TensorSpec:
            return infer_shape(op, op.dtype, floating)

        def compute(op, shape: Any) -> Any:
            return sample(generator_for(op), tuple(shape.tolist()), op.dtype)

    Drawn.__doc__ = f"{words}\n\n    .. math:: output_i \\sim {distribution}\n\n    shape: the output's sizes.\n    "
    return operator(name=name)(Drawn)


RandomUniform = _one_dtype("RandomUniform", uniform, "Floats spread evenly over [0, 1).", "U[0, 1)")
RandomStandardNormal = _one_dtype(
    "RandomStandardNormal", normal, "Floats of the standard normal distribution.", "N(0, 1)"
)
TruncatedNormal = _one_dtype(
    "TruncatedNormal",
    truncated_normal,
    "Floats of the standard normal distribution, cut off at two deviations.",
    "N(0, 1) \\;|\\; -2 < output_i < 2",
)


def check_bounds(op: Any) -> None:
    """minval must be below maxval. Raises InvalidArgumentError."""
    low, high = op.minval.constant, op.maxval.constant
    if low is not None and high is not None:
        check_order(low, high)


def check_order(low: Any, high: Any) -> None:
    """Raises InvalidArgumentError unless low < high."""
    if not low < high:
        raise InvalidArgumentError(what=f"Need minval < maxval, got {low} >= {high}")


@operator
class RandomUniformInt(OperatorDefinition):
    """Integers in [minval, maxval), each as likely as any other.

    .. math:: output_i \\sim U\\{minval, ..., maxval - 1\\}

    raises InvalidArgumentError unless minval < maxval
    """

    shape = Input(index, rank=1)
    minval = Input((int32, int64), rank=0)
    maxval = Input((int32, int64), rank=0, like="minval")
    output = Output(like="minval")
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    effect = "random"
    effect_rule = drawn
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        check_bounds(op)
        return infer_shape(op, op.minval.spec.dtype, (int32, int64))

    def compute(op, shape: Any, minval: Any, maxval: Any) -> np.ndarray:
        check_order(minval, maxval)
        return uniform_int(generator_for(op), tuple(shape.tolist()), minval, maxval, of_numpy(minval.dtype))


@operator
class RandomGamma(OperatorDefinition):
    """Draws of the gamma distribution of rate 1: `shape` of them for each alpha.

    .. math:: output \\sim \\frac{x^{alpha - 1} e^{-x}}{\\Gamma(alpha)}

    Output: [*shape, *alpha's shape]. raises InvalidArgumentError for an alpha that is not positive
    """

    shape = Input(index, rank=1)
    alpha = Input(floating)
    output = Output(like="alpha")
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    effect = "random"
    effect_rule = drawn
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        spec = infer_shape(op, op.alpha.spec.dtype, floating)
        return spec.with_shape(spec.shape + op.alpha.spec.shape)

    def compute(op, shape: Any, alpha: Any) -> np.ndarray:
        return gamma(generator_for(op), tuple(shape.tolist()), alpha)


@operator
class RandomPoisson(OperatorDefinition):
    """Draws of the Poisson distribution: `shape` counts for each rate.

    .. math:: P(output = k) = \\frac{rate^k e^{-rate}}{k!}

    Output: [*shape, *rate's shape], in dtype. Rates that are negative or not finite give NaN.
    """

    shape = Input(index, rank=1)
    rate = Input((*floating, int32, int64))
    output = Output()
    dtype = Attr(DType, default=int64)
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    effect = "random"
    effect_rule = drawn
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        spec = infer_shape(op, op.dtype, (*floating, int32, int64))
        return spec.with_shape(spec.shape + op.rate.spec.shape)

    def compute(op, shape: Any, rate: Any) -> np.ndarray:
        return poisson(generator_for(op), tuple(shape.tolist()), rate, op.dtype)


@operator
class RandomShuffle(OperatorDefinition):
    """Rows in a random order, every order as likely as any other.

    .. math:: output_i = value_{\\pi(i)}
    """

    value = Input(any_dtype)
    output = Output(like="value")
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    effect = "random"
    effect_rule = drawn
    lod = "vanishes"
    gradient = None
    views = {"output": "value"}

    def compute(op, value: Any) -> np.ndarray:
        return permuted(generator_for(op), value)


def check_samples(op: Any) -> TensorSpec:
    """The spec of draws from rows of logits. Raises InvalidArgumentError."""
    if op.output_dtype not in index:
        raise InvalidArgumentError(what="output_dtype is int32 or int64", found=op.output_dtype.name)
    n = op.num_samples.constant
    if n is not None and n < 0:
        raise InvalidArgumentError(what=f"num_samples should be nonnegative, got {n}")
    shape = op.logits.spec.shape
    return TensorSpec([shape[0] if shape.rank == 2 else None, None if n is None else int(n)], op.output_dtype)


@operator
class Multinomial(OperatorDefinition):
    """Classes drawn by unnormalised log-probabilities, with replacement.

    .. math:: P(output_{b,k} = c) = \\frac{e^{logits_{b,c}}}{\\sum_j e^{logits_{b,j}}}

    logits: [batch, classes]; num_samples: a scalar. Output: [batch, num_samples] of output_dtype.
    """

    logits = Input(real, rank=2)
    num_samples = Input(index, rank=0)
    output = Output()
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    output_dtype = Attr(DType, default=int64)
    effect = "random"
    effect_rule = drawn
    lod = "as logits"
    gradient = None

    def infer(op) -> TensorSpec:
        return check_samples(op)

    def compute(op, logits: Any, num_samples: Any) -> np.ndarray:
        return categorical(generator_for(op), logits, int(num_samples), op.output_dtype)
