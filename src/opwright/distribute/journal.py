"""The journal of an output folder: which parts of it are complete.

Lives here: `Journal`: reading, appending, the lock on the folder.
Not here: the files of parts (sinks.py).

A job's output consists of parts of a fixed number of elements. The files of a part are complete before its line is
appended, and a part without a line is computed and written again, to the same names. A process that is killed at any
instant therefore leaves parts that count and files that the next run replaces; a line that was cut off does not count.

The first line describes the job; a folder is continued only by the job that began it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import DataLossError, FailedPreconditionError
from ..core.files import remove_leftovers

if sys.platform != "win32":
    import fcntl

FORMAT = 1
NAME = "_journal.jsonl"
"""Readers of Parquet folders skip names that begin with an underscore."""


class Journal:
    """The journal of a folder, open for appending; the folder is locked.

    path: of the journal, by default in the folder. job: what identifies the job, in JSON's types.
    elements: of each complete part, by its number; errors: of its elements,
    if there are some: index, type, message. total: elements of the whole job, once it has ended.

    raises FailedPreconditionError if the folder belongs to another job, to a running one, or has other files and no
    journal; DataLossError for a journal that is none; OSError
    """

    def __init__(self, folder: Path, job: Mapping[str, Any], path: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.elements = folder, dict[int, int]()
        self.total: int | None = None
        self.errors: dict[int, list[dict[str, Any]]] = {}
        self._path = folder / NAME if path is None else path
        if not self._path.exists() and any(not name.startswith(".") for name in os.listdir(folder)):
            raise FailedPreconditionError(
                what="the output folder has files that no job wrote", found=str(folder), do="name an empty folder"
            )
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            self._lock()
            remove_leftovers(folder, only_writer=True)
            self._read(json.loads(json.dumps({"format": FORMAT, "job": job})))
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FailedPreconditionError(
                what="another process is writing to the output folder", found=str(self.folder)
            ) from None

    def _read(self, head: dict[str, Any]) -> None:
        """Read the lines; remove what follows the last whole one. Write the first line of a new journal."""
        content = self._path.read_bytes()
        complete = 0
        for number, line in enumerate(content.splitlines(keepends=True)):
            entry = _entry(line)
            if entry is None:
                break
            if not number:
                self._check(head, entry)
            elif "part" in entry:
                if self._is_intact(entry["files"]):
                    self._count(entry["part"], entry["elements"], entry.get("errors", []))
            elif "total" in entry:
                self.total = entry["total"]
            complete += len(line)
        if not complete and b"\n" in content:
            raise DataLossError(what="this is no journal of an output folder", found=str(self._path))
        if complete < len(content):
            os.ftruncate(self._handle, complete)
        if not complete:
            self._append(head)

    def _check(self, head: dict[str, Any], entry: dict[str, Any]) -> None:
        if entry == head:
            return
        old, new = entry.get("job", {}), head["job"]
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)] or ["format"]
        raise FailedPreconditionError(
            what=f"the output folder {self.folder} belongs to another job",
            found={key: old.get(key) for key in keys},
            wanted={key: new.get(key) for key in keys},
            do="name another folder, or remove this one",
        )

    def _is_intact(self, files: Mapping[str, int]) -> bool:
        """Return whether the files of a part have their sizes: they may have been removed since."""
        with contextlib.suppress(OSError):
            return all(os.stat(self.folder / name).st_size == size for name, size in files.items())
        return False

    def commit(self, part: int, elements: int, files: list[str], errors: list[dict[str, Any]]) -> None:
        """Record that a part is complete. files: of this part, within the folder; errors: of its elements."""
        sizes = {name: os.stat(self.folder / name).st_size for name in files}
        entry: dict[str, Any] = {"part": part, "elements": elements, "files": sizes}
        self._append(entry | ({"errors": errors} if errors else {}))
        self._count(part, elements, errors)

    def _count(self, part: int, elements: int, errors: list[dict[str, Any]]) -> None:
        self.elements[part] = elements
        if errors:
            self.errors[part] = errors

    def finish(self, total: int) -> None:
        """Record the number of all elements."""
        if self.total != total:
            self._append({"total": total})
            self.total = total

    def _append(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        while line:  # a signal or a full disk may leave a part of the line, which then does not count
            line = line[os.write(self._handle, line) :]

    def close(self) -> None:
        """Unlock the folder."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _entry(line: bytes) -> dict[str, Any] | None:
    """Return the entry of a whole line; None for one that was cut off or damaged."""
    if not line.endswith(b"\n"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
