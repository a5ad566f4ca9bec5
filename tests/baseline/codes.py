"""Machine code of kernels, as assembly: each family with the constants that plans ask for, for several targets.

Plans of the networks, of the fixed cases and of the catalogue's rows say which. For every other target that has a name,
the functions of one element, as tests/compiler/test_targets.py compiles them.

Lives here: which kernels, how they are named.  Not here: the seams in the compiler (seams.py), plans (loops.py).
"""

from __future__ import annotations

import contextlib
import importlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import test_targets

from opwright.compiler.target import NAMED

from . import loops
from .outcomes import Entry, digest, entry, failed
from .seams import asked, assembly_of, planning_for, remember_code, target_named, targets

SOURCES = ("networks", "fixed", "catalogue")
FUNCTIONS = "functions_of_one_element"


class Kernel(NamedTuple):
    """A kernel: its family by module and name, its constants, and these as text."""

    module: str
    family: str
    constants: dict[str, Any]
    words: str


_kernels: Path
_loaded: dict[str, list[Kernel]] = {}


def prepare(tree: Path, folder: Path) -> None:
    """Make this process ready to run units."""
    global _kernels
    _kernels = folder / "kernels"
    _kernels.mkdir(parents=True, exist_ok=True)
    loops.prepare(tree, folder)
    remember_code(folder / "code")


def units() -> list[str]:
    """Families by target. Plans everything, and leaves what was asked for to the processes that compile."""
    result = []
    for name in targets():
        kernels = _planned(name)
        (_kernels / name).write_bytes(pickle.dumps(kernels))
        result += sorted({f"{name}/{k.family}" for k in kernels})
    return [*result, *(f"{name}/{FUNCTIONS}" for name in sorted(NAMED))]


def _planned(name: str) -> list[Kernel]:
    """The kernels that plans for a target ask for."""
    for unit in loops.units():
        target, source, key = unit.split("/", 2)
        if target == name and source in SOURCES:
            with planning_for(name):
                for plan in loops.programs(source, key):
                    with contextlib.suppress(Exception):  # the record of loops has it
                        plan()
    return [
        Kernel(family.function.__module__, family.name, constants, words)
        for (family, words), constants in asked.items()
    ]


def run(unit: str) -> Iterator[Entry]:
    """The entries of a family's kernels for a target."""
    name, family = unit.split("/")
    if family == FUNCTIONS:
        chosen = target_named(name)
        module = test_targets.module_of_all(max(chosen.vector_bytes // 4, 1))
        yield entry(f"{unit}/all", assembly_of(str(module), chosen).encode())
        return
    if name not in _loaded:
        _loaded[name] = pickle.loads((_kernels / name).read_bytes())
    for kernel in _loaded[name]:
        if kernel.family == family:
            words = loops.without_digests(kernel.words)
            key = f"{unit}/{digest(f'{kernel.module} {words}'.encode())[:12]}"
            try:
                text = _assembly(kernel, name)
            except Exception as error:
                yield failed(key, error)
                continue
            yield entry(key, f"{family}[{words}]\n{text}".encode())


def _assembly(kernel: Kernel, name: str) -> str:
    with planning_for(name):
        family = getattr(importlib.import_module(kernel.module), kernel.family)
        text, chosen = str(family.emit(target_named(name), **kernel.constants)), target_named(name)
        return assembly_of(text.replace(f'@"{family.entry(kernel.constants)}"', '@"kernel"'), chosen)
