"""ONNX files: reading, tensors as arrays, external data within the model's folder.

Lives here: `read_model`, `TensorReader`, `DTYPES`.  Not here: graphs (execution.py), types of inputs (model.py).

Arrays are views of the file's bytes where ONNX stores a tensor raw, and memory maps of external data.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...core.extras import optional_module

MAX_ELEMENTS = 2**31
"""Greatest number of elements of a tensor that a file may declare: more is damage, or an attack on memory."""

DTYPES: dict[int, DType] = {
    1: dtypes.float32,
    2: dtypes.uint8,
    3: dtypes.int8,
    4: dtypes.uint16,
    5: dtypes.int16,
    6: dtypes.int32,
    7: dtypes.int64,
    8: dtypes.string,
    9: dtypes.bool,
    10: dtypes.float16,
    11: dtypes.float64,
    12: dtypes.uint32,
    13: dtypes.uint64,
    14: dtypes.complex64,
    15: dtypes.complex128,
    16: dtypes.bfloat16,
    22: dtypes.int4,
}
"""TensorProto.DataType to dtypes of the catalogue. It has no 8-bit and smaller floating point, no uint4 and no int2."""

# NumPy dtypes of the others, for arrays that are folded at import.
_FOREIGN = {
    17: ml_dtypes.float8_e4m3fn,
    18: ml_dtypes.float8_e4m3fnuz,
    19: ml_dtypes.float8_e5m2,
    20: ml_dtypes.float8_e5m2fnuz,
    21: ml_dtypes.uint4,
    23: ml_dtypes.float4_e2m1fn,
    24: ml_dtypes.float8_e8m0fnu,
    25: ml_dtypes.uint2,
    26: ml_dtypes.int2,
}
_FIELDS = {1: "float_data", 11: "double_data", 7: "int64_data", 12: "uint64_data", 13: "uint64_data"}
_NIBBLES = {21, 22, 23}


def onnx_module() -> Any:
    """Return the package `onnx`. Raises FailedPreconditionError with its extra if it is not installed."""
    return optional_module("onnx")


def dtype_of_code(code: int, what: str) -> DType:
    """Return the dtype of a TensorProto.DataType. Raises UnimplementedError for dtypes that the catalogue lacks."""
    if code in DTYPES:
        return DTYPES[code]
    if code in _FOREIGN:
        raise UnimplementedError(op="onnx", what=f"no operator has this dtype: {what}", found=_FOREIGN[code].__name__)
    raise InvalidArgumentError(op="onnx", what=f"no dtype has this number: {what}", found=code)


def read_model(model: Any) -> tuple[Any, Path | None]:
    """Return a ModelProto and the folder of its external data, if any.

    model: a path, bytes, or a ModelProto
    raises InvalidArgumentError for what is no ONNX model, NotFoundError of a missing file as OSError
    """
    onnx = onnx_module()
    if isinstance(model, onnx.ModelProto):
        return model, None
    folder = None
    if isinstance(model, (str, os.PathLike)):
        path = Path(os.fspath(model))
        folder, content, what = path.parent, path.read_bytes(), os.fspath(model)
    elif isinstance(model, (bytes, bytearray, memoryview)):
        content, what = bytes(model), f"{len(model)} bytes"
    else:
        raise InvalidArgumentError(
            op="from_onnx", what="wanted a path, bytes or a ModelProto", found=type(model).__name__
        )
    result = onnx.ModelProto()
    try:
        result.ParseFromString(content)
    except Exception as error:  # protobuf's DecodeError has another home in each of its implementations
        raise InvalidArgumentError(op="from_onnx", what=f"no ONNX file: {what}: {error}") from error
    if not result.HasField("graph"):
        raise InvalidArgumentError(op="from_onnx", what=f"no ONNX file: {what} has no graph")
    _check_texts(result)
    return result, folder


def _check_texts(message: Any) -> None:
    """Raise InvalidArgumentError for a text that is not UTF-8, which protobuf returns as bytes."""
    remaining = [message]
    while remaining:
        current = remaining.pop()
        if current.DESCRIPTOR.name == "TensorProto":  # listing its fields would copy the elements
            if isinstance(current.name, bytes):
                raise InvalidArgumentError(op="from_onnx", what="damaged: a tensor's name is not UTF-8")
            continue
        for field, value in current.ListFields():
            if field.type == field.TYPE_MESSAGE:
                remaining.extend([value] if hasattr(value, "ListFields") else value)
            elif field.type == field.TYPE_STRING:
                for text in [value] if isinstance(value, (str, bytes)) else value:
                    if isinstance(text, bytes):
                        raise InvalidArgumentError(
                            op="from_onnx", what=f"damaged: a text in {field.full_name} is not UTF-8", found=text[:40]
                        )


class TensorReader:
    """Tensors of a model as arrays. folder: of the model's file, for external data; None if it has none."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def array(self, tensor: Any) -> np.ndarray:
        """Return a TensorProto as an array; texts as bytes. Raises InvalidArgumentError for damaged ones."""
        code, name = tensor.data_type, tensor.name
        shape = tuple(tensor.dims)
        if any(d < 0 for d in shape) or math.prod(shape) > MAX_ELEMENTS:
            raise InvalidArgumentError(op="from_onnx", node=name, what="a tensor's shape is damaged", found=shape)
        if code == 8:
            data = np.empty(len(tensor.string_data), object)
            data[:] = list(tensor.string_data)
            return self._shaped(data, shape, name)
        if code not in DTYPES and code not in _FOREIGN:
            raise InvalidArgumentError(op="from_onnx", node=name, what="a tensor has no dtype", found=code)
        dtype = np.dtype(_FOREIGN[code] if code in _FOREIGN else DTYPES[code].np)
        raw = self._external(tensor) if tensor.data_location == 1 else tensor.raw_data
        if tensor.data_location == 1 or tensor.HasField("raw_data"):
            if code in _NIBBLES or code in (25, 26):
                return self._shaped(_unpacked(np.frombuffer(raw, np.uint8), code, shape, dtype), shape, name)
            if len(raw) % dtype.itemsize:
                raise InvalidArgumentError(
                    op="from_onnx", node=name, what="a tensor's bytes are no multiple of its elements", found=len(raw)
                )
            return self._shaped(np.frombuffer(raw, dtype), shape, name)
        field = _FIELDS.get(code, "float_data" if code in (14, 15) else "int32_data")
        if code == 15:
            field = "double_data"
        values = np.asarray(getattr(tensor, field))
        if code in (14, 15):
            values = values.astype(np.float32 if code == 14 else np.float64).view(dtype)
        elif code in (10, 16):
            values = values.astype(np.uint16).view(dtype)
        elif code in _NIBBLES or code in (25, 26):
            values = _unpacked(values.astype(np.uint8), code, shape, dtype)
        elif code in _FOREIGN:
            values = values.astype(np.uint8).view(dtype)
        else:
            values = values.astype(dtype)
        return self._shaped(values, shape, name)

    def sparse(self, tensor: Any) -> np.ndarray:
        """Return a SparseTensorProto as a dense array."""
        values, indices, shape = self.array(tensor.values), self.array(tensor.indices), tuple(tensor.dims)
        if any(d < 0 for d in shape) or math.prod(shape) > MAX_ELEMENTS:
            raise InvalidArgumentError(
                op="from_onnx", node=tensor.values.name, what="a tensor's shape is damaged", found=shape
            )
        flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
        dense = np.zeros(math.prod(shape), values.dtype)
        if flat.shape != values.shape or (flat.size and not 0 <= flat.min() <= flat.max() < dense.size):
            raise InvalidArgumentError(
                op="from_onnx", node=tensor.values.name, what="indices of a sparse tensor do not fit its shape"
            )
        dense[flat] = values
        return dense.reshape(shape)

    def _shaped(self, values: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
        if values.size != math.prod(shape):
            raise InvalidArgumentError(
                op="from_onnx",
                node=name,
                what="a tensor has another number of elements than its shape",
                found=f"{values.size} elements, shape {list(shape)}",
            )
        return values.reshape(shape)

    def _external(self, tensor: Any) -> Any:
        """Return the bytes of external data as a map of the file, which lies in the model's folder."""
        entries = {e.key: e.value for e in tensor.external_data}
        location = entries.get("location", "")
        if self._folder is None:
            raise InvalidArgumentError(
                op="from_onnx",
                node=tensor.name,
                what="a tensor lies in another file",
                found=location,
                do="pass the path of the model, not its bytes, or load it with onnx.load",
            )
        folder = self._folder.resolve()
        path = folder / location
        outside = Path(location).is_absolute() or ".." in Path(location).parts
        if not location or outside or "\0" in location or not path.resolve().is_relative_to(folder):
            raise InvalidArgumentError(
                op="from_onnx", node=tensor.name, what="external data outside of the model's folder", found=location
            )
        try:
            offset, size = int(entries.get("offset") or 0), path.stat().st_size
            length = int(entries["length"]) if entries.get("length") else size - offset
        except (OSError, ValueError) as error:
            raise InvalidArgumentError(
                op="from_onnx", node=tensor.name, what=f"external data cannot be read: {error}", found=location
            ) from error
        if not path.is_file() or offset < 0 or length < 0 or offset + length > size:
            raise InvalidArgumentError(
                op="from_onnx",
                node=tensor.name,
                what="external data beyond the end of its file",
                found=f"{length} bytes at {offset} of {location}, which has {size}",
            )
        return np.memmap(path, np.uint8, "r", offset, (length,)) if length else b""


def _unpacked(packed: np.ndarray, code: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return elements of 4 or 2 bits, which are stored from the least significant bits on."""
    bits = 4 if code in _NIBBLES else 2
    parts = np.stack([packed >> shift & (2**bits - 1) for shift in range(0, 8, bits)], -1).reshape(-1)
    parts = parts[: math.prod(shape)].astype(np.uint8)
    if code in (22, 26):  # signed
        signed: np.ndarray = (parts ^ 2 ** (bits - 1)).astype(np.int8) - 2 ** (bits - 1)
        return signed.astype(dtype)
    result: np.ndarray = parts.view(dtype) if code == 23 else parts.astype(dtype)
    return result
