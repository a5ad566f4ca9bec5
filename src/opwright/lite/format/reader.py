"""FlatBuffers reader for .tflite files, driven by the schema, for untrusted bytes.

Lives here: `read`, from any buffer (bytes, mmap) to a `Model` object tree, with every offset, vtable, length, alignment
and string checked before use, and the work bounded by the size of the file. Vectors of scalars are views on the buffer,
except 8-byte elements at an odd multiple of 4 bytes, as some tools write them: these are copied. `find_archive`, the
zip archive that task libraries append to a file, with labels and vocabularies; `relocated`, the archive at another
offset.
Not here: whether the contents make sense (verify.py), files and paths (model.py), writing (writer.py), compiled vtables
(table_layout.py), the entries of an archive (`zipfile` reads them).

Bounds on work. The tree is at most six tables deep, as no table of the schema contains itself. A table takes four bytes
and the offset to it four, so a file without sharing has at most one table in eight bytes; the reader rejects more, and
more than MAX_TABLES, the limit of the official verifier. Distinct strings must not overlap. The bytes of vectors and
vtables, counted at each visit, are limited to SHARING times the file plus a megabyte. Shared or overlapping offsets
therefore cannot inflate a small file. Python objects are limited to ROOM bytes plus twice the file.

Speed. Tables with the same fields share a vtable; a vtable is checked and compiled once to a `TableLayout`, which reads
all inline fields of a table by one `struct` call and is kept between files. Vectors are slices of one array of each
scalar type over the whole file.

Archives. An archive ends with a record that locates its directory, which locates its entries. Writers that append one
count these offsets from the start of the file. In memory they count from the archive's own start. Source: APPNOTE.TXT.
"""

from __future__ import annotations

import functools
import gc
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import DataLossError, InvalidArgumentError
from . import schema
from .objects import SourceFile, TableList, TableObject, UnknownField, UnknownUnionMember
from .table_layout import Damage, Misaligned, TableLayout, layout_of

NOT_VALID = "The model is not a valid Flatbuffer buffer"  # message of the official run time
SHARING = 4
MAX_TABLES = 1_000_000
ROOM = 32 << 20  # bytes of Python objects, in addition to twice the file's size
ARRAY, STRING = 112, 56  # bytes of the Python object of each
LONGEST_KEPT = 128  # bytes of a vtable whose layout is cached: twice the longest of the schema
SMALLEST = 8  # root offset and identifier

_u32 = struct.Struct("<I")


def read(buffer: Any) -> TableObject:
    """Return the model in a buffer; its weights are views, which keep the buffer alive.

    buffer: bytes, bytearray, memoryview, mmap or uint8 array. raises DataLossError for a damaged structure (the text
    names the field), InvalidArgumentError for another kind of file or schema version
    """
    collects = gc.isenabled()
    gc.disable()  # the tree has no cycles: the collector would take longer than the reader
    try:
        return _FlatBufferReader(buffer).model()
    finally:
        if collects:
            gc.enable()


