"""DispatchTable: selection of the trace for a call; warnings about repeated retracing.

Lives here: the search for the most specific trace that accepts the arguments, removal of traces of dead objects; the
count of traces, and the warning with the difference between the last two. Not here: the types (trace_type.py), creation
of traces (function.py).

An exact type is one lookup. Otherwise all traces are compared; results are cached by the arguments' type, for at most
CACHED_LOOKUPS types, so that a trace for unknown sizes may be called with any number of shapes.

TensorFlow's rule for warnings: RETRACES_TO_WARN traces within the last RETRACE_WINDOW calls of functions with one code
object, and at most MAX_WARNINGS for each.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..core import nest
from ..core.introspection import OURS
from ..core.specs import TensorSpec
from ..core.type_spec import TraceType
from .container_type import ContainerType

if TYPE_CHECKING:
    from .concrete import ConcreteFunction

CACHED_LOOKUPS = 1024


class DispatchTable:
    """A mapping from types of arguments to traces.

    on_discard: called whenever a trace is dropped, to invalidate caches of it.
    """

    def __init__(self, on_discard: Callable[[], None]) -> None:
        self._traces: dict[TraceType, ConcreteFunction] = {}
        self._lookups: dict[TraceType, ConcreteFunction] = {}
        self._watchers: dict[TraceType, list[Any]] = {}
        self._on_discard = on_discard

    def __len__(self) -> int:
        return len(self._traces)

    def __iter__(self) -> Iterator[TraceType]:
        return iter(list(self._traces))

    def values(self) -> list[ConcreteFunction]:
        """Return the traces in order of creation."""
        return list(self._traces.values())

    def find(self, kind: TraceType) -> ConcreteFunction | None:
        """Return the trace for arguments of this type: an exact match, else the most specific supertype; None without
        one.
        """
        result = self._traces.get(kind)
        if result is None:
            result = self._lookups.get(kind)
            if result is None:
                best: TraceType | None = None
                for other, trace in list(self._traces.items()):
                    if kind.is_subtype_of(other) and (best is None or other.is_subtype_of(best)):
                        best, result = other, trace
                if result is not None:
                    if len(self._lookups) >= CACHED_LOOKUPS:
                        self._lookups.clear()
                    self._lookups[kind] = result
        return result

    def add(self, kind: TraceType, trace: Any, objects: Iterable[Any] = ()) -> None:
        """Add a trace. objects: the objects whose death removes it."""
        self._traces[kind] = trace
        self._lookups.clear()
        table = weakref.ref(self)

        def discard(_: Any) -> None:
            live_table = table()
            if live_table is not None:
                live_table.discard(kind)

        watchers = []
        for value in objects:
            try:
                watchers.append(weakref.ref(value, discard))
            except TypeError:
                continue
        if watchers:
            self._watchers[kind] = watchers

    def discard(self, kind: TraceType) -> None:
        """Remove a trace. The type is compared by identity, as an object in it may be dead, in which case it equals
        nothing.
        """
        for other in list(self._traces):
            if other is kind:
                # A dead type equals only itself; dictionaries compare identities first.
                self._traces.pop(other, None)
                self._watchers.pop(other, None)
        self._lookups.clear()
        self._on_discard()

    def generalized(self, kind: TraceType) -> TraceType:
        """Return the nearest supertype of `kind` and of as many existing types as share one with it."""
        for other in list(self._traces):
            supertype = kind.most_specific_common_supertype([other])
            if supertype is not None:
                kind = supertype
        return kind


RETRACES_TO_WARN, RETRACE_WINDOW, MAX_WARNINGS = 5, 10, 2


class RetraceDetector:
    """The traces of all functions with one code object. calls: the total number of calls, incremented by the
    Functions.
    """

    __slots__ = ("__weakref__", "_last", "_traced_at", "_warnings", "calls")

    def __init__(self) -> None:
        self.calls = 0
        self._traced_at: deque[int] = deque()
        self._warnings = 0
        self._last: tuple[Any, list[str]] | None = None

    def traced(self, function: str, kind: ContainerType, names: list[str]) -> None:
        """Count one trace; warn about repeated retracing."""
        before, self._last = self._last, (_texts_by_path(kind), names)
        self.calls += 1
        self._traced_at.append(self.calls)
        while self._traced_at and self.calls - self._traced_at[0] >= RETRACE_WINDOW:
            self._traced_at.popleft()
        if len(self._traced_at) < RETRACES_TO_WARN or self._warnings >= MAX_WARNINGS:
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
    """Return the detector shared by all Functions with this Python function's code.

    Functions whose code is this package's, such as those of imported and loaded models, have one each: they differ in
    what they close over.
    """
    code = getattr(function, "__code__", None)
    if code is None or code.co_filename.startswith(OURS):
        return RetraceDetector()
    detector = _detectors.get(code)
    if detector is None:
        detector = _detectors[code] = RetraceDetector()
    return detector


def _texts_by_path(kind: Any) -> dict[tuple[Any, ...], str]:
    """Return the text of each part of a type by path, without references to arguments."""
    texts: dict[tuple[Any, ...], str] = {}
    _collect(kind, (), texts)
    return texts


def _collect(kind: Any, path: tuple[Any, ...], texts: dict[tuple[Any, ...], str]) -> None:
    if isinstance(kind, ContainerType) and kind.parts:
        for key, part in zip(kind.layout.keys(len(kind.parts)), kind.parts):
            _collect(part, (*path, key), texts)
        return
    text = kind.short() if isinstance(kind, TensorSpec) else repr(kind)
    texts[path] = text if len(text) <= 80 else text[:76] + " ..."


def _changes(before: Any, after: Any) -> str:
    if before is None:
        return "the function was created again"
    (old, _), (new, names) = before, after
    changes = []
    for path in [*old, *(p for p in new if p not in old)]:
        a, b = old.get(path), new.get(path)
        if a != b:
            changes.append(f"{_path_text(path, names)}: {a or 'absent'} -> {b or 'absent'}")
    if not changes:
        return "no argument changed: the function was created again, or an object among its arguments was destroyed"
    more = f" and {len(changes) - 4} more" if len(changes) > 4 else ""
    return "; ".join(changes[:4]) + more


def _path_text(path: tuple[Any, ...], names: list[str]) -> str:
    if len(path) < 2:
        return "the arguments"
    part, key, *rest = path
    name = names[key] if part == 0 and key < len(names) else str(key)
    return name + nest.path_text(tuple(rest))
