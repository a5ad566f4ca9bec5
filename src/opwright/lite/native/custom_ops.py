"""Custom operators in C and C++ as registrations, from a shared library or from sources.

Lives here: `load_custom_ops`, `build_custom_ops`; calls of entry points, detection of a registration's layout, names of
operators.
Not here: opening libraries (library.py), building them (toolchain.py), names of functions (library.py), running
operators (registration.py).

A function without parameters returns a registration: a TfLiteRegistration by value or by address, or a TfLiteOperator
(TfLiteRegistrationExternal in older headers). Only the first 64 bytes of a record by address are common to all versions
of the headers; the field after them is read if it belongs to the same variable, and counts only if it is the address of
an operator that this process has created. Alternatively a function takes a MutableOpResolver and adds operators to it:
the provider records these (provider/entries.c).
"""

from __future__ import annotations

import contextlib
import ctypes as C
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.errors import InvalidArgumentError, NotFoundError
from ..registration import Registration
from .callbacks import provider
from .library import (
    OperatorLibrary,
    demangled,
    display_name,
    find_entries,
    find_entry,
    may_register,
    open_library,
    operator_name,
)
from .records import COMMON_BYTES, METHODS, CAdded, COperator, CRegistration
from .registration import NativeRegistration
from .toolchain import build_library

_BUFFER = 256
_THROWN = 2  # result of ow_call_by_value for a function that threw
_BY_ADDRESS = C.sizeof(C.c_void_p)


def load_custom_ops(
    path: str | os.PathLike[str], ops: Mapping[str, str] | Iterable[str] | str | None = None
) -> dict[str, Registration]:
    """Return the operators of a C or C++ library written against the TensorFlow Lite C API, as registrations by name.

    ops: a mapping from operators' names to the functions that return their registrations, in C++ with or without
    namespaces; or only the functions; or None for every function named ...Registration, ...RegistrationExternal or
    Register_... without parameters, and in C++ every function that takes a MutableOpResolver*. Without a name, an
    operator of the opaque interface has the name that it declares, one of the classic interface the name of its
    function: Register_SIN returns "SIN". A function that takes a MutableOpResolver* returns all operators that it adds.

    >>> ops = lite.load_custom_ops("libatan.so", {"Atan": "AtanOpRegistrationExternal"})
    >>> lite.Interpreter(model_path, custom_ops=ops)

    The library stays loaded and runs in this process: load only libraries that you trust.

    raises NotFoundError for a missing file or function, or a library without registrations; InvalidArgumentError for a
    file that is not a library for this machine, and for a function that returns no registration
    """
    library = open_library_with_provider(path)
    functions = [] if library.file is None else library.file.functions()
    registrations: dict[str, Registration] = {}
    for name, entry in _requested(ops, library, functions):
        symbol = entry if library.file is None else find_entry(entry, functions, library.path)
        for registration in _registrations(library, symbol, name):
            existing = registrations.get(registration.name)
            if existing is None:
                registrations[registration.name] = registration
            elif not _same(existing, registration):
                raise InvalidArgumentError(
                    what=f"{library.path}: two functions give an operator {registration.name!r}",
                    found=f"{existing.entry}, {registration.entry}",  # type: ignore[attr-defined]
                    do='name them: load_custom_ops(path, {"Name": "Function", ...})',
                )
    return registrations


def open_library_with_provider(path: str | os.PathLike[str]) -> OperatorLibrary:
    """Open a library after loading the functions that operators call."""
    if not isinstance(os.fspath(path), str):
        raise TypeError(f"load_custom_ops takes the path of a library, found {path!r}"[:200])
    return open_library(path, provider)


