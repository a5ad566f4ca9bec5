"""Arrays of `ow.experimental.numpy`: made, shaped, indexed and joined.

Lives here: what needs more than a rule of dtypes.  Not here: tables of functions (elements.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import as_dtype
from ...nn import keras_ops as K
from ...ops import array as arrays
from ...ops import math as ow_math
from ...ops.tensor import TensorLike
from .dtypes import dtype_or, kind_of, preferred, promoted, promoted_floats, result_type, to_floats, to_tensor
from .elements import FUNCTIONS

__all__ = [
    *("arange", "array", "asanyarray", "asarray", "atleast_1d", "atleast_2d", "atleast_3d"),
    *("broadcast_arrays", "clip", "compress", "diag_indices", "einsum", "empty", "empty_like", "eye"),
    *("flatten", "full", "full_like", "geomspace", "identity", "ix_", "linspace", "logspace"),
    *("meshgrid", "ndim", "ones", "ones_like", "pad", "polyval", "select", "shape", "size", "take"),
    *("tri", "where", "zeros", "zeros_like"),
]

Prepared = Callable[..., Any]


def array(val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Any:
    """Return a tensor of numbers, arrays or tensors, nested or not."""
    result = to_tensor(val, dtype_or(dtype, val))
    missing = ndmin - (result.shape.rank or 0)
    return arrays.reshape(result, [1] * missing + list(result.shape)) if missing > 0 else result


def asarray(a: Any, dtype: Any = None) -> Any:
    """Return a tensor."""
    return to_tensor(a, dtype_or(dtype, a))


asanyarray = asarray


def _sizes(shape: Any) -> Any:
    return shape if isinstance(shape, (list, tuple, TensorLike)) else [shape]


def _filled(value: float, name: str) -> tuple[Prepared, Prepared]:
    def of_shape(shape: Any, dtype: Any = float) -> Any:
        return arrays.fill(_sizes(shape), to_tensor(value, preferred(dtype) if dtype is float else dtype))

    def like(a: Any, dtype: Any = None) -> Any:
        x = to_tensor(a)
        return arrays.fill(arrays.shape(x), to_tensor(value, dtype_or(dtype, x)))

    of_shape.__name__, like.__name__ = name, f"{name}_like"
    of_shape.__doc__ = f"Return a tensor of a shape filled with {value}."
    like.__doc__ = f"Return a tensor filled with {value}, of another's shape and dtype."
    return of_shape, like


zeros, zeros_like = _filled(0, "zeros")
ones, ones_like = _filled(1, "ones")
empty, empty_like = _filled(0, "empty")


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """Return a tensor of a shape filled with a value, or with values that broadcast."""
    return arrays.broadcast_to(to_tensor(fill_value, dtype_or(dtype, fill_value)), _sizes(shape))


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Any:
    """Return a tensor filled with a value, of another's shape and dtype."""
    x = to_tensor(a)
    return full(arrays.shape(x) if shape is None else shape, fill_value, dtype_or(dtype, x))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:
    """Return ones on a diagonal."""
    return to_tensor(np.eye(N, M, k), preferred(dtype) if dtype is float else dtype)


def identity(n: int, dtype: Any = float) -> Any:
    """Return the identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Return ones at and below a diagonal."""
    return to_tensor(np.tri(N, M, k), preferred(np.float64) if dtype is None else dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """Return numbers of a constant difference."""
    if stop is None:
        start, stop = 0, start
    return to_tensor(np.arange(start, stop, step), dtype_or(dtype, start, stop, step))


def _spaced(name: str) -> Prepared:
    def call(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, **kwargs: Any) -> Any:
        kind = to_floats(promoted(start, stop)[0]).dtype if dtype in (None, float) else as_dtype(kind_of(dtype))
        ends = [to_tensor(x, kind if kind.is_floating else np.float64) for x in (start, stop)]
        result = getattr(K, name)(*ends, num, endpoint=endpoint, **kwargs)
        return to_tensor(result, kind.np)

    call.__name__, call.__doc__ = name, f"Return `numpy.{name}` between tensors."
    return call


logspace, geomspace = _spaced("logspace"), _spaced("geomspace")


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = float,
    axis: int = 0,
) -> Any:
    """Return numbers of a constant difference. retstep: and the difference."""
    result = _spaced("linspace")(start, stop, num, endpoint, dtype, axis=axis)
    if not retstep:
        return result
    low, high = promoted_floats(start, stop)
    return result, (high - low) / to_tensor(max(num - bool(endpoint), 1), low.dtype.np)


def shape(a: Any) -> Any:
    """Return the sizes: an array if they are known."""
    x = to_tensor(a)
    return np.array(x.shape.as_list()) if x.shape.is_fully_defined() else arrays.shape(x)


def ndim(a: Any) -> Any:
    """Return the number of dimensions."""
    return to_tensor(a).shape.rank


