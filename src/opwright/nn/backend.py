"""Global defaults of layers: dtype of weights, epsilon, image data format.

Lives here: the part of `keras.backend` that sets them.  Not here: operators.
"""

from __future__ import annotations

from typing import Any

from ..core.dtypes import as_dtype
from ..core.lazy_imports import MissingNameError, import_module
from ..optimizers.state import reset_names
from . import configuration

_HOMES = {"is_keras_tensor": ".utils", "result_type": ".keras_ops.promotion"}  # which import this module

__all__ = [
    "backend",
    "clear_session",
    "epsilon",
    "floatx",
    "get_uid",
    "image_data_format",
    "is_float_dtype",
    "is_int_dtype",
    "is_keras_tensor",  # noqa: F822  by __getattr__
    "result_type",  # noqa: F822
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
    "standardize_dtype",
]

_SETTINGS: dict[str, Any] = {"epsilon": 1e-7, "floatx": "float32", "image_data_format": "channels_last"}

LIMITS: dict[str, int | None] = {"epochs": None, "steps_per_epoch": None}
"""The most epochs of `fit`, and steps of an epoch, of `evaluate` and of `predict`; None: no limit."""


def epsilon() -> float:
    """Return the constant that prevents divisions by zero and logarithms of zero; 1e-7 by default."""
    return float(_SETTINGS["epsilon"])


def set_epsilon(value: float) -> None:
    """Set the constant returned by `epsilon`."""
    _SETTINGS["epsilon"] = float(value)


def floatx() -> str:
    """Return the default dtype of weights; "float32" unless set."""
    return str(_SETTINGS["floatx"])


def set_floatx(value: str) -> None:
    """Set the default floating dtype of weights. Raises ValueError for other dtypes."""
    if value not in ("float16", "bfloat16", "float32", "float64"):
        raise ValueError(f"Unknown `floatx` value: {value}. Expected one of float16, bfloat16, float32, float64")
    _SETTINGS["floatx"] = as_dtype(value).name


def image_data_format() -> str:
    """Return the default data format of images; "channels_last" unless set."""
    return str(_SETTINGS["image_data_format"])


def set_image_data_format(data_format: str) -> None:
    """Set the default data format, "channels_last" or "channels_first". Raises ValueError for other values."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"Unknown data_format: {data_format}. Expected one of channels_last, channels_first")
    _SETTINGS["image_data_format"] = data_format


def clear_session(free_memory: bool = True) -> None:
    """Reset the counters that number names of layers and optimizers."""
    configuration.reset()
    reset_names()


def get_uid(prefix: str = "") -> int:
    """Return how often this was called with a prefix, from 1, since `clear_session`."""
    return configuration.count_of(prefix)


def standardize_dtype(dtype: Any) -> str:
    """Return the name of a dtype: of this package, NumPy's, Python's, or `floatx` for None. Raises ValueError."""
    if dtype is None:
        return floatx()
    try:
        return as_dtype(dtype).name
    except TypeError as error:
        raise ValueError(f"Invalid dtype: {dtype}") from error


def is_float_dtype(dtype: Any) -> bool:
    """Return whether a dtype is one of floating-point numbers."""
    return as_dtype(dtype).is_floating


def is_int_dtype(dtype: Any) -> bool:
    """Return whether a dtype is one of integers."""
    return as_dtype(dtype).is_integer


def backend() -> str:
    """Return the name of the library that computes, "opwright": programs that ask for another take their other way."""
    return "opwright"


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __package__), name)
    raise MissingNameError(__name__, name)
