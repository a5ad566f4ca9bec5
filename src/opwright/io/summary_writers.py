"""Writers of summaries, and which is the default one of a thread.

Lives here: `SummaryWriter`, writers of event files, the default writer, step and condition. Not here: summaries
(summary.py), event files (event_files.py).
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.specs import TensorSpec
from ..eager.python_functions import call_on_arrays
from ..eager.tensor import constant
from ..ops import dispatch
from ..ops.tensor import TensorLike
from .event_files import EventWriter


class _Defaults(threading.local):
    """The default writer, step and condition of a thread."""

    writer: SummaryWriter | None = None
    step: Any = None
    recording: Any = True


defaults = _Defaults()


class _AsDefault:
    """Context in which a writer, and possibly a step, are the defaults."""

    def __init__(self, writer: SummaryWriter, step: Any) -> None:
        self._writer, self._step = writer, step

    def __enter__(self) -> SummaryWriter:
        self._saved = defaults.writer, defaults.step
        defaults.writer = self._writer
        if self._step is not None:
            defaults.step = self._step
        return self._writer

    def __exit__(self, *_: object) -> None:
        self._writer.flush()
        defaults.writer = self._saved[0]
        if self._step is not None:
            defaults.step = self._saved[1]


class SummaryWriter:
    """Base class of writers: this one writes nothing."""

    def as_default(self, step: Any = None) -> Any:
        """Return a context whose summaries go to this writer, which is flushed at its end. step: their default step."""
        return contextlib.nullcontext()

    def set_as_default(self, step: Any = None) -> None:
        """Let this be the writer of the thread from now on. step: the default step, which None leaves."""

    def init(self) -> None:
        """Do nothing: a writer is ready once it exists."""

    def flush(self) -> None:
        """Write out what waits to be written."""

    def close(self) -> None:
        """Flush, and write no more."""


class FileWriter(SummaryWriter):
    """Writer of an event file."""

    def __init__(self, events: EventWriter) -> None:
        self.events = events
        self._finalizer = weakref.finalize(self, events.close)

    def _open(self) -> None:
        if self.events.closed:
            raise RuntimeError(f"SummaryWriter {self!r} is already closed")

    def as_default(self, step: Any = None) -> Any:
        self._open()
        return _AsDefault(self, step)

    def set_as_default(self, step: Any = None) -> None:
        self.as_default(step).__enter__()

    def init(self) -> None:
        self._open()

    def flush(self) -> None:
        _run(self.events.flush)

    def close(self) -> None:
        _run(self.events.close)

    def __repr__(self) -> str:
        return f"<SummaryWriter of {self.events.path}>"


def _run(effect: Callable[[], None]) -> None:
    """Run a function without operands: now, or each time the function that is being traced runs."""
    if dispatch.state.trace is None:
        effect()
        return

    def ran() -> np.ndarray:
        effect()
        return np.array(True)

    call_on_arrays(ran, [], TensorSpec((), dtypes.bool), stateful=True)


def create_file_writer(
    logdir: Any,
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
) -> SummaryWriter:
    """Return a writer of a new event file.

    logdir: its folder, which is created. max_queue: summaries that wait to be written, 10; flush_millis: for how long,
    120,000. filename_suffix: ".v2"
    raises ValueError for None as a folder, InvalidArgumentError for negative numbers, the errors of files

    >>> with ow.summary.create_file_writer("logs").as_default():
    ...     ow.summary.scalar("loss", 0.5, step=1)
    """
    if logdir is None:
        raise ValueError("Argument `logdir` cannot be None")
    if isinstance(logdir, TensorLike):
        logdir = logdir.numpy()
    return FileWriter(
        EventWriter(
            logdir,
            10 if max_queue is None else int(max_queue),
            120_000 if flush_millis is None else int(flush_millis),
            ".v2" if filename_suffix is None else filename_suffix,
        )
    )


def create_noop_writer() -> SummaryWriter:
    """Return a writer that writes nothing."""
    return SummaryWriter()


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Write out what waits in a writer, the default one without an argument."""
    chosen = defaults.writer if writer is None else writer
    if chosen is not None:
        chosen.flush()


@contextlib.contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """Return a context whose summaries are written if a condition holds.

    condition: a bool or bool tensor, or a function of one, which is called for each summary, and traced in a `function`
    """
    saved, defaults.recording = defaults.recording, condition
    try:
        yield
    finally:
        defaults.recording = saved


def should_record_summaries() -> Any:
    """Return whether summaries are written, a bool tensor: False without a default writer."""
    if defaults.writer is None:
        return constant(False)
    return dispatch.to_tensor(current_condition())


def current_condition() -> Any:
    return defaults.recording() if callable(defaults.recording) else defaults.recording


def get_step() -> Any:
    """Return the default step of the thread, or None."""
    return defaults.step


def set_step(step: Any) -> None:
    """Set the default step of the thread: a number, a Variable, or None."""
    defaults.step = step
