"""Records on disk: for each kind a text file of digests, sorted by key, and an archive of what they are digests of.

    machine.json         what it was recorded on, and of which commit
    bits.jsonl           {"digest": "..", "key": "catalogue/Atan/0/jit", "of": ".."} a line
    bits.zip             results by digest

Lives here: `Record`.  Not here: what the entries are of (kinds.py), comparing two records (comparison.py).
"""

from __future__ import annotations

import functools
import json
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .outcomes import Entry


class Record:
    """A record in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # ---- the machine -------------------------------------------------------------------------------------------------

    @property
    def about(self) -> dict[str, Any]:
        """Return the contents of machine.json; empty if there is no record."""
        path = self.folder / "machine.json"
        return json.loads(path.read_text("utf-8")) if path.exists() else {}

    def describe(self, facts: dict[str, Any]) -> None:
        """Write machine.json."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(facts, indent=2, sort_keys=True, ensure_ascii=False)
        (self.folder / "machine.json").write_text(text + "\n", "utf-8")

    # ---- entries -----------------------------------------------------------------------------------------------------

    def has(self, kind: str) -> bool:
        """Whether a kind was recorded."""
        return (self.folder / f"{kind}.jsonl").exists()

    def write(self, kind: str, entries: Iterable[Entry]) -> None:
        """Write the entries of a kind, all of them. Raises ValueError for two of one key."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines, kept = {}, {}
        for e in entries:
            if e.key in lines:
                raise ValueError(f"two entries of {kind} have the key {e.key!r}; each needs one of its own")
            lines[e.key] = json.dumps({"key": e.key, "digest": e.digest, **({"of": e.of} if e.of else {})})
            if e.data is not None:
                kept[e.digest] = e.data
        archive, listing = self.folder / f"{kind}.zip", self.folder / f"{kind}.jsonl"
        with zipfile.ZipFile(archive.with_suffix(".new"), "w", zipfile.ZIP_DEFLATED, compresslevel=3) as out:
            for name in sorted(kept):
                out.writestr(zipfile.ZipInfo(name), kept[name], zipfile.ZIP_DEFLATED)
        os.replace(archive.with_suffix(".new"), archive)
        listing.write_text("".join(f"{lines[key]}\n" for key in sorted(lines)), "utf-8")

    def read(self, kind: str) -> dict[str, Entry]:
        """The entries of a kind by key, without their data. Raises FileNotFoundError where it was not recorded."""
        lines = (self.folder / f"{kind}.jsonl").read_text("utf-8").splitlines()
        result = [Entry(row["key"], row["digest"], None, row.get("of", "")) for row in map(json.loads, lines)]
        return {e.key: e for e in result}

    def data(self, kind: str, digest: str) -> bytes | None:
        """Return the value of a digest; None if it was too large to store."""
        try:
            return self._archive(kind).read(digest)
        except KeyError:
            return None

    @functools.cache  # noqa: B019  one archive a kind, for as long as the record is read
    def _archive(self, kind: str) -> zipfile.ZipFile:
        return zipfile.ZipFile(self.folder / f"{kind}.zip")
