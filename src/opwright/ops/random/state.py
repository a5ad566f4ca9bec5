"""Where random numbers come from: seeds, and how far each sequence has been drawn.

Lives here: the global seed, `seeds_for` (what an operator's seed attributes are), `generator_for` (its numbers now).
Not here: distributions and operators (sampling.py, stateless.py).

Numbers are Philox's (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), as NumPy has it: a function of
a key and a counter. The key is the pair of seeds, and the n-th call of one sequence starts at counter (0, 0, n, ...),
so all that is kept of a sequence is how many calls it had. The numbers are our own, not TensorFlow's; the rules are
its:

  * no seed anywhere: numbers differ from run to run;
  * `set_seed(s)`: each operator gets a seed of its own that follows from s and from how many were made before it;
  * an operator's `seed=`: its sequence follows from both, and goes on from call to call;
  * inside a traced function each random operator has a sequence of its own, which begins with the trace;
  * `set_seed` begins every sequence again.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import flags, forks
from .. import dispatch

DEFAULT_SEED = 87654321  # the global seed where only an operator's seed is given
_MASK = (1 << 64) - 1
_ONCE, _IN_TRACE = 1 << 62, 1 << 61  # where operators without a seed get theirs; nobody's own seeds are so large

_lock = forks.lock()
_global_seed: int | None = None
_given = 0  # seeds given to eager calls since set_seed
# Calls so far, by operator, dtype, seeds and stream. An entry lives until set_seed: some 200 bytes for each operator
# with a seed of its own and each traced one; eager calls without a seed draw once and leave none.
_calls: dict[Any, int] = {}
_streams = itertools.count(1)  # 0 is eager execution's
_in_trace: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # random operators recorded, by trace
_entropy: Any = None


def set_seed(seed: Any) -> None:
    """Set the global seed: from here on every sequence of random numbers begins again, and follows from it.

    raises TypeError for what is not an integer
    """
    value = int(getattr(seed, "constant", seed)) if hasattr(seed, "constant") else seed.__index__()
    global _global_seed, _given
    with _lock:
        _global_seed, _given = value, 0
        _calls.clear()


def seeds_for(seed: Any) -> dict[str, int]:
    """The attributes seed, seed2 and stream of a random operator about to be called with `seed` (None: not given)."""
    global _given
    trace = dispatch.state.trace
    stream = 0
    with _lock:
        if seed is None and _global_seed is None:
            _refuse_unseeded()
            return {"seed": 0, "seed2": 0, "stream": 0}
        if trace is not None:
            stream = next(_streams)
            _in_trace[trace] = count = _in_trace.get(trace, 0) + 1
        if seed is not None:
            second = int(getattr(seed, "constant", seed))
        elif trace is not None:  # numbered by function, so that two functions of one body give the same numbers
            second = _IN_TRACE + count
        else:
            _given += 1
            second = _ONCE + _given
        first = DEFAULT_SEED if _global_seed is None else _global_seed
    return {"seed": first, "seed2": second if (first, second) != (0, 0) else 1, "stream": stream}


def new_stream() -> int:
    """A stream nobody else draws from. Negative: it goes on wherever it is used (`own_sequences`)."""
    return -next(_streams)


def philox(first: int, second: int, call: int = 0) -> np.random.Generator:
    """The generator of a key, at the start of its call-th part: 2^128 blocks each."""
    return np.random.Generator(np.random.Philox(key=[first & _MASK, second & _MASK], counter=[0, 0, call & _MASK, 0]))


class _Own(threading.local):
    calls: dict[Any, int] | None = None


_own = _Own()


def own_sequences(function: Callable[..., Any], calls: dict[Any, int]) -> Callable[..., Any]:
    """Return `function` with separate sequences of random numbers for the operators traced in it.

    calls: how many draws each sequence has had; empty to begin them. Functions with one dict share the sequences.
    Generators' sequences go on wherever they are used.
    """

    def call(*args: Any) -> Any:
        saved, _own.calls = _own.calls, calls
        try:
            return function(*args)
        finally:
            _own.calls = saved

    return call


def generator_for(op: Any) -> np.random.Generator:
    """The generator for this call of a random operator; the next call of the same sequence gets other numbers."""
    if op.seed == 0 and op.seed2 == 0 and op.stream == 0:
        _refuse_unseeded()
        return _unseeded()
    if op.stream == 0 and op.seed2 > _ONCE:
        return philox(op.seed, op.seed2)
    key = (op.operator.name, getattr(op, "dtype", None), op.seed, op.seed2, op.stream)
    calls = _calls if _own.calls is None or op.stream <= 0 else _own.calls
    with _lock:
        call = calls.get(key, 0)
        calls[key] = call + 1
    return philox(op.seed, op.seed2, call)


def _refuse_unseeded() -> None:
    """Raises RuntimeError under the switch `deterministic`: numbers of the system differ from run to run."""
    if flags.deterministic:
        raise RuntimeError(
            "Random ops require a seed to be set when determinism is enabled. Please set a seed before "
            "running the op, e.g. by calling ow.random.set_seed(1)."
        )


def _unseeded() -> np.random.Generator:
    """One generator seeded by the operating system; NumPy's have a lock of their own."""
    global _entropy
    with _lock:
        if _entropy is None:
            _entropy = np.random.Generator(np.random.Philox())
        result: np.random.Generator = _entropy
        return result


def _after_fork() -> None:
    """A child's numbers are others than its parent's and its siblings'."""
    global _entropy
    _entropy = None


forks.in_child(_after_fork)
