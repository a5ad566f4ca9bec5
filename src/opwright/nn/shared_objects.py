"""Layers that occur several times in one configuration, such as one that two wrappers call.

Lives here: `ObjectSharingScope`, in which layers are numbered when they are serialized, and made once for each number;
`only_shared`.  Not here: configurations (model_config.py).
"""

from __future__ import annotations

import contextvars
from collections import Counter
from typing import Any

KEY = "shared_object_id"
"""The key of a number, as in files of Keras."""
_SAVED: contextvars.ContextVar[dict[int, tuple[int, Any]] | None] = contextvars.ContextVar("saved", default=None)
_MADE: contextvars.ContextVar[dict[int, Any] | None] = contextvars.ContextVar("made", default=None)


class ObjectSharingScope:
    """Context manager around the serialization, or deserialization, of one model."""

    def __enter__(self) -> ObjectSharingScope:
        self._tokens = _SAVED.set({}), _MADE.set({})
        return self

    def __exit__(self, *_: Any) -> None:
        _SAVED.reset(self._tokens[0])
        _MADE.reset(self._tokens[1])


def number_of(thing: Any) -> int | None:
    """Return the number of an object in the scope, None outside of one."""
    saved = _SAVED.get()
    if saved is None:
        return None
    return saved.setdefault(id(thing), (len(saved) + 1, thing))[0]  # the object is kept, so that its id is no other's


def only_shared(config: Any) -> Any:
    """Return a configuration without the numbers that occur once."""
    counts: Counter[int] = Counter()

    def count(value: Any) -> None:
        if isinstance(value, dict):
            counts.update([value[KEY]] if KEY in value else [])
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            count(part)

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k != KEY or counts[v] > 1}
        return [strip(v) for v in value] if isinstance(value, list) else value

    count(config)
    return strip(config)


def revived(config: dict[str, Any]) -> Any:
    """Return the object of a configuration with a number if it has been made; else None."""
    return (_MADE.get() or {}).get(config.get(KEY, -1))


def record(thing: Any, config: dict[str, Any]) -> None:
    """Keep an object whose configuration has a number."""
    things = _MADE.get()
    if things is not None and KEY in config:
        things[config[KEY]] = thing
