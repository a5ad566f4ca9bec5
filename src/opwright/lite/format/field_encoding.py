"""Encoding of Python values as the fields of a table.

Lives here: `EncodingError`; presence of fields, scalars, vectors, strings, type tags of unions.
Not here: layout and writing (writer.py).
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from . import schema
from .objects import TableList, UnknownUnionMember, absent_vector, as_vector, default_of


class EncodingError(Exception):
    """A value that a field cannot store. Each level of the call stack prepends its step to `path`."""

    def __init__(self, what: str, path: str = "", newer: bool = False) -> None:
        self.what, self.path, self.newer = what, path, newer


def field_of(table: str, name: str) -> schema.SchemaField:
    return next(field for field in schema.table(table).fields if field.name == name)


def marks_appended_data(offset: Any) -> bool:
    """Return whether an offset indicates that the data is stored after the FlatBuffer."""
    return isinstance(offset, (int, np.integer)) and bool(offset >= 1)


def is_present(table: str, field: schema.SchemaField, value: Any) -> bool:
    if value is None:
        return f"{table}.{field.name}" in schema.ALWAYS_PRESENT
    if field.kind in ("vector", "tables") and not field.keeps_absence:
        if not hasattr(value, "__len__"):
            raise EncodingError(f"found {type(value).__name__}, wanted a list", f".{field.name}")
        if len(value):
            return True
        if field.kind == "tables" and isinstance(value, TableList):
            return not value.absent
        if field.kind == "vector" and isinstance(value, np.ndarray) and value is not default_of(field):
            return value is not absent_vector(field.scalar)
        return f"{table}.{field.name}" in schema.ALWAYS_PRESENT
    return True


def stored_scalar(field: schema.SchemaField, value: Any) -> Any:
    """Return the number to store, or None for the default, which is omitted."""
    if field.scalar == "float32":
        try:
            bits = struct.pack("<f", value)
        except (struct.error, OverflowError, TypeError):
            raise EncodingError(f"{value!r} is no float32", f".{field.name}") from None
        return None if bits == struct.pack("<f", field.default) else value
    try:
        number = int(value) if isinstance(value, (bool, np.bool_)) else value.__index__()
        struct.pack(f"<{schema.SCALARS[field.scalar][0]}", number)
    except (struct.error, AttributeError, TypeError):
        raise EncodingError(f"{value!r} is no {field.enum or field.scalar}", f".{field.name}") from None
    if field.scalar == "bool":
        number = int(number != 0)
    return None if number == int(field.default) else number


def stored_vector(field: schema.SchemaField, value: Any) -> np.ndarray:
    try:
        return as_vector(field, () if value is None else value)
    except (ValueError, TypeError) as error:
        raise EncodingError(str(error)) from None


def union_tag(field: schema.SchemaField, value: Any) -> int:
    if isinstance(value, UnknownUnionMember):
        return value.tag
    tag = schema.union_tags(field.of).get(getattr(value, "table_name", ""))
    if tag is None:
        raise EncodingError(f"found {type(value).__name__}, wanted a member of union {field.of}", f".{field.name}")
    return tag


def encode_text(text: Any) -> bytes:
    """Return a string's bytes. Raises EncodingError for other types."""
    if not isinstance(text, str):
        raise EncodingError(f"found {type(text).__name__}, wanted str")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise EncodingError(f"{text[:40]!a} is no valid text") from None
