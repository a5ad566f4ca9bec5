"""Files and folders that are written whole or not at all, and what killed writers leave behind.

Lives here: `replacing`, `Replacement`, `replacing_folder`, `remove_leftovers`.
Not here: what is in the files, which files may be trusted (private_files.py).

Everything is written under a temporary name next to its target, `TARGET.tmp-opwright-XXXXXXXX`, and renamed. The
writer holds a lock on the temporary file (flock), which the system releases when the writer dies. A leftover is a file
of that name, of this user, that nobody has a lock on and that was not written to for ten minutes; where the file
system has no locks, for a day. The first write to a folder in a process removes the leftovers it finds there.

Digests, `digest`, `mac` and `is_mac`, name and authenticate what is kept between processes: BLAKE2b (RFC 7693), which
takes a key of itself. It comes from where `hashlib` has it: that module loads OpenSSL, too, which takes longer than
reading all of a model's plan. For large contents hashlib's SHA-256 is twice as fast.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from _operator import _compare_digest  # what hmac.compare_digest is, without hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO

try:
    from _blake2 import blake2b
except ImportError:  # a Python that has all its digests from OpenSSL
    from hashlib import blake2b

BYTES = 32


def digest(content: bytes) -> str:
    """The digest of a short content, in hexadecimal."""
    return blake2b(content, digest_size=BYTES).hexdigest()


def mac(key: bytes, parts: Iterable[bytes | memoryview]) -> bytes:
    """The keyed digest of parts that follow one another."""
    made = blake2b(key=key, digest_size=BYTES)
    for part in parts:
        made.update(part)
    return made.digest()


def is_mac(found: bytes | memoryview, wanted: bytes) -> bool:
    """Whether two keyed digests are equal, in a time that does not tell where they differ."""
    return bool(_compare_digest(wanted, found))


if sys.platform != "win32":
    import fcntl

_MARK = ".tmp-opwright-"
_TEMPORARY = rf"(?s).+{re.escape(_MARK)}[0-9a-f]{{8}}"
UNLOCKED_SECONDS = 600.0  # file systems may keep locks to one host: a writer on another one still writes now and then
LOCKLESS_SECONDS = 86400.0
_MOST_NAMES = 10_000  # read of a folder when its leftovers are looked for

_cleaned: set[str] = set()


def temporary(path: str) -> str:
    """A name next to `path` that nobody uses, by which a leftover is known."""
    return f"{path}{_MARK}{os.urandom(4).hex()}"


def _lock(handle: int) -> bool | None:
    """Lock an open file; whether nobody else has it locked. None where the file system has no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


class Replacement:
    """A file that takes the place of another one once it is complete. Raises OSError.

        new = Replacement(path)
        new.file.write(...)
        new.commit()                # or new.discard()

    file: open for writing. mode: permissions, less those that the process masks.
    """

    def __init__(self, path: str | os.PathLike[str], mode: int = 0o666) -> None:
        self.path = os.fspath(path)
        _clean_once(os.path.dirname(self.path) or ".")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        while True:
            self._inside = temporary(self.path)
            handle = os.open(self._inside, flags, mode)
            if _lock(handle) is not False and (os.name == "nt" or os.fstat(handle).st_nlink):
                break
            os.close(handle)  # somebody took it for a leftover before it was locked
        self.file: BinaryIO = os.fdopen(handle, "wb")

    def commit(self, sync: bool = False) -> None:
        """Give the file its name.

        sync: wait until the contents are on the disk, so that they outlast a loss of power. Raises OSError.
        """
        try:
            self.file.flush()
            if sync:
                os.fsync(self.file.fileno())
            if os.name == "nt":  # which renames no open file
                self.file.close()
            os.replace(self._inside, self.path)
        except BaseException:
            self.discard()
            raise
        self.file.close()

    def discard(self) -> None:
        """Remove the file; nothing happens after `commit`."""
        if not self.file.closed or os.name == "nt":
            with contextlib.suppress(OSError):
                self.file.close()
            with contextlib.suppress(OSError):
                os.unlink(self._inside)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], sync: bool = False, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file to write, which takes the place of `path` when the `with` ends well and vanishes otherwise.

    sync, mode: as of `Replacement`. Raises OSError.
    """
    new = Replacement(path, mode)
    try:
        yield new.file
    except BaseException:
        new.discard()
        raise
    new.commit(sync)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[str]:
    """Make a folder to fill, which gets the name `path` when the `with` ends well and vanishes otherwise.

    Nothing, or an empty folder, has that name before; where that is not so then, nothing is changed.
    yields the folder's path meanwhile. Raises OSError.
    """
    target = os.path.abspath(path)
    _clean_once(os.path.dirname(target))
    inside = temporary(target)
    os.mkdir(inside)
    handle = None
    try:
        with contextlib.suppress(OSError):
            handle = os.open(inside, os.O_RDONLY)  # Windows opens no folders
        if handle is not None:
            _lock(handle)
        yield inside
        with contextlib.suppress(OSError):
            os.rmdir(target)
        os.rename(inside, target)
    finally:
        if handle is not None:
            os.close(handle)
        _remove_tree(inside, ignore_errors=True)


def _clean_once(folder: str) -> None:
    key = os.path.abspath(folder)
    if re.fullmatch(_TEMPORARY, os.path.basename(key)):  # a folder that is being filled
        return
    if key in _cleaned:
        return
    _cleaned.add(key)
    remove_leftovers(key)


def remove_leftovers(folder: str | os.PathLike[str]) -> list[str]:
    """Remove the temporary files and folders that killed writers left in a folder; return their paths."""
    try:
        with os.scandir(folder) as entries:
            temporary = [e.path for e in islice(entries, _MOST_NAMES) if re.fullmatch(_TEMPORARY, e.name)]
    except OSError:
        return []
    return [path for path in temporary if _remove_leftover(path)]


def _remove_leftover(path: str) -> bool:
    """Remove a temporary file or folder unless its writer may be alive; whether it was removed."""
    try:
        found = os.lstat(path)
        quiet = time.time() - _last_written(path, found)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)) or quiet < UNLOCKED_SECONDS:
            return False
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            return False
        handle = None
        if os.name != "nt":
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            locked = None if handle is None else _lock(handle)
            if locked is False or (locked is None and quiet < LOCKLESS_SECONDS):
                return False
            if stat.S_ISDIR(found.st_mode):
                _remove_tree(path)
            else:
                os.unlink(path)
        finally:
            if handle is not None:
                os.close(handle)
    except OSError:
        return False
    return True


def _last_written(path: str, found: os.stat_result) -> float:
    """When a file, or what a folder directly has, was last changed."""
    times = [found.st_mtime]
    if stat.S_ISDIR(found.st_mode):
        with os.scandir(path) as entries:
            times += [entry.stat(follow_symlinks=False).st_mtime for entry in entries]
    return max(times)


def _remove_tree(path: str, ignore_errors: bool = False) -> None:
    """Remove a folder with all that is in it. Raises OSError."""
    from shutil import rmtree  # with the compressions that it knows, 2 ms of `import opwright`

    rmtree(path, ignore_errors=ignore_errors)
