"""Custom options: conversion between a dict of attributes and FlexBuffers bytes.

Lives here: `encode_options`, `decode_options`; `decode` for any FlexBuffers document; `custom_version`, the version of
a custom operator that its options specify.
Not here: an operator's attributes (lite/custom_options.py), options tables of builtin operators (objects.py).

The `flatbuffers` library encodes. The decoder is our own, because the library's reader trusts the bytes: offsets leave
the buffer, sizes request any amount of memory, documents may contain themselves. Here depth, values and bytes are
bounded.

    Python                    FlexBuffers                   decoded as
    None, bool, int, float    null, bool, (u)int, float     the same
    str, bytes                string, blob                  the same
    list of ints, of floats   typed vector                  list
    or of bools; 1-d array
    any other list, tuple     vector                        list
    dict with str keys        map, sorted by key            dict, sorted by key

Source: FlexBuffers internals, flatbuffers.dev/internals, and flexbuffers.h.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.errors import DataLossError, InvalidArgumentError, OpError

MAX_DEPTH = 64
_INT64_MIN, _INT64_MAX, _UINT64_MAX = -(2**63), 2**63 - 1, 2**64 - 1


def encode_options(attributes: Mapping[str, Any]) -> bytes:
    """Return the FlexBuffers bytes of a map with these entries, independent of their order.

    raises InvalidArgumentError, naming the entry, for a value that FlexBuffers cannot represent
    """
    if not isinstance(attributes, Mapping):
        raise InvalidArgumentError(what="options are not a dict", found=type(attributes).__name__)
    from flatbuffers import flexbuffers  # 5 ms, not needed for reading options

    builder = flexbuffers.Builder()
    _add(builder, _plain(attributes, "options", 0))
    return bytes(builder.Finish())


def _plain(value: Any, path: str, depth: int) -> object:
    """Return the value in plain Python types, with keys as sorted bytes, after validation.

    Validated first, because an exception that passes through the builder's context managers is replaced by one of
    theirs.
    """
    if depth > MAX_DEPTH:
        raise InvalidArgumentError(what=f"{path[:80]} nests too deep", wanted=f"at most {MAX_DEPTH} levels")
    if isinstance(value, np.ndarray) and value.ndim != 1:
        raise InvalidArgumentError(
            what=f"{path} is an array of rank {value.ndim}", wanted="a flat array or nested lists"
        )
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        entries = {_key(key, path): _plain(item, f"{path}[{key!r}]", depth + 1) for key, item in value.items()}
        return dict(sorted(entries.items()))
    if isinstance(value, int) and not _INT64_MIN <= value <= _UINT64_MAX:
        raise InvalidArgumentError(what=f"{path} does not fit 64 bits", found=f"an int of {value.bit_length()} bits")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError(what=f"{path} is not valid text", found=ascii(value[:40])) from None
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    raise InvalidArgumentError(
        what=f"{path} cannot be stored in custom options",
        found=type(value).__name__,
        wanted="None, bool, int, float, str, bytes, or lists and dicts of them",
    )


def _add(builder: Any, value: Any) -> None:
    """Append a plain value to the builder."""
    if isinstance(value, dict):
        with builder.Map():
            for key, item in value.items():
                builder.Key(key)
                _add(builder, item)
    elif isinstance(value, list):
        kinds = {type(item) for item in value}
        typed = kinds in ({bool}, {float}) or (kinds == {int} and max(value) <= _INT64_MAX)
        with builder.TypedVector() if typed else builder.Vector():
            for item in value:
                _add(builder, item)
    elif isinstance(value, int) and value > _INT64_MAX:
        builder.UInt(value)
    elif isinstance(value, float):
        builder.Float(value, _float_width(value))
    else:
        builder.Add(value)


def _float_width(value: float) -> int:
    """Return 4 if float32 represents the value exactly, else 8. The builder's own test overflows beyond float32."""
    with np.errstate(over="ignore"):
        return 4 if float(np.float32(value)) == value else 8


def _key(key: Any, path: str) -> bytes:
    if not isinstance(key, str) or "\0" in key:
        raise InvalidArgumentError(what=f"{path} has a key that is not text", found=repr(key)[:80])
    try:
        return key.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(what=f"{path} has a key that is not valid text", found=ascii(key)[:80]) from None


