"""FlatBuffers writer for .tflite files, driven by the schema.

Lives here: `chunks` and `write`, from a `Model` object tree to its bytes, which are a function of the tree; the
encoding of fields (`EncodingError`).
Not here: reading (reader.py), files and paths (model.py), checks of meaning (verify.py), versions (versions.py).

The order in the file: identifier; each table followed by the tables it contains (its vtable precedes its first use);
strings and short vectors, with duplicates written once (offsets only point forward); last, all vectors with a forced
alignment, which are the weights. The structure therefore stays together in the first pages. `flatbuffers.Builder` is
not used, because it fills its buffer from the end and moves it as it grows.

A FlatBuffer ends at 2 GB. A `Buffer` marked with `offset >= 1`, and every one if the sum would exceed that limit, is
stored after the FlatBuffer, aligned to 16 bytes; so are custom options with `large_custom_options_offset >= 1`.

Fields newer than the schema are kept as objects.py describes. The source file of an unknown union member is
appended, and weights that are views on it are not written twice.
"""

from __future__ import annotations

import functools
import io
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from . import reader, schema
from .objects import (
    ComputedBytes,
    SourceFile,
    TableList,
    TableObject,
    UnknownField,
    UnknownUnionMember,
    absent_vector,
    as_vector,
    default_of,
    in_order,
)


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


def stored_scalar(field: schema.SchemaField, value: Any) -> float | None:
    """Return the number to store, or None for the default, which is omitted."""
    if field.scalar == "float32":
        try:
            bits = struct.pack("<f", value)
        except (struct.error, OverflowError, TypeError):
            raise EncodingError(f"{value!r} is not a float32", f".{field.name}") from None
        return None if bits == struct.pack("<f", field.default) else value
    try:
        number = int(value) if isinstance(value, (bool, np.bool_)) else value.__index__()
        struct.pack(f"<{schema.SCALARS[field.scalar][0]}", number)
    except (struct.error, AttributeError, TypeError):
        raise EncodingError(f"{value!r} is not of type {field.enum or field.scalar}", f".{field.name}") from None
    if field.scalar == "bool":
        number = int(number != 0)
    return None if number == int(field.default) else number


def stored_vector(field: schema.SchemaField, value: Any) -> np.ndarray | ComputedBytes:
    if isinstance(value, ComputedBytes) and field.scalar == "uint8":
        return value
    if isinstance(value, np.ndarray) and value.dtype == np.uint8 and field.scalar == "uint8" and value.ndim > 1:
        return value  # `in_order` copies it when it is written
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
        raise EncodingError(f"{text[:40]!a} is not valid text") from None


FLATBUFFER_LIMIT = 2**31 - 1
OUTSIDE_ALIGN = 16
CARRIED_ALIGN = 64  # of an appended source file: at least any alignment in it
TABLE_LIMIT = 2**16 - 1  # positions in a table are 16 bits wide
_u32 = struct.Struct("<I")


def write(model: TableObject, unknown: str = "keep") -> bytes:
    """Return the file's bytes. Raises as `chunks`."""
    parts = _parts(model, unknown)
    size = sum(_size(part) for part in parts)
    file = io.BytesIO()  # of the size at once: `b"".join` would hold copies of all parts that are not in order
    file.seek(size - 1)
    file.write(b"\0")
    file.seek(0)
    file.writelines(map(_bytes, parts))
    return file.getvalue()


def chunks(model: Any, unknown: str = "keep") -> Iterator[Any]:
    """Return the file as buffers to write in order: the FlatBuffer, and data stored after it.

    Weights whose elements are not in order are copied one by one.
    unknown: whether fields newer than the schema are kept ("keep") or omitted ("drop"). raises InvalidArgumentError if
    a field holds a value that the schema does not allow (the text names the field), UnimplementedError for a newer
    field that cannot be moved, ResourceExhaustedError past 2 GB of structure
    """
    return map(_bytes, _parts(model, unknown))


def _size(part: Any) -> int:
    return int(part.nbytes) if isinstance(part, np.ndarray) else len(part)


