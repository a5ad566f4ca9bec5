"""The memory layout of Python objects that machine code reads.

Lives here: checks of the layout of tuples and arrays, addresses of functions of the C API of NumPy.
Not here: the code that reads them (../kernels/array_addresses.py, ../elementwise.py, builtins.ll).

The functions of NumPy for the address of an array take 0.8 us each; to read it from the object takes a nanosecond.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from ...core.forks import once

DATA, RANK, SIZES, DTYPE, FLAGS = 2, 3, 4, 7, 8
"""Words of an array: address of its elements, rank (the low half), addresses of its sizes and of its dtype object,
flags. Word 1 of any object is its type."""
ITEMSIZE = 5
"""Word of a dtype object: bytes of an element."""
CONTIGUOUS, WRITEABLE = 0x1 | 0x100, 0x400
"""Flags of NumPy: C order and aligned; writeable."""

NUMPY = {"PyArray_Scalar": 60, "PyArray_NewLikeArray": 277}
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
