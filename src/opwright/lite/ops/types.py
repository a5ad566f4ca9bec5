"""Tensor types of the file format and the dtypes that they are here.

Lives here: the table, both ways.  Not here: unpacking of types below a byte (runtime/tensor.py).
"""

from __future__ import annotations

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError, UnimplementedError

BY_NAME: dict[str, DType] = {
    "FLOAT32": dtypes.float32,
    "FLOAT16": dtypes.float16,
    "INT32": dtypes.int32,
    "UINT8": dtypes.uint8,
    "INT64": dtypes.int64,
    "STRING": dtypes.string,
    "BOOL": dtypes.bool,
    "INT16": dtypes.int16,
    "COMPLEX64": dtypes.complex64,
    "INT8": dtypes.int8,
    "FLOAT64": dtypes.float64,
    "COMPLEX128": dtypes.complex128,
    "UINT64": dtypes.uint64,
    "RESOURCE": dtypes.resource,
    "UINT32": dtypes.uint32,
    "UINT16": dtypes.uint16,
    "INT4": dtypes.int4,
    "BFLOAT16": dtypes.bfloat16,
    **{d.name.upper(): d for d in dtypes.FILE_ONLY},
}

ANY = (*dtypes.ALL, *dtypes.FILE_ONLY)
"""Every type with elements that operators may move: all but handles."""
FIXED = tuple(d for d in ANY if d is not dtypes.string)
"""Types whose elements have one size."""
INDEX = (dtypes.int32, dtypes.int64)
"""The types of axes, sizes and places."""
NUMBER = (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)
"""The types of one small number: the official kernels look at its low four bytes, whatever its type."""

IN_BYTES = {"INT4": np.int8, "UINT4": np.uint8, "INT2": np.int8}
"""Types below a byte, by name, and the NumPy type that holds an element of one outside of the interpreter."""

_NAMES = {dtype: name for name, dtype in BY_NAME.items()}


def name_of(dtype: DType) -> str:
    """Return the schema's name of a dtype, such as FLOAT32. Raises InvalidArgumentError if files have no such type."""
    try:
        return _NAMES[dtype]
    except KeyError:
        raise InvalidArgumentError(
            what=f".tflite files have no tensor type {dtype.name}", wanted=", ".join(sorted(d.name for d in _NAMES))
        ) from None


def dtype_of(name: str, tensor: str = "") -> DType:
    """Return the dtype of a TensorType's name. Raises UnimplementedError for VARIANT and the FLOAT8s."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise UnimplementedError(
            what=f"tensor {tensor!r} has type {name}" if tensor else f"tensor type {name}",
            found=name,
            wanted=", ".join(BY_NAME),
            explain="OW103",
        ) from None
