"""`keras.random`: random tensors with seeds in Keras's sense.

Lives here: SeedGenerator under its public name, draws by a seed or a generator.
Not here: TensorFlow's random functions (ops/random/), initializers.

seed: None for new numbers each time, an integer for the same numbers each time, or a SeedGenerator that goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.dtypes import as_dtype
from ..ops import array, dispatch, random
from . import backend
from .seeds import SeedGenerator

if TYPE_CHECKING:
    from ..core.dtypes import DType
    from ..ops.tensor import Tensor

__all__ = [
    "SeedGenerator",
    "categorical",
    "dropout",
    "gamma",
    "normal",
    "randint",
    "shuffle",
    "truncated_normal",
    "uniform",
]


def _drawn(seed: Any, stateful: Any, stateless: Any) -> Any:
    """Draw from the stateful generator, or by a stateless seed of two integers."""
    if seed is None:
        return stateful()
    return stateless(seed.next() if isinstance(seed, SeedGenerator) else [int(seed), 0])


def _dtype(dtype: Any) -> DType:
    return as_dtype(backend.floatx() if dtype is None else dtype)


def normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Draw from the normal distribution."""
    d = _dtype(dtype)
    return _drawn(
        seed,
        lambda: random.normal(shape, mean, stddev, d),
        lambda s: random.stateless_normal(shape, s, mean, stddev, d),
    )


def truncated_normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Draw from the normal distribution truncated at two standard deviations."""
    d = _dtype(dtype)
    return _drawn(
        seed,
        lambda: random.truncated_normal(shape, mean, stddev, d),
        lambda s: random.stateless_truncated_normal(shape, s, mean, stddev, d),
    )


def uniform(shape: Any, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Draw uniformly from [minval, maxval)."""
    d = _dtype(dtype)
    return _drawn(
        seed,
        lambda: random.uniform(shape, minval, maxval, d),
        lambda s: random.stateless_uniform(shape, s, minval, maxval, d),
    )


def randint(shape: Any, minval: Any, maxval: Any, dtype: Any = "int32", seed: Any = None) -> Any:
    """Draw integers uniformly from [minval, maxval)."""
    d = as_dtype(dtype)
    return _drawn(
        seed,
        lambda: random.uniform(shape, minval, maxval, d),
        lambda s: random.stateless_uniform(shape, s, minval, maxval, d),
    )


def categorical(logits: Any, num_samples: Any, dtype: Any = "int32", seed: Any = None) -> Any:
    """Draw class indices [batch, num_samples] from unnormalized log-probabilities."""
    d = as_dtype(dtype)
    return _drawn(
        seed,
        lambda: random.categorical(logits, num_samples, d),
        lambda s: random.stateless_categorical(logits, num_samples, s, d),
    )


def gamma(shape: Any, alpha: Any, dtype: Any = None, seed: Any = None) -> Any:
    """Draw from the gamma distribution of shape alpha and rate 1."""
    d = _dtype(dtype)
    return _drawn(
        seed, lambda: random.gamma(shape, alpha, dtype=d), lambda s: random.stateless_gamma(shape, s, alpha, dtype=d)
    )


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> Tensor:
    """Shuffle the slices along an axis."""
    x = dispatch.to_tensor(x)
    order = list(range(x.shape.rank))
    order[0], order[axis] = order[axis], order[0]
    rows = array.transpose(x, order)
    mixed = _drawn(seed, lambda: random.shuffle(rows), lambda s: random.stateless_shuffle(rows, s))
    return array.transpose(mixed, order)


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
    """Set elements to 0 with probability `rate` and scale the others by 1 / (1 - rate)."""
    from ..ops import nn as ops_nn

    return _drawn(
        seed,
        lambda: ops_nn.dropout(inputs, rate, noise_shape),
        lambda s: ops_nn.stateless_dropout(inputs, rate, s, noise_shape=noise_shape),
    )
