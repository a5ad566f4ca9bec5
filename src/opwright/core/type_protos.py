"""Dtypes and shapes in TensorFlow's messages: the numbers of types.proto, TensorShapeProto.

Lives here: the table of numbers, reading and writing of shapes.
Not here: fields and their bytes (protobuf_wire.py), tensors (io/tensor_protos.py), operators (lite/flex/nodedef.py).

    TensorShape   2 dim (1 size)   3 unknown_rank
"""

from __future__ import annotations

from . import dtypes
from .dtypes import DType
from .protobuf_wire import BYTES, VARINT, Damaged, fields, key, signed, sized, varint
from .shapes import TensorShape

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


def shape_bytes(shape: TensorShape) -> bytes:
    """Return the bytes of a TensorShapeProto."""
    if shape.dims is None:
        return key(3, VARINT) + b"\1"
    return b"".join(sized(2, b"" if d == 0 else key(1, VARINT) + varint(-1 if d is None else d)) for d in shape.dims)


def read_shape(data: bytes, damaged: Damaged) -> TensorShape:
    """Return the shape in the bytes of a TensorShapeProto. Raises `damaged` where they are none."""
    dims: list[int | None] = []
    for number, wire, value in fields(data, damaged):
        if (number, wire) == (3, VARINT) and value:
            return TensorShape(None)
        if (number, wire) == (2, BYTES):
            sizes = [signed(v) for n, w, v in fields(value, damaged) if (n, w) == (1, VARINT)]
            size = sizes[-1] if sizes else 0
            dims.append(None if size < 0 else size)
    return TensorShape(dims)