def _bytes(part: Any) -> Any:
    if isinstance(part, ComputedBytes):
        part = part.compute()
    if not isinstance(part, np.ndarray):
        return part
    return in_order(part).data.cast("B") if part.size else b""


def _parts(model: Any, unknown: str) -> list[Any]:
    if unknown not in ("keep", "drop"):
        raise InvalidArgumentError(what="`unknown` is invalid", found=repr(unknown), wanted="'keep' or 'drop'")
    source = getattr(model, "source", None)
    if source is not None and unknown == "keep" and reader.read(source.file) == model:
        return [source.file]
    writer = _FlatBufferWriter(_bytes_of_buffers(model) > FLATBUFFER_LIMIT - (1 << 24), unknown == "drop")
    try:
        parts = writer.file(model)
        behind = getattr(model, "attachment", None)
        return parts if behind is None else [*parts, reader.relocated(behind, sum(map(_size, parts)))]
    except EncodingError as misfit:
        where = f"Model{misfit.path} cannot be written"
        if misfit.newer:
            raise UnimplementedError(
                what=f"{where}: {misfit.what}",
                wanted="an unchanged model, or one without fields newer than this schema",
                do='write(..., unknown="drop") omits fields newer than the schema',
            ) from None
        raise InvalidArgumentError(what=f"{where}: {misfit.what}") from None
    except ValueError as error:
        raise InvalidArgumentError(what=f"the model cannot be written: {error}") from None


def _bytes_of_buffers(model: Any) -> int:
    """Return the bytes of all buffers; invalid ones count as empty, and fail on writing."""
    total = 0
    for buffer in model.buffers if isinstance(model.buffers, (list, tuple)) else ():
        data = getattr(buffer, "data", None)
        if isinstance(data, np.ndarray):
            total += data.nbytes
        elif isinstance(data, (bytes, bytearray, ComputedBytes)):
            total += len(data)
    return total


def _too_large(n: int) -> ResourceExhaustedError:
    return ResourceExhaustedError(
        what="the model's structure does not fit a FlatBuffer", found=f"{n} bytes or more", wanted="below 2 GB"
    )


class _TablePlan(NamedTuple):
    """Layout of the tables of one kind with the same fields present."""

    vtable: bytes
    pack: struct.Struct  # soffset, then the fields in order of position, with padding
    align: int  # of the position 4 bytes after the table's start: 8 if there is an 8-byte field
    order: tuple[int, ...]  # indices of the present fields in that order
    at: tuple[int, ...]  # position of each present field, as indexed by `order`


