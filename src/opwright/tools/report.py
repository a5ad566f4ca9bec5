"""Output shared by the reports: consoles, JSON, and the error for invalid files.

Lives here: the two consoles, `prose`, `print_json`, `BadFile`, `write_file`.  Not here: any report.
"""

from __future__ import annotations

import functools
import io
import json
import math
import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console

from ..core.files import replacing

if TYPE_CHECKING:
    from ..nn.configuration import JsonValue

PROSE_COLUMNS = 100
PLAIN = {"markup": False, "highlight": False, "emoji": False}  # output may contain [brackets] and :colons:


class BadFile(Exception):
    """A file that cannot be read or written; the command line exits with a separate code."""


def write_file(path: str, content: bytes) -> None:
    """Replace a file atomically. Raises BadFile."""
    try:
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise BadFile(f"{path} cannot be written: {error.strerror or error}") from error


def out() -> Console:
    """Return the console of results: stdout. Honours NO_COLOR; plain text with unlimited lines if it is not a terminal.

    Names in files may be bytes that are not text, or characters that the stream cannot encode: these are escaped.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    return _stdout()


class _Stdout(Console):
    """A console that ignores a closed pipe."""

    def on_broken_pipe(self) -> None:
        _discard_stdout()


def _discard_stdout() -> None:
    """Redirect stdout to null, so that the exit code is the command's in `opwright ... | head`."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@functools.cache
def _stdout() -> Console:
    console = _Stdout(**PLAIN)  # type: ignore[arg-type]
    return console if console.is_terminal else _Stdout(width=10_000, **PLAIN)  # type: ignore[arg-type]


@functools.cache
def notes() -> Console:
    """Return the console of progress and notes: stderr."""
    return Console(stderr=True, soft_wrap=True, **PLAIN)  # type: ignore[arg-type]


def prose(text: str, indent: str = "") -> None:
    """Print a paragraph on stdout with wrapped lines. indent: of every line but the first."""
    width = min(out().width, PROSE_COLUMNS)
    out().print(textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False))


def print_json(value: Any) -> None:
    """Print one JSON document on stdout.

    Values without a JSON form become text: bytes as UTF-8, "nan", "inf" and "-inf", others by `str`.
    """
    try:
        click.echo(json.dumps(plain(value), indent=1, allow_nan=False))
    except BrokenPipeError:
        _discard_stdout()


def plain(value: object) -> JsonValue:
    """Return `value` in JSON's types."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
