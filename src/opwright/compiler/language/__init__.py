"""The kernel language: Python functions that compile to machine code with loops and vectors.

Lives here: the names that kernels use. The modules of staging are imported when a kernel is staged: a process that
finds its kernels in the cache needs only their names.

    from opwright.compiler import language as kl
    from opwright.compiler.language import f32, i64, ptr

    @kl.family
    def scale(work, x: ptr[f32], y: ptr[f32], n: i64, factor: f32):
        ...
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes as _dtypes
from ...core.lazy_imports import lazily
from ...scalar.table import FUNCTIONS
from .parameters import ptr as _ptr

ptr: Any = _ptr  # checkers read __init__.pyi
f16: Any = _dtypes.float16
bf16: Any = _dtypes.bfloat16
f32: Any = _dtypes.float32
f64: Any = _dtypes.float64
i8: Any = _dtypes.int8
u8: Any = _dtypes.uint8
i16: Any = _dtypes.int16
u16: Any = _dtypes.uint16
i32: Any = _dtypes.int32
u32: Any = _dtypes.uint32
i64: Any = _dtypes.int64
u64: Any = _dtypes.uint64
bool1: Any = _dtypes.bool

_of_modules, __dir__, _lazy_names = lazily(__name__)
__all__ = [
    *_lazy_names,
    "bf16",
    "bool1",
    "f16",
    "f32",
    "f64",
    "i16",
    "i32",
    "i64",
    "i8",
    "ptr",
    "u16",
    "u32",
    "u64",
    "u8",
]


def __getattr__(name: str) -> Any:
    """Return a name of the modules, or the function of a row of the table of scalar functions."""
    row = FUNCTIONS.get(name)
    if row is None or name in _lazy_names:
        return _of_modules(name)
    from .operators import function_of  # which needs llvmlite

    function = function_of(row)
    globals()[name] = function
    return function
