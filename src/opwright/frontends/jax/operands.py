"""Shapes, dtypes and constants of values, and the forms in which rules pass them to operators.

Lives here: functions of values, which are arrays or tensors. Not here: the table of rules (execution.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, as_dtype
from ...ops import array, dispatch
from ...ops.tensor import TensorLike
from ..importing import tensor_of


def dtype_of(value: Any) -> DType:
    """Return the dtype of an array or tensor."""
    return value.dtype if isinstance(value, TensorLike) else as_dtype(np.asarray(value).dtype)


def dims(value: Any) -> tuple[int, ...]:
    """Return the sizes of an array or tensor; shapes of jaxprs are static."""
    sizes: Any = value.shape if isinstance(value, TensorLike) else np.shape(value)
    return tuple(int(d) for d in sizes)


def is_uniform(value: Any) -> bool:
    """Return whether a value is an array that repeats one element by strides of 0."""
    return isinstance(value, np.ndarray) and value.size > 1 and not any(value.strides)


def one_element(value: Any) -> np.ndarray:
    """Return a uniform array's element as an array of the same rank, every size 1."""
    return np.asarray(value)[(slice(0, 1),) * np.ndim(value)]


def operands(inputs: Sequence[Any]) -> list[Any]:
    """Return element-wise operands as tensors; repeated elements stay one element, which operators broadcast."""
    shaped = any(not is_uniform(v) and np.ndim(v) > 0 for v in inputs if isinstance(v, np.ndarray)) or any(
        isinstance(v, TensorLike) and dims(v) for v in inputs
    )
    return [tensor_of(one_element(v) if shaped and is_uniform(v) else v) for v in inputs]


def like(number: Any, value: Any) -> Any:
    """Return a number as a scalar constant of a value's dtype."""
    return dispatch.to_tensor(np.asarray(number, dtype_of(value).as_numpy_dtype))


def cast(value: Any, dtype: Any) -> Any:
    """Return a value as another dtype, unchanged if it has that dtype."""
    return value if dtype_of(value) is as_dtype(dtype) else array.cast(tensor_of(value), as_dtype(dtype))


def reshape(value: Any, shape: Sequence[int]) -> Any:
    """Return a value in another shape, unchanged if it has that shape; arrays stay arrays."""
    if dims(value) == tuple(shape):
        return value
    if isinstance(value, np.ndarray):
        return value.reshape(shape) if not is_uniform(value) else np.broadcast_to(value.flat[0], shape)
    return array.reshape(value, list(shape))


def transpose(value: Any, permutation: Sequence[int]) -> Any:
    """Return a value with its axes in another order, unchanged if it is the same order."""
    if list(permutation) == list(range(len(permutation))):
        return value
    if isinstance(value, np.ndarray):
        return value.transpose(permutation)
    return array.transpose(value, list(permutation))


def broadcast(value: Any, shape: Sequence[int]) -> Any:
    """Return a value broadcast to a shape; arrays become views."""
    if dims(value) == tuple(shape):
        return value
    if isinstance(value, np.ndarray):
        return np.broadcast_to(value, shape)
    return array.broadcast_to(value, list(shape))
