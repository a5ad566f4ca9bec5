"""What a running call of layers knows: the training mode, whose losses were added, and the masks of tensors.

Lives here: the thread's context, the side table of masks.  Not here: who enters the context (layer.py).
"""

from __future__ import annotations

import threading
import weakref
from typing import Any


class CallContext:
    """One outermost call of a layer and all calls inside it. training: None where nobody said."""

    __slots__ = ("entry", "training")

    def __init__(self, entry: Any, training: Any) -> None:
        self.entry, self.training = entry, training


class _Current(threading.local):
    context: CallContext | None = None


current = _Current()

# Tensors are immutable and have no attributes of their own, so masks stand beside them until they die.
_MASKS: dict[int, tuple[weakref.ref[Any], Any]] = {}


def mask_of(tensor: Any) -> Any:
    """The mask a layer put on its output: a bool tensor, False where values are to be left out; None where none."""
    if not _MASKS:
        return None
    found = _MASKS.get(id(tensor))
    return found[1] if found is not None and found[0]() is tensor else None


def set_mask(tensor: Any, mask: Any) -> None:
    """Put a mask on a tensor; None takes it off."""
    key = id(tensor)
    if mask is None:
        _MASKS.pop(key, None)
        return
    _MASKS[key] = (weakref.ref(tensor, lambda _: _MASKS.pop(key, None)), mask)
