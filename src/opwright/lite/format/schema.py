"""The schema of the .tflite format: its tables, unions and enums, as data read from `schema.json`.

Lives here: `SchemaField`, `SchemaTable`, the lookups `table`, `tables`, `enum`, and the scalar widths that every other
module packs by. `schema.TensorType`, `schema.BuiltinOperator` and every other enum are attributes of this module,
created on first access.
Not here: bytes (reader.py, writer.py), the Python objects (objects.py), versions of operators (versions.py).

Importing this module parses nothing. The first lookup, in model.py, reads the JSON once per process, in half a
millisecond.

Source: the schema of LiteRT at commit f67457790c9c (tflite/converter/schema/schema.fbs), with the ids and defaults of
the generated reader shipped in ai-edge-litert 2.3.0, which is newer by three fields.
"""

from __future__ import annotations

import enum as _enum
import functools
import json
import pkgutil
from typing import Any

import numpy as np

from ...core.forks import once
from ...core.named_tuples import NamedTuple

FILE_IDENTIFIER = b"TFL3"
FILE_IDENTIFIER_AT = 4  # byte offset of the identifier
VERSION = 3

# name: (struct code, width in bytes, NumPy dtype); FlatBuffers is little-endian.
SCALARS: dict[str, tuple[str, int, np.dtype[Any]]] = {
    "bool": ("B", 1, np.dtype(np.bool_)),
    "int8": ("b", 1, np.dtype(np.int8)),
    "uint8": ("B", 1, np.dtype(np.uint8)),
    "uint16": ("H", 2, np.dtype("<u2")),
    "int32": ("i", 4, np.dtype("<i4")),
    "uint32": ("I", 4, np.dtype("<u4")),
    "int64": ("q", 8, np.dtype("<i8")),
    "uint64": ("Q", 8, np.dtype("<u8")),
    "float32": ("f", 4, np.dtype("<f4")),
}

# Vectors written even when empty: run times read them without a test for presence.
ALWAYS_PRESENT = frozenset(
    {
        "Model.operator_codes",
        "Model.subgraphs",
        "Model.buffers",
        "SubGraph.tensors",
        "SubGraph.inputs",
        "SubGraph.outputs",
        "SubGraph.operators",
        "Operator.inputs",
        "Operator.outputs",
        "Tensor.shape",
        "SignatureDef.inputs",
        "SignatureDef.outputs",
    }
)


class SchemaField(NamedTuple):
    """One field of a table.

    kind: "scalar" (bools and enums too), "string", "table", "union", "vector" (of scalars), "tables" (vector of).
    of: the table's name for "table" and "tables", the union's for "union", else "".
    scalar: the key in SCALARS of the inline value, or of a vector's element; "uint32" (an offset) for the other kinds.
    enum: the enum's name when the scalar or the elements are of one, else "".
    default: the value of an absent scalar; None for the other kinds.
    align: least alignment in bytes of a vector's first element from the start of the file.
    """

    name: str
    id: int
    kind: str
    of: str
    scalar: str
    enum: str
    default: Any
    align: int

    @property
    def inline(self) -> str:
        """The key in SCALARS of the table's inline value: the scalar, or an offset to the value."""
        return self.scalar if self.kind == "scalar" else "uint32"

    @property
    def keeps_absence(self) -> bool:
        """Whether an absent value (None) differs from an empty one, as for strings and vectors of bytes.

        A buffer without data belongs to a computed tensor, one with zero bytes to an empty constant.
        """
        return self.kind == "string" or (self.kind == "vector" and self.scalar == "uint8")


class SchemaTable(NamedTuple):
    """One table: its name and fields in order of id. A union's type tag is not a separate field (see `SchemaField.of`);
    it is stored under the id before the union's."""

    name: str
    fields: tuple[SchemaField, ...]


@functools.cache
def _facts() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(pkgutil.get_data(__name__, "schema.json") or b"")
    return result


def _field(owner: str, name: str, id: int, type: str, default: Any, align: int = 1) -> SchemaField:
    element = type.removeprefix("vector:")
    family, _, of = element.partition(":")
    is_vector = type.startswith("vector:")
    if family in ("table", "union"):
        return SchemaField(name, id, "tables" if is_vector else family, of, "uint32", "", None, 4)
    if family == "string":
        return SchemaField(name, id, "string", "", "uint32", "", None, 4)
    scalar = _facts()["enum_base"][of] if family == "enum" else family
    align = max(align, SCALARS[scalar][1])
    return SchemaField(
        name, id, "vector" if is_vector else "scalar", "", scalar, of, None if is_vector else default, align
    )


@once
def table(name: str) -> SchemaTable:
    """Return the table of a name as in the schema ("Conv2DOptions"). Raises KeyError for an unknown name."""
    rows = [_field(name, *row) for row in _facts()["tables"][name]]
    tags = {f"{field.name}_type" for field in rows if field.kind == "union"}
    return SchemaTable(
        name, tuple(sorted((field for field in rows if field.name not in tags), key=lambda field: field.id))
    )


@functools.cache
def tables() -> tuple[str, ...]:
    """Return the names of all tables."""
    return tuple(_facts()["tables"])


@once
def union(name: str) -> dict[int, str]:
    """Return type tag -> table name for a union, without tag 0 (NONE)."""
    tags = _facts()["enums"][name]
    return {tags[member]: member for member in _facts()["unions"][name]}


@once
def union_tags(name: str) -> dict[str, int]:
    """Return table name -> type tag for a union."""
    return {member: tag for tag, member in union(name).items()}


@once
def enum(name: str) -> type[_enum.IntEnum]:
    """Return the enum of a name as an IntEnum class. Raises KeyError for an unknown name."""
    members = _facts()["enums"][name]
    simple = getattr(_enum, "_simple_enum", None)  # used by the standard library for its own enums; takes half the time
    if simple is None:
        return _enum.IntEnum(name, members, module=__name__)  # type: ignore[return-value]
    result: type[_enum.IntEnum] = simple(_enum.IntEnum)(
        type(name, (), {"__module__": __name__, "__qualname__": name, **members})
    )
    return result


@once
def enum_members(name: str) -> dict[int, _enum.IntEnum]:
    """Return value -> member, to convert stored numbers; a missing number is newer than the schema."""
    return {int(member): member for member in enum(name)}


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name in _facts()["enums"]:
        return enum(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
