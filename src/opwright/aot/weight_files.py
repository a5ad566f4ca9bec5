"""Weights as a file that the caller of a library maps or reads: its format, and the function that checks it.

Lives here: `weight_file_of`, `header_of`, `map_text`, `WEIGHT_FILE_ALIGNMENT`. Not here: the layout of the weights
(memory_layouts.py), the same function in C (c_source.py).

A file is a header of 64 bytes and the constants of the library, at the offsets that its code has. It has no addresses,
so that it is mapped read-only, anywhere that is aligned. Numbers are little-endian:

    0   8 bytes   "OPWRIGHT"
    8   uint32    version of the format
    12  uint32    size of the header
    16  32 bytes  SHA-256 of the constants
    48  uint64    their size in bytes
    56  8 bytes   zeros

A library knows the header of its file: one that differs in any byte is another file. The constants themselves are not
read before a run needs them.
"""

from __future__ import annotations

import hashlib
import struct

from ..compiler.native.executor import ALIGNMENT
from .memory_layouts import MemoryLayout, weights_of
from .status_codes import CUT_WEIGHTS, MISALIGNED, NO_MEMORY, OK, OTHER_WEIGHTS

VERSION = 1
HEADER_SIZE = 64
WEIGHT_FILE_ALIGNMENT = ALIGNMENT
"""Alignment of a file in memory. The header is as long, so constants are aligned, too."""


def header_of(layout: MemoryLayout) -> bytes:
    """Return the header of a library's weights."""
    digest = hashlib.sha256(weights_of(layout)).digest()
    return struct.pack("<8sII32sQ8x", b"OPWRIGHT", VERSION, HEADER_SIZE, digest, layout.weights)


def weight_file_of(layout: MemoryLayout) -> bytes:
    """Return the contents of a file of weights."""
    return header_of(layout) + weights_of(layout)


def map_text(name: str, layout: MemoryLayout, wide: int) -> list[str]:
    """Return the function `int NAME_map_weights(const void *file, size_t size, struct NAME_weights *weights)`.

    wide: bits of size_t
    """
    header = "".join(f"\\{byte:02X}" for byte in header_of(layout))
    return f"""@{name}.header = internal constant [{HEADER_SIZE} x i8] c"{header}"
define i32 @{name}_map_weights(ptr %file, i{wide} %size, ptr %weights) {{
entry:
  %no.weights = icmp eq ptr %weights, null
  br i1 %no.weights, label %absent, label %unset
unset:
  store ptr null, ptr %weights
  %no.file = icmp eq ptr %file, null
  br i1 %no.file, label %absent, label %present
present:
  %address = ptrtoint ptr %file to i{wide}
  %low = and i{wide} %address, {WEIGHT_FILE_ALIGNMENT - 1}
  %even = icmp eq i{wide} %low, 0
  br i1 %even, label %aligned, label %misaligned
aligned:
  %headed = icmp uge i{wide} %size, {HEADER_SIZE}
  br i1 %headed, label %next, label %cut
next:
  %i = phi i32 [ 0, %aligned ], [ %after, %same ]
  %place = getelementptr i8, ptr %file, i32 %i
  %known = getelementptr i8, ptr @{name}.header, i32 %i
  %actual = load i8, ptr %place
  %expected = load i8, ptr %known
  %equal = icmp eq i8 %actual, %expected
  br i1 %equal, label %same, label %other
same:
  %after = add i32 %i, 1
  %all = icmp eq i32 %after, {HEADER_SIZE}
  br i1 %all, label %headers, label %next
headers:
  %whole = icmp uge i{wide} %size, {HEADER_SIZE + layout.weights}
  br i1 %whole, label %good, label %cut
good:
  %constants = getelementptr i8, ptr %file, i32 {HEADER_SIZE}
  store ptr %constants, ptr %weights
  ret i32 {OK}
absent:
  ret i32 {NO_MEMORY}
misaligned:
  ret i32 {MISALIGNED}
other:
  ret i32 {OTHER_WEIGHTS}
cut:
  ret i32 {CUT_WEIGHTS}
}}""".splitlines()
