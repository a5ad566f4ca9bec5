"""Writing to a variable's own buffer, where nobody else can see it.

Lives here: `Writing`, which takes a variable's value out and puts it back.  Not here: what is written (ops/state.py).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..core import forks
from ..core.dtypes import float64
from .tensor import EagerTensor


class Writing:
    """The value of a variable taken out of it, to be written to: the buffer itself, or a copy where others hold it.

    Others are whoever has a reference to the tensor or its array: a reader's result, a view, a tape, a running plan.
    So a value once read never changes, and a table that nobody looks at is updated where it lies.
    """

    __slots__ = ("array", "variable")

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def __enter__(self) -> np.ndarray:
        variable = self.variable
        if variable._guard is None:
            with _GUARDS:
                if variable._guard is None:
                    variable._guard = forks.lock()
        variable._guard.acquire()
        try:
            held: list[Any] = [variable._settled()]
            variable._value = None
            alone = _references(held) == _ALONE and held[0]._array.base is None
            array = held[0]._array
            if not alone:
                try:
                    array = array.copy()
                except MemoryError:
                    variable._value = held[0]
                    raise
            elif not array.flags.writeable:
                array.setflags(write=True)
            self.array: Any = array
            variable._initial = EagerTensor(array, variable.dtype)  # for who finds the write cut off: a fork's child
            result: np.ndarray = array
            return result
        except BaseException:
            variable._guard.release()
            raise

    def __exit__(self, *exc: object) -> None:
        variable, array = self.variable, self.array
        self.array = None
        variable._value, variable._initial = EagerTensor(array, variable.dtype), None
        variable._guard.release()


def _references(held: list[Any]) -> tuple[int, int]:
    return sys.getrefcount(held[0]), sys.getrefcount(held[0]._array)


_GUARDS = forks.lock()
# How often a tensor and its array are referred to where `held` is all that holds them. None where threads run without
# the global lock: counts say little there, and every write is to a copy.
_ALONE = _references([EagerTensor(np.zeros(1), float64)]) if getattr(sys, "_is_gil_enabled", lambda: True)() else None
