"""WebAssembly modules: the object file that LLVM writes, linked to a module that runs.

Lives here: `link`. Not here: object files (modules.py), the code around a module (web_files.py).

An object file is a module whose memory and stack pointer are imports, and whose code has addresses to be relocated.
There is a single object, with no function to be resolved elsewhere, so that indices of functions, types and globals
stay as they are. Its data follows the stack at the start of the memory: a stack that overflows traps. Behind the data,
from the global `__heap_base` on, memory belongs to the caller.

Sources: the WebAssembly core specification 2.0, section 5 (binary format); the tool conventions of WebAssembly for
linking ("linking" and "reloc." sections).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..core.errors import InternalError, UnimplementedError

PAGE = 1 << 16
STACK = PAGE
"""Bytes of the stack, as of other linkers."""
_ALIGNMENT = 64
_CUSTOM, _TYPE, _IMPORT, _FUNCTION, _MEMORY, _GLOBAL, _EXPORT, _CODE, _DATA, _DATA_COUNT = (
    0,
    1,
    2,
    3,
    5,
    6,
    7,
    10,
    11,
    12,
)
_FUNCTION_KIND, _TABLE_KIND, _MEMORY_KIND, _GLOBAL_KIND = range(4)
_I32, _CONST_I32, _END = 0x7F, 0x41, 0x0B
_SYMBOLS = 8  # subsection of "linking"
_DATA_SYMBOL = 1
_UNDEFINED, _EXPLICIT_NAME = 0x10, 0x40
_UNCHANGED = {0: "FUNCTION_INDEX_LEB", 6: "TYPE_INDEX_LEB", 7: "GLOBAL_INDEX_LEB"}
_MEMORY_LEB, _MEMORY_SLEB, _MEMORY_I32 = 3, 4, 5
_WITH_ADDEND = {_MEMORY_LEB, _MEMORY_SLEB, _MEMORY_I32, 8, 9}


class _ModuleSymbol(NamedTuple):
    """A symbol. place: index of a function or global; address of data, before relocation."""

    name: str
    kind: int
    place: int
    is_defined: bool


class _ModuleReader:
    """Bytes of a module, read in order. Raises IndexError at the end."""

    def __init__(self, content: bytes, start: int = 0, end: int | None = None) -> None:
        self.content, self.position = content, start
        self.end = len(content) if end is None else end

    def byte(self) -> int:
        if self.position >= self.end:
            raise IndexError(self.position)
        self.position += 1
        return self.content[self.position - 1]

    def number(self, signed: bool = False) -> int:
        """Read an integer in LEB128."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value

    def bytes(self, count: int) -> bytes:
        if self.position + count > self.end:
            raise IndexError(self.position + count)
        self.position += count
        return self.content[self.position - count : self.position]

    def name(self) -> str:
        return self.bytes(self.number()).decode()


def link(code: bytes, exports: Sequence[str]) -> bytes:
    """Return the module of an object file.

    exports: functions that it exports, besides its `memory` and the global `__heap_base`. raises UnimplementedError for
    calls of functions that are not in the object, by name
    """
    try:
        return _ModuleLinker(code).module(exports)
    except (IndexError, UnicodeDecodeError) as error:
        raise InternalError(op="aot.build", what="LLVM's object file is not whole", found=repr(error)) from error


