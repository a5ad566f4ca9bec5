"""Builtin functions of Python made of machine code: called at a third of what ctypes costs.

Lives here: `Method`, `bound`; `copies`, into and out of arrays.
Not here: the machine code (executor.ll, arrays.ll, ../entering.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ...core.once import once
from . import objects
from .image import runs_images
from .store import find_or_make

ONE, NO_ARGUMENTS, SEVERAL = 0x8, 0x4, 0x80
"""How C functions take arguments: METH_O, METH_NOARGS, METH_FASTCALL."""


class Method(ctypes.Structure):
    """PyMethodDef of Python's C API; functions that are made of one point to it."""

    _fields_ = [("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]  # fmt: skip


def bound(method: Method, to: Any) -> Callable[..., Any]:
    """The method of an object, which it keeps alive. `method` has to live as long as the function."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., Any] = make(ctypes.addressof(method), to, None)
    return function


class Copies(NamedTuple):
    """The functions of arrays.ll."""

    put: Method
    take: Method


_WORDS = {"ARRAY_DATA": objects.DATA, "ARRAY_RANK": objects.RANK, "ARRAY_SIZES": objects.SIZES,
          "ARRAY_DTYPE": objects.DTYPE, "ARRAY_FLAGS": objects.FLAGS, "ARRAY_CONTIGUOUS": objects.CONTIGUOUS,
          "ARRAY_WRITEABLE": objects.WRITEABLE, "DTYPE_ITEMSIZE": objects.ITEMSIZE}  # fmt: skip


def _arrays_text() -> str:
    text = Path(__file__).with_name("arrays.ll").read_text(encoding="utf-8")
    for word, value in _WORDS.items():
        text = text.replace(word, str(value))
    return text


@once
def copies() -> Copies | None:
    """`put` and `take` of arrays; None where this process cannot run them, or arrays lie otherwise than they take them.

    Both are for dense arrays of numbers; other threads of Python do not run meanwhile.

        bound(put, array)(value)    copies a dense array of the same dtype and shape into it and gives 1; for anything
                                    else gives 0, with nothing changed
        bound(take, array)()        gives a copy; of rank 0, a scalar
    """
    if not runs_images() or objects.items_offset() is None:
        return None
    code = find_or_make("arrays", "", None, lambda: (_arrays_text(), "arrays"))
    table = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int64)(code.address)
    return Copies(Method(b"put", table(0), ONE, None), Method(b"take", table(1), NO_ARGUMENTS, None))
