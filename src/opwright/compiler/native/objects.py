"""How Python's objects lie in memory, where machine code reads them itself.

Lives here: whether tuples and arrays lie as it takes them, where functions of NumPy's C API are.
Not here: what reads them (../kernels/array_binding.py, ../elementwise.py, builtins.ll).

NumPy's own ways to an array's address take 0.8 us each; to read it where the object has it takes a nanosecond.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from ...core.forks import once

DATA, RANK, SIZES, DTYPE, FLAGS = 2, 3, 4, 7, 8
"""The words of an array: the address of its elements, its rank (the low half), the addresses of its sizes and of its
dtype object, NumPy's flags. The word 1 of any object is its type."""
ITEMSIZE = 5
"""The word of a dtype object that says how many bytes an element has."""
CONTIGUOUS, WRITEABLE = 0x1 | 0x100, 0x400
"""NumPy's flags: in C order and aligned; may be written."""

NUMPY = {"PyArray_Scalar": 60, "PyArray_NewLikeArray": 277}
"""Functions of NumPy's C API that machine code calls, and where its table has them, which is so for all versions."""


@once
def numpy_function(name: str) -> int:
    """The address of a function of NumPy's C API. Raises KeyError for one that is not listed above."""
    from numpy._core._multiarray_umath import _ARRAY_API  # type: ignore[import-not-found]  # as NumPy's import_array does

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_int64.from_address(pointer(_ARRAY_API, None) + 8 * NUMPY[name]).value


@functools.cache
def items_offset() -> int | None:
    """Bytes from a tuple's address to its items; None where tuples or arrays lie otherwise than we take them."""
    a, b = np.zeros((2, 3), np.float32), np.zeros(5, np.int64)
    for array in (a, b):
        words = [ctypes.c_int64.from_address(id(array) + 8 * i).value for i in range(9)]
        if words[1] != id(np.ndarray) or words[DATA] != array.ctypes.data or words[RANK] & 0xFFFFFFFF != array.ndim:
            return None
        sizes = [ctypes.c_int64.from_address(words[SIZES] + 8 * i).value for i in range(array.ndim)]
        if (
            sizes != list(array.shape)
            or words[DTYPE] != id(array.dtype)
            or words[FLAGS] & 0xFFF != array.flags.num & 0xFFF
            or ctypes.c_int64.from_address(words[DTYPE] + 8 * ITEMSIZE).value != array.itemsize
        ):
            return None
    pair = (a, b)
    for offset in (24, 32, 40):
        if [ctypes.c_int64.from_address(id(pair) + offset + 8 * i).value for i in range(2)] == [id(a), id(b)]:
            return offset
    return None
