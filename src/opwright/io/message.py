"""Messages as Python objects, in the interface of protocol buffers: fields, repeated values, maps, text format.

Lives here: `Message`, the base of those of messages.py. Not here: fields and their bytes (core/protobuf_wire.py).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ..core.protobuf_wire import BYTES, FIXED32, VARINT, fields, packed_int64s, packed_varints, signed, sized
from .message_values import (
    MessageMap,
    RepeatedMessages,
    RepeatedValues,
    checked_bytes,
    checked_floats,
    checked_ints,
    damaged,
)


class MessageField(NamedTuple):
    """A field: its number, and what it holds: "message", "messages", "map", "bytes", "floats" or "ints"."""

    number: int
    kind: str
    message: Any = None


_CHECKS = {"bytes": checked_bytes, "floats": checked_floats, "ints": checked_ints}


class Message:
    """Base class of messages: fields by name as attributes, and their bytes.

    Setting a field of a message that is itself a field sets that one, too, as in protocol buffers.
    """

    _fields: ClassVar[dict[str, MessageField]] = {}
    _one_of: ClassVar[str | None] = None  # the name of the union of all fields, if they are one

    def __init__(self, **values: Any) -> None:
        self._content: dict[str, Any] = {}
        self._is_set: set[str] = set()
        self._changed: Callable[[], None] = _nothing
        for name, value in values.items():
            if name not in self._fields:
                raise ValueError(f'Protocol message {type(self).__name__} has no "{name}" field.')
            if value is not None:
                self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        field, target = self._fields[name], getattr(self, name)
        if field.kind == "message":
            if isinstance(value, Mapping):
                value = field.message(**value)
            if type(value) is not field.message:
                raise TypeError(f"expected a {field.message.__name__}, found {type(value).__name__}")
            target.CopyFrom(value)
            self._set(name)
        elif field.kind == "map":
            for key, item in value.items():
                target._store(key, item)
        else:
            target.extend(value)

    def _set(self, name: str) -> None:
        if self._one_of is not None:
            for other in self._is_set - {name}:
                self.ClearField(other)
        self._is_set.add(name)
        self._changed()

    def __getattr__(self, name: str) -> Any:
        field = type(self)._fields.get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name not in self._content:

            def changed() -> None:
                self._set(name)

            value: Any
            if field.kind == "message":
                value = field.message()
                value._changed = changed
            elif field.kind == "map":
                value = MessageMap(field.message, changed)
            elif field.kind == "messages":
                value = RepeatedMessages(field.message, changed)
            else:
                value = RepeatedValues(_CHECKS[field.kind], changed)
            self._content[name] = value
        return self._content[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._fields:
            raise AttributeError(
                f"Assignment not allowed to field {name!r} in protocol message object; use CopyFrom, or [:] of a list"
            )
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.SerializeToString() == other.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    __str__ = __repr__

    def __reduce__(self) -> Any:
        return type(self).FromString, (self.SerializeToString(),)

    def __deepcopy__(self, memo: Any) -> Self:
        return type(self).FromString(self.SerializeToString())

    # The names of protocol buffers.

    def HasField(self, name: str) -> bool:
        """Return whether a message field is set. Raises ValueError for other fields."""
        field = self._fields.get(name)
        if field is None or field.kind != "message":
            raise ValueError(f'Protocol message {type(self).__name__} has no singular "{name}" field.')
        return name in self._is_set

    def WhichOneof(self, name: str) -> str | None:
        """Return the name of the field of a union that is set, or None. Raises ValueError for another union."""
        if name != self._one_of:
            raise ValueError(f'Protocol message {type(self).__name__} has no oneof "{name}" field.')
        return next(iter(self._is_set), None)

    def ClearField(self, name: str) -> None:
        """Remove the value of a field. Raises ValueError for a name that is none."""
        if name not in self._fields:
            raise ValueError(f'Protocol message {type(self).__name__} has no "{name}" field.')
        old = self._content.pop(name, None)
        if old is not None:
            old._changed = _nothing  # a reader may still hold it
        self._is_set.discard(name)

    def Clear(self) -> None:
        """Remove the values of all fields."""
        for name in self._fields:
            self.ClearField(name)

    def SetInParent(self) -> None:
        """Mark this message as set in the message of which it is a field."""
        self._changed()

    def ListFields(self) -> list[tuple[MessageField, Any]]:
        """Return the fields that are set, with their values, by number."""
        return [(field, self._content[name]) for name, field in self._fields.items() if name in self._is_set]

    def CopyFrom(self, other: Any) -> None:
        """Make this message equal to another of its class. Raises TypeError for another class."""
        if type(other) is not type(self):
            raise TypeError(f"CopyFrom takes a {type(self).__name__}, found {type(other).__name__}")
        if other is not self:
            self.ParseFromString(other.SerializeToString())

    def MergeFrom(self, other: Any) -> None:
        """Add the fields of another message of its class: lists are joined, entries of maps replaced."""
        if type(other) is not type(self):
            raise TypeError(f"MergeFrom takes a {type(self).__name__}, found {type(other).__name__}")
        self.MergeFromString(other.SerializeToString())

    def IsInitialized(self) -> bool:
        """Return True: no field is required."""
        return True

    def ByteSize(self) -> int:
        """Return the number of bytes of the message."""
        return len(self.SerializeToString())

    @classmethod
    def FromString(cls, serialized: Any) -> Self:
        """Return the message in these bytes. Raises DataLossError for other bytes."""
        message = cls()
        message.MergeFromString(serialized)
        return message

    def ParseFromString(self, serialized: Any) -> int:
        """Replace the fields by those in these bytes, and return their number. Raises DataLossError for other bytes."""
        self.Clear()
        return self.MergeFromString(serialized)

    def MergeFromString(self, serialized: Any) -> int:
        """Add the fields in these bytes. Raises DataLossError for other bytes."""
        data = bytes(serialized)
        by_number = {field.number: (name, field) for name, field in self._fields.items()}
        for number, wire, value in fields(data, damaged):
            if number not in by_number:
                continue  # of a newer version
            name, field = by_number[number]
            if field.kind in _CHECKS:
                list.extend(getattr(self, name), _read_values(field.kind, wire, value))
                self._set(name)
            elif wire == BYTES:
                self._merge_field(name, field, value)
        self._changed()
        return len(data)

    def _merge_field(self, name: str, field: MessageField, value: bytes) -> None:
        target = getattr(self, name)
        self._set(name)
        if field.kind == "message":
            target.MergeFromString(value)
        elif field.kind == "messages":
            target.append(field.message.FromString(value))
        else:
            entry = {n: v for n, w, v in fields(value, damaged) if w == BYTES}
            try:
                key = entry.get(1, b"").decode()
            except UnicodeDecodeError:
                raise damaged("a name is not UTF-8") from None
            target._store(key, field.message.FromString(entry.get(2, b"")))

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """Return the bytes of the message; maps are sorted by key in any case."""
        return b"".join(self._parts())

    def _parts(self) -> Iterator[bytes]:
        for name, field in self._fields.items():
            if name not in self._is_set:
                continue
            value = self._content[name]
            if field.kind == "message":
                yield sized(field.number, value.SerializeToString())
            elif field.kind == "messages":
                yield from (sized(field.number, item.SerializeToString()) for item in value)
            elif field.kind == "map":
                for key in sorted(value):
                    entry = sized(1, key.encode()) + sized(2, value[key].SerializeToString())
                    yield sized(field.number, entry)
            elif field.kind == "bytes":
                yield from (sized(field.number, item) for item in value)
            elif value:
                floats = field.kind == "floats"
                packed = np.array(value, "<f4").tobytes() if floats else packed_int64s(np.array(value, np.int64))
                yield sized(field.number, packed)

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the text format."""
        for name, field in self._fields.items():
            if name not in self._is_set:
                continue
            value = self._content[name]
            if field.kind in ("message", "messages"):
                for item in [value] if field.kind == "message" else value:
                    yield from (f"{name} {{", *(f"  {line}" for line in item._lines()), "}")
            elif field.kind == "map":
                for key in sorted(value):
                    inner = (f"    {line}" for line in value[key]._lines())
                    yield from (f"{name} {{", f'  key: "{_escaped(key.encode())}"', "  value {", *inner, "  }", "}")
            else:
                yield from (f"{name}: {_TEXTS[field.kind](item)}" for item in value)


