"""The object cache: machine code of kernels, kept between processes.

Lives here: `Objects`: finding, keeping, the limit on its size.  Not here: what is kept (native/).

A file a kernel, named by a digest of all that its code hangs on. It holds the digest of its own bytes, so that one
that is damaged counts as missing and is made anew. Files are replaced whole: processes may share the folder. What is
large is kept in two parts: only the head has that digest, and the body is mapped. Whether that is whole its reader
finds out, once: beside it lies the state of the file that was looked at.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import mmap
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..core.files import replacing

SUFFIX, SEEN = ".kernel", ".seen"
MOST_BYTES = 1 << 30  # then the files that were not used for longest go, down to three quarters
PAGE = 4096
_DIGEST = hashlib.sha256().digest_size


class Mapped(NamedTuple):
    """An object in two parts. checked: whether all of it was looked at since its file was touched; else only the head
    was. state: of the file, by which that is known."""

    head: memoryview
    body: memoryview
    checked: bool
    state: bytes


def _state(stat: os.stat_result) -> bytes:
    return f"{stat.st_dev} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}".encode()


class Objects:
    """The folder of objects. `find` and `keep` take a digest in hexadecimal."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder, self.most_bytes = folder, most_bytes
        self._told = False

    def find(self, digest: str) -> bytes | None:
        """The object of that digest; None where there is no whole one."""
        path = self.folder / f"{digest}{SUFFIX}"
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if len(content) <= _DIGEST or hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
            self.drop(digest)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return content[_DIGEST:]

    def keep(self, digest: str, code: bytes) -> None:
        """Write an object; where that cannot be, say so once and go on."""
        self._write(digest, (hashlib.sha256(code).digest(), code))

    def find_mapped(self, digest: str) -> Mapped | None:
        """The object of that digest that `keep_mapped` wrote; None where there is none, or its head is not whole."""
        path = self.folder / f"{digest}{SUFFIX}"
        try:
            with path.open("rb") as file:
                seen = _state(os.fstat(file.fileno()))
                mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError):  # ValueError: it is empty
            return None
        try:
            checked = self._seen(digest).read_bytes() == seen
        except OSError:
            checked = False
        size = int.from_bytes(mapped[_DIGEST : _DIGEST + 8], "little")
        head = mapped[_DIGEST + 8 : _DIGEST + 8 + size]
        if not checked and (len(head) != size or hashlib.sha256(head).digest() != mapped[:_DIGEST]):
            self.drop(digest)
            return None
        if checked:
            with contextlib.suppress(OSError):
                os.utime(self._seen(digest))
        return Mapped(head, mapped[-(-(_DIGEST + 8 + size) // PAGE) * PAGE :], checked, seen)

    def trust(self, digest: str, found: Mapped) -> None:
        """Remember that all of an object was looked at, until its file is touched."""
        with contextlib.suppress(OSError), replacing(self._seen(digest)) as file:
            file.write(found.state)

    def _seen(self, digest: str) -> Path:
        return self.folder / f"{digest}{SEEN}"

    def keep_mapped(self, digest: str, head: bytes, body: Iterable[bytes | memoryview]) -> None:
        """Write an object in two parts; the body starts on a page."""
        start = hashlib.sha256(head).digest() + len(head).to_bytes(8, "little") + head
        self._write(digest, (start, bytes(-len(start) % PAGE), *body))

    def drop(self, digest: str) -> None:
        """Forget an object that was found to be damaged."""
        for suffix in (SUFFIX, SEEN):
            with contextlib.suppress(OSError):
                (self.folder / f"{digest}{suffix}").unlink()

    def _write(self, digest: str, parts: Iterable[bytes | memoryview]) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.folder / f"{digest}{SUFFIX}") as file:
                for part in parts:
                    file.write(part)
            self._shrink()
        except OSError as error:
            if not self._told:
                self._told = True
                warnings.warn(f"compiled kernels cannot be kept in {self.folder}: {error}; each process compiles "
                              "them anew. OPWRIGHT_CACHE_DIR names another folder.",
                              RuntimeWarning, stacklevel=2)  # fmt: skip

    def _shrink(self) -> None:
        sizes: dict[str, int] = {}
        used: dict[str, float] = {}
        with os.scandir(self.folder) as entries:
            for e in entries:
                digest, suffix = os.path.splitext(e.name)
                if suffix in (SUFFIX, SEEN):
                    stat = e.stat()
                    sizes[digest] = sizes.get(digest, 0) + stat.st_size
                    used[digest] = max(used.get(digest, 0.0), stat.st_mtime)
        total = sum(sizes.values())
        if total <= self.most_bytes:
            return
        for digest in sorted(sizes, key=used.__getitem__):
            if total <= self.most_bytes * 3 // 4:
                break
            self.drop(digest)
            total -= sizes[digest]


@functools.cache
def objects(folder: Path) -> Objects:
    """The objects in a cache folder."""
    return Objects(folder / "kernels")
