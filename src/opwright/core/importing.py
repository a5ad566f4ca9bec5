"""Modules and public names that are imported when they are first used.

Lives here: `import_module`; `lazily`, which makes `__getattr__` and `__dir__` of a package from a table of its names,
and `import_homes`, which imports all of them; `later`, a module that most processes never need.
Not here: tables that modules fill while they are imported (origins.py).

A process that runs a model, or one operator, needs few of the package's modules. So packages with many public names
import none of them: each is looked up in its module at the first use and then stays in the package's namespace, where
later uses find it at the cost of any attribute.
"""

import gc
import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from . import forks  # noqa: F401  from the first late import on a fork waits for the imports of other threads


def import_module(name: str, package: str | None = None) -> ModuleType:
    """Import a module, as `importlib.import_module`, while the garbage collector rests.

    Importing makes thousands of objects for the collector to track and drops hardly any, so what it finds meanwhile is
    not worth its time: a sixth of what importing the package as a whole takes, measured in turn with and without.
    """
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        return importlib.import_module(name, package)
    finally:
        if was_enabled:
            gc.enable()


def lazily(package: str, table: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package whose names are imported at the first use.

    table: for each module the names that come from it, written as in `from module import a, b as c`; a name that the
    module does not define is its submodule
    """
    homes: dict[str, tuple[str, str]] = {}
    for module, names in table.items():
        for name in names.split(", "):
            attribute, _, public = name.partition(" as ")
            homes[public or attribute] = module, attribute

    def __getattr__(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = home
        found = absent = object()
        if module != ".":
            found = getattr(import_module(module, package), attribute, absent)  # perhaps a package of this kind, too
        if found is absent:
            found = import_module(f"{module.rstrip('.')}.{attribute}", package)
        vars(sys.modules[package])[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*homes, *vars(sys.modules[package])})

    return __getattr__, __dir__


def import_homes(package: ModuleType) -> None:
    """Import all that the names of a package come from, where `lazily` looks them up."""
    for names in vars(package).get("_HOMES", {}).values():
        for name in names.split(", "):
            getattr(package, name.rpartition(" ")[2])


class _Later:
    """Stands for a module until one of its names is read; then for ever asks the module."""

    def __init__(self, name: str, package: str | None) -> None:
        self._name, self._package = name, package
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        module = self._module
        if module is None:
            module = self._module = import_module(self._name, self._package)
        return getattr(module, name)


def later(name: str, package: str) -> Any:
    """Return what stands for a module that is imported when one of its names is first read.

    For modules that most processes never need; a name is read at the cost of two attributes.

    if TYPE_CHECKING:
        from . import sparse
    else:
        sparse = later(".sparse", __package__)
    """
    return _Later(name, package)
