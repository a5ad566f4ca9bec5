"""The kinds of a record: what each holds, what computes it, how a difference is told.

A kind's module has `prepare(tree, folder)`, `units()`, the names of what one process does at a time, and `run(unit)`,
entries whose keys begin with the unit's name. It is imported by processes that compute alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import values


@dataclass(frozen=True)
class Kind:
    """name: of its files; module: that computes it; depth: parts of a unit's name; difference: of two results, in
    words; what: it holds."""

    name: str
    module: str
    depth: int
    difference: Callable[[bytes, bytes], str]
    what: str

    def unit(self, key: str) -> str:
        """The unit that a key is of."""
        return "/".join(key.split("/")[: self.depth])


KINDS = {
    kind.name: kind
    for kind in (
        Kind("bits", "baseline.bits", 2, values.difference,
             "bits of every row of the operators' tables, in each way of running"),
        Kind("loops", "baseline.loops", 3, values.text_difference,
             "loop graphs and their plans as text, for several targets"),
    )
}  # fmt: skip
