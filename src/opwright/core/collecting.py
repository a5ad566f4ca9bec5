"""Garbage collection, paused while much is built at once and nothing of it is garbage.

Lives here: `paused`.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

from . import forks

_lock = forks.lock()
_inside = [0]  # how many blocks are open, in all threads


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Collect no garbage within, in any thread; for some milliseconds of building trees, instructions or text.

    The collector would visit all that was built again and again, which takes a third of the time. Where the program
    has switched it off, it stays off.
    """
    with _lock:
        mine = _inside[0] > 0 or gc.isenabled()
        if mine:
            _inside[0] += 1
            gc.disable()
    try:
        yield
    finally:
        if mine:
            with _lock:
                _inside[0] -= 1
                if not _inside[0]:
                    gc.enable()
