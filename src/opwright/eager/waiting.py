"""Values that wait for variables: what a checkpoint has for variables that are not made yet.

Lives here: the list of who waits, and the moment they are asked.  Not here: checkpoints (saved/).

While somebody waits, a new variable holds back its initial value until it is first read or written; by then it hangs
on its object, and whoever waits finds it there. When nobody waits this costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import forks

waiting: list[Callable[[], bool]] = []  # each hands out what it can; False when it has no more, or nobody to give to
_lock = forks.lock()
_busy = False


def settle() -> None:
    """Let everybody who waits look for the variables they wait for."""
    global _busy
    with _lock:
        if _busy or not waiting:
            return
        _busy = True
        try:
            for hand_out in list(waiting):
                again = False  # a value that does not fit is an error once
                try:
                    again = hand_out()
                finally:
                    if not again:
                        waiting.remove(hand_out)
        finally:
            _busy = False


def attached(value: Any) -> None:
    """Something became an attribute. New variables come on their own; others, and what holds some, are looked for."""
    if getattr(value, "_initial", None) is None and value is not None and not isinstance(value, (str, int, float)):
        settle()
