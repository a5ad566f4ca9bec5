"""Messages of training: printed, or logged.

Lives here: the choice, `show`.  Not here: progress bars and their lines (callbacks/base.py).
"""

from __future__ import annotations

import logging

_IS_INTERACTIVE = [True]


def enable_interactive_logging() -> None:
    """Print what `fit` and callbacks say: the default."""
    _IS_INTERACTIVE[0] = True


def disable_interactive_logging() -> None:
    """Log what callbacks say, by the logger "opwright" at the level INFO; `verbose="auto"` means a line an epoch."""
    _IS_INTERACTIVE[0] = False


def is_interactive_logging_enabled() -> bool:
    """Return whether messages are printed."""
    return _IS_INTERACTIVE[0]


def show(text: str) -> None:
    """Print a message, or log it."""
    if _IS_INTERACTIVE[0]:
        print(text)
    else:
        logging.getLogger("opwright").info(text.strip())
