"""NodeDef: how a Flex operator carries a framework's operator in its options, in protocol-buffer bytes.

Lives here: `FlexNodeDef`, `encode`, `decode` of it and of attribute values.
Not here: the meaning of attributes, operators (conversion.py).

The options are a FlexBuffer vector of the operator's name and the NodeDef's bytes. Fields by number, in TensorFlow's
protocol (node_def.proto, attr_value.proto, tensor_shape.proto, types.proto):

    NodeDef          1 name   2 op   3 input (repeated)   5 attr (map: 1 key, 2 value)
    AttrValue        1 list   2 s    3 i   4 f   5 b   6 type   7 shape   8 tensor   10 func
    AttrValue.list   2 s      3 i    4 f   5 b   6 type   7 shape
    TensorShape      2 dim (1 size)  3 unknown_rank
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import DataLossError, InvalidArgumentError
from ...core.shapes import TensorShape

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
MAX_SIZE = 1 << 24  # of one NodeDef, far above any
TYPES: dict[int, DType] = {  # types.proto
    1: dtypes.float32,
    2: dtypes.float64,
    3: dtypes.int32,
    4: dtypes.uint8,
    5: dtypes.int16,
    6: dtypes.int8,
    7: dtypes.string,
    8: dtypes.complex64,
    9: dtypes.int64,
    10: dtypes.bool,
    14: dtypes.bfloat16,
    17: dtypes.uint16,
    18: dtypes.complex128,
    19: dtypes.float16,
    20: dtypes.resource,
    21: dtypes.variant,
    22: dtypes.uint32,
    23: dtypes.uint64,
}
NUMBERS = {dtype: number for number, dtype in TYPES.items()}


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


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers take ten bytes
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _sized(number: int, contents: bytes) -> bytes:
    return _varint(number << 3 | BYTES) + _varint(len(contents)) + contents


def _shape(shape: TensorShape) -> bytes:
    if shape.dims is None:
        return _varint(3 << 3) + b"\1"
    return b"".join(_sized(2, b"" if d == 0 else _varint(1 << 3) + _varint(-1 if d is None else d)) for d in shape.dims)


#   kind: (field, how one value is written after its field's key, wire type)
_WRITERS: dict[str, tuple[int, Any, int]] = {
    "string": (2, lambda v: _varint(len(v)) + v, BYTES),
    "int": (3, _varint, VARINT),
    "float": (4, lambda v: struct.pack("<f", v), FIXED32),
    "bool": (5, lambda v: _varint(int(v)), VARINT),
    "type": (6, lambda v: _varint(NUMBERS[v]), VARINT),
    "shape": (7, lambda v: (lambda s: _varint(len(s)) + s)(_shape(v)), BYTES),
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
        result: bytes = _varint(number << 3 | wire) + write(value.encode() if isinstance(value, str) else value)
        return result
    number, write, wire = _WRITERS[value.kind]
    items = [write(v.encode() if isinstance(v, str) else v) for v in value.values]
    if wire != BYTES and items:  # numbers are packed
        return _sized(1, _sized(number, b"".join(items)))
    return _sized(1, b"".join(_varint(number << 3 | wire) + item for item in items))


def encode(node: FlexNodeDef) -> bytes:
    """Return the bytes of a NodeDef, attributes sorted by name. Raises InvalidArgumentError for a value that it cannot
    represent."""
    parts = [_sized(1, node.name.encode())] if node.name else []
    parts.append(_sized(2, node.op.encode()))
    parts += [_sized(3, name.encode()) for name in node.inputs]
    for key in sorted(node.attrs):
        parts.append(_sized(5, _sized(1, key.encode()) + _sized(2, encode_value(node.attrs[key]))))
    return b"".join(parts)


# ---- reading ------------------------------------------------------------------------------------------------------


def _damaged(what: str) -> DataLossError:
    return DataLossError(what=f"a Flex operator's NodeDef is damaged: {what}", do="convert the model again")


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if offset >= len(data) or shift > 63:
            raise _damaged("a number has no end")
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return value & ((1 << 64) - 1), offset


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield (number, wire type, value) of each field: an int for numbers, bytes otherwise. Raises DataLossError."""
    offset = 0
    while offset < len(data):
        key, offset = _read_varint(data, offset)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, offset = _read_varint(data, offset)
            yield number, wire, value
            continue
        if wire == BYTES:
            size, offset = _read_varint(data, offset)
        elif wire in (FIXED32, FIXED64):
            size = 4 if wire == FIXED32 else 8
        else:
            raise _damaged(f"field {number} has wire type {wire}")
        if size > len(data) - offset:
            raise _damaged(f"field {number} runs past its end")
        yield number, wire, data[offset : offset + size]
        offset += size


def _read_shape(data: bytes) -> TensorShape:
    dims: list[int | None] = []
    for number, wire, value in fields(data):
        if (number, wire) == (3, VARINT) and value:
            return TensorShape(None)
        if (number, wire) == (2, BYTES):
            sizes = [_signed(v) for n, w, v in fields(value) if (n, w) == (1, VARINT)]
            size = sizes[-1] if sizes else 0
            dims.append(None if size < 0 else size)
    return TensorShape(dims)


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
    3: (VARINT, _signed),
    4: (FIXED32, _read_float),
    5: (VARINT, bool),
    6: (VARINT, _read_type),
    7: (BYTES, _read_shape),
}


def _packed(data: bytes, wire: int) -> Iterator[Any]:
    offset = 0
    while offset < len(data):
        if wire == VARINT:
            value, offset = _read_varint(data, offset)
            yield value
        else:
            yield data[offset : offset + 4]
            offset += 4


def decode_value(data: bytes) -> AttrValue:
    """Return the value of an AttrValue; None for functions and tensors. Raises DataLossError."""
    result: AttrValue = None
    for number, wire, value in fields(data):
        if number == 1 and wire == BYTES:
            result = []
            for inner, inner_wire, item in fields(value):
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
        for number, wire, value in fields(data):
            if wire != BYTES:
                continue
            if number == 1:
                node.name = value.decode()
            elif number == 2:
                node.op = value.decode()
            elif number == 3:
                node.inputs.append(value.decode())
            elif number == 5:
                entry = {n: v for n, w, v in fields(value) if w == BYTES}
                node.attrs[entry.get(1, b"").decode()] = decode_value(entry.get(2, b""))
    except UnicodeDecodeError as error:
        raise _damaged(str(error)) from None
    return node
