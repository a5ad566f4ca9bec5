"""Libraries that were built, kept between processes.

Lives here: `find`, `keep`: a library by its key, as long as the files that it was made of are what they were.
Not here: building (building.py); kernels of models are kept by compiler/cache.py.

A library ends with a digest of the rest, which loaders do not mind: one that is damaged counts as missing and never
gets as far as the loader. Beside it a note names the files that it was made of, each with its digest. Both are replaced
whole, so that processes may share the folder.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from ...core import flags
from ...core.files import replacing

MOST_BYTES = 256 << 20  # then the libraries that were not used for longest go
_DIGEST = hashlib.sha256().digest_size
_NOTE = ".json"


def find(key: str, suffix: str) -> Path | None:
    """The library of that key; None where there is none, it is damaged, or what it was made of has changed."""
    own = [_own_folder()] if _temporary.cache_info().currsize else []
    for folder in (_folder(), *own):
        library, note = folder / f"{key}{suffix}", folder / f"{key}{_NOTE}"
        try:
            made_of = json.loads(note.read_bytes())["made_of"]
            content = library.read_bytes()
            if content[-_DIGEST:] != hashlib.sha256(content[:-_DIGEST]).digest():
                continue
            if all(_digest(path) == digest for path, digest in made_of.items()):
                os.utime(library)
                return library
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue
    return None


def keep(key: str, suffix: str, content: bytes, made_of: Sequence[Path]) -> Path:
    """Write a library. Where that cannot be, it lives in a folder of this process's own; said once."""
    note = json.dumps({"made_of": {os.fspath(path): _digest(os.fspath(path)) for path in made_of}}).encode()
    try:
        return _write(_folder(), key, suffix, content, note)
    except OSError as error:
        warnings.warn(f"compiled operators cannot be kept in {_folder()}: {error}; each process compiles them anew. "
                      "OPWRIGHT_CACHE_DIR names another folder.", RuntimeWarning, stacklevel=5)  # fmt: skip
        return _write(_own_folder(), key, suffix, content, note)


def _write(folder: Path, key: str, suffix: str, content: bytes, note: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"{key}{suffix}"
    with replacing(library) as file:
        file.write(content)
        file.write(hashlib.sha256(content).digest())
    with replacing(folder / f"{key}{_NOTE}") as file:
        file.write(note)
    _shrink(folder, library)
    return library


def _shrink(folder: Path, kept: Path) -> None:
    """Down to the limit, oldest first. A library that is loaded somewhere goes on without its name."""
    found = [(path.stat(), path) for path in folder.iterdir() if path.suffix != _NOTE and path != kept]
    total = sum(stat.st_size for stat, _ in found)
    for stat, path in sorted(found, key=lambda item: item[0].st_mtime):
        if total <= MOST_BYTES:
            break
        for gone in (path, path.with_suffix(_NOTE)):
            with contextlib.suppress(OSError):
                gone.unlink()
        total -= stat.st_size


def _folder() -> Path:
    return Path(flags.cache_dir) / "operators"


@functools.cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="opwright-operators-")


def _own_folder() -> Path:
    return Path(_temporary().name)


def _digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
