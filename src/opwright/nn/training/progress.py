"""The progress bar of training: a growing line on a terminal, a plain line elsewhere.

Lives here: the bar and its formatting.  Not here: the events (callbacks/base.py).
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

WIDTH = 20


def format_duration(seconds: float) -> str:
    """Format a duration: 950us, 12ms, 3s, 2:05, 1:02:03."""
    if seconds >= 3600:
        return f"{int(seconds // 3600)}:{int(seconds % 3600 // 60):02d}:{int(seconds % 60):02d}"
    if seconds >= 60:
        return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
    if seconds >= 1:
        return f"{seconds:.0f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"


def format_number(value: Any) -> str:
    """Format a number with four decimals, or with an exponent if it is small."""
    number = float(np.mean(np.asarray(value)))
    return f"{number:.4f}" if abs(number) > 1e-3 or number == 0 else f"{number:.4e}"


class Progbar:
    """Progress through `target` steps (None if unknown), with metrics.

    verbose: 0 nothing; 1 a bar on a terminal, one line at the end elsewhere; 2 one line at the end.
    interval: seconds between updates of the bar. unit_name: the name of a step. stateful_metrics: ignored.
    """

    def __init__(
        self,
        target: int | None,
        width: int = WIDTH,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Any = None,
        unit_name: str = "step",
    ) -> None:
        self.target, self.width, self.verbose, self.interval = target, width, verbose, interval
        self.unit_name = unit_name
        self.finalized = False
        self._start, self._last, self._shown = time.monotonic(), 0.0, 0
        self._terminal = bool(getattr(sys.stdout, "isatty", bool)())

    def update(self, current: int, values: Any = None, finalize: bool | None = None) -> None:
        """Report that `current` steps are done. values: pairs of name and number."""
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        now = time.monotonic()
        if self.verbose == 0 or self.finalized:
            return
        if not finalize and (self.verbose != 1 or not self._terminal or now - self._last < self.interval):
            return
        self._last = now
        line = self._line(current, now - self._start, dict(values or ()), bool(finalize))
        if self._terminal and self.verbose == 1:
            sys.stdout.write("\r" + line.ljust(self._shown) + ("\n" if finalize else ""))
            self._shown = len(line)
        elif finalize:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        self.finalized = bool(finalize)

    def add(self, n: int, values: Any = None) -> None:
        """Report `n` more steps."""
        self._seen = getattr(self, "_seen", 0) + n
        self.update(self._seen, values)

    def _line(self, current: int, elapsed: float, values: dict[str, Any], final: bool) -> str:
        target = self.target
        digits = len(str(target)) if target else 0
        per_step = elapsed / current if current else 0.0
        parts = [f"{current:>{digits}d}/{target if target else 'Unknown'}"]
        if self.verbose == 1:
            filled = round(self.width * min(current / target, 1.0)) if target else 0
            parts[0] += " " + "━" * filled + " " * (self.width - filled)
        left = (
            f"{format_duration(elapsed)} {format_duration(per_step)}/{self.unit_name}"
            if final or not target
            else format_duration(per_step * (target - current))
        )
        if self.verbose == 1:
            parts[0] += f" {left}"
        else:
            parts += [f"{elapsed:.0f}s", f"{format_duration(per_step)}/{self.unit_name}"]
        parts += [f"{name}: {format_number(values[name])}" for name in values]
        return " - ".join(parts)
