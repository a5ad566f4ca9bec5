"""The object cache: machine code of kernels, kept between processes.

Lives here: `Objects`: lookup, storage, the limit on its size.
Not here: the contents of objects (native/), which folders and files are trusted (../core/private_files.py).

Each file is named by a digest of everything that its contents depend on, and is authenticated by a keyed digest of that
name and the contents, so that a damaged or foreign file counts as missing and is written again. Files are replaced
whole: processes may share the folder. Large objects have two parts, a head and a body that is mapped. The body is
verified once for each state of the file: an authenticated note next to it holds the state in which it was verified.

The folder is swept each time that its processes have together written a sixteenth of its limit: each write appends one
byte per written unit to a file. A sweep removes the temporary files of killed writers and, above the limit, the least
recently used objects, down to three quarters.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import re
import time

from ..core.files import LOCKLESS_SECONDS, remove_leftovers
from ..core.named_tuples import NamedTuple
from ..core.private_files import MAC_BYTES, PrivateFolder, cache_folder, warn_not_kept

SUFFIX, SEEN, WRITTEN = ".kernel", ".seen", "written"
MOST_BYTES = 1 << 30
MOST_CODE = 1 << 26  # bytes of an object in one part
MOST_MAPPED = 1 << 29
PAGE = 4096
_LENGTH = 8
_HEADS_AT = 2 * MAC_BYTES + _LENGTH
_UNITS = 1 << 14  # of the limit
_UNITS_A_SWEEP = _UNITS // 16
_OLD_LEFTOVER = r"[0-9a-f]+(\.kernel|\.seen)\.tmp-[0-9a-f]{8}"  # of versions up to 0.9


class Mapped(NamedTuple):
    """An object in two parts. checked: whether head and body were verified in this state of the file, otherwise only
    the head; state: of the file; mac: of the body."""

    head: memoryview
    body: memoryview
    checked: bool
    state: bytes
    mac: memoryview


def file_state(stat: os.stat_result) -> str:
    """Return a text that changes whenever the file is written or replaced."""
    return f"{stat.st_dev} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"


class Objects:
    """The objects in a folder. `find` and `keep` take a digest in hexadecimal."""

    def __init__(self, files: PrivateFolder, most_bytes: int = MOST_BYTES) -> None:
        self.files, self.most_bytes = files, most_bytes
        self._told = False

    def find(self, digest: str) -> bytes | None:
        """Return the object of a digest, or None if it is missing or damaged."""
        return self.files.read(f"{digest}{SUFFIX}", MOST_CODE, touch=True)

    def keep(self, digest: str, code: bytes) -> None:
        """Write an object; warn once if that fails."""
        if len(code) <= MOST_CODE:
            self._write(digest, [code])

    def find_mapped(self, digest: str) -> Mapped | None:
        """Return the object of a digest written by `keep_mapped`, or None if it is missing or its head is damaged."""
        name = f"{digest}{SUFFIX}"
        handle = self.files.open(name, MOST_MAPPED)
        if handle is None:
            return None
        try:
            state = file_state(os.fstat(handle)).encode()
            mapped = memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError):  # ValueError: it is empty
            return None
        finally:
            os.close(handle)
        checked = self.files.read(f"{digest}{SEEN}", len(state), touch=True) == state
        size = int.from_bytes(mapped[_HEADS_AT - _LENGTH : _HEADS_AT], "little")
        head = mapped[_HEADS_AT : _HEADS_AT + size]
        signed = mapped[MAC_BYTES : _HEADS_AT + size]
        if not checked and (len(head) != size or not self.files.is_authentic(name, mapped[:MAC_BYTES], [signed])):
            self.drop(digest)
            return None
        body = mapped[-(-(_HEADS_AT + size) // PAGE) * PAGE :]
        return Mapped(head, body, checked, state, mapped[MAC_BYTES : 2 * MAC_BYTES])

    def verify(self, digest: str, mapped: Mapped) -> bool:
        """Return whether an object's body is authentic; the result is stored until its file changes."""
        if not mapped.checked:
            if not self.files.is_authentic(f"{digest}{SUFFIX} body", mapped.mac, [mapped.body]):
                return False
            with contextlib.suppress(OSError):
                self.files.write(f"{digest}{SEEN}", [mapped.state])
        return True

    def keep_mapped(self, digest: str, head: bytes, body: bytes | memoryview) -> None:
        """Write an object in two parts; the body starts on a page."""
        try:
            mac = self.files.mac(f"{digest}{SUFFIX} body", [body], make=True) if self.files.real(make=True) else None
        except OSError as error:
            self._warn(error)
            return
        if mac is not None and len(head) + memoryview(body).nbytes + 2 * PAGE <= MOST_MAPPED:
            start = mac + len(head).to_bytes(_LENGTH, "little") + head
            self._write(digest, [start, bytes(-(MAC_BYTES + len(start)) % PAGE), body], signed=1)

    def drop(self, digest: str) -> None:
        """Remove a damaged object."""
        for suffix in (SUFFIX, SEEN):
            self.files.remove(f"{digest}{suffix}")

    def _write(self, digest: str, parts: list[bytes | memoryview], signed: int | None = None) -> None:
        """Write an object; warn once if that fails. signed: number of parts that the keyed digest covers; None for
        all."""
        try:
            if self.files.write(f"{digest}{SUFFIX}", parts, signed):
                self._count(sum(memoryview(part).nbytes for part in parts))
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._told:
            self._told = True
            warn_not_kept("compiled kernels", self.files.path, error, stacklevel=4)

    def _count(self, size: int) -> None:
        """Count written bytes, and sweep the folder when they reach the limit. Raises OSError."""
        folder = self.files.real()
        if folder is None:
            return
        units = -(-size // max(1, self.most_bytes // _UNITS))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(os.path.join(folder, WRITTEN), flags, 0o600)
        try:
            os.write(handle, bytes(units))
            full = os.fstat(handle).st_size > _UNITS_A_SWEEP
            if full:
                os.ftruncate(handle, 0)
        finally:
            os.close(handle)
        if full:
            self.sweep(folder)

    def sweep(self, folder: str) -> None:
        """Remove the least recently used objects if the limit is exceeded, and leftovers of killed writers. Raises
        OSError."""
        remove_leftovers(folder)
        sizes: dict[str, int] = {}
        used: dict[str, float] = {}
        with os.scandir(folder) as entries:
            for e in entries:
                digest, suffix = os.path.splitext(e.name)
                if suffix in (SUFFIX, SEEN) or re.fullmatch(_OLD_LEFTOVER, e.name):
                    try:
                        stat = e.stat(follow_symlinks=False)
                    except OSError:  # another process has removed it
                        continue
                    if suffix not in (SUFFIX, SEEN):
                        if time.time() - stat.st_mtime > LOCKLESS_SECONDS:
                            self.files.remove(e.name)
                        continue
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
def objects(folder: str | None) -> Objects:
    """Return the objects in a cache folder."""
    return Objects(cache_folder(folder, "kernels"))
