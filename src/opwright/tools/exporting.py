"""`opwright op export`: an operator as C source.

Lives here: finding the operator, values of attributes from words, what is printed.
Not here: the C (lite/export), operators that are named on the command line (customs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ..core import syntax
from ..lite.export.exporting import export_c
from ..ops import registry
from ..ops.definition import Operator
from .customs import custom_operators
from .report import BadFile, notes, out, print_json


def export_operator(name: str, folder: str, customs: Sequence[str], api: str, attrs: Sequence[str], as_json: bool
                    ) -> None:  # fmt: skip
    """Write the files and name them. Raises BadFile for an operator or file that is no use, and OpError as export_c."""
    operator = _named(name, customs)
    try:
        files = export_c(operator, folder, api=api, attrs=_values(attrs))
    except OSError as error:
        raise BadFile(f"{error.filename or folder} cannot be written: {error.strerror or error}") from error
    if as_json:
        print_json({"operator": operator.name, "version": operator.version, "api": api, "files": list(map(str, files))})
        return
    for file in files:
        out().print(str(file))
    notes().print(f"{operator.name} version {operator.version} as C; README.md says how to build and register it")


def _named(name: str, customs: Sequence[str]) -> Any:
    given = [op for op in custom_operators(customs) if isinstance(op, Operator)]
    found = [op for op in given if op.name == name]
    if found:
        return found[-1]
    if customs and name not in registry.users():
        there = ", ".join(op.name for op in given) or "none"
        raise BadFile(f"no operator {name!r} in {', '.join(customs)}; there are {there}")
    try:
        return registry.get(name)
    except KeyError as error:
        raise BadFile(str(error.args[0])) from None


def _values(texts: Sequence[str]) -> dict[str, Any]:
    """`name=value` as Python writes values; a word that is no Python value is text. Several of a name are a list."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"wanted NAME=VALUE, found {text!r}", param_hint="--attr")
        try:
            found.setdefault(name, []).append(syntax.literal(value))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found.setdefault(name, []).append(value)
    return dict(found)
