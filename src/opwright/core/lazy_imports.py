"""Lazy imports of modules and public names, and the tables that modules fill while they are imported.

Lives here: `import_module`; `lazily`, which derives `__getattr__`, `__dir__` and `__all__` of a package from its stub,
and `import_homes`, which imports all of its names; `MissingNameError`; `later`, a module that most processes never
need; `load`, `note_origin`, `is_abandoned`, for tables that modules fill while they are imported; `finalizer`, for
`__del__` after modules are unloaded; `paused` garbage collection.

A process that runs a model, or one operator, needs few of the package's modules. Packages with many public names
therefore import none of them: each name is imported from its module at the first use and then stored in the package's
namespace, where later uses cost the same as any attribute.

A table that modules fill while they are imported may contain entries of incomplete modules: another thread is importing
one, or the import failed, for example by a KeyboardInterrupt between two lines. Objects that such an entry refers to
may be missing. Lookups therefore import the module by `load`, whether or not there is an entry.

Python removes a module whose import failed from `sys.modules` and executes it again at the next import. Its earlier
entries in tables remain. A table therefore records the origin of each entry, the module object: an entry whose module
is no longer the one of that name is ignored and replaced by the new definition.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

from . import forks

_lock = forks.lock()
_depth = [0]  # the number of active contexts in all threads
_program_freezes = [False]  # whether frozen objects of the program were found: counting them visits each, 16 ns


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Return a context without garbage collection, in any thread; for some milliseconds of building trees, instructions
    or text.

    The collector would visit all new objects repeatedly, which takes a third of the time. If the program has disabled
    it, it remains disabled.
    """
    with _lock:
        owned = _depth[0] > 0 or gc.isenabled()
        if owned:
            _depth[0] += 1
            gc.disable()
    try:
        yield
    finally:
        if owned:
            with _lock:
                _depth[0] -= 1
                if not _depth[0]:
                    gc.enable()


def import_module(name: str, package: str | None = None) -> ModuleType:
    """Import a module, as `importlib.import_module`, with garbage collection paused.

    An import creates thousands of objects that the collector tracks and frees hardly any, so a collection is not worth
    its time: a sixth of the time to import the whole package, and 7 ms of the first answer of a model.
    """
    was_enabled, before = gc.isenabled(), len(sys.modules)
    try:
        gc.disable()
        return importlib.import_module(name, package)
    finally:
        if was_enabled:
            if len(sys.modules) != before and not _program_freezes[0]:
                _program_freezes[0] = gc.get_freeze_count() > 0
                if not _program_freezes[0]:
                    gc.freeze()  # both together: all objects are old now, and were not visited
                    gc.unfreeze()
            gc.enable()


class MissingNameError(AttributeError):
    """The error of a module that lacks a name. It builds its text when it is shown: imports ask modules for names of
    submodules, and the nearest way costs a millisecond.
    """

    def __init__(self, module: str, name: str) -> None:
        super().__init__(module, name)

    def __str__(self) -> str:
        text: str = _missing_names.text_of(*self.args)
        return text


