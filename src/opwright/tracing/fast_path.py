"""The call cache of functions: from a key of the arguments, which is quick to build, to the compiled plan.

Lives here: `call_key`, `CallCacheEntry`.
Not here: argument types (trace_type.py), the selection of a trace by them (function.py).

Calls with equal keys have equal types, so the second call takes the path of the first without binding or building
types. The converse does not hold: dictionaries in another order have another key and lead to the same trace. Objects
are keyed by id, so an owner of keys must discard them when an object dies. Binding and types cost 15 us, a cached call
1 us.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags
from ..core.dtypes import int64
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..ops import dispatch
from ..ops.lod_tensor import LoDTensor
from .placeholders import VariableArgument
from .symbolic import SymbolicTensor

if TYPE_CHECKING:
    from .concrete import ConcreteFunction

CACHE_LIMIT = 1024  # ways kept by one function: one trace with unknown sizes may be called with any number of shapes

_PRIMITIVE = frozenset((int, bool, str, bytes, type(None)))
_BY_ID = frozenset((types.FunctionType,))
_VARIABLES = frozenset((Variable, VariableArgument))
_NO_CAPTURES: tuple[Any, ...] = ()

state = dispatch.state


class Uncacheable(Exception):
    """A value whose type has to be built."""


def call_key(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """A key for a call, and its tensors in the order they were met.

    The key lists what is met on the way through the arguments, each value by its kind and then its content, a
    container by its kind and size: no key is the beginning of another. A LoDTensor stands there without its number of
    rows and of sequences, as in its type; where a trace takes only so many, `can_cache` says no.
    raises Uncacheable, AttributeError or TypeError for values that only their trace type can tell apart
    """
    key: list[Any] = []
    tensors: list[Any] = []
    for value in args:
        if type(value) is EagerTensor:
            key.append(value._dtype)
            key.append(value._array.shape)
            tensors.append(value)
        else:
            _append_key(value, key, tensors)
    for name, value in kwargs.items():
        key.append(name)
        _append_key(value, key, tensors)
    return tuple(key), tensors


def _append_key(value: Any, key: list[Any], tensors: list[Any]) -> None:
    kind = type(value)
    if kind is EagerTensor:
        key += value._dtype, value._array.shape
        tensors.append(value)
    elif kind in _PRIMITIVE:
        key += kind, value
    elif kind is tuple or kind is list:
        key += kind, len(value)
        for part in value:
            _append_key(part, key, tensors)
    elif kind is dict:
        key += kind, tuple(value)
        for part in value.values():
            _append_key(part, key, tensors)
    elif kind is float:
        if value == 0.0 or value != value:  # of two signs; equal to nothing
            raise Uncacheable
        key += kind, value
    elif kind in _VARIABLES:
        _append_variable(value, key, tensors)
    elif kind is LoDTensor:
        _append_sequences(value, key, tensors)
    elif kind is SymbolicTensor:
        spec = value._spec
        key += kind, spec.dtype, spec.shape.dims
        tensors.append(value)
    elif kind is np.ndarray:
        key += kind, value.dtype, value.shape
        tensors.append(value)
    elif kind in _BY_ID or (kind.__eq__ is _EQ and _by_identity(kind)):
        key += kind, id(value)
    else:
        raise Uncacheable


def _append_variable(value: Variable, key: list[Any], tensors: list[Any]) -> None:
    """A variable by its type, or by its place among what was met before."""
    for i, known in enumerate(tensors):
        if known is value:
            key += Variable, i
            return
    key += Variable, value.dtype, value.shape.dims, value.trainable, id(value.constraint)
    tensors.append(value)


def _append_sequences(value: LoDTensor, key: list[Any], tensors: list[Any]) -> None:
    """Two entries of the key for each of its tensors, as for tensors by themselves."""
    rows, levels = value._values, value.levels
    if type(rows) is not EagerTensor:
        raise Uncacheable
    shape = rows._array.shape
    key += LoDTensor, (rows._dtype, len(levels), shape[1:] if levels else shape)
    tensors.append(rows)
    for level in levels:
        if type(level) is not EagerTensor or level._dtype is not int64:
            raise Uncacheable
        key += None, None
        tensors.append(level)


class CallCacheEntry:
    """Where the calls of one key go.

    order: the tensor_positions among a call's tensors of those that the trace takes, or None where they are the same.
    """

    __slots__ = ("_captured", "_dtype", "_dtypes", "_order", "_run", "concrete")

    def __init__(self, concrete: ConcreteFunction, order: list[int] | None) -> None:
        self.concrete, self._order = concrete, order
        self._run: Any = None
        self._captured: Any = _NO_CAPTURES
        self._dtypes: Any = None
        self._dtype: Any = None  # where the result is one tensor

    def go(self, tensors: list[Any]) -> Any:
        """Call with the tensors of a call, in the order they were met."""
        if self._order is not None:
            tensors = [tensors[i] for i in self._order]
        here = state
        if self._run is None or here.trace is not None or here.tapes or flags.checked:
            return self._long(tensors)
        try:  # as dispatch.quietly does, without the call of it
            results = here.quiet.run(self._run, *[t._array for t in tensors], *self._captured)
        except Exception as error:
            results = self._again(error, tensors)
        if self._dtype is not None:
            return EagerTensor(results[0], self._dtype)
        return self.concrete.pack([EagerTensor(r, d) for r, d in zip(results, self._dtypes)])

    def _again(self, error: Exception, tensors: list[Any]) -> Any:
        """What to do about an error: run where the quiet context is taken already, else explain it."""
        try:
            if type(error) is RuntimeError and str(error).startswith("cannot enter context"):
                return self._run(*[t._array for t in tensors], *self._captured)
        except Exception as other:
            error = other
        raise (failure := self.concrete.program.plan.explain(error)) from failure.__cause__

    def _long(self, tensors: list[Any]) -> Any:
        """Under tapes, in another trace, and the first time."""
        concrete = self.concrete
        result = concrete.call_flat(_converted(concrete, tensors))
        if self._run is None and state.trace is None and not flags.checked:
            self._shorten(tensors)
        return result

    def _shorten(self, tensors: list[Any]) -> None:
        """From now on run the plan itself, where tensors and captures have values."""
        program = self.concrete.program
        if all(type(t) is EagerTensor for t in (*tensors, *program.captured) if type(t) is not Variable):
            self._captured = [c._array for c in program.captured]
            self._dtypes = [v.spec.dtype for v in program.graph.outputs]
            self._dtype = self._dtypes[0] if self.concrete.single else None
            self._run = program.plan.run


def _converted(concrete: ConcreteFunction, tensors: list[Any]) -> list[Any]:
    """NumPy's arrays among them as tensors."""
    if not any(type(t) is np.ndarray for t in tensors):
        return tensors
    return [
        dispatch.to_tensor(t, s.dtype) if type(t) is np.ndarray else t
        for t, s in zip(tensors, concrete.tensor_specs, strict=True)
    ]


