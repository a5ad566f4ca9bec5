"""Storage of tensors and checks of constants: sizes of elements, packed types, string and sparse tensors.

Lives here: the bits of each tensor type, the bytes of a dense or sparse tensor, `pack_strings`, `unpack_strings`, the
check of a constant's buffer.
Not here: the other rules (verify.py), reading the elements (the interpreter).

The layout of a string tensor, all little-endian:

    int32 count | int32 offsets[count + 1] | the concatenated bytes of all strings

String i is bytes[offsets[i] : offsets[i + 1]], counted from the start of the buffer. Source: tflite/string_util.h.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core.errors import DataLossError, InvalidArgumentError
from .subgraph_checks import Finding

_INT32_MAX = 2**31 - 1


def pack_strings(strings: Sequence[bytes | str]) -> bytes:
    """Return the buffer of a string tensor with these elements, in row-major order; str is stored as UTF-8.

    raises InvalidArgumentError if an element is not a string, or the total exceeds 2 GB
    """
    items = [s.encode() if isinstance(s, str) else s for s in strings]
    for i, item in enumerate(items):
        if not isinstance(item, bytes):
            raise InvalidArgumentError(
                what=f"element {i} is not a string", found=type(item).__name__, wanted="bytes or str"
            )
    offsets = np.cumsum([4 * (len(items) + 2), *map(len, items)], dtype=np.int64)
    if offsets[-1] > _INT32_MAX:
        raise InvalidArgumentError(
            what="strings do not fit one tensor", found=f"{offsets[-1]} bytes", wanted="below 2 GB"
        )
    result: bytes = np.int32(len(items)).astype("<i4").tobytes() + offsets.astype("<i4").tobytes() + b"".join(items)
    return result


def pack_elements(array: np.ndarray, bits: int) -> np.ndarray:
    """Return elements of a type of 2 or 4 bits packed in bytes: uint8 [bytes], the first element in the lowest bits."""
    low = array.reshape(-1).astype(np.int8).view(np.uint8) & (1 << bits) - 1
    low = np.concatenate([low, np.zeros(-len(low) % (8 // bits), np.uint8)]).reshape(-1, 8 // bits)
    result: np.ndarray = np.bitwise_or.reduce(low << np.arange(0, 8, bits, dtype=np.uint8), axis=1, dtype=np.uint8)
    return result


def string_offsets(buffer: Any) -> np.ndarray:
    """Return the checked offsets[count + 1] of a string tensor's buffer. Raises DataLossError for an invalid layout."""
    raw = np.frombuffer(buffer, np.uint8)
    if raw.size < 4:
        raise DataLossError(
            what="string buffer has no room for its count", found=f"{raw.size} bytes", wanted="4 or more"
        )
    count = int(raw[:4].view("<i4")[0])
    if count < 0 or 4 * (count + 2) > raw.size:
        raise DataLossError(
            what="string buffer is too short for its offsets", found=f"{raw.size} bytes for {count} strings"
        )
    offsets = raw[4 : 4 * (count + 2)].view("<i4")
    if offsets[0] < 4 * (count + 2) or offsets[-1] > raw.size or (np.diff(offsets.astype(np.int64)) < 0).any():
        raise DataLossError(
            what="string buffer has offsets out of order or outside it",
            found=f"{offsets[0]} to {offsets[-1]}",
            wanted=f"rising from {4 * (count + 2)} to at most {raw.size}",
        )
    return offsets


def unpack_strings(buffer: Any, shape: Sequence[int] | None = None) -> np.ndarray:
    """Return the elements of a string tensor, as an object array of bytes with the specified shape (default: flat).

    raises DataLossError for an invalid layout, InvalidArgumentError if the shape requires another number of strings
    """
    offsets = string_offsets(buffer).tolist()
    data = memoryview(buffer).cast("B")
    strings = np.fromiter((bytes(data[a:b]) for a, b in itertools.pairwise(offsets)), object, len(offsets) - 1)
    if shape is None:
        return strings
    if math.prod(shape) != strings.size or any(d < 0 for d in shape):
        raise InvalidArgumentError(
            what="shape and string buffer disagree", found=f"{strings.size} strings", wanted=f"shape {list(shape)}"
        )
    return strings.reshape(tuple(shape))


