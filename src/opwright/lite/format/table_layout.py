"""Layout of a table: a vtable compiled for one table of the schema, which reads every table that uses it.

Lives here: `TableLayout`, `layout_of` with the checks of a vtable's entries, `Damage`.
Not here: locating a vtable in the file, reading by its layout (reader.py).
"""

from __future__ import annotations

import bisect
import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.named_tuples import NamedTuple
from . import schema
from .objects import absent_vector, default_of, table_class


class Damage(Exception):
    """Damaged structure. Each level of the call stack prepends its step to `path`. do: a remedy."""

    do = "get or convert the file again; it is cut short or damaged"

    def __init__(self, what: str, path: str = "") -> None:
        self.what, self.path = what, path


class Misaligned(Damage):
    """A violation of FlatBuffers' alignment, which the official run time also refuses."""

    do = "write or convert the file again: the program that wrote it did not align it as FlatBuffers require"


class TableLayout(NamedTuple):
    """One vtable, compiled for one table."""

    make: Callable[[], Any]  # creates a table's object without values
    size: int  # bytes in the table
    room: int  # bytes of the Python object
    unpack: struct.Struct  # all present inline fields, in order of position
    phase: int | None  # position of 8-byte fields, modulo 8; None without any
    steps: tuple[tuple[str, int, Callable[..., Any] | dict[int, Any] | None, Any], ...]  # name, position, how, of what
    unions: tuple[tuple[schema.SchemaField, int, int], ...]  # field, position of its type tag, position of its offset
    lone_tags: tuple[int, ...]  # positions of type tags of unions whose offset is absent
    absent: tuple[tuple[str, Any], ...]
    absent_lists: tuple[str, ...]
    unknown: tuple[tuple[int, int, int], ...]  # id, position, bytes up to the next field


class _Entries(NamedTuple):
    """Data of a table's schema that all its layouts share."""

    fields: tuple[tuple[schema.SchemaField, str, int, Any], ...]  # field, struct code, width, reader of a scalar
    ids: frozenset[int]


_known: dict[str, _Entries] = {}
_BOOL = {0: False} | dict.fromkeys(range(1, 256), True)


def _entries_of(name: str) -> _Entries:
    entries = _known.get(name)
    if entries is None:
        rows, ids = [], set()
        for field in schema.table(name).fields:
            code, width, _ = schema.SCALARS[field.inline]
            how = None
            if field.kind == "scalar":
                how = schema.enum_members(field.enum) if field.enum else _BOOL if field.scalar == "bool" else None
            rows.append((field, code, width, how))
            ids.add(field.id)
            if field.kind == "union":
                ids.add(field.id - 1)
        entries = _known[name] = _Entries(tuple(rows), frozenset(ids))
    return entries


def layout_of(name: str, size: int, entries: Sequence[int], how: Mapping[str, Callable[..., Any]]) -> TableLayout:
    """Return the layout for a vtable's entries. size: the table's bytes. how: the reader's methods, by kind of field.

    raises Damage naming the field of an impossible entry
    """
    schema_entries = _entries_of(name)
    present, absent, lists, unions, lone, phases = [], [], [], [], [], set()
    for field, code, width, scalar in schema_entries.fields:
        position = entries[field.id] if field.id < len(entries) else 0
        if position == 0:
            if field.kind == "tables":
                lists.append(field.name)
            else:
                if field.kind == "union" and field.id <= len(entries) and 4 <= entries[field.id - 1] < size:
                    lone.append(entries[field.id - 1])
                plain = field.kind != "vector" or field.keeps_absence
                absent.append((field.name, default_of(field) if plain else absent_vector(field.scalar)))
            continue
        if width < 8 and position % width and 4 <= position <= size - width:
            what = f"field of {width} bytes at byte {position} of table {name} is not aligned"
            raise Misaligned(what, f".{field.name}")
        if position < 4 or position + width > size:
            raise Damage(f"field of {width} bytes at byte {position} of a table of {size}", f".{field.name}")
        if width == 8:
            phases.add(position % 8)
        if field.kind == "union":
            tag_at = entries[field.id - 1]
            if tag_at and (tag_at < 4 or tag_at >= size):
                raise Damage(f"type tag at byte {tag_at} of a table of {size}", f".{field.name}")
            if tag_at:
                unions.append((field, tag_at, position))
            else:
                absent.append((field.name, None))
        else:
            present.append((position, code, width, field, scalar if field.kind == "scalar" else how[field.kind]))
    if len(phases) > 1:
        raise Misaligned(f"8-byte fields of table {name} are not aligned to each other")
    present.sort(key=lambda item: item[0])
    steps, codes, end = [], "<", 0
    for position, code, width, field, read in present:
        if position < end:
            raise Damage(f"fields of table {name} overlap", f".{field.name}")
        codes += f"{position - end}x{code}"
        end = position + width
        of = (field.scalar, schema.SCALARS[field.scalar][1]) if field.kind == "vector" else field.of
        steps.append((field.name, position, read, of))
    cls = table_class(name)
    arrays = sum(field.kind == "vector" for _, _, _, field, _ in present)
    room = 64 + 8 * len(schema_entries.fields) + 96 * len(lists) + 112 * arrays
    newer: tuple[tuple[int, int, int], ...] = ()
    if len(entries) > len(schema_entries.ids):
        occupied = [(position, width) for position, _, width, _, _ in present]
        occupied += [(tag_at, 1) for tag_at in (*lone, *(tag_at for _, tag_at, _ in unions))]
        occupied += [(position, 4) for _, _, position in unions]
        newer = _unknown(name, size, entries, schema_entries.ids, occupied)
    make, phase = functools.partial(cls.__new__, cls), phases.pop() if phases else None
    return TableLayout(
        make,
        max(size, 4),
        room,
        struct.Struct(codes),
        phase,
        tuple(steps),
        tuple(unions),
        tuple(lone),
        tuple(absent),
        tuple(lists),
        newer,
    )


def _unknown(
    name: str, size: int, entries: Sequence[int], ids: frozenset[int], occupied: list[tuple[int, int]]
) -> tuple[tuple[int, int, int], ...]:
    """Return the fields newer than the schema. taken: position and width of the others."""
    unknown = sorted((position, id) for id, position in enumerate(entries) if position and id not in ids)
    starts = sorted([position for position, _ in unknown] + [position for position, _ in occupied] + [size])
    covered = {byte for position, width in occupied for byte in range(position, position + width)}
    result = []
    for (position, id), (following, _) in zip(unknown, [*unknown[1:], (size, 0)]):
        if position < 4 or position >= size or position in covered or position == following:
            raise Damage(f"field {id}, newer than the schema, at byte {position} of a table of {size}")
        result.append((id, position, starts[bisect.bisect_right(starts, position)] - position))
    return tuple(result)
