"""`Generator`: a sequence of random numbers as an object, and the global generator.

Lives here: algorithms, the states of generators. Not here: draws without a generator (functions.py), seeds (state.py).
"""

from __future__ import annotations

import enum
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes, flags, forks
from ...core.dtypes import as_dtype
from .. import array, dispatch
from .functions import draw_uniform, scaled, sizes, stateless_binomial
from .state import GeneratorSequence
from .stateful import RandomStandardNormal, TruncatedNormal
from .stateless import INTEGERS

if TYPE_CHECKING:
    from ..tensor import Tensor


class Algorithm(enum.IntEnum):
    """Algorithms of random numbers that TensorFlow names; here all functions use Philox."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3

    @classmethod
    def of(cls, alg: Any) -> Algorithm:
        """Return an algorithm by name, number or as itself. Raises ValueError for others."""
        if isinstance(alg, str):
            name = {"philox": "PHILOX", "threefry": "THREEFRY", "auto_select": "AUTO_SELECT"}.get(alg)
            if name is None:
                raise ValueError(
                    f"Argument `alg` got unsupported string value {alg}. Supported string values are 'philox' for the "
                    "Philox algorithm, 'threefry' for the ThreeFry algorithm, and 'auto_select' for auto-selection."
                )
            return cls[name]
        return cls(int(getattr(alg, "numpy", lambda: alg)()))


def create_rng_state(seed: Any, alg: Any) -> Any:
    """Return the state of TensorFlow's generators for a seed: int64 [3] of Philox, [2] of ThreeFry.

    seed: an integer, whose lowest word comes first, or a vector of the last words. Raises ValueError for longer ones
    """
    size = {Algorithm.PHILOX: 3, Algorithm.THREEFRY: 2}.get(Algorithm.of(alg))
    if size is None:
        raise ValueError("create_rng_state: alg is 'philox' or 'threefry'")
    if isinstance(seed, int):
        words = [seed >> 64 * i & (1 << 64) - 1 for i in range(size)]
        return dispatch.to_tensor(np.array(words, np.uint64).view(np.int64))
    values = np.asarray(dispatch.to_tensor(seed).constant).astype(np.int64).reshape(-1)
    if len(values) > size:
        raise ValueError(f"create_rng_state: the state has {size} words, found {len(values)}")
    return dispatch.to_tensor(np.concatenate([np.zeros(size - len(values), np.int64), values]))


def _words(value: Any, count: int) -> np.ndarray:
    """Return integers of a tensor or number as uint64 [count]. Raises ValueError for another number of them."""
    words = np.asarray(getattr(value, "numpy", lambda: value)()).reshape(-1)
    if len(words) != count:
        raise ValueError(f"the state of a generator has {count} of these numbers, found {len(words)}")
    return words.astype(np.int64).view(np.uint64) if words.dtype.kind == "i" else words.astype(np.uint64)


def _state_words(state: Any) -> np.ndarray:
    return _words(state, 3)


def _state_of_seed(seed: Any) -> np.ndarray:
    return np.array([0, 0, int(seed) & (1 << 64) - 1], np.uint64)


_state_variable: Callable[[Generator], Any]  # set by eager/generator_state.py, which layers that save import


def install_state_variable(make: Callable[[Generator], Any]) -> None:
    """Set the function that returns a generator's state as a variable."""
    global _state_variable
    _state_variable = make


