"""DispatchTable: which trace serves a call.

Lives here: finding the most specific trace whose type the arguments fit, and forgetting traces of dead objects.
Not here: the types (trace_type.py), making traces (function.py).

An exact type is one look-up. Otherwise all traces are asked; the answer is kept by the arguments' type, for at most
REMEMBERED types, so that a trace for unknown sizes may be called with any number of shapes.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from ..core.type_spec import TraceType

REMEMBERED = 1024


class DispatchTable:
    """Types of arguments -> traces.

    forgotten: called whenever a trace was dropped, so that short ways to it are closed.
    """

    def __init__(self, forgotten: Any) -> None:
        self._traces: dict[TraceType, Any] = {}
        self._answers: dict[TraceType, Any] = {}
        self._watchers: dict[TraceType, list[Any]] = {}
        self._forgotten = forgotten

    def __len__(self) -> int:
        return len(self._traces)

    def __iter__(self) -> Iterator[TraceType]:
        return iter(list(self._traces))

    def values(self) -> list[Any]:
        """The traces, in the order they were made."""
        return list(self._traces.values())

    def find(self, kind: TraceType) -> Any:
        """The trace for arguments of this type: its own, else the most specific of those that serve it, else None."""
        found = self._traces.get(kind)
        if found is None:
            found = self._answers.get(kind)
            if found is None:
                best: TraceType | None = None
                for other, trace in list(self._traces.items()):
                    if kind.is_subtype_of(other) and (best is None or other.is_subtype_of(best)):
                        best, found = other, trace
                if found is not None:
                    if len(self._answers) >= REMEMBERED:
                        self._answers.clear()
                    self._answers[kind] = found
        return found

    def add(self, kind: TraceType, trace: Any, objects: Iterable[Any] = ()) -> None:
        """Keep a trace. objects: those whose death ends it."""
        self._traces[kind] = trace
        self._answers.clear()
        table = weakref.ref(self)

        def died(_: Any) -> None:
            here = table()
            if here is not None:
                here.discard(kind)

        watchers = []
        for one in objects:
            try:
                watchers.append(weakref.ref(one, died))
            except TypeError:
                continue
        if watchers:
            self._watchers[kind] = watchers

    def discard(self, kind: TraceType) -> None:
        """Forget a trace. The type's object may be dead, so that it equals nothing: it is found by identity."""
        for known in list(self._traces):
            if known is kind:
                # A dead type equals only itself, and a dictionary asks for identity first.
                self._traces.pop(known, None)
                self._watchers.pop(known, None)
        self._answers.clear()
        self._forgotten()

    def generalized(self, kind: TraceType) -> TraceType:
        """The nearest type above `kind` and as many of the known ones as have one with it."""
        for other in list(self._traces):
            found = kind.most_specific_common_supertype([other])
            if found is not None:
                kind = found
        return kind
