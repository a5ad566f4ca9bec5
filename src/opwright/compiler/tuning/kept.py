"""What this machine has measured, kept in the object cache for every later process.

Lives here: `find`, `keep`.
Not here: rows (rows.py), measuring (racing.py, loading.py), the cache's files (../cache.py).

Each row is a file of its own, named by a digest of the choice, the sizes, the processor and Opwright's sources:
processes that measure at once write different files, or the same one whole. What is damaged or from another cache
counts as missing, as the cache's files have keyed digests. With the switch `deterministic` nothing is read: results are
to be the same before and after a measurement.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...core import flags
from ..cache import objects
from ..native.store import program_digest
from .rows import Row, from_json, to_json

_here: dict[tuple[str | None, str], Row] = {}  # what this process measured, by cache, which may be none, and digest


def find(choice: str, sizes: Sequence[int]) -> Row | None:
    """The row that this machine has measured for these sizes, if any."""
    if flags.deterministic:
        return None
    digest = _digest(choice, sizes)
    if (flags.cache_dir, digest) in _here:
        return _here[flags.cache_dir, digest]
    content = objects(flags.cache_dir).find(digest)
    try:
        return None if content is None else from_json(json.loads(content))
    except ValueError:
        return None


def keep(choice: str, sizes: Sequence[int], row: Row) -> None:
    """Keep a row."""
    digest = _digest(choice, sizes)
    _here[flags.cache_dir, digest] = row
    objects(flags.cache_dir).keep(digest, json.dumps(to_json(row)).encode())


def _digest(choice: str, sizes: Sequence[int]) -> str:
    return program_digest("measured", choice, " ".join(map(str, sizes)))
