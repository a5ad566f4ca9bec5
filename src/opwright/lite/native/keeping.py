"""Libraries that were built, kept between processes.

Lives here: `find`, `keep`: a library by its key, as long as the files that it was made of are what they were.
Not here: building (building.py); kernels of models are kept by compiler/cache.py.

A note, under the key, says which library it is, its digest, and the digests of the files that it was made of: one that
is damaged counts as missing and never gets as far as the loader. A library's name has its content in it, since a loader
that has loaded a name once does not look at the file again. Both are replaced whole: processes may share the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from ...core import flags, forks
from ...core.files import replacing

MOST_BYTES = 256 << 20  # then the libraries that were not used for longest go
_NOTE = ".json"


def find(key: str) -> Path | None:
    """The library of that key; None where there is none, it is damaged, or what it was made of has changed."""
    own = [Path(_temporary.name)] if _temporary is not None else []
    for folder in (_folder(), *own):
        try:
            note = json.loads((folder / f"{key}{_NOTE}").read_bytes())
            library = folder / os.path.basename(note["library"])
            if _digest(library) == note["digest"] and all(_digest(p) == d for p, d in note["made_of"].items()):
                os.utime(library)
                return library
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue
    return None


def keep(key: str, name: str, content: bytes, made_of: Sequence[Path]) -> Path:
    """Write a library. Where that cannot be, it lives in a folder of this process's own; said once a library.

    name: how its file's begins and ends, for people to know it by
    """
    try:
        return _write(_folder(), key, name, content, made_of)
    except OSError as error:
        warnings.warn(f"compiled operators cannot be kept in {_folder()}: {error}; each process compiles them anew. "
                      "OPWRIGHT_CACHE_DIR names another folder.", RuntimeWarning, stacklevel=5)  # fmt: skip
        return _write(_own_folder(), key, name, content, made_of)


def _write(folder: Path, key: str, name: str, content: bytes, made_of: Sequence[Path]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(content).hexdigest()
    stem, suffix = os.path.splitext(name)
    library = folder / f"{stem}-{digest[:16]}-{key[:16]}{suffix}"
    note = {"library": library.name, "digest": digest, "made_of": {os.fspath(p): _digest(p) for p in made_of}}
    with replacing(library) as file:
        file.write(content)
    with replacing(folder / f"{key}{_NOTE}") as file:
        file.write(json.dumps(note).encode())
    _shrink(folder, library)
    return library


def _shrink(folder: Path, kept: Path) -> None:
    """Down to the limit, oldest first. A library that is loaded somewhere goes on without its name."""
    found = [(path.stat(), path) for path in folder.iterdir() if path.suffix != _NOTE and path != kept]
    total = sum(stat.st_size for stat, _ in found)
    for stat, path in sorted(found, key=lambda item: item[0].st_mtime):
        if total <= MOST_BYTES:
            break
        for gone in (path, *folder.glob(f"{path.stem.rsplit('-', 1)[-1]}*{_NOTE}")):
            with contextlib.suppress(OSError):
                gone.unlink()
        total -= stat.st_size


def _folder() -> Path:
    return Path(flags.cache_dir) / "operators"


_temporary: tempfile.TemporaryDirectory[str] | None = None  # once something is kept that the cache folder did not take
_lock = forks.lock()


def _own_folder() -> Path:
    global _temporary
    with _lock:
        if _temporary is None:
            _temporary = tempfile.TemporaryDirectory(prefix="opwright-operators-")
        return Path(_temporary.name)


def _digest(path: str | os.PathLike[str]) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
