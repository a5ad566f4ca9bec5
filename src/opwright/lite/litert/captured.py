"""What the official run time writes to stderr: caught while it makes a model ready, and told only where that fails.

Lives here: `Captured`.  Not here: what it keeps for us by model (its error reporter, loaded.py).

It writes to file descriptor 2, which is the process's: threads write there, too. So it is caught only where the run
time tells stories (when a model is made, and the first run after shapes have changed), and what does not look like its
lines is written on. Where another thread catches already nothing is added: what is written goes there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import tempfile
from types import TracebackType

from ...core import forks

_ITS_LINE = re.compile(rb"(INFO|WARNING|ERROR|VERBOSE|DEBUG|FATAL):? ")
_CONTINUED = "└".encode()
_lock = forks.lock()


class Captured(contextlib.AbstractContextManager["Captured"]):
    """Within: what the run time writes to stderr goes to `text`, known afterwards; what others write goes on later.

    whole: all of it is taken for the run time's, whose messages may have several lines
    """

    def __init__(self, whole: bool = False) -> None:
        self.text, self._whole = "", whole
        self._redirected = False
        self._stderr: int | None = None  # the descriptor it was, None where it is closed

    def __enter__(self) -> Captured:
        self._catches = _lock.acquire(blocking=False)
        if not self._catches:
            return self
        try:
            if sys.stderr is not None:
                with contextlib.suppress(OSError, ValueError):
                    sys.stderr.flush()
            self._file = tempfile.TemporaryFile()
            with contextlib.suppress(OSError):  # no descriptor to spare: nothing is caught
                self._stderr = _duplicate(2)
                os.dup2(self._file.fileno(), 2)
                self._redirected = True
        except BaseException:
            _lock.release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
                 ) -> None:  # fmt: skip
        if not self._catches:
            return
        try:
            if self._redirected:
                if sys.stderr is not None:
                    with contextlib.suppress(OSError, ValueError):
                        sys.stderr.flush()
                if self._stderr is None:
                    os.close(2)
                else:
                    os.dup2(self._stderr, 2)
                    os.close(self._stderr)
                self._file.seek(0)
                written = self._file.read()
                its, others = (written, b"") if self._whole else _parted(written)
                self.text = its.decode(errors="replace").rstrip()
                if others:
                    with contextlib.suppress(OSError):
                        os.write(2, others)
            self._file.close()
        finally:
            _lock.release()


def _duplicate(descriptor: int) -> int | None:
    """Another descriptor of the same, None where it is closed. Raises OSError where there is none to spare."""
    try:
        return os.dup(descriptor)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        return None


def _parted(written: bytes) -> tuple[bytes, bytes]:
    """The run time's lines, and the others."""
    its: list[bytes] = []
    others: list[bytes] = []
    for line in written.splitlines(keepends=True):
        (its if _ITS_LINE.match(line) or line.startswith(_CONTINUED) else others).append(line)
    return b"".join(its), b"".join(others)
