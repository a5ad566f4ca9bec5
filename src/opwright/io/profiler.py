"""`ow.profiler`: profiles of parts of programs.

Lives here: `experimental`: `start`, `stop`, `Profile`, `Trace`.
Not here: profiles of models (lite/runtime/profiler.py), curves and graphs (io/summary.py).

A profile is a folder `plugins/profile/TIME` with two files: `HOST.trace.json.gz`, the spans of `Trace` by thread, for
Perfetto, chrome://tracing and TensorBoard, and `HOST.prof`, the functions of the thread that called `start`, for
Python's `pstats`.
"""

from __future__ import annotations

import cProfile
import gzip
import json
import os
import socket
import threading
import time
from types import TracebackType
from typing import Any

from ..core import forks
from ..core.errors import AlreadyExistsError, UnavailableError
from ..core.named_tuples import NamedTuple

__all__ = ["experimental"]


class _Session:
    """A profile that is being recorded."""

    def __init__(self, logdir: str, python: bool) -> None:
        self.logdir, self.start = logdir, time.perf_counter()
        self.spans: list[dict[str, Any]] = []
        self.functions = cProfile.Profile() if python else None
        if self.functions is not None:
            self.functions.enable()

    def write(self) -> str:
        """Write the files; return their folder."""
        if self.functions is not None:
            self.functions.disable()
        folder = os.path.join(self.logdir, "plugins", "profile", time.strftime("%Y_%m_%d_%H_%M_%S"))
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, socket.gethostname())
        threads = dict.fromkeys(span["tid"] for span in self.spans)
        names = [
            {"name": "thread_name", "ph": "M", "pid": 1, "tid": t, "args": {"name": f"thread {t}"}} for t in threads
        ]
        with gzip.open(f"{path}.trace.json.gz", "wt", encoding="utf-8") as file:
            json.dump({"displayTimeUnit": "ms", "traceEvents": [*names, *self.spans]}, file)
        if self.functions is not None:
            self.functions.dump_stats(f"{path}.prof")
        return folder


_lock = forks.lock()
_sessions: list[_Session] = []


class ProfilerOptions(NamedTuple):
    """Settings of a profile. python_tracer_level: 0 for no functions of Python; others: of devices, kept."""

    host_tracer_level: int = 2
    python_tracer_level: int = 1
    device_tracer_level: int = 1
    delay_ms: int | None = None


class TraceSpan:
    """A context whose time is a span of the profile that is being recorded, if any.

    name: of the span; others: its arguments, plain values. with Trace("train", step_num=3): ...
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.name, self.arguments = name, kwargs
        self._start = 0.0

    def __enter__(self) -> TraceSpan:
        self._start = time.perf_counter()
        return self

    def set_metadata(self, **kwargs: Any) -> None:
        """Add arguments to the span."""
        self.arguments.update(kwargs)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        end = time.perf_counter()
        for session in _sessions:
            arguments = {k: v if isinstance(v, (int, float, str, bool)) else str(v) for k, v in self.arguments.items()}
            session.spans.append(
                {
                    "name": self.name,
                    "ph": "X",
                    "ts": (self._start - session.start) * 1e6,
                    "dur": (end - self._start) * 1e6,
                    "pid": 1,
                    "tid": threading.get_ident(),
                    "args": arguments,
                }
            )


class RecordedProfile:
    """A context that is recorded: with Profile("logs"): ..."""

    def __init__(self, logdir: str, options: ProfilerOptions | None = None) -> None:
        self.logdir, self.options = logdir, options

    def __enter__(self) -> None:
        start(self.logdir, self.options)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        stop()


def start(logdir: str, options: ProfilerOptions | None = None) -> None:
    """Begin to record a profile for a folder. Raises AlreadyExistsError if one is being recorded."""
    with _lock:
        if _sessions:
            raise AlreadyExistsError(op="profiler.start", what="another profile is being recorded", do="stop() it")
        _sessions.append(_Session(os.fspath(logdir), (options or ProfilerOptions()).python_tracer_level > 0))


def stop(save: bool = True) -> None:
    """End the profile and write its files, unless save is False. Raises UnavailableError if none is recorded."""
    with _lock:
        if not _sessions:
            raise UnavailableError(op="profiler.stop", what="no profile is being recorded", do="start(logdir)")
        session = _sessions.pop()
    if save:
        session.write()
    elif session.functions is not None:
        session.functions.disable()


class _Experimental:
    """`ow.profiler.experimental`."""

    Profile = RecordedProfile
    ProfilerOptions = ProfilerOptions
    Trace = TraceSpan
    start = staticmethod(start)
    stop = staticmethod(stop)


experimental = _Experimental
