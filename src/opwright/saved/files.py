"""What files of saved models share: JSON, read with bounds and written whole; who made them.

Not here: writing whole or not at all (core/files.py), what is in the files.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import DataLossError, NotFoundError
from ..core.files import replacing
from ..core.version import __version__

MAX_JSON = 1 << 28  # bytes of a manifest or an index; large models have some ten kilobytes


def producer() -> str:
    """The version of this package, for people who look into a file."""
    return __version__


def sync_folder(path: str) -> None:
    """Make renames in a folder last through a loss of power, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(path or ".", os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: str, content: Any) -> None:
    """Replace a file by `content` as JSON."""
    with replacing(path, sync=True) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def read_bytes(path: str, limit: int, what: str) -> bytes:
    """A whole file. Raises NotFoundError where there is none, DataLossError where it is larger than `limit`."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise DataLossError(what=f"{path} has {size} bytes, too many for {what}", wanted=f"at most {limit}")
            return file.read(limit + 1)
    except FileNotFoundError:
        raise NotFoundError(what=f"there is no file {path}", wanted=what) from None
    except OSError as error:
        raise NotFoundError(what=f"cannot read {path}: {error.strerror or error}", wanted=what) from None


def read_json(path: str, what: str) -> dict[str, Any]:
    """A JSON object from outside. Raises NotFoundError, or DataLossError where it is damaged."""
    source = read_bytes(path, MAX_JSON, what)
    try:
        found = json.loads(source, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise DataLossError(what=f"{path} is damaged: not JSON as wanted: {str(error)[:200]}", wanted=what) from None
    if not isinstance(found, dict):
        raise DataLossError(what=f"{path} is damaged: no JSON object", wanted=what)
    return found


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def plain_name(name: Any, where: str) -> str:
    """`name`, if it names a file in the same folder and nothing else. Raises DataLossError for paths and the like."""
    fine = isinstance(name, str) and 0 < len(name) <= 255 and name.isprintable() and not name.startswith(".")
    if not fine or any(sign in name for sign in '/\\:*?"<>|'):
        raise DataLossError(what=f"{where}: {str(name)[:60]!r} is not the name of a file beside it")
    return name


class Reader:
    """Typed look-ups in JSON from outside, with errors that say where. where: the file's path."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fail(self, what: str, found: Any = None) -> DataLossError:
        """The error to raise."""
        shown = None if found is None else repr(found)[:80]
        return DataLossError(what=f"{self.where} is damaged: {what}", found=shown)

    def of(self, value: Any, kind: type, what: str) -> Any:
        """`value`, of exactly that type."""
        if type(value) is not kind:
            raise self.fail(f"{what} is no {kind.__name__}", value)
        return value

    def get(self, record: Any, key: str, kind: type, default: Any = ...) -> Any:
        """A field of a record. Raises DataLossError where it is missing without a default, or of another type."""
        if type(record) is not dict:
            raise self.fail(f"no object around {key!r}", record)
        if key not in record:
            if default is ...:
                raise self.fail(f"{key!r} is missing", record)
            return default
        return self.of(record[key], kind, repr(key))

    def index(self, value: Any, items: Sequence[Any], what: str) -> int:
        """`value`, if it numbers one of `items`."""
        if type(value) is not int or not 0 <= value < len(items):
            raise self.fail(f"{what}: there are {len(items)}, none has this number", value)
        return value

    def each(self, record: Any, key: str, read: Callable[[Any], Any]) -> list[Any]:
        """A field that is a list, item by item."""
        return [read(item) for item in self.get(record, key, list)]
