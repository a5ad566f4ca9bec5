"""Tracebacks that show the user's program: the frames that staging put between the user's are taken out.

Lives here: `user_frames`.  Not here: where the user's program is (core/introspection.py).
"""

from __future__ import annotations

import os
import types

_STAGING = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_BETWEEN = (
    _STAGING,
    os.path.join(_PACKAGE, "tracing", "staged") + os.sep,
    os.path.join(_PACKAGE, "tracing", "control") + os.sep,
)
_CONTEXTS = (os.path.join(_PACKAGE, "tracing", "trace.py"), os.path.join(_PACKAGE, "tracing", "recording.py"))


def user_frames(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback without the frames of staging that have frames of the user's program below them."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    last = max((i for i, t in enumerate(frames) if not t.tb_frame.f_code.co_filename.startswith(_PACKAGE)), default=-1)
    if last >= 0 and _between(frames[-1]):  # staging itself refused: the user's line is where
        del frames[last + 1 :]
    kept = [t for i, t in enumerate(frames) if i > last or not _between(t)]
    for one, following in zip(kept, [*kept[1:], None]):
        one.tb_next = following
    return kept[0] if kept else None


def _between(traceback: types.TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith((*_BETWEEN, *_CONTEXTS))
