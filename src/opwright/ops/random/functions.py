"""Public functions for random numbers, under TensorFlow's names.

Lives here: normal, uniform ... and their stateless forms. Not here: the operators (stateful.py, stateless.py), seeds
(state.py), generators (generator.py).

Seeds follow TensorFlow's rules (state.py); the numbers differ. minval, maxval, mean and stddev are applied by operators
and hence differentiable; as in TensorFlow, rounding may then yield maxval itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...core.dtypes import DType, as_dtype
from ...core.shapes import TensorShape
from .. import array, dispatch, math
from ..array import cast
from ..array.shape_operators import dims_tensor
from ..registry import documented_by
from . import stateless
from .state import seeds_for
from .stateful import (
    Multinomial,
    RandomGamma,
    RandomPoisson,
    RandomShuffle,
    RandomStandardNormal,
    RandomUniform,
    RandomUniformInt,
    TruncatedNormal,
)

if TYPE_CHECKING:
    from ..tensor import Tensor

UNIFORM = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)


def sizes(shape: Any) -> Tensor:
    """Convert a shape argument to an integer tensor. Raises ValueError if it is not fully known."""
    if isinstance(shape, TensorShape):
        if not shape.is_fully_defined():
            raise ValueError(f"the shape of random numbers must be fully known; found {shape}")
        return dims_tensor(list(shape))
    if isinstance(shape, (list, tuple)):
        return dims_tensor(list(shape))
    tensor = dispatch.to_tensor(shape)
    return dims_tensor([tensor]) if tensor.shape.rank == 0 else tensor


def as_float(value: Any, dtype: DType) -> Tensor:
    """Convert a parameter to a tensor, numbers to the given dtype."""
    return dispatch.to_tensor(value) if hasattr(value, "spec") else dispatch.to_tensor(value, dtype)


def scaled(x: Tensor, scale: Any, offset: Any) -> Tensor:
    """Compute x * scale + offset, omitting operations with constants 1 and 0."""
    if not (type(scale) in (int, float) and scale == 1):
        x = x * as_float(scale, x.dtype)
    if not (type(offset) in (int, float) and offset == 0):
        x = x + as_float(offset, x.dtype)
    return x


def uniform_scaled(x: Tensor, minval: Any, maxval: Any) -> Tensor:
    """Map x from [0, 1) to [minval, maxval). maxval: None for 1."""
    maxval = 1 if maxval is None else maxval
    are_numbers = all(type(v) in (int, float) for v in (minval, maxval))
    scale = maxval - minval if are_numbers else as_float(maxval, x.dtype) - as_float(minval, x.dtype)
    return scaled(x, scale, minval)


def integer_bounds(minval: Any, maxval: Any, dtype: DType) -> tuple[Any, Any]:
    """Convert the bounds of random integers to tensors. Raises ValueError without maxval."""
    if maxval is None:
        raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
    return (
        v if hasattr(v, "spec") else dispatch.to_tensor(v, dtype) for v in (0 if minval is None else minval, maxval)
    )  # type: ignore[return-value]


@documented_by(RandomStandardNormal)
def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: Any = None,
    name: str | None = None,
) -> Tensor:
    """Draw normal numbers, scaled by stddev and shifted by mean, which broadcast with `shape`."""
    return scaled(RandomStandardNormal(sizes(shape), dtype=as_dtype(dtype), **seeds_for(seed), name=name), stddev, mean)


@documented_by(TruncatedNormal)
def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: Any = None,
    name: str | None = None,
) -> Tensor:
    """Draw normal numbers within two standard deviations of the mean."""
    return scaled(TruncatedNormal(sizes(shape), dtype=as_dtype(dtype), **seeds_for(seed), name=name), stddev, mean)


def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: Any = None,
    name: str | None = None,
) -> Tensor:
    """Draw uniform numbers in [minval, maxval): floats, by default in [0, 1), or integers, which require maxval.

    .. math:: output_i \\sim U[minval, maxval)

    raises ValueError for another dtype, or integers without maxval
    """
    return draw_uniform(shape, minval, maxval, dtype, lambda: seeds_for(seed), name)


def draw_uniform(
    shape: Any, minval: Any, maxval: Any, dtype: Any, seeds: Callable[[], dict[str, Any]], name: str | None
) -> Tensor:
    """Implement `uniform`. seeds: returns the attributes by which the operator draws, once all else is checked."""
    dtype = as_dtype(dtype)
    if dtype not in UNIFORM:
        raise ValueError(f"Argument `dtype` got invalid value {dtype!r}. Accepted dtypes are {UNIFORM}.")
    if dtype.is_integer:
        low, high = integer_bounds(minval, maxval, dtype)
        return RandomUniformInt(sizes(shape), low, high, **seeds(), name=name)
    return uniform_scaled(RandomUniform(sizes(shape), dtype=dtype, **seeds(), name=name), minval, maxval)


@documented_by(RandomShuffle)
def shuffle(value: Any, seed: Any = None, name: str | None = None) -> Tensor:
    """Shuffle the rows of a tensor."""
    return RandomShuffle(value, **seeds_for(seed), name=name)


@documented_by(Multinomial)
def categorical(logits: Any, num_samples: Any, dtype: Any = None, seed: Any = None, name: str | None = None) -> Tensor:
    """Draw classes by unnormalized log-probabilities; by default int64."""
    out_dtype = dtypes.int64 if dtype is None else as_dtype(dtype)
    return Multinomial(logits, num_samples, **seeds_for(seed), output_dtype=out_dtype, name=name)


@documented_by(RandomGamma)
def gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, seed: Any = None, name: str | None = None
) -> Tensor:
    """Draw gamma numbers of shape alpha and rate beta (1): `shape` numbers for each pair, which broadcast."""
    alpha, beta = _gamma_parameters(alpha, beta, as_dtype(dtype))
    return _gamma_scaled(RandomGamma(sizes(shape), alpha, **seeds_for(seed), name=name), beta)


def _gamma_parameters(alpha: Any, beta: Any, dtype: DType) -> tuple[Any, Any]:
    alpha, beta = as_float(alpha, dtype), as_float(1.0 if beta is None else beta, dtype)
    return alpha + 0 * beta, beta  # broadcasts alpha


def _gamma_scaled(x: Any, beta: Any) -> Tensor:
    """Divide by the rate; return at least the smallest normal number, so that logarithms are finite."""
    import ml_dtypes

    tiny = float(ml_dtypes.finfo(x.dtype.np).smallest_normal)
    return math.maximum(x / beta, tiny)


@documented_by(RandomPoisson)
def poisson(shape: Any, lam: Any, dtype: Any = dtypes.float32, seed: Any = None, name: str | None = None) -> Tensor:
    """Draw Poisson counts: `shape` for each rate in `lam`."""
    return RandomPoisson(sizes(shape), lam, dtype=as_dtype(dtype), **seeds_for(seed), name=name)


@documented_by(stateless.StatelessRandomNormal)
def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Return normal numbers, a function of `seed` (two integers). alg: accepted without effect."""
    return scaled(stateless.StatelessRandomNormal(sizes(shape), seed, dtype=as_dtype(dtype), name=name), stddev, mean)


