"""Bytes of MLIR's bytecode as values: numbers, and the types and attributes of the dialects builtin and vhlo.

Lives here: `Bytes`, the decoders by code, `TYPES` and `VALUES` by dialect. Not here: sections of a file, tables of
strings, types and attributes (bytecode.py).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidArgumentError
from .literals import bits_of, of_bytes
from .module import DTYPES, OPAQUE, TensorType, tensor_type
from .vhlo import ENUMS

if TYPE_CHECKING:
    from .bytecode import BytecodeReader

MAX_COUNT = 2**26
"""The greatest number of anything in a section; sizes of what is read are bounded by the bytes that are there."""
FLOATS = {2: "bf16", 3: "f16", 4: "f32", 5: "f64"}
INTEGERS = {11: "i8", 12: "i16", 13: "i32", 14: "i64", 16: "ui8", 17: "ui16", 18: "ui32", 19: "ui64"}


def damaged(what: str) -> InvalidArgumentError:
    """Return the error of bytes that are not a module."""
    return InvalidArgumentError(op="from_stablehlo", what=f"damaged bytecode: {what}")


class Bytes:
    """Bytes and a position in them."""

    def __init__(self, content: bytes) -> None:
        self.content, self.position = content, 0

    def byte(self) -> int:
        """Return the next byte."""
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        """Return the next bytes. Raises InvalidArgumentError beyond the end."""
        end = self.position + count
        if count < 0 or end > len(self.content):
            raise damaged(f"{count} bytes at {self.position} of {len(self.content)}")
        result = self.content[self.position : end]
        self.position = end
        return result

    def number(self) -> int:
        """Return a number whose length the low bits of its first byte say."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if not first:
            return int(struct.unpack("<Q", self.take(8))[0])
        length = (first & -first).bit_length() - 1
        rest = int.from_bytes(self.take(length), "little")
        return (first | rest << 8) >> (length + 1)

    def signed(self) -> int:
        """Return a number with the sign in its lowest bit."""
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def count(self) -> int:
        """Return a number of elements that follow. Raises InvalidArgumentError if there cannot be as many."""
        value = self.number()
        if value > MAX_COUNT or value > len(self.content):
            raise damaged(f"{value} elements")
        return value

    def flagged(self) -> tuple[int, bool]:
        """Return a number and a flag, which is its lowest bit."""
        value = self.number()
        return value >> 1, bool(value & 1)

    def text(self) -> str:
        """Return a string that ends with a zero."""
        end = self.content.find(b"\0", self.position)
        if end < 0:
            raise damaged("a string does not end")
        result = self.content[self.position : end].decode("utf-8", "replace")
        self.position = end + 1
        return result

    def numbers(self) -> list[int]:
        """Return signed numbers after their count."""
        return [self.signed() for _ in range(self.count())]

    @property
    def more(self) -> bool:
        """Whether bytes follow."""
        return self.position < len(self.content)


def unread(reader: BytecodeReader, source: Bytes) -> Any:
    """Return None, the value of codes that are not read."""
    return None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _whole(source: Bytes, width: int) -> int:
    """Return an integer of this width: up to 8 bits a byte, up to 64 a signed number, else several."""
    if width <= 8:
        value = source.byte()
    elif width <= 64:
        value = source.signed()
    else:
        value = sum(source.signed() << 64 * i for i in range(source.count()))
    return value - (1 << width) if 1 < width <= 64 and value >= 1 << (width - 1) else value


def _builtin_type(reader: BytecodeReader, source: Bytes) -> Any:
    code = source.number()
    if code == 0:
        width = source.number()
        name = f"{'ui' if width & 3 == 2 else 'i'}{width >> 2}"
        return TensorType((), DTYPES[name]) if name in DTYPES else OPAQUE
    if code in (1, 3, 4, 5, 6):
        return TensorType((), DTYPES[{1: "index", 3: "bf16", 4: "f16", 5: "f32", 6: "f64"}[code]])
    if code == 9:
        return _complex(reader.type(source.number()))
    if code in (13, 14):
        if code == 14:
            source.number()
        shape = source.numbers()
        return _ranked(shape, reader.type(source.number()))
    return OPAQUE


def _complex(part: Any) -> Any:
    single = isinstance(part, TensorType) and part.dtype is DTYPES["f32"]
    return TensorType((), DTYPES["complex<f32>" if single else "complex<f64>"])


def _ranked(shape: list[int], element: Any) -> TensorType:
    names = [n for n, d in DTYPES.items() if isinstance(element, TensorType) and d is element.dtype and n != "index"]
    try:
        return tensor_type(tuple(None if d < 0 else d for d in shape), names[0] if names else "of this code")
    except ValueError as error:
        raise damaged(str(error)) from None


