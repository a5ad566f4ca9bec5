"""Seeds and counters of random sequences.

Lives here: the global seed, `seeds_for` (the seed attributes of an operator), `generator_for` (its generator),
`key_for` (the same for compiled calls), `reserve` and `release` (for compiled loops).
Not here: distributions and operators (stateful.py, stateless.py).

The generator is NumPy's Philox (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), a function of a key
and a counter. The key is the pair of seeds, and the n-th call of a sequence starts at counter (0, 0, n, ...), so the
state of a sequence is the number of its calls. The numbers differ from TensorFlow's; the rules are the same:

  * without any seed, numbers differ from run to run;
  * after `set_seed(s)`, each operator has a seed derived from s and the number of operators before it;
  * an operator's `seed=` determines its sequence together with s; each call continues it;
  * inside a traced function each random operator has a separate sequence, which begins with the trace;
  * `set_seed` restarts every sequence;
  * in a step of a data-parallel program, worker r's calls begin at 2^48 r.
"""

from __future__ import annotations

import itertools
import operator
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from ...core import flags, forks, replicas
from .. import dispatch

R = TypeVar("R")

DEFAULT_SEED = 87654321  # the global seed if only the operator has a seed
_MASK = (1 << 64) - 1
_ONCE, _IN_TRACE = 1 << 62, 1 << 61  # first seeds of operators without one; beyond user seeds

_lock = forks.lock()
_global_seed: int | None = None
_seed_count = 0  # seeds assigned to eager calls since set_seed
# Number of calls by operator, dtype, seeds and stream. Entries live until set_seed: about 200 bytes for each operator
# with a seed and each traced operator; eager calls without a seed draw once and add none.
_calls: dict[Any, Any] = {}
_SLOTS = "slots"  # with the number of calls of a sequence: by thread whose loop is drawing from it, a distinct number
_streams = itertools.count(1)  # 0 is eager execution's
_in_trace: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # random operators recorded, by trace
_entropy: Any = None


def set_seed(seed: Any) -> None:
    """Set the global seed, and restart every sequence of random numbers. None: numbers differ from run to run again.

    raises TypeError for a seed that is not an integer
    """
    value: int | None = None
    if hasattr(seed, "constant"):
        value = int(seed.constant)
    elif seed is not None:
        value = operator.index(seed)
    global _global_seed, _seed_count
    with _lock:
        _global_seed, _seed_count = value, 0
        _calls.clear()


def seeds_for(seed: Any) -> dict[str, int]:
    """Return the attributes seed, seed2 and stream for a call of a random operator. seed: None for no seed."""
    global _seed_count
    trace = dispatch.state.trace
    stream = count = 0
    with _lock:
        if seed is None and _global_seed is None:
            _refuse_unseeded()
            return {"seed": 0, "seed2": 0, "stream": 0}
        if trace is not None:
            stream = next(_streams)
            _in_trace[trace] = count = _in_trace.get(trace, 0) + 1
        if seed is not None:
            second = int(getattr(seed, "constant", seed))
        elif trace is not None:  # numbered per function, so that functions of equal bodies yield equal numbers
            second = _IN_TRACE + count
        else:
            _seed_count += 1
            second = _ONCE + _seed_count
        first = DEFAULT_SEED if _global_seed is None else _global_seed
    return {"seed": first, "seed2": second if (first, second) != (0, 0) else 1, "stream": stream}


def new_stream() -> int:
    """Return a unique stream. It is negative: `own_sequences` does not isolate it."""
    return -next(_streams)


def philox(first: int, second: int, call: int = 0) -> np.random.Generator:
    """Return the generator of a key, advanced to a call: 2^128 blocks each."""
    # arrays, as NumPy makes float64 of a list in which some numbers exceed int64: all negative seeds would be one
    key = np.array([first & _MASK, second & _MASK], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, call & _MASK, 0], np.uint64)))


class _IsolatedCalls(threading.local):
    calls: dict[Any, Any] | None = None


_isolated = _IsolatedCalls()


def own_sequences(function: Callable[..., R], calls: dict[Any, Any]) -> Callable[..., R]:
    """Return `function` with separate sequences of random numbers for the operators traced in it.

    calls: the number of calls of each sequence; empty to start them. Functions with one dict share the sequences.
    Generators continue their sequences wherever they are used.
    """

    def call(*args: Any) -> R:
        saved, _isolated.calls = _isolated.calls, calls
        try:
            return function(*args)
        finally:
            _isolated.calls = saved

    return call


def generator_for(op: Any) -> np.random.Generator:
    """Return the generator for a call of a random operator, and advance its sequence."""
    if _is_unseeded(op):
        return _unseeded()
    return philox(*_next_call(op))


def key_for(op: Any) -> np.ndarray:
    """Return the key and the number of a call of a random operator as uint64 [3], and advance its sequence.

    `philox` of these numbers is the generator that `generator_for` would have returned; an operator without a seed
    receives a key that no other call has.
    """
    if _is_unseeded(op):
        return _unseeded().integers(0, _MASK, 3, np.uint64, endpoint=True)
    return np.array([number & _MASK for number in _next_call(op)], np.uint64)


