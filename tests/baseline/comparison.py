"""Differences between two records, and the reviewed ones among them.

Lives here: `Reviewed`, `compared`, the report.  Not here: how one difference is told (each kind's `difference`).

A file of reviewed differences has a line for each: kind, pattern of keys (as of a shell), reason.

    # kind  keys                              reason
    bits    functions/gelu/*/jit-*            one formula now in every way, within 2 ulp of the exact one
"""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .kinds import KINDS, Kind
from .outcomes import Entry
from .records import Record


@dataclass
class Line:
    """A line of the file of reviewed differences. used: for how many keys."""

    kind: str
    pattern: str
    reason: str
    used: int = 0


class Reviewed:
    """Differences that somebody has looked at. Raises ValueError for a line that is none."""

    def __init__(self, text: str = "", name: str = "") -> None:
        self.lines: list[Line] = []
        for number, line in enumerate(text.splitlines(), 1):
            parts = line.split(maxsplit=2)
            if not parts or parts[0].startswith("#"):
                continue
            if len(parts) < 3 or parts[0] not in KINDS:
                kinds = ", ".join(KINDS)
                raise ValueError(f"{name}:{number}: {line!r} is not a kind ({kinds}), a pattern and a reason")
            self.lines.append(Line(*parts))

    @staticmethod
    def read(path: Path) -> Reviewed:
        """Read the reviewed differences of a file."""
        return Reviewed(path.read_text("utf-8"), path.name)

    def reason(self, kind: str, key: str) -> str | None:
        """Return the reason why a key may differ, or None."""
        for line in self.lines:
            if line.kind == kind and fnmatch.fnmatchcase(key, line.pattern):
                line.used += 1
                return line.reason
        return None

    def unused(self, kinds: Collection[str]) -> list[Line]:
        """Lines of these kinds for which nothing differed."""
        return [line for line in self.lines if line.kind in kinds and not line.used]


@dataclass
class Comparison:
    """Of one kind: keys that are equal, have moved (the result is that of a new key of the unit), differ (with the
    words), differ for a reviewed reason, are missing, are new."""

    kind: Kind
    equal: int = 0
    moved: int = 0
    differing: dict[str, str] = field(default_factory=dict)
    reviewed: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing differs and nothing is missing but what was reviewed."""
        return not self.differing and not self.missing

    def headline(self) -> str:
        """The counts."""
        return (
            f"{self.kind.name}: {self.equal} equal, {self.moved} moved, {len(self.differing)} differ, "
            f"{len(self.reviewed)} reviewed, {len(self.missing)} missing, {len(self.new)} new"
        )


def compared(
    kind: Kind, before: Record, after: Record, reviewed: Reviewed, chosen: Callable[[str], bool] = lambda unit: True
) -> Comparison:
    """Compare one kind of two records. chosen: the units that the second has been made for."""
    old, new = (
        {key: e for key, e in record.read(kind.name).items() if chosen(kind.unit(key))} for record in (before, after)
    )
    result = Comparison(kind, new=sorted(set(new) - set(old)))
    moved = {(kind.unit(key), new[key].digest, new[key].of) for key in result.new}
    for key, a in old.items():
        b = new.get(key)
        if b is not None and _same(kind, a, b, before, after):
            result.equal += 1
        elif b is None and (kind.unit(key), a.digest, a.of) in moved:
            result.moved += 1
        elif (reason := reviewed.reason(kind.name, key)) is not None:
            result.reviewed[key] = reason
        elif b is None:
            result.missing.append(key)
        else:
            result.differing[key] = _told(kind, a, b, before, after)
    return result


def _same(kind: Kind, a: Entry, b: Entry, before: Record, after: Record) -> bool:
    if a.of != b.of or a.digest == b.digest:
        return (a.digest, a.of) == (b.digest, b.of)
    data = before.data(kind.name, a.digest), after.data(kind.name, b.digest)
    return data[0] is not None and data[1] is not None and kind.same(*data)


def _told(kind: Kind, a: Entry, b: Entry, before: Record, after: Record) -> str:
    """A difference in words."""
    words = "the inputs differ: the row itself was changed\n" if a.of != b.of else ""
    data = before.data(kind.name, a.digest), after.data(kind.name, b.digest)
    if a.digest == b.digest:
        return words + "the results are equal"
    if data[0] is None or data[1] is None:
        return words + f"was {a.digest}, now {b.digest}; too large to be kept"
    return words + kind.difference(*data)


# ---- the report ------------------------------------------------------------------------------------------------------


def report(result: Sequence[Comparison], reviewed: Reviewed) -> Iterator[str]:
    """Everything, a line or more for each key."""
    for c in result:
        yield c.headline()
        for key, words in c.differing.items():
            yield f"differs  {c.kind.name} {key}"
            yield from (f"    {line}" for line in words.splitlines())
        yield from (f"missing  {c.kind.name} {key}" for key in c.missing)
        yield from (f"reviewed {c.kind.name} {key}: {reason}" for key, reason in c.reviewed.items())
        yield from (f"new      {c.kind.name} {key}" for key in c.new)
    for line in reviewed.unused([c.kind.name for c in result]):
        yield f"unused   {line.kind} {line.pattern}: nothing that this reviewed line is for differs"


def summary(result: Sequence[Comparison], most: int) -> Iterator[str]:
    """Yield the counts, the first differences of each kind, and the others by the first parts of their keys."""
    for c in result:
        yield c.headline()
        for key, words in list(c.differing.items())[:most]:
            yield f"  {key}"
            lines = words.splitlines()
            yield from (f"      {line}" for line in lines[:SHOWN])
            if len(lines) > SHOWN:
                yield f"      ... {len(lines) - SHOWN} more lines"
        if len(c.differing) > most:
            yield f"  ... {_groups(c.kind, list(c.differing)[most:])}"
        if c.missing:
            yield f"  missing: {_groups(c.kind, c.missing)}"
        if c.new:
            yield f"  new: {_groups(c.kind, c.new)}"


SHOWN = 24
"""Lines of a difference in the summary; the report has them all."""


def _groups(kind: Kind, keys: Iterable[str]) -> str:
    """Keys by their units: `functions/gelu (12), drawn/ADD-INT8-REF (2)`."""
    counts = Counter(map(kind.unit, keys))
    parts = [f"{group} ({n})" for group, n in counts.most_common(20)]
    return ", ".join([*parts, *([f"and {len(counts) - 20} more groups"] if len(counts) > 20 else [])])