@documented_by(stateless.StatelessTruncatedNormal)
def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Return normal numbers within two standard deviations of the mean, a function of `seed`."""
    return scaled(
        stateless.StatelessTruncatedNormal(sizes(shape), seed, dtype=as_dtype(dtype), name=name), stddev, mean
    )


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Return uniform numbers in [minval, maxval), a function of `seed`; integers of the full range without bounds.

    .. math:: output_i \\sim U[minval, maxval)

    raises ValueError for integers with one bound
    """
    dtype = as_dtype(dtype)
    if not dtype.is_integer:
        return uniform_scaled(
            stateless.StatelessRandomUniform(sizes(shape), seed, dtype=dtype, name=name), minval, maxval
        )
    if minval is None and maxval is None:
        numbers: Tensor = stateless.StatelessRandomUniformFullInt(sizes(shape), seed, dtype=dtype, name=name)
        return numbers
    if minval is None:
        raise ValueError(f"For integer dtype {dtype!r}, minval and maxval must be both `None` or both non-`None`")
    low, high = integer_bounds(minval, maxval, dtype)
    return stateless.StatelessRandomUniformInt(sizes(shape), seed, low, high, name=name)


def stateless_parameterized_truncated_normal(
    shape: Any,
    seed: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    name: str | None = None,
) -> Tensor:
    """Return normal numbers between bounds, a function of `seed`, by the inverse of their distribution function.

    .. math:: output \\sim N(mean, stddev^2) \\text{ given } minval \\le output \\le maxval

    shape: of the result; parameters broadcast to it, and have one floating dtype. Numbers in a tail far from the mean
    are drawn from the lower one, where the distribution function keeps its precision.
    """
    parameters: list[Any] = [dispatch.to_tensor(v) for v in (means, stddevs, minvals, maxvals)]
    dtype = max((p.dtype for p in parameters), key=lambda d: d.size)
    mean, deviation, low, high = (cast(p, dtype) for p in parameters)
    first, last = (low - mean) / deviation, (high - mean) / deviation
    mirrored = first > 0.0
    first, last = array.where(mirrored, -last, first), array.where(mirrored, -first, last)
    start, end = (0.5 * math.erfc(v * -(0.5**0.5)) for v in (first, last))
    u = stateless_uniform(shape, seed, dtype=dtype)
    z = math.clip_by_value(math.ndtri(start + u * (end - start)), first, last)
    result: Tensor = mean + deviation * array.where(mirrored, -z, z)
    return result