def sequence_of(op: Any) -> Hashable | None:
    """Return the identity of the sequence of a random operator in a graph; None if its calls do not continue one."""
    if op.seed == 0 and op.seed2 == 0 and op.stream == 0:
        return ("unseeded", op.operator.name, getattr(op, "dtype", None))
    return None if op.stream == 0 else _sequence(op)


def reserve(op: Any) -> np.ndarray:
    """Return the key of the next call, as `key_for`, without advancing the sequence: for a number of calls that
    `release` reports.

    Threads that draw at once receive keys 2^40 calls apart, so that no two have one key.
    """
    if _is_unseeded(op):
        return _unseeded().integers(0, _MASK, 3, np.uint64, endpoint=True)
    sequence, calls, thread = _sequence(op), _calls_of(op), threading.get_ident()
    with _lock:
        slots = calls.setdefault((_SLOTS, sequence), {})
        slots.pop(thread, None)  # of a loop that failed
        slots[thread] = slot = next(i for i in itertools.count() if i not in slots.values())
        call = calls.get(sequence, 0) + (slot << 40) + replicas.random_offset()
    return np.array([number & _MASK for number in (*_key(op), call)], np.uint64)


def release(op: Any, first: np.ndarray, following: np.ndarray) -> tuple[()]:
    """Advance the sequence by the calls that were drawn after `reserve`. first, following: their first key, and the key
    of the call behind them."""
    if not _is_unseeded(op):
        sequence, calls = _sequence(op), _calls_of(op)
        with _lock:
            calls[sequence] = calls.get(sequence, 0) + (int(following[2]) - int(first[2])) % (_MASK + 1)
            calls.get((_SLOTS, sequence), {}).pop(threading.get_ident(), None)
    return ()


def _sequence(op: Any) -> Hashable:
    if op.stream < 0:  # a generator has one sequence for all its operators, whose position is its state
        return op.seed, op.stream
    return op.operator.name, getattr(op, "dtype", None), op.seed, op.seed2, op.stream


class GeneratorSequence:
    """The seed and the number of calls of a generator, in graphs known by its first seed and its stream."""

    def __init__(self, seed: int) -> None:
        self.first_seed = self.seed = seed
        self.stream = new_stream()
        _generators[seed, self.stream] = self

    @property
    def calls(self) -> int:
        """The number of calls."""
        with _lock:
            count: int = _calls.get((self.first_seed, self.stream), 0)
            return count

    def move(self, seed: int, calls: int) -> None:
        """Continue with another seed, as after a number of calls; traced functions do, too."""
        with _lock:
            self.seed = seed
            _calls[self.first_seed, self.stream] = calls

    def skip(self, calls: int) -> None:
        """Continue as after some more calls."""
        with _lock:
            key = self.first_seed, self.stream
            _calls[key] = _calls.get(key, 0) + calls


_generators: weakref.WeakValueDictionary[tuple[int, int], GeneratorSequence] = weakref.WeakValueDictionary()


def _key(op: Any) -> tuple[int, int]:
    """Return the seeds of an operator: those of its attributes, or a generator's that has been reset."""
    generator = _generators.get((op.seed, op.stream)) if op.stream < 0 else None
    return (op.seed, op.seed2) if generator is None else (generator.seed, 0)


def _calls_of(op: Any) -> dict[Any, Any]:
    """Return the number of calls by sequence, of the function that is running or of all."""
    return _calls if _isolated.calls is None or op.stream <= 0 else _isolated.calls


def _is_unseeded(op: Any) -> bool:
    if op.seed == 0 and op.seed2 == 0 and op.stream == 0:
        _refuse_unseeded()
        return True
    return False


def _next_call(op: Any) -> tuple[int, int, int]:
    """Return the arguments of `philox` for a call of an operator with a seed, and advance its sequence."""
    if op.stream == 0 and op.seed2 > _ONCE:
        return op.seed, op.seed2, replicas.random_offset()
    sequence, calls = _sequence(op), _calls_of(op)
    with _lock:
        call = calls.get(sequence, 0)
        calls[sequence] = call + 1
    return (*_key(op), call + replicas.random_offset())


def _refuse_unseeded() -> None:
    """Raise RuntimeError under the switch `deterministic`: unseeded numbers differ from run to run."""
    if flags.deterministic:
        raise RuntimeError(
            "Random ops require a seed to be set when determinism is enabled. Please set a seed before "
            "running the op, e.g. by calling ow.random.set_seed(1)."
        )


def _unseeded() -> np.random.Generator:
    """Return the shared generator seeded by the operating system; NumPy's generators have their own lock."""
    global _entropy
    with _lock:
        if _entropy is None:
            _entropy = np.random.Generator(np.random.Philox())
        result: np.random.Generator = _entropy
        return result


def _after_fork() -> None:
    """Discard the system's generator: the numbers of a child process differ from those of its parent and siblings."""
    global _entropy
    _entropy = None


forks.in_child(_after_fork)
