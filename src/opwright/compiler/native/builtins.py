"""CPython in machine code: builtin functions, whose calls cost a third of those by ctypes, and the layout of objects.

Lives here: `Method`, `bound`; `builtins`, `make_builtins`: the functions of builtins.ll; `entry_points`, `if_available`
of modules that read objects; checks of the layout of tuples, arrays and slots; `data_address` of arrays, addresses of
functions of the C API of NumPy.
Not here: other machine code with this calling convention (executor.ll, ../elementwise.py) or that reads objects
(../kernels/array_addresses.py).

The functions of NumPy for the address of an array take 0.8 us each; to read it from the object takes a nanosecond.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ...core import flags
from ...core.errors import OpError
from ...core.forks import once
from ...core.named_tuples import NamedTuple
from ..background import compiling
from .image import runs_images
from .store import NotCached, find_or_make, only_cached, read_text

T = TypeVar("T")

DATA, RANK, SIZES, STEPS, DTYPE, FLAGS = 2, 3, 4, 5, 7, 8
"""Words of an array: address of its elements, rank (the low half), addresses of its sizes, its strides in bytes and its
dtype object, flags. Word 1 of any object is its type."""
SCALAR_TYPE, TYPE_NUMBER, ITEMSIZE = 2, 3, 5
"""Words of a dtype object: the type of its scalars, its number (the high half), bytes of an element."""
OWN_TYPES = 24
"""NumPy's own dtypes have numbers below; their scalars are a head of two words and the number."""
_NUMBERS = "?bBhHiIlLefdFD"
CONTIGUOUS, WRITEABLE = 0x1 | 0x100, 0x400
"""Flags of NumPy: C order and aligned; writeable."""

NUMPY = {"PyArray_Scalar": 60, "PyArray_Empty": 184, "PyArray_NewLikeArray": 277}
"""Functions of the C API of NumPy that machine code calls, and their indices in its table, equal in all versions."""


@once
def numpy_function(name: str) -> int:
    """Return the address of a function of the C API of NumPy. Raises KeyError for those not listed above."""
    from numpy._core._multiarray_umath import _ARRAY_API  # type: ignore[import-not-found]  # as import_array of NumPy does

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_int64.from_address(pointer(_ARRAY_API, None) + 8 * NUMPY[name]).value


@functools.cache
def items_offset() -> int | None:
    """Return the offset of the items of a tuple; None if tuples or arrays have another layout than expected."""
    a, b = np.zeros((2, 3), np.float32), np.zeros(5, np.int64)
    for array in (a, b):
        words = [ctypes.c_int64.from_address(id(array) + 8 * i).value for i in range(9)]
        if words[1] != id(np.ndarray) or words[DATA] != array.ctypes.data or words[RANK] & 0xFFFFFFFF != array.ndim:
            return None
        sizes, steps = (
            [ctypes.c_int64.from_address(words[word] + 8 * i).value for i in range(array.ndim)]
            for word in (SIZES, STEPS)
        )
        if (
            sizes != list(array.shape)
            or steps != list(array.strides)
            or words[DTYPE] != id(array.dtype)
            or words[FLAGS] & 0xFFF != array.flags.num & 0xFFF
            or ctypes.c_int64.from_address(words[DTYPE] + 8 * ITEMSIZE).value != array.itemsize
        ):
            return None
    for char in _NUMBERS:  # scalars
        dtype = np.dtype(char)
        one = dtype.type(3)
        words = [ctypes.c_int64.from_address(id(dtype) + 8 * i).value for i in (SCALAR_TYPE, TYPE_NUMBER)]
        if words[0] != id(dtype.type) or words[1] >> 32 != dtype.num or dtype.num >= OWN_TYPES:
            return None
        if ctypes.string_at(id(one) + 16, dtype.itemsize) != one.tobytes():
            return None
    pair = (a, b)
    for offset in (24, 32, 40):
        if [ctypes.c_int64.from_address(id(pair) + offset + 8 * i).value for i in range(2)] == [id(a), id(b)]:
            return offset
    return None


