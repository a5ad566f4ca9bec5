"""The array namespace: functions of the kernel language, on NumPy arrays.

Lives here: these functions, their contract.  Not here: the kernel language itself (compiler/language), formulas.

A formula that NumPy and machine code share is a function whose first parameter is a namespace:

    def high_product(m, a, b):
        return m.minimum((a * b + (1 << 30)) >> 31, GREATEST)

    high_product(numpy_namespace, a, b)    computes it on arrays
    high_product(kl, a, b)                 writes its instructions, in a kernel that is being staged

What such a formula may use, since both namespaces give it the same meaning:

* the names in `__all__`, with the positional parameters they have here, and dtypes of `core.dtypes` under the
  language's names (`m.i64`);
* of values of one dtype, or a value and a Python number, `+ - * & | ^ << >>`, `-x`, `~x` and comparisons; of floats
  `/` too. Integers wrap. A shift's left operand is a value and its right one lies within [0, bits of the dtype);
* Python's `if`, `for` and arithmetic on Python's own numbers alone. Among values `select` chooses, of whose operands
  one at least is a value. Values are broadcast, never indexed; no formula asks for their shape or changes them.

Division of integers has a name, `truncated_quotient`, since `//` rounds down here and toward zero there. Integers are
the same to the bit in both namespaces; of floats every function here rounds as IEEE 754 has it, but `fma`.
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


def full(dtype: DType, count: int, x: Any) -> Any:
    """Return `count` elements of a number; count 0: the number."""
    return np.full(count, x, dtype.np) if count else dtype.as_numpy_dtype(x)


def zeros(dtype: DType, count: int = 0) -> Any:
    """Return `count` elements of 0."""
    return full(dtype, count, 0)


def full_like(x: Any, number: Any, dtype: DType | None = None) -> Any:
    """Return a number of x's dtype, or of another, which broadcasts to x."""
    return (dtype or type_of(x)).as_numpy_dtype(number)


def type_of(x: Any) -> DType:
    """Return the dtype of a value."""
    return dtypes.as_dtype(x.dtype)


def value(x: Any, dtype: DType = i64) -> Any:
    """Return a Python number as a value of this dtype; a value as it is."""
    return dtype.as_numpy_dtype(x) if isinstance(x, int | float) else x


# ---- choices --------------------------------------------------------------------------------------------------------


def select(mask: Any, a: Any, c: Any) -> Any:
    """Return a where the mask holds, else c."""
    return np.where(mask, a, c)


def minimum(a: Any, c: Any) -> Any:
    """Return the smaller; of floats c if one is NaN."""
    return np.where(a < c, a, c) if _of_floats(a, c) else np.minimum(a, c)


def maximum(a: Any, c: Any) -> Any:
    """Return the larger; of floats c if one is NaN."""
    return np.where(a > c, a, c) if _of_floats(a, c) else np.maximum(a, c)


def clamp(x: Any, low: Any, high: Any) -> Any:
    """Clamp x to [low, high], low <= high; of floats low if x is NaN."""
    return minimum(maximum(x, low), high) if _of_floats(x, low, high) else np.clip(x, low, high)


def _of_floats(*values: Any) -> bool:
    """Return whether the values are floats, by those with a dtype: Python numbers follow them."""
    return any(x.dtype.kind not in "iub" for x in values if hasattr(x, "dtype"))


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def fma(a: Any, c: Any, d: Any) -> Any:
    """Compute a * c + d; rounded twice here, once in the kernel language if the processor can."""
    return a * c + d


def abs(x: Any) -> Any:
    """Compute |x|; the smallest integer stays."""
    return np.abs(x)


def truncated_quotient(a: Any, c: Any) -> Any:
    """Compute a / c of integers, rounded toward zero; c is not 0, nor -1 for the smallest integer."""
    return (a - np.fmod(a, c)) // c


def sqrt(x: Any) -> Any:
    """Compute the square root, correctly rounded."""
    return np.sqrt(x)


def round_even(x: Any) -> Any:
    """Round to the nearest integer, ties to even, as a float."""
    return np.rint(x)


def floor(x: Any) -> Any:
    """Round down to an integer."""
    return np.floor(x)


def ceil(x: Any) -> Any:
    """Round up to an integer."""
    return np.ceil(x)


def trunc(x: Any) -> Any:
    """Round toward zero to an integer, as a float."""
    return np.trunc(x)


# ---- other dtypes, tables -------------------------------------------------------------------------------------------


def convert(x: Any, dtype: DType) -> Any:
    """Extend or truncate integers, round floats; convert floats in range to integers, toward zero."""
    return x.astype(dtype.np, copy=False)


def to_int(x: Any) -> Any:
    """Round float32 within int32's range to int32, ties to even."""
    return np.rint(x).astype(np.int32)


def bitcast(x: Any, dtype: DType) -> Any:
    """Reinterpret the bits as another dtype of the same size."""
    return x.view(dtype.np)


def gather(table: Any, indices: Any) -> Any:
    """Return the elements at these indices, which are within the table."""
    return table[indices]


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
