"""Operators in C and C++ from their sources: compiled and loaded in one call.

    lite.build_custom_ops(["atan.c"], {"Atan": "AtanOpRegistrationExternal"})

Lives here: `build_custom_ops`.  Not here: building a library (building.py), loading one (loading.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from ..registration import Registration
from .building import build_library
from .loading import load_custom_ops


def build_custom_ops(
    sources: Sequence[str | os.PathLike[str]] | str | os.PathLike[str],
    ops: Mapping[str, str] | Iterable[str] | str | None = None,
    *,
    include_dirs: Sequence[str | os.PathLike[str]] | str | os.PathLike[str] = (),
    defines: Mapping[str, str | int | None] | None = None,
    flags: Sequence[str] | str = (),
    link_flags: Sequence[str] | str = (),
) -> dict[str, Registration]:
    """Compile operators in C and C++, and load them: what `load_custom_ops` gives.

    sources: files that become one library, or one. ops: as `load_custom_ops` takes them: functions that give
    registrations, by the operators' names; None for every function called as such functions are. include_dirs: folders
    of headers, which are searched before `include_dir()`: a folder with the official headers takes the place of those
    there. defines: macros; None for one without a value. flags: for the compiler, after
    `-O2`; link_flags: for the linker, such as `-lm`.
    A library is kept, and built again when a source, a header that one includes, a flag or the compiler is another.
    raises InvalidArgumentError with the compiler's lines, NotFoundError for a file, UnavailableError without a compiler
    """
    library = build_library(sources, include_dirs=include_dirs, defines=defines, flags=flags, link_flags=link_flags)
    return load_custom_ops(library, ops)
