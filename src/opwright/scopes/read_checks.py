"""Check which inputs a computation reads, by running it once more on proxies.

Lives here: the proxy, and the check of the switch `check_unused_inputs`.  Not here: when to check (execution.py).

An input that is never read should be in `shape_only`, so that its elements are not required, or should not be an input.
An input in `shape_only` that is read after all would lack its elements on another device.
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


class ReadProxy(NDArrayOperatorsMixin):
    """An array proxy that reports reads of its elements; shape and dtype are not reported."""

    def __init__(self, array: np.ndarray, read: Callable[[], None]) -> None:
        self._array, self._read = array, read
        self.shape, self.ndim, self.size, self.dtype = array.shape, array.ndim, array.size, array.dtype

    def __len__(self) -> int:
        return len(self._array)

    def __getattr__(self, name: str) -> object:
        self._read()
        return getattr(self._array, name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._read()
        return np.array(self._array, dtype) if copy else np.asarray(self._array, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> object:
        return getattr(ufunc, method)(*_unwrap(inputs), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> object:
        if function in _BY_SHAPE:
            return function(self._array, *args[1:], **kwargs)
        return function(*_unwrap(args), **{k: _unwrap(v) for k, v in kwargs.items()})

    def __getitem__(self, key: Any) -> object:
        self._read()
        return self._array[_unwrap(key)]

    def __iter__(self) -> object:
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


def _unwrap(value: Any) -> Any:
    """Return the arrays behind proxies, reported as read."""
    if isinstance(value, ReadProxy):
        value._read()
        return value._array
    if isinstance(value, (list, tuple)):
        return type(value)([_unwrap(v) for v in value])
    return value


def check_reads(op: Any, kernel: Callable[..., Any], arrays: Sequence[Any]) -> None:
    """Compute once more and check which inputs are read.

    raises PermissionDeniedError naming operator and input: for one that is never read, and for one in `shape_only` that
    is read
    """
    read: set[str] = set()
    proxies = [_proxies(a, functools.partial(read.add, name)) for name, a in zip(op.input_names, arrays)]
    try:
        _unwrap(dispatch.quietly(kernel, *proxies))  # an input returned unchanged counts as read
    except OpError:
        raise
    except Exception:  # the proxy's type broke the computation: assume that it reads all
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
        elif name not in read and _has_elements(array):
            raise PermissionDeniedError(
                op=op.name,
                what=f"input {name!r} is never read by compute",
                found="an initialized input whose elements are not read",
                wanted=f"shape_only = ({name!r},), or no such input",
            )


def _proxies(value: Any, read: Callable[[], None]) -> object:
    if isinstance(value, np.ndarray):
        return ReadProxy(value, read)
    return [_proxies(v, read) for v in value] if isinstance(value, (list, tuple)) else value


def _has_elements(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_elements, value))
    return isinstance(value, np.ndarray) and value.size > 0