def _requested(ops: Any, library: OperatorLibrary, functions: list[str]) -> list[tuple[str | None, str]]:
    """Return names, None for an operator that declares its own, and functions."""
    if isinstance(ops, str):
        ops = [ops]
    pairs: list[tuple[Any, Any]]
    if isinstance(ops, Mapping):
        pairs = list(ops.items())
    elif ops is None and library.file is None:
        raise InvalidArgumentError(
            what=f"{library.path}: names of functions are read from ELF files alone",
            do='name them: load_custom_ops(path, {"Name": "Function"})',
        )
    elif ops is None:
        pairs = [(None, f) for f in find_entries(functions)]
        if not pairs:
            names = ", ".join(sorted({display_name(f) for f in functions})[:8]) or "no functions"
            raise NotFoundError(
                what=f"{library.path} registers nothing",
                found=names,
                wanted="an exported function called ...Registration, ...RegistrationExternal or Register_...",
                do='load_custom_ops(path, {"Name": "Function"})',
            )
    elif isinstance(ops, Iterable):
        pairs = [(None, f) for f in ops]
    else:
        pairs = [(None, ops)]
    for name, entry in pairs:
        if not isinstance(entry, str) or not entry or not (name is None or (isinstance(name, str) and name)):
            raise TypeError(
                "load_custom_ops takes a mapping from operators' names to names of functions, or a list of "
                f"these; found {name!r}: {entry!r}"[:300]
            )
    return pairs


class _Record(NamedTuple):
    """A registration as returned or added by a library.

    operator: the address of the operator in it, if any. name, version: as passed to the resolver that it was added to.
    """

    record: CRegistration
    operator: int | None
    dependencies: Any
    name: str | None = None
    version: int | None = None


def _registrations(library: OperatorLibrary, symbol: str, name: str | None) -> list[NativeRegistration]:
    """Return the registrations from a function: one, with this name if not None; or all that it adds to a resolver, or
    the one of this name among them."""
    where = f"{library.path}: {display_name(symbol)}"
    records = _records_of(library, symbol, where)
    if name is not None and len(records) > 1:
        named = [r for r in records if r.name == name]
        if not named:
            raise NotFoundError(
                what=f"{where} adds no operator {name!r}",
                found=", ".join(str(r.name) for r in records),
                wanted="the name of one of these",
                do=f"load_custom_ops(path, [{display_name(symbol)!r}]) for all of them",
            )
        records = named
    return [_registration(library, symbol, name, record, where) for record in records]


def _registration(
    library: OperatorLibrary, symbol: str, name: str | None, entry: _Record, where: str
) -> NativeRegistration:
    native = provider()
    _check_functions(entry.record, where)
    own, version = None, max(entry.record.version, 1)  # of a classic record: 0 if unspecified
    if entry.operator is not None:
        operator = COperator.from_address(entry.operator)
        own = operator.custom_name.decode(errors="replace") if operator.custom_name else None
        version = operator.version
        if version < 1:
            raise InvalidArgumentError(
                what=f"{where} returns an operator with an invalid version", found=version, wanted="1 or more"
            )
        _check_functions(operator, where, "_with_data")
    if not native.ow_has_invoke(C.addressof(entry.record)):
        raise InvalidArgumentError(
            what=f"{where} returns a record without invoke",
            found=_methods_of(entry),
            wanted="at least an invoke function",
        )
    called = name or entry.name or own or operator_name(symbol)
    return NativeRegistration(
        native,
        entry.record,
        called,
        entry.version or version,
        library.path,
        display_name(symbol),
        (library, entry.dependencies),
    )


