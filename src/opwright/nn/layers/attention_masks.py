"""Masks of attention: who may see whom.

Lives here: masks of inputs, causal masks and sliding windows joined.  Not here: scores (attention.py, scored.py).
"""

from __future__ import annotations

from typing import Any

from ...ops import array, math


def _places(x: Any, axis: int = 1) -> Any:
    """0, 1, ... along an axis of x."""
    size = x.shape[axis]
    return array.range(array.shape(x)[axis] if size is None else size)


def causal(query: Any, value: Any, axis: int = 1) -> Any:
    """[1, T, S]: place t sees places up to t."""
    rows, columns = _places(query, axis), _places(value, axis)
    return array.expand_dims(array.expand_dims(rows, 1) >= array.expand_dims(columns, 0), 0)


def window(query: Any, value: Any, width: int) -> Any:
    """[1, T, S]: place t sees places nearer than `width`."""
    rows, columns = _places(query), _places(value)
    return array.expand_dims(math.abs(array.expand_dims(rows, 1) - array.expand_dims(columns, 0)) < width, 0)


def joined(query: Any, value: Any, query_mask: Any, value_mask: Any, key_mask: Any, attention_mask: Any,
           use_causal_mask: bool, sliding_window: int | None) -> Any:  # fmt: skip
    """All that is to hold at once, [B or 1, T or 1, S]; None where all see all."""
    parts = []
    if query_mask is not None:
        parts.append(array.expand_dims(array.cast(query_mask, "bool"), -1))
    parts += [array.expand_dims(array.cast(m, "bool"), -2) for m in (value_mask, key_mask) if m is not None]
    if use_causal_mask:
        parts.append(causal(query, value))
    if sliding_window is not None:
        parts.append(window(query, value, sliding_window))
    if attention_mask is not None:
        parts.append(array.cast(attention_mask, "bool"))
    mask = None
    for part in parts:
        mask = part if mask is None else math.logical_and(mask, part)
    return mask
