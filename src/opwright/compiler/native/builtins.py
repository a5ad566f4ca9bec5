"""Builtin functions of Python from machine code: calls cost a third of those by ctypes.

Lives here: `Method`, `bound`; `builtins`, `make_builtins`: the functions of builtins.ll.
Not here: other machine code with this calling convention (executor.ll, ../elementwise.py).
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
from .source_digest import read_text
from .store import NotCached, find_or_make, only_cached

ONE, NO_ARGUMENTS, SEVERAL = 0x8, 0x4, 0x80
"""Calling conventions of C functions: METH_O, METH_NOARGS, METH_FASTCALL."""


class Method(ctypes.Structure):
    """PyMethodDef of the C API of Python; its functions point to it."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def bound(method: Method, to: Any) -> Callable[..., Any]:
    """Bind a method to an object, which the result keeps alive. `method` has to outlive the result."""
    function: Callable[..., Any] = _new_function()(ctypes.addressof(method), to, None)
    return function


@once
def _new_function() -> Any:
    """Return the constructor of functions in the C API of Python, from a PyMethodDef and `self`."""
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )


class Builtins(NamedTuple):
    """The functions of builtins.ll.

        bound(put, array)(value)    copies a dense array of the same dtype and shape into it and returns 1; for other
                                    values returns 0, with nothing changed
        bound(take, array)()        returns a copy; for rank 0, a scalar
        bound(foreign, address)()   calls `int f(void *)` without the GIL; f and its argument are the words there

    put, take: for dense arrays of numbers; they hold the GIL
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
    """Return the functions from the cache or compile them; None if this process cannot run them.

    raises NotCached inside `only_cached()` if they would have to be compiled
    """
    if not runs_images() or objects.items_offset() is None:
        return None
    code = find_or_make("builtins", "", None, lambda: (_text(), "builtins"))
    table = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int64)(code.address)
    conventions = ONE, NO_ARGUMENTS, NO_ARGUMENTS
    return Builtins(*(Method(name.encode(), table(i), conventions[i], None) for i, name in enumerate(Builtins._fields)))


def builtins() -> Builtins | None:
    """Return the functions; None if they are unavailable, or still to be compiled in the background."""
    try:
        if not flags.background:
            return make_builtins()
        with only_cached():
            return make_builtins()
    except NotCached:
        compiling.submit(make_builtins)
    except (ImportError, OSError, OpError):  # no LLVM, or the system forbids to run code
        pass
    return None
