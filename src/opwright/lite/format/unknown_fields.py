"""What a file holds that this schema does not name: newer fields of tables, newer members of unions.

Lives here: `UnknownField`, `UnknownUnionMember`, `SourceFile`.
Not here: finding them (reader.py), writing them (writer.py).

A FlatBuffer does not say what a field is. What can be known of one that the schema lacks is where it starts and where
the next one does. A scalar or struct may be copied; an offset must be changed when it moves; and some bytes may be
either. So files are kept as far as that goes:

    nothing was changed              the bytes of the file are written again
    a field that is no offset        its bytes are copied (`UnknownField.bytes`)
    a member of a union              an offset points to it, so it goes along with the file that it is in (`SourceFile`)
    a field that may be an offset    writing a changed model is an error that names it; `unknown="drop"` leaves it out
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class UnknownField(NamedTuple):
    """bytes: from the field's start to that of the next, padding included. maybe_offset: its bytes fit an offset, too,
    so they cannot be copied to another place. Equal: the bytes, but for zeros at the end, which may be padding."""

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
    """The bytes a model was read from, as far as the FlatBuffer goes; shared by copies of what was read from it."""

    __slots__ = ("base", "file", "flatbuffer")

    def __init__(self, file: memoryview, end: int) -> None:
        """file: all of it. end: where the FlatBuffer ends, and what is stored behind it begins."""
        self.file, self.flatbuffer = file, file[:end]
        self.base = np.frombuffer(file, np.uint8).__array_interface__["data"][0]

    def place_of(self, array: np.ndarray) -> int | None:
        """Where in the FlatBuffer a vector's elements are, if the array is a view on that vector."""
        at = array.__array_interface__["data"][0] - self.base
        if not (4 <= at <= len(self.flatbuffer) - array.nbytes and array.flags.c_contiguous and len(array)):
            return None
        return at if int.from_bytes(self.flatbuffer[at - 4 : at], "little") == len(array) else None

    def __deepcopy__(self, memo: Any) -> SourceFile:
        return self

    def __reduce__(self) -> Any:
        return _source_of, (bytes(self.file), len(self.flatbuffer))


def _source_of(file: bytes, end: int) -> SourceFile:
    return SourceFile(memoryview(file), end)
