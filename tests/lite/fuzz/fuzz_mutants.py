"""Mutants of .tflite files: the case of a number is always the same bytes, so a finding is named by its number.

Lives here: `mutant`, its seeds (the official corpus and our own models; models of one operator), changes to bytes and
to objects, which fuzz_options.py applies to other files.
Not here: what a mutant is tried on (fuzz_target.py), running many (run_fuzz.py).
"""

from __future__ import annotations

import functools
import random
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import official

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("format", "ops", "")]

from drawn import Draw, model_of
from drawn_table import ROWS
from format_models import add_model, rich_model

from opwright.core import errors
from opwright.lite.format import Model, objects, schema

EXTREMES = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFF0,
    0xFFFFFFFF,
)
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    -2,
    7,
    31,
    32,
    33,
    127,
    128,
    255,
    256,
    65535,
    2**16,
    2**31 - 1,
    -(2**31),
    2**32 - 1,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
)
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, -3e38, float("inf"), float("-inf"), float("nan"))


@functools.cache
def seeds() -> tuple[bytes, ...]:
    """The files to change. Those of the corpus that are large are left out: their weights would take most changes."""
    files = [case.bytes() for case in official.cases()]
    return (add_model().to_bytes(), rich_model().to_bytes(), *(data for data in files if len(data) < 9000))


class _OperatorSeeds(Sequence[bytes]):
    def __init__(self) -> None:
        self._kinds = [(row, kind) for row in ROWS for kind in row.kinds]
        self._files: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._kinds)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._files:
            row, kind = self._kinds[index]
            self._files[index] = bytes(model_of(row.name, row.draw(Draw(0, kind))).to_bytes())
        return self._files[index]


@functools.cache
def operator_seeds() -> Sequence[bytes]:
    """One model of one operator for each row and type of the table operator x type: 500 bytes each, built when used."""
    return _OperatorSeeds()


def mutant(number: int, files: Sequence[bytes] | None = None) -> bytes:
    """Return the bytes of a case. files: the seeds, by default those of `seeds`."""
    draw = random.Random(number)
    files = files or seeds()
    data = files[draw.randrange(len(files))]
    if draw.random() < 0.45:
        return _changed_objects(data, draw, files)
    return changed_bytes(data, draw, files)


# ---- bytes ----------------------------------------------------------------------------------------------------------


def changed_bytes(data: bytes, draw: random.Random, files: Sequence[bytes] | None = None) -> bytes:
    """Return the file after one to eight changes that ignore its structure. files: what pieces are spliced from."""
    out = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 5, 8))):
        if len(out) < 12:
            break
        change = draw.choice(BYTES)
        if change is _splice:
            _splice(out, draw, files or seeds())
        else:
            change(out, draw)
    return bytes(out)


def _flip(out: bytearray, draw: random.Random) -> None:
    out[draw.randrange(len(out))] ^= 1 << draw.randrange(8)


def _byte(out: bytearray, draw: random.Random) -> None:
    out[draw.randrange(len(out))] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))


