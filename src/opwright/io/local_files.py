"""Paths and errors of local files.

Lives here: `local_path`, `translated`.
Not here: files of any format; remote file systems, which are errors that say so.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any

from ..core import errors

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def local_path(path: Any) -> str:
    """Return a path as text: of a str, bytes, path object, string tensor, or file:// address.

    raises UnimplementedError for another scheme, such as gs://
    """
    value = path.numpy() if hasattr(path, "numpy") else path
    text = os.fsdecode(value) if isinstance(value, bytes) else os.fspath(value)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return text
    if scheme[1].lower() != "file":
        raise errors.UnimplementedError(
            what=f"File system scheme '{scheme[1]}' not implemented (file: '{text}')", do="a path of this machine"
        )
    return text[len(scheme[0]) :].removeprefix("localhost")


_ERRORS: tuple[tuple[type[OSError], type[errors.OpError]], ...] = (  # first match
    (FileNotFoundError, errors.NotFoundError),
    (NotADirectoryError, errors.FailedPreconditionError),
    (IsADirectoryError, errors.FailedPreconditionError),
    (FileExistsError, errors.AlreadyExistsError),
    (PermissionError, errors.PermissionDeniedError),
    (OSError, errors.UnknownError),
)


@contextlib.contextmanager
def translated(op: str, path: str) -> Iterator[None]:
    """Convert an OSError within the block to the error of TensorFlow's status."""
    try:
        yield
    except OSError as error:
        kind = next(ours for theirs, ours in _ERRORS if isinstance(error, theirs))
        raise kind(op=op, what=f"{path}; {error.strerror or error}") from error
