"""How many items of a step a thread takes at a time.

Lives here: `grain`.  Not here: who takes them (../native/executor.py).
"""

from __future__ import annotations

ALONE = 32 * 1024
"""Bytes that one thread moves before a second knows of them."""
SOME = 32 * 1024
"""Bytes that are worth asking for more."""


def grain(nbytes: int, items: int) -> int:
    """Items of one hand-out, where an item reads or writes so many bytes: all of them where it is little work."""
    return items if nbytes * items <= ALONE else max(1, SOME // max(nbytes, 1))
