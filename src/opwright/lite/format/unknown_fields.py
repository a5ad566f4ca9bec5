"""Fields and union members of a file that are newer than the schema.

Lives here: `UnknownField`, `UnknownUnionMember`, `SourceFile`.
Not here: reading them (reader.py), writing them (writer.py).

A FlatBuffer does not record the types of fields. Only the starts of an unknown field and of the next field
are known. Scalars and structs may be copied, offsets must be adjusted when they move, and some bytes could be either.
Files are preserved as follows:

    an unchanged model               the bytes of the file are written again
    a field that is no offset        its bytes are copied (`UnknownField.bytes`)
    a member of a union              an offset refers to it, so its file is written with the model (`SourceFile`)
    a field that may be an offset    writing a changed model is an error that names it; `unknown="drop"` omits it
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class UnknownField(NamedTuple):
    """A field newer than the schema.

    bytes: from the field's start to the start of the next, including padding. maybe_offset: the bytes could be an
    offset, so that they cannot be copied to another position. Equality compares the bytes without trailing zeros, which
    may be padding.
    """

    bytes: bytes
    maybe_offset: bool

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnknownField):
            return NotImplemented
        return self.bytes.rstrip(b"\0") == other.bytes.rstrip(b"\0")

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.bytes.rstrip(b"\0"))


class SourceFile:
    """The bytes that a model was read from, up to the end of the FlatBuffer; shared by copies of its objects."""

    __slots__ = ("base", "file", "flatbuffer")

    def __init__(self, file: memoryview, end: int) -> None:
        """Initialize. file: all bytes. end: the end of the FlatBuffer, where appended data begins."""
        self.file, self.flatbuffer = file, file[:end]
        self.base = np.frombuffer(file, np.uint8).__array_interface__["data"][0]

    def place_of(self, array: np.ndarray) -> int | None:
        """Return the offset of a vector's elements in the FlatBuffer if the array is a view on that vector, else
        None."""
        offset = array.__array_interface__["data"][0] - self.base
        if not (4 <= offset <= len(self.flatbuffer) - array.nbytes and array.flags.c_contiguous and len(array)):
            return None
        return offset if int.from_bytes(self.flatbuffer[offset - 4 : offset], "little") == len(array) else None

    def __deepcopy__(self, memo: Any) -> SourceFile:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _source_of, (bytes(self.file), len(self.flatbuffer))


def _source_of(file: bytes, end: int) -> SourceFile:
    return SourceFile(memoryview(file), end)
