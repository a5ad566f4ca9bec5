"""Reductions, comparisons and random numbers of `ow.experimental.numpy`.

Lives here: sums and their dtypes, means, tolerances, `random`.  Not here: functions of elements (elements.py).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ...core.dtypes import as_dtype
from ...nn import keras_ops as K
from ...ops import array as arrays
from ...ops import dispatch
from ...ops import math as ow_math
from ...ops import random as random_ops
from ...ops.tensor import TensorLike
from .arrays import _sizes
from .dtypes import dtype_or, kind_of, preferences, preferred, promoted, promoted_floats, to_floats, to_tensor

__all__ = [
    *("allclose", "array_equal", "average", "cumprod", "cumsum", "isclose", "iscomplex"),
    *("iscomplexobj", "isrealobj", "isscalar", "mean", "nanmean", "nanprod", "nansum", "prod"),
    *("random", "std", "sum", "trace", "var"),
]


def _summand(a: Any, dtype: Any) -> Any:
    """Return a tensor in which NumPy adds: integers at least as wide as int64."""
    x = to_tensor(a)
    kind = x.dtype.np
    if dtype is not None:
        return to_tensor(x, np.dtype(kind_of(dtype)))
    if kind.kind in "bi" and kind.itemsize < 8:
        return to_tensor(x, preferred(np.int64))
    return to_tensor(x, np.uint64) if kind.kind == "u" and kind.itemsize < 8 and not preferences.float32 else x


def sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Any:
    """Return sums."""
    return ow_math.reduce_sum(_summand(a, dtype), axis, bool(keepdims))


def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Any:
    """Return products."""
    return ow_math.reduce_prod(_summand(a, dtype), axis, bool(keepdims))


def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Return sums up to each element."""
    return K.cumsum(_summand(a, dtype), axis)


def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Return products up to each element."""
    return K.cumprod(_summand(a, dtype), axis)


def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = None) -> Any:
    """Return means."""
    return ow_math.reduce_mean(to_floats(a) if dtype is None else to_tensor(a, dtype), axis, bool(keepdims))


def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: Any = None) -> Any:
    """Return variances. ddof: subtracted from the number of elements."""
    x = to_floats(a) if dtype is None else to_tensor(a, dtype)
    squares = ow_math.square(ow_math.abs(x - ow_math.reduce_mean(x, axis, True)))
    if not ddof:
        return ow_math.reduce_mean(squares, axis, bool(keepdims))
    total = ow_math.reduce_sum(squares, axis, bool(keepdims))
    count = arrays.size(squares) // ow_math.maximum(arrays.size(total), 1) - ddof
    return total / arrays.cast(count, total.dtype)


def std(a: Any, axis: Any = None, keepdims: Any = None) -> Any:
    """Return standard deviations."""
    return ow_math.sqrt(var(a, axis, keepdims=keepdims))


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """Return weighted means. returned: and sums of weights."""
    x = to_floats(a)
    if weights is None:
        result = mean(x, axis)
        count = arrays.fill(arrays.shape(result), arrays.cast(arrays.size(x) // arrays.size(result), result.dtype))
        return (result, count) if returned else result
    w = to_tensor(weights, x.dtype.np)
    if axis is not None and w.shape.rank != x.shape.rank:
        w = arrays.reshape(w, [-1 if i == axis % x.shape.rank else 1 for i in range(x.shape.rank)])
    total = ow_math.reduce_sum(arrays.broadcast_to(w, arrays.shape(x)), axis)
    result = ow_math.reduce_sum(x * w, axis) / total
    return (result, total) if returned else result


def _without_nan(x: Any, value: float) -> Any:
    return arrays.where(ow_math.is_nan(x), to_tensor(value, x.dtype.np), x)


def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Return sums in which NaN counts as 0."""
    return sum(_without_nan(to_floats(a), 0), axis, dtype, keepdims)


def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Return products in which NaN counts as 1."""
    return prod(_without_nan(to_floats(a), 1), axis, dtype, keepdims)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Any:
    """Return means without NaN."""
    x = to_floats(a)
    count = ow_math.reduce_sum(arrays.cast(~ow_math.is_nan(x), x.dtype), axis, bool(keepdims))
    return nansum(x, axis, dtype, bool(keepdims)) / count


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """Return the sum of a diagonal."""
    x = _summand(a, dtype) if offset else to_tensor(a, dtype_or(dtype, a))
    return ow_math.reduce_sum(K.diagonal(x, offset, axis1, axis2), -1)


# ---- comparisons ----


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Return whether elements are equal within tolerances."""
    first, second = promoted_floats(a, b)
    return K.isclose(first, second, rtol, atol, equal_nan)


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Return whether all elements are equal within tolerances."""
    return ow_math.reduce_all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any) -> Any:
    """Return whether shapes and all elements are equal."""
    a, b = promoted(a1, a2)
    same = a.shape.is_compatible_with(b.shape)
    return ow_math.reduce_all(ow_math.equal(a, b)) if same else dispatch.to_tensor(False)


def iscomplex(x: Any) -> Any:
    """Return whether elements have an imaginary part."""
    return ow_math.not_equal(K.imag(to_tensor(x)), 0)


def iscomplexobj(x: Any) -> bool:
    """Return whether the dtype is complex."""
    return bool(np.issubdtype(to_tensor(x).dtype.np, np.complexfloating))


def isrealobj(x: Any) -> bool:
    """Return whether the dtype is not complex."""
    return not iscomplexobj(x)


def isscalar(num: Any) -> bool:
    """Return whether it is a number or a tensor without dimensions."""
    return num.shape.rank == 0 if isinstance(num, TensorLike) else bool(np.isscalar(num))


# ---- random numbers ----


def _uniform(low: float = 0.0, high: float = 1.0, size: Any = None) -> Any:
    sizes = list(_sizes(() if size is None else size))
    return random_ops.uniform(sizes, low, high, as_dtype(preferred(float)))


def _integers(low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
    low, high = (0, low) if high is None else (low, high)
    return to_tensor(random_ops.uniform(list(_sizes(() if size is None else size)), low, high, "int64"), dtype)


def _poisson(lam: Any = 1.0, size: Any = None) -> Any:
    return random_ops.poisson(list(_sizes(() if size is None else size)), to_tensor(lam, np.float64), dtype="int64")


def _normal(size: Any = None) -> Any:
    return random_ops.normal(list(_sizes(() if size is None else size)), dtype=as_dtype(preferred(float)))


random = SimpleNamespace(
    seed=random_ops.set_seed,
    uniform=_uniform,
    random=lambda size=None: _uniform(size=size),
    rand=lambda *sizes: _uniform(size=sizes),
    randn=lambda *sizes: _normal(sizes),
    standard_normal=_normal,
    randint=_integers,
    poisson=_poisson,
)