@documented_by(stateless.StatelessMultinomial)
def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Return classes by unnormalized log-probabilities, a function of `seed`."""
    return stateless.StatelessMultinomial(logits, num_samples, seed, output_dtype=as_dtype(dtype), name=name)


def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Return gamma numbers, a function of `seed`. shape: of the result; alpha and beta broadcast to it.

    .. math:: output \\sim \\frac{beta^{alpha}}{\\Gamma(alpha)} x^{alpha - 1} e^{-beta x}
    """
    alpha, beta = _gamma_parameters(alpha, beta, as_dtype(dtype))
    alpha = array.broadcast_to(alpha, sizes(shape))
    return _gamma_scaled(stateless.StatelessRandomGamma(dims_tensor([]), seed, alpha, name=name), beta)


def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """Return Poisson counts, a function of `seed`. shape: of the result; lam broadcasts to it.

    .. math:: P(output = k) = \\frac{lam^k e^{-lam}}{k!}
    """
    lam = array.broadcast_to(dispatch.to_tensor(lam), sizes(shape))
    return stateless.StatelessRandomPoisson(dims_tensor([]), seed, lam, dtype=as_dtype(dtype), name=name)


@documented_by(stateless.StatelessRandomBinomial)
def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Return binomial counts, a function of `seed`."""
    return stateless.StatelessRandomBinomial(
        sizes(shape), seed, counts, probs, output_dtype=as_dtype(output_dtype), name=name
    )


@documented_by(stateless.StatelessShuffle)
def stateless_shuffle(value: Any, seed: Any, alg: Any = "auto_select", name: str | None = None) -> Tensor:
    """Return rows in random order, a function of `seed`."""
    return stateless.StatelessShuffle(value, seed, name=name)


def split(seed: Any, num: int = 2, alg: Any = "auto_select") -> Tensor:
    """Derive `num` seeds from a seed: [num, 2], in the seed's dtype."""
    seed = dispatch.to_tensor(seed)
    seeds: Tensor = stateless.StatelessRandomUniformFullInt(sizes([num, 2]), seed, dtype=seed.dtype)
    return seeds


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """Derive a seed from a seed and an integer."""
    seed = dispatch.to_tensor(seed)
    first = stateless.StatelessRandomUniformFullInt(sizes([1]), seed, dtype=seed.dtype)[0]
    return array.stack([first, cast(data, seed.dtype)])
