"""Names of TensorFlow at which scripts begin: texts of both types, versions, loggers, `compat.v1`.

Lives here: the module `ow.compat`. Not here: devices and threads (tracing/config.py), tests (testing/test_case.py).
"""

from __future__ import annotations

import contextlib
import numbers
import os
import sys
from typing import Any

import numpy as np

from ..core.lazy_imports import MissingNameError, import_module

__all__ = [
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "dimension_at_index",
    "dimension_value",
    "forward_compatibility_horizon",
    "forward_compatible",
    "integral_types",
    "path_to_str",
    "real_types",
    "v1",
    "v2",
]

_ROOT = __name__.partition(".")[0]
sys.modules[f"{__name__}.v2"] = sys.modules[_ROOT]  # `import opwright.compat.v2 as tf`

bytes_or_text_types = (bytes, str)
complex_types = (numbers.Complex, np.number)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Return a text as bytes, bytes as they are. Raises TypeError for others."""
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Return bytes as a text, a text as it is. Raises TypeError for others."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Return bytes as a text, anything else as `str` shows it."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """Return a path as a text; anything else as it is."""
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


def dimension_value(dimension: Any) -> int | None:
    """Return a size of a shape: an int, or None if it is unknown."""
    value: int | None = getattr(dimension, "value", dimension)
    return value


def dimension_at_index(shape: Any, index: int) -> Any:
    """Return the size at an index of a shape, None if it is unknown."""
    return None if shape.rank is None else shape[index]


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Return False: operators are those of one version."""
    return False


def forward_compatibility_horizon(year: int, month: int, day: int) -> Any:
    """Return a context in which `forward_compatible` would be asked for another day; it answers False in all."""
    return contextlib.nullcontext()


def __getattr__(name: str) -> object:
    if name == "v1":
        return import_module(".v1", __name__)
    if name == "v2":
        return sys.modules[_ROOT]
    raise MissingNameError(__name__, name)
