"""What reports share: where they print, and JSON.

Lives here: the two consoles and `print_json`.  Not here: any report.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import click
from rich.console import Console


@functools.cache
def out() -> Console:
    """Results: stdout. Honours NO_COLOR; plain text where it is not a terminal, and then as wide as the text."""
    console = Console()
    return console if console.is_terminal else Console(width=160)


@functools.cache
def notes() -> Console:
    """Progress and notes: stderr."""
    return Console(stderr=True)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=1, default=str))
