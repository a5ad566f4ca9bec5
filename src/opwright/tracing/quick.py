"""Keys of calls that are quick to make: the second look before types are built.

Lives here: `quick_key`.  Not here: the types, which decide (trace_type.py); what the keys lead to (function.py).

Two calls with one key have one type. The contrary need not hold: dictionaries in another order, for instance, have
another key and lead to the same trace. Objects stand by their id, so whoever keeps keys must forget them when an object
dies; 6 us for building types become 1 us.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from .symbolic import SymbolicTensor

_PRIMITIVE = frozenset((int, bool, str, bytes, type(None)))
_BY_ID = frozenset((Variable, types.FunctionType))


class Slow(Exception):
    """A value whose type has to be built."""


def quick_key(value: Any) -> Any:
    """A key for a call's arguments. Raises Slow for kinds that only their trace type can tell apart."""
    kind = type(value)
    if kind is EagerTensor:
        return (value._dtype, value.shape.dims)
    if kind in _PRIMITIVE:
        return (kind, value)
    if kind is tuple or kind is list:
        return (kind, *[quick_key(v) for v in value])
    if kind is dict:
        return (dict, *[(k, quick_key(v)) for k, v in value.items()]) if value else None
    if kind is float:
        if value == 0.0 or value != value:  # of two signs; equal to nothing
            raise Slow
        return (float, value)
    if kind is SymbolicTensor:
        spec = value._spec
        return (spec.dtype, spec.shape.dims)
    if kind is np.ndarray:
        return (value.dtype, value.shape)
    if kind in _BY_ID:
        return ("id", id(value))
    if kind.__eq__ is object.__eq__ and _by_identity(kind):
        return ("id", id(value))
    raise Slow


_identity: dict[type, bool] = {}


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
