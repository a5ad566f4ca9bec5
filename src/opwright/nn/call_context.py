"""What a running call of layers knows: the training mode, whose losses were added, and the masks of tensors.

Lives here: the thread's context, the side table of masks.  Not here: who enters the context (layer.py).
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

# Tensors are immutable and have no attributes of their own, so masks stand beside them until they die.
_MASKS: dict[int, tuple[weakref.ref[Any], Any]] = {}


def mask_of(tensor: Any) -> Any:
    """Return the bool mask attached to a tensor, False at positions to ignore; None without a mask."""
    if not _MASKS:
        return None
    found = _MASKS.get(id(tensor))
    return found[1] if found is not None and found[0]() is tensor else None


def set_mask(tensor: Any, mask: Any) -> None:
    """Attach a mask to a tensor; None removes it."""
    key = id(tensor)
    if mask is None:
        _MASKS.pop(key, None)
        return
    _MASKS[key] = (weakref.ref(tensor, lambda _: _MASKS.pop(key, None)), mask)
