"""The contents of a .tflite file as plain Python objects, one class per table of the schema.

Lives here: `TableObject` and its subclasses, created on demand: `objects.Tensor(shape=[1, 4], name="x")`; fields and
union members that are newer than the schema: `UnknownField`, `UnknownUnionMember`, `SourceFile`.
Not here: the root, `Model` (model.py); bytes (reader.py, writer.py).

Field values, by their kind in the schema:

    scalar, bool         int, float, bool;  absent in the file: the schema's default
    enum                 member of the IntEnum, or a plain int if the number is newer than this schema
    string               str, or None when absent;  bytes that are not UTF-8 survive as surrogates
    vector of scalars    NumPy array (a read-only view on the file when read); lists, tuples and bytes are accepted.
                         An absent one reads as empty, except bytes (uint8), as None: see `SchemaField.keeps_absence`
    table                object or None
    vector of tables     list, empty when absent
    union                object of any member's class or None; the type tag is implied by the class

An absent vector and an empty one have the same meaning and compare equal, but writing a file preserves the difference.

A FlatBuffer does not record the types of fields. Only the starts of an unknown field and of the next field
are known. Scalars and structs may be copied, offsets must be adjusted when they move, and some bytes could be either.
Files are preserved as follows:

    an unchanged model               the bytes of the file are written again
    a field that is not an offset        its bytes are copied (`UnknownField.bytes`)
    a member of a union              an offset refers to it, so its file is written with the model (`SourceFile`)
    a field that may be an offset    writing a changed model is an error that names it; `unknown="drop"` omits it
"""

from __future__ import annotations

import enum as _enum
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from ...core.forks import once
from ...core.named_tuples import NamedTuple
from . import schema


class UnknownField(NamedTuple):
    """A field newer than the schema.

    bytes: from the field's start to the start of the next, including padding. maybe_offset: the bytes could be an
    offset, so that they cannot be copied to another position. Equality compares the bytes without trailing zeros, which
    may be padding.
    """

    bytes: bytes
    maybe_offset: bool

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnknownField):
            return NotImplemented
        return self.bytes.rstrip(b"\0") == other.bytes.rstrip(b"\0")

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.bytes.rstrip(b"\0"))


class SourceFile:
    """The bytes that a model was read from, up to the end of the FlatBuffer; shared by copies of its objects."""

    __slots__ = ("base", "file", "flatbuffer")

    def __init__(self, file: memoryview, end: int) -> None:
        """Initialize. file: all bytes. end: the end of the FlatBuffer, where appended data begins."""
        self.file, self.flatbuffer = file, file[:end]
        self.base = np.frombuffer(file, np.uint8).__array_interface__["data"][0]

    def place_of(self, array: np.ndarray) -> int | None:
        """Return the offset of a vector's elements in the FlatBuffer if the array is a view on that vector, else
        None."""
        offset = array.__array_interface__["data"][0] - self.base
        if not (4 <= offset <= len(self.flatbuffer) - array.nbytes and array.flags.c_contiguous and len(array)):
            return None
        return offset if int.from_bytes(self.flatbuffer[offset - 4 : offset], "little") == len(array) else None

    def __deepcopy__(self, memo: Any) -> SourceFile:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _source_of, (bytes(self.file), len(self.flatbuffer))


def _source_of(file: bytes, end: int) -> SourceFile:
    return SourceFile(memoryview(file), end)


REPR_LIMIT = 8  # elements of a vector that repr shows
_Class = TypeVar("_Class", bound="type[TableObject]")


class TableObject:
    """Base of all tables' classes: keyword constructor, deep `==`, bounded `repr`.

    Objects are equal if they have the same class and contents, whether list or array; NaN equals NaN. unknown_fields:
    fields newer than the schema, by id; set only if the file has some.
    """

    __slots__ = ("unknown_fields",)
    __hash__ = None  # type: ignore[assignment]  # mutable
    table_name: ClassVar[str]
    unknown_fields: dict[int, UnknownField]

    if TYPE_CHECKING:  # fields have the types that the schema states

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self, **values: Any) -> None:
        for field in schema.table(self.table_name).fields:
            value = values.pop(field.name, None)
            setattr(self, field.name, default_of(field) if value is None else value)
        if values:
            raise TypeError(f"{self.table_name} has no field {', '.join(map(repr, values))}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        fields = schema.table(self.table_name).fields
        if getattr(self, "unknown_fields", None) != getattr(other, "unknown_fields", None):
            return False
        return all(_same(field, getattr(self, field.name), getattr(other, field.name)) for field in fields)

    def __repr__(self) -> str:
        parts = []
        for field in schema.table(self.table_name).fields:
            value = getattr(self, field.name)
            if not _same(field, value, default_of(field)):
                parts.append(f"{field.name}={_brief(field, value)}")
        if hasattr(self, "unknown_fields"):
            parts.append(f"fields newer than the schema: {', '.join(map(str, self.unknown_fields))}")
        return f"{self.table_name}({', '.join(parts)})"


class UnknownUnionMember(TableObject):
    """A union's table that is newer than the schema: its tag is known, its contents are opaque.

    A member that was read is written again with all its contents. Equality compares the tag and the bytes of the table.
    """

    __slots__ = ("at", "bytes", "source", "tag")
    table_name = "UnknownUnionMember"

    def __init__(self, tag: int, source: SourceFile | None = None, at: int = 0, contents: bytes = b"") -> None:
        """Initialize. source, at: the file and the offset in it. contents: its vtable and its own bytes."""
        self.tag, self.source, self.at, self.bytes = tag, source, at, contents

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnknownUnionMember):
            return NotImplemented
        return (self.tag, self.bytes) == (other.tag, other.bytes)

    def __repr__(self) -> str:
        return f"UnknownUnionMember(tag={self.tag})"


