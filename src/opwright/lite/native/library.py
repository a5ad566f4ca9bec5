"""Shared libraries of operators: loading, and diagnosis of failures.

Lives here: `open_library`, `OperatorLibrary`.
Not here: reading its file (elf.py), its registrations (custom_ops.py), the functions it imports (provider/).

A library stays loaded until the process ends, because operators' functions may be called until then. The system's
loader caches libraries by path; therefore a library that was rebuilt in the meantime is loaded from a copy.
"""

from __future__ import annotations

import ctypes
import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import InvalidArgumentError, NotFoundError
from .elf import LibraryFile, read_library
from .entry_points import display_name

_MOST_NAMES = 8
_MOST_BYTES = 1 << 31


class OperatorLibrary(NamedTuple):
    """A loaded library. path: as passed. file: its contents, None if only the system's loader can read it. code: the
    handle."""

    path: str
    file: LibraryFile | None
    code: Any

    def address(self, symbol: str) -> int:
        """Return the address of a function. Raises AttributeError if there is none."""
        address = ctypes.cast(getattr(self.code, symbol), ctypes.c_void_p).value
        assert address is not None
        return address

    def base(self, symbol: str) -> int | None:
        """Return the load address, computed from one of its symbols."""
        if self.file is None or symbol not in self.file.defined:
            return None
        return self.address(symbol) - self.file.defined[symbol].address


_loaded: dict[str, tuple[tuple[int, ...], Any]] = {}  # by real path: state of the file, and its handle


def open_library(path: str | os.PathLike[str], provide: Callable[[], Any]) -> OperatorLibrary:
    """Load a shared library.

    provide: loads the functions that operators call; called once the file is known to be a library for this machine,
    because it may compile them. raises NotFoundError for a missing file or unresolved functions, InvalidArgumentError
    for a file that is not a library for this machine, DataLossError for a damaged one
    """
    name = os.fspath(path)
    content = _read(name)
    file = read_library(name, content)
    provide()
    real = os.path.realpath(name)
    stat = os.stat(real)
    state = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    loaded = _loaded.get(real)
    if loaded is not None and loaded[0] == state:
        return OperatorLibrary(name, file, loaded[1])
    try:
        code = ctypes.CDLL(real) if loaded is None else _load_copy(real)
    except OSError as error:
        raise _refused(name, file, str(error)) from error
    _loaded[real] = state, code
    return OperatorLibrary(name, file, code)


def _read(path: str) -> bytes:
    file = Path(path)
    try:
        if not path or file.is_dir():
            raise InvalidArgumentError(
                what=f"{path} is a folder" if path else "the path of the library is empty",
                wanted="the file of a shared library",
            )
        if file.exists() and not file.is_file():  # reading a pipe would block, a device has no end
            raise InvalidArgumentError(
                what=f"{path} is no file", found="a pipe, a socket or a device", wanted="the file of a shared library"
            )
        if file.stat().st_size > _MOST_BYTES:
            raise InvalidArgumentError(what=f"{path} is too large for a library", found=file.stat().st_size)
        return file.read_bytes()
    except FileNotFoundError:
        folder = file.parent
        there = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
        near = difflib.get_close_matches(file.name, there, 3, 0.5) or [n for n in there if ".so" in n][:3]
        raise NotFoundError(
            what=f"there is no library {path}",
            found=f"in {folder}: {', '.join(near)}" if near else f"no folder {folder}" if not folder.is_dir() else None,
            wanted="the path of a shared library of operators",
            do=f"{str(folder / near[0])!r}" if near else None,
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a zero in the path
        raise InvalidArgumentError(what=f"{path!r} cannot be read", found=str(error)) from error


def _load_copy(path: str) -> object:
    """Load a library under another name, because the loader would return the one it has under this name."""
    with tempfile.TemporaryDirectory(prefix="opwright-ops-") as folder:
        copy = shutil.copy(path, Path(folder) / os.path.basename(path))
        return ctypes.CDLL(str(copy))


def _refused(path: str, file: LibraryFile | None, message: str) -> Exception:
    """Return the error for a library that the system's loader refuses."""
    missing = [] if file is None else missing_symbols(file)
    if missing:
        names = [display_name(n) for n in missing]
        more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        helpers = [n for n in names if n.startswith("tflite::")]
        lite = [n for n in names if n.startswith("TfLite")]
        do = "link it with the library that defines them: cc -shared ... -lNAME"
        if helpers:
            do = "compile the helpers' source into the library, or use the functions of lite.include_dir()"
        elif lite:
            do = "compile it against the headers in lite.include_dir(), which declare what is provided"
        return NotFoundError(
            what=f"{path} requires undefined functions",
            found=", ".join(names[:_MOST_NAMES]) + more,
            wanted="functions of the TensorFlow Lite C API for operators, and of the libraries it names: "
            f"{', '.join(file.needed) if file and file.needed else 'none'}",
            do=do,
        )
    absent = re.match(r"(\S+): cannot open shared object file", message)
    if absent is not None and os.path.basename(absent[1]) != os.path.basename(path):
        return NotFoundError(
            what=f"{path} needs the library {absent[1]}, which is not there",
            found=message,
            do="install it, or name its folder in LD_LIBRARY_PATH before Python starts",
        )
    return InvalidArgumentError(
        what=f"{path} cannot be loaded", found=message, wanted="a shared library for this machine"
    )


def missing_symbols(file: LibraryFile) -> list[str]:
    """Return the symbols that neither this process nor the needed libraries define."""
    libraries = [ctypes.CDLL(None)]
    for name in file.needed:
        try:
            libraries.append(ctypes.CDLL(name))
        except OSError:
            continue
    return [name for name in file.undefined if not any(hasattr(library, name) for library in libraries)]
