"""Atomic writing of files and folders, and removal of temporary files of killed writers.

Lives here: `replacing`, `Replacement`, `replacing_folder`, `remove_leftovers`.
Not here: the contents of files, which files may be trusted (private_files.py).

Everything is written under a temporary name next to its target, `TARGET.tmp-opwright-XXXXXXXX`, and renamed. The writer
holds a lock on the temporary file (flock), which the system releases when the writer dies. A leftover is an unlocked
file of that name and of this user that was not written to for ten minutes; if the file system has no locks, for a day.
The first write to a folder in a process removes the leftovers in it.

The digests `digest`, `mac` and `is_mac` name and authenticate data shared by processes. They are BLAKE2b (RFC 7693),
which supports keys. It is imported from the extension module of `hashlib`: hashlib itself also loads OpenSSL, which
takes longer than reading a model's complete plan. For large contents, hashlib's SHA-256 is twice as fast.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from _operator import _compare_digest  # hmac.compare_digest, without importing hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO

try:
    from _blake2 import blake2b
except ImportError:  # a Python whose digests are all OpenSSL's
    from hashlib import blake2b

BYTES = 32


def digest(content: bytes) -> str:
    """Return the digest of a short content, in hexadecimal."""
    return blake2b(content, digest_size=BYTES).hexdigest()


def mac(key: bytes, parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the keyed digest of consecutive parts."""
    hasher = blake2b(key=key, digest_size=BYTES)
    for part in parts:
        hasher.update(part)
    return hasher.digest()


def is_mac(actual: bytes | memoryview, expected: bytes) -> bool:
    """Return whether two keyed digests are equal, in constant time."""
    return bool(_compare_digest(expected, bytes(actual)))


if sys.platform != "win32":
    import fcntl

_MARK = ".tmp-opwright-"
_TEMPORARY = rf"(?s).+{re.escape(_MARK)}[0-9a-f]{{8}}"
UNLOCKED_SECONDS = 600.0  # locks may be local to one host: a writer on another host still writes periodically
LOCKLESS_SECONDS = 86400.0
_MAX_NAMES = 10_000  # read from a folder in the search for leftovers

_cleaned: set[str] = set()


def temporary(path: str) -> str:
    """Return an unused name next to `path` that identifies a leftover."""
    return f"{path}{_MARK}{os.urandom(4).hex()}"


def _lock(handle: int) -> bool | None:
    """Lock an open file; return whether it was unlocked. None if the file system has no locks."""
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
    """A file that replaces another one once it is complete. Raises OSError.

        new = Replacement(path)
        new.file.write(...)
        new.commit()                # or new.discard()

    file: open for writing. mode: permissions, subject to the umask of the process.
    """

    def __init__(self, path: str | os.PathLike[str], mode: int = 0o666) -> None:
        self.path = os.fspath(path)
        _clean_once(os.path.dirname(self.path) or ".")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        while True:
            self._temporary = temporary(self.path)
            handle = os.open(self._temporary, flags, mode)
            if _lock(handle) is not False and (os.name == "nt" or os.fstat(handle).st_nlink):
                break
            os.close(handle)  # another process removed it as a leftover before it was locked
        self.file: BinaryIO = os.fdopen(handle, "wb")

    def commit(self, sync: bool = False) -> None:
        """Rename the file to its final name.

        sync: wait until the contents are on the disk, so that they survive a power failure. Raises OSError.
        """
        try:
            self.file.flush()
            if sync:
                os.fsync(self.file.fileno())
            if os.name == "nt":  # which renames no open file
                self.file.close()
            os.replace(self._temporary, self.path)
        except BaseException:
            self.discard()
            raise
        self.file.close()

    def discard(self) -> None:
        """Remove the file; does nothing after `commit`."""
        if not self.file.closed or os.name == "nt":
            with contextlib.suppress(OSError):
                self.file.close()
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], sync: bool = False, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` if the context ends without an error and is removed otherwise.

    sync, mode: as for `Replacement`. Raises OSError.
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
    """Create a folder that is renamed to `path` if the context ends without an error and is removed otherwise.

    `path` must not exist, or be an empty folder; otherwise nothing is changed.
    yields the temporary path of the folder. Raises OSError.
    """
    target = os.path.abspath(path)
    _clean_once(os.path.dirname(target))
    temporary_path = temporary(target)
    os.mkdir(temporary_path)
    handle = None
    try:
        with contextlib.suppress(OSError):
            handle = os.open(temporary_path, os.O_RDONLY)  # Windows opens no folders
        if handle is not None:
            _lock(handle)
        yield temporary_path
        with contextlib.suppress(OSError):
            os.rmdir(target)
        os.rename(temporary_path, target)
    finally:
        if handle is not None:
            os.close(handle)
        _remove_tree(temporary_path, ignore_errors=True)


def _clean_once(folder: str) -> None:
    key = os.path.abspath(folder)
    if re.fullmatch(_TEMPORARY, os.path.basename(key)):  # a folder being written
        return
    if key in _cleaned:
        return
    _cleaned.add(key)
    remove_leftovers(key)


def remove_leftovers(folder: str | os.PathLike[str], only_writer: bool = False) -> list[str]:
    """Remove the temporary files and folders that killed writers left in a folder; return their paths.

    only_writer: whether no other process writes to the folder, so that what is not locked is a leftover of any age
    """
    most, least_seconds = (None, 0.0) if only_writer else (_MAX_NAMES, UNLOCKED_SECONDS)
    try:
        with os.scandir(folder) as entries:
            temporary = [e.path for e in islice(entries, most) if re.fullmatch(_TEMPORARY, e.name)]
    except OSError:
        return []
    return [path for path in temporary if _remove_leftover(path, least_seconds)]


def _remove_leftover(path: str, least_seconds: float) -> bool:
    """Remove a temporary file or folder unless its writer may be alive; return whether it was removed.

    least_seconds: the age of one that is not locked
    """
    try:
        status = os.lstat(path)
        age = time.time() - _last_written(path, status)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)) or age < least_seconds:
            return False
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            return False
        handle = None
        if os.name != "nt":
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            locked = None if handle is None else _lock(handle)
            if locked is False or (locked is None and age < LOCKLESS_SECONDS and least_seconds):
                return False
            if stat.S_ISDIR(status.st_mode):
                _remove_tree(path)
            else:
                os.unlink(path)
        finally:
            if handle is not None:
                os.close(handle)
    except OSError:
        return False
    return True


def _last_written(path: str, status: os.stat_result) -> float:
    """Return the time of the last modification of a file, or of a folder and its direct entries."""
    times = [status.st_mtime]
    if stat.S_ISDIR(status.st_mode):
        with os.scandir(path) as entries:
            times += [entry.stat(follow_symlinks=False).st_mtime for entry in entries]
    return max(times)


def _remove_tree(path: str, ignore_errors: bool = False) -> None:
    """Remove a folder with its contents. Raises OSError."""
    from shutil import rmtree  # imports compression modules, 2 ms of `import opwright`

    rmtree(path, ignore_errors=ignore_errors)
