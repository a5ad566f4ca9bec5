"""Hash tables that are filled once: HASHTABLE, HASHTABLE_IMPORT, HASHTABLE_FIND, HASHTABLE_SIZE.

Lives here: these operators, and checks that lite/customs/hash_tables.py shares.
Not here: where the entries are kept (runtime/resources.py), variables (state.py), HASHTABLE_LOOKUP (lookup.py).

Keys and values are int64 and strings, either way round.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import int64, resource, string
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from .definition import LiteDefinition, lite_operator
from .shapes import refuse, text
from .state import handle_registration

KINDS = (("INT64", "STRING"), ("STRING", "INT64"))
ENTRY = (int64, string)


@lite_operator("HASHTABLE")
class Hashtable(LiteDefinition):
    """The hash table of this number; one in all subgraphs.

    .. math:: table = table(number)
    """

    table = Output(dtype=resource)

    def infer(op: Any) -> TensorSpec:
        _check_kinds(op.key_dtype, op.value_dtype)
        return TensorSpec((1,), resource)

    def registration(operator: Any) -> Any:
        def find(resources: Any, options: Any) -> Any:
            call = operator.from_options(options)
            _check_kinds(call.key_dtype, call.value_dtype)
            return resources.table(call.table_id, call.key_dtype, call.value_dtype)

        return handle_registration(find)


def _check_kinds(key: str, value: str) -> None:
    if (key, value) not in KINDS:
        raise refuse(
            "a hash table goes from INT64 to STRING or from STRING to INT64",
            found=f"{key} to {value}",
            wanted="INT64 to STRING, or STRING to INT64",
        )


def check_pairs(op: Any) -> None:
    """Raise InvalidArgumentError if the operands `keys` and `values` differ in shape."""
    keys, values = op.keys.spec.shape, op.values.spec.shape
    if not keys.is_compatible_with(values):
        raise refuse(
            "keys and values differ in shape", found={"keys": text(keys), "values": text(values)}, wanted="one shape"
        )


@lite_operator("HASHTABLE_IMPORT")
class HashtableImport(LiteDefinition):
    """Fill a table that is empty still; another import changes nothing. The first of equal keys counts.

    .. math:: table_{keys_i} \\leftarrow values_i
    """

    table = Input((resource,))
    keys = Input(ENTRY)
    values = Input(ENTRY)
    effect = "write"

    def infer(op: Any) -> tuple[()]:
        check_pairs(op)
        return ()

    def compute(op: Any, table: np.ndarray, keys: np.ndarray, values: np.ndarray) -> tuple[()]:
        if keys.shape != values.shape:
            raise refuse(
                "keys and values differ in shape",
                found={"keys": keys.shape, "values": values.shape},
                wanted="one shape",
            )
        _table(table, keys, values).fill(keys, values)
        return ()


@lite_operator("HASHTABLE_FIND")
class HashtableFind(LiteDefinition):
    """The value of each key, or the default where a key is not there.

    .. math:: values_i = table_{keys_i}
    """

    table = Input((resource,))
    keys = Input(ENTRY)
    default = Input(ENTRY)
    values = Output(like="default")
    effect = "read"

    def infer(op: Any) -> TensorSpec:
        if op.default.spec.shape.num_elements() == 0:
            raise refuse("the default is one element", found=op.default.spec.short(), wanted="one element")
        return TensorSpec(op.keys.spec.shape, op.default.spec.dtype)

    def compute(op: Any, table: Any, keys: Any, default: Any) -> Any:
        return _table(table, keys, default).find(keys, default)


@lite_operator("HASHTABLE_SIZE")
class HashtableSize(LiteDefinition):
    """The number of keys in a table.

    .. math:: size = |table|
    """

    table = Input((resource,))
    size = Output(dtype=int64)
    effect = "read"

    def infer(op: Any) -> TensorSpec:
        return TensorSpec((1,), int64)

    def compute(op: Any, table: np.ndarray) -> np.ndarray:
        return np.array([len(_table(table))], np.int64)


def _table(handle: np.ndarray, *entries: np.ndarray) -> Any:
    """Return the table in a handle; check the types of keys and values."""
    return checked_table(handle.reshape(-1)[0] if handle.size else None, entries, "HASHTABLE")


@functools.cache
def _hash_table() -> Any:
    """Import the class on first use: processes without tables do not load it."""
    from ..runtime.resources import HashTable

    return HashTable


@functools.cache
def _entry_name(dtype: np.dtype[Any]) -> str:
    """Return the schema's name of a dtype of entries."""
    return "STRING" if dtype.kind == "O" else dtype.name.upper()


def checked_table(table: Any, entries: Sequence[np.ndarray], maker: str) -> Any:
    """Return the hash table of a handle; check that its types are those of the entries.

    maker: the operator whose output handles are. raises InvalidArgumentError
    """
    if not isinstance(table, _hash_table()):
        raise refuse("the handle does not stand for a hash table", found=repr(table), wanted=f"the output of a {maker}")
    names = [_entry_name(x.dtype) for x in entries]
    expected = [table.key_dtype, table.value_dtype][: len(names)]
    if names != expected:
        raise refuse(f"{table!r} has other types", found=" to ".join(names), wanted=" to ".join(expected))
    return table