def _records_of(library: OperatorLibrary, symbol: str, where: str) -> list[_Record]:
    """Call an entry point. Raises InvalidArgumentError if it returns no registration."""
    native = provider()
    mangled = demangled(symbol)
    if mangled is not None and not may_register(mangled[1]):
        raise InvalidArgumentError(
            what=f"{where} has parameters, so it returns no registration",
            wanted="a function without parameters, or of a MutableOpResolver*",
        )
    try:
        function = library.address(symbol)
    except AttributeError:
        raise NotFoundError(what=f"{library.path} has no function {symbol}") from None
    buffer, result = C.create_string_buffer(_BUFFER), C.c_void_p()
    native.ow_added_begin()
    try:
        by_value = native.ow_call_by_value(function, C.addressof(buffer), C.addressof(result))
        added = _added(where)
    finally:
        native.ow_added_end()
    if by_value == _THROWN:
        raise InvalidArgumentError(
            what=f"{where} threw a C++ exception", found=buffer.value.decode(errors="replace"), wanted="a registration"
        )
    if added:
        return added
    if mangled is not None and mangled[1] != "v":
        raise InvalidArgumentError(
            what=f"{where} adds no operators to its resolver", wanted="resolver->AddCustom(name, registration)"
        )
    return [_returned(library, symbol, where, buffer if by_value else None, result.value)]


def _added(where: str) -> list[_Record]:
    """Return the operators that a function added to a resolver; of duplicates the last, as in the official run time.

    raises InvalidArgumentError for builtin operators, whose kernels belong to the interpreter
    """
    first = C.POINTER(CAdded)()
    records: dict[str, _Record] = {}
    for one in first[: provider().ow_added(C.byref(first))]:
        if one.name is None:
            raise InvalidArgumentError(
                what=f"{where} adds a kernel of a builtin operator",
                found=one.builtin_code,
                wanted="custom operators alone",
                do="load_custom_ops(path, functions) with the others' functions",
            )
        name, version = one.name.decode(errors="replace"), one.version
        if not name or version < 1:
            raise InvalidArgumentError(
                what=f"{where} adds an operator without a name, or of no version",
                found=f"{name!r}, version {version}",
                wanted="a name, and 1 or more",
            )
        record = CRegistration.from_buffer_copy(one.registration)
        more = (
            _bytes_at(one.source + COMMON_BYTES, _BY_ADDRESS) if not any(getattr(record, m) for m in METHODS) else None
        )
        operator = int.from_bytes(more or b"", sys.byteorder)
        if operator and provider().ow_is_operator(operator):
            record.registration_external = operator
        records[name] = _Record(record, record.registration_external, None, name, version)
    return list(records.values())


def _returned(library: OperatorLibrary, symbol: str, where: str, buffer: Any, address: int | None) -> _Record:
    """Return the registration that a function returned: by value in `buffer`, or by address."""
    native = provider()
    if buffer is not None:
        record = CRegistration.from_buffer_copy(buffer.raw)
        if any(buffer.raw[C.sizeof(CRegistration) :]):
            raise InvalidArgumentError(
                what=f"{where} returns a record larger than any TfLiteRegistration",
                found=f"{len(buffer.raw.rstrip(bytes(1)))} bytes",
                wanted=f"{COMMON_BYTES} to {C.sizeof(CRegistration)}",
            )
        if record.registration_external and not native.ow_is_operator(record.registration_external):
            raise _wrong(where, "registration_external", record.registration_external)
        return _Record(record, record.registration_external, buffer)
    if address is None:
        raise InvalidArgumentError(what=f"{where} returned null", wanted="a registration")
    if native.ow_is_operator(address):
        record = CRegistration()
        native.ow_operator_registration(address, C.addressof(record))
        return _Record(record, address, None)
    return _by_address(library, symbol, where, address)


def _by_address(library: OperatorLibrary, symbol: str, where: str, address: int) -> _Record:
    """Return the record at an address: the fields common to all headers, and its operator if that is valid."""
    native = provider()
    content = _bytes_at(address, COMMON_BYTES)
    if content is None or address % _BY_ADDRESS:
        raise InvalidArgumentError(
            what=f"{where} returned an invalid address of a record",
            found=hex(address),
            wanted="a TfLiteRegistration*, or a TfLiteOperator* of TfLiteOperatorCreate",
            do="does it return a pointer, and take no arguments?",
        )
    record = CRegistration.from_buffer_copy(content.ljust(C.sizeof(CRegistration), b"\0"))
    base = library.base(symbol)
    extent = library.file.extent(address - base) if library.file is not None and base is not None else None
    bare = not any(getattr(record, m) for m in METHODS)
    if (extent or 0) >= COMMON_BYTES + _BY_ADDRESS or (extent is None and bare):
        more = _bytes_at(address + COMMON_BYTES, _BY_ADDRESS)
        operator = int.from_bytes(more or b"", sys.byteorder)
        if operator and native.ow_is_operator(operator):
            record.registration_external = operator
    return _Record(record, record.registration_external, None)


