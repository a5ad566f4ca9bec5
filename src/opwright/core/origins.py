"""Modules that are imported when they are first needed, and the definitions that they enter in tables.

Lives here: `load`, `note_origin`, `is_abandoned`.  Not here: the tables.

A table that modules fill while they are imported has entries of modules that are not complete: another thread imports
one at this moment, or the import failed, by a KeyboardInterrupt between two lines, for instance. What such an entry
refers to may be missing. So who looks something up has its module imported by `load`, entry or no entry.

Python takes a module whose import failed out of `sys.modules` and runs it anew when somebody imports it again. What it
had entered in tables until then is still there. A table therefore notes the origin of each entry, the module object: an
entry whose module is no longer the one of that name does not count, and the new definition takes its place.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from types import ModuleType
from typing import Any

from .importing import import_module

_origins: weakref.WeakKeyDictionary[Any, ModuleType] = weakref.WeakKeyDictionary()


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
            _origins[thing] = module


def is_abandoned(thing: Any) -> bool:
    """Whether the import of the module that a noted thing came from has failed."""
    try:
        module = _origins.get(thing)
    except TypeError:
        return False
    return module is not None and sys.modules.get(module.__name__) is not module
