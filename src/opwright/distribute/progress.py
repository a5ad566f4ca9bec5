"""A progress bar with throughput and remaining time, on stderr.

Lives here: `Progress`.  Not here: what is counted (inference.py, sweeps.py).
"""

from __future__ import annotations

import time
from typing import Any

WARM_UP_SECONDS = 1.0
"""A bar appears only in jobs that take longer."""


class Progress:
    """A bar of `total` elements; None for an unknown number. Nothing is shown unless stderr is a terminal."""

    def __init__(self, total: int | None, description: str = "elements") -> None:
        self._total, self._description = total, description
        self._done = self._failed = 0
        self._begun = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._is_terminal = False

    def start(self) -> None:
        """Begin to measure."""
        from rich.console import Console

        self._begun = time.monotonic()
        self._is_terminal = Console(stderr=True).is_terminal

    def advance(self, count: int, failed: int) -> None:
        """Count elements."""
        self._done += count
        self._failed += failed
        if self._bar is None:
            if not self._is_terminal or time.monotonic() - self._begun < WARM_UP_SECONDS:
                return
            self._show()
        self._bar.update(self._task, completed=self._done, rate=self.text)

    @property
    def text(self) -> str:
        """The throughput, and the failures if there are some."""
        rate = self._done / max(time.monotonic() - self._begun, 1e-9)
        return f"{rate:,.1f} {self._description}/s" + (f", {self._failed} failed" if self._failed else "")

    def _show(self) -> None:
        from rich import progress
        from rich.console import Console

        columns = (
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(elapsed_when_finished=True),
        )
        self._bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=self._total, rate=self.text)

    def stop(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
