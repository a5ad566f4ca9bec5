"""Array creation on the device of another array.

Lives here: `zeros`, `empty`, `full`, `arange`, `array`, `copy`, whose first argument determines the device; `on_host`.
Not here: devices and their arrays (devices/), results as tensors (scopes/bindings.py).

References create arrays by these functions, so that they run wherever their inputs are. On the host each is NumPy's
function, at a cost of 0.1 us.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def on_host(x: Any) -> bool:
    """Return whether x is an array of NumPy, not of a device."""
    return isinstance(x, np.ndarray) or not hasattr(x, "__array_function__")


def zeros(x: Any, shape: Any, dtype: Any) -> np.ndarray:
    """Return np.zeros on the device of x."""
    return np.zeros(shape, dtype) if type(x) is np.ndarray or on_host(x) else np.zeros(shape, dtype, like=x)


def empty(x: Any, shape: Any, dtype: Any) -> np.ndarray:
    """Return np.empty on the device of x."""
    return np.empty(shape, dtype) if type(x) is np.ndarray or on_host(x) else np.empty(shape, dtype, like=x)


def full(x: Any, shape: Any, value: Any, dtype: Any) -> np.ndarray:
    """Return np.full on the device of x."""
    return np.full(shape, value, dtype) if type(x) is np.ndarray or on_host(x) else np.full(shape, value, dtype, like=x)


def arange(x: Any, stop: int, dtype: Any = None) -> np.ndarray:
    """Return np.arange from 0 on the device of x."""
    return np.arange(stop, dtype=dtype) if type(x) is np.ndarray or on_host(x) else np.arange(stop, dtype=dtype, like=x)


def array(x: Any, values: np.ndarray) -> np.ndarray:
    """Return a host array on the device of x: itself on the host, a copy on a device."""
    return values if type(x) is np.ndarray or on_host(x) else np.asarray(values, like=x)


def copy(x: np.ndarray) -> np.ndarray:
    """Return a copy of x, as an array also for a number."""
    return np.array(x) if type(x) is np.ndarray or on_host(x) else x.copy()