def encode_strings(texts: Sequence[bytes]) -> bytes:
    """Return the FlexBuffers bytes of a vector of strings, which may be arbitrary bytes; `flexbuffers.Builder` accepts
    only text.

    Sizes and offsets are four bytes wide: a string is its size, its bytes and a zero; the vector its size, an offset
    back to each string, and a type byte for each; the document ends with the offset back to the vector.
    """
    out, offsets = bytearray(), []
    for text in texts:
        out += bytes(-len(out) % 4) + len(text).to_bytes(4, "little")
        offsets.append(len(out))
        out += text + b"\0"
    out += bytes(-len(out) % 4) + len(texts).to_bytes(4, "little")
    start = len(out)
    for offset in offsets:
        out += (len(out) - offset).to_bytes(4, "little")
    out += bytes([STRING << 2 | 2]) * len(texts)
    out += bytes(-len(out) % 4)
    return bytes(out + (len(out) - start).to_bytes(4, "little") + bytes([VECTOR << 2 | 2, 4]))


def decode_options(options: Any) -> dict[str, Any]:
    """Return the attributes in custom options; an empty dict for no bytes or a null document.

    options: bytes or a uint8 array. raises DataLossError for damaged bytes, InvalidArgumentError for a FlexBuffers
    document that is not a map
    """
    value = decode(options) if len(options) else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidArgumentError(what="custom options are not a map", found=type(value).__name__, wanted="a map")
    return value


Document = bool | float | str | bytes | list[Any] | dict[str, Any] | None
"""A value of FlexBuffers."""


def decode(document: Any) -> Document:
    """Return the value of a FlexBuffers document. Raises DataLossError for damaged bytes."""
    raw = bytes(document)
    try:
        return _Decoder(raw).root()
    except _Damage as damage:
        raise DataLossError(
            what=f"damaged FlexBuffers document: {damage}", found=f"{len(raw)} bytes", wanted="a whole document"
        ) from None


class _Damage(Exception):
    pass


# FlexBuffers types (flexbuffers.h, enum Type)
NULL, INT, UINT, FLOAT, KEY, STRING, INDIRECT_INT, INDIRECT_UINT, INDIRECT_FLOAT, MAP, VECTOR = range(11)
VECTOR_INT, VECTOR_STRING, VECTOR_INT2, VECTOR_FLOAT4, BLOB, BOOL, VECTOR_BOOL = 11, 15, 16, 24, 25, 26, 36

_CODES = {  # by type, then by width: the struct code
    INT: {1: "b", 2: "h", 4: "i", 8: "q"},
    UINT: {1: "B", 2: "H", 4: "I", 8: "Q"},
    FLOAT: {2: "e", 4: "f", 8: "d"},
}
_INDIRECT = {INDIRECT_INT: INT, INDIRECT_UINT: UINT, INDIRECT_FLOAT: FLOAT}


