"""Operators and graphs in TensorFlow's messages: NodeDef and its attributes, GraphDef.

Lives here: writing of them.
Not here: reading (lite/flex/nodedef.py), fields and their bytes (protobuf_wire.py), dtypes and shapes (type_protos.py).

Fields by number (graph.proto, node_def.proto, attr_value.proto, tensor_shape.proto, types.proto):

    GraphDef         1 node (repeated)   4 versions (1 producer)
    NodeDef          1 name   2 op   3 input (repeated)   5 attr (map: 1 key, 2 value)
    AttrValue        1 list   2 s    3 i   4 f   5 b   6 type   7 shape   8 tensor   10 func
    AttrValue.list   2 s      3 i    4 f   5 b   6 type   7 shape
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .dtypes import DType
from .errors import InvalidArgumentError
from .protobuf_wire import BYTES, FIXED32, VARINT, key, sized, varint
from .shapes import TensorShape
from .type_protos import NUMBERS, shape_bytes

PRODUCER = 2474
"""The version of graphs that TensorFlow 2.21 writes, for readers that refuse graphs without one."""


class Typed(NamedTuple):
    """A list with the kind of its elements, which an empty one needs not, but 1 and 1.0 do. kind: as in signatures."""

    kind: str
    values: list[Any]


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


def node_bytes(name: str, op: str, inputs: Iterable[str], attrs: Mapping[str, Any]) -> bytes:
    """Return the bytes of a NodeDef, attributes sorted by name. Raises InvalidArgumentError for a value that it cannot
    represent."""
    parts = [sized(1, name.encode())] if name else []
    parts.append(sized(2, op.encode()))
    parts += [sized(3, each.encode()) for each in inputs]
    for label in sorted(attrs):
        parts.append(sized(5, sized(1, label.encode()) + sized(2, encode_value(attrs[label]))))
    return b"".join(parts)


def graph_bytes(nodes: Iterable[bytes]) -> bytes:
    """Return the bytes of a GraphDef. nodes: of `node_bytes`."""
    return b"".join(sized(1, node) for node in nodes) + sized(4, key(1, VARINT) + varint(PRODUCER))
