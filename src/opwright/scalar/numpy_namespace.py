"""The array namespace: functions of the kernel language, on NumPy arrays.

Lives here: these functions, and the contract of formulas.  Not here: the kernel language (compiler/language), formulas
(formulas.py).

A formula shared by NumPy and machine code is a function whose first parameter is a namespace:

    def high_product(m, a, b):
        return m.minimum((a * b + (1 << 30)) >> 31, GREATEST)

    high_product(numpy_namespace, a, b)    computes it on arrays
    high_product(kl, a, b)                 emits its instructions into the kernel being traced

A formula may use the following, which have the same meaning in both namespaces:

* the names in `__all__`, with the positional parameters that they have here, and dtypes of `core.dtypes` under the
  names of the kernel language (`m.i64`);
* `+ - * & | ^ << >>`, `-x`, `~x` and comparisons of values of one dtype, or of a value and a Python number; `/` of
  floats. Integers wrap. The left operand of a shift is a value, the right one is within [0, bits of the dtype);
* Python's `if`, `for` and arithmetic on Python numbers only. `select` chooses between values; at least one of its
  operands is a value. Values are broadcast, never indexed; formulas neither read their shapes nor modify them.

Integer division is `truncated_quotient`, since `//` rounds down in NumPy and toward zero in kernels. Results of
integers are identical in both namespaces; functions of floats round as IEEE 754 specifies, except for `fma`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType

bool1 = dtypes.bool
i8, i16, i32, i64 = dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64
u8, u16, u32, u64 = dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64
f16, bf16, f32, f64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64


def full(dtype: DType, count: int, x: Any) -> np.ndarray:
    """Return `count` elements of a number; count 0: the number."""
    return np.full(count, x, dtype.np) if count else dtype.as_numpy_dtype(x)


def zeros(dtype: DType, count: int = 0) -> np.ndarray:
    """Return `count` elements of 0."""
    return full(dtype, count, 0)


def full_like(x: np.ndarray, number: Any, dtype: DType | None = None) -> np.ndarray:
    """Return a number of x's dtype, or of another, which broadcasts to x."""
    result: np.ndarray = (dtype or type_of(x)).as_numpy_dtype(number)
    return result


def type_of(x: np.ndarray) -> DType:
    """Return the dtype of a value."""
    return dtypes.as_dtype(x.dtype)


def value(x: Any, dtype: DType = i64) -> np.ndarray:
    """Return a Python number as a value of this dtype; a value as it is."""
    result: np.ndarray = dtype.as_numpy_dtype(x) if isinstance(x, int | float) else x
    return result


# ---- choices --------------------------------------------------------------------------------------------------------


def select(mask: Any, a: Any, c: Any) -> np.ndarray:
    """Return a where the mask holds, else c."""
    result: np.ndarray = np.where(mask, a, c)
    return result


def minimum(a: Any, c: Any) -> np.ndarray:
    """Return the smaller; of floats c if one is NaN."""
    result: np.ndarray = np.where(a < c, a, c) if _of_floats(a, c) else np.minimum(a, c)
    return result


def maximum(a: Any, c: Any) -> np.ndarray:
    """Return the larger; of floats c if one is NaN."""
    result: np.ndarray = np.where(a > c, a, c) if _of_floats(a, c) else np.maximum(a, c)
    return result


def clamp(x: Any, low: Any, high: Any) -> np.ndarray:
    """Clamp x to [low, high], low <= high; of floats low if x is NaN."""
    return minimum(maximum(x, low), high) if _of_floats(x, low, high) else np.clip(x, low, high)


def _of_floats(*values: Any) -> bool:
    """Return whether the values are floats, by those with a dtype: Python numbers follow them."""
    return any(x.dtype.kind not in "iub" for x in values if hasattr(x, "dtype"))


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def fma(a: Any, c: Any, d: Any) -> np.ndarray:
    """Compute a * c + d; rounded twice here, once in the kernel language if the processor can."""
    result: np.ndarray = a * c + d
    return result


def abs(x: Any) -> np.ndarray:
    """Compute |x|; the smallest integer stays."""
    result: np.ndarray = np.abs(x)
    return result


def truncated_quotient(a: Any, c: Any) -> np.ndarray:
    """Compute a / c of integers, rounded toward zero; c is not 0, nor -1 for the smallest integer."""
    result: np.ndarray = (a - np.fmod(a, c)) // c
    return result


def sqrt(x: Any) -> np.ndarray:
    """Compute the square root, correctly rounded."""
    result: np.ndarray = np.sqrt(x)
    return result


def round_even(x: Any) -> np.ndarray:
    """Round to the nearest integer, ties to even, as a float."""
    result: np.ndarray = np.rint(x)
    return result


def floor(x: Any) -> np.ndarray:
    """Round down to an integer."""
    result: np.ndarray = np.floor(x)
    return result


def ceil(x: Any) -> np.ndarray:
    """Round up to an integer."""
    result: np.ndarray = np.ceil(x)
    return result


def trunc(x: Any) -> np.ndarray:
    """Round toward zero to an integer, as a float."""
    result: np.ndarray = np.trunc(x)
    return result


# ---- other dtypes, tables -------------------------------------------------------------------------------------------


def convert(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Extend or truncate integers, round floats; convert floats in range to integers, toward zero."""
    return x.astype(dtype.np, copy=False)


def to_int(x: np.ndarray) -> np.ndarray:
    """Round float32 within int32's range to int32, ties to even."""
    result: np.ndarray = np.rint(x).astype(np.int32)
    return result


def bitcast(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Reinterpret the bits as another dtype of the same size."""
    return x.view(dtype.np)


def gather(table: np.ndarray, indices: Any) -> np.ndarray:
    """Return the elements at these indices, which are within the table."""
    result: np.ndarray = table[indices]
    return result


__all__ = [
    "abs",
    "bf16",
    "bitcast",
    "bool1",
    "ceil",
    "clamp",
    "convert",
    "f16",
    "f32",
    "f64",
    "floor",
    "fma",
    "full",
    "full_like",
    "gather",
    "i8",
    "i16",
    "i32",
    "i64",
    "maximum",
    "minimum",
    "round_even",
    "select",
    "sqrt",
    "to_int",
    "trunc",
    "truncated_quotient",
    "type_of",
    "u8",
    "u16",
    "u32",
    "u64",
    "value",
    "zeros",
]
