"""Modules and public names that are imported when they are first used, and the definitions they enter in tables.

Lives here: `import_module`; `lazily`, which derives `__getattr__`, `__dir__` and `__all__` of a package from its stub,
and `import_homes`, which imports all of its names; `later`, a module that most processes never need; `load`,
`note_origin`, `is_abandoned`, for tables that modules fill while they are imported; `paused` garbage collection.

A process that runs a model, or one operator, needs few of the package's modules. So packages with many public names
import none of them: each is looked up in its module at the first use and then stays in the package's namespace, where
later uses find it at the cost of any attribute.

A table that modules fill while they are imported has entries of modules that are not complete: another thread imports
one at this moment, or the import failed, by a KeyboardInterrupt between two lines, for instance. What such an entry
refers to may be missing. So who looks something up has its module imported by `load`, entry or no entry.

Python takes a module whose import failed out of `sys.modules` and runs it again when somebody imports it again. What it
had entered in tables until then is still there. A table therefore notes the origin of each entry, the module object: an
entry whose module is no longer the one of that name does not count, and the new definition takes its place.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from . import forks

_lock = forks.lock()
_inside = [0]  # how many blocks are open, in all threads


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Collect no garbage within, in any thread; for some milliseconds of building trees, instructions or text.

    The collector would visit all that was built again and again, which takes a third of the time. Where the program
    has switched it off, it stays off.
    """
    with _lock:
        mine = _inside[0] > 0 or gc.isenabled()
        if mine:
            _inside[0] += 1
            gc.disable()
    try:
        yield
    finally:
        if mine:
            with _lock:
                _inside[0] -= 1
                if not _inside[0]:
                    gc.enable()


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


def lazily(
    package: str, unlisted: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose names are imported at the first use.

    The package's `__init__.pyi` lists the names, for type checkers too, one on a line: `from .module import a as a`, or
    `b = a` after `from .module import a`. A name that the module does not define is its submodule. The stub's other
    lines, which only type checkers read, declare the names that `__init__.py` defines.

    unlisted: names that `__all__` leaves out
    """
    homes = _homes(package)

    def __getattr__(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = home
        value = absent = object()
        if module.strip("."):
            value = getattr(import_module(module, package), attribute, absent)  # perhaps a package of this kind, too
        if value is absent:
            value = import_module(f"{module.rstrip('.')}.{attribute}", package)
        vars(sys.modules[package])[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*homes, *vars(sys.modules[package])})

    return __getattr__, __dir__, sorted(homes.keys() - set(unlisted))


def _homes(package: str) -> dict[str, tuple[str, str]]:
    """Return the module and the attribute that each public name of a package's stub is imported from."""
    spec = sys.modules[package].__spec__
    stub = spec.loader.get_data(spec.origin + "i").decode()  # type: ignore[union-attr, operator]
    homes: dict[str, tuple[str, str]] = {}
    unexported: dict[str, tuple[str, str]] = {}
    for line in stub.splitlines():
        match line.split():
            case ["from", module, "import", name, "as", _]:
                homes[name] = module, name
            case ["from", module, "import", name]:
                unexported[name] = module, name
            case [alias, "=", name]:
                homes[alias] = homes[name] if name in homes else unexported[name]
    return homes


def import_homes(package: ModuleType) -> None:
    """Import the modules of all names of a package that `lazily` looks up."""
    for name in dir(package):
        getattr(package, name)


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


def later(name: str, package: str) -> _Later:
    """Return what stands for a module that is imported when one of its names is first read.

    For modules that most processes never need; a name is read at the cost of two attributes.

    if TYPE_CHECKING:
        from . import sparse
    else:
        sparse = later(".sparse", __package__)
    """
    return _Later(name, package)


_origins: weakref.WeakKeyDictionary[Any, weakref.ref[ModuleType]] = weakref.WeakKeyDictionary()
_complete: set[str] = set()


def load(name: str) -> None:
    """Import a module unless it is complete; another thread that is importing it is waited for. 30 ns where it is."""
    if name not in _complete:
        module = import_module(name)
        if not getattr(module.__spec__, "_initializing", False):  # else this very thread is importing it
            _complete.add(name)


def note_origin(thing: Any) -> None:
    """Remember the module whose import enters a function, class or operator, whichever module's function makes it."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back  # type: ignore[assignment]
    module = None if frame is None else sys.modules.get(frame.f_globals.get("__name__", ""))
    if module is not None and vars(module) is frame.f_globals:  # else it is code that no import runs
        with contextlib.suppress(TypeError):  # it takes no weak reference: NumPy's functions, which no import defines
            _origins[thing] = weakref.ref(module)


def is_abandoned(thing: Any) -> bool:
    """Whether the import of the module that a noted thing came from has failed."""
    try:
        origin = _origins.get(thing)
    except TypeError:
        return False
    module = None if origin is None else origin()
    return origin is not None and (module is None or sys.modules.get(module.__name__) is not module)
