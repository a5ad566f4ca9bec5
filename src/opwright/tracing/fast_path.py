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
from ..core.structures import PLAIN
from ..core.type_spec import TraceType
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..ops import dispatch
from ..ops.lod_tensor import LoDTensor
from .placeholders import VariableArgument
from .symbolic import SymbolicTensor

if TYPE_CHECKING:
    from .concrete import ConcreteFunction

CACHE_LIMIT = 1024  # entries per function: one trace with unknown sizes may be called with any number of shapes

_PRIMITIVE = frozenset((int, bool, str, bytes, type(None)))
_BY_ID = frozenset((types.FunctionType,))
_VARIABLES = frozenset((Variable, VariableArgument))
_NO_CAPTURES: tuple[Any, ...] = ()

state = dispatch.state


class Uncacheable(Exception):
    """Raised for a value without a quick key, whose trace type must be built."""


def call_key(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """Build the key of a call; return it and the tensors of the call, in order.

    The key lists the arguments, depth first: each value by its kind and content, a container by its kind and size, so
    that no key is a prefix of another. A LoDTensor contributes neither its number of rows nor its number of sequences,
    as in its type; `can_cache` excludes traces that depend on them. raises Uncacheable, AttributeError or TypeError for
    values that only a trace type distinguishes
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
    """Append a variable: its type, or the index of its first occurrence."""
    for i, earlier in enumerate(tensors):
        if earlier is value:
            key += Variable, i
            return
    key += Variable, value.dtype, value.shape.dims, value.trainable, id(value.constraint)
    tensors.append(value)


def _append_sequences(value: LoDTensor, key: list[Any], tensors: list[Any]) -> None:
    """Append a LoDTensor: two entries of the key per tensor, as for single tensors."""
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
    """The target of all calls with one key.

    order: for each tensor of the trace, its index among the tensors of a call; None if they are the same.
    """

    __slots__ = ("_captured", "_dtype", "_dtypes", "_order", "_run", "concrete")

    def __init__(self, concrete: ConcreteFunction, order: list[int] | None) -> None:
        self.concrete, self._order = concrete, order
        self._run: Any = None
        self._captured: Any = _NO_CAPTURES
        self._dtypes: Any = None
        self._dtype: Any = None  # where the result is one tensor

    def call(self, tensors: list[Any]) -> Any:
        """Call with the tensors of a call, in the order of the key."""
        if self._order is not None:
            tensors = [tensors[i] for i in self._order]
        dispatch_state = state
        if self._run is None or dispatch_state.trace is not None or dispatch_state.tapes or flags.checked:
            return self._call_uncached(tensors)
        try:  # as dispatch.quietly does, without the call of it
            results = dispatch_state.quiet.run(self._run, *[t._array for t in tensors], *self._captured)
        except Exception as error:
            results = self._recover(error, tensors)
        if self._dtype is not None:
            return EagerTensor(results[0], self._dtype)
        return self.concrete.pack([EagerTensor(r, d) for r, d in zip(results, self._dtypes)])

    def _recover(self, error: Exception, tensors: list[Any]) -> Sequence[Any]:
        """Handle an error: run without the quiet context if it is already entered, otherwise explain the error."""
        try:
            if type(error) is RuntimeError and str(error).startswith("cannot enter context"):
                results: Sequence[Any] = self._run(*[t._array for t in tensors], *self._captured)
                return results
        except Exception as other:
            error = other
        inputs = [*[t._array for t in tensors], *self._captured]
        raise (failure := self.concrete.program.plan.explain(error, inputs)) from failure.__cause__

    def _call_uncached(self, tensors: list[Any]) -> Any:
        """Call under tapes, in another trace, or for the first time."""
        concrete = self.concrete
        result = concrete.call_flat(_converted(concrete, tensors))
        if self._run is None and state.trace is None and not flags.checked:
            self._bind_plan(tensors)
        return result

    def _bind_plan(self, tensors: list[Any]) -> None:
        """Call the plan directly from now on, if all tensors and captures have values."""
        program = self.concrete.program
        if all(type(t) is EagerTensor for t in (*tensors, *program.captured) if type(t) is not Variable):
            self._captured = [c._array for c in program.captured]
            self._dtypes = [v.spec.dtype for v in program.graph.outputs]
            self._dtype = self._dtypes[0] if self.concrete.single else None
            self._run = program.plan.run


def _converted(concrete: ConcreteFunction, tensors: list[Any]) -> list[Any]:
    """Convert NumPy arrays to tensors."""
    if not any(type(t) is np.ndarray for t in tensors):
        return tensors
    return [
        dispatch.to_tensor(t, s.dtype) if type(t) is np.ndarray else t
        for t, s in zip(tensors, concrete.tensor_specs, strict=True)
    ]


def tensor_positions(required: Sequence[Any], tensors: Sequence[Any]) -> list[int] | None:
    """Return the index of each required tensor among those of a call; None if they are the same.

    Raises Uncacheable if one is missing or ambiguous.
    """
    if (
        len(required) == len(tensors)
        and all(a is b for a, b in zip(required, tensors))
        and len({*map(id, tensors)}) == len(tensors)
    ):
        return None
    index = {id(t): i for i, t in enumerate(tensors)}
    if len(index) < len(tensors):
        raise Uncacheable
    try:
        return [index[id(t)] for t in required]
    except KeyError:
        raise Uncacheable from None


def with_unique_tensors(value: Any) -> Any:
    """Return the arguments with every tensor that `call_key` visits replaced by an object of its own."""
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


def can_cache(required: Sequence[Any], specs: Sequence[Any], args: Any) -> bool:
    """Return whether all calls of one key may use one trace.

    They may not if the trace depends on the number of rows of a LoDTensor, which is not part of the key. required: the
    tensors that the trace takes, with their `specs`. args: the arguments; each tensor is a separate object.
    """
    packed_rows = set(_packed_rows(args))
    return not packed_rows or all(
        id(t) not in packed_rows or not s.shape.rank or s.shape[0] is None for t, s in zip(required, specs, strict=True)
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
    result = _identity.get(kind)
    if result is None:
        result = not (
            hasattr(kind, "__tf_tracing_type__")
            or issubclass(kind, (TraceType, type))
            or PLAIN[kind] is not None
            or not getattr(kind, "__weakrefoffset__", 0)
        )
        if len(_identity) >= 1024:
            _identity.clear()
        _identity[kind] = result
    return result
