"""`keras.random`: random tensors by seeds, and SeedGenerator.

Lives here: the generator of seeds, draws by a seed or a generator.
Not here: TensorFlow's random functions and distributions (ops/random/), initializers.

seed: None for new numbers in each call, an integer for the same numbers in each call, or a SeedGenerator, whose numbers
depend on its seed and the number of draws, which a variable counts: layers with equal seeds draw equal numbers, eagerly
and in functions, but each worker of a data-parallel step its own. The seed of a generator without one follows from
`random.set_seed`, or from Python's generator, at its first draw.
"""

from __future__ import annotations

import random as python_random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import replicas
from ..core.dtypes import as_dtype, int32, int64
from ..eager.variable import Variable
from ..ops import array, dispatch, random
from ..ops import nn as ops_nn
from ..ops.random import state as random_state
from ..tracing.trace import init_scope
from . import backend

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

__all__ = [
    "SeedGenerator",
    "beta",
    "binomial",
    "categorical",
    "dropout",
    "gamma",
    "normal",
    "randint",
    "shuffle",
    "truncated_normal",
    "uniform",
]


def _draw(seed: Any, stateful: Callable[[], Tensor], stateless: Callable[[Any], Tensor]) -> Tensor:
    """Draw from the stateful generator, or by a stateless seed of two integers."""
    if seed is None:
        return stateful()
    if not isinstance(seed, SeedGenerator):
        return stateless([int(seed), 0])
    offset = replicas.random_offset()
    return stateless(seed.next() + np.array([0, offset], np.int64) if offset else seed.next())


def _draw_shape(name: str, seed: Any, shape: Any, *parameters: Any, dtype: Any) -> Tensor:
    """Draw from a distribution by its two functions in `random`, of a shape and parameters."""
    d = as_dtype(backend.floatx() if dtype is None else dtype)
    stateful, stateless = getattr(random, name), getattr(random, f"stateless_{name}")
    return _draw(
        seed, lambda: stateful(shape, *parameters, dtype=d), lambda s: stateless(shape, s, *parameters, dtype=d)
    )


def normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Tensor:
    """Draw from the normal distribution."""
    return _draw_shape("normal", seed, shape, mean, stddev, dtype=dtype)


def truncated_normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Tensor:
    """Draw from the normal distribution truncated at two standard deviations."""
    return _draw_shape("truncated_normal", seed, shape, mean, stddev, dtype=dtype)


def uniform(shape: Any, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None, seed: Any = None) -> Tensor:
    """Draw uniformly from [minval, maxval)."""
    return _draw_shape("uniform", seed, shape, minval, maxval, dtype=dtype)


def randint(shape: Any, minval: Any, maxval: Any, dtype: Any = "int32", seed: Any = None) -> Tensor:
    """Draw integers uniformly from [minval, maxval). Raises ValueError for another dtype than integers."""
    if not as_dtype(dtype).is_integer:
        raise ValueError(f"`keras.random.randint` requires an integer `dtype`. Received: dtype={dtype}")
    wide = as_dtype(dtype).np.itemsize > 4 or as_dtype(dtype).name == "uint32"
    limits = (array.cast(limit, int64 if wide else int32) for limit in (minval, maxval))
    return array.cast(_draw_shape("uniform", seed, shape, *limits, dtype=int64 if wide else int32), dtype)


def categorical(logits: Any, num_samples: Any, dtype: Any = "int32", seed: Any = None) -> Tensor:
    """Draw class indices [batch, num_samples] from unnormalized log-probabilities."""
    drawn = _draw(
        seed,
        lambda: random.categorical(logits, num_samples, int64),
        lambda s: random.stateless_categorical(logits, num_samples, s, int64),
    )
    result: Tensor = array.cast(drawn, as_dtype(dtype))
    return result


