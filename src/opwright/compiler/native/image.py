"""Images: machine code in a form that is loaded by copying it, and loading it.

Lives here: `Image`, its bytes, `load_images`, symbols of this process.  Not here: making images (linking.py), keeping
them (store.py).

An image is one block of code and constants. Two short lists say what is filled in once its address is known: words
that hold an offset into the block, and words for the addresses of C functions. Then it is made read-only and runs.
What is loaded stays for the process's life: threads may run in it until the very end.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import mmap
import os
import platform
import struct
import sys
from collections.abc import Sequence
from typing import Any

from ...core.errors import DataLossError, NotFoundError, ResourceExhaustedError
from ...core.forks import once
from ...core.named_tuples import NamedTuple

PAGE = 4096  # of the page-relative instructions of AArch64, whatever the system's is
POLL = "opwright_poll"
"""The function that long-running code calls now and then (poll.py); code finds it as it does C functions."""
_PROVIDERS = ((POLL, "poll", "poll_address"), ("PyArray_", "objects", "numpy_function"))
"""Symbols by how they begin, with the module of this package and its function that gives a symbol's address; loaded
when code first names one. Other symbols are C functions of the process."""
_COMMITTED, _READ_AND_WRITE = 0x3000, 4  # VirtualAlloc: MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE
_MAGIC = b"OWI1"
_HEADER = struct.Struct("<4sIIIIII")  # magic, align, entries, bases, imports, bytes of names, bytes of content


class Image(NamedTuple):
    """Code and constants in one block.

    entries: functions by name, and where they begin; bases: where the block's address is added to a 64-bit word;
    imports: where the address of a C function belongs, and its name; align: of the block's address
    """

    entries: dict[str, int]
    bases: tuple[int, ...]
    imports: tuple[tuple[int, str], ...]
    content: bytes | memoryview
    align: int

    def to_bytes(self) -> bytes:
        """As a file holds it."""
        names = "\0".join([*self.entries, *(name for _, name in self.imports)]).encode()
        numbers = (*self.entries.values(), *self.bases, *(at for at, _ in self.imports))
        counts = len(self.entries), len(self.bases), len(self.imports)
        header = _HEADER.pack(_MAGIC, self.align, *counts, len(names), len(self.content))
        return b"".join((header, struct.pack(f"<{len(numbers)}I", *numbers), names, self.content))

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Image:
        """What `to_bytes` gave, its content in the same memory. Raises DataLossError for anything else."""
        data = memoryview(data)
        try:
            magic, align, *counts, names_size, size = _HEADER.unpack_from(data)
            numbers = struct.unpack_from(f"<{sum(counts)}I", data, _HEADER.size)
            start = _HEADER.size + 4 * sum(counts)
            names = str(data[start : start + names_size], "utf-8").split("\0") if names_size else []
        except (struct.error, UnicodeDecodeError) as error:
            raise DataLossError(what="a damaged image", found=repr(error)) from None
        content = data[start + names_size :]
        first, second = counts[0], counts[0] + counts[1]
        entries, bases, imports = numbers[:first], numbers[first:second], numbers[second:]
        whole = (
            magic == _MAGIC
            and align in (64, PAGE)
            and len(content) == size
            and len(names) == first + counts[2]
            and all(at < size for at in entries)
            and all(at + 8 <= size for at in (*bases, *imports))
        )
        if not whole:
            raise DataLossError(what="a damaged image", found=f"{len(data)} bytes")
        return cls(dict(zip(names, entries)), bases, tuple(zip(imports, names[first:])), content, align)


def merged(images: dict[str, Image]) -> Image:
    """One image of several, whose only entries are known by new names."""
    entries: dict[str, int] = {}
    bases: list[int] = []
    imports: list[tuple[int, str]] = []
    content = bytearray()
    for name, image in images.items():
        content += bytes(-len(content) % image.align)
        start = len(content)
        content += image.content
        (entry,) = image.entries.values()
        entries[name] = start + entry
        bases += [start + at for at in image.bases]
        imports += [(start + at, symbol) for at, symbol in image.imports]
        for at in image.bases:
            (offset,) = struct.unpack_from("<Q", content, start + at)
            struct.pack_into("<Q", content, start + at, start + offset)
    align = max((image.align for image in images.values()), default=64)
    return Image(entries, tuple(bases), tuple(imports), bytes(content), align)


@functools.cache
def runs_images() -> bool:
    """Whether this process can run images: LLVM makes ELF for it, of a processor that linking.py knows."""
    return sys.platform == "linux" and sys.maxsize > 1 << 32 and platform.machine() in ("x86_64", "aarch64")


@once
def library() -> Any:
    """The C functions of this process."""
    return ctypes.CDLL(None if os.name == "posix" else "ucrtbase", use_errno=True)


@once
def system_library() -> Any:
    """The functions of the operating system: on Windows a library of its own, else the C functions."""
    return ctypes.CDLL("kernel32") if os.name == "nt" else library()  # with 64 bits there is one way to call


@once
def address_of(symbol: str) -> int | None:
    """The address of a C function in this process, of the system's or of Python's; None where there is none of that
    name."""
    for functions in (library(), ctypes.pythonapi, system_library()):
        with contextlib.suppress(AttributeError):
            return ctypes.cast(getattr(functions, symbol), ctypes.c_void_p).value
    return None


def memory(size: int) -> int:
    """The address of `size` zeros of this process, from a page's start on, that are never given back.

    raises ResourceExhaustedError
    """
    if os.name == "nt":
        call = system_library().VirtualAlloc
        call.restype, call.argtypes = ctypes.c_size_t, [ctypes.c_size_t] * 2 + [ctypes.c_uint32] * 2
        address: int = call(0, size, _COMMITTED, _READ_AND_WRITE)
        if not address:
            raise ResourceExhaustedError(what="no memory", found=f"{size} bytes")
        return address
    call = library().mmap
    call.restype, call.argtypes = ctypes.c_size_t, [ctypes.c_size_t] * 2 + [ctypes.c_int] * 3 + [ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = call(0, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if address == ctypes.c_size_t(-1).value:
        raise ResourceExhaustedError(what="no memory", found=f"{size} bytes: {os.strerror(ctypes.get_errno())}")
    return address


def load_images(images: Sequence[Image]) -> list[dict[str, int]]:
    """Put images into this process, side by side: the addresses of their entries.

    raises NotFoundError for a C function that is not there, ResourceExhaustedError, OSError where code may not be run
    """
    starts, size = [], 0
    for image in images:
        starts.append(size := -(-size // image.align) * image.align)
        size += len(image.content)
    if not size:
        return [{} for _ in images]
    address = memory(size)
    content = memoryview((ctypes.c_char * size).from_address(address)).cast("B")
    for start, image in zip(starts, images):
        content[start : start + len(image.content)] = image.content
        for at in image.bases:
            (offset,) = struct.unpack_from("<Q", content, start + at)
            struct.pack_into("<Q", content, start + at, address + start + offset)
        for at, symbol in image.imports:
            struct.pack_into("<Q", content, start + at, _imported(symbol))
    # The pages were never executable: where instructions have a cache of their own, the system tends to it here.
    if library().mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "this process may not run code that it wrote")
    return [{name: address + start + at for name, at in image.entries.items()} for start, image in zip(starts, images)]


def _imported(symbol: str) -> int:
    for prefix, module, function in _PROVIDERS:
        if symbol.startswith(prefix):
            address: int = getattr(importlib.import_module(f".{module}", __package__), function)(symbol)
            return address
    found = address_of(symbol)
    if found is None:
        raise NotFoundError(what="compiled code calls a C function that this process lacks", found=symbol)
    return found
