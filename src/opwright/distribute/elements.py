"""Elements as tasks carry them: taken from any source as plain data, stacked where they are alike.

Lives here: `ElementSource`, `ElementColumns`, `packed`.
Not here: the memory that they travel through (slots.py), what a model takes of them (worker.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..data.dataset import Dataset

TUPLES, ALONE = "tuples", "alone"
"""In place of the names of columns."""


class ElementSource:
    """An iterator of elements as plain data: tensors become arrays. Sequences are skipped without reading."""

    def __init__(self, elements: Iterable[Any]) -> None:
        self._sequence = elements if isinstance(elements, Sequence | np.ndarray) else None
        self._at = 0
        iterable = elements.as_numpy_iterator() if isinstance(elements, Dataset) else elements
        self._iterator: Iterator[Any] | None = iter(iterable) if self._sequence is None else None

    def take(self, count: int) -> list[Any] | np.ndarray:
        """Return the next elements: a list, or rows of the array that is the source; fewer at its end."""
        if self._iterator is not None:
            return [_plain(element) for element in itertools.islice(self._iterator, count)]
        sequence: Any = self._sequence
        start, self._at = self._at, min(self._at + count, len(sequence))
        if isinstance(sequence, np.ndarray):
            return sequence[start : self._at]
        return [_plain(sequence[index]) for index in range(start, self._at)]

    def skip(self, count: int) -> int:
        """Skip elements; return how many there were."""
        if self._iterator is not None:
            return sum(1 for _ in itertools.islice(self._iterator, count))
        sequence: Any = self._sequence
        skipped = min(count, len(sequence) - self._at)
        self._at += skipped
        return skipped


def _plain(element: Any) -> Any:
    """Return an element with arrays instead of tensors, which needs no tensors to be unpickled."""
    if isinstance(element, dict):
        return {key: _plain(value) for key, value in element.items()}
    if isinstance(element, tuple):
        return tuple(_plain(value) for value in element)
    return np.asarray(element) if hasattr(element, "__array__") and not isinstance(element, np.ndarray) else element


class ElementColumns:
    """Elements that have arrays of the same shapes and dtypes, as columns of n rows.

    names: keys of elements that are dicts, TUPLES, or ALONE for elements that are arrays. arrays: a column for each, as
    an array or, before `stacked`, as a list of arrays.
    """

    __slots__ = ("arrays", "names")

    def __init__(self, names: tuple[Any, ...] | str, arrays: Sequence[Any]) -> None:
        self.names, self.arrays = names, arrays

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, rows: slice) -> ElementColumns:
        return ElementColumns(self.names, [array[rows] for array in self.arrays])

    def __iter__(self) -> Iterator[Any]:
        if self.names == ALONE:
            yield from self.arrays[0]
            return
        for row in zip(*self.arrays):
            yield row if self.names == TUPLES else dict(zip(self.names, row))

    @property
    def sizes(self) -> list[int]:
        """Return the bytes of each column."""
        return [len(column) * column[0].nbytes if len(column) else 0 for column in self.arrays]

    def stacked(self, stack: Callable[[Any], Any] = np.stack) -> ElementColumns:
        """Return columns that `stack` has made of the lists of arrays; arrays are passed to it, too."""
        return ElementColumns(self.names, [stack(column) for column in self.arrays])


def packed(elements: list[Any] | np.ndarray) -> list[Any] | ElementColumns:
    """Return elements as columns, which are sent faster than many small arrays; others as they are.

    Iterating over the columns yields the elements again.
    """
    if isinstance(elements, np.ndarray):
        return ElementColumns(ALONE, [elements])
    first = elements[0]
    if type(first) is np.ndarray:
        return ElementColumns(ALONE, [elements]) if _alike(elements) else elements
    if not first or type(first) not in (tuple, dict):
        return elements
    if isinstance(first, tuple):
        if not all(type(e) is tuple and len(e) == len(first) for e in elements):
            return elements
        columns = ElementColumns(TUPLES, list(zip(*elements)))
    else:
        if not all(type(e) is dict and e.keys() == first.keys() for e in elements):
            return elements
        columns = ElementColumns(tuple(first), [[e[name] for e in elements] for name in first])
    return columns if all(map(_alike, columns.arrays)) else elements


def _alike(arrays: Sequence[Any]) -> bool:
    """Return whether all are arrays of numbers of one shape and dtype."""
    first = arrays[0]
    if type(first) is not np.ndarray or first.dtype.kind == "O":
        return False
    return all(type(a) is np.ndarray and a.shape == first.shape and a.dtype == first.dtype for a in arrays)
