"""Kernels as AutoGraph converts them, kept between processes: to convert one takes as long as to stage it.

Lives here: `Conversions`, which keeps them in the object cache.  Not here: the conversion (autograph/).

There is one object for each source file, found by everything that a conversion depends on but the function; in it a
function is known by a digest of its own code, so that what is found is of the text that this process has loaded.
"""

from __future__ import annotations

import contextlib
import importlib.util
import marshal
import sys
import types

from ...core import files, flags
from ..cache import objects
from ..native.store import sources

_FORMAT = "conversions 1"
_PLAIN = 2  # marshal's version without references, whose bytes do not depend on who else refers to an object
Codes = dict[str, types.CodeType]


class Conversions:
    """Converted code of functions of this package. Used by any thread; the last to write a file's object wins."""

    def __init__(self) -> None:
        self._files: dict[tuple[str | None, str], Codes] = {}
        self._changed: set[tuple[str | None, str]] = set()

    def find(self, code: types.CodeType) -> types.CodeType | None:
        """Return what the code of a function was converted to, if it is kept."""
        return self._of(code)[1].get(_digest_of(code))

    def keep(self, code: types.CodeType, converted: types.CodeType) -> None:
        """Keep what the code of a function was converted to, once `write` is called."""
        key, codes = self._of(code)
        codes[_digest_of(code)] = converted
        self._changed.add(key)

    def write(self) -> None:
        """Write what was converted since the last time."""
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
            found: Codes = marshal.loads(data)
            return found
    return {}


def _digest_of(code: types.CodeType) -> str:
    return files.digest(marshal.dumps(code, _PLAIN))


def _name(filename: str) -> str:
    """The digest that a source file's object is kept under."""
    python = sys.implementation.cache_tag or sys.version, importlib.util.MAGIC_NUMBER.hex()
    return files.digest("\0".join((_FORMAT, *python, sources(), filename)).encode())


CONVERSIONS = Conversions()
"""Those of this process."""
