"""Example messages: `train.Example`, `Features`, `Feature`, their lists, and `SequenceExample`.

Lives here: the messages of TensorFlow's example.proto and feature.proto, in the Python interface of protocol buffers,
and in their text format.
Not here: parsing to tensors (examples.py), fields and their bytes (core/protobuf_wire.py).

    Example           1 features             SequenceExample   1 context   2 feature_lists
    Features          1 feature (map)        FeatureLists      1 feature_list (map)
    Feature           one of 1 bytes_list, 2 float_list, 3 int64_list       FeatureList   1 feature (repeated)
    BytesList, FloatList, Int64List          1 value (repeated; numbers are packed)

Maps are written sorted by key, so that equal messages have equal bytes, as TensorFlow's with deterministic=True.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self, SupportsIndex

import numpy as np

from ..core.errors import DataLossError
from ..core.protobuf_wire import BYTES, FIXED32, VARINT, fields, packed_int64s, packed_varints, signed, sized


def _damaged(what: str) -> DataLossError:
    return DataLossError(what=f"Error parsing message: {what}")


# ---- values ----------------------------------------------------------------------------------------------------------


def _checked_bytes(values: list[Any]) -> list[Any]:
    for value in values:
        if not isinstance(value, bytes):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: bytes")
    return values


def _checked_floats(values: list[Any]) -> list[Any]:
    for value in values:
        if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: int, float")
    with np.errstate(over="ignore"):
        rounded: list[Any] = np.array([float(v) for v in values]).astype(np.float32).astype(np.float64).tolist()
    return rounded


def _checked_ints(values: list[Any]) -> list[Any]:
    result = []
    for value in values:
        if not hasattr(value, "__index__"):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: int")
        number = int(value)
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError(f"Value out of range: {number}")
        result.append(number)
    return result


class RepeatedValues(list[Any]):
    """A list of the values of a field, which checks and converts what is put into it."""

    def __init__(self, check: Callable[[list[Any]], list[Any]], changed: Callable[[], None]) -> None:
        super().__init__()
        self._check, self._changed = check, changed

    def append(self, value: Any) -> None:
        """Append a value. Raises TypeError for one of another type, ValueError for an int outside of int64."""
        self.extend([value])

    def extend(self, values: Iterable[Any]) -> None:
        """Append values."""
        super().extend(self._check(list(values)))
        self._changed()

    def insert(self, index: SupportsIndex, value: Any) -> None:
        """Insert a value."""
        super().insert(index, self._check([value])[0])
        self._changed()

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, self._check(list(value)) if isinstance(index, slice) else self._check([value])[0])
        self._changed()

    def __iadd__(self, values: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(values)
        return self

    def __reduce__(self) -> Any:
        return list, (list(self),)


class RepeatedMessages(list[Any]):
    """A list of messages of one class."""

    def __init__(self, kind: type[Message], changed: Callable[[], None]) -> None:
        super().__init__()
        self._kind, self._changed = kind, changed

    def add(self, **kwargs: Any) -> Any:
        """Append a new message, and return it."""
        self.append(self._kind(**kwargs))
        return self[-1]

    def append(self, message: Any) -> None:
        """Append a message. Raises TypeError for one of another class."""
        if type(message) is not self._kind:
            raise TypeError(f"expected a {self._kind.__name__}, found {type(message).__name__}")
        super().append(message)
        self._changed()

    def extend(self, messages: Iterable[Any]) -> None:
        """Append messages."""
        for message in messages:
            self.append(message)


class MessageMap(dict[str, Any]):
    """Messages by name; reading a name that is absent creates an empty message."""

    def __init__(self, kind: type[Message], changed: Callable[[], None]) -> None:
        super().__init__()
        self._kind, self._changed = kind, changed

    def __missing__(self, name: str) -> Any:
        message = self._kind()
        self._store(name, message)
        return message

    def _store(self, name: Any, message: Any) -> None:
        if isinstance(name, bytes):
            name = name.decode()
        if not isinstance(name, str):
            raise TypeError(f"{name!r} has type {type(name).__name__}, but expected one of: bytes, str")
        if type(message) is not self._kind:
            raise TypeError(f"expected a {self._kind.__name__}, found {type(message).__name__}")
        super().__setitem__(name, message)
        self._changed()

    def __setitem__(self, name: str, message: Any) -> None:
        raise ValueError(
            f"May not set values directly, call my_map[key].foo = 5 or my_map[key].CopyFrom({self._kind.__name__}(...))"
        )

    def get_or_create(self, name: str) -> Any:
        """Return the message of a name, a new one if there is none."""
        return self[name]


# ---- messages --------------------------------------------------------------------------------------------------------


class MessageField(NamedTuple):
    """A field: its number, and what it holds: "message", "messages", "map", "bytes", "floats" or "ints"."""

    number: int
    kind: str
    message: Any = None


_CHECKS = {"bytes": _checked_bytes, "floats": _checked_floats, "ints": _checked_ints}


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
        for number, wire, value in fields(data, _damaged):
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
            entry = {n: v for n, w, v in fields(value, _damaged) if w == BYTES}
            try:
                key = entry.get(1, b"").decode()
            except UnicodeDecodeError:
                raise _damaged("a name is not UTF-8") from None
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
    """Do nothing: the message is no field of another."""


def _read_values(kind: str, wire: int, value: Any) -> list[Any]:
    """Return the values of one occurrence of a repeated field: packed or alone."""
    if kind == "bytes" and wire == BYTES:
        return [value]
    if kind == "ints" and wire in (VARINT, BYTES):
        numbers: list[Any] = [signed(value)] if wire == VARINT else packed_varints(value, _damaged).tolist()
        return numbers
    if kind == "floats" and wire in (FIXED32, BYTES):
        if len(value) % 4:
            raise _damaged("a list of floats ends within one")
        floats: list[Any] = np.frombuffer(value, "<f4").tolist()
        return floats
    raise _damaged(f"a value has wire type {wire}")


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


class BytesList(Message):
    """Strings: `BytesList(value=[b"a"])`."""

    _fields = {"value": MessageField(1, "bytes")}


class FloatList(Message):
    """Numbers, rounded to float32: `FloatList(value=[0.5])`."""

    _fields = {"value": MessageField(1, "floats")}


class Int64List(Message):
    """Integers: `Int64List(value=[1, 2])`."""

    _fields = {"value": MessageField(1, "ints")}


class Feature(Message):
    """One of `bytes_list`, `float_list`, `int64_list`; `WhichOneof("kind")` returns which."""

    _fields = {
        "bytes_list": MessageField(1, "message", BytesList),
        "float_list": MessageField(2, "message", FloatList),
        "int64_list": MessageField(3, "message", Int64List),
    }
    _one_of = "kind"


class Features(Message):
    """Features by name: `Features(feature={"age": Feature(...)})`."""

    _fields = {"feature": MessageField(1, "map", Feature)}


class Example(Message):
    """A record of features: `Example(features=Features(...))`."""

    _fields = {"features": MessageField(1, "message", Features)}


class FeatureList(Message):
    """Features of the steps of a sequence: `FeatureList(feature=[Feature(...)])`."""

    _fields = {"feature": MessageField(1, "messages", Feature)}


class FeatureLists(Message):
    """Sequences by name: `FeatureLists(feature_list={"tokens": FeatureList(...)})`."""

    _fields = {"feature_list": MessageField(1, "map", FeatureList)}


class SequenceExample(Message):
    """A record of features and sequences: `SequenceExample(context=Features(...), feature_lists=FeatureLists(...))`."""

    _fields = {
        "context": MessageField(1, "message", Features),
        "feature_lists": MessageField(2, "message", FeatureLists),
    }
