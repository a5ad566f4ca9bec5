"""Objects to bytes of a .tflite file: a FlatBuffers writer, driven by the schema.

Lives here: `chunks` and `write`, from a `Model` object tree to its bytes. The same tree always gives the same bytes.
Not here: reading (reader.py), files and paths (model.py), checks of meaning (verify.py), versions (versions.py).

The order in the file: identifier, then each table followed by what it holds (its vtable stands before its first use),
then, last, all vectors with a forced alignment, which are the weights: the structure stays together in the first pages.
Written by hand rather than with `flatbuffers.Builder`, whose buffer is filled from the end and moved as it grows.

A FlatBuffer ends at 2 GB. A `Buffer` marked with `offset >= 1`, and every one when the sum would pass that limit, is
stored behind the FlatBuffer, aligned to 16 bytes; so are custom options with `large_custom_options_offset >= 1`.
"""

from __future__ import annotations

import functools
import struct
from typing import Any, NamedTuple

import numpy as np

from opwright.core.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from opwright.lite.format import schema
from opwright.lite.format.objects import TableObject, UnknownUnionMember, as_vector

FLATBUFFER_LIMIT = 2**31 - 1
OUTSIDE_ALIGN = 16
_u32 = struct.Struct("<I")


def write(model: TableObject) -> bytes:
    """The file's bytes. Raises what `chunks` raises."""
    return b"".join(chunks(model))


def chunks(model: TableObject) -> list[Any]:
    """The file as a list of buffers to be written one after the other: the FlatBuffer, and what is stored behind it.

    raises InvalidArgumentError where a field holds what the schema does not allow (the text names the field),
    UnimplementedError for a union member newer than the schema, ResourceExhaustedError past 2 GB of structure
    """
    writer = _Writer(outside=_bytes_of_buffers(model) > FLATBUFFER_LIMIT - (1 << 24))
    try:
        return writer.file(model)
    except _Misfit as misfit:
        raise InvalidArgumentError(what=f"Model{misfit.path} cannot be written: {misfit.what}") from None


def _bytes_of_buffers(model: Any) -> int:
    """Bytes of all buffers; what is no buffer or holds no bytes counts nothing, and is found on writing."""
    total = 0
    for buffer in model.buffers if isinstance(model.buffers, (list, tuple)) else ():
        data = getattr(buffer, "data", None)
        total += (
            data.nbytes if isinstance(data, np.ndarray) else len(data) if isinstance(data, (bytes, bytearray)) else 0
        )
    return total


class _Misfit(Exception):
    """Raised inside; each level on the way up puts its step in front of `path`."""

    def __init__(self, what: str, path: str = "") -> None:
        self.what, self.path = what, path


class _Plan(NamedTuple):
    """How the tables of one kind that have the same fields present are laid out."""

    vtable: bytes
    pack: struct.Struct  # soffset, then the fields in order of position, with padding
    order: tuple[int, ...]  # indices of the present fields in that order
    at: tuple[int, ...]  # position of each present field, as indexed by `order`


