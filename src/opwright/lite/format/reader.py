"""Bytes of a .tflite file to objects: a FlatBuffers reader, driven by the schema, that trusts nothing it reads.

Lives here: `read`, from any buffer (bytes, mmap) to a `Model` object tree, with every offset, vtable, length, alignment
and string checked before use, and the work bounded by the size of the file. Vectors of scalars are views on the buffer.
Not here: whether the contents make sense (verify.py), files and paths (model.py), writing (writer.py).

How the work is bounded. The tree is at most six tables deep, as no table of the schema holds itself. A table takes four
bytes and the offset to it four, so a file that shares nothing has one in eight bytes; more are refused, and more than
MAX_TABLES, the limit of the official verifier. Strings that are not the same may not overlap. The bytes in vectors,
counted each time one is reached, may be SHARING times the file and a megabyte. So offsets that share or overlap cannot
blow up a small file.

How it is fast. Tables written alike share a vtable; a vtable is checked and compiled once to a `_Layout`, which then
reads all inline fields of a table by one `struct` call. Fields newer than the schema are skipped, and so not written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opwright.core.errors import DataLossError, InvalidArgumentError
from opwright.lite.format import schema
from opwright.lite.format.objects import TableObject, UnknownUnionMember, default_of, table_class

NOT_VALID = "The model is not a valid Flatbuffer buffer"  # the words of the official run time
SHARING = 4
MAX_TABLES = 1_000_000
SMALLEST = 8  # root offset and identifier

_u32 = struct.Struct("<I")
_i32 = struct.Struct("<i")
_u16x2 = struct.Struct("<HH")


def read(buffer: Any) -> TableObject:
    """The model in a buffer; its weights are views, so the buffer lives as long as they do.

    buffer: bytes, bytearray, memoryview, mmap or uint8 array.
    raises DataLossError where the structure is damaged (the text names the field), InvalidArgumentError for a file of
    another kind or schema version
    """
    return _Reader(buffer).model()


class _Damage(Exception):
    """Raised inside; each level on the way up puts its step in front of `path`."""

    def __init__(self, what: str, path: str = "") -> None:
        self.what, self.path = what, path


class _Layout(NamedTuple):
    """One vtable, compiled for one table: how to read all of its tables that use it."""

    size: int  # bytes in the table
    unpack: struct.Struct  # all present inline fields, in order of position
    phase: int | None  # where 8-byte fields are, modulo 8; None without such
    steps: tuple[tuple[str, int, Callable[..., Any] | dict[int, Any] | None, schema.Field], ...]  # name, position, how
    unions: tuple[tuple[schema.Field, int, int], ...]  # field, position of its type tag, position of its offset
    absent: tuple[tuple[str, Any], ...]
    absent_lists: tuple[str, ...]


class _Reader:
    def __init__(self, buffer: Any) -> None:
        self.view = memoryview(buffer).cast("B")
        self.size = len(self.view)
        self.tables_left = min(self.size // 8, MAX_TABLES)
        self.bytes_left = SHARING * self.size + (1 << 20)
        self.text_left = self.size
        self.layouts: dict[tuple[str, int], _Layout] = {}
        self.strings: dict[int, str] = {}

    def model(self) -> TableObject:
        if self.size < SMALLEST:
            short = "the file is empty" if self.size == 0 else "the file is too short"
            raise DataLossError(what=f"{NOT_VALID}: {short}", found=f"{self.size} bytes",
                                wanted=f"at least {SMALLEST} bytes", explain="OW401")  # fmt: skip
        found = bytes(self.view[schema.FILE_IDENTIFIER_AT : SMALLEST])
        if found != schema.FILE_IDENTIFIER:
            raise InvalidArgumentError(
                what=f"{NOT_VALID}: wrong file identifier, so this is no .tflite file",
                found=repr(found.decode("latin-1")), wanted=repr(schema.FILE_IDENTIFIER.decode()), explain="OW401",
            )  # fmt: skip
        try:
            (root,) = _u32.unpack_from(self.view, 0)
            model: Any = self.table("Model", root)
            self.stored_outside(model)
        except _Damage as damage:
            raise DataLossError(
                what=f"{NOT_VALID}: Model{damage.path}: {damage.what}",
                do="get or convert the file again; it is cut short or damaged",
                explain="OW401",
            ) from None
        if model.version != schema.VERSION:
            what = f"Model provided is schema version {model.version} not equal to supported version {schema.VERSION}."
            raise InvalidArgumentError(what=what)
        return model

    # one method per kind of thing; `at` is a byte offset from the start of the file

    def table(self, name: str, at: int) -> TableObject:
        self.tables_left -= 1
        if self.tables_left < 0:
            raise _Damage(f"more tables than {self.size} bytes can hold or {MAX_TABLES}: offsets share them")
        if at & 3 or at + 4 > self.size:
            raise self.misplaced(f"table {name}", at)
        vtable = at - _i32.unpack_from(self.view, at)[0]
        layout = self.layouts.get((name, vtable)) or self.layout(name, vtable)
        if at + layout.size > self.size:
            raise _Damage(f"table {name} of {layout.size} bytes at offset {at} runs past {self.end}")
        if layout.phase is not None and (at + layout.phase) & 7:
            raise _Damage(f"8-byte field of table {name} at offset {at} is not aligned")
        cls = table_class(name)
        table = cls.__new__(cls)
        for attribute, value in layout.absent:
            setattr(table, attribute, value)
        for attribute in layout.absent_lists:
            setattr(table, attribute, [])
        values = layout.unpack.unpack_from(self.view, at)
        for (attribute, position, how, field), value in zip(layout.steps, values):
            if how is None:
                setattr(table, attribute, value)
            elif type(how) is dict:
                setattr(table, attribute, how.get(value, value))
            else:
                try:
                    setattr(table, attribute, how(self, field, at + position + value, value))  # type: ignore[operator]
                except _Damage as damage:
                    damage.path = f".{attribute}{damage.path}"
                    raise
        for field, tag_at, offset_at in layout.unions:
            try:
                setattr(table, field.name, self.union(field, at + tag_at, at + offset_at))
            except _Damage as damage:
                damage.path = f".{field.name}{damage.path}"
                raise
        return table

    def layout(self, name: str, vtable: int) -> _Layout:
        """Check the vtable at an offset and compile it."""
        if vtable < 0 or vtable & 1 or vtable + 4 > self.size:
            raise self.misplaced(f"vtable of table {name}", vtable)
        length, size = _u16x2.unpack_from(self.view, vtable)
        if length < 4 or length & 1 or vtable + length > self.size:
            raise _Damage(f"vtable of table {name} at offset {vtable}: {length} bytes of {self.size - vtable}")
        entries = struct.unpack_from(f"<{length // 2}H", self.view, vtable)[2:]
        present, absent, lists, unions, phases = [], [], [], [], set()
        for field in schema.table(name).fields:
            position = entries[field.id] if field.id < len(entries) else 0
            if position == 0:
                if field.kind == "tables":
                    lists.append(field.name)
                else:
                    absent.append((field.name, default_of(field)))
                continue
            width = schema.SCALARS[field.inline][1]
            if position < 4 or position + width > size or (width < 8 and position % width):
                raise _Damage(f"field of {width} bytes at byte {position} of a table of {size}", f".{field.name}")
            if width == 8:
                phases.add(position % 8)
            if field.kind == "union":
                tag_at = entries[field.id - 1]
                if tag_at and (tag_at < 4 or tag_at >= size):
                    raise _Damage(f"type tag at byte {tag_at} of a table of {size}", f".{field.name}")
                if tag_at:
                    unions.append((field, tag_at, position))
                else:
                    absent.append((field.name, None))
            else:
                present.append((position, field))
        if len(phases) > 1:
            raise _Damage(f"8-byte fields of table {name} are not aligned to each other")
        present.sort(key=lambda item: item[0])
        steps, code, end = [], "<", 0
        for position, field in present:
            if position < end:
                raise _Damage(f"fields of table {name} overlap", f".{field.name}")
            letter, width, _dtype = schema.SCALARS[field.inline]
            code += f"{position - end}x{letter}"
            end = position + width
            steps.append((field.name, position, _how(field), field))
        layout = _Layout(max(size, 4), struct.Struct(code), phases.pop() if phases else None,
                         tuple(steps), tuple(unions), tuple(absent), tuple(lists))  # fmt: skip
        self.layouts[name, vtable] = layout
        return layout

    def union(self, field: schema.Field, tag_at: int, offset_at: int) -> TableObject | None:
        tag = self.view[tag_at]
        if tag == 0:
            return None
        member = schema.union(field.of).get(tag)
        if member is None:
            return UnknownUnionMember(tag)
        return self.table(member, offset_at + _u32.unpack_from(self.view, offset_at)[0])

    def length(self, what: str, width: int, at: int) -> int:
        """The element count of the vector at an offset, after checking that its elements are in the file."""
        if at & 3 or at + 4 > self.size:
            raise self.misplaced(f"vector of {what}", at)
        (n,) = _u32.unpack_from(self.view, at)
        if at + 4 + n * width > self.size:
            raise _Damage(f"vector of {n} {what} at offset {at} runs past {self.end}")
        return n

    def vector(self, field: schema.Field, at: int, _: int) -> np.ndarray:
        _code, width, dtype = schema.SCALARS[field.scalar]
        n = self.length(field.scalar, width, at)
        if width == 8 and n and (at + 4) & 7:
            raise _Damage(f"vector of {field.scalar} at offset {at} is not aligned to 8 bytes")
        self.spend(n * width)
        if field.scalar == "bool":
            return np.frombuffer(self.view, np.uint8, n, at + 4) != 0
        return np.frombuffer(self.view, dtype, n, at + 4)

    def string(self, _field: schema.Field, at: int, _: int) -> str:
        text = self.strings.get(at)
        if text is None:
            n = self.length("bytes (a string)", 1, at)
            if at + 4 + n >= self.size or self.view[at + 4 + n] != 0:
                raise _Damage(f"string of {n} bytes at offset {at} has no zero byte at its end")
            self.text_left -= n
            if self.text_left < 0:
                raise _Damage("strings overlap")
            text = str(self.view[at + 4 : at + 4 + n], "utf-8", "surrogateescape")
            self.strings[at] = text
        return text

    def one_table(self, field: schema.Field, at: int, _: int) -> TableObject:
        return self.table(field.of, at)

    def vector_of_tables(self, field: schema.Field, at: int, _: int) -> list[TableObject]:
        n = self.length("tables", 4, at)
        if n > self.tables_left:
            raise _Damage(f"vector of {n} tables at offset {at}: more than the rest of the file can hold")
        items = []
        offsets = struct.unpack_from(f"<{n}I", self.view, at + 4)
        start = at + 4
        for i, offset in enumerate(offsets):
            try:
                items.append(self.table(field.of, start + 4 * i + offset))
            except _Damage as damage:
                damage.path = f"[{i}]{damage.path}"
                raise
        return items

    def stored_outside(self, model: Any) -> None:
        """Attach the bytes that files over 2 GB keep behind the FlatBuffer; the marks left are `offset = size = 1`.

        An offset of 0 or 1 means that there are none (schema.fbs, tables Buffer and Operator).
        """
        for i, buffer in enumerate(model.buffers):
            if buffer.offset > 1:
                buffer.data = self.outside(buffer.offset, buffer.size, f".buffers[{i}]")
                buffer.offset = buffer.size = 1
        for i, subgraph in enumerate(model.subgraphs):
            for j, op in enumerate(subgraph.operators):
                if op.large_custom_options_offset > 1:
                    path = f".subgraphs[{i}].operators[{j}].large_custom_options"
                    op.custom_options = self.outside(op.large_custom_options_offset, op.large_custom_options_size, path)
                    op.large_custom_options_offset = op.large_custom_options_size = 1

    def outside(self, at: int, n: int, path: str) -> np.ndarray:
        if at + n > self.size:
            raise _Damage(f"{n} bytes stored at offset {at} run past {self.end}", path)
        self.spend(n)
        return np.frombuffer(self.view, np.uint8, n, at)

    def spend(self, n: int) -> None:
        self.bytes_left -= n
        if self.bytes_left < 0:
            raise _Damage(f"the same bytes are used more than {SHARING} times over")

    @property
    def end(self) -> str:
        return f"the end of the file ({self.size} bytes)"

    def misplaced(self, what: str, at: int) -> _Damage:
        if 0 <= at <= self.size - 4:
            return _Damage(f"{what} at offset {at} is not aligned")
        return _Damage(f"{what} at offset {at} lies outside the file ({self.size} bytes)")


_HOW: dict[str, Callable[..., Any]] = {
    "string": _Reader.string,
    "vector": _Reader.vector,
    "table": _Reader.one_table,
    "tables": _Reader.vector_of_tables,
}
_BOOL = {0: False} | dict.fromkeys(range(1, 256), True)


def _how(field: schema.Field) -> Callable[..., Any] | dict[int, Any] | None:
    """How an inline value becomes the attribute: as it is, by a mapping, or by a method of the reader."""
    if field.kind != "scalar":
        return _HOW[field.kind]
    if field.enum:
        return schema.enum_members(field.enum)
    return _BOOL if field.scalar == "bool" else None