def data_address(array: np.ndarray) -> int:
    """Return the address of an array's elements."""
    if items_offset() is None:
        return int(array.__array_interface__["data"][0])
    return int(_WORD.from_address(id(array) + 8 * DATA).value)


_WORD = ctypes.c_int64


def slot_words(thing: Any, names: Sequence[str]) -> list[int] | None:
    """Return the words of an object that hold slots of its class; None if it has another layout than expected.

    names: of slots that hold different objects
    """
    if items_offset() is None:
        return None
    kind = type(thing)
    words = [ctypes.c_int64.from_address(id(thing) + 8 * i).value for i in range(kind.__basicsize__ // 8)]
    slots = [id(getattr(thing, name)) for name in names]
    return list(map(words.index, slots)) if words[1] == id(kind) and all(words.count(s) == 1 for s in slots) else None


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
    return _new_function()(ctypes.addressof(method), to, None)


def objects(*items: Any) -> np.ndarray:
    """Return an array of these objects, which machine code reads where a function needs several."""
    array = np.empty(len(items), object)
    for i, item in enumerate(items):
        array[i] = item
    return array


@once
def _new_function() -> Callable[[int, Any, None], Callable[..., Any]]:
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
        bound(put_strings, objects(array, bytes))(value)    as put, for an array of objects that are bytes

    put, take: for dense arrays of numbers; they hold the GIL. A scalar of NumPy's own dtypes is an array of rank 0
    """

    put: Method
    take: Method
    foreign: Method
    put_strings: Method


_WORDS = {
    "ARRAY_DATA": DATA,
    "ARRAY_RANK": RANK,
    "ARRAY_SIZES": SIZES,
    "ARRAY_STEPS": STEPS,
    "ARRAY_DTYPE": DTYPE,
    "ARRAY_FLAGS": FLAGS,
    "ARRAY_CONTIGUOUS": CONTIGUOUS,
    "ARRAY_WRITEABLE": WRITEABLE,
    "DTYPE_ITEMSIZE": ITEMSIZE,
    "DTYPE_SCALAR": SCALAR_TYPE,
    "DTYPE_NUMBER": TYPE_NUMBER,
    "DTYPE_OWN": OWN_TYPES,
}


def with_array_words(text: str) -> str:
    """Return a text of LLVM with the words of arrays in place of their names, such as ARRAY_DATA."""
    for word, value in _WORDS.items():
        text = text.replace(word, str(value))
    return text


def entry_points(name: str, words: Mapping[str, int] | None = None) -> Callable[[int], int] | None:
    """Return the addresses of the functions of NAME.ll by number, from the cache or compiled; None if this process
    cannot run them. words: more numbers in place of names. Raises NotCached inside `only_cached()` if they would have
    to be compiled."""
    if not runs_images() or items_offset() is None:
        return None

    def text() -> str:
        text = with_array_words(read_text(f"{name}.ll"))
        for word, value in sorted((words or {}).items(), reverse=True):  # longer names first
            text = text.replace(word, str(value))
        return text

    code = find_or_make(name, "", None, lambda: (text(), name))
    return ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int64)(code.address)


def if_available(make: Callable[[], T | None]) -> T | None:
    """Return the functions; None if they are unavailable, or still to be compiled in the background."""
    try:
        if not flags.background:
            return make()
        with only_cached():
            return make()
    except NotCached:
        compiling.submit(make)
    except (ImportError, OSError, OpError):  # no LLVM, or the system forbids to run code
        pass
    return None


@once
def make_builtins() -> Builtins | None:
    """Return the functions, as `entry_points`."""
    table = entry_points("builtins")
    if table is None:
        return None
    conventions = ONE, NO_ARGUMENTS, NO_ARGUMENTS, ONE
    return Builtins(*(Method(name.encode(), table(i), conventions[i], None) for i, name in enumerate(Builtins._fields)))


def builtins() -> Builtins | None:
    """Return the functions, as `if_available`."""
    return if_available(make_builtins)
