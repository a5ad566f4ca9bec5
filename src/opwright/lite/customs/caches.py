"""Keys and values of what a generative model has read so far: odml.update_kv_cache, odml.update_external_kv_cache.

Lives here: the two operators.  Not here: attention itself (attention.py), where an interpreter keeps caches
(runtime/resources.py).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...core.dtypes import float32, int32, int64
from ...ops.attributes import Attr
from ...ops.definition import Input, Output
from ..ops.shapes import bounded, refuse, same, spec, text
from ..registration import OperatorRegistration
from .definition import custom_operator

_F = (float32,)
ENTRIES, LAYERS = 2048, 32
"""What a cache holds where its options do not say."""


@custom_operator("odml.update_external_kv_cache")
class UpdateExternalKVCache:
    """The caches with slices in place of some of their entries.

    .. math:: y_{0, position_i} = slice_{0, i}

    keys, values: [1, entries, heads, size]; position: int32 [n]; the slices: [1, n, heads, size]. A position below the
    one before it ends the list: it and what comes after it count nothing.
    """

    keys = Input(_F, rank=4)
    values = Input(_F, rank=4)
    position = Input((int32,), rank=1)
    key_slice = Input(_F, rank=4)
    value_slice = Input(_F, rank=4)
    new_keys = Output(dtype=float32)
    new_values = Output(dtype=float32)

    def infer(op: Any) -> Any:
        cache, part = op.keys.spec.shape, op.key_slice.spec.shape
        if not cache.is_compatible_with(op.values.spec.shape) or not part.is_compatible_with(op.value_slice.spec.shape):
            raise refuse("keys and values differ in shape",
                         found={n: text(getattr(op, n).spec.shape)
                                for n in ("keys", "values", "key_slice", "value_slice")},
                         wanted="one shape")  # fmt: skip
        if not same(part[0], cache[0], 1) or not all(map(same, (cache.dims or ())[2:], (part.dims or ())[2:])):
            raise refuse("the slices do not fit the caches", found={"keys": text(cache), "key_slice": text(part)},
                         wanted="[1,entries,heads,size] and [1,n,heads,size]")  # fmt: skip
        if not same(op.position.spec.shape[0], part[1]):
            raise refuse("there are not as many positions as entries in the slices",
                         found=text(op.position.spec.shape), wanted=f"[{part[1]}]")  # fmt: skip
        return op.keys.spec, op.values.spec

    def compute(op: Any, keys: Any, values: Any, position: Any, key_slice: Any, value_slice: Any) -> Any:
        falls = np.flatnonzero(np.diff(position) < 0)
        at = position[: int(falls[0]) + 1] if len(falls) else position
        if len(at) and (at.min() < 0 or at.max() >= keys.shape[1]):
            raise refuse("a position is outside the cache", found=f"{at.min()} to {at.max()}",
                         wanted=f"0 to {keys.shape[1] - 1}")  # fmt: skip
        found = keys.copy(), values.copy()
        for cache, part in zip(found, (key_slice, value_slice)):
            cache[0, at] = part[0, : len(at)]
        return found


@custom_operator("odml.update_kv_cache")
class UpdateKVCache:
    """Keys and values put into a cache that stays from run to run, and the whole cache; the oldest entries make room.

    .. math:: cache_{position_0 - first + i} = keys_i

    position: int64 [n], of which the first counts; keys, values: [1, n, heads, size]; y: [1, kv_cache_max, heads, size]
    each. layer_index: which of the interpreter's caches, one for all its subgraphs. What comes beyond the last entry
    shifts the cache, whose first entry (first) then stands for a later position.
    """

    position = Input((int64,), rank=1)
    keys = Input(_F, rank=4)
    values = Input(_F, rank=4)
    all_keys = Output(dtype=float32)
    all_values = Output(dtype=float32)
    kv_cache_max = Attr(int, default=ENTRIES)
    num_layers = Attr(int, default=LAYERS)
    layer_index = Attr(int, default=0)
    effect = "write"

    def infer(op: Any) -> Any:
        keys, entries = op.keys.spec.shape, entries_of(op)
        if not keys.is_compatible_with(op.values.spec.shape) or not same(keys[0], 1):
            raise refuse("keys and values do not fit each other",
                         found={"keys": text(keys), "values": text(op.values.spec.shape)},
                         wanted="[1,n,heads,size] each")  # fmt: skip
        if not same(op.position.spec.shape[0], keys[1]):
            raise refuse("there are not as many positions as keys", found=text(op.position.spec.shape),
                         wanted=f"[{keys[1]}]")  # fmt: skip
        if keys[1] is not None and not 0 < keys[1] <= entries:
            raise refuse("more keys at once than the cache holds", found=keys[1], wanted=f"1 to {entries}")
        if max(op.layer_index, 0) >= layers_of(op):
            raise refuse("layer_index is out of range", found=op.layer_index, wanted=f"0 to {layers_of(op) - 1}")
        dims = (1, entries, keys[2], keys[3])
        if None not in dims:
            bounded((2, *dims), float32, "the cache")
        return spec(dims, float32), spec(dims, float32)

    def registration(operator: Any) -> Any:
        return CacheRegistration(operator)


def entries_of(op: Any) -> int:
    """How many keys a layer's cache holds."""
    return op.kv_cache_max if op.kv_cache_max > 0 else ENTRIES


def layers_of(op: Any) -> int:
    """How many layers the model has."""
    return op.num_layers if op.num_layers > 0 else LAYERS


class CacheRegistration(OperatorRegistration):
    """The operator's shape rules, and its cache in place of `compute`."""

    __slots__ = ()

    def bind(self, context: Any, node: Any) -> Any:
        return functools.partial(self._invoke, context, node)

    def _invoke(self, context: Any, node: Any) -> None:
        """Put keys and values into the layer's cache and give all of it."""
        position, keys, values = (t.readonly for t in node.tensors_in)
        call: Any = self._call(node)
        all_keys, all_values = node.tensors_out
        cache = node.subgraph.resources.cache(max(call.layer_index, 0), all_keys.shape[1:])
        entries, n = all_keys.shape[1], keys.shape[1]
        begin = int(position[0])
        first = cache.first.get(node, 0)
        if begin < first:
            raise refuse("the position is before the first entry of the cache", found=begin, wanted=f"{first} or more")
        shift = max(0, begin + n - first - entries)
        if 0 < shift < entries:
            for kept in (cache.keys, cache.values):
                kept[: entries - shift] = kept[shift:].copy()
        cache.first[node] = first + shift
        at = slice(begin - first - shift, begin - first - shift + n)
        cache.keys[at], cache.values[at] = keys[0], values[0]
        np.copyto(all_keys.array[0], cache.keys)
        np.copyto(all_values.array[0], cache.values)