def lazily(
    package: str, unlisted: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose names are imported at first use.

    The package's `__init__.pyi` lists the names, for type checkers too, one per line: `from .module import a as b`, or
    `b = a` after `from .module import a`. A name that the module does not define is its submodule. All other lines of
    the stub, which only type checkers read, declare names that `__init__.py` defines.

    unlisted: names that `__all__` omits
    """
    homes = _homes(package)
    submodules = [name for name, (module, _) in homes.items() if not module.strip(".")]

    def __getattr__(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise MissingNameError(package, name)
        module, attribute = home
        value = absent = object()
        if module.strip("."):
            value = getattr(import_module(module, package), attribute, absent)  # possibly a lazy package, too
        if value is absent:
            value = import_module(f"{module.rstrip('.')}.{attribute}", package)
        names = vars(sys.modules[package])
        names[name] = value
        for submodule in (name, *submodules):  # the import may have imported others, which are names then, too
            if isinstance(names.get(submodule), ModuleType):
                explain_missing(names[submodule])
        return value

    def __dir__() -> list[str]:
        return sorted({*homes, *vars(sys.modules[package])})

    return __getattr__, __dir__, sorted(homes.keys() - set(unlisted))


def explain_missing(module: ModuleType) -> None:
    """Give a public module without `__getattr__` one whose error names the nearest way (missing_names.py), and so its
    public modules.
    """
    if "__getattr__" in vars(module):
        return

    def __getattr__(name: str) -> object:
        raise MissingNameError(module.__name__, name)

    vars(module)["__getattr__"] = __getattr__
    for name in getattr(module, "__all__", ()):
        value = vars(module).get(name)
        if isinstance(value, ModuleType) and value.__name__.startswith("opwright."):
            explain_missing(value)


def _homes(package: str) -> dict[str, tuple[str, str]]:
    """Return the module and attribute from which each public name of a package's stub is imported."""
    spec = sys.modules[package].__spec__
    stub = spec.loader.get_data(spec.origin + "i").decode()  # type: ignore[union-attr, operator]
    homes: dict[str, tuple[str, str]] = {}
    unexported: dict[str, tuple[str, str]] = {}
    for line in stub.splitlines():
        match line.split():
            case ["from", module, "import", name, "as", alias]:
                homes[alias] = module, name
            case ["from", module, "import", *names]:
                unexported.update({name: (module, name) for name in (each.rstrip(",") for each in names)})
            case [alias, "=", name]:
                homes[alias] = homes[name] if name in homes else unexported[name]
    return homes


def import_homes(package: ModuleType) -> None:
    """Import the modules of all lazy names of a package."""
    for name in dir(package):
        getattr(package, name)


class _LazyModule:
    """A proxy of a module that is imported when an attribute is first read."""

    def __init__(self, name: str, package: str | None) -> None:
        self._name, self._package = name, package
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        module = self._module
        if module is None:
            module = self._module = import_module(self._name, self._package)
        return getattr(module, name)


def later(name: str, package: str) -> _LazyModule:
    """Return a proxy of a module that is imported when one of its names is first read.

    For modules that most processes never need; reading a name costs two attribute accesses.

    if TYPE_CHECKING:
        from . import sparse
    else:
        sparse = later(".sparse", __package__)
    """
    return _LazyModule(name, package)


_missing_names: Any = later(".missing_names", __package__ or "")


_origins: weakref.WeakKeyDictionary[Any, weakref.ref[ModuleType]] = weakref.WeakKeyDictionary()
_complete: set[str] = set()


def load(name: str) -> None:
    """Import a module unless it is complete, waiting for other threads that import it. Costs 30 ns if it is
    complete.
    """
    if name not in _complete:
        module = import_module(name)
        if not getattr(module.__spec__, "_initializing", False):  # else this thread is importing it
            _complete.add(name)


def note_origin(entry: Any) -> None:
    """Record the module whose import registers a function, class or operator."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame is None:
        return
    module = sys.modules.get(frame.f_globals.get("__name__", ""))
    if module is not None and vars(module) is frame.f_globals:  # else the code is not run by an import
        with contextlib.suppress(TypeError):  # not weakly referenceable: NumPy's functions
            _origins[entry] = weakref.ref(module)


def is_abandoned(entry: Any) -> bool:
    """Return whether the import of the module of a recorded entry has failed."""
    try:
        origin = _origins.get(entry)
    except TypeError:
        return False
    module = None if origin is None else origin()
    return origin is not None and (module is None or sys.modules.get(module.__name__) is not module)


def finalizer(method: Callable[[Any], None]) -> Callable[[Any], None]:
    """Decorate `__del__`: its errors are dropped once Python has unloaded the method's module at exit.

    Python then sets the names of modules that something still references (JAX's compiled code does) to None, in
    reverse order of their imports, and deletes objects in between.
    """
    modules, name = sys.modules, method.__module__  # kept by the closure: names of this module become None, too

    @functools.wraps(method)
    def delete(self: Any) -> None:
        try:
            method(self)
        except Exception:
            if modules.get(name) is not None:
                raise  # Python reports it and continues

    return delete