class _Arrays(dict[str, np.ndarray]):
    """The whole file as one read-only array of each scalar type, created on first access."""

    def __init__(self, view: memoryview) -> None:
        self.view = view

    def __missing__(self, scalar: str) -> np.ndarray:
        _, width, dtype = schema.SCALARS[scalar]
        array = self[scalar] = np.frombuffer(self.view[: len(self.view) // width * width], dtype)
        array.flags.writeable = False
        return array


class _FlatBufferReader:
    def __init__(self, buffer: Any) -> None:
        self.view = view = memoryview(buffer).cast("B")
        self.size = len(view)
        words = view[: self.size & ~3]
        if sys.byteorder == "big":
            words = memoryview(np.frombuffer(words, "<u4").astype(np.uint32).tobytes())
        self.u32, self.i32 = words.cast("I"), words.cast("i")
        self.arrays = _Arrays(view)
        self.tables_left = min(self.size // 8, MAX_TABLES)
        self.bytes_left = SHARING * self.size + (1 << 20)
        self.room = 2 * self.size + ROOM
        self.text_left = self.size
        self.layouts: dict[tuple[str, int], TableLayout] = {}
        self.strings: dict[int, str] = {}
        self.source: SourceFile | None = None  # created for the first unknown field or member

    def model(self) -> TableObject:
        if self.size < SMALLEST:
            short = "the file is empty" if self.size == 0 else "the file is too short"
            raise DataLossError(
                what=f"{NOT_VALID}: {short}",
                found=f"{self.size} bytes",
                wanted=f"at least {SMALLEST} bytes",
                explain="OW401",
            )
        identifier = bytes(self.view[schema.FILE_IDENTIFIER_AT : SMALLEST])
        if identifier != schema.FILE_IDENTIFIER:
            raise InvalidArgumentError(
                what=f"{NOT_VALID}: wrong file identifier, so this is not a .tflite file",
                found=repr(identifier.decode("latin-1")),
                wanted=repr(schema.FILE_IDENTIFIER.decode()),
                explain="OW401",
            )
        try:
            (root,) = _u32.unpack_from(self.view, 0)
            model: Any = self.table("Model", root)
            self.stored_outside(model)
            archive = find_archive(self.view)
            if archive is not None:
                self.spend_room(len(archive[1]))
        except Damage as damage:
            raise DataLossError(
                what=f"{NOT_VALID}: Model{damage.path}: {damage.what}", do=damage.do, explain="OW401"
            ) from None
        if model.version != schema.VERSION:
            what = f"Model provided is schema version {model.version} not equal to supported version {schema.VERSION}."
            raise InvalidArgumentError(what=what)
        model.source, model.attachment = self.source, None
        if archive is not None:
            self.end_flatbuffer(archive[0])
            model.attachment = archive[1]
        result: TableObject = model
        return result

    # one method per kind of field; offsets are in bytes from the start of the file

    def table(self, name: str, offset: int) -> TableObject:
        self.tables_left -= 1
        if self.tables_left < 0:
            raise Damage(f"more tables than {self.size} bytes can hold or {MAX_TABLES}: offsets share them")
        if offset & 3 or offset + 4 > self.size:
            raise self.misplaced(f"table {name}", offset)
        vtable = offset - self.i32[offset >> 2]
        layout = self.layouts.get((name, vtable))
        if layout is None:
            layout = self.layouts[name, vtable] = self.layout(name, vtable)
        if offset + layout.size > self.size:
            raise Damage(f"table {name} of {layout.size} bytes at offset {offset} runs past {self.end}")
        if layout.phase is not None and (offset + layout.phase) & 7:
            raise Misaligned(f"8-byte field of table {name} at offset {offset} is not aligned")
        self.room -= layout.room
        if self.room < 0:
            self.spend_room(0)
        table = layout.make()
        for attribute, value in layout.absent:
            setattr(table, attribute, value)
        for attribute in layout.absent_lists:
            setattr(table, attribute, TableList((), True))
        values = layout.unpack.unpack_from(self.view, offset)
        for (attribute, position, how, of), value in zip(layout.steps, values):
            if how is None:
                setattr(table, attribute, value)
            elif isinstance(how, dict):
                setattr(table, attribute, how.get(value, value))
            else:
                try:
                    setattr(table, attribute, how(self, of, offset + position + value))
                except Damage as damage:
                    damage.path = f".{attribute}{damage.path}"
                    raise
        for field, tag_at, offset_at in layout.unions:
            try:
                setattr(table, field.name, self.union(field, offset + tag_at, offset + offset_at))
            except Damage as damage:
                damage.path = f".{field.name}{damage.path}"
                raise
        for tag_at in layout.lone_tags:
            if self.view[offset + tag_at]:
                self.newer()
        if layout.unknown:
            self.unknown_fields(table, layout, offset)
        result: TableObject = table
        return result

    def layout(self, name: str, vtable: int) -> TableLayout:
        """Check and compile the vtable at an offset."""
        if vtable < 0 or vtable & 1 or vtable + 4 > self.size:
            raise self.misplaced(f"vtable of table {name}", vtable)
        length = int.from_bytes(self.view[vtable : vtable + 2], "little")
        if length < 4 or length & 1 or vtable + length > self.size:
            raise Damage(f"vtable of table {name} at offset {vtable}: {length} bytes of {self.size - vtable}")
        self.spend(length)
        self.spend_room(2048)
        entries = bytes(self.view[vtable : vtable + length])
        return _layout(name, entries) if length <= LONGEST_KEPT else _layout.__wrapped__(name, entries)

    def union(self, field: schema.SchemaField, tag_at: int, offset_at: int) -> TableObject | None:
        tag = self.view[tag_at]
        if tag == 0:
            return None
        offset = offset_at + _u32.unpack_from(self.view, offset_at)[0]
        member = schema.union(field.of).get(tag)
        return self.table(member, offset) if member is not None else self.unknown_member(tag, offset)

    def unknown_member(self, tag: int, offset: int) -> UnknownUnionMember:
        """Return a member of a union that is newer than the schema. Its own bytes are checked; its references cannot
        be."""
        name = "of a union newer than the schema"
        if offset & 3 or offset + 4 > self.size:
            raise self.misplaced(f"table {name}", offset)
        vtable = offset - self.i32[offset >> 2]
        if vtable < 0 or vtable & 1 or vtable + 4 > self.size:
            raise self.misplaced(f"vtable of table {name}", vtable)
        length, size = struct.unpack_from("<2H", self.view, vtable)
        if length < 4 or length & 1 or vtable + length > self.size or size < 4 or offset + size > self.size:
            raise Damage(f"table {name} at offset {offset}: {size} bytes, a vtable of {length} bytes")
        self.spend_room(length + size + ARRAY)
        contents = bytes(self.view[vtable : vtable + length]) + bytes(self.view[offset + 4 : offset + size])
        return UnknownUnionMember(tag, self.newer(), offset, contents)

    def unknown_fields(self, table: TableObject, layout: TableLayout, offset: int) -> None:
        fields = {}
        self.newer()
        for id, position, n in layout.unknown:
            raw = bytes(self.view[offset + position : offset + position + n])
            self.spend_room(n + ARRAY)
            target = offset + position + int.from_bytes(raw[:4], "little")
            fits = n >= 4 and (offset + position) & 3 == target & 3 == 0 and not any(raw[4:])
            fields[id] = UnknownField(raw, fits and offset + layout.size <= target <= self.size - 4)
        table.unknown_fields = fields

    def newer(self) -> SourceFile:
        """Return the source file, kept with the model because it contains something newer than the schema."""
        if self.source is None:
            self.source = SourceFile(self.view, self.size)
        return self.source

    def end_flatbuffer(self, offset: int) -> None:
        """Set an upper bound on the end of the FlatBuffer."""
        if self.source is not None and offset < len(self.source.flatbuffer):
            self.source.flatbuffer = self.source.flatbuffer[:offset]

    def vector(self, of: tuple[str, int], offset: int) -> np.ndarray:
        """Return a view on a vector of scalars, after checking its bounds. of: scalar and width."""
        scalar, width = of
        if offset & 3 or offset + 4 > self.size:
            raise self.misplaced(f"vector of {scalar}", offset)
        n = self.u32[offset >> 2]
        total = n * width
        if offset + 4 + total > self.size:
            raise Damage(f"vector of {n} {scalar} at offset {offset} runs past {self.end}")
        self.bytes_left -= total
        if self.bytes_left < 0:
            self.spend(0)
        if scalar == "bool":
            self.spend_room(n)
            result: np.ndarray = np.frombuffer(self.view, np.uint8, n, offset + 4) != 0
            return result
        if width == 8 and n and (offset + 4) & 7:  # accepted: the official verifier checks only the length
            self.spend_room(total)
            array = np.frombuffer(self.view, schema.SCALARS[scalar][2], n, offset + 4).copy()
            array.flags.writeable = False
            return array
        start = (offset + 4) // width
        return self.arrays[scalar][start : start + n]

    def string(self, _of: str, offset: int) -> str:
        text = self.strings.get(offset)
        if text is None:
            if offset & 3 or offset + 4 > self.size:
                raise self.misplaced("string", offset)
            n = self.u32[offset >> 2]
            end = offset + 4 + n
            if end >= self.size or self.view[end] != 0:
                if end > self.size:
                    raise Damage(f"string of {n} bytes at offset {offset} runs past {self.end}")
                raise Damage(f"string of {n} bytes at offset {offset} has no zero byte at its end")
            self.text_left -= n
            if self.text_left < 0:
                raise Damage("strings overlap")
            self.spend_room(STRING + 4 * n)
            text = self.strings[offset] = str(self.view[offset + 4 : end], "utf-8", "surrogateescape")
        return text

    def vector_of_tables(self, name: str, offset: int) -> list[TableObject]:
        if offset & 3 or offset + 4 > self.size:
            raise self.misplaced("vector of tables", offset)
        n = self.u32[offset >> 2]
        if offset + 4 + 4 * n > self.size:
            raise Damage(f"vector of {n} tables at offset {offset} runs past {self.end}")
        if n > self.tables_left:
            raise Damage(f"vector of {n} tables at offset {offset}: more than the rest of the file can hold")
        self.spend_room(8 * n)
        items: list[TableObject] = []
        start, table = offset + 4, self.table
        for relative in self.u32[start >> 2 : (start >> 2) + n]:
            try:
                items.append(table(name, start + relative))
            except Damage as damage:
                damage.path = f"[{len(items)}]{damage.path}"
                raise
            start += 4
        return TableList(items)

    def stored_outside(self, model: Any) -> None:
        """Attach data that files over 2 GB store after the FlatBuffer; `offset = size = 1` marks it.

        An offset of 0 or 1 means none (schema.fbs, tables Buffer and Operator).
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

    def outside(self, offset: int, n: int, path: str) -> np.ndarray:
        if offset + n > self.size:
            raise Damage(f"{n} bytes stored at offset {offset} run past {self.end}", path)
        self.spend(n)
        self.end_flatbuffer(offset)
        array = np.frombuffer(self.view, np.uint8, n, offset)
        array.flags.writeable = False
        return array

    def spend(self, n: int) -> None:
        self.bytes_left -= n
        if self.bytes_left < 0:
            raise Damage(f"the same bytes are used more than {SHARING} times over")

    def spend_room(self, n: int) -> None:
        self.room -= n
        if self.room < 0:
            raise Damage(f"its objects take more memory than {2 * self.size + ROOM} bytes: too many for this file")

    @property
    def end(self) -> str:
        return f"the end of the file ({self.size} bytes)"

    def misplaced(self, what: str, offset: int) -> Damage:
        if 0 <= offset <= self.size - 4:
            return Misaligned(f"{what} at offset {offset} is not aligned")
        return Damage(f"{what} at offset {offset} lies outside the file ({self.size} bytes)")


@functools.lru_cache(1024)
def _layout(name: str, vtable: bytes) -> TableLayout:
    """Return the layout for a vtable's bytes. Files of one writer share vtables, so layouts are kept between files."""
    numbers = struct.unpack(f"<{len(vtable) // 2}H", vtable)
    return layout_of(name, numbers[1], numbers[2:], HOW)


HOW: dict[str, Callable[..., Any]] = {
    "string": _FlatBufferReader.string,
    "vector": _FlatBufferReader.vector,
    "table": _FlatBufferReader.table,
    "tables": _FlatBufferReader.vector_of_tables,
}


END = struct.Struct("<4s4H2LH")  # signature, disks, entries here, entries, directory's size and place, comment's length
ENTRY_SIZE, OFFSET_AT, LENGTHS_AT = 46, 42, 28  # of a directory entry: its size, its offset, its three lengths
COMMENT = 65535


def find_archive(view: memoryview) -> tuple[int, bytes] | None:
    """Return the offset of the archive appended to a model, and the archive with offsets relative to its own start;
    None without one."""
    tail = bytes(view[-END.size - COMMENT :])
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) - end < END.size:
        return None
    end += len(view) - len(tail)
    _, _, _, _, n, size, directory_offset, comment = END.unpack_from(view, end)
    if end + END.size + comment != len(view) or size > end:
        return None
    shift = end - size - directory_offset  # from offsets in the archive to offsets in the file
    offsets = _entry_offsets(view[end - size : end], n)
    if not offsets or min(offsets) + shift < 8 or max(offsets) + shift > end - size:
        return None
    start = min(offsets) + shift
    return start, relocated(bytes(view[start:]), -min(offsets))


def _entry_offsets(directory: Any, n: int) -> list[int]:
    """Return the offsets of the entries; none if the directory is damaged."""
    offsets, position = [], 0
    for _ in range(n):
        if bytes(directory[position : position + 4]) != b"PK\x01\x02" or position + ENTRY_SIZE > len(directory):
            return []
        offsets.append(struct.unpack_from("<L", directory, position + OFFSET_AT)[0])
        position += ENTRY_SIZE + sum(struct.unpack_from("<3H", directory, position + LENGTHS_AT))
    return offsets if position == len(directory) else []


def relocated(archive: bytes, by: int) -> bytes:
    """Return the archive with all its offsets increased by `by`. Raises ValueError past 4 GB."""
    out = bytearray(archive)
    end = archive.rfind(b"PK\x05\x06")
    _, _, _, _, n, size, directory_offset, _ = END.unpack_from(archive, end)
    try:
        struct.pack_into("<L", out, end + 16, directory_offset + by)
        entry = end - size
        for offset in _entry_offsets(memoryview(archive)[end - size : end], n):
            struct.pack_into("<L", out, entry + OFFSET_AT, offset + by)
            entry += ENTRY_SIZE + sum(struct.unpack_from("<3H", archive, entry + LENGTHS_AT))
    except struct.error:
        raise ValueError("the associated files would extend beyond 4 GB") from None
    return bytes(out)
