"""The journal of an output folder: which parts of it are complete.

Lives here: `Journal`: reading, appending, the lock on the folder.
Not here: the files of parts (sinks.py).

A job's output consists of parts of a fixed number of elements. The files of a part are complete before its line is
appended, and a part without a line is computed and written again, to the same names. A process that is killed at any
instant therefore leaves parts that count and files that the next run replaces; a line that was cut off does not count.

The first line describes the job; a folder is continued only by the job that began it.

After a power failure the disk may have lines without the files that they name. On Linux, which identifies each start of
a host, a journal therefore says under which one its lines were written, and has a line whenever all files before it are
on the disk: of the lines behind the last one of these, those of an earlier start do not count. Waiting for the disk
takes at most `SYNC_SHARE` of the time.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..compiler.native.image import library
from ..core.errors import DataLossError, FailedPreconditionError
from ..core.files import remove_leftovers
from .hosts import boot_id

if sys.platform != "win32":
    import fcntl

FORMAT = 1
NAME = "_journal.jsonl"
"""Readers of Parquet folders skip names that begin with an underscore."""


SYNC_SHARE = 0.01
"""The largest part of a job's time that it waits for the disk; a journal synchronizes once a second at most."""
SYNC_SECONDS = 1.0
MOST_FILES = 64
"""Files that are synchronized one by one; of more, the whole file system is."""


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
        self._unsynced: list[str] | None = []  # files of parts since the last synchronization; None: more than named
        self._synced_lines = True
        self._next_sync = 0.0
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
        boot, unsynced = "", set[int]()  # parts since the last line that says that the disk has all
        for number, line in enumerate(content.splitlines(keepends=True)):
            entry = _entry(line)
            if entry is None:
                break
            if not number:
                self._check(head, entry)
            elif "part" in entry:
                if self._is_intact(entry["files"]):
                    self._count(entry["part"], entry["elements"], entry.get("errors", []))
                    unsynced.add(entry["part"])
            elif "boot" in entry:
                self._discard(unsynced)
                boot = entry["boot"]
            elif "synced" in entry:
                unsynced.clear()
            elif "total" in entry:
                self.total = entry["total"]
            complete += len(line)
        if not complete and b"\n" in content:
            raise DataLossError(what="this is not a journal of an output folder", found=str(self._path))
        if complete < len(content):
            os.ftruncate(self._handle, complete)
        if not complete:
            self._append(head)
        if boot != boot_id():
            self._discard(unsynced)
            self._append({"boot": boot_id()})

    def _discard(self, parts: set[int]) -> None:
        """Remove parts whose files a power failure may have taken."""
        for part in parts:
            del self.elements[part]
            self.errors.pop(part, None)
        parts.clear()

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
        self._unsynced = None if self._unsynced is None or not files else self._unsynced + files
        self._synced_lines = False
        if time.monotonic() >= self._next_sync:
            self.sync()

    def _count(self, part: int, elements: int, errors: list[dict[str, Any]]) -> None:
        self.elements[part] = elements
        if errors:
            self.errors[part] = errors

    def sync(self) -> None:
        """Wait until the files of all parts are on the disk, and record it; where the host's starts have an identity.

        raises OSError
        """
        if self._synced_lines or not boot_id():
            return
        start = time.monotonic()
        if self._unsynced is None or len(self._unsynced) > MOST_FILES:
            _synchronize_file_system(self._handle)
        else:
            for name in [*self._unsynced, "."]:
                _synchronize(self.folder / name)
        self._append({"synced": len(self.elements)})
        os.fsync(self._handle)
        self._unsynced, self._synced_lines = [], True
        now = time.monotonic()
        self._next_sync = now + max(SYNC_SECONDS, (now - start) / SYNC_SHARE)

    def finish(self, total: int) -> None:
        """Record the number of all elements. Raises OSError."""
        self.sync()
        if self.total != total:
            self._append({"total": total})
            self.total = total

    def _append(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        while line:  # a signal or a full disk may leave a part of the line, which then does not count
            line = line[os.write(self._handle, line) :]

    def close(self) -> None:
        """Synchronize the files, and unlock the folder."""
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                self.sync()
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


def _synchronize(path: Path) -> None:
    """Write a file or a folder back to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _synchronize_file_system(handle: int) -> None:
    """Write the file system of an open file back to the disk. Raises OSError."""
    if library().syncfs(handle):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
