"""Cache of built libraries, shared between processes.

Lives here: `find`, `store`: a library by its key, valid as long as its sources are unchanged.
Not here: building (toolchain.py); kernels of models (compiler/cache.py).

A note, under the key, holds the library's name and digest, and the digests of the files that it was built from. The
note is authenticated (core/private_files.py), so a damaged or foreign library, or one of another key, counts as missing
and is never loaded. A library's name contains its digest, since a loader that has loaded a name once does not read the
file again. Both files are replaced atomically: processes may share the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from ...core import flags, forks
from ...core.errors import UnavailableError
from ...core.files import remove_leftovers
from ...core.private_files import PrivateFolder, cache_folder

MOST_BYTES = 256 << 20  # the least recently used libraries beyond this are removed
MOST_LIBRARY, MOST_NOTE = 1 << 31, 1 << 24  # maximum bytes of a file
_NOTE = ".note"
_LIBRARIES = (".so", ".dylib", ".dll")


def find(key: str) -> Path | None:
    """Return the library of a key; None if it is missing, damaged, or its sources have changed."""
    own = [own_folder()] if _temporary is not None else []
    for files in (_folder(), *own):
        folder = files.real()
        if folder is None:
            continue
        try:
            note = json.loads(files.read(f"{key}{_NOTE}", MOST_NOTE) or b"null")
            name = os.path.basename(note["library"])
            if _digest_in(files, name) == note["digest"] and all(_digest(p) == d for p, d in note["made_of"].items()):
                library = Path(folder) / name
                _mark_used(library)
                result: Path | None = library
                return result
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue
    return None


def _mark_used(library: Path) -> None:
    """Record the last use of a library in its access time. Changing its modification time would make processes that
    loaded it load it again (library.py)."""
    os.utime(library, ns=(time.time_ns(), library.stat().st_mtime_ns))


def store(key: str, name: str, content: bytes, made_of: Sequence[Path]) -> Path:
    """Write a library; if that fails, to a folder of this process, with one warning for each library.

    name: prefix and suffix of its file name, for readability
    """
    files = _folder()
    try:
        library = _write(files, key, name, content, made_of)
        if library is not None:
            return library
    except OSError as error:
        warnings.warn(
            f"compiled operators cannot be kept in {files.path}: {error}; each process compiles them again. "
            "OPWRIGHT_CACHE_DIR names another folder.",
            RuntimeWarning,
            stacklevel=5,
        )
    library = _write(own_folder(), key, name, content, made_of)
    if library is None:
        raise UnavailableError(
            what="a library that was built has no folder to be loaded from",
            found=str(own_folder().path),
            wanted="a folder for temporary files that other users cannot change",
            do="TMPDIR=FOLDER, or OPWRIGHT_CACHE_DIR=FOLDER",
        )
    return library


def _write(files: PrivateFolder, key: str, name: str, content: bytes, made_of: Sequence[Path]) -> Path | None:
    """Write a library and its note; return None if the folder is refused. Raises OSError."""
    digest = hashlib.sha256(content).hexdigest()
    stem, suffix = os.path.splitext(name)
    file = f"{stem}-{digest[:16]}-{key[:16]}{suffix}"
    note = {"library": file, "digest": digest, "made_of": {os.fspath(p): _digest(p) for p in made_of}}
    if not (files.write_plain(file, [content]) and files.write(f"{key}{_NOTE}", [json.dumps(note).encode()])):
        return None
    folder = Path(files.real() or "")
    _shrink(folder, folder / file)
    return folder / file


def _shrink(folder: Path, current: Path) -> None:
    """Remove leftovers of killed writers, and the oldest libraries above the size limit.

    A process that has loaded a library does not need its name. There are a few dozen, each built by a compiler, so the
    cost of this is negligible.
    """
    remove_leftovers(folder)
    libraries = [(path.stat(), path) for path in folder.iterdir() if path.suffix in _LIBRARIES and path != current]
    total = sum(stat.st_size for stat, _ in libraries)
    for stat, path in sorted(libraries, key=lambda item: max(item[0].st_atime, item[0].st_mtime)):
        if total <= MOST_BYTES:
            break
        for stale in (path, *folder.glob(f"{path.stem.rsplit('-', 1)[-1]}*{_NOTE}")):
            with contextlib.suppress(OSError):
                stale.unlink()
        total -= stat.st_size


def _folder() -> PrivateFolder:
    return cache_folder(flags.cache_dir, "operators")


_temporary: tempfile.TemporaryDirectory[str] | None = (
    None  # created for the first library that the cache folder refused
)
_lock = forks.lock()


def own_folder() -> PrivateFolder:
    """Return a folder of this process, which is removed at exit."""
    global _temporary
    with _lock:
        if _temporary is None:
            _temporary = tempfile.TemporaryDirectory(prefix="opwright-operators-")
        return cache_folder(Path(_temporary.name))


def _digest_in(files: PrivateFolder, name: str) -> str | None:
    """Return the digest of a library; None if it is missing or refused."""
    handle = files.open(name, MOST_LIBRARY)
    if handle is None:
        return None
    with os.fdopen(handle, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(path: str | os.PathLike[str]) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
