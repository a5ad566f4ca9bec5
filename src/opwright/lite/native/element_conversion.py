"""Conversion of elements whose encoding in C differs: strings, and types below a byte.

Lives here: `is_converted`, both directions.  Not here: the bytes of a string tensor (format/strings.py).

In Python a string tensor is an array of bytes objects, and an int4 takes a byte. In C a string tensor is one buffer
with offsets, and two int4 share a byte, the first in the lower half.
"""

from __future__ import annotations

import numpy as np

from ..format.constants import PACKED
from ..format.strings import pack_strings, unpack_strings
from ..runtime.constants import unpacked
from ..runtime.tensor import Tensor


def is_converted(t: Tensor) -> bool:
    """Return whether the elements are copied to and from another encoding."""
    name = getattr(t.type, "name", "")
    return name == "STRING" or name in PACKED


def to_c(t: Tensor) -> np.ndarray:
    """Return a new buffer with the elements in C's encoding."""
    array = t.array
    assert array is not None
    if array.dtype.kind == "O":
        return np.frombuffer(bytearray(pack_strings(array.reshape(-1).tolist())), np.uint8)
    bits = PACKED[t.type.name]
    values = array.reshape(-1).astype(np.int8).view(np.uint8) & ((1 << bits) - 1)
    per_byte = 8 // bits
    padded = np.zeros(-(-values.size // per_byte) * per_byte, np.uint8)
    padded[: values.size] = values
    shifted = padded.reshape(-1, per_byte) << np.arange(0, 8, bits, dtype=np.uint8)
    result: np.ndarray = np.bitwise_or.reduce(shifted, axis=1)
    return result


def from_c(t: Tensor, content: np.ndarray) -> np.ndarray:
    """Return the elements in a buffer of C's encoding.

    raises DataLossError or InvalidArgumentError for an invalid buffer, or another number of strings than the tensor has
    """
    if t.is_object:
        return unpack_strings(content, t.shape)
    return unpacked(content, PACKED[t.type.name], t.dtype, int(np.prod(t.shape))).reshape(t.shape)


def bytes_in_c(t: Tensor) -> int:
    """Return the bytes in C of a tensor with elements of fixed size."""
    name = getattr(t.type, "name", "")
    if name in PACKED:
        return -(-int(np.prod(t.shape, dtype=np.int64)) * PACKED[name] // 8)
    return t.nbytes