def _word(out: bytearray, draw: random.Random) -> None:
    at = draw.randrange(len(out) // 4) * 4
    number = draw.choice((*EXTREMES, len(out), len(out) - at, draw.randrange(len(out))))
    struct.pack_into("<I", out, at, number & 0xFFFFFFFF)


def _nudge(out: bytearray, draw: random.Random) -> None:
    at = draw.randrange(len(out) // 4) * 4
    (number,) = struct.unpack_from("<I", out, at)
    struct.pack_into("<I", out, at, (number + draw.choice((-16, -8, -4, -2, -1, 1, 2, 4, 8, 16))) & 0xFFFFFFFF)


def _half(out: bytearray, draw: random.Random) -> None:
    at = draw.randrange(len(out) // 2) * 2
    struct.pack_into("<H", out, at, draw.choice((*EXTREMES, len(out))) & 0xFFFF)


def _wide(out: bytearray, draw: random.Random) -> None:
    at = draw.randrange(len(out) // 8) * 8
    struct.pack_into("<Q", out, at, draw.choice(NUMBERS) & (2**64 - 1))


def _splice_word(out: bytearray, draw: random.Random) -> None:
    """A word from elsewhere: offsets lead to other tables, vtables serve other tables."""
    a, b = draw.randrange(len(out) // 4) * 4, draw.randrange(len(out) // 4) * 4
    out[a : a + 4] = out[b : b + 4]


def _aim(out: bytearray, draw: random.Random) -> None:
    """An offset to any place."""
    a, b = draw.randrange(len(out) // 4) * 4, draw.randrange(len(out) // 4) * 4
    struct.pack_into("<I", out, a, (b - a) & 0xFFFFFFFF)


def _splice(out: bytearray, draw: random.Random, files: Sequence[bytes]) -> None:
    """A piece of any of the files."""
    other = draw.choice(files)
    n = min(draw.choice((4, 8, 16, 64, 256)), len(out), len(other))
    a, b = draw.randrange(0, len(out) - n + 1, 4), draw.randrange(0, len(other) - n + 1, 4)
    out[a : a + n] = other[b : b + n]


def _cut(out: bytearray, draw: random.Random) -> None:
    del out[draw.randrange(len(out)) :]


def _remove(out: bytearray, draw: random.Random) -> None:
    at = draw.randrange(len(out))
    del out[at : at + draw.choice((1, 2, 4, 8, 100))]


def _insert(out: bytearray, draw: random.Random) -> None:
    at = draw.randrange(len(out))
    out[at:at] = bytes(draw.choice((1, 4, 8, 64))) if draw.random() < 0.5 else draw.randbytes(draw.randrange(1, 40))


BYTES = (
    _flip,
    _flip,
    _byte,
    _word,
    _word,
    _word,
    _nudge,
    _nudge,
    _half,
    _wide,
    _splice_word,
    _aim,
    _aim,
    _splice,
    _cut,
    _remove,
    _insert,
)


# ---- objects --------------------------------------------------------------------------------------------------------


def _tables(model: Any) -> list[Any]:
    result, todo = [], [model]
    while todo:
        table = todo.pop()
        result.append(table)
        for field in schema.table(table.table_name).fields:
            value = getattr(table, field.name)
            if field.kind == "tables":
                todo += value
            elif field.kind in ("table", "union") and value is not None:
                todo.append(value)
    return result


@functools.lru_cache(256)
def _donors(data: bytes) -> list[Any]:
    """The tables of a seed. Mutants refer to them; nothing changes them."""
    return _tables(Model.read(data))


def _changed_objects(data: bytes, draw: random.Random, files: Sequence[bytes] | None = None) -> bytes:
    """A readable file of any contents: one to five fields of any tables hold something else."""
    model = Model.read(data)
    tables = _tables(model)
    donors: list[Any] | None = None
    for _ in range(draw.choice((1, 1, 1, 2, 2, 5))):
        table = draw.choice(tables)
        if table is model and draw.random() < 0.8:
            continue
        fields = schema.table(table.table_name).fields
        if not fields:
            continue
        field = draw.choice(fields)
        if field.name == "version":
            continue
        if donors is None and draw.random() < 0.3:
            donors = _donors(draw.choice(files or seeds()))
        setattr(table, field.name, _other(field, getattr(table, field.name), draw, donors or tables))
    try:
        return model.to_bytes()
    except errors.OpError:  # a splice may have made a table hold itself, or one of the wrong kind
        return data
    except RecursionError:
        return data


def _scalar(field: schema.SchemaField, draw: random.Random) -> Any:
    if field.scalar == "float32":
        return draw.choice(FLOATS)
    if field.scalar == "bool":
        return draw.random() < 0.5
    limits = np.iinfo(schema.SCALARS[field.scalar][2])
    if field.enum and draw.random() < 0.7:
        return int(draw.choice(list(schema.enum(field.enum))))
    number = draw.choice(NUMBERS) if draw.random() < 0.6 else draw.randrange(40)
    return min(max(number, int(limits.min)), int(limits.max))


def _other(field: schema.SchemaField, value: Any, draw: random.Random, donors: list[Any]) -> Any:
    if field.kind == "scalar":
        return _scalar(field, draw)
    if field.kind == "string":
        return draw.choice((None, "", "x", "a\0b", "\udcff", "y" * 300))
    if field.kind == "vector":
        return _vector(field, value, draw)
    if field.kind == "tables":
        items = list(value)
        alike = [table for table in donors if table.table_name == field.of]
        change = draw.randrange(5)
        if change == 0 or not items:
            items += [draw.choice(alike)] if alike else [objects.table_class(field.of)()]
        elif change == 1:
            del items[draw.randrange(len(items))]
        elif change == 2:
            items.insert(draw.randrange(len(items)), draw.choice(items))
        elif change == 3 and alike:
            items[draw.randrange(len(items))] = draw.choice(alike)
        else:
            a, b = draw.randrange(len(items)), draw.randrange(len(items))
            items[a], items[b] = items[b], items[a]
        return items
    if draw.random() < 0.3:
        return None
    names = [field.of] if field.kind == "table" else list(schema.union_tags(field.of))
    alike = [table for table in donors if table.table_name in names]
    return draw.choice(alike) if alike and draw.random() < 0.6 else objects.table_class(draw.choice(names))()


def _vector(field: schema.SchemaField, value: Any, draw: random.Random) -> Any:
    dtype = schema.SCALARS[field.scalar][2]
    items = [] if value is None else np.asarray(value).tolist()
    change = draw.randrange(5)
    if change == 0 or not items:
        items = items[: draw.randrange(4)] + [_scalar(field, draw) for _ in range(draw.randrange(4))]
    elif change == 1:
        items[draw.randrange(len(items))] = _scalar(field, draw)
    elif change == 2:
        del items[draw.randrange(len(items)) :]
    elif change == 3:
        items = items + items[: 1 + draw.randrange(len(items))]
    else:
        items[draw.randrange(len(items))] = items[draw.randrange(len(items))]
    return np.array(items, dtype)
