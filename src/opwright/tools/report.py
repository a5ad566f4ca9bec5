"""What reports share: where they print, JSON, and the error for files that are no use.

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
from typing import Any

import click
import numpy as np
from rich.console import Console

from ..core.files import replacing

PROSE_COLUMNS = 100
PLAIN = {"markup": False, "highlight": False, "emoji": False}  # what is printed may hold [brackets] and :colons:


class BadFile(Exception):
    """A file that cannot be read or written; the command line ends with an exit code of its own."""


def write_file(path: str, content: bytes) -> None:
    """Replace a file whole or not at all. Raises BadFile."""
    try:
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise BadFile(f"{path} cannot be written: {error.strerror or error}") from error


def out() -> Console:
    """Results: stdout. Honours NO_COLOR; where it is no terminal, plain text with lines as long as they are.

    Names in files may be bytes that are no text, or text that the stream has no characters for: these are escaped.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    return _stdout()


class _Stdout(Console):
    """A console for which a pipe that nobody reads any more is no error."""

    def on_broken_pipe(self) -> None:
        _nobody_reads()


def _nobody_reads() -> None:
    """From here on stdout goes nowhere: the exit code is to be the command's, and not that of `opwright ... | head`."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@functools.cache
def _stdout() -> Console:
    console = _Stdout(**PLAIN)  # type: ignore[arg-type]
    return console if console.is_terminal else _Stdout(width=10_000, **PLAIN)  # type: ignore[arg-type]


@functools.cache
def notes() -> Console:
    """Progress and notes: stderr."""
    return Console(stderr=True, soft_wrap=True, **PLAIN)  # type: ignore[arg-type]


def prose(text: str, indent: str = "") -> None:
    """A paragraph on stdout in lines that read well. indent: of every line but the first."""
    width = min(out().width, PROSE_COLUMNS)
    out().print(textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False))


def print_json(value: Any) -> None:
    """One JSON document on stdout.

    What JSON has no words for is text: bytes as UTF-8, "nan", "inf" and "-inf", anything else as `str` gives it.
    """
    try:
        click.echo(json.dumps(plain(value), indent=1, allow_nan=False))
    except BrokenPipeError:
        _nobody_reads()


def plain(value: Any) -> Any:
    """`value` in the types JSON has."""
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
