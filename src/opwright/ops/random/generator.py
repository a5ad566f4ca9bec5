"""Generators: sequences of random numbers as objects.

Lives here: the class and the global generator.  Not here: functions that use the global seed (functions.py).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from ...core import dtypes, flags, forks
from ...core.dtypes import as_dtype
from .functions import UNIFORM, integer_bounds, scaled, sizes, uniform_scaled
from .state import new_stream
from .stateful import RandomStandardNormal, RandomUniform, RandomUniformInt, TruncatedNormal

if TYPE_CHECKING:
    from ..tensor import Tensor


class Generator:
    """A sequence of random numbers determined by its seed; each run of a traced function continues it.

    Generators of equal seeds produce equal numbers. Create them by `from_seed` or `from_non_deterministic_state`.
    `set_seed` resets them, as it resets every sequence.
    """

    def __init__(self, seed: int) -> None:
        self.seed = int(seed)
        self._stream = new_stream()

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Create a generator from a seed. alg: ignored."""
        return cls(int(seed))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Create a generator seeded by the system. Raises RuntimeError under the switch `deterministic`."""
        if flags.deterministic:
            raise RuntimeError('"from_non_deterministic_state" cannot be called when determinism is enabled.')
        return cls(secrets.randbits(62))

    def reset_from_seed(self, seed: Any) -> None:
        """Restart the sequence with another seed."""
        self.seed, self._stream = int(seed), new_stream()

    def split(self, count: int = 1) -> list[Generator]:
        """Create `count` generators with independent sequences."""
        seeds = self.uniform_full_int([count], dtypes.int64).numpy().tolist()
        return [Generator(s) for s in seeds]

    def _attrs(self) -> dict[str, int]:
        return {"seed": self.seed, "seed2": 0, "stream": self._stream}

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Tensor:
        """Draw normal numbers."""
        return scaled(
            RandomStandardNormal(sizes(shape), dtype=as_dtype(dtype), **self._attrs(), name=name), stddev, mean
        )

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Tensor:
        """Draw normal numbers within two standard deviations of the mean."""
        return scaled(TruncatedNormal(sizes(shape), dtype=as_dtype(dtype), **self._attrs(), name=name), stddev, mean)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Tensor:
        """Draw uniform numbers in [minval, maxval). Raises ValueError for another dtype, or integers without maxval."""
        dtype = as_dtype(dtype)
        if dtype not in UNIFORM:
            raise ValueError(f"Argument `dtype` got invalid value {dtype!r}. Accepted dtypes are {UNIFORM}.")
        if dtype.is_integer:
            low, high = integer_bounds(minval, maxval, dtype)
            return RandomUniformInt(sizes(shape), low, high, **self._attrs(), name=name)
        return uniform_scaled(RandomUniform(sizes(shape), dtype=dtype, **self._attrs(), name=name), minval, maxval)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.int64, name: str | None = None) -> Tensor:
        """Draw uniform integers in [0, maximum of the dtype), int32 or int64."""
        dtype = as_dtype(dtype)
        return self.uniform(shape, 0, int(dtype.max), dtype, name)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Draw seeds for stateless functions: int64 [2, count]."""
        return self.uniform_full_int([2, count], dtypes.int64)


_global: Generator | None = None
_lock = forks.lock()


def get_global_generator() -> Generator:
    """Return the generator of this process, created by the first call."""
    global _global
    with _lock:
        if _global is None:
            _global = Generator.from_non_deterministic_state()
        return _global


def set_global_generator(generator: Generator) -> None:
    """Replace the generator of this process."""
    global _global
    _global = generator
