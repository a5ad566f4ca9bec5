"""Which inputs a computation reads: found out by running it once more on stand-ins.

Lives here: the stand-in, and the check of the switch `check_unused_inputs`.  Not here: when it is asked (running.py).

An input that is never read should be in `shape_only`, so that it need not be there, or should not be an input. An input
in `shape_only` that is read after all would miss its elements on another device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..core.errors import OpError, PermissionDeniedError
from ..ops import dispatch

_BY_SHAPE = frozenset({np.shape, np.ndim, np.size, np.zeros_like, np.ones_like, np.empty_like, np.full_like})


class Watched(NDArrayOperatorsMixin):
    """An array that notes when its elements are read. Shape and dtype may be asked for without that."""

    def __init__(self, array: np.ndarray, read: Callable[[], None]) -> None:
        self._array, self._read = array, read
        self.shape, self.ndim, self.size, self.dtype = array.shape, array.ndim, array.size, array.dtype

    def __len__(self) -> int:
        return len(self._array)

    def __getattr__(self, name: str) -> Any:
        self._read()
        return getattr(self._array, name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._read()
        return np.array(self._array, dtype) if copy else np.asarray(self._array, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*_plain(inputs), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _BY_SHAPE:
            return function(self._array, *args[1:], **kwargs)
        return function(*_plain(args), **{k: _plain(v) for k, v in kwargs.items()})

    def __getitem__(self, key: Any) -> Any:
        self._read()
        return self._array[_plain(key)]

    def __iter__(self) -> Any:
        self._read()
        return iter(self._array)

    def __bool__(self) -> bool:
        self._read()
        return bool(self._array)

    def __int__(self) -> int:
        self._read()
        return int(self._array)

    def __float__(self) -> float:
        self._read()
        return float(self._array)

    def __complex__(self) -> complex:
        self._read()
        return complex(self._array)

    def __index__(self) -> int:
        self._read()
        return self._array.__index__()


def _plain(value: Any) -> Any:
    """The arrays behind stand-ins, noted as read."""
    if isinstance(value, Watched):
        value._read()
        return value._array
    if isinstance(value, (list, tuple)):
        return type(value)([_plain(v) for v in value])
    return value


def check_reads(op: Any, kernel: Callable[..., Any], arrays: Sequence[Any]) -> None:
    """Compute once more, to see what is read.

    raises PermissionDeniedError naming operator and input: for one that was given and is never read, and for one in
    `shape_only` that is
    """
    read: set[str] = set()
    watched = [_watched(a, functools.partial(read.add, name)) for name, a in zip(op.input_names, arrays)]
    try:
        _plain(dispatch.quietly(kernel, *watched))  # what is handed on as it is is read too
    except OpError:
        raise
    except Exception:  # it looked at what a stand-in is: then it read whatever it did not show
        return
    for name, array in zip(op.input_names, arrays):
        if name in op.shape_only:
            if name in read:
                raise PermissionDeniedError(
                    op=op.name,
                    what=f"input {name!r} is in shape_only, and compute reads it",
                    found="its elements were read",
                    wanted="its shape alone",
                    do="take it out of shape_only",
                )
        elif name not in read and _has_arrays(array):
            raise PermissionDeniedError(
                op=op.name,
                what=f"input {name!r} is never read by compute",
                found="an initialized input whose elements nobody reads",
                wanted=f"shape_only = ({name!r},), or no such input",
            )


def _watched(value: Any, read: Callable[[], None]) -> Any:
    if isinstance(value, np.ndarray):
        return Watched(value, read)
    return [_watched(v, read) for v in value] if isinstance(value, (list, tuple)) else value


def _has_arrays(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_arrays, value))
    return isinstance(value, np.ndarray) and value.size > 0
