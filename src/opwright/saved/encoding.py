"""Encode tensors of any dtype for safetensors files, and describe them in an index.

Lives here: `encode`, `decode`, `describe` and the reading of described tensors. Not here: the file format
(safetensors.py).

    dtype                     in the file
    int4                      I8, one element per byte
    complex64, complex128     F32, F64 with a last dimension of 2: real and imaginary part
    string                    U8 of rank 1: n + 1 end offsets as 64-bit integers (the first is 0), then the bytes
    all others                the dtype of the same name and size

An index has an entry for each tensor, {"type": "f32[2,3]", "crc32": 12345}: the type in graph-text form, and the
checksum of its bytes in the file. A missing checksum is accepted, for files edited by hand.
"""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import DataLossError, OpError
from ..core.specs import TensorSpec, spec_of_short
from . import safetensors
from .safetensors import TensorFile


def encode(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Return the array that represents an array of `dtype` in a file."""
    array = np.asarray(array)
    if dtype is dtypes.string:
        items = [v if isinstance(v, bytes) else str(v).encode() for v in array.reshape(-1).tolist()]
        ends = np.zeros(len(items) + 1, "<u8")
        np.cumsum([len(v) for v in items], out=ends[1:])
        return np.frombuffer(ends.tobytes() + b"".join(items), np.uint8)
    if dtype is dtypes.int4:
        return array.astype(np.int8)
    if dtype.is_complex:
        return np.ascontiguousarray(array)[..., None].view(dtype.real_dtype.np)
    if array.dtype.byteorder == ">":
        return array.astype(array.dtype.newbyteorder("<"))
    return array


def decode(stored: np.ndarray, spec: TensorSpec) -> np.ndarray:
    """Invert `encode`, to the fully known type `spec`. Raises ValueError if `stored` does not match it."""
    dtype = spec.dtype
    shape: Any = tuple(spec.shape.as_list())
    if dtype is dtypes.string:
        return _decode_strings(stored, shape)
    expected = np.dtype(np.int8) if dtype is dtypes.int4 else dtype.real_dtype.np
    stored_shape = (*shape, 2) if dtype.is_complex else shape
    if stored.dtype != expected or stored.shape != stored_shape:
        raise ValueError(f"it is {stored.dtype}{list(stored.shape)} in the file, wanted {expected}{list(stored_shape)}")
    if dtype is dtypes.int4:
        if stored.size and not -8 <= int(stored.min()) <= int(stored.max()) <= 7:
            raise ValueError("it has elements outside the range of int4")
        return stored.astype(ml_dtypes.int4)
    if dtype.is_bool and stored.size and int(stored.view(np.uint8).max()) > 1:
        raise ValueError("it has elements that are neither 0 nor 1")
    return stored.view(dtype.np)[..., 0] if dtype.is_complex else stored


def _decode_strings(stored: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    count = 1
    for size in shape:
        count *= size
    if stored.dtype != np.uint8 or stored.ndim != 1 or stored.size < 8 * (count + 1):
        raise ValueError(f"it is {stored.dtype}{list(stored.shape)} in the file, too little for {count} strings")
    ends = stored[: 8 * (count + 1)].view("<u8")
    data = stored[8 * (count + 1) :].tobytes()
    if int(ends[0]) != 0 or int(ends[-1]) != len(data) or (ends[1:] < ends[:-1]).any():
        raise ValueError("its strings do not fill it")
    bounds = ends.tolist()
    array = np.empty(count, object)
    array[:] = [data[a:b] for a, b in itertools.pairwise(bounds)]
    return array.reshape(shape)


def describe(array: np.ndarray, dtype: DType, stored: np.ndarray) -> dict[str, Any]:
    """Return the entry of a tensor in an index."""
    return {"type": TensorSpec(np.shape(array), dtype).short(), "crc32": safetensors.checksum(stored)}


def spec_of(entry: Any, name: str, where: str) -> TensorSpec:
    """Return the type in a tensor's entry. Raises DataLossError if it is unknown or not fully defined."""
    try:
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str) or len(entry["type"]) > 1000:
            raise ValueError('wanted an object with "type"')
        spec = spec_of_short(entry["type"])
        if not spec.shape.is_fully_defined() or spec.dtype not in dtypes.ALL:
            raise ValueError(f"{entry['type']} is not the type of a stored tensor")
    except (ValueError, OverflowError) as error:
        raise DataLossError(what=f"{where}: tensor {name!r}: {error}") from None
    return spec


def read(file: TensorFile, name: str, entry: Any, where: str) -> tuple[np.ndarray, DType]:
    """Return a tensor by its entry in an index; where: the path of the index, for errors.

    raises DataLossError if the entry, the bytes or the checksum do not match, NotFoundError if the tensor is missing
    """
    spec = spec_of(entry, name, where)
    stored = file.read(name)
    crc = entry.get("crc32")
    if crc is not None and crc != safetensors.checksum(stored):
        raise DataLossError(
            what=f"{file.path} is damaged: the checksum of tensor {name!r} differs",
            do="copy the files again, or save again",
        )
    try:
        return decode(stored, spec), spec.dtype
    except (ValueError, OpError) as error:
        raise DataLossError(what=f"{file.path}: tensor {name!r} should be {spec.short()}: {error}") from None
