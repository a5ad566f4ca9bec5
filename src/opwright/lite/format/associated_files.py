"""Associated files: the zip archive that task libraries append to a .tflite file, with labels and vocabularies.

Lives here: `find_archive`; `relocated`, which moves an archive to another offset in a file.
Not here: its entries (`zipfile` reads them), the model (reader.py).

An archive ends with a record that locates its directory, which locates its entries. Writers that append one count
these offsets from the start of the file. In memory they count from the archive's own start. Source: APPNOTE.TXT.
"""

from __future__ import annotations

import struct
from typing import Any

END = struct.Struct("<4s4H2LH")  # signature, disks, entries here, entries, directory's size and place, comment's length
ENTRY_SIZE, OFFSET_AT, LENGTHS_AT = 46, 42, 28  # of a directory entry: its size, its offset, its three lengths
COMMENT = 65535


def find_archive(view: memoryview) -> tuple[int, bytes] | None:
    """Return the offset of the archive appended to a model, and the archive with offsets relative to its own start;
    None without one."""
    tail = bytes(view[-END.size - COMMENT :])
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) - end < END.size:
        return None
    end += len(view) - len(tail)
    _, _, _, _, n, size, directory_offset, comment = END.unpack_from(view, end)
    if end + END.size + comment != len(view) or size > end:
        return None
    shift = end - size - directory_offset  # what the places lack to count from the start of the file
    offsets = _entry_offsets(view[end - size : end], n)
    if not offsets or min(offsets) + shift < 8 or max(offsets) + shift > end - size:
        return None
    start = min(offsets) + shift
    return start, relocated(bytes(view[start:]), -min(offsets))


def _entry_offsets(directory: Any, n: int) -> list[int]:
    """Return the offsets of the entries; none if the directory is damaged."""
    offsets, position = [], 0
    for _ in range(n):
        if bytes(directory[position : position + 4]) != b"PK\x01\x02" or position + ENTRY_SIZE > len(directory):
            return []
        offsets.append(struct.unpack_from("<L", directory, position + OFFSET_AT)[0])
        position += ENTRY_SIZE + sum(struct.unpack_from("<3H", directory, position + LENGTHS_AT))
    return offsets if position == len(directory) else []


def relocated(archive: bytes, by: int) -> bytes:
    """Return the archive with all its offsets increased by `by`. Raises ValueError past 4 GB."""
    out = bytearray(archive)
    end = archive.rfind(b"PK\x05\x06")
    _, _, _, _, n, size, directory_offset, _ = END.unpack_from(archive, end)
    try:
        struct.pack_into("<L", out, end + 16, directory_offset + by)
        entry = end - size
        for offset in _entry_offsets(memoryview(archive)[end - size : end], n):
            struct.pack_into("<L", out, entry + OFFSET_AT, offset + by)
            entry += ENTRY_SIZE + sum(struct.unpack_from("<3H", archive, entry + LENGTHS_AT))
    except struct.error:
        raise ValueError("the associated files would extend beyond 4 GB") from None
    return bytes(out)
