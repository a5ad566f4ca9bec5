"""Bits: every row of the operators' tables in each way of running.

Lives here: the table of sources of rows.  Not here: the sources (sources/).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .outcomes import Entry
from .seams import remember_code
from .sources import catalogue, converter, drawn, files, fixed, functions, networks

SOURCES = {
    "catalogue": catalogue,  # tests/ops
    "functions": functions,  # tests/functions
    "fixed": fixed,  # tests/lite/ops, fixed cases
    "drawn": drawn,  # tests/lite/ops, drawn models
    "converter": converter,  # tests/lite/convert
    "networks": networks,  # the files of the benchmarks
}


def prepare(tree: Path, folder: Path) -> None:
    """Make this process ready to run units."""
    remember_code(folder / "code")
    catalogue.prepare()


def units() -> list[str]:
    """The keys of all tables, the longest work first."""
    return [f"{name}/{key}" for name, source in reversed(SOURCES.items()) for key in source.keys()]  # noqa: SIM118  a function


def run(unit: str) -> Iterator[Entry]:
    """The entries of all rows of a key."""
    name, _, key = unit.partition("/")
    source = SOURCES[name]
    if hasattr(source, "entries"):
        yield from source.entries(key, unit)
        return
    for number, model in enumerate(source.models(key)):
        yield from files.entries(f"{unit}/{number}", model)
