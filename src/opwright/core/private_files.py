"""Files that this process writes for later processes of the same user, and that nobody else can have changed.

Lives here: `PrivateFolder`, `fault_of_folder`: which folders are trusted; authenticated files; the user's secret.
Not here: writing files whole (files.py), what is in them (compiler/cache.py, lite/native/build_cache.py, ...).

Caches hold machine code, so whoever can write to one can run code in every process that reads it. The rule:

* The folder belongs to the user of this process (the effective user), and neither its group nor others may write to it.
* Each folder above it, links resolved, belongs to that user or to root. Others may write to such a folder only if it
  is sticky, as /tmp is: there nobody renames or removes what belongs to somebody else. /tmp/x is fine if it is the
  user's own and has the permissions 0700.
* A missing folder is made with the permissions 0700.
* A file is regular, no link, belongs to the user, is not writable by others, and not larger than its reader allows.
* A file starts with a keyed digest (BLAKE2b) of its name and its bytes, so neither damage, nor one file under the
  name of another, nor a file that was put there from outside is ever taken. The key is `secret` in the root of the
  cache: 32 random bytes with the permissions 0600.

Windows tells neither owners nor permissions by these calls: there the rule is that the folder lies in the user's
profile or was named by the user; files and digests are checked as elsewhere.
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

_told: set[str] = set()  # the folders of which a warning told that they are not used


class Fault(NamedTuple):
    """Why a folder is not trusted. path: the folder at fault, itself or above; found; do: what to do about it."""

    path: str
    found: str
    do: str


def fault_of_folder(folder: str | os.PathLike[str], above: bool = False) -> Fault | None:
    """What is wrong with a folder that exists; None for one that is trusted. Raises OSError if there is none.

    above: judge it as a folder above the cache's
    """
    if not _POSIX:
        return None
    path, user = os.path.realpath(folder), os.geteuid()
    at = path
    while True:
        found = os.lstat(at)
        own = at == path and not above
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), at)
        if found.st_uid != user and (own or found.st_uid != 0):
            owners = f"belongs to user {found.st_uid}, and this process is user {user}'s"
            return Fault(at, owners, "name another folder")
        if found.st_mode & _WRITABLE_BY_OTHERS and (own or not found.st_mode & stat.S_ISVTX):
            return Fault(
                at,
                f"can be written to by other users (permissions {stat.S_IMODE(found.st_mode):04o})",
                f"chmod go-w {at}, or name another folder",
            )
        if at == os.path.dirname(at):
            return None
        at = os.path.dirname(at)


class PrivateFolder:
    """A folder of authenticated files.

    path: as it was named; None for no folder, in which nothing is found or kept. root: the folder that holds the
    secret, `path` itself or above it.
    """

    def __init__(self, path: StrPath | None, root: StrPath | None = None) -> None:
        self.path = None if path is None else os.fspath(path)
        self._root = self.path if root is None else os.fspath(root)
        self._user: int | None = None  # the effective user that the fields below are for
        self._trusted: str | None = None  # where the folder really is, once it was found to be trusted
        self._refused = False
        self._key: bytes | None = None

    # ---- the folder --------------------------------------------------------------------------------------------------

    def real(self, make: bool = False) -> str | None:
        """The folder without links on the way; None if it does not exist or is refused, of which one warning tells.

        make: whether to make it. Raises OSError if that fails.
        """
        if self.path is None:
            if make:
                _warn_once(
                    "",
                    "nothing is kept for later processes: this user has no home directory. "
                    "try OPWRIGHT_CACHE_DIR=FOLDER, a folder of the user's own",
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
                    f"the cache folder {self.path} is not used: {fault.path} {fault.found}. Whoever "
                    "can write there could have this process run other code. Nothing is kept for later "
                    f"processes. try {fault.do}: OPWRIGHT_CACHE_DIR=FOLDER",
                )
                return None
        self._trusted = os.path.realpath(self.path)
        return self._trusted

    # ---- the secret --------------------------------------------------------------------------------------------------

    def mac(self, name: str, parts: Iterable[bytes | memoryview], make: bool = False) -> bytes | None:
        """The keyed digest of a file's name and contents; None where there is no secret yet.

        make: whether to make one. Raises OSError if that fails.
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
            if self._key is None or not os.path.lexists(path):  # somebody has removed the cache
                self._key = _read_secret(path) or (_make_secret(path) if make else None)
        return self._key

    # ---- files -------------------------------------------------------------------------------------------------------

    def open(self, name: str, most_bytes: int) -> int | None:
        """A descriptor of a file to read; None if it is missing, or refused and removed.

        most_bytes: a larger file is refused
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
        """What `write` wrote under a name; None if it is missing, or refused or damaged, and removed.

        touch: whether to note that the file was used just now
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
        """Whether `mac` is the keyed digest of a file's name and contents."""
        wanted = self.mac(name, parts)
        return wanted is not None and files.is_mac(mac, wanted)

    def write(self, name: str, parts: Sequence[bytes | memoryview], signed: int | None = None) -> bool:
        """Write a file whole, its keyed digest first; whether the folder is trusted. Raises OSError.

        signed: how many of the parts the digest covers, for a file that `read` does not read; None for all
        """
        mac = self.mac(name, parts[:signed], make=True) if self.real(make=True) else None
        return mac is not None and self.write_plain(name, [mac, *parts])

    def write_plain(self, name: str, parts: Iterable[bytes | memoryview]) -> bool:
        """Write a file whole and without a digest; whether the folder is trusted. Raises OSError."""
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
    """A descriptor to read a regular file of this user that others cannot write; None for anything else.

    raises OSError for a file that is missing or cannot be opened
    """
    try:
        handle = os.open(path, _READ)
    except OSError:
        if os.path.islink(path):
            return None
        raise
    found = os.fstat(handle)
    if (
        not stat.S_ISREG(found.st_mode)
        or found.st_size > most_bytes
        or (_POSIX and (found.st_uid != os.geteuid() or found.st_mode & _WRITABLE_BY_OTHERS))
    ):
        os.close(handle)
        return None
    return handle


def _read_all(handle: int) -> bytes:
    """The rest of a file. Raises OSError."""
    parts = []
    size = os.fstat(handle).st_size
    while part := os.read(handle, size):  # the last one is empty
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _make(folder: str) -> None:
    """Make a folder and those above it for this user alone."""
    if not os.path.isdir(folder):
        above = os.path.dirname(folder)
        if above not in ("", folder):
            _make(above)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise


def _read_secret(path: str) -> bytes | None:
    """The secret of a cache; None if it is missing, damaged or others could read it."""
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
    """Make the secret of a cache, or read the one that another process has made meanwhile. Raises OSError."""
    if os.path.lexists(path):  # what is there is no secret
        os.unlink(path)
    inside = temporary(path)
    with open(os.open(inside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(os.urandom(MAC_BYTES))
    try:
        os.link(inside, path)
    except FileExistsError:
        pass
    except (OSError, AttributeError, NotImplementedError):  # a file system without links
        os.replace(inside, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(inside)
    return _read_secret(path)


@functools.cache
def cache_folder(cache_dir: StrPath | None, name: str = "") -> PrivateFolder:
    """A folder of the cache in `cache_dir` (the switch of that name); every one of a cache has the same secret."""
    if cache_dir is None:
        return PrivateFolder(None)
    return PrivateFolder(os.path.join(cache_dir, name) if name else cache_dir, cache_dir)


def _warn_once(about: str, text: str) -> None:
    if about not in _told:
        _told.add(about)
        warnings.warn(text, RuntimeWarning, stacklevel=5)
