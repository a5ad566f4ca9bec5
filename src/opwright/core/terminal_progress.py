"""Progress of what takes long, on terminals.

Lives here: `TerminalProgress`. Not here: counts of runs on several processes (../distribute/progress.py), of training
(../nn/callbacks/).
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

QUIET_SECONDS = 1.0
"""Seconds before progress is shown."""


class TerminalProgress:
    """A line on stderr, on terminals, from the first second on. what: is done; unit: of counts whose end is unknown;
    without one, counts are percents, as a bar."""

    def __init__(self, what: str, unit: str = "") -> None:
        self._what, self._unit, self._text = what, unit, what
        self._since = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> TerminalProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def at(self, count: int, part: str = "") -> None:
        """Show how much is done. part: what is done next, none for the one before."""
        if part:
            self._text = f"{self._what}: {part}"
        if not self._shown or (self._bar is None and time.monotonic() - self._since < QUIET_SECONDS):
            return
        if self._bar is None:
            self._bar = self._created_bar()
            self._task = self._bar.add_task(self._what, total=None if self._unit else 100)
            self._bar.start()
        self._bar.update(self._task, completed=count, description=self._text)

    def _created_bar(self) -> object:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        count = TextColumn(f"{{task.completed}} {self._unit}") if self._unit else BarColumn()
        return Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            count,
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )

    def close(self) -> None:
        """Restore the terminal."""
        if self._bar is not None:
            self._bar.stop()
