"""Tensors in safetensors files: the file format, the encoding of dtypes that it lacks, descriptions in an index.

Lives here: reading and writing such files, validation of the header; `encode`, `decode`, `describe`, and the reading of
described tensors.
Not here: the indexes (checkpoint_files.py, manifest.py).

    8 bytes, little endian    n, the header's length
    n bytes of JSON           {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
    the remainder             the tensors, row-major, little endian, contiguous

Files are not trusted: reads are bounded by the file's size.

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
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import ml_dtypes
import numpy as np

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import DataLossError, NotFoundError, OpError
from ..core.lazy_imports import finalizer
from ..core.specs import TensorSpec, spec_of_short
from .json_files import without_duplicates

MAX_HEADER = 100_000_000  # the limit of the official readers

DTYPES: dict[str, np.dtype] = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class TensorEntry(NamedTuple):
    """The position of one tensor. begin, end: in the file."""

    dtype: np.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


def write(file: BinaryIO, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors of the format's dtypes, ordered by alignment, then by name."""
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name in order:
        array = tensors[name]
        end = offset + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in order:
        file.write(as_bytes(tensors[name]))


def as_bytes(array: np.ndarray) -> memoryview:
    """Return the bytes of an array in row-major order, without a copy if it is contiguous."""
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


def checksum(array: np.ndarray) -> int:
    """Return the CRC-32 of an array's bytes."""
    return zlib.crc32(as_bytes(array))


class TensorFile:
    """An open file of tensors, which are read one by one.

    The file stays open, so that it can be read after another program has replaced or deleted it. raises NotFoundError
    if there is no such file, DataLossError if it is truncated or not of this format
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._file = open(path, "rb")  # noqa: SIM115  closed with the object
        except FileNotFoundError:
            raise NotFoundError(what=f"there is no file {path}") from None
        except OSError as error:
            raise NotFoundError(what=f"cannot read {path}: {error.strerror or error}") from None
        try:
            self.entries = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def _fail(self, what: str, wanted: str | None = None) -> DataLossError:
        return DataLossError(what=f"{self.path} is damaged: {what}", wanted=wanted, do="save or copy it again")

    def _read_header(self) -> dict[str, TensorEntry]:
        size = os.fstat(self._file.fileno()).st_size
        start = self._file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > size - 8:
            raise self._fail(f"it has {size} bytes, too few for its header")
        if length > MAX_HEADER:
            raise self._fail(f"its header would have {length} bytes", f"at most {MAX_HEADER}")
        try:
            header = json.loads(self._file.read(length), object_pairs_hook=without_duplicates)
        except (ValueError, RecursionError) as error:
            raise self._fail(f"its header is not JSON as wanted: {str(error)[:200]}") from None
        if not isinstance(header, dict):
            raise self._fail("its header is not a JSON object")
        header.pop("__metadata__", None)
        base = 8 + length
        entries = {name: self._entry(name, description, base) for name, description in header.items()}
        offset = base
        for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
            if entry.begin != offset:
                raise self._fail(
                    f"tensor {name!r} begins at byte {entry.begin}", f"byte {offset}, where the last one ends"
                )
            offset = entry.end
        if offset != size:
            raise self._fail(f"it has {size} bytes, its header describes {offset}")
        return entries

    def _entry(self, name: str, description: Any, base: int) -> TensorEntry:
        if not isinstance(description, dict) or description.keys() != {"dtype", "shape", "data_offsets"}:
            raise self._fail(f"tensor {name!r} is not described by dtype, shape and data_offsets")
        dtype = DTYPES.get(description["dtype"]) if isinstance(description["dtype"], str) else None
        if dtype is None:
            raise self._fail(
                f"tensor {name!r} has dtype {str(description['dtype'])[:40]!r}", f"one of {', '.join(DTYPES)}"
            )
        shape, offsets = description["shape"], description["data_offsets"]
        if not _is_size_list(shape) or len(shape) > 64 or not _is_size_list(offsets) or len(offsets) != 2:
            raise self._fail(f"tensor {name!r} has no valid shape and data_offsets")
        count = dtype.itemsize
        for size in shape:
            count *= size
        begin, end = offsets
        if end - begin != count:
            raise self._fail(f"tensor {name!r}, {dtype}{shape}, takes {end - begin} bytes", f"{count} bytes")
        return TensorEntry(dtype, tuple(shape), base + begin, base + end)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def read(self, name: str) -> np.ndarray:
        """Return one tensor as a new array.

        raises NotFoundError if the file has no such tensor, DataLossError if it is truncated
        """
        entry = self.entries.get(name)
        if entry is None:
            raise NotFoundError(what=f"{self.path} has no tensor {name!r}")
        self._file.seek(0, os.SEEK_END)
        if self._file.tell() < entry.end:  # checked before allocating memory
            raise self._fail(f"it ends within tensor {name!r}")
        self._file.seek(entry.begin)
        array = np.empty(entry.shape, entry.dtype)
        if array.nbytes and self._file.readinto(array.reshape(-1).view(np.uint8)) != array.nbytes:  # type: ignore[arg-type]
            raise self._fail(f"it ends within tensor {name!r}")
        return array

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @finalizer
    def __del__(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()


def _is_size_list(value: Any) -> bool:
    return isinstance(value, list) and all(type(v) is int and 0 <= v < 1 << 62 for v in value)


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
    return np.fromiter((data[a:b] for a, b in itertools.pairwise(bounds)), object, count).reshape(shape)


def describe(array: np.ndarray, dtype: DType, stored: np.ndarray) -> dict[str, Any]:
    """Return the entry of a tensor in an index."""
    return {"type": TensorSpec(np.shape(array), dtype).short(), "crc32": checksum(stored)}


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
    if crc is not None and crc != checksum(stored):
        raise DataLossError(
            what=f"{file.path} is damaged: the checksum of tensor {name!r} differs",
            do="copy the files again, or save again",
        )
    try:
        return decode(stored, spec), spec.dtype
    except (ValueError, OpError) as error:
        raise DataLossError(what=f"{file.path}: tensor {name!r} should be {spec.short()}: {error}") from None
