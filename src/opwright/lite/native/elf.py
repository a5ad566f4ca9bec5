"""ELF reader for shared libraries: target machine, exported and imported symbols.

Lives here: `read_library`; `file_kind`, a description of files of other formats.
Not here: loading a library (library.py), object files of kernels (compiler/native/linker.py).

Source: the System V gABI, chapters 4 (header, sections, symbols) and 5 (segments, dynamic section). Only 64-bit
little-endian files are read beyond their header: others do not load here. Names and sizes in the file are untrusted:
a reference outside it is an error.
"""

from __future__ import annotations

import platform
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ...core.errors import DataLossError, InvalidArgumentError

MACHINES = {
    3: "x86 (32 bits)",
    20: "PowerPC",
    21: "PowerPC (64 bits)",
    22: "S390",
    40: "arm (32 bits)",
    62: "x86_64",
    183: "aarch64",
    243: "riscv",
    258: "loongarch64",
}
_KINDS = {1: "an object file, not linked yet", 2: "a program", 4: "a core dump"}
_SHARED = 3
_HEADER, _SECTION, _SYMBOL, _SEGMENT = (
    struct.Struct(f) for f in ("<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<IIQQQQQQ")
)
_SYMTAB, _DYNAMIC, _DYNSYM = 2, 6, 11
_LOAD, _DYNAMIC_SEGMENT = 1, 2
_OBJECT, _FUNCTION, _IFUNC = 1, 2, 10
_LOCAL, _WEAK = 0, 2
_NEEDED, _HASH, _NAMES, _SYMBOLS, _NAMES_SIZE, _GNU_HASH = 1, 4, 5, 6, 10, 0x6FFFFEF5
"""Tags of the dynamic section."""
_MOST_SYMBOLS = 1 << 22


class Symbol(NamedTuple):
    """A symbol. address: relative to the load address."""

    address: int
    size: int
    is_function: bool


class Segment(NamedTuple):
    """A loaded range of addresses, relative to the load address. offset: in the file."""

    start: int
    size: int
    offset: int


@dataclass(slots=True)
class LibraryFile:
    """Contents of a shared library's file.

    defined: exported symbols by name. undefined: symbols to import. needed: names of the libraries to import from.
    objects: all variables with a size, including private ones that the file still lists.
    """

    defined: dict[str, Symbol] = field(default_factory=dict)
    undefined: list[str] = field(default_factory=list)
    needed: list[str] = field(default_factory=list)
    objects: list[Symbol] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)

    def functions(self) -> list[str]:
        """Return the sorted names of the functions."""
        return sorted(name for name, symbol in self.defined.items() if symbol.is_function)

    def extent(self, address: int) -> int | None:
        """Return the number of bytes from an address to the end of its variable, or else of its segment; None for an
        address outside the file."""
        inside = [s.address + s.size - address for s in self.objects if s.address <= address < s.address + s.size]
        if inside:
            return min(inside)
        return next((s.start + s.size - address for s in self.segments if s.start <= address < s.start + s.size), None)


def read_library(path: str, content: bytes) -> LibraryFile | None:
    """Return the contents of a shared library for this machine; None for a library of another format that this system
    loads.

    raises InvalidArgumentError for a file that is not a library, DataLossError for a damaged one
    """
    if content[:4] != b"\x7fELF":
        if sys.platform != "linux" and file_kind(content).startswith(("a Mach-O", "a Windows")):
            return None  # for the system's own loader
        raise InvalidArgumentError(
            what=f"{path} is not a shared library",
            found=file_kind(content),
            wanted=f"a shared library for {platform.machine()} {sys.platform}",
            do="link it with: cc -shared -fPIC ... -o libops.so",
        )
    try:
        return _read(path, content)
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        raise DataLossError(
            what=f"{path} is a damaged library", found=f"{len(content)} bytes: {error}", wanted="a whole ELF file"
        ) from error


def file_kind(content: bytes) -> str:
    """Describe a file that does not start with ELF's magic bytes."""
    formats = (
        (b"\xcf\xfa\xed\xfe", "a Mach-O library, for macOS"),
        (b"\xca\xfe\xba\xbe", "a Mach-O library, for macOS"),
        (b"MZ", "a Windows DLL"),
        (b"!<arch>", "an archive of object files (a static library)"),
        (b"PK", "a zip file"),
        (b"\0asm", "a WebAssembly module"),
        (b"BC\xc0\xde", "LLVM bitcode"),
    )
    if not content:
        return "an empty file"
    if content[4:8] == b"TFL3":
        return "a .tflite model"
    for magic, what in formats:
        if content.startswith(magic):
            return what
    if content[:4096].isascii():
        return "a text file"
    return f"a file that begins with the bytes {content[:8].hex(' ')}"


