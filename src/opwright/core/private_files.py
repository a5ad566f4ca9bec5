"""Files that a process stores for later processes of the same user, and that no other user can modify.

Lives here: `PrivateFolder`, `fault_of_folder`: which folders are trusted; authenticated files; the user's secret.
Not here: atomic writes (files.py), the contents (compiler/cache.py, lite/native/build_cache.py, ...).

Caches contain machine code, so a user with write access to one can execute code in every process that reads it. The
rules:

* The folder belongs to the user of this process (the effective user), and neither its group nor others may write to it.
* Each folder above it, with links resolved, belongs to that user or to root. Others may write to such a folder only if
it is sticky, such as /tmp, in which no user can rename or remove the files of another one. /tmp/x is accepted if it
belongs to the user and has the permissions 0700. * A missing folder is created with the permissions 0700. * A file is
regular, no link, belongs to the user, is not writable by others, and not larger than its reader permits. * A file
starts with a keyed digest (BLAKE2b) of its name and its bytes, so that damage, a file renamed to another one, and a
file from another source are rejected. The key is `secret` in the root of the cache: 32 random bytes with the
permissions 0600.

On Windows these calls report neither owners nor permissions: there, the folder must lie in the user's profile or be
named by the user; files and digests are checked as elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
import warnings
from collections.abc import Iterable, Sequence

from . import files
from .files import replacing, temporary
from .named_tuples import NamedTuple

MAC_BYTES = files.BYTES
SECRET = "secret"
_POSIX = hasattr(os, "geteuid")
_READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY"))
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

StrPath = str | os.PathLike[str]

_warned: set[str] = set()  # the folders whose rejection was reported


class Fault(NamedTuple):
    """The reason why a folder is not trusted. path: the folder at fault, itself or above; found; do: the remedy."""

    path: str
    found: str
    do: str


def fault_of_folder(folder: str | os.PathLike[str], above: bool = False) -> Fault | None:
    """Return the fault of an existing folder; None for a trusted one. Raises OSError if it does not exist.

    above: check it as a folder above the cache's
    """
    if not _POSIX:
        return None
    path, user = os.path.realpath(folder), os.geteuid()
    current = path
    while True:
        status = os.lstat(current)
        is_cache = current == path and not above
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), current)
        if status.st_uid != user and (is_cache or status.st_uid != 0):
            owners = f"belongs to user {status.st_uid}, and this process is user {user}'s"
            return Fault(current, owners, "name another folder")
        if status.st_mode & _WRITABLE_BY_OTHERS and (is_cache or not status.st_mode & stat.S_ISVTX):
            return Fault(
                current,
                f"can be written to by other users (permissions {stat.S_IMODE(status.st_mode):04o})",
                f"chmod go-w {current}, or name another folder",
            )
        if current == os.path.dirname(current):
            return None
        current = os.path.dirname(current)


class PrivateFolder:
    """A folder of authenticated files.

    path: as given; None for no folder, which contains nothing and stores nothing. root: the folder of the secret,
    `path` itself or above it.
    """

    def __init__(self, path: StrPath | None, root: StrPath | None = None) -> None:
        self.path = None if path is None else os.fspath(path)
        self._root = self.path if root is None else os.fspath(root)
        self._user: int | None = None  # the effective user of the fields below
        self._trusted: str | None = None  # the real path, once the folder has been checked
        self._refused = False
        self._key: bytes | None = None

    # ---- the folder --------------------------------------------------------------------------------------------------

    def real(self, make: bool = False) -> str | None:
        """Return the folder without links on the path; None if it does not exist or is rejected, with one warning.

        make: whether to create it. Raises OSError if that fails.
        """
        if self.path is None:
            if make:
                _warn_once(
                    "",
                    "nothing is cached for later processes: this user has no home directory. "
                    "try OPWRIGHT_CACHE_DIR=FOLDER, a folder that belongs to the user",
                )
            return None
        user = os.geteuid() if _POSIX else 0
        if user != self._user:
            self._user, self._trusted, self._refused, self._key = user, None, False, None
        if self._trusted is not None and (not make or os.path.isdir(self._trusted)):
            return self._trusted
        if self._refused:
            return None
        for folder in dict.fromkeys((self._root or self.path, self.path)):
            if make:
                _make(folder)
            try:
                fault = fault_of_folder(folder)
            except OSError:
                return None
            if fault is not None:
                self._refused = True
                _warn_once(
                    fault.path,
                    f"the cache folder {self.path} is not used: {fault.path} {fault.found}. A user with "
                    "write access to it could execute code in this process. Nothing is cached for later "
                    f"processes. try {fault.do}: OPWRIGHT_CACHE_DIR=FOLDER",
                )
                return None
        self._trusted = os.path.realpath(self.path)
        return self._trusted

    # ---- the secret --------------------------------------------------------------------------------------------------

    def mac(self, name: str, parts: Iterable[bytes | memoryview], make: bool = False) -> bytes | None:
        """Return the keyed digest of a file's name and contents; None if there is no secret yet.

        make: whether to create one. Raises OSError if that fails.
        """
        key = self._secret(make)
        if key is None:
            return None
        return files.mac(key, (name.encode() + b"\0", *parts))

    def _secret(self, make: bool) -> bytes | None:
        if self._root is None or self.real() is None:
            return None
        if self._key is None or make:
            path = os.path.join(os.path.realpath(self._root), SECRET)
            if self._key is None or not os.path.lexists(path):  # the cache was removed
                self._key = _read_secret(path) or (_make_secret(path) if make else None)
        return self._key

    # ---- files -------------------------------------------------------------------------------------------------------

    def open(self, name: str, most_bytes: int) -> int | None:
        """Open a file for reading; return its descriptor, None if it is missing, or rejected and removed.

        most_bytes: a larger file is rejected
        """
        folder = self.real()
        if folder is None:
            return None
        path = os.path.join(folder, name)
        try:
            handle = open_private(path, most_bytes)
        except OSError:
            return None
        if handle is None:
            self.remove(name)
        return handle

    def read(self, name: str, most_bytes: int, touch: bool = False) -> bytes | None:
        """Return the contents that `write` stored; None if the file is missing, or rejected or damaged, and removed.

        touch: whether to update the time of last use
        """
        handle = self.open(name, most_bytes + MAC_BYTES)
        if handle is None:
            return None
        try:
            mac = os.read(handle, MAC_BYTES)
            content = _read_all(handle)
        except OSError:
            return None
        finally:
            os.close(handle)
        if not self.is_authentic(name, mac, [content]):
            self.remove(name)
            return None
        if touch:
            with contextlib.suppress(OSError):
                os.utime(os.path.join(self.real() or "", name))
        return content

    def is_authentic(self, name: str, mac: bytes | memoryview, parts: Iterable[bytes | memoryview]) -> bool:
        """Return whether `mac` is the keyed digest of a file's name and contents."""
        expected = self.mac(name, parts)
        return expected is not None and files.is_mac(mac, expected)

    def write(self, name: str, parts: Sequence[bytes | memoryview], signed: int | None = None) -> bool:
        """Write a file atomically, preceded by its keyed digest; return whether the folder is trusted. Raises OSError.

        signed: the number of parts that the digest covers, for a file that `read` does not read; None for all
        """
        mac = self.mac(name, parts[:signed], make=True) if self.real(make=True) else None
        return mac is not None and self.write_plain(name, [mac, *parts])

    def write_plain(self, name: str, parts: Iterable[bytes | memoryview]) -> bool:
        """Write a file atomically, without a digest; return whether the folder is trusted. Raises OSError."""
        folder = self.real(make=True)
        if folder is None:
            return False
        with replacing(os.path.join(folder, name), mode=0o600) as file:
            for part in parts:
                file.write(part)
        return True

    def remove(self, name: str) -> None:
        """Remove a file, if there is one and the folder is trusted."""
        folder = self.real()
        if folder is not None:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


