"""Caches of keys and values that are tensors: odml.update_external_kv_cache.

Lives here: its rule.  Not here: the operator (lite/customs/caches.py), caches that the interpreter keeps.
"""

from __future__ import annotations

from ....compiler.loops.cache_forms import PutEntries
from ....core.dtypes import float32, int32
from ..nodes import At, Refused
from .registry import rule


@rule("odml.update_external_kv_cache")
def update(at: At) -> None:
    """Keys and values alike."""
    positions = at.operand(2)
    for place in range(2):
        cache, entries = at.operand(place), at.operand(3 + place)
        y = at.output(cache.shape, place)
        fits = entries.shape == (1, positions.size, *cache.shape[2:]) and cache.shape[0] == 1 and entries.size
        if not fits or {cache.dtype, entries.dtype, y.dtype} != {float32} or positions.dtype is not int32:
            raise Refused(f"{entries} in {cache} at {positions}")
        out, close = at.under(y, cache.shape[1:])
        at.form(PutEntries, out, at.viewed(cache.buffer, cache.shape[1:]), at.viewed(entries.buffer, entries.shape[1:]),
                positions.buffer)  # fmt: skip
        close()