def _vhlo_type(reader: BytecodeReader, source: Bytes) -> Any:
    code = source.number()
    if code == 0:
        return TensorType((), DTYPES["i1"])
    if code == 1:
        return _complex(reader.type(source.number()))
    if code in FLOATS:
        return TensorType((), DTYPES[FLOATS[code]])
    if code in INTEGERS:
        return TensorType((), DTYPES[INTEGERS[code]])
    if code == 9:
        return TensorType((), DTYPES["index"])
    if code in (20, 21):
        if code == 21:
            source.number()
        shape = source.numbers()
        return _ranked(shape, reader.type(source.number()))
    if code == 23:
        return [reader.type(source.number()) for _ in range(source.count())]
    return OPAQUE


def _number_of(reader: BytecodeReader, source: Bytes) -> Any:
    kind = reader.type(source.number())
    width = 64 if not isinstance(kind, TensorType) or kind.dtype is None else 8 * kind.dtype.size
    if isinstance(kind, TensorType) and kind.dtype is not None and kind.dtype.is_bool:
        return bool(source.byte())
    value = _whole(source, width)
    unsigned = isinstance(kind, TensorType) and kind.dtype is not None and kind.dtype.is_unsigned
    return value % (1 << width) if unsigned else value


def _float_of(reader: BytecodeReader, source: Bytes) -> float:
    kind = reader.type(source.number())
    if not isinstance(kind, TensorType) or kind.dtype is None or not kind.dtype.is_floating:
        raise damaged("a floating point number of another type")
    bits = _whole(source, 8 * kind.dtype.size) % (1 << 8 * kind.dtype.size)
    return float(bits_of(np.asarray([bits], np.uint64), kind.dtype)[0])


def _tensor_of(reader: BytecodeReader, source: Bytes) -> np.ndarray:
    kind = reader.type(source.number())
    content = source.take(source.number())
    if not isinstance(kind, TensorType) or kind.dtype is None:
        raise damaged("a tensor of no type")
    try:
        return of_bytes(content, kind)
    except ValueError as error:
        raise damaged(str(error)) from None


def _listed(reader: BytecodeReader, source: Bytes) -> list[Any]:
    return [reader.attribute(source.number()) for _ in range(source.count())]


def _dictionary(reader: BytecodeReader, source: Bytes) -> dict[str, Any]:
    rows = [(source.number(), source.number()) for _ in range(source.count())]
    return {str(reader.attribute(a)): reader.attribute(b) for a, b in rows}


def _dense_array(reader: BytecodeReader, source: Bytes) -> np.ndarray:
    kind, count = reader.type(source.number()), source.count()
    content = source.take(source.number())
    try:
        return of_bytes(content, TensorType((count,), kind.dtype))
    except (ValueError, AttributeError) as error:
        raise damaged(str(error)) from None


def _file_line(reader: BytecodeReader, source: Bytes) -> str:
    name, line = reader.attribute(source.number()), source.number()
    return f"{_quoted(str(name))}:{line}"


def _file_range(reader: BytecodeReader, source: Bytes) -> str:
    name, count = reader.attribute(source.number()), source.number()
    return f"{_quoted(str(name))}:{source.number() if count else 0}"


def _call_site(reader: BytecodeReader, source: Bytes) -> str:
    callee, caller = reader.attribute(source.number()), reader.attribute(source.number())
    return f"callsite({callee} at {caller})"


def _named(reader: BytecodeReader, source: Bytes) -> str:
    name, child = reader.attribute(source.number()), reader.attribute(source.number())
    return f"{_quoted(str(name))}({child})"


def _fused(reader: BytecodeReader, source: Bytes) -> str:
    return f"fused[{', '.join(str(reader.attribute(source.number())) for _ in range(source.count()))}]"


Decoder = Callable[["BytecodeReader", Bytes], Any]

BUILTIN: dict[int, Decoder] = {
    0: _listed,
    1: _dictionary,
    2: lambda reader, source: reader.string(source.number()),
    3: lambda reader, source: reader.string(source.number()),
    4: lambda reader, source: reader.attribute(source.number()),
    6: lambda reader, source: reader.type(source.number()),
    7: lambda reader, source: True,
    8: _number_of,
    9: _float_of,
    10: _call_site,
    11: _file_line,
    12: _fused,
    14: _named,
    15: lambda reader, source: "unknown",
    17: _dense_array,
    18: _tensor_of,
    22: _file_range,
}

VHLO: dict[int, Decoder] = {
    1: _listed,
    2: lambda reader, source: bool(source.number()),
    6: _dictionary,
    8: _float_of,
    9: _number_of,
    14: lambda reader, source: reader.string(source.number()),
    15: _tensor_of,
    17: lambda reader, source: reader.type(source.number()),
}


def _builtin_value(reader: BytecodeReader, source: Bytes) -> Any:
    return BUILTIN.get(source.number(), unread)(reader, source)


def _vhlo_value(reader: BytecodeReader, source: Bytes) -> Any:
    code = source.number()
    if code in ENUMS:
        value = source.number()
        return ENUMS[code][value] if value < len(ENUMS[code]) else value
    return VHLO.get(code, unread)(reader, source)


TYPES: dict[str, Decoder] = {"builtin": _builtin_type, "vhlo": _vhlo_type}

VALUES: dict[str, Decoder] = {"builtin": _builtin_value, "vhlo": _vhlo_value}
