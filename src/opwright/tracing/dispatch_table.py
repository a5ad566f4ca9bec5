"""DispatchTable: the trace that serves a call; warnings of functions that are traced again and again.

Lives here: finding the most specific trace whose type the arguments fit, forgetting traces of dead objects; counting
traces, and the warning with the difference between the last two.
Not here: the types (trace_type.py), making traces (function.py).

An exact type is one look-up. Otherwise all traces are asked; the answer is kept by the arguments' type, for at most
REMEMBERED types, so that a trace for unknown sizes may be called with any number of shapes.

TensorFlow's rule of warning: where WORTH_A_WARNING traces fall within the last few calls of functions made of one piece
of Python code, and no more than MOST warnings for each.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..core import nest
from ..core.specs import TensorSpec
from ..core.type_spec import TraceType
from .container_type import ContainerType

if TYPE_CHECKING:
    from .concrete import ConcreteFunction

REMEMBERED = 1024


class DispatchTable:
    """Types of arguments -> traces.

    forgotten: called whenever a trace was dropped, so that short ways to it are closed.
    """

    def __init__(self, forgotten: Any) -> None:
        self._traces: dict[TraceType, ConcreteFunction] = {}
        self._answers: dict[TraceType, ConcreteFunction] = {}
        self._watchers: dict[TraceType, list[Any]] = {}
        self._forgotten = forgotten

    def __len__(self) -> int:
        return len(self._traces)

    def __iter__(self) -> Iterator[TraceType]:
        return iter(list(self._traces))

    def values(self) -> list[ConcreteFunction]:
        """The traces, in the order they were made."""
        return list(self._traces.values())

    def find(self, kind: TraceType) -> ConcreteFunction | None:
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


WORTH_A_WARNING, HISTORY, MOST = 5, 10, 2


class RetraceDetector:
    """The calls of the functions made of one code object. calls: all of them so far, counted by their Functions."""

    __slots__ = ("__weakref__", "_last", "_traced_at", "_warnings", "calls")

    def __init__(self) -> None:
        self.calls = 0
        self._traced_at: deque[int] = deque()
        self._warnings = 0
        self._last: tuple[Any, list[str]] | None = None

    def traced(self, function: str, kind: ContainerType, names: list[str]) -> None:
        """Count one trace, and warn where there were too many of late."""
        before, self._last = self._last, (_light(kind), names)
        self.calls += 1
        self._traced_at.append(self.calls)
        while self._traced_at and self.calls - self._traced_at[0] >= HISTORY:
            self._traced_at.popleft()
        if len(self._traced_at) < WORTH_A_WARNING or self._warnings >= MOST:
            return
        self._warnings += 1
        calls = self.calls - self._traced_at[0] + 1
        changed = _changes(before, self._last)
        import logging

        logging.getLogger("opwright").warning(
            f"{len(self._traced_at)} out of the last {calls} calls to {function} triggered tf.function retracing. "
            "Tracing is expensive and the excessive number of tracings could be due to (1) creating @tf.function "
            "repeatedly in a loop, (2) passing tensors with different shapes, (3) passing Python objects instead of "
            f"tensors. Between the last two traces {changed}. For (1), define the function outside of the loop; for "
            "(2), function has reduce_retracing=True, and input_signature takes unknown sizes; for (3), give numbers "
            "that change as tensors."
        )


_detectors: weakref.WeakKeyDictionary[Any, RetraceDetector] = weakref.WeakKeyDictionary()


def detector_of(function: Any) -> RetraceDetector:
    """The detector shared by all Functions made of this Python function's code."""
    code = getattr(function, "__code__", None)
    if code is None:
        return RetraceDetector()
    found = _detectors.get(code)
    if found is None:
        found = _detectors[code] = RetraceDetector()
    return found


def _light(kind: Any) -> dict[tuple[Any, ...], str]:
    """A type as texts by path, which keep no argument alive."""
    found: dict[tuple[Any, ...], str] = {}
    _collect(kind, (), found)
    return found


def _collect(kind: Any, path: tuple[Any, ...], found: dict[tuple[Any, ...], str]) -> None:
    if isinstance(kind, ContainerType) and kind.parts:
        for key, part in zip(kind.layout.keys(len(kind.parts)), kind.parts):
            _collect(part, (*path, key), found)
        return
    text = kind.short() if isinstance(kind, TensorSpec) else repr(kind)
    found[path] = text if len(text) <= 80 else text[:76] + " ..."


def _changes(before: Any, after: Any) -> str:
    if before is None:
        return "the function was made anew"
    (old, _), (new, names) = before, after
    shown = []
    for path in [*old, *(p for p in new if p not in old)]:
        a, b = old.get(path), new.get(path)
        if a != b:
            shown.append(f"{_place(path, names)}: {a or 'absent'} -> {b or 'absent'}")
    if not shown:
        return "no argument changed: the function was made anew, or it was given an object that is no more"
    more = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
    return "; ".join(shown[:4]) + more


def _place(path: tuple[Any, ...], names: list[str]) -> str:
    if len(path) < 2:
        return "the arguments"
    which, key, *rest = path
    name = names[key] if which == 0 and key < len(names) else str(key)
    return name + nest.path_text(tuple(rest))
