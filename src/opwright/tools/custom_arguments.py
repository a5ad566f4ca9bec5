"""Custom operators and patterns named on the command line: `--custom FILE.py`, `MODULE[:NAME]`, a library in C;
`--pattern FILE.py`, `MODULE[:NAME]`.

Lives here: `custom_operators`, `operators_for` a model, `patterns_of`. Not here: running a file (catalogue.py), loading
a library (lite/native), operators of installed packages, which need not be named (ops/plugins.py).
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import lite
from ..core.errors import OpError
from ..lite.resolver import default_resolver, with_customs
from ..ops import registry
from ..ops.definition import Operator
from .catalogue import names_in, operators_in
from .report import BadFile

if TYPE_CHECKING:
    pass

LIBRARY = re.compile(r"(?P<path>.+?\.(so(\.[0-9]+)*|dylib|dll))(:(?P<names>.*))?")
MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ")  # shared libraries on Linux, macOS and Windows


def custom_operators(texts: Sequence[str]) -> list[Any]:
    """Return custom_ops for an interpreter, from each text: the operators of a Python file; the one (or all) that
    `module:Name` (or `module`) names; the registrations of a library, or the ones named by `lib.so:Name=Entry,...`.

    raises BadFile for an invalid argument
    """
    return [op for text in texts for op in _operators_named(text)]


def operators_for(model: Any, texts: Sequence[str]) -> list[Any]:
    """Return the custom_ops that a model needs: those named, and the catalogue's for custom operators that are
    otherwise unresolved. Raises BadFile as custom_operators.
    """
    named = custom_operators(texts)
    resolver = with_customs(default_resolver(), named)
    used = {(code.custom_code, int(code.version)) for code in model.operator_codes if code.custom_code}
    missing = sorted({name for name, version in used if resolver.find_custom(name, version) is None})
    missing = [name for name in missing if not resolver.custom_versions(name)]
    return [*named, *(found for name in missing if (found := in_catalogue(name)) is not None)]


def in_catalogue(name: str) -> Any:
    """Return the catalogue's operator of that name, if it can run by itself, else None."""
    operator = registry.catalogue().get(name)
    return operator if operator is not None and (operator.compute_rule is not None or operator.kernels) else None


def _operators_named(text: str) -> list[Any]:
    library = LIBRARY.fullmatch(text)
    if library or _is_library(text):
        return [_load_library(text, library["path"] if library else text, (library and library["names"]) or "")]
    if text.endswith(".py") or os.path.sep in text:
        return operators_in(text)
    module, name, names = _module(text, "--custom")
    candidates = [names.get(name)] if name else list(names.values())
    operators = [op for op in candidates if isinstance(op, Operator)]
    if not operators and name and isinstance(candidates[0], Mapping | lite.OpResolver):
        return candidates
    if not operators:
        raise BadFile(f"--custom {text}: {module} has no operator {name or 'made by @ow.operator'}")
    return list(dict.fromkeys(operators))


def patterns_of(texts: Sequence[str]) -> list[Any]:
    """Return the patterns that each text names: all of a Python file or of a `module`, or the one of `module:name`.

    raises BadFile for an invalid argument
    """
    patterns: list[Any] = []
    for text in texts:
        if text.endswith(".py") or os.path.sep in text:
            name, names = "", names_in(text)
        else:
            _, name, names = _module(text, "--pattern")
        candidates = [names.get(name)] if name else names.values()
        selected = [item for item in candidates if isinstance(item, lite.Pattern)]
        if not selected:
            raise BadFile(f"--pattern {text}: no pattern {name or 'made by @lite.pattern'}")
        patterns += selected
    return list(dict.fromkeys(patterns))


def _module(text: str, option: str) -> tuple[str, str, dict[str, Any]]:
    """Return the module and name of `module[:name]`, and the module's contents. Raises BadFile if the import fails."""
    module, _, name = text.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as python -m does
    try:
        return module, name, dict(vars(importlib.import_module(module)))
    except (Exception, SystemExit) as error:  # the user's program may raise any error
        raise BadFile(f"{option} {text}: {type(error).__name__}: {error}") from error


def _is_library(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(4).startswith(MAGIC)
    except OSError:
        return False


def _load_library(text: str, path: str, names: str) -> object:
    """Return the registrations of a library by name. names: `Name=Entry,...`, or empty for all."""
    pairs = [part.partition("=") for part in names.split(",") if part]
    if any(not name or not entry for name, _, entry in pairs):
        raise BadFile(f"--custom {text}: wanted {path}:Name=EntryPoint,...")
    entries = {name: entry for name, _, entry in pairs} or None
    try:
        return lite.load_custom_ops(path, entries)
    except (OSError, OpError) as error:
        raise BadFile(f"--custom {text}: {error}") from error
