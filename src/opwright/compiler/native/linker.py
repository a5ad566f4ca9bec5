"""The linker: from an ELF object file of LLVM to an image, which runs at any address.

Lives here: reading ELF, section layout, relocations of x86-64 and AArch64.  Not here: loading images (image.py).

Sources: the System V gABI, chapters 4 and 5 (sections, symbols); the psABI of x86-64, table 4.9; ELF for the Arm 64-bit
architecture (AAELF64), section 5.7. `S` is the address of a symbol, `A` the addend, `P` the address of the relocation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...core.errors import UnimplementedError
from .image import PAGE, Image

_HEADER, _SECTION, _SYMBOL, _RELA = (struct.Struct(f) for f in ("<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<QQq"))
_PROGBITS, _SYMTAB, _RELA_TYPE, _NOBITS, _REL_TYPE = 1, 2, 4, 8, 9
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1
_GLOBAL, _FUNCTION = 1, 2
_X86_64, _AARCH64 = 62, 183
_ZEROS_LIMIT = 1 << 24
# Sections without use here: unwinding, notes, options of linkers.
_DISCARDED = (".eh_frame", ".note", ".comment", ".llvm")


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int

    @property
    def is_loaded(self) -> bool:
        return bool(self.flags & _ALLOC) and self.kind in (_PROGBITS, _NOBITS) and not self.name.startswith(_DISCARDED)


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    section: int
    value: int
    bound: int
    kind: int


def _refused(why: str, found: object = None) -> UnimplementedError:
    return UnimplementedError(op="linking", what=why, found=found)


def link(code: bytes) -> Image:
    """Link an object file; the entries of the image are its global functions.

    raises UnimplementedError for damaged files, other formats and processors, variables, and unknown relocations
    """
    try:
        return _Linker(code).image()
    except (struct.error, IndexError, ValueError) as error:  # ValueError: an unterminated or undecodable text
        raise _refused("the object file is not whole", repr(error)) from None


class _Linker:
    """An object file, and the image under construction."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        ident, kind, self.machine, *_, table, _, _, _, _, width, count, names = _HEADER.unpack_from(code)
        if ident[:6] != b"\x7fELF\x02\x01" or kind != 1 or width != _SECTION.size or self.machine not in _STUB:
            raise _refused("an object file of another kind", f"ELF type {kind}, machine {self.machine}")
        rows = [_SECTION.unpack_from(code, table + i * width) for i in range(count)]
        strings = rows[names][4]
        self.sections = [
            _Section(self._text(strings + name), kind, flags, offset, size, link, info, align)
            for name, kind, flags, _, offset, size, link, info, align, _ in rows
        ]
        self.symbols = self._symbols()
        self.starts: dict[int, int] = {}  # of sections
        self.stubs: dict[_Symbol, int] = {}
        self.content = bytearray()
        self.bases: list[int] = []

    def _text(self, offset: int) -> str:
        return self.code[offset : self.code.index(b"\0", offset)].decode()

    def _bytes(self, section: _Section) -> bytes:
        if section.kind == _NOBITS:
            if section.size > _ZEROS_LIMIT:
                raise IndexError(section.name)
            return bytes(section.size)
        if section.offset + section.size > len(self.code):
            raise IndexError(section.name)
        return self.code[section.offset : section.offset + section.size]

    def _symbols(self) -> list[_Symbol]:
        symbols = []
        for section in self.sections:
            if section.kind == _SYMTAB:
                strings = self.sections[section.link].offset
                for name, info, _, index, value, _ in _SYMBOL.iter_unpack(self._bytes(section)):
                    symbols.append(_Symbol(self._text(strings + name), index, value, info >> 4, info & 15))
        return symbols

    def image(self) -> Image:
        """Lay out the sections, apply the relocations and return the image."""
        for index in self._order():
            section = self.sections[index]
            if section.flags & _WRITE and not section.name.startswith(".data.rel.ro"):
                if section.size:
                    raise _refused("code with variables of its own", section.name)
                continue
            if section.align > PAGE:
                raise _refused("a section aligned wider than a page", section.align)
            self._pad(max(section.align, 1))
            self.starts[index] = len(self.content)
            self.content += self._bytes(section)
        relocations = list(self._relocations())
        self._pad(16)
        for _, _, symbol, _ in relocations:  # a stub for each external function
            if symbol.section == _UNDEFINED and symbol not in self.stubs:
                self._add_stub(symbol)
        for offset, kind, symbol, addend in relocations:
            if (self.machine, kind) not in _RELOCATIONS:
                raise _refused("an unknown relocation", f"{kind} to {symbol.name}")
            _RELOCATIONS[self.machine, kind](self, offset, symbol, addend)
        entries = {
            s.name: self._address(s)
            for s in self.symbols
            if s.bound == _GLOBAL and s.kind == _FUNCTION and s.section != _UNDEFINED
        }
        imports = tuple((stub + 8, s.name) for s, stub in self.stubs.items() if s.section == _UNDEFINED)
        # AArch64 code addresses data by page and offset in it: images keep their offset in a page.
        align = PAGE if self.machine == _AARCH64 else 64
        return Image(entries, tuple(self.bases), imports, bytes(self.content), align)

    def _add_stub(self, symbol: _Symbol) -> None:
        self.stubs[symbol] = len(self.content)
        self.content += _STUB[self.machine] + bytes(8)

    def _order(self) -> Sequence[int]:
        """Return the loaded sections: code first, then sections that only relocations write."""
        loaded = [i for i, s in enumerate(self.sections) if s.is_loaded]
        return sorted(loaded, key=lambda i: (not self.sections[i].flags & _EXECUTE, self.sections[i].flags & _WRITE))

    def _pad(self, align: int) -> None:
        self.content += bytes(-len(self.content) % align)

    def _relocations(self) -> Iterator[tuple[int, int, _Symbol, int]]:
        for section in self.sections:
            if section.kind == _REL_TYPE:
                raise _refused("relocations without addends", section.name)
            if section.kind == _RELA_TYPE and section.info in self.starts:
                start, size = self.starts[section.info], self.sections[section.info].size
                for offset, info, addend in _RELA.iter_unpack(self._bytes(section)):
                    if offset >= size:
                        raise IndexError(offset)
                    yield start + offset, info & 0xFFFFFFFF, self.symbols[info >> 32], addend

    def _address(self, symbol: _Symbol) -> int:
        if symbol.section == _UNDEFINED:
            return self.stubs[symbol]
        if symbol.section not in self.starts:
            raise _refused("a symbol outside of code and constants", symbol.name)
        if symbol.value > self.sections[symbol.section].size:
            raise IndexError(symbol.name)
        return self.starts[symbol.section] + symbol.value

    def slot(self, symbol: _Symbol) -> int:
        """Return the offset of the address of a symbol, as in a global offset table."""
        if symbol not in self.stubs:
            self._add_stub(symbol)
            _absolute(self, self.stubs[symbol] + 8, symbol, 0)
        return self.stubs[symbol] + 8

    def write(self, offset: int, form: str, value: int) -> None:
        """Write a number of that form. Raises struct.error if it does not fit."""
        struct.pack_into(form, self.content, offset, value)

    def insert(self, offset: int, value: int, low: int, width: int) -> None:
        """Set `width` bits of an instruction, from bit `low` on, to those of `value`."""
        mask = ((1 << width) - 1) << low
        (word,) = struct.unpack_from("<I", self.content, offset)
        self.write(offset, "<I", word & ~mask | value << low & mask)


