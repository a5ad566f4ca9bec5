"""NodeDef: how a Flex operator carries a framework's operator in its options, in protocol-buffer bytes.

Lives here: `FlexNodeDef`, `encode`, `decode` of it and of attribute values.
Not here: the meaning of attributes, operators (conversion.py); the wire format (core/protobuf_wire.py).

The options are a FlexBuffer vector of the operator's name and the NodeDef's bytes. Fields by number, in TensorFlow's
protocol (node_def.proto, attr_value.proto, tensor_shape.proto, types.proto):

    NodeDef          1 name   2 op   3 input (repeated)   5 attr (map: 1 key, 2 value)
    AttrValue        1 list   2 s    3 i   4 f   5 b   6 type   7 shape   8 tensor   10 func
    AttrValue.list   2 s      3 i    4 f   5 b   6 type   7 shape
    TensorShape      2 dim (1 size)  3 unknown_rank
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...core.dtypes import DType
from ...core.errors import DataLossError, InvalidArgumentError
from ...core.protobuf_wire import BYTES, FIXED32, VARINT, fields, key, packed_varints, signed, sized, varint
from ...core.shapes import TensorShape
from ...core.type_protos import NUMBERS, TYPES, read_shape, shape_bytes

MAX_SIZE = 1 << 24  # of one NodeDef, far above any
Element = bool | float | bytes | DType | TensorShape
AttrValue = Element | list[Element] | None
"""The value of an attribute as it is read; None for functions and tensors."""


@dataclass
class FlexNodeDef:
    """op: the operator's name. inputs: names, empty where only their number counts. attrs: bool, int, float, bytes,
    DType, TensorShape, or a list of one of these."""

    op: str
    name: str = ""
    inputs: list[str] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)


class Typed(NamedTuple):
    """A list with the kind of its elements, which an empty one needs not, but 1 and 1.0 do. kind: as in signatures."""

    kind: str
    values: list[Any]


# ---- writing ------------------------------------------------------------------------------------------------------


#   kind: (field, how one value is written after its field's key, wire type)
_WRITERS: dict[str, tuple[int, Any, int]] = {
    "string": (2, lambda v: varint(len(v)) + v, BYTES),
    "int": (3, varint, VARINT),
    "float": (4, lambda v: struct.pack("<f", v), FIXED32),
    "bool": (5, lambda v: varint(int(v)), VARINT),
    "type": (6, lambda v: varint(NUMBERS[v]), VARINT),
    "shape": (7, lambda v: (lambda s: varint(len(s)) + s)(shape_bytes(v)), BYTES),
}


def _kind(value: Any) -> str:
    for kind, types in (
        ("bool", bool),
        ("int", int),
        ("float", float),
        ("string", (bytes, str)),
        ("type", DType),
        ("shape", TensorShape),
    ):
        if isinstance(value, types):
            return kind
    raise InvalidArgumentError(what="an attribute that a NodeDef cannot hold", found=repr(value)[:80])


def encode_value(value: Any) -> bytes:
    """Return the bytes of an AttrValue. Raises InvalidArgumentError for a value that it cannot represent."""
    if isinstance(value, (list, tuple)) and not isinstance(value, Typed):
        value = Typed(_kind(value[0]) if value else "int", list(value))
    if not isinstance(value, Typed):
        number, write, wire = _WRITERS[_kind(value)]
        result: bytes = key(number, wire) + write(value.encode() if isinstance(value, str) else value)
        return result
    number, write, wire = _WRITERS[value.kind]
    items = [write(v.encode() if isinstance(v, str) else v) for v in value.values]
    if wire != BYTES and items:  # numbers are packed
        return sized(1, sized(number, b"".join(items)))
    return sized(1, b"".join(key(number, wire) + item for item in items))


def encode(node: FlexNodeDef) -> bytes:
    """Return the bytes of a NodeDef, attributes sorted by name. Raises InvalidArgumentError for a value that it cannot
    represent."""
    parts = [sized(1, node.name.encode())] if node.name else []
    parts.append(sized(2, node.op.encode()))
    parts += [sized(3, name.encode()) for name in node.inputs]
    for name in sorted(node.attrs):
        parts.append(sized(5, sized(1, name.encode()) + sized(2, encode_value(node.attrs[name]))))
    return b"".join(parts)


# ---- reading ------------------------------------------------------------------------------------------------------


def _damaged(what: str) -> DataLossError:
    return DataLossError(what=f"a Flex operator's NodeDef is damaged: {what}", do="convert the model again")


def _read_type(value: int) -> DType:
    dtype = TYPES.get(value)
    if dtype is None:
        raise InvalidArgumentError(what="a Flex operator has a type that is not known here", found=f"DataType {value}")
    return dtype


def _read_float(value: bytes) -> float:
    if len(value) != 4:
        raise _damaged("a float has no four bytes")
    return float(struct.unpack("<f", value)[0])


#   field: (wire type of one, how it is read)
_READERS: dict[int, tuple[int, Any]] = {
    2: (BYTES, bytes),
    3: (VARINT, signed),
    4: (FIXED32, _read_float),
    5: (VARINT, bool),
    6: (VARINT, _read_type),
    7: (BYTES, lambda data: read_shape(data, _damaged)),
}


def _packed(data: bytes, wire: int) -> list[Any]:
    if wire == VARINT:
        return [int(v) & (1 << 64) - 1 for v in packed_varints(data, _damaged)]
    return [data[offset : offset + 4] for offset in range(0, len(data), 4)]


def decode_value(data: bytes) -> AttrValue:
    """Return the value of an AttrValue; None for functions and tensors. Raises DataLossError."""
    result: AttrValue = None
    for number, wire, value in fields(data, _damaged):
        if number == 1 and wire == BYTES:
            result = []
            for inner, inner_wire, item in fields(value, _damaged):
                one, read = _READERS.get(inner, (None, None))
                if read is None:
                    continue
                packed = inner_wire == BYTES and one != BYTES
                result += [read(v) for v in (_packed(item, one) if packed else (item,))]  # type: ignore[arg-type]
        elif number in _READERS and _READERS[number][0] == wire:
            result = _READERS[number][1](value)
    return result


def decode(data: bytes) -> FlexNodeDef:
    """Return the NodeDef in bytes of a file. Raises DataLossError for damaged bytes."""
    if len(data) > MAX_SIZE:
        raise _damaged(f"it has {len(data)} bytes")
    node = FlexNodeDef("")
    try:
        for number, wire, value in fields(data, _damaged):
            if wire != BYTES:
                continue
            if number == 1:
                node.name = value.decode()
            elif number == 2:
                node.op = value.decode()
            elif number == 3:
                node.inputs.append(value.decode())
            elif number == 5:
                entry = {n: v for n, w, v in fields(value, _damaged) if w == BYTES}
                node.attrs[entry.get(1, b"").decode()] = decode_value(entry.get(2, b""))
    except UnicodeDecodeError as error:
        raise _damaged(str(error)) from None
    return node
