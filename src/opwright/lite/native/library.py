"""Shared libraries of operators: loading, diagnosis of failures, and the names of their entry points.

Lives here: `open_library`, `OperatorLibrary`; `demangled` (namespace and name of a mangled function), `find_entry`,
`find_entries`, `operator_name`.
Not here: reading a library's file (elf.py), its registrations (custom_ops.py), the functions it imports (provider/).

A library stays loaded until the process ends, because operators' functions may be called until then. The system's
loader caches libraries by path; therefore a library that was rebuilt in the meantime is loaded from a copy.

Source of the mangled names: the Itanium C++ ABI, section 5.1: `_Z`, then a name as its length and letters, or several
between N and E; then the parameters' types, of which a single v means none.
"""

from __future__ import annotations

import ctypes
import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import InvalidArgumentError, NotFoundError
from .elf import LibraryFile, read_library

_ENDINGS = ("RegistrationExternal", "Registration", "OperatorExternal")
_BEGINNINGS = ("Register_",)
_REGISTER = re.compile(r"Register(?=[A-Z0-9])")


def demangled(symbol: str) -> tuple[str, str] | None:
    """Return the qualified name and the encoded parameters; None for symbols other than mangled functions with plain
    names (templates, operators, constructors)."""
    if not symbol.startswith("_Z"):
        return None
    remaining = symbol[2:]
    nested = remaining.startswith("N")
    remaining = remaining[1:] if nested else remaining.removeprefix("L")
    parts: list[str] = []
    while remaining[:1].isdigit() and (nested or not parts):
        digits = re.match(r"\d+", remaining)
        assert digits is not None
        size = int(digits[0]) if len(digits[0]) < 6 else len(remaining) + 1
        remaining = remaining[digits.end() :]
        if size > len(remaining):
            return None
        parts.append(remaining[:size])
        remaining = re.sub(r"^(B\d+cxx11)+", "", remaining[size:])
    if nested:
        if not remaining.startswith("E"):
            return None
        remaining = remaining[1:]
    if not parts or (remaining[:1] == "I"):
        return None
    return "::".join(parts), remaining


def may_register(letters: str) -> bool:
    """Return whether a C++ function with these encoded parameters may return registrations: it has none, or a pointer
    to a MutableOpResolver in any namespace."""
    return letters == "v" or (letters.startswith("PN") and letters.endswith("17MutableOpResolverE"))


def display_name(symbol: str) -> str:
    """Return a function's name as in source code."""
    parsed = demangled(symbol)
    return symbol if parsed is None else parsed[0]


def find_entry(name: str, functions: Iterable[str], library: str) -> str:
    """Return the symbol for a function's name: itself, or a C++ name with or without its namespaces.

    raises NotFoundError with the nearest names, InvalidArgumentError if several C++ functions match
    """
    functions = list(functions)
    if name in functions:
        return name
    spelled = name.removesuffix("()").removeprefix("::")
    candidates = {f: q for f in functions if (q := demangled(f)) is not None and may_register(q[1])}
    exact = [f for f, (qualified_name, _) in candidates.items() if qualified_name == spelled]
    loose = exact or [f for f, (qualified_name, _) in candidates.items() if qualified_name.endswith(f"::{spelled}")]
    if len(loose) == 1:
        return loose[0]
    if loose:
        raise InvalidArgumentError(
            what=f"{library}: several functions are called {name}",
            found=", ".join(sorted(candidates[f][0] for f in loose)),
            wanted="one, with its namespaces",
        )
    names = sorted({display_name(f) for f in functions})
    near = difflib.get_close_matches(spelled, names, 4, 0.6)
    near += [n for n in names if n not in near and spelled.lower() in n.lower()][:4]
    with_parameters = [
        q[0]
        for f in functions
        if (q := demangled(f)) is not None
        and not may_register(q[1])
        and q[0].split("::")[-1] == spelled.split("::")[-1]
    ]
    if with_parameters:
        raise InvalidArgumentError(
            what=f"{library}: {name} has parameters, so it returns no registration",
            found=with_parameters[0],
            wanted="a function without parameters",
        )
    likely = [display_name(f) for f in functions if looks_like_entry(f)]
    raise NotFoundError(
        what=f"{library} has no function {name}",
        found=", ".join(near or likely[:8] or names[:8]) or "no functions",
        wanted="the name of a function that returns a registration, exported by the library",
        do=f"{near[0]!r}"
        if near
        else 'static functions are not exported; in C++ write extern "C" or name the namespaces',
    )


def find_entries(functions: Iterable[str]) -> list[str]:
    """Return the functions whose names mark them as entry points; if there are none, C++ functions named Register...
    without parameters, as in some projects."""
    functions = list(functions)
    likely = [f for f in functions if looks_like_entry(f)]
    return likely or [f for f in functions if _REGISTER.match(_base_name(f)) and (demangled(f) or ("", ""))[1] == "v"]


def looks_like_entry(symbol: str) -> bool:
    """Return whether a function is an entry point by its name, or in C++ by taking a resolver."""
    parsed = demangled(symbol)
    if symbol.startswith("_Z") and (parsed is None or parsed[1] != "v"):
        return parsed is not None and may_register(parsed[1])
    name = _base_name(symbol)
    if name.startswith(("TfLite", "Ow", "ow_")):
        return False
    return any(name.endswith(e) and name != e for e in _ENDINGS) or any(
        name.startswith(b) and name != b for b in _BEGINNINGS
    )


def _base_name(symbol: str) -> str:
    """Return a function's name without its namespaces."""
    return display_name(symbol).split("::")[-1]


def operator_name(symbol: str) -> str:
    """Return an operator's name from its function: Register_SIN is SIN, atan_op::AtanOpRegistration is Atan."""
    name = _base_name(symbol)
    for beginning in _BEGINNINGS:
        name = name.removeprefix(beginning)
    name = _REGISTER.sub("", name, 1) if _REGISTER.match(name) else name
    for ending in _ENDINGS:
        if name.endswith(ending) and name != ending:
            name = name.removesuffix(ending)
            break
    shorter = name.removesuffix("Op").rstrip("_")
    return shorter or name


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
                what=f"{path} is not a file",
                found="a pipe, a socket or a device",
                wanted="the file of a shared library",
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