_Rule = Callable[[_Linker, int, _Symbol, int], None]


def _relative(form: str) -> _Rule:
    """Return the rule of S + A - P."""
    return lambda k, p, s, a: k.write(p, form, k._address(s) + a - p)


def _absolute(k: _Linker, offset: int, symbol: _Symbol, addend: int) -> None:
    """Write S + A, completed when the image is loaded."""
    k.write(offset, "<Q", k._address(symbol) + addend)
    k.bases.append(offset)


def _through_table(k: _Linker, offset: int, symbol: _Symbol, addend: int) -> None:
    """Write G + A - P, G being the offset of the address of the symbol."""
    k.write(offset, "<i", k.slot(symbol) + addend - offset)


def _branch(k: _Linker, offset: int, symbol: _Symbol, addend: int) -> None:
    """Write the target of B and BL: 26 bits, in words."""
    distance = k._address(symbol) + addend - offset
    if not -(1 << 27) <= distance < 1 << 27:
        raise _refused("a branch too far", symbol.name)
    k.insert(offset, distance >> 2, 0, 26)


def _page(address: Callable[[_Linker, _Symbol], int]) -> _Rule:
    """Return the rule of ADRP: a distance in pages, its two low bits at bit 29, the others at bit 5."""

    def rule(k: _Linker, offset: int, symbol: _Symbol, addend: int) -> None:
        pages = (address(k, symbol) + addend) // PAGE - offset // PAGE
        k.insert(offset, pages & 3, 29, 2)
        k.insert(offset, pages >> 2, 5, 19)

    return rule


def _in_page(shift: int, address: Callable[[_Linker, _Symbol], int] = _Linker._address) -> _Rule:
    """Return the rule of ADD, LDR and STR: the offset in a page, in units of the operand."""
    return lambda k, p, s, a: k.insert(p, (address(k, s) + a) % PAGE >> shift, 10, 12)


# `jmp *2(%rip)`, and `ldr x16, .+8; br x16`: to the address in the eight bytes that follow.
_STUB = {_X86_64: bytes.fromhex("ff2502000000cccc"), _AARCH64: struct.pack("<II", 0x58000050, 0xD61F0200)}
_RELOCATIONS: dict[tuple[int, int], _Rule] = {
    (_X86_64, 1): _absolute,  # R_X86_64_64
    (_X86_64, 2): _relative("<i"),  # PC32
    (_X86_64, 4): _relative("<i"),  # PLT32
    (_X86_64, 9): _through_table,  # GOTPCREL
    (_X86_64, 41): _through_table,  # GOTPCRELX
    (_X86_64, 42): _through_table,  # REX_GOTPCRELX
    (_X86_64, 24): _relative("<q"),  # PC64
    (_AARCH64, 257): _absolute,  # R_AARCH64_ABS64
    (_AARCH64, 260): _relative("<q"),  # PREL64
    (_AARCH64, 261): _relative("<i"),  # PREL32
    (_AARCH64, 275): _page(_Linker._address),  # ADR_PREL_PG_HI21
    (_AARCH64, 277): _in_page(0),  # ADD_ABS_LO12_NC
    (_AARCH64, 278): _in_page(0),  # LDST8_ABS_LO12_NC
    (_AARCH64, 284): _in_page(1),  # LDST16
    (_AARCH64, 285): _in_page(2),  # LDST32
    (_AARCH64, 286): _in_page(3),  # LDST64
    (_AARCH64, 299): _in_page(4),  # LDST128
    (_AARCH64, 282): _branch,  # JUMP26
    (_AARCH64, 283): _branch,  # CALL26
    (_AARCH64, 311): _page(_Linker.slot),  # ADR_GOT_PAGE
    (_AARCH64, 312): _in_page(3, _Linker.slot),  # LD64_GOT_LO12_NC
}
