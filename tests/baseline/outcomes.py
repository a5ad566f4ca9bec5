"""Entries of a record.

Lives here: `Entry`, `entry`, `failed`, digests.  Not here: running what has a result (execution.py), how results are
written (values.py), where entries are kept (records.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import values

MOST_KEPT = 1 << 20
"""Bytes of a result that is kept whole; of a larger one only the digest is."""


class Entry(NamedTuple):
    """One line of a record. key: unique within its kind, it begins with the unit's name; digest: what is compared;
    data: what the digest is of, where it is kept; of: a digest of the inputs, where another result proves nothing
    unless they are the same."""

    key: str
    digest: str
    data: bytes | None = None
    of: str = ""


def digest(data: bytes) -> str:
    """A digest of so few letters that records can be read."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def entry(key: str, data: bytes, of: str = "") -> Entry:
    """An entry of some bytes."""
    return Entry(key, digest(data), data if len(data) <= MOST_KEPT else None, of)


def failed(key: str, error: BaseException, of: str = "") -> Entry:
    """The entry of an error."""
    return entry(key, values.failure(error), of)


def inputs_digest(inputs: Sequence[Any]) -> str:
    """A digest of a row's inputs: arrays by their bits, lists by their members, all else by its repr."""
    return digest(repr([_input(x) for x in inputs]).encode())


def _input(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_input(y) for y in x]
    if hasattr(x, "dtype") and hasattr(x, "tobytes"):
        return values.packed([x])
    return values.without_places(repr(x))