class _Decoder:
    """Bounds-checked decoder. Positions are byte offsets. The parent determines a value's width, its type that of its
    target."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.left = 4 * len(raw) + 64  # remaining budget of values and bytes

    def root(self) -> Document:
        if len(self.raw) < 3:
            raise _Damage("too short")
        packed, width = self.raw[-2], self.raw[-1]
        if width not in (1, 2, 4, 8) or width + 2 > len(self.raw):
            raise _Damage(f"root of {width} bytes")
        return self.value(len(self.raw) - 2 - width, width, packed >> 2, 1 << (packed & 3), 0)

    def value(self, position: int, width: int, kind: int, child_width: int, depth: int) -> Document:
        """Return the value at a position. width: its own. child_width: that of the target of its offset, if it is
        one."""
        self.spend(1)
        if depth > MAX_DEPTH:
            raise _Damage(f"nests deeper than {MAX_DEPTH} levels")
        if kind == NULL:
            return None
        if kind == BOOL:
            return self.unsigned(position, width) != 0
        if kind in _CODES:
            return self.number(kind, position, width)
        target = position - self.unsigned(position, width)
        if kind in _INDIRECT:
            return self.number(_INDIRECT[kind], target, child_width)
        if kind == KEY:
            return self.key(target)
        if kind == STRING:
            return str(self.sized(target, child_width), "utf-8", "surrogateescape")
        if kind == BLOB:
            return self.sized(target, child_width)
        if kind in (MAP, VECTOR):
            items = self.vector(target, child_width, depth)
            return dict(zip(self.keys(target, child_width, len(items)), items)) if kind == MAP else items
        if VECTOR_INT2 <= kind <= VECTOR_FLOAT4:
            n, element = (kind - VECTOR_INT2) // 3 + 2, (kind - VECTOR_INT2) % 3 + INT
            return self.typed(target, child_width, element, n, depth)
        if VECTOR_INT <= kind <= VECTOR_STRING or kind == VECTOR_BOOL:
            n = self.unsigned(target - child_width, child_width)
            return self.typed(target, child_width, kind - VECTOR_INT + INT, n, depth)
        raise _Damage(f"unknown type {kind}")

    def number(self, kind: int, position: int, width: int) -> float:
        code = _CODES[kind].get(width)
        if code is None:
            raise _Damage(f"floating-point number of {width} bytes")
        if not 0 <= position <= len(self.raw) - width:
            raise _Damage(f"position {position} is outside")
        result: float = struct.unpack_from(f"<{code}", self.raw, position)[0]
        return result

    def unsigned(self, position: int, width: int) -> int:
        return int(self.number(UINT, position, width))

    def sized(self, position: int, width: int) -> bytes:
        n = self.unsigned(position - width, width)
        if n > len(self.raw) - position:
            raise _Damage(f"string of {n} bytes at {position} runs past the end")
        self.spend(n)
        return self.raw[position : position + n]

    def key(self, position: int) -> str:
        end = self.raw.find(b"\0", position) if 0 <= position < len(self.raw) else -1
        if end < 0:
            raise _Damage(f"key at {position} has no end")
        self.spend(end - position)
        return str(self.raw[position:end], "utf-8", "surrogateescape")

    def keys(self, position: int, width: int, n: int) -> list[str]:
        """Return the keys of a map: the two words before its size are the offset to the key vector and that vector's
        width."""
        slot = position - 3 * width
        start = slot - self.unsigned(slot, width)
        key_width = self.unsigned(slot + width, width)
        if key_width not in (1, 2, 4, 8) or self.unsigned(start - key_width, key_width) != n:
            raise _Damage(f"keys and values of the map at {position} disagree")
        self.spend(n)
        slots = [start + i * key_width for i in range(n)]
        return [self.key(slot - self.unsigned(slot, key_width)) for slot in slots]

    def vector(self, position: int, width: int, depth: int) -> list[Any]:
        n = self.unsigned(position - width, width)
        types = position + n * width
        if types + n > len(self.raw):
            raise _Damage(f"vector of {n} at {position} runs past the end")
        self.spend(n)
        return [
            self.value(position + i * width, width, packed >> 2, 1 << (packed & 3), depth + 1)
            for i, packed in enumerate(self.raw[types : types + n])
        ]

    def typed(self, position: int, width: int, kind: int, n: int, depth: int) -> list[Any]:
        if position + n * width > len(self.raw):
            raise _Damage(f"vector of {n} at {position} runs past the end")
        kind = BOOL if kind == VECTOR_BOOL - VECTOR_INT + INT else kind
        self.spend(n)
        # The sizes of strings in a typed vector are one byte wide, whatever the vector's width (flexbuffers.h).
        return [self.value(position + i * width, width, kind, 1, depth + 1) for i in range(n)]

    def spend(self, n: int) -> None:
        self.left -= n
        if self.left < 0:
            raise _Damage("the same bytes are used again and again")


VERSION_KEY = "_version"  # the version, in files whose operator code must say 1 for other run times
_STORED = VERSION_KEY.encode() + b"\0"  # its encoding: most options lack it and need not be decoded


def custom_version(code_version: int, options: Any) -> int:
    """Return the version in a custom node's options if there is one and the operator code says 1, else the code's.

    options: bytes, a uint8 array or None. Options that are not a FlexBuffers map, or without a version, count as none.
    """
    raw = b"" if options is None else bytes(options)
    if code_version != 1 or _STORED not in raw:
        return code_version
    try:
        version = decode_options(raw).get(VERSION_KEY)
    except OpError:
        return code_version
    return version if type(version) is int and version >= 1 else code_version
