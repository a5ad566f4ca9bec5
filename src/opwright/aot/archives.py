"""Static libraries: the archive format of `ar`, as linkers on Linux and microcontrollers read it.

Lives here: `archive_of`. Not here: object files (modules.py).

Source: the System V Release 4 archive format: a global header, and for each member a header of 60 characters; the
first member, `/`, is the index of symbols: their number, the offsets of their members, big-endian, and their names.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence


def archive_of(members: Sequence[tuple[str, bytes, Sequence[str]]]) -> bytes:
    """Return an archive. members: name of at most 15 characters, content, global symbols. Without dates or owners, so
    that equal contents yield equal bytes."""
    symbols = [(i, s) for i, (_, _, names) in enumerate(members) for s in names]
    names = b"".join(s.encode() + b"\0" for _, s in symbols)
    index_size = 4 + 4 * len(symbols) + len(names)
    offset = 8 + 60 + index_size + index_size % 2
    offsets = []
    for _, content, _ in members:
        offsets.append(offset)
        offset += 60 + len(content) + len(content) % 2
    index = struct.pack(f">{1 + len(symbols)}I", len(symbols), *(offsets[i] for i, _ in symbols)) + names
    parts = [b"!<arch>\n", _member("/", index)]
    parts += [_member(f"{name}/", content) for name, content, _ in members]
    return b"".join(parts)


def _member(name: str, content: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(content):<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)
