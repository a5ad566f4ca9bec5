"""Custom operators and patterns that are named on the command line: `--custom FILE.py`, `MODULE[:NAME]`, a library in
C; `--pattern FILE.py`, `MODULE[:NAME]`.

Lives here: `custom_operators`, `operators_for` a model, `patterns_of`.
Not here: running a file (catalogue.py), loading a library (lite/native), operators that installed packages add and
nobody has to name (ops/installed.py).
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import lite
from ..core.errors import OpError
from ..lite.resolver import default_resolver, with_customs
from ..ops import registry
from ..ops.definition import Operator
from .catalogue import names_in, operators_in
from .report import BadFile

LIBRARY = re.compile(r"(?P<path>.+?\.(so(\.[0-9]+)*|dylib|dll))(:(?P<names>.*))?")
MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ")  # of libraries on Linux, macOS and Windows


def custom_operators(texts: Sequence[str]) -> list[Any]:
    """What an interpreter takes as custom_ops, of each text: the operators of a Python file; the one (or all) that
    `module:Name` (or `module`) means; the registrations of a library, or of `lib.so:Name=Entry,...` those named.

    raises BadFile for what is no use
    """
    return [op for text in texts for op in _of(text)]


def operators_for(model: Any, texts: Sequence[str]) -> list[Any]:
    """What an interpreter needs as custom_ops for a model: those that are named, and of the catalogue what the file has
    as a custom operator and nothing else serves. Raises BadFile as custom_operators."""
    given = custom_operators(texts)
    resolver = with_customs(default_resolver(), given)
    wanted = {(code.custom_code, int(code.version)) for code in model.operator_codes if code.custom_code}
    missing = sorted({name for name, version in wanted if resolver.find_custom(name, version) is None})
    missing = [name for name in missing if not resolver.custom_versions(name)]
    return [*given, *(found for name in missing if (found := in_catalogue(name)) is not None)]


def in_catalogue(name: str) -> Any:
    """The catalogue's operator of that name, if it can be run by itself, else None."""
    found = registry.catalogue().get(name)
    return found if found is not None and (found.compute_rule is not None or found.kernels) else None


def _of(text: str) -> list[Any]:
    library = LIBRARY.fullmatch(text)
    if library or _is_library(text):
        return [_loaded(text, library["path"] if library else text, (library and library["names"]) or "")]
    if text.endswith(".py") or os.path.sep in text:
        return operators_in(text)
    module, name, names = _module(text, "--custom")
    given = [names.get(name)] if name else list(names.values())
    chosen = [op for op in given if isinstance(op, Operator)]
    if not chosen and name and isinstance(given[0], Mapping | lite.OpResolver):
        return given
    if not chosen:
        raise BadFile(f"--custom {text}: {module} has no operator {name or 'made by @ow.operator'}")
    return list(dict.fromkeys(chosen))


def patterns_of(texts: Sequence[str]) -> list[Any]:
    """The patterns that each text means: all of a Python file or of a `module`, or the one of `module:name`.

    raises BadFile for what is no use
    """
    found: list[Any] = []
    for text in texts:
        if text.endswith(".py") or os.path.sep in text:
            name, names = "", names_in(text)
        else:
            _, name, names = _module(text, "--pattern")
        given = [names.get(name)] if name else names.values()
        chosen = [item for item in given if isinstance(item, lite.Pattern)]
        if not chosen:
            raise BadFile(f"--pattern {text}: no pattern {name or 'made by @lite.pattern'}")
        found += chosen
    return list(dict.fromkeys(found))


def _module(text: str, option: str) -> tuple[str, str, dict[str, Any]]:
    """Of `module[:name]` both, and what the module has by name. Raises BadFile where it cannot be imported."""
    module, _, name = text.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as python -m has it
    try:
        return module, name, dict(vars(importlib.import_module(module)))
    except (Exception, SystemExit) as error:  # it is the user's program: whatever it does
        raise BadFile(f"{option} {text}: {type(error).__name__}: {error}") from error


def _is_library(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(4).startswith(MAGIC)
    except OSError:
        return False


def _loaded(text: str, path: str, names: str) -> Any:
    """The registrations of a library by name. names: `Name=Entry,...`, or all that it registers."""
    pairs = [part.partition("=") for part in names.split(",") if part]
    if any(not name or not entry for name, _, entry in pairs):
        raise BadFile(f"--custom {text}: wanted {path}:Name=EntryPoint,...")
    entries = {name: entry for name, _, entry in pairs} or None
    try:
        return lite.load_custom_ops(path, entries)
    except (OSError, OpError) as error:
        raise BadFile(f"--custom {text}: {error}") from error
