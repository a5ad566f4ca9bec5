"""JSON files of saved models: bounded reads, atomic writes, typed look-ups; the producer.

Not here: atomic replacement (core/files.py), the contents of the files.
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

MAX_JSON = 1 << 28  # bytes of a manifest or an index; large models need tens of kilobytes


def producer() -> str:
    """Return the version of this package, for people who inspect a file."""
    return __version__


def sync_folder(path: str) -> None:
    """Flush renames in a folder to disk, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(path or ".", os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: str, content: Any) -> None:
    """Replace a file by `content` as JSON, atomically."""
    with replacing(path, sync=True) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def read_bytes(path: str, limit: int, what: str) -> bytes:
    """Return the content of a file. Raises NotFoundError if it is missing, DataLossError if it exceeds `limit`."""
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
    """Return the JSON object in an untrusted file. Raises NotFoundError, or DataLossError if it is damaged."""
    source = read_bytes(path, MAX_JSON, what)
    try:
        content = json.loads(source, object_pairs_hook=_without_duplicates, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise DataLossError(what=f"{path} is damaged: not JSON as wanted: {str(error)[:200]}", wanted=what) from None
    if not isinstance(content, dict):
        raise DataLossError(what=f"{path} is damaged: no JSON object", wanted=what)
    return content


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name is there twice")
    return result


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def plain_name(name: Any, where: str) -> str:
    """Return `name` if it names a file in the same folder. Raises DataLossError for paths and special names."""
    fine = isinstance(name, str) and 0 < len(name) <= 255 and name.isprintable() and not name.startswith(".")
    if not fine or any(sign in name for sign in '/\\:*?"<>|'):
        raise DataLossError(what=f"{where}: {str(name)[:60]!r} is not the name of a file beside it")
    result: str = name
    return result


class JsonReader:
    """Typed look-ups in untrusted JSON, with errors that name the file. where: its path."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fail(self, what: str, found: Any = None) -> DataLossError:
        """Return the error to raise."""
        shown = None if found is None else repr(found)[:80]
        return DataLossError(what=f"{self.where} is damaged: {what}", found=shown)

    def of(self, value: Any, kind: type, what: str) -> Any:
        """Return `value`, checked to be of exactly this type."""
        if type(value) is not kind:
            raise self.fail(f"{what} is no {kind.__name__}", value)
        return value

    def get(self, record: Any, key: str, kind: type, default: Any = ...) -> Any:
        """Return a field of a record. Raises DataLossError if it is missing without a default, or of another type."""
        if type(record) is not dict:
            raise self.fail(f"no object around {key!r}", record)
        if key not in record:
            if default is ...:
                raise self.fail(f"{key!r} is missing", record)
            return default
        return self.of(record[key], kind, repr(key))

    def index(self, value: Any, items: Sequence[Any], what: str) -> int:
        """Return `value`, checked to be an index into `items`."""
        if type(value) is not int or not 0 <= value < len(items):
            raise self.fail(f"{what}: there are {len(items)}, none has this number", value)
        return value

    def each(self, record: Any, key: str, read: Callable[[Any], Any]) -> list[Any]:
        """Return the items of a list field, each converted by `read`."""
        return [read(item) for item in self.get(record, key, list)]
