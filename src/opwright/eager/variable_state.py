"""State of variables: exclusive access to a variable's buffer, and values restored when a variable is created.

Lives here: `CopyOnWrite`, which takes a variable's value out and puts it back; the deferred restores of checkpoints.
Not here: the operators that write (ops/state.py), checkpoints (saved/).

While a restore is deferred, a new variable holds back its initial value until it is first read or written. By then it
is an attribute of its object, so that the restore finds it. Without deferred restores this costs nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import forks
from ..core.dtypes import float64
from .tensor import EagerTensor


class CopyOnWrite:
    """Exclusive access to a variable's buffer: the buffer itself, or a copy if it has other references or is not
    C-contiguous.

    References are a reader's result, a view, a tape, or a running plan. A value that was read therefore never changes,
    and a table without other references is updated in place.
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
            cell: list[EagerTensor] = [variable._resolved_value()]
            variable._value = None
            exclusive = _reference_counts(cell) == _EXCLUSIVE and cell[0]._array.base is None
            array: np.ndarray = cell[0]._array
            exclusive = exclusive and array.flags.c_contiguous
            if not exclusive:
                try:
                    array = array.copy()
                except MemoryError:
                    variable._value = cell[0]
                    raise
            elif not array.flags.writeable:
                array.setflags(write=True)
            self.array: Any = array
            variable._initial = EagerTensor(array, variable.dtype)  # for a fork's child, in which the write never ends
            return array
        except BaseException:
            variable._guard.release()
            raise

    def __exit__(self, *exc: object) -> None:
        variable, array = self.variable, self.array
        self.array = None
        variable._value, variable._initial = EagerTensor(array, variable.dtype), None
        variable._guard.release()


def _reference_counts(cell: list[EagerTensor]) -> tuple[int, int]:
    return sys.getrefcount(cell[0]), sys.getrefcount(cell[0]._array)


_GUARDS = forks.lock()
# The reference counts of a tensor and its array if `cell` has the only reference. None without the global lock: counts
# are approximate then, and every write is to a copy.
_EXCLUSIVE = (
    _reference_counts([EagerTensor(np.zeros(1), float64)]) if getattr(sys, "_is_gil_enabled", lambda: True)() else None
)


# Each assigns the values whose variables exist; it returns False once it has no values or no objects left.
deferred_restores: list[Callable[[], bool]] = []
_lock = forks.lock()
_busy = False


def run_deferred_restores() -> None:
    """Assign checkpointed values to the variables that exist by now."""
    global _busy
    with _lock:
        if _busy or not deferred_restores:
            return
        _busy = True
        try:
            for restore in list(deferred_restores):
                incomplete = False  # a value of the wrong shape raises once
                try:
                    incomplete = restore()
                finally:
                    if not incomplete:
                        deferred_restores.remove(restore)
        finally:
            _busy = False


def restore_attached(value: Any) -> None:
    """Run deferred restores for an object that became an attribute; new variables run them on their own."""
    if getattr(value, "_initial", None) is None and value is not None and not isinstance(value, (str, int, float)):
        run_deferred_restores()
