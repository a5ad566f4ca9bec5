"""The sources that machine code depends on: digests of their files' states and of their contents.

Lives here: `FORMAT`, `sources`, `contents`, `code_generator`, `converter`, `digest_of_file`, `list_sources`.
Not here: the keys that these are parts of (store.py, prebuilt.py, ../plan_cache.py).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator

from ... import core, scalar
from ...core import files
from ...core.forks import once

FORMAT = 2  # of the cache: incremented if the code of an unchanged kernel changes
_CODE = (".py", ".ll")
_GENERATOR = ("target.py", os.path.join("native", "linker.py"), os.path.join("native", "image.py"))
"""The modules that optimize, generate and link the code of a module's text."""


def _folders() -> list[str]:
    """Return the folders of the sources that kernels are compiled from."""
    packages = __name__.rsplit(".", 2)[0], scalar.__name__, core.__name__
    folders = [os.path.dirname(sys.modules[package].__file__ or "") for package in packages]
    return [*folders, os.path.join(folders[-1], os.pardir, "autograph")]  # not imported yet


@once
def sources() -> str:
    """Return a digest of the sources that kernels are compiled from: names, sizes and times of their files."""
    listed: list[str] = []
    for folder in _folders():
        list_sources(folder, listed)
    if not listed:  # Opwright is in an archive: each process compiles its own code
        listed = [os.urandom(32).hex()]
    return files.digest("\0".join(listed).encode())


@once
def contents() -> str | None:
    """Return a digest of the contents of these files, equal on all machines (4 ms); None if they cannot be read."""
    parts: list[bytes] = []
    try:
        for folder in _folders():
            for entry in _walk(folder, _CODE):
                with open(entry.path, "rb") as file:
                    parts += [entry.name.encode(), files.digest(file.read()).encode()]
    except OSError:
        return None
    return files.digest(b"\0".join(parts)) if parts else None


@once
def code_generator() -> str | None:
    """Return a digest of what turns the text of a module into machine code; None if its sources cannot be read.

    It changes less often than the sources that write such texts.
    """
    from llvmlite import __version__

    compiler = os.path.dirname(os.path.dirname(__file__))
    return _digest_of_files((os.path.join(compiler, name) for name in _GENERATOR), __version__.encode())


@once
def converter() -> str | None:
    """Return a digest of what converts the functions of kernels for staging; None if its sources cannot be read."""
    *_, core_folder, autograph = _folders()
    names = [entry.path for entry in _walk(autograph, _CODE)]
    return _digest_of_files([*names, os.path.join(core_folder, "introspection.py")]) if names else None


def _digest_of_files(names: Iterable[str], *parts: bytes) -> str | None:
    """Return a digest of the contents of files and of these parts; None if a file cannot be read."""
    read = [*parts]
    try:
        for name in names:
            with open(name, "rb") as file:
                read.append(file.read())
    except OSError:
        return None
    return files.digest(b"\0".join(read))


def digest_of_file(name: str) -> str | None:
    """Return a digest of a file's content; None if it cannot be read."""
    return _digest_of_files([name])


def list_sources(folder: str, listed: list[str], endings: tuple[str, ...] = _CODE, recursive: bool = True) -> None:
    """Append the names, sizes and times of the sources in a folder, by their endings."""
    for entry in _walk(folder, endings, recursive):
        stat = entry.stat()
        listed.append(f"{entry.name} {stat.st_size} {stat.st_mtime_ns}")


def _walk(folder: str, endings: tuple[str, ...], recursive: bool = True) -> Iterator[os.DirEntry[str]]:
    """Yield the files of a folder with these endings, and those of its folders, in the order of their names."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.name.endswith(endings):
                yield entry
            elif recursive and entry.is_dir() and entry.name != "__pycache__":
                yield from _walk(entry.path, endings)
