"""Tensors as TensorProto messages: `serialize_tensor`, `parse_tensor`, and sparse ones as three of them.

Lives here: the message TensorProto (tensor.proto of TensorFlow).
Not here: its dtype and shape (core/type_protos.py), fields and their bytes (core/protobuf_wire.py).

    TensorProto   1 dtype   2 tensor_shape   4 tensor_content   5 float_val   6 double_val   7 int_val   8 string_val
                  9 scomplex_val   10 int64_val   11 bool_val   12 dcomplex_val   13 half_val   16 uint32_val
                  17 uint64_val

`tensor_content` has the elements' bytes, little-endian, and of strings the lengths of all before them; in the other
fields the last value is repeated as often as the
shape asks for.
"""

from __future__ import annotations

import itertools
import math
import sys
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, as_dtype
from ..core.errors import InvalidArgumentError
from ..core.protobuf_wire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    fields,
    key,
    packed_varints,
    read_varint,
    signed,
    sized,
    varint,
)
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..core.type_protos import NUMBERS, TYPES, read_shape, shape_bytes
from ..eager.python_functions import call_on_arrays
from ..ops import array, dispatch
from ..ops.sparse.sparse_tensor import SparseTensor
from ..ops.tensor import Tensor
from .host_calls import check_size, scalar, string_operand, string_spec

_CONTENT, _STRINGS = 4, 8
_VALUES: dict[int, tuple[int, str]] = {  # field: (wire type of one value, dtype of what is stored)
    5: (FIXED32, "<f4"),
    6: (FIXED64, "<f8"),
    7: (VARINT, "<i8"),
    9: (FIXED32, "<f4"),
    10: (VARINT, "<i8"),
    11: (VARINT, "<i8"),
    12: (FIXED64, "<f8"),
    13: (VARINT, "<i8"),
    16: (VARINT, "<i8"),
    17: (VARINT, "<i8"),
}
_FIELD_OF = {
    **dict.fromkeys(["int32", "int16", "int8", "uint8", "uint16"], 7),
    **dict.fromkeys(("float16", "bfloat16"), 13),
    "float32": 5,
    "float64": 6,
    "complex64": 9,
    "int64": 10,
    "bool": 11,
    "complex128": 12,
    "uint32": 16,
    "uint64": 17,
}


def _little_endian(array: np.ndarray) -> np.ndarray:
    return array if sys.byteorder == "little" or array.dtype.itemsize == 1 else array.byteswap()


def tensor_bytes(array: np.ndarray, dtype: DType) -> bytes:
    """Return the bytes of a TensorProto. Raises InvalidArgumentError for a dtype that it cannot hold."""
    if dtype not in NUMBERS or dtype.is_handle:
        raise InvalidArgumentError(op="io.serialize_tensor", what="no TensorProto holds this dtype", found=dtype.name)
    head = key(1, VARINT) + varint(NUMBERS[dtype]) + sized(2, shape_bytes(TensorShape(array.shape)))
    if dtype is dtypes.string:
        return head + b"".join(sized(_STRINGS, item) for item in array.reshape(-1).tolist())
    content = _little_endian(np.ascontiguousarray(array)).tobytes()
    return head + sized(_CONTENT, content) if content else head


