"""Autotuning: time competing kernels or algorithms once on the real shapes, and remember the fastest.

Lives here: timing, the choice among algorithms, `bind`, which replaces kernels.bind while the flag `tune` is on.
Not here: the file of choices (tuning_file.py), the kernels for a key (kernels.py), algorithms and their static
heuristics (strategies.py).

With the flag `tune` on and `deterministic` off:

  * algorithms are called on the same read-only arrays: each once to warm up, then round-robin, in batches, within
    `BUDGET_S`; the minimum time counts, and the heuristic's choice stays unless another is 5 % faster;
  * an algorithm that raises, declines, or returns values outside of its tolerance is disqualified, with one warning;
  * operators with effects or with a kernel registered `pure=False` are never timed;
  * the cache key is operator, version, attributes, full kernel key and class of shapes: sizes up to 4 exactly, larger
    ones rounded up to the next power of two. `ow.ops.explain` shows the choice.

With the flag off, the default, none of this code is reached: `kernels.bind` is the plain one.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes, flags, forks
from ..core.errors import OpError
from ..core.named_tuples import NamedTuple
from . import dispatch, kernels
from .tuning_file import Measured, read, write

BUDGET_S = 0.02  # for all ways together, over the one call that each needs
_MARGIN = 0.95  # another way must take less than this part of the default's time
_HOPELESS = 4.0  # the factor over the best way so far above which a way is timed no further
_LIMIT = 4096  # choices kept at hand

active = False  # flags.tune and not flags.deterministic


class TimedAlgorithm(NamedTuple):
    """An algorithm to time. tolerance: in eps of the largest result, relative to the first algorithm; None: 64."""

    name: str
    run: Callable[..., Any]
    tolerance: float | None = None


_measurements: dict[str, Measured] = {}
_quick: dict[Any, Callable[..., Any]] = {}  # by call, dtype and exact shapes: the kernel
_measuring = forks.lock()
_inside = threading.local()


# ---- keys -----------------------------------------------------------------------------------------------------------


def shape_class(arrays: Any) -> str:
    """Return shapes and dtypes as text, with sizes above 4 rounded up to powers of two; counts are treated as sizes."""
    if isinstance(arrays, (list, tuple)):
        return f"[{';'.join(map(shape_class, arrays))}]"
    if hasattr(arrays, "shape"):
        return f"{arrays.dtype.name}{','.join(map(_rounded, arrays.shape))}"
    return _rounded(arrays) if type(arrays) is int else str(arrays)


def _rounded(n: int) -> str:
    return str(n if n <= 4 else 1 << (n - 1).bit_length())


def key_of(name: str, call: Any, key: Any, classes: str) -> str:
    """Return the cache key of a choice."""
    attrs = ",".join(
        f"{k}={f'{v.dtype}{v.shape}' if isinstance(v, np.ndarray) else v!r}" for k, v in call.attrs.items()
    )
    return f"{name}|v{call.operator.version}|{attrs}|{key or ''}|{classes}"


def label(key: Any, kernel: Any) -> str:
    """Return the name of a kernel among algorithms: library and definition; None is the reference."""
    if kernel is None:
        return "reference"
    function = getattr(kernel, "function", kernel)
    where = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
    return f"{key.library} {where} for {'any dtype' if key.dtype is None else key.dtype.name}, {key.layout}"


def remembered(key: str) -> Measured | None:
    """Return the measurement of a key, from this process or the cache file; None without one."""
    measurement = _measurements.get(key)
    if measurement is None:
        measurement = read().get(key)
        if measurement is not None:
            _keep(key, measurement)
    return measurement


def _keep(key: str, measurement: Measured) -> None:
    if len(_measurements) >= _LIMIT:
        _measurements.pop(next(iter(_measurements)))
    _measurements[key] = measurement


def forget() -> None:
    """Clear the measurements of this process; the file stays."""
    _measurements.clear()
    _quick.clear()


# ---- measuring ------------------------------------------------------------------------------------------------------


def choose(
    key: str, ways: Sequence[TimedAlgorithm], args: Sequence[Any], default: str, wait: Callable[[], Any] | None = None
) -> str:
    """Return the name of the algorithm to use. The first one is the plain algorithm, the reference of the others.

    default: what the heuristic says; taken without the clock while another thread measures, or within a measurement.
    wait: waits for the device, after a batch of calls.
    """
    measurement = remembered(key)
    if measurement is not None and any(way.name == measurement.chosen for way in ways):
        return measurement.chosen
    if getattr(_inside, "measuring", False) or not _measuring.acquire(blocking=False):
        return default  # waiting for another's measurement could wait for ever: kernels may use threads
    try:
        _inside.measuring = True
        measurement = measure(key.partition("|")[0], ways, args, default, wait)
    finally:
        _inside.measuring = False
        _measuring.release()
    _keep(key, measurement)
    if measurement.seconds:
        write(key, measurement)
    return measurement.chosen


def measure(
    name: str, ways: Sequence[TimedAlgorithm], args: Sequence[Any], default: str, wait: Callable[[], Any] | None = None
) -> Measured:
    """Time each algorithm on the same arguments. Exceptions of algorithms are not raised."""
    args = [_read_only(a) for a in args]
    out: dict[str, str] = {}
    alive: list[TimedAlgorithm] = []
    plain: Any = None
    for way in ways:  # the first call of each warms up and is looked at
        try:
            result = dispatch.quietly(way.run, *args)
            if wait is not None:
                wait()
        except Exception as error:
            out[way.name] = f"{type(error).__name__}: {error}".partition("\n")[0]
            continue
        if result is NotImplemented or result is None:
            out[way.name] = "declined"
        elif plain is not None and not agree(plain, result, way.tolerance):
            out[way.name] = "its values are not the reference's"
        else:
            plain = result if plain is None else plain
            alive.append(way)
        del result
    for way_name, why in out.items():
        if why != "declined":
            text = f"{name}: while ways to compute it were timed, {way_name} fell out: {why}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
    if len(alive) < 2:
        return Measured(alive[0].name if alive and default in out else default, {}, out)
    seconds = _race(alive, args, wait)
    fastest = min(seconds, key=lambda n: seconds[n])
    if default in seconds and seconds[fastest] > seconds[default] * _MARGIN:
        fastest = default
    return Measured(fastest, seconds, out)


def _race(ways: Sequence[TimedAlgorithm], args: Sequence[Any], wait: Callable[[], Any] | None) -> dict[str, float]:
    """Return the minimum seconds of each algorithm, timed round-robin so that machine noise affects all equally."""
    best = dict.fromkeys((way.name for way in ways), float("inf"))
    sizes = dict.fromkeys(best, 1)
    running, end = list(ways), time.perf_counter() + BUDGET_S
    for round_index in range(50):
        for way in running:
            elapsed = dispatch.quietly(_batch, way.run, args, sizes[way.name], wait) / sizes[way.name]
            best[way.name] = min(best[way.name], elapsed)
            sizes[way.name] = max(1, min(1000, int(1e-4 / max(elapsed, 1e-9))))
        best_time = min(best.values())
        running = [way for way in running if best[way.name] <= best_time * _HOPELESS]
        if time.perf_counter() > end and round_index:
            break
    return best


def _batch(run: Callable[..., Any], args: Sequence[Any], size: int, wait: Callable[[], Any] | None) -> float:
    clock, rounds = time.perf_counter, range(size)
    start = clock()
    for _ in rounds:
        run(*args)
    if wait is not None:
        wait()
    return clock() - start


def _read_only(x: Any) -> object:
    """Return a read-only view: a write would change the inputs of the next algorithm."""
    if isinstance(x, list):
        return [_read_only(y) for y in x]
    if type(x) is not np.ndarray:
        return x
    view = x.view()
    view.flags.writeable = False
    return view


def agree(plain: Any, other: Any, tolerance: float | None = None) -> bool:
    """Return whether results are equal: floats within `tolerance` eps of the largest (None: 64), all else bitwise."""
    if isinstance(plain, (list, tuple)):
        return (
            isinstance(other, (list, tuple))
            and len(plain) == len(other)
            and all(agree(a, b, tolerance) for a, b in zip(plain, other))
        )
    a, b = (np.asarray(getattr(x, "constant", x)) for x in (plain, other))
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    dtype = None if a.dtype == object else dtypes.of_numpy(a.dtype)
    if dtype is None or not (dtype.is_floating or dtype.is_complex):
        return bool(np.array_equal(a, b))
    eps = float(2.0**-7 if dtype is dtypes.bfloat16 else np.finfo(a.dtype).eps)
    with np.errstate(all="ignore"):
        if dtype.size == 2:
            a, b = a.astype(np.float32), b.astype(np.float32)
        finite = np.isfinite(a)
        if not (np.array_equal(finite, np.isfinite(b)) and np.array_equal(a[~finite], b[~finite], equal_nan=True)):
            return False
        a, b = a[finite], b[finite]
        bound = (64.0 if tolerance is None else tolerance) * eps * float(np.abs(a).max(initial=0.0))
        return bool((np.abs(a - b) <= bound).all())


# ---- kernels --------------------------------------------------------------------------------------------------------


def tunable(op: Any) -> bool:
    """Return whether calls of an operator may be repeated."""
    pure = op.effect is None and op.effect_rule is None and not op.control and op.profile.keeps_calls
    return pure and not op.impure_kernels and not any(d.dtype is not None and d.dtype.is_handle for d in op.outputs)


def algorithms_of(op: Any, call: Any, key: Any) -> list[TimedAlgorithm]:
    """Return the reference, if any, and the kernels for a key, as functions of arrays."""
    algorithms = [] if call.reference is None else [TimedAlgorithm("reference", call.reference)]
    for one, kernel in kernels.serving(op, key):
        algorithms.append(TimedAlgorithm(label(one, kernel), kernels.of_call(op, kernel, call), op.tolerances.get(one)))
    return algorithms


def bind(op: Any, call: Any, dtype: Any) -> Callable[..., Any]:
    """Return one function of the arrays that runs the fastest algorithm for such shapes; see kernels.bind."""
    by_order = plain_bind(op, call, dtype)
    if op.key_rule is not None or not tunable(op) or not kernels.serving(op, kernels.key_of(op, call, dtype)):
        return by_order

    def run(*arrays: Any) -> object:
        if not active:
            return by_order(*arrays)
        cache_key = (call, dtype, _shapes(arrays))
        chosen = _quick.get(cache_key)
        if chosen is None:
            chosen = _chosen(op, call, dtype, arrays, by_order)
            if chosen is None:
                return by_order(*arrays)
            if len(_quick) >= _LIMIT:
                _quick.clear()
            _quick[cache_key] = chosen
        result = chosen(*arrays)
        return by_order(*arrays) if result is NotImplemented else result

    return run


plain_bind = kernels.bind


def _shapes(arrays: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([_shapes(a) if type(a) is list else a if a is None else (a.shape, a.dtype) for a in arrays])


def _chosen(
    op: Any, call: Any, dtype: Any, arrays: Sequence[Any], by_order: Callable[..., Any]
) -> Callable[..., Any] | None:
    """Return the algorithm for these shapes; None if it cannot be measured now."""
    key = kernels.key_of(op, call, dtype)
    ways = algorithms_of(op, call, key)
    if len(ways) < 2:
        return by_order
    text = key_of(op.name, call, key, shape_class(arrays))
    name = choose(text, ways, arrays, label(*kernels.serving(op, key)[0]))
    measurement = _measurements.get(text)
    if measurement is None:
        return None
    if name in measurement.out:
        return by_order  # all fell out: the caller sees the errors of the plain order
    return next((way.run for way in ways if way.name == name), by_order)


def key_of_call(op: Any, call: Any, key: Any, operands: Sequence[Any]) -> str | None:
    """Return the cache key of a kernel choice from the specs of inputs; None while sizes are unknown."""
    try:
        specs = [[_Sized(x) for x in o] if isinstance(o, tuple) else None if o is None else _Sized(o) for o in operands]
        return key_of(op.name, call, key, shape_class(specs))
    except (TypeError, AttributeError, OpError):
        return None


def explained(op: Any, call: Any, key: Any, operands: Sequence[Any]) -> Measured | None:
    """Return the measurement for a call with these specs; None without one, or while sizes are unknown."""
    text = key_of_call(op, call, key, operands)
    return None if text is None else remembered(text)


class _Sized:
    """The shape and dtype of an operand, as arrays have them."""

    def __init__(self, operand: Any) -> None:
        self.shape, self.dtype = tuple(operand.spec.shape.dims), operand.spec.dtype.np


def _follow() -> None:
    """Replace kernels.bind while the flag `tune` is on."""
    global active
    active = bool(flags.tune and not flags.deterministic)
    kernels.bind = bind if active else plain_bind
    if not active:
        _quick.clear()


flags.on_change("tune", _follow)