def gamma(shape: Any, alpha: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Draw from the gamma distribution of shape alpha and rate 1."""
    return _draw_shape("gamma", seed, shape, alpha, dtype=dtype)


def _fresh_seed() -> Tensor:
    """Return a seed for a stateless function from the operators' own sequence: another one in each run."""
    return random.uniform([2], 0, 2**31 - 1, "int64")


def beta(shape: Any, alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Draw from the beta distribution, as the share of one of two gamma variables in their sum."""
    d = as_dtype(backend.floatx() if dtype is None else dtype)
    working = d if d.np.itemsize > 2 else as_dtype("float32")
    parameters = [array.broadcast_to(array.cast(v, working), shape) for v in (alpha, beta)]

    def draw(first: Any) -> Tensor:
        first = array.cast(first, "int64")
        seeds = first, first + 12
        a, b = (random.stateless_gamma(shape, s, alpha=v, dtype=working) for s, v in zip(seeds, parameters))
        return array.cast(a / (a + b), d)

    return _draw(seed, lambda: draw(_fresh_seed()), draw)


def binomial(shape: Any, counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Draw numbers of successes in `counts` trials of these probabilities."""
    d = as_dtype(backend.floatx() if dtype is None else dtype)
    working = d if d.np.itemsize > 2 else as_dtype("float32")

    def draw(first: Any) -> Tensor:
        trials, shares = (array.cast(v, working) for v in (counts, probabilities))
        return array.cast(random.stateless_binomial(shape, array.cast(first, "int64"), trials, shares, working), d)

    return _draw(seed, lambda: draw(_fresh_seed()), draw)


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> Tensor:
    """Shuffle the slices along an axis."""
    x = dispatch.to_tensor(x)
    order = list(range(x.shape.rank))
    order[0], order[axis] = order[axis], order[0]
    rows = array.transpose(x, order)
    mixed = _draw(seed, lambda: random.shuffle(rows), lambda s: random.stateless_shuffle(rows, s))
    return array.transpose(mixed, order)


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Tensor:
    """Set elements to 0 with probability `rate` and scale the others by 1 / (1 - rate)."""
    return _draw(
        seed,
        lambda: ops_nn.dropout(inputs, rate, noise_shape),
        lambda s: ops_nn.stateless_dropout(inputs, rate, s, noise_shape=noise_shape),
    )


def default_seed() -> int:
    """Return a seed derived from `random.set_seed` if it was called, else from Python's generator."""
    attributes = random_state.seeds_for(None)
    if attributes["seed"] == 0 and attributes["seed2"] == 0:
        return python_random.randint(1, 10**9)
    return int(random_state.philox(attributes["seed"], attributes["seed2"] + 7).integers(1, 10**9))


class SeedGenerator:
    """Sequence of seeds, one per draw.

    seed: an integer, or None for numbers that differ from run to run.
    raises ValueError for another seed
    """

    def __init__(self, seed: int | None = None, name: str | None = None, **unknown: Any) -> None:
        if unknown:
            raise ValueError(f"Unrecognized keyword arguments: {unknown}")
        if seed is not None and (not isinstance(seed, (int, np.integer)) or isinstance(seed, bool)):
            raise ValueError(f"Argument `seed` must be an integer. Received: seed={seed!r}")
        if seed is not None and seed < 0:
            raise ValueError(f"Argument `seed` must be at least 0. Received: seed={seed}")
        self.name = name or "seed_generator"
        self._initial_seed = None if seed is None else int(seed)
        self._state: Variable | None = None

    @property
    def state(self) -> Variable:
        """Variable [seed, number of draws], created on first use."""
        if self._state is None:
            with init_scope():  # so that eager calls and functions begin with one seed
                seed = default_seed() if self._initial_seed is None else self._initial_seed
                self._state = Variable(
                    np.array([seed, 0], np.int64), trainable=False, name=f"{self.name}/seed_generator_state"
                )
        return self._state

    def next(self, ordered: bool = True) -> Tensor:
        """Return the next seed, an int64 tensor [2] for the stateless operators."""
        seed = array.identity(self.state.value())
        self.state.assign_add(np.array([0, 1], np.int64))
        return seed

    def uniform(self, shape: Any, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = "float32") -> Tensor:
        """Draw uniformly from [minval, maxval)."""
        return uniform(shape, minval, maxval, dtype, self)

    def normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32") -> Tensor:
        """Draw from the normal distribution."""
        return normal(shape, mean, stddev, dtype, self)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"seed": self._initial_seed}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        """Return a generator of this configuration in its initial state."""
        return cls(**config)
