"""dtypes of NumPy's rules: of numbers, arrays and tensors, and conversions to them.

Lives here: `result_type`, conversions.  Not here: functions (elements.py, arrays.py, reductions.py).

Numbers without a dtype are int64 and float64, unless `experimental_enable_numpy_behavior(prefer_float32=True)` was
called; with a tensor they take its dtype, as NumPy's do.
"""

from __future__ import annotations

import numbers
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...core.dtypes import as_dtype
from ...ops import array as arrays
from ...ops import dispatch
from ...ops.tensor import TensorLike

preferences = SimpleNamespace(float32=False)
_NARROW = {np.dtype("float64"): np.dtype("float32"), np.dtype("int64"): np.dtype("int32")}


def preferred(dtype: Any) -> np.dtype:
    """Return the dtype of numbers that have none."""
    wide: np.dtype = np.dtype(dtype)
    return _NARROW.get(wide, wide) if preferences.float32 else wide


def kind_of(x: Any) -> Any:
    """Return the dtype of an array or tensor; a number itself, which takes another's dtype."""
    if isinstance(x, TensorLike):
        return x.dtype.np
    if isinstance(x, (np.ndarray, np.generic, np.dtype)):
        return x.dtype if not isinstance(x, np.dtype) else x
    if isinstance(x, type):
        return np.dtype(x)
    if isinstance(x, numbers.Number):
        return x
    if isinstance(x, (list, tuple)):
        kinds = [kind_of(part) for part in x]
        return preferred(np.result_type(*kinds)) if kinds else preferred(np.float64)
    return np.dtype(getattr(x, "as_numpy_dtype", None) or np.asarray(x).dtype)


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """Return the dtype to which NumPy promotes these arrays, tensors, numbers and dtypes."""
    kinds = [kind_of(x) for x in arrays_and_dtypes]
    result = np.result_type(*kinds)
    return (
        preferred(result) if all(isinstance(k, numbers.Number) and not hasattr(k, "dtype") for k in kinds) else result
    )


def promote_types(type1: Any, type2: Any) -> np.dtype:
    """Return the dtype to which NumPy promotes two."""
    return np.promote_types(kind_of(type1), kind_of(type2))


def to_tensor(x: Any, dtype: Any = None) -> Any:
    """Return a tensor of a dtype, by default of NumPy's for it."""
    kind = np.dtype(result_type(x) if dtype is None else kind_of(dtype))
    if isinstance(x, TensorLike):
        return x if x.dtype.np == kind else arrays.cast(x, as_dtype(kind))
    if isinstance(x, (list, tuple)) and any(isinstance(part, (TensorLike, list, tuple)) for part in x):
        return arrays.stack([to_tensor(part, kind) for part in x]) if x else dispatch.to_tensor(np.zeros(0, kind))
    return dispatch.to_tensor(np.asarray(x).astype(kind))


def to_floats(x: Any) -> Any:
    """Return a tensor, of the default floating-point dtype unless it is inexact."""
    tensor = to_tensor(x)
    return tensor if np.issubdtype(tensor.dtype.np, np.inexact) else to_tensor(tensor, preferred(np.float64))


def promoted(*xs: Any) -> list[Any]:
    """Return tensors of the common dtype."""
    dtype = result_type(*xs)
    return [to_tensor(x, dtype) for x in xs]


def promoted_floats(*xs: Any) -> list[Any]:
    return [to_floats(x) for x in promoted(*xs)]


def dtype_or(dtype: Any, *xs: Any) -> Any:
    """Return a dtype passed by the caller, or the one of xs."""
    return result_type(*xs) if dtype is None else np.dtype(kind_of(dtype))
