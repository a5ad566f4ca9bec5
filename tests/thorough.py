"""How much a run of the suite tries: a part of the drawn examples and mutants, or all of them.

Lives here: `THOROUGH`, `examples`, `some`.  Not here: slow tests (the marker `slow`), first rows alone (each_row.py).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

_Item = TypeVar("_Item")

THOROUGH = os.environ.get("OPWRIGHT_THOROUGH") == "1"
"""Whether drawn examples are tried in full: `make test-all`, which also runs what is marked `slow`."""
LEAST = 4


def examples(count: int) -> int:
    """Return how many of `count` drawn examples a run tries: all if thorough, otherwise a quarter, at least four."""
    return count if THOROUGH else min(count, max(LEAST, count // 4))


def some(items: Sequence[_Item]) -> Sequence[_Item]:
    """Return the items that a run tries: all if thorough, otherwise every fifth, the first among them."""
    return items if THOROUGH else items[::5]  # 5, as tables have periods of 2, 3 and 4
