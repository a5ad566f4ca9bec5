"""Built libraries in the object cache: the same model with the same settings is built once.

Lives here: `BuiltFiles`, `digest_of_build`, `find_build`, `keep_build`. Not here: building (libraries.py), the cache
(compiler/cache.py).

A build depends on the model's bytes, the settings, the version and the sources of Opwright. Models with custom
operators are built each time, as the code of these may change; so is one whose code or graphs are to be shown.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import NamedTuple

from ..compiler import plan_cache, tuning
from ..compiler.cache import objects
from ..compiler.native.sources import list_sources
from ..core import __version__, flags
from ..core.files import digest
from ..lite.format import Model
from .archives import archive_of

_HEAD = 8
"""Bytes of the length of the header."""


class BuiltFiles(NamedTuple):
    """The files of a library and its sizes. files: contents by path; functions: the global ones; archive, object_name:
    the static library, which is made of an object file, empty without one; arena, state, code, weights: as of
    `Library`."""

    files: dict[str, bytes]
    functions: list[str]
    archive: str
    object_name: str
    arena: int
    state: int
    code: int
    weights: int


def digest_of_build(content: bytes, *settings: object) -> str | None:
    """Return the name of a build in the cache; None for one that is not cached. content: of the model's file."""
    if flags.show or any(code.custom_code for code in Model.read(content).operator_codes or ()):
        return None
    sources: list[str] = []
    list_sources(os.path.dirname(__file__), sources)
    own = digest("\0".join(sources).encode())
    key = f"library {hashlib.sha256(content).hexdigest()} {settings!r} {__version__} {own}"
    return plan_cache.digest_of(plan_cache.key_with_modes(key, tuning.is_on()))


def find_build(name: str) -> BuiltFiles | None:
    """Return a build from the cache, None if it is missing."""
    data = objects(flags.cache_dir).find(name)
    if data is None:
        return None
    start = _HEAD + int.from_bytes(data[:_HEAD], "little")
    notes = json.loads(data[_HEAD:start])
    files: dict[str, bytes] = {}
    for path, size in notes.pop("sizes"):
        files[path] = data[start : start + size]
        start += size
    if notes["archive"]:
        code = files[notes["object_name"]]
        files[notes["archive"]] = archive_of(members_of(code, notes["functions"]))
    return BuiltFiles(files, **notes)


def keep_build(name: str, built: BuiltFiles) -> None:
    """Write a build to the cache: all files but for the archive, unless they are more than 64 MiB."""
    parts = [(path, content if path != built.archive else b"") for path, content in built.files.items()]
    notes = built._asdict() | {"sizes": [(path, len(content)) for path, content in parts]}
    del notes["files"]
    head = json.dumps(notes).encode()
    objects(flags.cache_dir).keep(
        name, b"".join((len(head).to_bytes(_HEAD, "little"), head, *(content for _, content in parts)))
    )


def members_of(code: bytes, functions: Sequence[str]) -> list[tuple[str, bytes, list[str]]]:
    """Return the members of a library's archive, as of `archive_of`."""
    return [("library.o", code, [*functions])]