def _bytes_at(address: int, size: int) -> bytes | None:
    """Return bytes of this process's memory; None for an invalid address."""
    try:
        with open("/proc/self/mem", "rb", 0) as memory:
            memory.seek(address)
            content = memory.read(size)
            return content if len(content) == size else None
    except (FileNotFoundError, PermissionError):
        return C.string_at(address, size)
    except (OSError, ValueError, OverflowError):
        return None


def _check_functions(record: Any, where: str, ending: str = "") -> None:
    """Raise InvalidArgumentError if a method is an address without code, which means an unknown struct layout."""
    code = _code_ranges()
    for method in METHODS:
        for field in dict.fromkeys((method, method + ending)):
            address = getattr(record, field)
            if address and code and not any(start <= address < end for start, end in code):
                raise _wrong(where, field, address)


def _wrong(where: str, field: str, address: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        what=f"{where} returns a record of another layout: its {field} is not a valid address",
        found=hex(address),
        wanted="a TfLiteRegistration: init, free, prepare, invoke, profiling_string, builtin_code, custom_name, "
        "version, registration_external, ...",
        do="compile it against the headers in lite.include_dir()",
    )


def _code_ranges() -> list[tuple[int, int]]:
    """Return the address ranges of executable memory; empty if the system does not report them."""
    ranges = []
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for line in maps:
            addresses, rights = line.split(maxsplit=2)[:2]
            if "x" in rights:
                start, end = addresses.split("-")
                ranges.append((int(start, 16), int(end, 16)))
    return ranges


def _methods_of(record: _Record) -> str:
    named = [m for m in METHODS if getattr(record.record, m)]
    if record.operator is not None:
        operator = COperator.from_address(record.operator)
        named += [
            f"{m} of its operator" for m in METHODS if getattr(operator, m) or getattr(operator, f"{m}_with_data")
        ]
    return ", ".join(named) or "nothing that is set"


def _same(a: Any, b: Any) -> bool:
    """Return whether two registrations belong to the same operator."""
    if a.record.registration_external or b.record.registration_external:
        return bool(a.record.registration_external == b.record.registration_external)
    return all(getattr(a.record, m) == getattr(b.record, m) for m in METHODS)


def build_custom_ops(
    sources: Sequence[str | os.PathLike[str]] | str | os.PathLike[str],
    ops: Mapping[str, str] | Iterable[str] | str | None = None,
    *,
    include_dirs: Sequence[str | os.PathLike[str]] | str | os.PathLike[str] = (),
    defines: Mapping[str, str | int | None] | None = None,
    flags: Sequence[str] | str = (),
    link_flags: Sequence[str] | str = (),
) -> dict[str, Registration]:
    """Compile operators in C and C++, and load them; return registrations as `load_custom_ops` does.

    sources: the files of one library, or one file. ops: see `load_custom_ops`; None for every function that looks like
    an entry point. include_dirs: folders of headers, searched before `include_dir()`: a folder with the official
    headers replaces it. defines: macros; None for one without a value. flags: for the compiler, after `-O2`.
    link_flags: for the linker, such as `-lm`. A library is cached, and built again when a source, an included header, a
    flag or the compiler changes. raises InvalidArgumentError with the compiler's messages, NotFoundError for a file,
    UnavailableError without a compiler
    """
    library = build_library(sources, include_dirs=include_dirs, defines=defines, flags=flags, link_flags=link_flags)
    return load_custom_ops(library, ops)