class TableList(list[Any]):
    """A vector of tables. absent: the file has none; it is written as absent again as long as the list is empty."""

    __slots__ = ("absent",)

    def __init__(self, items: Any = (), absent: bool = False) -> None:
        super().__init__(items)
        self.absent = absent


@once
def absent_vector(scalar: str) -> np.ndarray:
    """Return the array that represents, by identity, an absent vector."""
    return _empty(scalar).copy()


@once
def _empty(scalar: str) -> np.ndarray:
    array = np.zeros(0, schema.SCALARS[scalar][2])
    array.flags.writeable = False
    return array


def default_of(field: schema.SchemaField) -> float | list[Any] | np.ndarray | None:
    """Return the value of an absent field; a new list for a vector of tables."""
    if field.kind == "scalar":
        default: float = field.default
        return schema.enum_members(field.enum).get(field.default, default) if field.enum else default
    if field.kind == "tables":
        return []
    if field.kind == "vector" and not field.keeps_absence:
        return _empty(field.scalar)
    return None


class ComputedBytes:
    """The bytes of a buffer that are computed when they are written. compute: returns them as `in_order` takes them."""

    itemsize = 1

    def __init__(self, nbytes: int, compute: Callable[[], np.ndarray]) -> None:
        self.nbytes = self.size = nbytes
        self.compute = compute

    def __len__(self) -> int:
        return self.nbytes


def as_vector(field: schema.SchemaField, value: Any) -> np.ndarray:
    """Return a vector field's value as a one-dimensional array of the stored dtype.

    Bytes-like values are accepted for uint8. Raises ValueError if a value does not fit the dtype.
    """
    dtype = schema.SCALARS[field.scalar][2]
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return value.reshape(-1)
    if isinstance(value, (bytes, bytearray, memoryview)):
        if field.scalar != "uint8":
            raise ValueError(f"bytes in a vector of {field.scalar}")
        return np.frombuffer(value, np.uint8)
    if isinstance(value, np.ndarray) and field.scalar == "uint8":
        raise ValueError(f"{value.dtype} array in a vector of uint8; its bytes are array.view(np.uint8)")
    array = np.asarray(value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "biuf"):
        raise ValueError(f"{type(value).__name__} is not a flat list of numbers")
    if dtype.kind in "iu" and array.size:
        if array.dtype.kind == "f":
            raise ValueError(f"floating-point numbers in a vector of {field.scalar}")
        limits = np.iinfo(dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise ValueError(f"{int(array.min())}..{int(array.max())} does not fit {field.scalar}")
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def in_order(data: np.ndarray) -> np.ndarray:
    """Return the bytes of a vector in the order of the file, as uint8[bytes]; a copy only if they are not.

    data: uint8[bytes], or uint8[..., bytes of an element] with any strides besides the last
    """
    if data.flags.c_contiguous:
        return data.reshape(-1)
    if data.shape[-1] in (2, 4, 8):  # NumPy copies elements faster than their bytes
        data = data.view(f"u{data.shape[-1]}")
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8)


def _same(field: schema.SchemaField, a: Any, b: Any) -> bool:
    if a is b:
        return True
    if field.kind == "vector":
        if a is None or b is None:
            return False
        a, b = as_vector(field, a), as_vector(field, b)
        return np.array_equal(a, b, equal_nan=field.scalar == "float32")
    if field.kind == "scalar" and field.scalar == "float32":
        return a == b or _float32(a) == _float32(b)
    return bool(a == b)


def _float32(value: float) -> bytes:
    """Return the stored bits; all NaNs are equal."""
    if value != value:
        return b"nan"
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<d", value)  # exceeds float32; still equal to itself


def _brief(field: schema.SchemaField, value: Any) -> str:
    if field.kind == "tables":
        return f"[{len(value)} x {field.of}]"
    if field.kind == "vector":
        shown = ", ".join(str(x) for x in value[:REPR_LIMIT])
        return f"[{shown}]" if len(value) <= REPR_LIMIT else f"[{shown}, ... {len(value)} {field.scalar}]"
    if isinstance(value, _enum.Enum):
        return value.name
    text = repr(value)
    return text if field.kind != "string" or len(text) <= 80 else text[:77] + "...'"


def register(cls: _Class) -> _Class:
    """Use a hand-written class for its `table_name`, as model.py does for the root (class decorator)."""
    _written_by_hand[cls.table_name] = cls
    return cls


_written_by_hand: dict[str, type[TableObject]] = {}


@once
def table_class(name: str) -> type[TableObject]:
    """Return the class of a table's objects. Raises KeyError for an unknown name."""
    if name in _written_by_hand:
        return _written_by_hand[name]
    slots = tuple(field.name for field in schema.table(name).fields)
    doc = f"Table {name} of the .tflite schema, with fields {', '.join(slots) or '(none)'}."
    return type(name, (TableObject,), {"__slots__": slots, "__module__": __name__, "__doc__": doc, "table_name": name})


def __getattr__(name: str) -> type[TableObject]:
    if not name.startswith("_") and name in schema.tables():
        return table_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
