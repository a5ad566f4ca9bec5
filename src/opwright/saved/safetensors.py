"""The safetensors file format: a header with the position of each tensor, then their bytes.

Lives here: reading and writing such files, validation of the header. Not here: the encoding of dtypes that the format
lacks (encoding.py).

    8 bytes, little endian    n, the header's length
    n bytes of JSON           {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
    the remainder             the tensors, row-major, little endian, contiguous

Files are not trusted: reads are bounded by the file's size.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import ml_dtypes
import numpy as np

from ..core.errors import DataLossError, NotFoundError

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
            header = json.loads(self._file.read(length), object_pairs_hook=_without_duplicates)
        except (ValueError, RecursionError) as error:
            raise self._fail(f"its header is not JSON as wanted: {str(error)[:200]}") from None
        if not isinstance(header, dict):
            raise self._fail("its header is no JSON object")
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

    def __del__(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()


def _is_size_list(value: Any) -> bool:
    return isinstance(value, list) and all(type(v) is int and 0 <= v < 1 << 62 for v in value)


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name is there twice")
    return result
