"""Streams: queues of work that runs later, in order, and events that mark points in them.

Lives here: `Stream`, `Event` of the simulated device.  Not here: memory and copies (memory.py).

A stream is a thread that runs one piece of work after the other. `hold` pauses it, so that a test decides which work
has run; hazards are then the same in every run.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import FailedPreconditionError, UnknownError
from ..core.introspection import OURS

_IDLE_SECONDS = 0.2  # an idle thread ends after this time; new work restarts it
_POLL_SECONDS = 0.05  # the interval at which waiting threads check for deadlock
_MAX_ERRORS = 8
_NUMPY = os.path.dirname(np.__file__) + os.sep


class StreamWork(NamedTuple):
    """fn: takes no arguments. name: for errors. at: "file:line" of the call that queued it."""

    fn: Callable[[], Any]
    name: str
    at: str


class Event:
    """A point in the order of a stream, reached when all work queued before it is done.

    An event that was never recorded counts as reached. Recording again moves it.
    """

    def __init__(self) -> None:
        self._stream: Stream | None = None
        self._ticket = 0

    def record(self, stream: Stream) -> Event:
        """Mark the end of the work queued on `stream` so far."""
        with stream._changed:
            self._stream, self._ticket = stream, stream._queued()
        return self

    @property
    def done(self) -> bool:
        """Whether it was reached; does not wait."""
        return self._stream is None or self._stream._finished >= self._ticket

    def synchronize(self) -> None:
        """Wait until it was reached. Raises errors of its stream's work up to it, as `Stream.synchronize`."""
        if self._stream is not None:
            self._stream._wait_for(self._ticket)


class Stream:
    """Work that runs in the order it was queued, on its own thread. Several threads may use it.

    name: for errors. As a context manager it is the current stream of its device on this thread.
    """

    def __init__(self, name: str = "stream", current: threading.local | None = None) -> None:
        self.name = name
        self._current = current if current is not None else threading.local()
        self._begin()
        _streams.add(self)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._work: deque[StreamWork] = deque()
        self._started = self._finished = 0  # counts of work begun and done
        self._holds = 0
        self._thread: threading.Thread | None = None
        self._waits_on: Event | None = None  # the event that the running work waits for
        self._errors: list[tuple[StreamWork, BaseException]] = []
        self._failures = 0

    def _queued(self) -> int:
        """Return the count of work ever queued, computed each time: the garbage collector may queue some in between."""
        with self._changed:
            return self._started + len(self._work)

    # --- queueing ---------------------------------------------------------------------------------------------------

    def submit(self, fn: Callable[[], Any], name: str = "work") -> None:
        """Queue `fn()` and return at once; the next wait for this stream raises its errors."""
        work = StreamWork(fn, name, _caller())
        with self._changed:
            self._work.append(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"opwright-{self.name}", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def record(self, event: Event | None = None) -> Event:
        """Return an event after the work queued so far."""
        return (event or Event()).record(self)

    def wait_event(self, event: Event) -> None:
        """Make work queued from now on run after `event` is reached; the caller does not wait."""
        stream, ticket = event._stream, event._ticket
        if stream is None or stream is self:
            return
        point = Event()
        point._stream, point._ticket = stream, ticket  # a copy: recording the event again does not affect it

        def wait() -> None:
            self._waits_on = point
            try:
                with stream._changed:
                    stream._changed.wait_for(lambda: stream._finished >= ticket)
            finally:
                self._waits_on = None

        self.submit(wait, f"waiting for {stream.name}")

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._holds or not self._work:
                    if not self._changed.wait(_IDLE_SECONDS) and not self._work:
                        self._thread = None
                        return
                work = self._work.popleft()
                self._started += 1
            try:
                work.fn()
            except BaseException as error:
                with self._changed:
                    self._failures += 1
                    if len(self._errors) < _MAX_ERRORS:
                        self._errors.append((work, error))
            del work  # frees its arrays
            with self._changed:
                self._finished += 1
                self._changed.notify_all()

    # --- waiting ----------------------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether all queued work has run; does not wait."""
        return self._finished >= self._queued()

    def synchronize(self) -> None:
        """Wait until all work queued so far has run.

        raises UnknownError naming the first work that failed since the last wait, with its error as the cause; the
        stream continues. FailedPreconditionError if the wait would never end, as the stream is held
        """
        self._wait_for(self._queued())

    def _wait_for(self, ticket: int) -> None:
        if threading.current_thread() is self._thread:
            raise FailedPreconditionError(
                op=self.name, what="work on a stream waits for that same stream", do="remove the wait"
            )
        with self._changed:
            while self._finished < ticket:
                if self._is_deadlocked():
                    raise FailedPreconditionError(
                        op=self.name,
                        what="this waits for a stream that is held, and would never end",
                        found=f"{self._queued() - self._finished} pieces of work not done yet, at {_caller()}",
                        do="release() the stream before the wait",
                    )
                self._changed.wait(_POLL_SECONDS)
        self.raise_errors()

    def _is_deadlocked(self) -> bool:
        if self._holds and self._work and self._finished == self._started:
            return True
        event = self._waits_on
        return event is not None and not event.done and event._stream is not None and event._stream._is_deadlocked()

    def raise_errors(self) -> None:
        """Raise errors since the last wait, without waiting. See `synchronize`."""
        with self._changed:
            errors, failures = self._errors, self._failures
            self._errors, self._failures = [], 0
        if not errors:
            return
        work, error = errors[0]
        text = str(error).strip()
        raise UnknownError(
            op=work.name,
            at=work.at,
            what=f"failed on {self.name}: {type(error).__name__}{': ' if text else ''}{text}",
            found=f"{failures} pieces of work failed: {', '.join(w.name for w, _ in errors)}" if failures > 1 else None,
            do="look at the line that queued it; the stream can be used again",
        ) from error

    # --- holding ----------------------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Start no more work until `release`; queueing continues. Waits for the running work."""
        with self._changed:
            self._holds += 1
            mine = threading.current_thread() is self._thread
            while self._finished < self._started and self._waits_on is None and not mine:
                self._changed.wait(_POLL_SECONDS)

    def release(self) -> None:
        """Undo one `hold`. Raises FailedPreconditionError if there was none."""
        with self._changed:
            if not self._holds:
                raise FailedPreconditionError(op=self.name, what="this stream is not held", do="hold() it before")
            self._holds -= 1
            self._changed.notify_all()

    @contextmanager
    def held(self) -> Iterator[Stream]:
        """Hold the stream within a `with` statement."""
        self.hold()
        try:
            yield self
        finally:
            self.release()

    def __enter__(self) -> Stream:
        stack = getattr(self._current, "stack", None)
        if stack is None:
            stack = self._current.stack = []
        stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        self._current.stack.pop()

    def __repr__(self) -> str:
        return f"<Stream {self.name}: {self._queued() - self._finished} to do{', held' if self._holds else ''}>"


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


def _after_fork() -> None:
    """Reset the streams of a forked child, which has none of the threads: empty, with all events reached."""
    for stream in list(_streams):
        queued = stream._started + len(stream._work)
        stream._begin()
        stream._started = stream._finished = queued


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _caller() -> str:
    """Return "file:line" of the nearest frame outside this package and NumPy."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((OURS, _NUMPY)):
            return f"{os.path.basename(path)}:{frame.f_lineno}"
        frame = frame.f_back
    return "unknown line"
