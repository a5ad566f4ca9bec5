"""Event files, which TensorBoard reads: messages of TFRecord files.

Lives here: `EventWriter`, the bytes of events and summaries.
Not here: what is written and when (summary.py), tensors (tensor_protos.py), graphs (core/node_protos.py).

Fields by number (event.proto, summary.proto of TensorFlow):

    Event            1 wall_time (double)   2 step   3 file_version   4 graph_def   5 summary   10 source_metadata
    SourceMetadata   1 writer
    Summary          1 value (repeated)
    Summary.Value    1 tag   8 tensor   9 metadata
    SummaryMetadata  1 plugin_data (1 plugin_name, 2 content)   2 display_name   3 summary_description
"""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import Any

import numpy as np

from ..core import forks
from ..core.dtypes import DType
from ..core.errors import FailedPreconditionError, InvalidArgumentError
from ..core.protobuf_wire import FIXED64, VARINT, key, sized, varint
from .local_files import local_path, translated
from .records import TFRecordWriter
from .tensor_protos import tensor_bytes

VERSION = b"brain.Event:2"
_lock = forks.lock()
_opened = 0  # event files of this process, whose names are distinct by it


def metadata_bytes(plugin: str, content: bytes = b"", description: str | None = None) -> bytes:
    """Return the bytes of a SummaryMetadata. content: what the plugin reads; description: Markdown."""
    inner = sized(1, plugin.encode()) + (sized(2, content) if content else b"")
    return sized(1, inner) + (sized(3, description.encode()) if description else b"")


def summary_bytes(tag: str, array: np.ndarray, dtype: DType, metadata: bytes) -> bytes:
    """Return the bytes of a Summary of one tensor. metadata: the bytes of a SummaryMetadata."""
    value = sized(1, tag.encode()) + sized(8, tensor_bytes(array, dtype)) + (sized(9, metadata) if metadata else b"")
    return sized(1, value)


def event_bytes(step: int, contents: bytes) -> bytes:
    """Return the bytes of an event of now. contents: the other fields."""
    head = key(1, FIXED64) + struct.pack("<d", time.time())
    return head + (key(2, VARINT) + varint(step) if step else b"") + contents


class EventWriter:
    """Writer of one new event file.

    folder: created if it does not exist. max_queue: events that wait to be written; flush_millis: for how long they
    wait until the next one. suffix: of the file's name
    raises InvalidArgumentError for negative numbers, PermissionDeniedError and other errors of files
    """

    def __init__(self, folder: Any, max_queue: int = 10, flush_millis: int = 120_000, suffix: str = ".v2") -> None:
        global _opened
        if max_queue < 0 or flush_millis < 0:
            raise InvalidArgumentError(
                op="summary.create_file_writer",
                what="negative max_queue or flush_millis",
                found=f"{max_queue} and {flush_millis}",
            )
        folder = os.fsdecode(local_path(folder))
        with translated("summary.create_file_writer", folder):
            os.makedirs(folder, exist_ok=True)
        with _lock:
            number, _opened = _opened, _opened + 1
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{number}{suffix}"
        self.path = os.path.join(folder, name)
        self._max_queue, self._seconds = max_queue, flush_millis / 1e3
        self._events: list[bytes] = []
        self._flushed = time.monotonic()
        self._mutex = forks.lock()
        self._file: TFRecordWriter | None = TFRecordWriter(self.path)
        self._file.write(event_bytes(0, sized(3, VERSION) + sized(10, sized(1, b"opwright.summary"))))
        self._file.flush()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._file is None

    def add(self, step: int, contents: bytes) -> None:
        """Append an event of now. contents: its fields but time and step. Raises FailedPreconditionError if closed."""
        event = event_bytes(step, contents)
        with self._mutex:
            if self._file is None:
                raise FailedPreconditionError(op="summary.write", what="the summary writer is closed", found=self.path)
            self._events.append(event)
            if len(self._events) > self._max_queue or time.monotonic() - self._flushed > self._seconds:
                self._flush(self._file)

    def _flush(self, file: TFRecordWriter) -> None:
        for event in self._events:
            file.write(event)
        self._events.clear()
        file.flush()
        self._flushed = time.monotonic()

    def flush(self) -> None:
        """Write the events that wait. Without effect if closed."""
        with self._mutex:
            if self._file is not None:
                self._flush(self._file)

    def close(self) -> None:
        """Write the events that wait, and close the file."""
        with self._mutex:
            if self._file is not None:
                self._flush(self._file)
                self._file.close()
                self._file = None
