"""State of the active layer call: its training mode, its outermost layer, and the masks of tensors.

Lives here: the context of each thread, the side table of masks.  Not here: entering the context (layer.py).
"""

from __future__ import annotations

import threading
import weakref
from typing import Any


class CallContext:
    """Outermost call of a layer, including nested calls. training: None if unspecified."""

    __slots__ = ("entry", "training")

    def __init__(self, entry: Any, training: Any) -> None:
        self.entry, self.training = entry, training


class _Current(threading.local):
    context: CallContext | None = None


current = _Current()

# Tensors are immutable and have no attributes, so a side table stores masks until the tensors are collected.
_MASKS: dict[int, tuple[weakref.ref[Any], Any]] = {}


def mask_of(tensor: Any) -> Any:
    """Return the bool mask attached to a tensor, False at positions to ignore; None without a mask."""
    if not _MASKS:
        return None
    entry = _MASKS.get(id(tensor))
    return entry[1] if entry is not None and entry[0]() is tensor else None


def set_mask(tensor: Any, mask: Any) -> None:
    """Attach a mask to a tensor; None removes it."""
    key = id(tensor)
    if mask is None:
        _MASKS.pop(key, None)
        return
    _MASKS[key] = (weakref.ref(tensor, lambda _: _MASKS.pop(key, None)), mask)
