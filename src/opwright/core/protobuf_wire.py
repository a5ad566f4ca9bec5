"""Protocol-buffer wire format: numbers of variable length, fields, packed lists.

Lives here: reading and writing of fields, without schemas.
Not here: messages (io/messages.py, io/tensor_protos.py, lite/flex/nodedef.py).

A message is a sequence of fields, each a key (number << 3 | wire type) and a value: a varint, 4 or 8 bytes, or a length
and bytes (protobuf.dev/programming-guides/encoding). Readers are for bytes of unknown origin: every length is checked
before it is used, and no read allocates more than the input's size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
_MASK = (1 << 64) - 1
_MAX_VARINT = 10  # bytes of a 64-bit number

Damaged = Callable[[str], Exception]
"""The error of a reader for damaged bytes, from the reason."""


def varint(value: int) -> bytes:
    """Return the bytes of a number; negative ones take ten."""
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@functools.cache
def key(number: int, wire: int) -> bytes:
    """Return the bytes before the value of a field."""
    return varint(number << 3 | wire)


def sized(number: int, contents: bytes) -> bytes:
    """Return a field of bytes: a string, a message or a packed list."""
    return key(number, BYTES) + varint(len(contents)) + contents


def encoded(number: int, wire: int, value: Any) -> bytes:
    """Return the bytes of a field that `fields` yielded."""
    if wire == VARINT:
        return key(number, wire) + varint(value)
    return sized(number, bytes(value)) if wire == BYTES else key(number, wire) + bytes(value)


def signed(value: int) -> int:
    """Return the int64 of a varint's value."""
    return value - (1 << 64) if value >> 63 else value


def read_varint(data: bytes | memoryview, offset: int, damaged: Damaged) -> tuple[int, int]:
    """Return the number at `offset` in [0, 2**64), and the offset after it. Raises `damaged` if it has no end."""
    value = shift = 0
    while True:
        if offset >= len(data) or shift > 63:
            raise damaged("a number has no end")
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return value & _MASK, offset


def fields(data: bytes | memoryview, damaged: Damaged) -> Iterator[tuple[int, int, Any]]:
    """Yield (number, wire type, value) of each field: an int for varints, bytes (views, of a memoryview) otherwise.

    raises `damaged` with the reason where the bytes are not a message
    """
    offset, end = 0, len(data)
    while offset < end:
        byte = data[offset]
        if byte < 0x80:  # nearly every key, and the length of a short value
            tag, offset = byte, offset + 1
        else:
            tag, offset = read_varint(data, offset, damaged)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, offset = read_varint(data, offset, damaged)
            yield number, wire, value
            continue
        if wire == BYTES:
            if offset < end and data[offset] < 0x80:
                size, offset = data[offset], offset + 1
            else:
                size, offset = read_varint(data, offset, damaged)
        elif wire in (FIXED32, FIXED64):
            size = 4 if wire == FIXED32 else 8
        else:
            raise damaged(f"field {number} has wire type {wire}")
        if size > end - offset:
            raise damaged(f"field {number} runs past its end")
        yield number, wire, data[offset : offset + size]
        offset += size


def packed_varints(data: bytes, damaged: Damaged) -> np.ndarray:
    """Return the numbers of a packed list as int64[n]. Raises `damaged` for a number without an end."""
    if len(data) < 16:  # NumPy's calls take 20 us in all
        numbers, offset = [], 0
        while offset < len(data):
            value, offset = read_varint(data, offset, damaged)
            numbers.append(signed(value))
        return np.array(numbers, np.int64)
    array = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(array < 0x80)
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    sizes = ends - starts + 1
    if array[-1] >= 0x80 or sizes.max() > _MAX_VARINT:
        raise damaged("a number has no end")
    result = np.zeros(len(ends), np.uint64)
    for i in range(int(sizes.max())):
        longer = np.flatnonzero(sizes > i)
        result[longer] |= (array[starts[longer] + i] & 0x7F).astype(np.uint64) << np.uint64(7 * i)
    return result.view(np.int64)


def packed_int64s(values: np.ndarray) -> bytes:
    """Return the bytes of a packed list of int64[n]."""
    unsigned = np.ascontiguousarray(values, np.int64).view(np.uint64)
    if not len(unsigned) or int(unsigned.max()) < 0x80:
        return unsigned.astype(np.uint8).tobytes()
    return b"".join(map(varint, unsigned.tolist()))
