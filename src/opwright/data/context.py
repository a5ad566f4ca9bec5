"""IteratorContext: the state of one iterator that survives a new pass over the datasets below it.

Lives here: the context.  Not here: iterators (iterator.py), what draws random numbers (functions.py, ordering.py).

A transformation such as `repeat` or `flat_map` iterates a dataset below it many times. Seeded random operators go on
from one pass to the next, as long as the outermost iterator is the same one; a new iterator begins them again. The
state therefore belongs to the iterator, and within it to a position in the tree of datasets: a dataset that occurs
twice has separate sequences.
"""

from __future__ import annotations

from typing import Any


class IteratorContext:
    """The state of one position of an iterator's tree of datasets.

    calls: how far each random sequence has been drawn, as `own_sequences` keeps it. random_access: whether elements are
    looked up by number, in which case every pass must give the order of the same pass of any other such context.
    """

    __slots__ = ("_inputs", "_passes", "calls", "random_access")

    def __init__(self, random_access: bool = False) -> None:
        self.calls: dict[Any, int] = {}
        self.random_access = random_access
        self._inputs: dict[Any, IteratorContext] = {}
        self._passes = 0

    def input(self, key: Any = 0) -> IteratorContext:
        """The context of a dataset directly below. key: its number, or a name for datasets made by a function."""
        found = self._inputs.get(key)
        if found is None:
            found = self._inputs.setdefault(key, IteratorContext(self.random_access))
        return found

    def epoch(self, dataset: Any, again: bool) -> int:
        """Begin a pass of a dataset that counts its passes in `_epoch`; return the number that its order follows from.

        again: whether every pass has an order of its own. A lookup by number does not count as a pass.
        """
        if self.random_access:
            number, self._passes = self._passes, self._passes + 1
        else:
            number, dataset._epoch = dataset._epoch, dataset._epoch + 1
        return number if again else 0