def _read(path: str, content: bytes) -> LibraryFile:
    bits, order = content[4], content[5]
    kind, machine = struct.unpack_from("<HH" if order == 1 else ">HH", content, 16)
    here = platform.machine().lower()
    built_for = MACHINES.get(machine, f"machine {machine}")
    if bits != 2 or order != 1 or built_for != {"amd64": "x86_64", "arm64": "aarch64"}.get(here, here):
        kinds = f"{'32' if bits == 1 else '64'} bits, {'little' if order == 1 else 'big'}-endian"
        raise InvalidArgumentError(
            what=f"{path} is built for another machine",
            found=f"{built_for} ({kinds})",
            wanted=here,
            do=f"compile it again for {here}",
        )
    if kind != _SHARED:
        raise InvalidArgumentError(
            what=f"{path} is not a shared library",
            found=_KINDS.get(kind, f"ELF of type {kind}"),
            wanted="a shared library",
            do="link it with: cc -shared -fPIC ... -o libops.so",
        )
    header = _HEADER.unpack_from(content)
    segments_at, sections_at, _, _, segment_size, segments, section_size, sections, _ = header[5:]
    library, dynamic = LibraryFile(), b""
    for i in range(segments):
        what, _, offset, address, _, file_size, size, _ = _SEGMENT.unpack_from(content, segments_at + i * segment_size)
        if what == _LOAD:
            library.segments.append(Segment(address, size, offset))
        elif what == _DYNAMIC_SEGMENT:
            dynamic = _bytes(content, offset, file_size)
    rows = [_SECTION.unpack_from(content, sections_at + i * section_size) for i in range(sections)]
    for row in rows:
        kind, offset, size, link = row[1], row[4], row[5], row[6]
        if kind in (_DYNSYM, _SYMTAB, _DYNAMIC):
            names = _bytes(content, rows[link][4], rows[link][5])
            if kind == _DYNAMIC:
                _read_needed(_bytes(content, offset, size), names, library)
            else:
                _read_symbols(_bytes(content, offset, size), names, library, kind == _DYNSYM)
    if dynamic and not any(row[1] == _DYNSYM for row in rows):
        _read_dynamic(content, dynamic, library)
    return library


def _read_dynamic(content: bytes, dynamic: bytes, library: LibraryFile) -> None:
    """Read a file without section headers by its dynamic section, as the system's loader does."""
    usable = len(dynamic) // 16 * 16
    rows = [(tag, value) for tag, value in struct.iter_unpack("<QQ", dynamic[:usable])]
    tags = dict(rows[: next((i for i, row in enumerate(rows) if row[0] == 0), len(rows))])
    if _SYMBOLS not in tags or _NAMES not in tags:
        return
    names = _bytes(content, _offset(library, tags[_NAMES]), tags.get(_NAMES_SIZE, 0))
    _read_needed(dynamic, names, library)
    size = _count_of_symbols(content, library, tags) * _SYMBOL.size
    _read_symbols(_bytes(content, _offset(library, tags[_SYMBOLS]), size), names, library, True)


def _count_of_symbols(content: bytes, library: LibraryFile, tags: dict[int, int]) -> int:
    """Return the number of symbols from the hash tables, as the dynamic section does not contain it."""
    if _HASH in tags:
        (count,) = struct.unpack_from("<I", content, _offset(library, tags[_HASH]) + 4)
        return int(count)
    if _GNU_HASH not in tags:
        return 0
    start = _offset(library, tags[_GNU_HASH])
    buckets, first, bloom, _ = struct.unpack_from("<IIII", content, start)
    bucket_start = start + 16 + 8 * bloom
    last = max(struct.unpack_from(f"<{buckets}I", _bytes(content, bucket_start, 4 * buckets)), default=0)
    if last < first:
        return int(first)
    chains = bucket_start + 4 * buckets
    while not struct.unpack_from("<I", content, chains + 4 * (last - first))[0] & 1:  # the last of its chain is odd
        last += 1
    return int(last + 1)


def _offset(library: LibraryFile, address: int) -> int:
    """Return the file offset of an address. Raises IndexError for an address outside all segments."""
    for segment in library.segments:
        if segment.start <= address < segment.start + segment.size:
            return segment.offset + address - segment.start
    raise IndexError(f"address {address:#x} is in no segment")


def _bytes(content: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(content):
        raise IndexError(f"a section ends at {offset + size}")
    return content[offset : offset + size]


def _name(names: bytes, offset: int) -> str:
    return names[offset : names.index(b"\0", offset)].decode() if offset < len(names) else ""


def _read_needed(content: bytes, names: bytes, library: LibraryFile) -> None:
    usable = len(content) // 16 * 16
    library.needed += [
        _name(names, value) for tag, value in struct.iter_unpack("<QQ", content[:usable]) if tag == _NEEDED
    ]


def _read_symbols(content: bytes, names: bytes, library: LibraryFile, dynamic: bool) -> None:
    for name_at, address, size, kind, binding, section in _symbols(content):
        if size and kind == _OBJECT:
            library.objects.append(Symbol(address, size, False))
        if not dynamic or binding == _LOCAL or not name_at:
            continue
        name = _name(names, name_at)
        if section != 0:
            library.defined[name] = Symbol(address, size, kind in (_FUNCTION, _IFUNC))
        elif binding != _WEAK:
            library.undefined.append(name)


def _symbols(content: bytes) -> Iterator[tuple[int, int, int, int, int, int]]:
    count = len(content) // _SYMBOL.size
    if count > _MOST_SYMBOLS:
        raise IndexError(f"{count} symbols")
    for name_at, info, _, section, address, size in _SYMBOL.iter_unpack(content[: count * _SYMBOL.size]):
        yield name_at, address, size, info & 15, info >> 4, section
