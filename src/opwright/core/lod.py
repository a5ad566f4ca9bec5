"""Levels of detail: offsets that divide the rows of a packed array into sequences.

Lives here: validation of offsets, offsets <-> lengths, absolute offsets, slices.
Not here: tensors with a LoD (ops/lod_tensor.py), operators on them (ops/sequence/).

A LoD is a list of levels, coarse to fine. A level lists offsets into the units of the next one, the last level into
rows: [[0, 2, 3], [0, 3, 5, 9]] is two documents of two and one sentences, of 3, 2 and 4 words.

    lengths         [[2, 1], [3, 2, 4]]
    offsets         [[0, 2, 3], [0, 3, 5, 9]]
    absolute        [[0, 5, 9], [0, 3, 5, 9]]       every level in rows
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .errors import InvalidArgumentError, compose

Levels = tuple[np.ndarray, ...]
"""Offsets, int64, one array per level."""

_WANTED = "a list of levels, each a list of integers, as [[0, 2, 5]]"


def as_levels(lod: Any) -> Levels:
    """Convert a nesting of integers to levels, without validation.

    raises TypeError for anything but a list of lists of integers
    """
    if isinstance(lod, (str, bytes)) or not isinstance(lod, (Sequence, np.ndarray)):
        raise TypeError(compose("this is not a list of levels", op="LoDTensor", found=repr(lod), wanted=_WANTED))
    levels = []
    for level in lod:
        array = np.asarray(level)
        if array.size == 0 and array.ndim == 1:
            array = array.astype(np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            flat = array.ndim == 0 and array.dtype.kind in "iu"
            do = f"one level is a list in a list: [{list(lod)}]" if flat else None
            raise TypeError(
                compose("a level is not a list of integers", op="LoDTensor", found=repr(level), wanted=_WANTED, do=do)
            )
        offsets = array.astype(np.int64)
        offsets.setflags(write=False)
        levels.append(offsets)
    return tuple(levels)


def wrong(levels: Levels, rows: int | None) -> str | None:
    """Return the reason why these are not a LoD over `rows` rows; None if they are one. No levels are a LoD.

    Each level starts at 0, is nondecreasing and has at least two offsets; its last offset is the number of units of the
    next level, or of rows for the last level. rows: None if unknown.
    """
    for k, level in enumerate(levels):
        if len(level) < 2:
            return f"level {k} has {len(level)} offsets; it takes two or more, the first 0"
        if level[0] != 0:
            return f"level {k} starts at {level[0]}, not at 0"
        falls = np.flatnonzero(level[1:] < level[:-1])
        if len(falls):
            i = int(falls[0])
            return f"level {k} falls from {level[i]} to {level[i + 1]} at entry {i + 1}"
        if k + 1 < len(levels):
            units, what = len(levels[k + 1]) - 1, f"level {k + 1} has {len(levels[k + 1]) - 1} sequences"
        elif rows is None:
            continue
        else:
            units, what = rows, f"there are {rows} rows"
        if level[-1] != units:
            return f"level {k} ends at {level[-1]}, but {what}"
    return None


def check(levels: Levels, rows: int | None, op: str = "LoDTensor") -> None:
    """Raise InvalidArgumentError with the reason for levels that are not a LoD over `rows` rows."""
    reason = wrong(levels, rows)
    if reason is not None:
        shown = [level.tolist() if len(level) <= 12 else f"{len(level)} offsets" for level in levels]
        rule = "offsets that start at 0, never fall and end at the number of units below"
        raise InvalidArgumentError(
            op=op,
            what=f"this is not a LoD: {reason}",
            found=shown,
            wanted=rule,
            do="from lengths make it with ow.create_lod_tensor",
        )


def from_lengths(lengths: Any) -> Levels:
    """Return the offsets of each level for lengths of its sequences. Raises InvalidArgumentError for negative ones."""
    levels = []
    for k, level in enumerate(as_levels(lengths)):
        if len(level) and level.min() < 0:
            raise InvalidArgumentError(
                op="LoDTensor",
                what=f"a sequence of level {k} has a negative length",
                found=level.tolist(),
                wanted="lengths of at least 0",
            )
        offsets = np.zeros(len(level) + 1, np.int64)
        np.cumsum(level, out=offsets[1:])
        offsets.setflags(write=False)
        levels.append(offsets)
    return tuple(levels)


def to_lengths(levels: Levels) -> list[list[int]]:
    """Return the lengths of the sequences of each level."""
    return [np.diff(level).tolist() for level in levels]


def absolute(levels: Levels) -> Levels:
    """Return every level's offsets in rows."""
    levels_in_rows: list[np.ndarray] = []
    for level in reversed(levels):
        levels_in_rows.insert(0, levels_in_rows[0][level] if levels_in_rows else level)
    return tuple(levels_in_rows)


def sliced(levels: Levels, begin: int, end: int, level: int = 0) -> tuple[Levels, int, int]:
    """Slice sequences [begin, end) of a level: return the levels from it down, starting at 0, and the range of their
    rows.

    raises InvalidArgumentError for a level or a range that does not exist, an empty range, and if all sequences are
    empty while there are levels below, which would be empty then
    """
    if not 0 <= level < len(levels):
        raise InvalidArgumentError(op="LoDTensor", what=f"there is no level {level}", found=f"{len(levels)} levels")
    if not 0 <= begin < end <= len(levels[level]) - 1:
        raise InvalidArgumentError(
            op="LoDTensor",
            what=f"no sequences [{begin}, {end}) on level {level}",
            found=f"{len(levels[level]) - 1} sequences",
            wanted="0 <= begin < end",
        )
    parts: list[np.ndarray] = []
    for offsets in levels[level:]:
        part = offsets[begin : end + 1]
        if len(part) < 2:
            raise InvalidArgumentError(
                op="LoDTensor",
                what=f"these sequences of level {level} contain none on the levels "
                "below, and a LoD has at least one on each",
                wanted="nonempty sequences",
                found=f"empty ones on level {level + len(parts) - 1}",
            )
        begin, end = int(part[0]), int(part[-1])
        parts.append(part - part[0])
    return tuple(parts), begin, end
