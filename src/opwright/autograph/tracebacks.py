"""Filter tracebacks: drop AutoGraph's own frames from between the user's.

Lives here: `user_frames`.  Not here: the user's line in an error message (core/introspection.py).
"""

from __future__ import annotations

import os
import types

_AUTOGRAPH = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INTERNAL = (
    _AUTOGRAPH,
    os.path.join(_PACKAGE, "tracing", "statements") + os.sep,
    os.path.join(_PACKAGE, "tracing", "control") + os.sep,
)
_CONTEXTS = (os.path.join(_PACKAGE, "tracing", "trace.py"), os.path.join(_PACKAGE, "tracing", "tracer.py"))


def user_frames(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Return the traceback without AutoGraph's frames that have frames of the user's program below them."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    last = max((i for i, t in enumerate(frames) if not t.tb_frame.f_code.co_filename.startswith(_PACKAGE)), default=-1)
    if last >= 0 and _is_internal(frames[-1]):  # raised by AutoGraph itself: end at the user's line
        del frames[last + 1 :]
    remaining = [t for i, t in enumerate(frames) if i > last or not _is_internal(t)]
    for frame, following in zip(remaining, [*remaining[1:], None]):
        frame.tb_next = following
    return remaining[0] if remaining else None


def _is_internal(traceback: types.TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith((*_INTERNAL, *_CONTEXTS))
