"""Files behind the model: the zip archive that task libraries append to a .tflite file for labels and vocabularies.

Lives here: finding the archive, moving it to another place in a file.
Not here: its entries (`zipfile` reads them), the model (reader.py).

An archive ends with a record that says where its directory is, which says where its entries are. Writers that append
count these places from the start of the file. Kept here they count from the archive's own start. Source: APPNOTE.TXT.
"""

from __future__ import annotations

import struct
from typing import Any

END = struct.Struct("<4s4H2LH")  # signature, disks, entries here, entries, directory's size and place, comment's length
ENTRY_SIZE, OFFSET_AT, LENGTHS_AT = 46, 42, 28  # of a directory entry: its size, its offset, its three lengths
COMMENT = 65535


def find_archive(view: memoryview) -> tuple[int, bytes] | None:
    """Where the archive behind a model starts, and the archive with places from its own start; None without one."""
    tail = bytes(view[-END.size - COMMENT :])
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) - end < END.size:
        return None
    end += len(view) - len(tail)
    _, _, _, _, n, size, at, comment = END.unpack_from(view, end)
    if end + END.size + comment != len(view) or size > end:
        return None
    shift = end - size - at  # what the places lack to count from the start of the file
    places = _entry_offsets(view[end - size : end], n)
    if not places or min(places) + shift < 8 or max(places) + shift > end - size:
        return None
    start = min(places) + shift
    return start, relocated(bytes(view[start:]), -min(places))


def _entry_offsets(directory: Any, n: int) -> list[int]:
    """The places of the entries; none where the directory is damaged."""
    places, at = [], 0
    for _ in range(n):
        if bytes(directory[at : at + 4]) != b"PK\x01\x02" or at + ENTRY_SIZE > len(directory):
            return []
        places.append(struct.unpack_from("<L", directory, at + OFFSET_AT)[0])
        at += ENTRY_SIZE + sum(struct.unpack_from("<3H", directory, at + LENGTHS_AT))
    return places if at == len(directory) else []


def relocated(archive: bytes, by: int) -> bytes:
    """The archive with all places in it so much greater. Raises ValueError past 4 GB."""
    out = bytearray(archive)
    end = archive.rfind(b"PK\x05\x06")
    _, _, _, _, n, size, at, _ = END.unpack_from(archive, end)
    try:
        struct.pack_into("<L", out, end + 16, at + by)
        entry = end - size
        for place in _entry_offsets(memoryview(archive)[end - size : end], n):
            struct.pack_into("<L", out, entry + OFFSET_AT, place + by)
            entry += ENTRY_SIZE + sum(struct.unpack_from("<3H", archive, entry + LENGTHS_AT))
    except struct.error:
        raise ValueError("the files behind the model would lie beyond 4 GB") from None
    return bytes(out)