@functools.cache
def _plan(slots: tuple[tuple[int, str], ...]) -> _TablePlan:
    """Return the layout for present fields. slots: (id, scalar, or "12" for 12 bytes of an unknown field).

    Positions count from the table's start, which the writer puts 4 bytes before a multiple of 8 if a field needs it.
    Widest fields come first, and unknown fields are padded to multiples of 8, so that only the end needs padding.
    """
    align = max((8 if _shape(scalar)[1] >= 8 else 4 for _, scalar in slots), default=4)
    order = tuple(sorted(range(len(slots)), key=lambda i: (-_shape(slots[i][1])[1], slots[i][0])))
    entries = [0] * (max((id for id, _ in slots), default=-1) + 1)
    positions, end, code = [0] * len(slots), 4, "<i"
    for i in order:
        id, scalar = slots[i]
        entries[id] = positions[i] = end
        letter, width = _shape(scalar)
        end += width
        code += letter
    end_padded = -(-end // 4) * 4
    if end_padded > TABLE_LIMIT:
        raise EncodingError(f"a table of {end_padded} bytes", newer=True)
    vtable = struct.pack(f"<{2 + len(entries)}H", 4 + 2 * len(entries), end_padded, *entries)
    return _TablePlan(vtable, struct.Struct(f"{code}{end_padded - end}x"), align, order, tuple(positions))


def _shape(scalar: str) -> tuple[str, int]:
    """Return struct code and width."""
    scalar_type = schema.SCALARS.get(scalar)
    if scalar_type is not None:
        return scalar_type[0], scalar_type[1]
    width = -(-int(scalar) // 8) * 8
    return f"{width}s", width


class _FlatBufferWriter:
    def __init__(self, outside: bool, drop: bool) -> None:
        self.out = bytearray()
        self.drop = drop
        self.vectors = 0  # bytes of vectors, to fail before writing too many
        self.leaves: dict[
            tuple[int, bytes], list[int]
        ] = {}  # (width or 0 for a string, contents): positions of offsets
        self.carried: dict[
            int, tuple[SourceFile, list[tuple[int, int]]]
        ] = {}  # by id: the file; positions of offsets and their targets
        self.vtables: dict[bytes, int] = {}
        self.aligned: list[
            tuple[int, int, np.ndarray | ComputedBytes]
        ] = []  # position of the offset, alignment, contents
        self.outside = outside
        self.behind: list[tuple[int, np.ndarray | ComputedBytes]] = []  # position of the offset (8 bytes), contents

    def file(self, model: TableObject) -> list[Any]:
        self.out += bytes(4) + schema.FILE_IDENTIFIER
        self.point(0, self.table("Model", model))
        for (width, contents), offsets in self.leaves.items():
            leaf = self.leaf(width, contents)
            for offset in offsets:
                self.point(offset, leaf)
        starts = self.carry()
        tail: list[Any] = []  # what follows the tables: large vectors are written from where they are
        end = len(self.out)
        for offset, align, array in self.aligned:
            targets = [
                start + position
                for source, start in starts
                if isinstance(array, np.ndarray) and (position := source.place_of(array)) is not None
            ]
            if targets:
                self.point(offset, targets[0] - 4)
                continue
            start = end + -(end + 4) % max(align, 4)
            self.point(offset, start)
            tail += [bytes(start - end) + _u32.pack(array.size), array]
            end = start + 4 + array.nbytes
        if self.behind:
            tail.append(bytes(-end % OUTSIDE_ALIGN))
            end += len(tail[-1])
        if end > FLATBUFFER_LIMIT:
            raise _too_large(end)
        parts: list[Any] = [self.out, *tail]
        for offset, array in self.behind:
            struct.pack_into("<Q", self.out, offset, end)
            padding = -array.nbytes % OUTSIDE_ALIGN
            parts += [array, bytes(padding)]
            end += array.nbytes + padding
        return parts

    def carry(self) -> list[tuple[SourceFile, int]]:
        """Append the source files of unknown union members; return each with its offset."""
        starts = []
        for source, pointers in self.carried.values():
            self.pad(CARRIED_ALIGN)
            start = len(self.out)
            self.out += source.flatbuffer
            starts.append((source, start))
            for offset, target in pointers:
                self.point(offset, start + target)
        return starts

    # offsets are in bytes from the start of the file

    def point(self, offset: int, target: int) -> None:
        _u32.pack_into(self.out, offset, target - offset)

    def pad(self, multiple: int, ahead: int = 0) -> None:
        """Pad with zeros until the position `ahead` bytes from here is a multiple."""
        self.out += bytes(-(len(self.out) + ahead) % multiple)

    def table(self, name: str, table: Any) -> int:
        if getattr(table, "table_name", None) != name:
            raise EncodingError(f"found {type(table).__name__}, wanted {name}")
        slots: list[tuple[int, str]] = []
        values: list[Any] = []
        later: list[tuple[int, schema.SchemaField, Any]] = []  # slot index, field, value
        behind = self.appended_fields(name, table)
        for field in schema.table(name).fields:
            value = getattr(table, field.name)
            if field.name in behind:
                value = behind[field.name]
            elif value is field.default and field.kind == "scalar":
                continue  # most fields of most tables
            if field.kind == "scalar":
                stored = stored_scalar(field, value)
                if stored is not None or field.name in behind:
                    slots.append((field.id, field.scalar))
                    values.append(0 if stored is None else stored)
            elif is_present(name, field, value):
                if field.kind == "union" and self.drop and isinstance(value, UnknownUnionMember):
                    continue
                if field.kind == "union":
                    slots.append((field.id - 1, "uint8"))
                    values.append(union_tag(field, value))
                later.append((len(slots), field, value))
                slots.append((field.id, "uint32"))
                values.append(0)
        newer: dict[int, UnknownField] = getattr(table, "unknown_fields", {})
        for id, unknown in () if self.drop else newer.items():
            if unknown.maybe_offset:
                what = f"field {id} of table {name} is newer than the schema, and may be an offset that cannot be moved"
                raise EncodingError(what, newer=True)
            slots.append((id, str(len(unknown.bytes))))
            values.append(unknown.bytes)
        plan = _plan(tuple(slots))
        vtable = self.vtable(plan.vtable)
        self.pad(plan.align, ahead=4)
        offset = len(self.out)
        self.out += plan.pack.pack(offset - vtable, *[values[i] for i in plan.order])
        if behind:
            offset_id = next(field.id for field in schema.table(name).fields if field.name == behind["at"])
            slot = next(i for i, (id, _) in enumerate(slots) if id == offset_id)
            self.behind.append((offset + plan.at[slot], behind["contents"]))
        for slot, field, value in later:
            try:
                self.child(offset + plan.at[slot], field, value)
            except EncodingError as misfit:
                misfit.path = f".{field.name}{misfit.path}"
                raise
        return offset

    def appended_fields(self, name: str, table: Any) -> dict[str, Any]:
        """Return the fields to write for a table whose data is stored after the FlatBuffer."""
        if name == "Buffer" and table.data is not None and (self.outside or marks_appended_data(table.offset)):
            contents = stored_vector(field_of("Buffer", "data"), table.data)
            return {"data": None, "offset": 2, "size": contents.size, "at": "offset", "contents": contents}
        if (
            name == "Operator"
            and table.custom_options is not None
            and marks_appended_data(table.large_custom_options_offset)
        ):
            contents = stored_vector(field_of("Operator", "custom_options"), table.custom_options)
            offset, size = "large_custom_options_offset", "large_custom_options_size"
            return {"custom_options": None, offset: 2, size: len(contents), "at": offset, "contents": contents}
        return {}

    def vtable(self, vtable: bytes) -> int:
        offset = self.vtables.get(vtable)
        if offset is None:
            self.pad(2)
            offset = self.vtables[vtable] = len(self.out)
            self.out += vtable
        return offset

    def child(self, offset: int, field: schema.SchemaField, value: Any) -> None:
        """Write the target of a field, and the offset to it at a position."""
        if field.kind == "table":
            self.point(offset, self.table(field.of, value))
        elif field.kind == "union" and isinstance(value, UnknownUnionMember):
            if value.source is None:
                raise EncodingError(f"a member of union {field.of} that the schema lacks, tag {value.tag}", newer=True)
            self.carried.setdefault(id(value.source), (value.source, []))[1].append((offset, value.at))
        elif field.kind == "union":
            self.point(offset, self.table(value.table_name, value))
        elif field.kind == "tables":
            self.point(offset, self.vector_of_tables(field, value))
        elif field.kind == "string":
            self.leaves.setdefault((0, encode_text(value)), []).append(offset)
        else:
            array = stored_vector(field, value)
            self.vectors += array.nbytes
            if self.vectors > FLATBUFFER_LIMIT:
                raise _too_large(self.vectors)
            if field.align > array.itemsize:
                self.aligned.append((offset, field.align, array))
            else:
                assert isinstance(array, np.ndarray)  # computed bytes are those of buffers
                self.leaves.setdefault((array.itemsize, array.tobytes()), []).append(offset)

    def vector_of_tables(self, field: schema.SchemaField, items: Any) -> int:
        self.pad(4)
        offset = len(self.out)
        self.out += _u32.pack(len(items)) + bytes(4 * len(items))
        for i, item in enumerate(items):
            try:
                self.point(offset + 4 + 4 * i, self.table(field.of, item))
            except EncodingError as misfit:
                misfit.path = f"[{i}]{misfit.path}"
                raise
        return offset

    def leaf(self, width: int, contents: bytes) -> int:
        """Write a vector of scalars, or a string if the width is 0."""
        self.pad(max(width, 4), ahead=4)
        offset = len(self.out)
        self.out += _u32.pack(len(contents) // (width or 1)) + contents + (b"" if width else b"\0")
        return offset
