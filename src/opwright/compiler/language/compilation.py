"""The compile entry of all kernels, and the cache of their AutoGraph conversions.

Lives here: `compile_kernel`, `text_of`; `Conversions`, converted functions in the object cache.
Not here: staging a function (trace.py), entry points (entry_points.py, elements.py), the cache of machine code
(../native/store.py), the conversion (autograph/). llvmlite is loaded when a kernel is staged.

Converting a kernel takes as long as staging it. The cache has one object per source file, keyed by everything that a
conversion depends on except the function; within it, functions are keyed by a digest of their code, so that an entry
always matches the code that this process has loaded.
"""

from __future__ import annotations

import contextlib
import importlib.util
import marshal
import sys
import types
from collections.abc import Callable
from typing import Any

from ...core import files, flags
from ...core.lazy_imports import paused
from ..cache import objects
from ..native.image import runs_images
from ..native.source_digest import sources
from ..native.store import LoadedCode, find_module, find_or_make
from ..target import Target, host

Stage = Callable[[Target, bool], Any]
"""A function that stages a kernel: target, whether users' loops poll for signals -> LLVM module."""


def text_of(stage: Stage, target: Target | None = None) -> str:
    """Stage a kernel for this process; return the text of its module. target: by default this processor."""
    with paused():
        return str(stage(target or host(), runs_images()))


def compile_kernel(entry: str, stage: Stage | str, key: tuple[str, str] | None = None) -> LoadedCode:
    """Return the machine code of a kernel for this processor.

    entry: the function of the module to call. stage: stages the kernel, or the text of its module. key: the name and
    constants of one of Opwright's own kernels, which is staged only if it is not cached: keys include digests of the
    sources. Without a key, the instructions are the key, since the dependencies of a user's Python are unknown, and
    the kernel is staged immediately.
    raises the errors of store.find_or_make
    """
    if key is None or isinstance(stage, str):
        return find_module(entry, stage if isinstance(stage, str) else text_of(stage), entry)
    target = host()
    return find_or_make(*key, target, lambda: (text_of(stage, target), entry))


_FORMAT = "conversions 1"
_PLAIN = 2  # marshal's version without references: bytes do not depend on reference counts
Codes = dict[str, types.CodeType]


class Conversions:
    """Converted code of functions of this package. Thread-safe; the last writer of a file's object wins."""

    def __init__(self) -> None:
        self._files: dict[tuple[str | None, str], Codes] = {}
        self._changed: set[tuple[str | None, str]] = set()

    def find(self, code: types.CodeType) -> types.CodeType | None:
        """Return the cached conversion of a function's code, or None."""
        return self._of(code)[1].get(_digest_of(code))

    def keep(self, code: types.CodeType, converted: types.CodeType) -> None:
        """Cache the conversion of a function's code, for the next `write`."""
        key, codes = self._of(code)
        codes[_digest_of(code)] = converted
        self._changed.add(key)

    def write(self) -> None:
        """Write the files that have new conversions."""
        while self._changed:
            key = self._changed.pop()
            folder, filename = key
            objects(folder).keep(_name(filename), marshal.dumps(self._files[key].copy()))

    def _of(self, code: types.CodeType) -> tuple[tuple[str | None, str], Codes]:
        key = flags.cache_dir, code.co_filename
        codes = self._files.get(key)
        if codes is None:
            codes = self._files.setdefault(key, _read(*key))
        return key, codes


def _read(folder: str | None, filename: str) -> Codes:
    data = objects(folder).find(_name(filename))
    if data is not None:
        with contextlib.suppress(EOFError, ValueError, TypeError):  # authentic, but of another format
            codes: Codes = marshal.loads(data)
            return codes
    return {}


def _digest_of(code: types.CodeType) -> str:
    return files.digest(marshal.dumps(code, _PLAIN))


def _name(filename: str) -> str:
    """Return the key of a source file's object."""
    python = sys.implementation.cache_tag or sys.version, importlib.util.MAGIC_NUMBER.hex()
    return files.digest("\0".join((_FORMAT, *python, sources(), filename)).encode())


CONVERSIONS = Conversions()
"""The conversions of this process."""
