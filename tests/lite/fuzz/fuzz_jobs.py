"""The job of `run_fuzz.py --executor`, importable by name on workers: run_fuzz itself is their `__main__`."""

from __future__ import annotations

import run_fuzz


def tried(what: str, mode: str | None, start: int, stop: int) -> tuple[dict[str, int], list[tuple[int, str]]]:
    """Try the cases from start to stop: how many came how far, and the findings."""
    return run_fuzz.tried(what, mode, start, stop)
