"""LookupTableFind: the values of keys in a table of pairs.

Lives here: the operator, and the index over the keys of a table, which is kept as long as their array.
Not here: tables as objects (eager/lookup.py), the builtins of files (lite/ops/state.py).
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.specs import TensorSpec
from .definition import operator
from .slots import Input, OperatorDefinition, Output

KEY_DTYPES = (dtypes.string, dtypes.int64, dtypes.int32, dtypes.float32, dtypes.float64)


class _Entry(NamedTuple):
    """The index of an array of keys; copy: its elements if they may change."""

    array: weakref.ref[np.ndarray]
    positions: dict[Any, int]
    copy: np.ndarray | None


_indices: dict[int, _Entry] = {}


@operator
class LookupTableFind(OperatorDefinition):
    """Look keys up in a table of pairs: the value of each, or the default if the table does not have the key.

    .. math:: values_i = table\\_values_j \\text{ where } table\\_keys_j = keys_i, \\text{ else } default

    keys: [...]; table_keys, table_values: [n]; of equal keys the first counts; default: a scalar.
    raises InvalidArgumentError if numbers of keys and values of the table differ
    """

    keys = Input(KEY_DTYPES)
    table_keys = Input(KEY_DTYPES, like="keys", rank=1)
    table_values = Input(rank=1)
    default = Input(like="table_values", rank=0)
    values = Output(like="table_values")
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        keys, values = op.table_keys.spec.shape, op.table_values.spec.shape
        if not keys.is_compatible_with(values):
            raise InvalidArgumentError(
                what="numbers of keys and values of the table differ",
                found={"table_keys": op.table_keys.spec.short(), "table_values": op.table_values.spec.short()},
            )
        return op.table_values.spec.with_shape(op.keys.spec.shape)

    def compute(op, keys: Any, table_keys: Any, table_values: Any, default: Any) -> np.ndarray:
        if len(table_keys) != len(table_values):
            raise InvalidArgumentError(
                what="numbers of keys and values of the table differ",
                found={"table_keys": len(table_keys), "table_values": len(table_values)},
            )
        index = index_of(table_keys)
        positions = np.array([index.get(key, -1) for key in keys.reshape(-1).tolist()], np.int64)
        values = np.empty(keys.size, table_values.dtype)
        values[...] = default
        is_key = positions >= 0
        values[is_key] = table_values[positions[is_key]]
        return values.reshape(keys.shape)


def index_of(keys: np.ndarray) -> dict[Any, int]:
    """Return the position of each key of an array, of equal keys the first; kept while the array lives.

    Arrays of strings are replaced, not changed, by all of this package; those of numbers may be variables that a
    compiled step writes in place, and are therefore compared with a copy.
    """
    entry = _indices.get(id(keys))
    if entry is not None and entry.array() is keys and (entry.copy is None or np.array_equal(entry.copy, keys)):
        return entry.positions
    index: dict[Any, int] = {}
    for i, key in enumerate(keys.tolist()):
        index.setdefault(key, i)
    if len(index) > _FEW:
        identity = id(keys)
        array = weakref.ref(keys, lambda _: _indices.pop(identity, None))
        _indices[identity] = _Entry(array, index, None if keys.dtype == object else keys.copy())
    return index


_FEW = 16
"""Keys up to which a new index costs less than keeping one."""
