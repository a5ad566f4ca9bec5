"""Calls of small eager tensors by machine code, over NumPy's own inner loops.

Lives here: `UfuncRow`, `EagerTensorLayout`, `tensor_layout`, `inner_loop`, `UfuncCalls` with `elementwise`, `product`,
`softmax` and `extreme`.
Not here: the machine code (ufunc_calls.ll), the layout of arrays and builtin functions (builtins.py), which calls take
this path (eager/short_calls.py).

NumPy spends a microsecond around the loop of a small call: on types, on iterators, on the state of floating-point
errors. The ufunc itself runs the same loops, so that results have the same bits.

    PyUFuncObject, of NumPy's ufuncobject.h: head (16 bytes), int nin, nout, nargs, identity, pointers to the loops and
    to their data, int ntypes, reserved; name, the numbers of the types: nargs bytes for each loop
    loop(char **addresses, npy_intp *count, npy_intp *steps, void *data)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType
from ...core.forks import once
from ...core.named_tuples import NamedTuple
from .builtins import SEVERAL, Method, bound, entry_points, if_available, slot_words

MOST_ELEMENTS, MOST_PRODUCTS = 4096, 32768
"""Limits of a call: elements, or multiplications of a product. Larger ones take microseconds, in which NumPy releases
the GIL."""
_HEAD = 16


class UfuncRow(NamedTuple):
    """One dtype of the inputs of a ufunc, and of its result."""

    inputs: DType
    result: DType


class EagerTensorLayout(NamedTuple):
    """The words of a tensor's slots: its array, dtype and identity. kind: its type."""

    kind: type
    array: int
    dtype: int
    identity: int


def tensor_layout(tensor: Any) -> EagerTensorLayout | None:
    """Return the layout of tensors of this type; None if tensors or arrays have another layout than expected.

    tensor: one whose slots hold three different objects
    """
    words = slot_words(tensor, ("_array", "_dtype", "_identity"))
    return None if words is None else EagerTensorLayout(type(tensor), *words)


class _Ufunc(ctypes.Structure):
    _fields_ = [
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.POINTER(ctypes.c_int64)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_byte)),
    ]


def inner_loop(ufunc: np.ufunc, dtypes: Sequence[np.dtype[Any]]) -> tuple[int, int] | None:
    """Return the addresses of a ufunc's loop for exactly these dtypes, and of its data.

    None if it has no such loop, or a layout other than expected.
    """
    fields = _Ufunc.from_address(id(ufunc) + _HEAD)
    counts = (fields.nin, fields.nout, fields.nargs)
    if counts != (ufunc.nin, ufunc.nout, ufunc.nargs) or fields.ntypes < ufunc.ntypes:
        return None
    if fields.name != ufunc.__name__.encode():
        return None
    wanted = [d.num for d in dtypes]
    for i, text in enumerate(ufunc.types):
        numbers = fields.types[i * ufunc.nargs : (i + 1) * ufunc.nargs]
        if numbers != [np.dtype(char).num for char in text.replace("->", "")]:
            return None
        if numbers == wanted:
            return (fields.functions[i], fields.data[i] if fields.data else 0) if fields.functions[i] else None
    return None


class UfuncCalls(NamedTuple):
    """The functions of ufunc_calls.ll. elementwise, product, softmax, extreme: their addresses."""

    elementwise: int
    product: int
    softmax: int
    extreme: int

    def of_elements(
        self, ufunc: np.ufunc, rows: Sequence[UfuncRow], layout: EagerTensorLayout
    ) -> Callable[..., Any] | None:
        """Return a function of one or two tensors that applies a ufunc: a tensor, or None if it declines them.

        It takes dense arrays of one shape, or one and a scalar. rows: the dtypes to accept. None if no row has a loop.
        """
        if ufunc.nin > 2 or ufunc.nout != 1 or ufunc.signature is not None:
            return None
        return _call(self.elementwise, _loops_of(ufunc, rows), layout, (MOST_ELEMENTS, ufunc.nin, 0, 0))

    def of_matrices(
        self, rows: Sequence[UfuncRow], layout: EagerTensorLayout, transpose_a: bool, transpose_b: bool
    ) -> Callable[..., Any] | None:
        """Return a function of two matrices that applies np.matmul to them or their transposes; as `of_elements`."""
        if np.matmul.signature != "(n?,k),(k,m?)->(n?,m?)":
            return None
        settings = (MOST_PRODUCTS, 2, int(transpose_a), int(transpose_b))
        return _call(self.product, _loops_of(np.matmul, rows), layout, settings)

    def of_softmax(self, dtypes: Sequence[DType], layout: EagerTensorLayout) -> Callable[..., Any] | None:
        """Return a function of one tensor, softmax along its last axis by NumPy's loops; as `of_elements`."""
        rows = []
        for dtype in dtypes:
            loops = [inner_loop(ufunc, [dtype.np] * ufunc.nargs) for ufunc in _SOFTMAX]
            if None not in loops:
                words = [word for loop in loops if loop is not None for word in loop]
                table = (ctypes.c_int64 * len(words))(*words)
                _kept.append(table)
                lowest = int.from_bytes(np.array(-np.inf, dtype.np).tobytes(), "little")
                rows.append((UfuncRow(dtype, dtype), (ctypes.addressof(table), lowest)))
        return _call(self.softmax, rows, layout, (MOST_ELEMENTS, 1, 0, 0))

    def of_extreme(
        self, rows: Sequence[UfuncRow], layout: EagerTensorLayout, axis: int, least: bool
    ) -> Callable[..., Any] | None:
        """Return a function of one tensor of floats: indices of the first greatest or least elements along an axis.

        NaN never is one. rows: results of 4 or 8 bytes. As `of_elements`.
        """
        return _call(self.extreme, [(row, (0, 0)) for row in rows], layout, (MOST_ELEMENTS, 1, axis, int(least)))


_SOFTMAX = (np.maximum, np.subtract, np.exp, np.add, np.divide)
"""The ufuncs of softmax, in the order of its loops."""

_kept: list[Any] = []  # objects that machine code refers to


def _loops_of(ufunc: np.ufunc, rows: Sequence[UfuncRow]) -> list[tuple[UfuncRow, tuple[int, int]]]:
    """Return the rows that a ufunc has a loop for, with its addresses."""
    loops = [(row, inner_loop(ufunc, [row.inputs.np] * ufunc.nin + [row.result.np])) for row in rows]
    return [(row, loop) for row, loop in loops if loop is not None]


def _call(
    address: int, rows: Sequence[tuple[UfuncRow, tuple[int, int]]], layout: EagerTensorLayout, settings: tuple[int, ...]
) -> Callable[..., Any] | None:
    words: list[int] = []
    for row, loop in rows:
        words += [id(row.inputs), id(row.inputs.np), id(row.result), id(row.result.np), *loop]
        words += [row.inputs.size, row.result.size]
    if not words:
        return None
    head = [id(layout.kind), id(np.ndarray), layout.array, layout.dtype, layout.identity, id(None), *settings]
    content = [*head, len(words) // 8, *words]
    table = (ctypes.c_int64 * len(content))(*content)
    method = Method(b"call", address, SEVERAL, None)
    _kept.append((method, table, rows, layout))
    return bound(method, ctypes.addressof(table))


@once
def make_ufunc_calls() -> UfuncCalls | None:
    """Return the functions, as `entry_points`."""
    table = entry_points("ufunc_calls")
    return None if table is None else UfuncCalls(*map(table, range(4)))


def ufunc_calls() -> UfuncCalls | None:
    """Return the functions, as `if_available`."""
    return if_available(make_ufunc_calls)
