"""Generator: random numbers from an object that carries its own seed.

Lives here: the class and the global generator.  Not here: the functions that draw from the global seed (functions.py).
"""

from __future__ import annotations

import secrets
from typing import Any

from ...core import dtypes, flags, forks
from ...core.dtypes import as_dtype
from .functions import UNIFORM, integer_bounds, scaled, sizes, uniform_scaled
from .sampling import RandomStandardNormal, RandomUniform, RandomUniformInt, TruncatedNormal
from .state import new_stream


class Generator:
    """A sequence of random numbers of its own, the same for the same seed; inside a traced function each run draws on.

    Two generators of one seed give the same numbers. Made by `from_seed` or `from_non_deterministic_state`. `set_seed`
    begins it again, as it does every sequence.
    """

    def __init__(self, seed: int) -> None:
        self.seed = int(seed)
        self._stream = new_stream()

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator whose numbers follow from `seed`. alg: accepted and not used."""
        return cls(int(seed))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator whose numbers differ from run to run. Raises RuntimeError under the switch `deterministic`."""
        if flags.deterministic:
            raise RuntimeError('"from_non_deterministic_state" cannot be called when determinism is enabled.')
        return cls(secrets.randbits(62))

    def reset_from_seed(self, seed: Any) -> None:
        """Begin again, with another seed."""
        self.seed, self._stream = int(seed), new_stream()

    def split(self, count: int = 1) -> list[Generator]:
        """`count` generators that share no numbers with this one."""
        seeds = self.uniform_full_int([count], dtypes.int64).numpy().tolist()
        return [Generator(s) for s in seeds]

    def _attrs(self) -> dict[str, int]:
        return {"seed": self.seed, "seed2": 0, "stream": self._stream}

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Any:
        """Normal numbers."""
        return scaled(
            RandomStandardNormal(sizes(shape), dtype=as_dtype(dtype), **self._attrs(), name=name), stddev, mean
        )

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Any:
        """Normal numbers nearer than two deviations to the mean."""
        return scaled(TruncatedNormal(sizes(shape), dtype=as_dtype(dtype), **self._attrs(), name=name), stddev, mean)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Any:
        """Numbers evenly in [minval, maxval). Raises ValueError for another dtype, or integers without maxval."""
        dtype = as_dtype(dtype)
        if dtype not in UNIFORM:
            raise ValueError(f"Argument `dtype` got invalid value {dtype!r}. Accepted dtypes are {UNIFORM}.")
        if dtype.is_integer:
            low, high = integer_bounds(minval, maxval, dtype)
            return RandomUniformInt(sizes(shape), low, high, **self._attrs(), name=name)
        return uniform_scaled(RandomUniform(sizes(shape), dtype=dtype, **self._attrs(), name=name), minval, maxval)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.int64, name: str | None = None) -> Any:
        """Integers in [0, the dtype's largest), int32 or int64."""
        dtype = as_dtype(dtype)
        return self.uniform(shape, 0, int(dtype.max), dtype, name)

    def make_seeds(self, count: int = 1) -> Any:
        """Seeds for stateless functions: int64 [2, count]."""
        return self.uniform_full_int([2, count], dtypes.int64)


_global: Generator | None = None
_lock = forks.lock()


def get_global_generator() -> Generator:
    """The generator of this process, made when first asked for."""
    global _global
    with _lock:
        if _global is None:
            _global = Generator.from_non_deterministic_state()
        return _global


def set_global_generator(generator: Generator) -> None:
    """Make `generator` the one that get_global_generator gives."""
    global _global
    _global = generator
