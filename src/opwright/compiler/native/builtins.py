"""Builtin functions of Python made of machine code: called at a third of what ctypes costs.

Lives here: `Method`, `bound`; `builtins`, `make_builtins`: those of builtins.ll.
Not here: other machine code that is called so (executor.ll, ../elementwise.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ...core import flags
from ...core.errors import OpError
from ...core.forks import once
from ...core.named_tuples import NamedTuple
from ..background import compiling
from . import objects
from .image import runs_images
from .store import NotCached, find_or_make, only_cached, read_text

ONE, NO_ARGUMENTS, SEVERAL = 0x8, 0x4, 0x80
"""How C functions take arguments: METH_O, METH_NOARGS, METH_FASTCALL."""


class Method(ctypes.Structure):
    """PyMethodDef of Python's C API; functions that are made of one point to it."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def bound(method: Method, to: Any) -> Callable[..., Any]:
    """The method of an object, which it keeps alive. `method` has to live as long as the function."""
    function: Callable[..., Any] = _new_function()(ctypes.addressof(method), to, None)
    return function


@once
def _new_function() -> Any:
    """Of Python's C API: a function of a PyMethodDef and `self`."""
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )


class Builtins(NamedTuple):
    """The functions of builtins.ll.

        bound(put, array)(value)    copies a dense array of the same dtype and shape into it and gives 1; for anything
                                    else gives 0, with nothing changed
        bound(take, array)()        gives a copy; of rank 0, a scalar
        bound(foreign, address)()   calls `int f(void *)` without the GIL; f and its argument are the words there

    put, take: of dense arrays of numbers; other threads of Python do not run meanwhile
    """

    put: Method
    take: Method
    foreign: Method


_WORDS = {
    "ARRAY_DATA": objects.DATA,
    "ARRAY_RANK": objects.RANK,
    "ARRAY_SIZES": objects.SIZES,
    "ARRAY_DTYPE": objects.DTYPE,
    "ARRAY_FLAGS": objects.FLAGS,
    "ARRAY_CONTIGUOUS": objects.CONTIGUOUS,
    "ARRAY_WRITEABLE": objects.WRITEABLE,
    "DTYPE_ITEMSIZE": objects.ITEMSIZE,
}


def _text() -> str:
    text = read_text("builtins.ll")
    for word, value in _WORDS.items():
        text = text.replace(word, str(value))
    return text


@once
def make_builtins() -> Builtins | None:
    """Find them in the cache or make them; None where this process cannot run them, or objects lie otherwise than they
    take them. Raises NotCached inside `only_cached()` for what would have to be compiled."""
    if not runs_images() or objects.items_offset() is None:
        return None
    code = find_or_make("builtins", "", None, lambda: (_text(), "builtins"))
    table = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int64)(code.address)
    takes = ONE, NO_ARGUMENTS, NO_ARGUMENTS
    return Builtins(*(Method(name.encode(), table(i), takes[i], None) for i, name in enumerate(Builtins._fields)))


def builtins() -> Builtins | None:
    """Them, for who can do without; None where they cannot be had, or are still to be compiled in the background."""
    try:
        if not flags.background:
            return make_builtins()
        with only_cached():
            return make_builtins()
    except NotCached:
        compiling.submit(make_builtins)
    except (ImportError, OSError, OpError):  # there is no LLVM here, or code may not be run
        pass
    return None
