"""Images: position-independent machine code that is loaded by copying.

Lives here: `Image`, its serialization, `load_images`, symbols of this process.
Not here: making images (linker.py), the cache of images (store.py).

An image is one block of code and constants. Two short lists name the words that depend on its address: words
with an offset into the block, and words for the addresses of C functions. Then it is made read-only and executable.
Loaded images stay for the life of the process: threads may run in them until the end.
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

from ...core.errors import DataLossError, NotFoundError, ResourceExhaustedError
from ...core.forks import once
from ...core.named_tuples import NamedTuple

PAGE = 4096  # of the page-relative instructions of AArch64, independent of the system
POLL = "opwright_poll"
"""The function that long-running code calls periodically (workers.py); code imports it like a C function."""
_PROVIDERS = ((POLL, "workers", "poll_address"), ("PyArray_", "builtins", "numpy_function"))
"""Prefixes of symbols, with the module of this package and its function that returns their addresses; imported on first
use. Other symbols are C functions of the process."""
_COMMITTED, _READ_AND_WRITE = 0x3000, 4  # VirtualAlloc: MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE
_MAGIC = b"OWI1"
_HEADER = struct.Struct("<4sIIIIII")  # magic, align, entries, bases, imports, bytes of names, bytes of content


class Image(NamedTuple):
    """Code and constants in one block.

    entries: offsets of functions by name; bases: offsets of 64-bit words to which the address of the block is added;
    imports: offsets and names of addresses of C functions; align: of the address of the block; variables: bytes at its
    end, from a page on, that its code writes; an image with these is loaded alone and in no file
    """

    entries: dict[str, int]
    bases: tuple[int, ...]
    imports: tuple[tuple[int, str], ...]
    content: bytes | memoryview
    align: int
    variables: int = 0

    def to_bytes(self) -> bytes:
        """Serialize the image."""
        names = "\0".join([*self.entries, *(name for _, name in self.imports)]).encode()
        numbers = (*self.entries.values(), *self.bases, *(offset for offset, _ in self.imports))
        counts = len(self.entries), len(self.bases), len(self.imports)
        header = _HEADER.pack(_MAGIC, self.align, *counts, len(names), len(self.content))
        return b"".join((header, struct.pack(f"<{len(numbers)}I", *numbers), names, self.content))

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Image:
        """Parse the result of `to_bytes`; the content shares its memory. Raises DataLossError for other data."""
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
        valid = (
            magic == _MAGIC
            and align in (64, PAGE)
            and len(content) == size
            and len(names) == first + counts[2]
            and all(offset < size for offset in entries)
            and all(offset + 8 <= size for offset in (*bases, *imports))
        )
        if not valid:
            raise DataLossError(what="a damaged image", found=f"{len(data)} bytes")
        return cls(dict(zip(names, entries)), bases, tuple(zip(imports, names[first:])), content, align)


def merged(images: dict[str, Image]) -> Image:
    """Merge images with one entry each; entries are named by the keys."""
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
        bases += [start + base for base in image.bases]
        imports += [(start + offset, symbol) for offset, symbol in image.imports]
        for base in image.bases:
            (offset,) = struct.unpack_from("<Q", content, start + base)
            struct.pack_into("<Q", content, start + base, start + offset)
    align = max((image.align for image in images.values()), default=64)
    return Image(entries, tuple(bases), tuple(imports), bytes(content), align)


@functools.cache
def runs_images() -> bool:
    """Return whether this process can run images: LLVM generates ELF, for a processor that linker.py supports."""
    return sys.platform == "linux" and sys.maxsize > 1 << 32 and platform.machine() in ("x86_64", "aarch64")


@once
def library() -> ctypes.CDLL:
    """Return the C library of this process."""
    return ctypes.CDLL(None if os.name == "posix" else "ucrtbase", use_errno=True)


@once
def system_library() -> ctypes.CDLL:
    """Return the library of the operating system: kernel32 on Windows, otherwise the C library."""
    return ctypes.CDLL("kernel32") if os.name == "nt" else library()  # 64-bit Windows has one calling convention


@once
def address_of(symbol: str) -> int | None:
    """Return the address of a function of the C library, Python or the system; None if there is none."""
    for functions in (library(), ctypes.pythonapi, system_library()):
        with contextlib.suppress(AttributeError):
            return ctypes.cast(getattr(functions, symbol), ctypes.c_void_p).value
    return None


_LARGE = 1 << 21
"""Bytes from which memory may be huge pages, of this size."""


def memory(size: int) -> int:
    """Allocate `size` zeros, aligned to a page, that are never freed; return their address.

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
    is_large = size >= _LARGE and hasattr(mmap, "MADV_HUGEPAGE")
    address = call(0, size + 2 * _LARGE * is_large, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if address == ctypes.c_size_t(-1).value:
        raise ResourceExhaustedError(what="no memory", found=f"{size} bytes: {os.strerror(ctypes.get_errno())}")
    if is_large:  # weights of a library, which each run reads: NumPy, too, has large arrays in huge pages
        address = -(-address // _LARGE) * _LARGE
        library().madvise(ctypes.c_void_p(address), ctypes.c_size_t(-(-size // _LARGE) * _LARGE), mmap.MADV_HUGEPAGE)
    return address


def load_images(images: Sequence[Image]) -> list[dict[str, int]]:
    """Load images into this process; return the addresses of their entries.

    raises NotFoundError for a missing C function, ResourceExhaustedError, OSError if the system forbids to run code
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
        for base in image.bases:
            (offset,) = struct.unpack_from("<Q", content, start + base)
            struct.pack_into("<Q", content, start + base, address + start + offset)
        for position, symbol in image.imports:
            struct.pack_into("<Q", content, start + position, _imported(symbol))
    # The pages were never executable: the system synchronizes a separate instruction cache here.
    size -= images[-1].variables
    if library().mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "this process may not run code that it wrote")
    return [
        {name: address + start + entry for name, entry in image.entries.items()} for start, image in zip(starts, images)
    ]


def _imported(symbol: str) -> int:
    for prefix, module, function in _PROVIDERS:
        if symbol.startswith(prefix):
            address: int = getattr(importlib.import_module(f".{module}", __package__), function)(symbol)
            return address
    c_function = address_of(symbol)
    if c_function is None:
        raise NotFoundError(what="compiled code calls a C function that this process lacks", found=symbol)
    return c_function