def tensor_positions(wanted: Sequence[Any], met: Sequence[Any]) -> list[int] | None:
    """Where each of `wanted` is among `met`. Raises Uncacheable where one is not there, or may be either of two."""
    if len(wanted) == len(met) and all(a is b for a, b in zip(wanted, met)) and len({*map(id, met)}) == len(met):
        return None
    found = {id(t): i for i, t in enumerate(met)}
    if len(found) < len(met):
        raise Uncacheable
    try:
        return [found[id(t)] for t in wanted]
    except KeyError:
        raise Uncacheable from None


def with_unique_tensors(value: Any) -> Any:
    """The arguments with each of their tensors, as far as `call_key` looks, an object of its own."""
    kind = type(value)
    if kind is EagerTensor:
        return EagerTensor(value._array, value._dtype)
    if kind is np.ndarray:
        return value.view()
    if kind is tuple or kind is list:
        return kind([with_unique_tensors(v) for v in value])
    if kind is dict:
        return {k: with_unique_tensors(v) for k, v in value.items()}
    if kind is LoDTensor and value.is_initialized:
        return LoDTensor.of(with_unique_tensors(value.values), [with_unique_tensors(level) for level in value.levels])
    return value


def can_cache(wanted: Sequence[Any], specs: Sequence[Any], args: Any) -> bool:
    """Whether another call of the same key may go the same way: none where a LoDTensor's rows, which no key tells, are
    asked for by number.

    wanted: the tensors that the trace takes, of `specs`. args: the arguments, each of their tensors an object.
    """
    packed = set(_packed_rows(args))
    return not packed or all(
        id(t) not in packed or not s.shape.rank or s.shape[0] is None for t, s in zip(wanted, specs, strict=True)
    )


def _packed_rows(value: Any) -> Iterator[int]:
    kind = type(value)
    if kind is LoDTensor and value.levels:
        yield id(value.values)
    elif kind is tuple or kind is list or kind is dict:
        for part in value.values() if kind is dict else value:
            yield from _packed_rows(part)


_identity: dict[type, bool] = {}


_EQ: Any = object.__eq__


def _by_identity(kind: type) -> bool:
    found = _identity.get(kind)
    if found is None:
        from ..core.structures import PLAIN
        from ..core.type_spec import TraceType

        found = not (
            hasattr(kind, "__tf_tracing_type__")
            or issubclass(kind, (TraceType, type))
            or PLAIN[kind] is not None
            or not getattr(kind, "__weakrefoffset__", 0)
        )
        if len(_identity) >= 1024:
            _identity.clear()
        _identity[kind] = found
    return found
