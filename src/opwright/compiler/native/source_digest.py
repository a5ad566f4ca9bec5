"""Digests of the sources that machine code depends on, and texts of LLVM next to these modules.

Lives here: `sources`, `list_sources`, `read_text`.  Not here: the digest of a kernel (store.py).
"""

from __future__ import annotations

import contextlib
import os
import sys

from ... import core, scalar
from ...core import files
from ...core.forks import once


@once
def sources() -> str:
    """Return a digest of the sources that kernels are compiled from: names, sizes and times of their files."""
    listed: list[str] = []
    for package in (__package__.rpartition(".")[0], scalar.__name__, core.__name__):
        list_sources(os.path.dirname(sys.modules[package].__file__ or ""), listed)
    list_sources(os.path.join(os.path.dirname(core.__file__ or ""), os.pardir, "autograph"), listed)  # not imported yet
    if not listed:  # Opwright is in an archive: each process compiles its own code
        listed = [os.urandom(32).hex()]
    return files.digest("\0".join(listed).encode())


def read_text(name: str) -> str:
    """Return a text of LLVM next to this module."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()


def list_sources(folder: str, listed: list[str], endings: tuple[str, ...] = (".py", ".ll")) -> None:
    """Append the names, sizes and times of the sources in a folder, by their endings."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.name.endswith(endings):
                stat = entry.stat()
                listed.append(f"{entry.name} {stat.st_size} {stat.st_mtime_ns}")
            elif entry.is_dir() and entry.name != "__pycache__":
                list_sources(entry.path, listed, endings)
