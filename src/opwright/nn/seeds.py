"""SeedGenerator: where a layer's or initializer's random numbers come from.

Lives here: the generator and the draws that layers make from it.  Not here: distributions (ops/random/).

With a seed, the numbers are a function of it and of how many draws were made, which a variable counts: layers with
equal seeds give equal numbers, eagerly and in functions. Without one they come from the operators' own sequences,
which follow from `random.set_seed`.
"""

from __future__ import annotations

import random as python_random
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import as_dtype
from ..eager.variable import Variable
from ..ops import array, random
from ..ops.random import state as random_state
from ..tracing.trace import init_scope

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


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
            seed = default_seed() if self._initial_seed is None else self._initial_seed
            with init_scope():
                self._state = Variable(
                    np.array([seed, 0], np.int64), trainable=False, name=f"{self.name}/seed_generator_state"
                )
        return self._state

    def next(self, ordered: bool = True) -> Tensor:
        """Return the next seed, an int64 tensor [2] for the stateless operators."""
        seed = array.identity(self.state.value())
        self.state.assign_add(np.array([0, 1], np.int64))
        return seed

    def uniform(self, shape: Any, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = "float32") -> Any:
        """Draw uniformly from [minval, maxval)."""
        dtype = as_dtype(dtype)
        if self._initial_seed is None:
            return random.uniform(shape, minval, maxval, dtype)
        return random.stateless_uniform(shape, self.next(), minval, maxval, dtype)

    def normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32") -> Any:
        """Draw from the normal distribution."""
        dtype = as_dtype(dtype)
        if self._initial_seed is None:
            return random.normal(shape, mean, stddev, dtype)
        return random.stateless_normal(shape, self.next(), mean, stddev, dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"seed": self._initial_seed}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        """Return a generator of this configuration in its initial state."""
        return cls(**config)