# Bits per element; types below 8 bits are packed, with padding in the last byte. STRING, RESOURCE and VARIANT have
# none.
BITS = {
    "FLOAT32": 32,
    "FLOAT16": 16,
    "INT32": 32,
    "UINT8": 8,
    "INT64": 64,
    "BOOL": 8,
    "INT16": 16,
    "COMPLEX64": 64,
    "INT8": 8,
    "FLOAT64": 64,
    "COMPLEX128": 128,
    "UINT64": 64,
    "UINT32": 32,
    "UINT16": 16,
    "INT4": 4,
    "BFLOAT16": 16,
    "INT2": 2,
    "UINT4": 4,
    "FLOAT8_E4M3FN": 8,
    "FLOAT8_E5M2": 8,
}
PACKED = {name: bits for name, bits in BITS.items() if bits < 8}
"""Bits of the types that are packed in bytes, the first element in the lowest bits."""

UNCOUNTABLE = 2**63
MAX_RANK = 64  # of a NumPy array, since 2.0
MAX_ELEMENT_BYTES = 16  # greatest size of an element
ALWAYS_COUNTABLE = UNCOUNTABLE // MAX_ELEMENT_BYTES  # any number of elements up to this is countable


def element_count(shape: Sequence[int]) -> int:
    """Return the product of the dimensions, or UNCOUNTABLE once it exceeds 2**63 - 1, so that long shapes stay
    cheap."""
    count = 1
    for d in shape:
        count *= d
        if count >= UNCOUNTABLE:
            return UNCOUNTABLE
    return count


def countable(shape: Sequence[int]) -> bool:
    """Return whether an array can have the shape. NumPy limits the product of nonzero sizes to 2**63 bytes, too."""
    return len(shape) <= MAX_RANK and element_count([d or 1 for d in shape]) < UNCOUNTABLE // MAX_ELEMENT_BYTES