def _damaged(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(op="io.parse_tensor", what=f"Could not parse `serialized` as TensorProto: {what}")


def read_tensor(data: bytes, dtype: DType) -> np.ndarray:
    """Return the array in the bytes of a TensorProto.

    raises InvalidArgumentError for damaged bytes, another dtype or a number of elements that does not fit the shape,
    ResourceExhaustedError for more elements than the flag max_activation_bytes allows
    """
    number, shape, content = 0, TensorShape(()), None
    strings: list[bytes] = []
    values: list[np.ndarray] = []
    for field, wire, value in fields(data, _damaged):
        if (field, wire) == (1, VARINT):
            number = value
        elif (field, wire) == (2, BYTES):
            shape = read_shape(value, _damaged)
        elif (field, wire) == (_CONTENT, BYTES):
            content = value
        elif (field, wire) == (_STRINGS, BYTES):
            strings.append(value)
        elif field in _VALUES and field == _FIELD_OF.get(dtype.name):
            values.append(_numbers(value, wire, *_VALUES[field]))
    if TYPES.get(number) is not dtype:
        stored = TYPES[number].name if number in TYPES else f"DataType {number}"
        what = f"Type mismatch between parsed tensor ({stored}) and dtype ({dtype.name})"
        raise InvalidArgumentError(op="io.parse_tensor", what=what)
    dims = shape.dims
    if dims is None or None in dims:
        raise _damaged(f"its shape {shape} is not fully defined")
    sizes = tuple(d or 0 for d in dims)
    count = math.prod(sizes)
    if dtype is dtypes.string:
        if content:
            strings = _strings_of(content, count)
        return _filled(np.array([*strings, b""], object)[:-1], sizes, b"")
    if content is not None:
        if len(content) != count * dtype.size:
            raise _damaged(f"{len(content)} bytes of content for {dtype.name} {list(sizes)}")
        return _little_endian(np.frombuffer(content, dtype.np)).reshape(sizes).copy()
    flat = np.concatenate(values) if values else np.zeros(0, np.int64)
    return _filled(_converted(flat, dtype), sizes, 0)


def _strings_of(content: bytes, count: int) -> list[bytes]:
    """Return the strings of a content: the lengths of all, then their bytes."""
    lengths, offset = [], 0
    for _ in range(count):
        length, offset = read_varint(content, offset, _damaged)
        lengths.append(length)
    if offset + sum(lengths) != len(content):
        raise _damaged(f"{len(content)} bytes of content for {count} strings")
    strings = []
    for length in lengths:
        strings.append(bytes(content[offset : offset + length]))
        offset += length
    return strings


def _numbers(value: Any, wire: int, one: int, stored: str) -> np.ndarray:
    if wire == one:
        return np.array([signed(value)]) if wire == VARINT else np.frombuffer(value, stored)
    if wire != BYTES:
        raise _damaged(f"a value has wire type {wire}")
    if one == VARINT:
        return packed_varints(value, _damaged)
    if len(value) % (4 if one == FIXED32 else 8):
        raise _damaged("a list of numbers ends within one")
    return np.frombuffer(value, stored)


def _converted(flat: np.ndarray, dtype: DType) -> np.ndarray:
    """Return stored numbers as elements: halves are stored by their bits, complex numbers in two parts."""
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return flat.astype(np.uint16).view(dtype.np)
    if dtype.is_complex:
        if len(flat) % 2:
            raise _damaged("a complex number has one part")
        return flat.astype(np.float32 if dtype is dtypes.complex64 else np.float64).view(dtype.np)
    return flat.astype(dtype.np)


def _filled(flat: np.ndarray, sizes: tuple[int, ...], default: Any) -> np.ndarray:
    """Return an array of a shape whose last stored element is repeated."""
    count = math.prod(sizes)
    if len(flat) > count:
        raise _damaged(f"{len(flat)} values for {list(sizes)}")
    check_size(count * flat.dtype.itemsize, "io.parse_tensor")
    result = np.full(count, flat[-1] if len(flat) else default, flat.dtype)
    result[: len(flat)] = flat
    return result.reshape(sizes)


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """Return a tensor as the bytes of a TensorProto, a string of shape ().

    raises InvalidArgumentError for int4 and for handles
    """

    operand = dispatch.to_tensor(tensor)
    dtype = operand.dtype

    def write(array: np.ndarray) -> bytes:
        return tensor_bytes(array, dtype)

    result: Tensor = call_on_arrays(write, [operand], string_spec(), name)
    return result


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """Return the tensor of a TensorProto. serialized: its bytes, a string of shape (). out_type: its dtype.

    raises InvalidArgumentError for other bytes or another dtype, ResourceExhaustedError for more elements than the flag
    max_activation_bytes allows

    >>> ow.io.parse_tensor(ow.io.serialize_tensor([1, 2]), ow.int32).numpy()
    array([1, 2], dtype=int32)
    """
    dtype = as_dtype(out_type)

    def read(data: np.ndarray) -> np.ndarray:
        return read_tensor(scalar(data, "io.parse_tensor"), dtype)

    operand = string_operand(serialized, "io.parse_tensor", 0)
    result: Tensor = call_on_arrays(read, [operand], TensorSpec(None, dtype), name)
    return result


# ---- sparse tensors --------------------------------------------------------------------------------------------------


def _check_string(out_type: Any, op: str) -> None:
    if as_dtype(out_type) is not dtypes.string:
        raise InvalidArgumentError(
            op=op, what="sparse tensors are serialized to strings", found=as_dtype(out_type).name, wanted="string"
        )


def serialize_sparse(sp_input: Any, out_type: Any = dtypes.string, name: str | None = None) -> Tensor:
    """Return the indices, values and shape of a SparseTensor as TensorProtos: strings [3]."""
    _check_string(out_type, "io.serialize_sparse")
    x = SparseTensor.from_value(sp_input)
    result: Tensor = array.stack([serialize_tensor(part) for part in (x.indices, x.values, x.dense_shape)])
    return result


def serialize_many_sparse(sp_input: Any, out_type: Any = dtypes.string, name: str | None = None) -> Tensor:
    """Return the examples of a batch, a SparseTensor [n, ...], each as `serialize_sparse`: strings [n, 3]."""
    _check_string(out_type, "io.serialize_many_sparse")
    x = SparseTensor.from_value(sp_input)
    dtype = x.dtype

    def write(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> np.ndarray:
        count, inner = int(shape[0]), tensor_bytes(shape[1:], dtypes.int64)
        check_size(3 * 8 * count, "io.serialize_many_sparse")
        bounds = np.searchsorted(indices[:, 0], np.arange(count + 1))
        rows = np.empty((count, 3), object)
        for i, (start, end) in enumerate(itertools.pairwise(bounds.tolist())):
            part = np.ascontiguousarray(indices[start:end, 1:])
            rows[i] = [tensor_bytes(part, dtypes.int64), tensor_bytes(values[start:end], dtype), inner]
        return rows

    spec = TensorSpec([None, 3], dtypes.string)
    result: Tensor = call_on_arrays(write, [x.indices, x.values, x.dense_shape], spec, name)
    return result


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """Return the batch of serialized SparseTensors, strings [n, 3], as a SparseTensor [n, ...].

    dtype: of the values; rank: of the batch, if it is known. Sizes are the greatest of all.
    raises InvalidArgumentError for other strings, dtypes and different ranks
    """
    op, kind = "io.deserialize_many_sparse", as_dtype(dtype)

    def read(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if rows.ndim != 2 or rows.shape[1] != 3:
            raise InvalidArgumentError(op=op, what="serialized_sparse has shape [n, 3]", found=rows.shape)
        indices: list[np.ndarray] = []
        values: list[np.ndarray] = []
        shapes: list[np.ndarray] = []
        for i, (place, value, shape) in enumerate(rows.tolist()):
            places, size = read_tensor(place, dtypes.int64), read_tensor(shape, dtypes.int64)
            elements = read_tensor(value, kind)
            if size.ndim != 1 or places.shape != (len(elements), len(size)) or elements.ndim != 1:
                raise InvalidArgumentError(
                    op=op,
                    what="indices, values and shape do not match",
                    found=(places.shape, elements.shape, size.shape),
                )
            if shapes and len(size) != len(shapes[0]):
                raise InvalidArgumentError(
                    op=op,
                    what="Inconsistent rank across SparseTensors",
                    found=f"{len(size)} at {i}, {len(shapes[0])} before",
                )
            indices.append(np.insert(places, 0, i, axis=1))
            values.append(elements)
            shapes.append(size)
        inner = np.max(shapes, axis=0) if shapes else np.zeros((rank or 1) - 1, np.int64)
        places = np.concatenate(indices) if indices else np.zeros((0, 1 + len(inner)), np.int64)
        flat = np.concatenate(values) if values else np.zeros(0, kind.np)
        return places, flat, np.array([len(rows), *inner], np.int64)

    specs = [TensorSpec([None, rank], dtypes.int64), TensorSpec([None], kind), TensorSpec([rank], dtypes.int64)]
    return SparseTensor.of(*call_on_arrays(read, [string_operand(serialized_sparse, op, 2)], specs, name))