class Generator:
    """A sequence of random numbers determined by its state; each run of a traced function continues it.

    Generators of equal seeds produce equal numbers. Create them by `from_seed`, `from_non_deterministic_state` or
    `from_state`. Checkpoints save the state. `set_seed` restarts the sequence, as every sequence.

    copy_from: another generator, whose state is copied; or state: as the attribute `state`. alg: "philox".
    raises ValueError without a state, and for other algorithms
    """

    _is_trackable = True

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if (copy_from is None) == (state is None):
            raise ValueError("Generator: one of copy_from and state must be specified; use Generator.from_seed(seed)")
        if alg is not None and Algorithm.of(alg) is Algorithm.THREEFRY:
            raise ValueError("Generator: the algorithm is 'philox'")
        numbers = copy_from.read_state() if copy_from is not None else _state_words(state)
        self._sequence = GeneratorSequence(int(numbers[2]))
        self._sequence.move(int(numbers[2]), int(numbers[0]))
        self._variable: Any = None

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Create a generator from a seed. alg: "philox"."""
        return cls(state=_state_of_seed(seed), alg=alg)

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """Create a generator that continues a state: the number of calls, 0, and the seed, as integers [3]."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """Create a generator from a key, which is a seed, and a counter of two integers."""
        return cls(state=np.append(_words(counter, 2), _words(key, 1)), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Create a generator seeded by the system. Raises RuntimeError under the switch `deterministic`."""
        if flags.deterministic:
            raise RuntimeError('"from_non_deterministic_state" cannot be called when determinism is enabled.')
        return cls.from_seed(secrets.randbits(62), alg)

    @property
    def seed(self) -> int:
        """The seed of the state."""
        return self._sequence.seed

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: Philox's."""
        return int(Algorithm.PHILOX)

    def read_state(self) -> np.ndarray:
        """Return the state as an array."""
        return np.array([self._sequence.calls, 0, self._sequence.seed], np.uint64).view(np.int64)

    @property
    def state(self) -> Tensor:
        """The state: the number of calls, 0, and the seed, int64 [3]."""
        return dispatch.to_tensor(self.read_state())

    @property
    def key(self) -> Tensor:
        """The last number of the state, its seed."""
        return dispatch.to_tensor(self.read_state()[2])

    def reset(self, state: Any) -> None:
        """Continue another state, in traced functions, too."""
        numbers = _state_words(state)
        self._sequence.move(int(numbers[2]), int(numbers[0]))

    def reset_from_seed(self, seed: Any) -> None:
        """Restart the sequence with another seed, in traced functions, too."""
        self.reset(_state_of_seed(seed))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Continue with a key and a counter; see `from_key_counter`."""
        self.reset(np.append(_words(counter, 2), _words(key, 1)))

    def skip(self, delta: Any) -> Tensor:
        """Continue as after some more calls; return the state before. Raises RuntimeError in a function."""
        if dispatch.state.trace is not None:
            raise RuntimeError("Generator.skip changes the state when it is called; call it outside of functions")
        before = self.state
        self._sequence.skip(int(delta))
        return before

    def split(self, count: int = 1) -> list[Generator]:
        """Create `count` generators with independent sequences."""
        seeds = self.uniform_full_int([count], dtypes.int64).numpy().tolist()
        return [Generator.from_seed(s) for s in seeds]

    def _trackable_children(self) -> dict[str, Any]:
        """Return the variable of the state, for checkpoints (eager/generator_state.py)."""
        if self._variable is None:
            self._variable = _state_variable(self)
        return {"_state_var": self._variable}

    def _attrs(self) -> dict[str, int]:
        return {"seed": self._sequence.first_seed, "seed2": 0, "stream": self._sequence.stream}

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = dtypes.int32, name: str | None = None
    ) -> Tensor:
        """Draw binomial counts."""
        return stateless_binomial(shape, self.make_seeds()[:, 0], counts, probs, dtype, name)

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
        return draw_uniform(shape, minval, maxval, dtype, self._attrs, name)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64, name: str | None = None) -> Tensor:
        """Draw uniform integers of the whole range of a dtype: int32, int64, uint32 or uint64."""
        dtype = as_dtype(dtype)
        if dtype not in INTEGERS:
            raise ValueError(f"Argument `dtype` got invalid value {dtype!r}. Accepted dtypes are {INTEGERS}.")
        low = self.uniform(shape, 0, 1 << 32, dtypes.int64)
        if dtype.size == 4:
            return array.bitcast(array.cast(low, dtypes.uint32), dtype)
        high = self.uniform(shape, -(1 << 31), 1 << 31, dtypes.int64)
        return array.bitcast(high * (1 << 32) + low, dtype)

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