def bytes_of(type_name: str, elements: int) -> int | None:
    """Return the bytes of this many elements, packed; None for a type without a fixed element size."""
    bits = BITS.get(type_name)
    return None if bits is None else -(-elements * bits // 8)


def check(path: str, index: int, tensor: Any, buffer: Any, strings: dict[int, Finding | None]) -> Iterator[Finding]:
    """Yield findings for one tensor and its buffer. strings: findings for string buffers checked so far, by index."""
    if tensor.sparsity is None and (buffer.data is None or tensor.buffer == 0):
        return
    if tensor.sparsity is not None:
        stored, finding = sparse_elements(f"{path}.sparsity", tensor)
        if finding is not None:
            yield finding
            return
    else:
        stored = element_count(np.asarray(tensor.shape).tolist())
    if buffer.data is None or tensor.buffer == 0:
        return
    if tensor.is_variable:
        yield Finding(path, f"Tensor {index} is a variable tensor with buffer. It's not supported now.")
        return
    if tensor.type.name == "STRING":
        if tensor.buffer not in strings:
            strings[tensor.buffer] = _check_strings(path, buffer)
        broken = strings[tensor.buffer]
        count = 0 if broken else int(np.frombuffer(buffer.data, "<i4", 1)[0])
        if broken is not None:
            yield broken
        elif count != stored:
            yield Finding(
                path,
                f"Tensor {index} is invalidly specified in schema: wrong number of strings",
                found=f"{count} strings",
                wanted=f"{stored} for shape {_brief(tensor.shape)}",
            )
        return
    required = bytes_of(tensor.type.name, stored)
    if required is not None and required > len(buffer.data):
        yield Finding(
            path,
            f"Tensor {index} is invalidly specified in schema: its buffer is too short",
            found=f"{len(buffer.data)} bytes in buffer {tensor.buffer}",
            wanted=f"{required} for {tensor.type.name} {_brief(tensor.shape)}",
        )


def _check_strings(path: str, buffer: Any) -> Finding | None:
    try:
        string_offsets(buffer.data)
    except DataLossError as error:
        return Finding(path, str(error).splitlines()[0])
    return None


def sparse_elements(path: str, tensor: Any) -> tuple[int, Finding | None]:
    """Return the number of values that a sparse tensor stores, or a finding for invalid index arrays.

    The dimensions in traversal order are the tensor's own, each divided by its block size where blocked, followed by
    those of the blocks. A dense dimension multiplies the number of positions; a compressed one (CSR) has one for each
    index. Source: tflite/kernels/internal/utils/sparsity_format_converter.h.
    """
    sparsity = tensor.sparsity
    shape = np.asarray(tensor.shape).tolist()
    order, blocks = np.asarray(sparsity.traversal_order).tolist(), np.asarray(sparsity.block_map).tolist()
    rank, levels = len(shape), len(sparsity.dim_metadata)
    if sorted(order) != list(range(rank + len(blocks))) or levels != len(order):
        return 0, Finding(
            f"{path}.traversal_order",
            "is not an order of the dimensions and blocks",
            found=_brief(order),
            wanted=f"0 to {rank + len(blocks) - 1}, once each, with metadata for each",
        )
    if any(not 0 <= d < rank for d in blocks) or len(set(blocks)) != len(blocks):
        return 0, Finding(f"{path}.block_map", "names dimensions that are not there or twice", found=_brief(blocks))
    sizes = list(shape)  # of each dimension in blocks, then of the blocks
    for level, metadata in zip(order, sparsity.dim_metadata):
        if level >= rank:
            block = metadata.dense_size
            if metadata.format != 0 or block <= 0 or sizes[blocks[level - rank]] % block:
                return 0, Finding(f"{path}.dim_metadata", "block is not dense or does not divide", found=block)
            sizes[blocks[level - rank]] //= block
    positions = 1
    for i, (level, metadata) in enumerate(zip(order, sparsity.dim_metadata)):
        here = f"{path}.dim_metadata[{i}]"
        if metadata.format == 0:
            size = metadata.dense_size
            if size < 0 or (level < rank and size != sizes[level]):
                return 0, Finding(f"{here}.dense_size", "differs from the shape", found=size)
            positions = min(positions * size, UNCOUNTABLE)
            continue
        finding = _check_segments(here, metadata, positions, sizes[level])
        if finding is not None:
            return 0, finding
        positions = len(_values(metadata.array_indices))
    return positions, None


def _check_segments(path: str, metadata: Any, positions: int, size: int) -> Finding | None:
    if metadata.format != 1 or metadata.array_segments is None or metadata.array_indices is None:
        return Finding(path, "compressed dimension lacks its segments or indices")
    if not hasattr(metadata.array_segments, "values") or not hasattr(metadata.array_indices, "values"):
        return Finding(path, "segments or indices of an unknown kind")
    segments = _values(metadata.array_segments).astype(np.int64)
    indices = _values(metadata.array_indices)
    if len(segments) != positions + 1 or segments[0] != 0 or (np.diff(segments) < 0).any():
        return Finding(
            f"{path}.array_segments",
            "segments do not rise from 0",
            found=f"{len(segments)} segments",
            wanted=f"{positions + 1}",
        )
    if segments[-1] != len(indices) or (len(indices) and not 0 <= indices.min() <= indices.max() < size):
        return Finding(
            f"{path}.array_indices",
            "indices and segments disagree, or lie outside the dimension",
            found=f"{len(indices)} indices",
            wanted=f"{segments[-1]}, below {size}",
        )
    return None


def _values(index_vector: Any) -> np.ndarray:
    return np.asarray(() if index_vector.values is None else index_vector.values)


def _brief(shape: Any) -> str:
    numbers = np.asarray(shape).tolist()
    return str(numbers) if len(numbers) <= 8 else f"{str(numbers[:8])[:-1]}, ...]"
