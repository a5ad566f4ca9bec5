"""NodeDef: how a Flex operator carries a framework's operator in its options, in protocol-buffer bytes.

Lives here: `FlexNodeDef`, `encode`, `decode` of it and of attribute values.
Not here: the meaning of attributes, operators (conversion.py); fields by number, and writing (core/node_protos.py).

The options are a FlexBuffer vector of the operator's name and the NodeDef's bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from ...core.dtypes import DType
from ...core.errors import DataLossError, InvalidArgumentError
from ...core.node_protos import node_bytes
from ...core.protobuf_wire import BYTES, FIXED32, VARINT, fields, packed_varints, signed
from ...core.shapes import TensorShape
from ...core.type_protos import TYPES, read_shape

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


def encode(node: FlexNodeDef) -> bytes:
    """Return the bytes of a NodeDef, attributes sorted by name. Raises InvalidArgumentError for a value that it cannot
    represent."""
    return node_bytes(node.name, node.op, node.inputs, node.attrs)


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
