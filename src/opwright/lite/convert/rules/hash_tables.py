"""The rule of hash tables: HASHTABLE, HASHTABLE_IMPORT and HASHTABLE_FIND.

Lives here: LookupTableFind, and the numbers of tables.
Not here: the builtins (lite/ops/state.py).

Official kernels have tables from strings to int64 and from int64 to strings. Other values of strings are gathered by
the position that such a table has. A table is imported where it is read: every import after the first does nothing.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import numpy as np

from ....core.dtypes import int32, int64, string
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, constant_of, rule_table

_contents: dict[int, bytes] = {}
"""By number of a table the digest of its content, so that no two tables of a file share one."""


def _table_id(*arrays: np.ndarray) -> int:
    """Return the number of a table, by content: a table of several functions is one."""
    parts = [repr((a.dtype.str, a.shape, a.tolist())).encode() for a in arrays]
    content = hashlib.sha256(b"\n".join(parts)).digest()
    number = zlib.crc32(content) & 0x7FFFFFFF
    while _contents.setdefault(number, content) != content:
        number = number + 1 & 0x7FFFFFFF
    return number


def _find(node: Node, rewriter: LiteRewriter) -> RuleResult:
    keys, *table = node.operands
    table_keys, values, default = (constant_of(v, "the table") for v in table)
    if keys.dtype is string and values.dtype != object:
        if values.dtype == np.int64:
            return _found(rewriter, keys, table_keys, values, default)
        positions = np.arange(1, len(table_keys) + 1)
        rows = np.concatenate([default.reshape(1), values])
        position = _found(rewriter, keys, table_keys, positions, np.zeros((), np.int64))
        return rewriter.emit("GATHER", rewriter.constant(rows, node.outputs[0].dtype), rewriter.int32(position), axis=0)
    if keys.dtype in (int32, int64) and values.dtype == object:
        wide = keys if keys.dtype is int64 else rewriter.cast(keys, int64)
        return _found(rewriter, wide, table_keys.astype(np.int64), values, default)
    return NoMatch(f"a hash table goes from strings to numbers or from integers to strings, not from {keys.dtype.name}")


def _found(rewriter: LiteRewriter, keys: Value, table_keys: Any, values: Any, default: Any) -> Value:
    """Emit a table of strings and int64, in whichever direction, and the values of keys in it."""
    kinds = ("STRING", "INT64") if keys.dtype is string else ("INT64", "STRING")
    value_dtype = int64 if keys.dtype is string else string
    number = _table_id(table_keys, values)
    handle = rewriter.emit("HASHTABLE", table_id=number, key_dtype=kinds[0], value_dtype=kinds[1])
    rewriter.emit_many(
        "HASHTABLE_IMPORT", handle, rewriter.constant(table_keys, keys.dtype), rewriter.constant(values, value_dtype)
    )
    return rewriter.emit("HASHTABLE_FIND", handle, keys, rewriter.constant(default.reshape(1), value_dtype))


TABLES = rule_table(RewriteRule("hash_table", "LookupTableFind", _find, "of equal keys the first counts in both"))