@functools.cache
def _plan(slots: tuple[tuple[int, str], ...]) -> _Plan:
    """slots: (id, scalar) of the present fields. Widest first, so that nothing but the end needs padding.

    Positions count from the table's start, which the writer puts 4 bytes before a multiple of 8.
    """
    order = tuple(sorted(range(len(slots)), key=lambda i: (-schema.SCALARS[slots[i][1]][1], slots[i][0])))
    entries = [0] * (max((id for id, _ in slots), default=-1) + 1)
    positions, end, code = [0] * len(slots), 4, "<i"
    for i in order:
        id, scalar = slots[i]
        entries[id] = positions[i] = end
        end += schema.SCALARS[scalar][1]
        code += schema.SCALARS[scalar][0]
    end_padded = -(-end // 4) * 4
    vtable = struct.pack(f"<{2 + len(entries)}H", 4 + 2 * len(entries), end_padded, *entries)
    return _Plan(vtable, struct.Struct(f"{code}{end_padded - end}x"), order, tuple(positions))


class _Writer:
    def __init__(self, outside: bool) -> None:
        self.out = bytearray()
        self.vtables: dict[bytes, int] = {}
        self.aligned: list[tuple[int, int, np.ndarray]] = []  # where its offset goes, alignment, contents
        self.outside = outside
        self.behind: list[tuple[int, np.ndarray]] = []  # where its offset (8 bytes) goes, contents

    def file(self, model: TableObject) -> list[Any]:
        self.out += bytes(4) + schema.FILE_IDENTIFIER
        self.point(0, self.table("Model", model))
        for at, align, array in self.aligned:
            self.point(at, self.vector(array, align))
        self.pad(OUTSIDE_ALIGN)
        if len(self.out) > FLATBUFFER_LIMIT:
            raise ResourceExhaustedError(
                what="the model's structure does not fit a FlatBuffer",
                found=f"{len(self.out)} bytes",
                wanted="below 2 GB",
            )
        parts: list[Any] = [self.out]
        end = len(self.out)
        for at, array in self.behind:
            struct.pack_into("<Q", self.out, at, end)
            padding = -len(array) % OUTSIDE_ALIGN
            parts += [np.ascontiguousarray(array).data, bytes(padding)]
            end += len(array) + padding
        return parts

    # `point` and what it is given: byte offsets from the start of the file

    def point(self, at: int, target: int) -> None:
        _u32.pack_into(self.out, at, target - at)

    def pad(self, multiple: int, ahead: int = 0) -> None:
        """Zeros, until a thing put `ahead` bytes from here is on a multiple."""
        self.out += bytes(-(len(self.out) + ahead) % multiple)

    def table(self, name: str, table: Any) -> int:
        if getattr(table, "table_name", None) != name:
            raise _Misfit(f"found {type(table).__name__}, wanted {name}")
        slots: list[tuple[int, str]] = []
        values: list[Any] = []
        later: list[tuple[int, schema.Field, Any]] = []  # slot index, field, value
        behind = self.goes_behind(name, table)
        for field in schema.table(name).fields:
            value = getattr(table, field.name)
            if field.name in behind:
                value = behind[field.name]
            if field.kind == "scalar":
                stored = _scalar(field, value)
                if stored is not None or field.name in behind:
                    slots.append((field.id, field.scalar))
                    values.append(0 if stored is None else stored)
            elif _is_present(name, field, value):
                if field.kind == "union":
                    slots.append((field.id - 1, "uint8"))
                    values.append(_tag(field, value))
                later.append((len(slots), field, value))
                slots.append((field.id, "uint32"))
                values.append(0)
        plan = _plan(tuple(slots))
        vtable = self.vtable(plan.vtable)
        self.pad(8, ahead=4)
        at = len(self.out)
        self.out += plan.pack.pack(at - vtable, *[values[i] for i in plan.order])
        if behind:
            offset_id = next(field.id for field in schema.table(name).fields if field.name == behind["at"])
            slot = next(i for i, (id, _) in enumerate(slots) if id == offset_id)
            self.behind.append((at + plan.at[slot], behind["contents"]))
        for slot, field, value in later:
            try:
                self.child(at + plan.at[slot], field, value)
            except _Misfit as misfit:
                misfit.path = f".{field.name}{misfit.path}"
                raise
        return at

    def goes_behind(self, name: str, table: Any) -> dict[str, Any]:
        """For a table whose bytes are stored behind the FlatBuffer: the fields to write in place of its own."""
        if name == "Buffer" and table.data is not None and (self.outside or _is_mark(table.offset)):
            contents = _array(_field("Buffer", "data"), table.data)
            return {"data": None, "offset": 2, "size": len(contents), "at": "offset", "contents": contents}
        if name == "Operator" and table.custom_options is not None and _is_mark(table.large_custom_options_offset):
            contents = _array(_field("Operator", "custom_options"), table.custom_options)
            offset, size = "large_custom_options_offset", "large_custom_options_size"
            return {"custom_options": None, offset: 2, size: len(contents), "at": offset, "contents": contents}
        return {}

    def vtable(self, vtable: bytes) -> int:
        at = self.vtables.get(vtable)
        if at is None:
            self.pad(2)
            at = self.vtables[vtable] = len(self.out)
            self.out += vtable
        return at

    def child(self, at: int, field: schema.Field, value: Any) -> None:
        """Write what a field points to, and the offset to it at a position."""
        if field.kind == "table":
            self.point(at, self.table(field.of, value))
        elif field.kind == "union":
            self.point(at, self.table(value.table_name, value))
        elif field.kind == "tables":
            self.point(at, self.vector_of_tables(field, value))
        elif field.kind == "string":
            self.point(at, self.string(value))
        else:
            array = _array(field, value)
            if field.align > array.itemsize:
                self.aligned.append((at, field.align, array))
            else:
                self.point(at, self.vector(array, array.itemsize))

    def vector_of_tables(self, field: schema.Field, items: Any) -> int:
        self.pad(4)
        at = len(self.out)
        self.out += _u32.pack(len(items)) + bytes(4 * len(items))
        for i, item in enumerate(items):
            try:
                self.point(at + 4 + 4 * i, self.table(field.of, item))
            except _Misfit as misfit:
                misfit.path = f"[{i}]{misfit.path}"
                raise
        return at

    def vector(self, array: np.ndarray, align: int) -> int:
        self.pad(max(align, 4), ahead=4)
        at = len(self.out)
        self.out += _u32.pack(len(array))
        self.out += np.ascontiguousarray(array).data.cast("B") if len(array) else b""
        return at

    def string(self, text: Any) -> int:
        if not isinstance(text, str):
            raise _Misfit(f"found {type(text).__name__}, wanted str")
        try:
            encoded = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise _Misfit(f"{text[:40]!a} is no valid text") from None
        self.pad(4)
        at = len(self.out)
        self.out += _u32.pack(len(encoded)) + encoded + b"\0"
        return at


def _field(table: str, name: str) -> schema.Field:
    return next(field for field in schema.table(table).fields if field.name == name)


def _is_mark(offset: Any) -> bool:
    """Whether an offset says that the bytes are stored behind the FlatBuffer."""
    return isinstance(offset, (int, np.integer)) and bool(offset >= 1)


def _is_present(table: str, field: schema.Field, value: Any) -> bool:
    if value is None:
        return f"{table}.{field.name}" in schema.ALWAYS_PRESENT
    if field.kind in ("vector", "tables") and not field.keeps_absence:
        if not hasattr(value, "__len__"):
            raise _Misfit(f"found {type(value).__name__}, wanted a list", f".{field.name}")
        return len(value) > 0 or f"{table}.{field.name}" in schema.ALWAYS_PRESENT
    return True


def _scalar(field: schema.Field, value: Any) -> Any:
    """The number to store, or None when it is the default, which is left out."""
    if field.scalar == "float32":
        try:
            bits = struct.pack("<f", value)
        except (struct.error, OverflowError, TypeError):
            raise _Misfit(f"{value!r} is no float32", f".{field.name}") from None
        return None if bits == struct.pack("<f", field.default) else value
    try:
        number = int(value) if isinstance(value, (bool, np.bool_)) else value.__index__()
        struct.pack(f"<{schema.SCALARS[field.scalar][0]}", number)
    except (struct.error, AttributeError, TypeError):
        raise _Misfit(f"{value!r} is no {field.enum or field.scalar}", f".{field.name}") from None
    if field.scalar == "bool":
        number = int(number != 0)
    return None if number == int(field.default) else number


def _array(field: schema.Field, value: Any) -> np.ndarray:
    try:
        return as_vector(field, () if value is None else value)
    except (ValueError, TypeError) as error:
        raise _Misfit(str(error)) from None


def _tag(field: schema.Field, value: Any) -> int:
    if isinstance(value, UnknownUnionMember):
        raise UnimplementedError(
            what=f"a table of union {field.of} newer than this schema was read and cannot be written",
            found=f"type tag {value.tag}", wanted=f"one of the {len(schema.union(field.of))} members known here",
        )  # fmt: skip
    tag = schema.union_tags(field.of).get(getattr(value, "table_name", ""))
    if tag is None:
        raise _Misfit(f"found {type(value).__name__}, wanted a member of union {field.of}", f".{field.name}")
    return tag