def open_private(path: str, most_bytes: int) -> int | None:
    """Open a regular file of this user that others cannot write; return its descriptor, None for any other file.

    raises OSError for a file that is missing or cannot be opened
    """
    try:
        handle = os.open(path, _READ)
    except OSError:
        if os.path.islink(path):
            return None
        raise
    status = os.fstat(handle)
    if (
        not stat.S_ISREG(status.st_mode)
        or status.st_size > most_bytes
        or (_POSIX and (status.st_uid != os.geteuid() or status.st_mode & _WRITABLE_BY_OTHERS))
    ):
        os.close(handle)
        return None
    return handle


def _read_all(handle: int) -> bytes:
    """Return the remaining contents of a file. Raises OSError."""
    parts = []
    size = os.fstat(handle).st_size
    while part := os.read(handle, size):  # the last one is empty
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _make(folder: str) -> None:
    """Create a folder and its missing parents, accessible to this user only."""
    if not os.path.isdir(folder):
        parent = os.path.dirname(folder)
        if parent not in ("", folder):
            _make(parent)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise


def _read_secret(path: str) -> bytes | None:
    """Return the secret of a cache; None if it is missing, damaged or readable by others."""
    try:
        handle = open_private(path, MAC_BYTES)
    except OSError:
        return None
    if handle is None:
        return None
    with os.fdopen(handle, "rb") as file:
        if _POSIX and stat.S_IMODE(os.fstat(handle).st_mode) & 0o077:
            return None
        key = file.read(MAC_BYTES)
    return key if len(key) == MAC_BYTES else None


def _make_secret(path: str) -> bytes | None:
    """Create the secret of a cache, or read the one that another process has created meanwhile. Raises OSError."""
    if os.path.lexists(path):
        key = _read_secret(path)  # created since the caller found none, or invalid
        if key is not None:
            return key
        os.unlink(path)
    temporary_path = temporary(path)
    with open(os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(os.urandom(MAC_BYTES))
    try:
        os.link(temporary_path, path)
    except FileExistsError:
        pass
    except (OSError, AttributeError, NotImplementedError):  # a file system without links
        os.replace(temporary_path, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary_path)
    return _read_secret(path)


@functools.cache
def cache_folder(cache_dir: StrPath | None, name: str = "") -> PrivateFolder:
    """Return a folder of the cache in `cache_dir` (the flag of that name); all folders of a cache share one secret."""
    if cache_dir is None:
        return PrivateFolder(None)
    return PrivateFolder(os.path.join(cache_dir, name) if name else cache_dir, cache_dir)


def _warn_once(about: str, text: str) -> None:
    if about not in _warned:
        _warned.add(about)
        warnings.warn(text, RuntimeWarning, stacklevel=5)


def warn_not_kept(what: str, folder: str | None, error: OSError, stacklevel: int) -> None:
    """Warn that machine code cannot be written to its cache. stacklevel: see warnings.warn, counted from here."""
    text = f"{what} cannot be kept in {folder}: {error}; each process compiles them again. "
    warnings.warn(f"{text}OPWRIGHT_CACHE_DIR names another folder.", RuntimeWarning, stacklevel)
