"""The kinds of a record: what each holds, what computes it, how a difference is told.

A kind's module has `prepare(tree, folder)`, `units()`, the names of what one process does at a time, and `run(unit)`,
entries whose keys begin with the unit's name. It is imported by processes that compute alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from . import figures, values


@dataclass(frozen=True)
class Kind:
    """name: of its files; module: that computes it; depth: parts of a unit's name; difference: of two results, in
    words; what: it holds; same: whether two results that
    are not the same bytes are no difference."""

    name: str
    module: str
    depth: int
    difference: Callable[[bytes, bytes], str]
    what: str
    same: Callable[[bytes, bytes], bool] = operator.eq

    def unit(self, key: str) -> str:
        """The unit that a key is of."""
        return "/".join(key.split("/")[: self.depth])


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "bits",
            "baseline.bits",
            2,
            values.difference,
            "bits of every row of the operators' tables, in each way of running",
        ),
        Kind(
            "loops",
            "baseline.loops",
            3,
            values.text_difference,
            "loop graphs and their plans as text, for several targets",
        ),
        Kind("codes", "baseline.codes", 2, values.text_difference, "assembly of kernels, for several targets"),
        Kind(
            "files",
            "baseline.conversions",
            2,
            values.bytes_difference,
            "bytes of the files that the converter's tests make",
        ),
        Kind(
            "bench",
            "baseline.figures",
            1,
            figures.difference,
            f"figures of the last `make bench`, worse by {figures.TOLERANCE:.0%} at most",
            figures.same,
        ),
    )
}
