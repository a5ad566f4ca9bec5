"""Calls of operators on strings and hash tables by machine code.

Lives here: `StringCalls`, which binds the functions of string_calls.ll to arrays.
Not here: the machine code, the layout of arrays and builtin functions (builtins.py), which nodes take this path
(lite/runtime/string_steps.py).

A bound function returns 0, or 1 if it has declined: its caller's Python computes the node then, or reports what is
wrong. Functions hold the GIL, so arrays are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.forks import once
from ...core.named_tuples import NamedTuple
from .builtins import NO_ARGUMENTS, Method, bound, entry_points, if_available, objects, slot_words

MOST_ELEMENTS = 4096
"""Limit of a call: elements of its output."""
_LIMITS = {"MOST_WORDS": 64, "MOST_DEPTH": 8, "MOST_BYTES": 1 << 16}
"""Limits of SKIP_GRAM: words of a text, words of a run, bytes of a text."""


class StringCalls(NamedTuple):
    """The functions of string_calls.ll. Arrays are dense; of strings, they are distinct arrays of objects."""

    equal_method: Method
    move_method: Method
    gather_method: Method
    find_method: Method
    size_method: Method
    skip_gram_method: Method

    def equal(self, x: np.ndarray, y: np.ndarray, out: np.ndarray, negated: bool) -> Callable[[], int]:
        """Return the comparison out = (x == y), or its negation. x, y: of out's size, or of one element."""
        return _bound(self.equal_method, (out.size, int(x.size > 1), int(y.size > 1), int(negated)), x, y, out, bytes)

    def move(self, x: np.ndarray, positions: np.ndarray, out: np.ndarray) -> Callable[[], int]:
        """Return the copy out[i] = x[positions[i]]. positions: int64, inside of x."""
        return _bound(self.move_method, (out.size,), x, positions, out)

    def gather(self, x: np.ndarray, indices: np.ndarray, out: np.ndarray, axis: int) -> Callable[[], int]:
        """Return the gather of indices (int32 or int64) along an axis of x, which declines indices outside of it."""
        outer, inner = int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis + 1 :]))
        words = (outer, x.shape[axis], indices.size, inner, indices.itemsize)
        return _bound(self.gather_method, words, x, indices, out)

    def find(self, table: Any, keys: np.ndarray, default: np.ndarray, out: np.ndarray) -> Callable[[], int] | None:
        """Return the lookup of keys in a table from int64 to strings or from strings to int64; None if objects have
        another layout than expected. table: an object whose `items` is a dict once it is filled."""
        slot = _items_slot(table)
        if slot is None:
            return None
        words = (out.size, int(keys.dtype == object), slot)
        return _bound(self.find_method, words, table, keys, default, out, dict)

    def size(self, table: Any, out: np.ndarray) -> Callable[[], int] | None:
        """Return the count of a table's keys; see `find`."""
        slot = _items_slot(table)
        return None if slot is None else _bound(self.size_method, (slot,), table, out, dict)

    def skip_gram(
        self, x: np.ndarray, out: np.ndarray, run: int, skips: int, shorter: bool
    ) -> Callable[[], int] | None:
        """Return the runs of `run` words of a text that leave out up to `skips` words between two; shorter: and those
        of fewer words. It declines texts that give another number of runs than `out` has elements. None if runs are too
        long."""
        if run > _LIMITS["MOST_DEPTH"]:
            return None
        words = (out.size, run, min(skips, _LIMITS["MOST_WORDS"]), int(shorter))
        return _bound(self.skip_gram_method, words, x, out, bytes)


def _bound(method: Method, words: Sequence[int], *operands: Any) -> Callable[[], int]:
    return bound(method, objects(np.array(words, np.int64), *operands))


def _items_slot(table: Any) -> int | None:
    """Return the word of a table that holds its dict."""
    words = slot_words(table, ("resources", "items"))
    return None if words is None else words[1]


@once
def make_string_calls() -> StringCalls | None:
    """Return the functions, as `entry_points`."""
    table = entry_points("string_calls", _LIMITS)
    if table is None:
        return None
    names = (name.removesuffix("_method") for name in StringCalls._fields)
    return StringCalls(*(Method(name.encode(), table(i), NO_ARGUMENTS, None) for i, name in enumerate(names)))


def string_calls() -> StringCalls | None:
    """Return the functions, as `if_available`."""
    return if_available(make_string_calls)
