"""Where in the user's program we are.

Lives here: the line of the innermost frame that is not of this package, its distance; where an error went through it.
Not here: tracebacks (staging/).
"""

from __future__ import annotations

import os
import sys

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def users_line() -> str | None:
    """file:line of the innermost frame outside this package; None where there is none."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back  # type: ignore[assignment]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else None


def raised_at(error: BaseException) -> str | None:
    """file:line where an error went through the innermost frame outside this package; None where there is none."""
    found, step = None, error.__traceback__
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith(OURS):
            found = f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    return found


def levels_to_user() -> int:
    """The `stacklevel` by which warnings.warn, called beside this, names the innermost line outside this package."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    return level
