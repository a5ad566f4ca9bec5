"""IteratorContext: the state of one iterator that survives repeated passes over its input datasets.

Lives here: the context.  Not here: iterators (iterator.py), random transformations (functions.py, order.py).

A transformation such as `repeat` or `flat_map` iterates its input several times. Seeded random operators continue from
one pass to the next within the outermost iterator; a new iterator restarts them. The state therefore belongs to the
iterator, and within it to a position in the tree of datasets: a dataset that occurs twice has separate sequences.
"""

from __future__ import annotations

from typing import Any


class IteratorContext:
    """State of one position in an iterator's tree of datasets.

    calls: the number of draws from each random sequence; see `own_sequences`. random_access: whether elements are
    looked up by index; passes then have the same orders in all such contexts.
    """

    __slots__ = ("_inputs", "_passes", "calls", "random_access")

    def __init__(self, random_access: bool = False) -> None:
        self.calls: dict[Any, int] = {}
        self.random_access = random_access
        self._inputs: dict[Any, IteratorContext] = {}
        self._passes = 0

    def input(self, key: Any = 0) -> IteratorContext:
        """Return the context of an input dataset. key: its index, or a name for datasets computed by a function."""
        context = self._inputs.get(key)
        if context is None:
            context = self._inputs.setdefault(key, IteratorContext(self.random_access))
        return context

    def epoch(self, dataset: Any, reorder: bool) -> int:
        """Start a pass of a dataset that counts them in `_epoch`; return the number that determines its order.

        again: whether every pass has its own order. A lookup by index does not count as a pass.
        """
        if self.random_access:
            number, self._passes = self._passes, self._passes + 1
        else:
            number, dataset._epoch = dataset._epoch, dataset._epoch + 1
        return number if reorder else 0
