"""String tensors: lists of byte strings in a tensor's buffer.

Lives here: `pack_strings`, `unpack_strings`, the check of a buffer.  Not here: strings as tensors (lite/runtime).

The layout, all little-endian:

    int32 count | int32 offsets[count + 1] | the concatenated bytes of all strings

String i is bytes[offsets[i] : offsets[i + 1]], counted from the start of the buffer. Source: tflite/string_util.h.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import DataLossError, InvalidArgumentError

_INT32_MAX = 2**31 - 1


def pack_strings(strings: Sequence[bytes | str]) -> bytes:
    """Return the buffer of a string tensor with these elements, in row-major order; str is stored as UTF-8.

    raises InvalidArgumentError if an element is not a string, or the total exceeds 2 GB
    """
    items = [s.encode() if isinstance(s, str) else s for s in strings]
    for i, item in enumerate(items):
        if not isinstance(item, bytes):
            raise InvalidArgumentError(
                what=f"element {i} is no string", found=type(item).__name__, wanted="bytes or str"
            )
    offsets = np.cumsum([4 * (len(items) + 2), *map(len, items)], dtype=np.int64)
    if offsets[-1] > _INT32_MAX:
        raise InvalidArgumentError(
            what="strings do not fit one tensor", found=f"{offsets[-1]} bytes", wanted="below 2 GB"
        )
    result: bytes = np.int32(len(items)).astype("<i4").tobytes() + offsets.astype("<i4").tobytes() + b"".join(items)
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
    strings = np.empty(len(offsets) - 1, object)
    strings[:] = [bytes(data[a:b]) for a, b in itertools.pairwise(offsets)]
    if shape is None:
        return strings
    if math.prod(shape) != strings.size or any(d < 0 for d in shape):
        raise InvalidArgumentError(
            what="shape and string buffer disagree", found=f"{strings.size} strings", wanted=f"shape {list(shape)}"
        )
    return strings.reshape(tuple(shape))
