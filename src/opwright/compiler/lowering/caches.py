"""Caches of keys and values that are tensors: odml.update_external_kv_cache.

Lives here: its rule.  Not here: the operator (lite/customs/caches.py), caches that the interpreter keeps.
"""

from __future__ import annotations

from ...core.dtypes import float32, int32
from ..loops.cache_forms import PutEntries
from .context import LoweringContext, NoLowering
from .registry import rule


@rule("odml.update_external_kv_cache")
def update(ctx: LoweringContext) -> None:
    """Keys and values alike."""
    positions = ctx.operand(2)
    for place in range(2):
        cache, entries = ctx.operand(place), ctx.operand(3 + place)
        y = ctx.output(cache.shape, place)
        fits = entries.shape == (1, positions.size, *cache.shape[2:]) and cache.shape[0] == 1 and entries.size
        if not fits or {cache.dtype, entries.dtype, y.dtype} != {float32} or positions.dtype is not int32:
            raise NoLowering(f"{entries} in {cache} at {positions}")
        out, close = ctx.under(y, cache.shape[1:])
        ctx.form(
            PutEntries,
            out,
            ctx.viewed(cache.buffer, cache.shape[1:]),
            ctx.viewed(entries.buffer, entries.shape[1:]),
            positions.buffer,
        )
        close()
