"""New arrays like those they are computed from: on the host for NumPy's, on its device for a device's.

Lives here: `zeros`, `empty`, `full`, `arange`, `array`, `copy`, which take the array whose place they share; `on_host`.
Not here: devices and their arrays (devices/), results as tensors (scopes/bindings.py).

A reference that fills an array of its own takes it from here; so it runs wherever its inputs are. On the host each is
NumPy's function, 0.1 us later.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def on_host(x: Any) -> bool:
    """Whether x is NumPy's: no array of a device."""
    return isinstance(x, np.ndarray) or not hasattr(x, "__array_function__")


def zeros(x: Any, shape: Any, dtype: Any) -> np.ndarray:
    """As np.zeros, beside x."""
    return np.zeros(shape, dtype) if type(x) is np.ndarray or on_host(x) else np.zeros(shape, dtype, like=x)


def empty(x: Any, shape: Any, dtype: Any) -> np.ndarray:
    """As np.empty, beside x."""
    return np.empty(shape, dtype) if type(x) is np.ndarray or on_host(x) else np.empty(shape, dtype, like=x)


def full(x: Any, shape: Any, value: Any, dtype: Any) -> np.ndarray:
    """As np.full, beside x."""
    return np.full(shape, value, dtype) if type(x) is np.ndarray or on_host(x) else np.full(shape, value, dtype, like=x)


def arange(x: Any, stop: int, dtype: Any = None) -> np.ndarray:
    """As np.arange from 0 on, beside x."""
    return np.arange(stop, dtype=dtype) if type(x) is np.ndarray or on_host(x) else np.arange(stop, dtype=dtype, like=x)


def array(x: Any, values: Any) -> Any:
    """An array of the host, beside x: itself on the host, which is not copied; a copy on a device."""
    return values if type(x) is np.ndarray or on_host(x) else np.asarray(values, like=x)


def copy(x: Any) -> Any:
    """A copy of x, an array also of a number."""
    return np.array(x) if type(x) is np.ndarray or on_host(x) else x.copy()