def size(x: Any, axis: int | None = None) -> Any:
    """Return the number of elements."""
    sizes = shape(x)
    return np.prod(sizes) if axis is None and isinstance(sizes, np.ndarray) else arrays.size(to_tensor(x))


def flatten(a: Any, order: str = "C") -> Any:
    """Return the elements as a vector."""
    x = to_tensor(a)
    return arrays.reshape(arrays.transpose(x) if order == "F" else x, [-1])


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "clip") -> Any:
    """Return elements by index. mode: "clip" or "wrap" of indices that are out of range."""
    x = to_tensor(a)
    x, axis = (arrays.reshape(x, [-1]), 0) if axis is None else (x, axis)
    places, count = to_tensor(indices, np.int64), arrays.shape(x, "int64")[axis]
    places = ow_math.floormod(places, count) if mode == "wrap" else arrays.where(places < 0, places + count, places)
    return arrays.gather(x, ow_math.minimum(ow_math.maximum(places, arrays.zeros_like(places)), count - 1), axis=axis)


def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """Return the elements, or slices along an axis, where a vector is true."""
    x, kept = to_tensor(a), to_tensor(condition, np.bool_)
    x, axis = (arrays.reshape(x, [-1]), 0) if axis is None else (x, axis)
    return arrays.gather(x, arrays.reshape(arrays.where(kept), [-1]), axis=axis)


def _at_least(count: int) -> Prepared:
    def call(*arys: Any) -> Any:
        def one(x: Any) -> Any:
            x = to_tensor(x)
            rank, sizes = x.shape.rank, list(x.shape)
            if rank >= count:
                return x
            if count == 3 and rank == 2:
                return arrays.expand_dims(x, -1)
            if count == 3 and rank == 1:
                return arrays.reshape(x, [1, -1, 1])
            return arrays.reshape(x, [1] * (count - rank) + sizes)

        results = [one(x) for x in arys]
        return results[0] if len(results) == 1 else results

    call.__name__, call.__doc__ = f"atleast_{count}d", f"Return tensors with {count} or more dimensions."
    return call


atleast_1d, atleast_2d, atleast_3d = map(_at_least, (1, 2, 3))


def broadcast_arrays(*args: Any, **kwargs: Any) -> list[Any]:
    """Return tensors broadcast to a common shape."""
    tensors = [to_tensor(x) for x in args]
    common = functools.reduce(arrays.broadcast_dynamic_shape, [arrays.shape(x) for x in tensors])
    return [arrays.broadcast_to(x, common) for x in tensors]


def meshgrid(*xi: Any, **kwargs: Any) -> list[Any]:
    """Return coordinates of a grid. sparse, copy: without effect but for their values False and True."""
    kwargs = {k: v for k, v in kwargs.items() if k == "indexing"}
    return list(arrays.meshgrid(*[to_tensor(x) for x in xi], **kwargs))


def diag_indices(n: int, ndim: int = 2) -> list[Any]:
    """Return the indices of the main diagonal."""
    return [arange(n, dtype=np.int32)] * ndim


def ix_(*args: Any) -> list[Any]:
    """Return vectors that index a grid."""
    rank = len(args)
    vectors = [to_tensor(x) for x in args]
    places = [arrays.reshape(arrays.where(v), [-1]) if v.dtype.is_bool else v for v in vectors]
    return [arrays.reshape(v, [-1 if i == j else 1 for j in range(rank)]) for i, v in enumerate(places)]


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return elements of x where a condition holds and of y elsewhere; or the indices of true elements."""
    condition = to_tensor(condition, np.bool_)
    if x is None and y is None:
        return FUNCTIONS["nonzero"](condition)
    return arrays.where(condition, *promoted(x, y))


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Return elements of the first choice whose condition holds."""
    *choices, result = promoted(*choicelist, default)
    for condition, choice in reversed(list(zip(condlist, choices))):
        result = arrays.where(to_tensor(condition, np.bool_), choice, result)
    return result


def pad(array: Any, pad_width: Any, mode: str, **kwargs: Any) -> Any:
    """Return a tensor with borders. mode: "constant", "reflect" or "symmetric"."""
    return K.pad(to_tensor(array), pad_width, mode, **kwargs)


def clip(a: Any, a_min: Any, a_max: Any) -> Any:
    """Return elements within limits."""
    bounds = [x for x in (a_min, a_max) if x is not None]
    dtype = result_type(a, *bounds)
    x = to_tensor(a, dtype)
    x = x if a_min is None else ow_math.maximum(x, to_tensor(a_min, dtype))
    return x if a_max is None else ow_math.minimum(x, to_tensor(a_max, dtype))


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Any:
    """Return a sum of products by subscripts."""
    return K.einsum(subscripts, *promoted(*operands))


def polyval(p: Any, x: Any) -> Any:
    """Return the value of a polynomial by Horner's rule; the highest power's coefficient is the first."""
    coefficients, points = promoted(p, x)
    result = arrays.zeros_like(points)
    for coefficient in arrays.unstack(coefficients):
        result = result * points + coefficient
    return result