class _ModuleLinker:
    """An object file: its sections by number, its relocations by section, its symbols."""

    def __init__(self, code: bytes) -> None:
        if code[:8] != b"\0asm\1\0\0\0":
            raise InternalError(op="aot.build", what="no object file of WebAssembly", found=code[:8])
        self.sections: list[tuple[int, bytes]] = []
        relocations: dict[int, bytes] = {}
        linking = b""
        reader = _ModuleReader(code, 8)
        while reader.position < reader.end:
            number, content = reader.byte(), reader.bytes(reader.number())
            if number == _CUSTOM:
                custom = _ModuleReader(content)
                name = custom.name()
                rest = content[custom.position :]
                if name.startswith("reloc."):
                    inner = _ModuleReader(rest)
                    section = inner.number()
                    relocations[section] = rest[inner.position :]
                elif name == "linking":
                    linking = rest
            self.sections.append((number, content))
        self.contents = dict(self.sections)
        self.segments = list(self._segments())
        self.symbols = list(self._symbols(linking))
        self.relocations = {self.sections[index][0]: rows for index, rows in relocations.items()}

    def _segments(self) -> Iterator[tuple[int, bytes]]:
        """Yield addresses and contents of the data."""
        reader = _ModuleReader(self.contents.get(_DATA, b"\0"))
        for _ in range(reader.number()):
            flags, op = reader.number(), reader.byte()
            if flags or op != _CONST_I32:
                raise InternalError(op="aot.build", what="data without a constant address", found=(flags, op))
            address = reader.number(signed=True)
            reader.byte()
            yield address, reader.bytes(reader.number())

    def _symbols(self, linking: bytes) -> Iterator[_ModuleSymbol]:
        imports = list(self._imports())
        functions = [name for kind, name in imports if kind == _FUNCTION_KIND]
        if functions:
            raise UnimplementedError(
                op="aot.build",
                what="a kernel calls functions of the C library, which a module does not have",
                found=", ".join(functions),
                do="float32 instead of float64",
            )
        if any(kind == _TABLE_KIND for kind, _ in imports):
            raise UnimplementedError(op="aot.build", what="a kernel calls functions by address")
        reader = _ModuleReader(linking)
        version = reader.number()
        if version != 2:
            raise InternalError(op="aot.build", what="another version of symbols", found=version, wanted=2)
        while reader.position < reader.end:
            subsection, size = reader.byte(), reader.number()
            if subsection == _SYMBOLS:
                yield from self._rows(_ModuleReader(linking, reader.position, reader.position + size))
            reader.position += size

    def _rows(self, reader: _ModuleReader) -> Iterator[_ModuleSymbol]:
        for _ in range(reader.number()):
            kind, flags = reader.byte(), reader.number()
            defined = not flags & _UNDEFINED
            if kind == _DATA_SYMBOL:
                name, place = reader.name(), 0
                if defined:
                    segment, offset = reader.number(), reader.number()
                    reader.number()
                    place = self.segments[segment][0] + offset
            else:  # functions, globals; sections have no name
                place = reader.number()
                name = reader.name() if kind != 3 and (defined or flags & _EXPLICIT_NAME) else ""
            yield _ModuleSymbol(name, kind, place, defined)

    def _imports(self) -> Iterator[tuple[int, str]]:
        """Yield kind and name of what the object imports."""
        reader = _ModuleReader(self.contents.get(_IMPORT, b"\0"))
        for _ in range(reader.number()):
            reader.name()
            name, kind = reader.name(), reader.byte()
            if kind == _FUNCTION_KIND:
                reader.number()
            elif kind == _GLOBAL_KIND:
                reader.bytes(2)
            else:
                if kind == _TABLE_KIND:
                    reader.byte()
                if reader.number() & 1:  # limits with a maximum
                    reader.number()
                reader.number()
            yield kind, name

    def _relocated(self, section: int) -> bytes:
        """Return a section with addresses of the memory."""
        content = bytearray(self.contents[section])
        reader = _ModuleReader(self.relocations.get(section, b"\0"))
        for _ in range(reader.number()):
            kind, offset, index = reader.byte(), reader.number(), reader.number()
            addend = reader.number(signed=True) if kind in _WITH_ADDEND else 0
            if kind in _UNCHANGED:
                continue
            symbol = self.symbols[index]
            if kind not in (_MEMORY_LEB, _MEMORY_SLEB, _MEMORY_I32) or not symbol.is_defined:
                raise InternalError(op="aot.build", what="an unknown relocation", found=f"{kind} to {symbol.name!r}")
            value = STACK + symbol.place + addend
            form = value.to_bytes(4, "little") if kind == _MEMORY_I32 else _padded(value)
            content[offset : offset + len(form)] = form
        return bytes(content)

    def module(self, exports: Sequence[str]) -> bytes:
        """Lay out the memory and return the module."""
        end = max((address + len(content) for address, content in self.segments), default=0) + STACK
        heap = -(-end // _ALIGNMENT) * _ALIGNMENT
        values = [STACK] if any(kind == _GLOBAL_KIND for kind, _ in self._imports()) else []
        places = {s.name: s.place for s in self.symbols if s.kind == _FUNCTION_KIND and s.is_defined}
        rows = [_name("memory") + bytes([_MEMORY_KIND, 0])]
        rows += [_name(name) + bytes([_FUNCTION_KIND]) + _leb(places[name]) for name in exports]
        rows.append(_name("__heap_base") + bytes([_GLOBAL_KIND]) + _leb(len(values)))
        pointers = [bytes([_I32, 1]) + _constant(value) for value in values]
        data = self._data()
        sections = {
            _TYPE: self.contents[_TYPE],
            _FUNCTION: self.contents[_FUNCTION],
            _MEMORY: _vector([b"\0" + _leb(-(-heap // PAGE))]),
            _GLOBAL: _vector([*pointers, bytes([_I32, 0]) + _constant(heap)]),
            _EXPORT: _vector(rows),
            **({_DATA_COUNT: self.contents[_DATA_COUNT]} if _DATA_COUNT in self.contents else {}),
            _CODE: self._relocated(_CODE),
            **({_DATA: data} if self.segments else {}),
        }
        return b"\0asm\1\0\0\0" + b"".join(bytes([n]) + _leb(len(c)) + c for n, c in sections.items())

    def _data(self) -> bytes:
        """Return the data section: relocated, then moved behind the stack."""
        if not self.segments:
            return b""
        self.contents[_DATA] = self._relocated(_DATA)
        return _vector(
            b"\0" + _constant(STACK + address) + _leb(len(content)) + content for address, content in self._segments()
        )


def _leb(value: int) -> bytes:
    """Return an unsigned integer in LEB128."""
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _padded(value: int) -> bytes:
    """Return an address in the five bytes of a relocation, signed and unsigned alike: it is less than 2^31."""
    if not 0 <= value < 1 << 31:
        raise UnimplementedError(op="aot.build", what="the weights exceed the memory of a module", found=value)
    return bytes([*(value >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21)), value >> 28])


def _constant(value: int) -> bytes:
    """Return the expression of an i32, which is signed."""
    parts = bytearray()
    while value >= 0x40:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([_CONST_I32, *parts, value, _END])


def _name(text: str) -> bytes:
    return _leb(len(text.encode())) + text.encode()


def _vector(parts: Iterable[bytes]) -> bytes:
    rows = list(parts)
    return _leb(len(rows)) + b"".join(rows)
