"""Sizes of the functions in an object file.

Lives here: `function_sizes`. Not here: linking (compiler/native/linker.py).

Source: the System V gABI, chapters 4 (sections) and 5 (symbols). Symbols of Mach-O, COFF and WebAssembly have no sizes.
"""

from __future__ import annotations

import struct

_SYMTAB, _FUNC = 2, 2


def function_sizes(code: bytes) -> dict[str, int]:
    """Return the bytes of each function of an ELF file, local ones included, by name; none for other formats."""
    if not code.startswith(b"\x7fELF"):
        return {}
    wide, order = code[4] == 2, "<" if code[5] == 1 else ">"
    sections = struct.unpack_from(f"{order}Q" if wide else f"{order}I", code, 40 if wide else 32)[0]
    size, count = struct.unpack_from(f"{order}HH", code, 58 if wide else 46)
    header = f"{order}IIQQQQIIQQ" if wide else f"{order}10I"  # name, type, flags, address, offset, size, link, ...
    headers = [struct.unpack_from(header, code, sections + i * size) for i in range(count)]
    sizes: dict[str, int] = {}
    for _, kind, _, _, offset, length, link, *_ in headers:
        if kind != _SYMTAB:
            continue
        names = headers[link][4]
        entry = 24 if wide else 16
        for at in range(offset, offset + length, entry):
            if wide:
                name, info, _, _, _, nbytes = struct.unpack_from(f"{order}IBBHQQ", code, at)
            else:
                name, _, nbytes, info, _, _ = struct.unpack_from(f"{order}IIIBBH", code, at)
            if info & 15 == _FUNC:
                text = code[names + name : code.index(b"\0", names + name)]
                sizes[text.decode("utf-8", "replace")] = nbytes
    return sizes
