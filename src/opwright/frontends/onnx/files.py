"""ONNX files: reading, tensors as arrays, external data within the model's folder.

Lives here: `read_model`, `TensorReader`, `DTYPES`.  Not here: graphs (execution.py), types of inputs (model.py).

Arrays are views of the file's bytes where ONNX stores a tensor raw, and memory maps of external data.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...core.extras import optional_module
from ...core.protobuf_wire import BYTES, encoded, fields
from ..constants import FOLDING

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

ALIGN = 16
LARGE = 1 << 12
"""Least bytes of raw data that protobuf does not parse."""

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


def read_model(model: Any) -> tuple[Any, TensorReader]:
    """Return a ModelProto, and the reader of its tensors.

    model: a path, bytes, or a ModelProto
    raises InvalidArgumentError for what is not an ONNX model, NotFoundError of a missing file as OSError
    """
    onnx = onnx_module()
    if isinstance(model, onnx.ModelProto):
        return model, TensorReader(None, {})
    folder = None
    if isinstance(model, (str, os.PathLike)):
        folder, what = Path(os.fspath(model)).parent, os.fspath(model)
        structure, weights = _read_file(what)
    elif isinstance(model, (bytes, bytearray, memoryview)):
        what = f"{len(model)} bytes"
        structure, views = _without_weights(bytes(model))
        weights = {name: view if _address(view) % ALIGN == 0 else bytes(view) for name, view in views.items()}
    else:
        raise InvalidArgumentError(
            op="from_onnx", what="wanted a path, bytes or a ModelProto", found=type(model).__name__
        )
    result = onnx.ModelProto()
    try:
        result.ParseFromString(structure)
    except Exception as error:  # protobuf's DecodeError has another home in each of its implementations
        raise InvalidArgumentError(op="from_onnx", what=f"no ONNX file: {what}: {error}") from error
    if not result.HasField("graph"):
        raise InvalidArgumentError(op="from_onnx", what=f"no ONNX file: {what} has no graph")
    _check_texts(result)
    return result, TensorReader(folder, weights)


def _read_file(path: str) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of a file as `_without_weights`, with the weights in memory. Raises OSError."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < LARGE:
            return file.read(), {}
        weights = {}
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:  # its pages with weights are not read
            start = _address(content)
            structure, views = _without_weights(content)
            for name in list(views):
                view = views.pop(name)
                weights[name] = np.empty(len(view), np.uint8)  # aligned, unlike the file's
                file.seek(_address(view) - start)
                if file.readinto(weights[name].data) < len(view):
                    raise OSError(f"{path} has become shorter")
                weights[name].setflags(write=False)
                view.release()
        return structure, weights


def _address(buffer: Any) -> int:
    return int(np.frombuffer(buffer, np.uint8).__array_interface__["data"][0])


_GRAPH, _INITIALIZER, _NAME, _RAW_DATA = 7, 5, 8, 9  # numbers of fields: ModelProto, GraphProto, TensorProto


def _without_weights(content: bytes | mmap.mmap) -> tuple[bytes, dict[str, memoryview]]:
    """Return the bytes of a ModelProto without the raw data of large initializers, and these as views by name.

    Protobuf would copy them when it parses, and at each access. Bytes that are not a message are returned as they are.
    """
    weights: dict[str, memoryview] = {}

    def rebuilt(message: memoryview, path: Sequence[int]) -> bytes:
        if not path:
            return without_data(list(fields(message, ValueError)))
        return b"".join(
            encoded(n, wire, rebuilt(value, path[1:]) if (n, wire) == (path[0], BYTES) else value)
            for n, wire, value in fields(message, ValueError)
        )

    def without_data(tensor: list[tuple[int, int, Any]]) -> bytes:
        names = [bytes(value).decode() for n, _, value in tensor if n == _NAME]
        data = [value for n, wire, value in tensor if (n, wire) == (_RAW_DATA, BYTES)]
        if len(names) == 1 and len(data) == 1 and len(data[0]) >= LARGE:
            if names[0] in weights:
                raise ValueError("two initializers of one name")
            weights[names[0]] = data[0]
            tensor = [(n, wire, b"" if n == _RAW_DATA else value) for n, wire, value in tensor]
        return b"".join(encoded(*entry) for entry in tensor)

    try:
        return rebuilt(memoryview(content), (_GRAPH, _INITIALIZER)), weights
    except ValueError:  # protobuf says what is wrong with them
        weights.clear()  # a map is closed only without views on it
        return bytes(content), {}


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
    """Tensors of a model as arrays.

    folder: of the model's file, for external data; None if it has none. weights: the raw data of those initializers of
    the main graph that were parsed without it, by name
    """

    def __init__(self, folder: Path | None, weights: Mapping[str, Any]) -> None:
        self._folder, self._weights = folder, weights

    def initializers(self, graph: Any, main: bool) -> dict[str, np.ndarray]:
        """Return the constants of a GraphProto by name. main: whether it is the model's, not a subgraph."""
        weights = self._weights if main else {}
        result = {t.name: self.array(t, weights.get(t.name)) for t in graph.initializer}
        return result | {t.values.name: self.sparse(t) for t in graph.sparse_initializer}

    def array(self, tensor: Any, data: Any = None) -> np.ndarray:
        """Return a TensorProto as an array; texts as bytes. Raises InvalidArgumentError for damaged ones.

        data: its raw data, in place of the tensor's own
        """
        code, name = tensor.data_type, tensor.name
        shape = tuple(tensor.dims)
        _check_shape(shape, name)
        if code == 8:
            return self._shaped(np.fromiter(tensor.string_data, object), shape, name)
        if code not in DTYPES and code not in _FOREIGN:
            raise InvalidArgumentError(op="from_onnx", node=name, what="a tensor has no dtype", found=code)
        dtype = np.dtype(_FOREIGN[code] if code in _FOREIGN else DTYPES[code].np)
        raw = self._external(tensor) if tensor.data_location == 1 else tensor.raw_data if data is None else data
        if tensor.data_location == 1 or tensor.HasField("raw_data"):
            if code in _NIBBLES or code in (25, 26):
                return self._shaped(_unpacked(np.frombuffer(raw, np.uint8), code, shape, dtype), shape, name)
            if len(raw) % dtype.itemsize:
                raise InvalidArgumentError(
                    op="from_onnx",
                    node=name,
                    what="a tensor's bytes are not a multiple of its elements",
                    found=len(raw),
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
        _check_shape(shape, tensor.values.name)
        flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
        FOLDING.reserve(*shape, itemsize=values.dtype.itemsize)
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
        if not location or outside or "\0" in location or not _lies_in(path, folder):
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


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    """Raise InvalidArgumentError for a negative size, or for more elements than a file has, a zero left aside."""
    if any(d < 0 for d in shape) or math.prod(d for d in shape if d) > MAX_ELEMENTS:
        raise InvalidArgumentError(op="from_onnx", node=name, what="a tensor's shape is damaged", found=shape)


def _lies_in(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):  # a name that is too long; links in a circle, before Python 3.13
        return False


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