def _nothing() -> None:
    """Do nothing: the message is not a field of another."""


def _read_values(kind: str, wire: int, value: Any) -> list[Any]:
    """Return the values of one occurrence of a repeated field: packed or alone."""
    if kind == "bytes" and wire == BYTES:
        return [value]
    if kind == "ints" and wire in (VARINT, BYTES):
        numbers: list[Any] = [signed(value)] if wire == VARINT else packed_varints(value, damaged).tolist()
        return numbers
    if kind == "floats" and wire in (FIXED32, BYTES):
        if len(value) % 4:
            raise damaged("a list of floats ends within one")
        floats: list[Any] = np.frombuffer(value, "<f4").tolist()
        return floats
    raise damaged(f"a value has wire type {wire}")


_ESCAPES = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


def _escaped(value: bytes) -> str:
    """Return bytes as in a string of the text format: other than ASCII in octal."""
    return "".join(_ESCAPES.get(c) or (chr(c) if 32 <= c < 127 else f"\\{c:03o}") for c in value)


def _float_text(value: float) -> str:
    """Return the shortest text of 6 digits, or of more if they do not identify the float32."""
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            break
    return text


_TEXTS: dict[str, Callable[[Any], str]] = {"bytes": lambda v: f'"{_escaped(v)}"', "floats": _float_text, "ints": str}
