"""Shapes, dtypes and constants of values, and the forms in which rules pass them to operators.

Lives here: functions of values, which are arrays or tensors. Not here: the table of rules (execution.py), the meaning
of open sizes (sizes.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, as_dtype
from ...ops import array, dispatch
from ...ops.tensor import TensorLike
from ..importing import tensor_of
from .sizes import CURRENT, Repeated, dense, is_open, open_sizes


def dtype_of(value: Any) -> DType:
    """Return the dtype of an array or tensor."""
    value = value.value if isinstance(value, Repeated) else value
    return value.dtype if isinstance(value, TensorLike) else as_dtype(np.asarray(value).dtype)


def dims(value: Any) -> tuple[Any, ...]:
    """Return the sizes of an array or tensor: integers, and expressions of JAX for open ones."""
    if isinstance(value, Repeated):
        return value.shape
    if not isinstance(value, TensorLike):
        return np.shape(value)
    sizes: Any = value.shape.dims
    if sizes is None or None in sizes:
        return open_sizes().shape_of(value)
    return tuple(int(d) for d in sizes)


def dims_if_known(value: Any) -> tuple[Any, ...] | None:
    """Return the sizes, or None if some are open and have no expression: those of a result within a rule."""
    sizes = CURRENT.get()
    is_tensor = sizes is not None and isinstance(value, TensorLike)
    return sizes.shape_if_known(value) if sizes is not None and is_tensor else dims(value)


def like_shape(value: Any, source: Any) -> Any:
    """Return a tensor that has the sizes of another, whether known or not."""
    shape = dims_if_known(source)
    return value if shape is None else sized(value, shape)


def batched(value: Any, batch: Any) -> Any:
    """Return a tensor whose first size is `batch` and whose others are not open."""
    shape = value.shape.dims
    return value if shape is None or None in shape[1:] else sized(value, [batch, *shape[1:]])


def sized(value: Any, shape: Sequence[Any]) -> Any:
    """Return a tensor of a shape, whose open sizes its operator does not know."""
    return open_sizes().note(value, shape) if is_open(shape) else value


def is_uniform(value: Any) -> bool:
    """Return whether a value is an array that repeats one element by strides of 0."""
    return isinstance(value, np.ndarray) and value.size > 1 and not any(value.strides)


def one_element(value: Any) -> np.ndarray:
    """Return a uniform array's element as an array of the same rank, every size 1."""
    return np.asarray(value)[(slice(0, 1),) * np.ndim(value)]


def operands(inputs: Sequence[Any]) -> list[Any]:
    """Return element-wise operands as tensors; repeated elements stay one element, which operators broadcast."""
    if any(isinstance(v, Repeated) for v in inputs):
        whole = any(isinstance(v, TensorLike) and dims(v) for v in inputs)
        inputs = [v.value if whole and isinstance(v, Repeated) else dense(v) for v in inputs]
    shaped = any(not is_uniform(v) and np.ndim(v) > 0 for v in inputs if isinstance(v, np.ndarray)) or any(
        isinstance(v, TensorLike) and dims(v) for v in inputs
    )
    return [tensor_of(one_element(v) if shaped and is_uniform(v) else v) for v in inputs]


def like(number: Any, value: Any) -> Any:
    """Return a number as a scalar constant of a value's dtype."""
    return dispatch.to_tensor(np.asarray(number, dtype_of(value).as_numpy_dtype))


def cast(value: Any, dtype: Any) -> Any:
    """Return a value as another dtype, unchanged if it has that dtype."""
    if dtype_of(value) is as_dtype(dtype):
        return value
    return like_shape(array.cast(tensor_of(value), as_dtype(dtype)), value)


def reshape(value: Any, shape: Sequence[int]) -> Any:
    """Return a value in another shape, unchanged if it has that shape; arrays stay arrays."""
    if dims_if_known(value) == tuple(shape):
        return value
    if is_open(shape):
        return sized(array.reshape(tensor_of(value), open_sizes().target(shape)), shape)
    if isinstance(value, np.ndarray):
        return value.reshape(shape) if not is_uniform(value) else np.broadcast_to(value.flat[0], shape)
    return array.reshape(value, list(shape))


def transpose(value: Any, permutation: Sequence[int]) -> Any:
    """Return a value with its axes in another order, unchanged if it is the same order."""
    if list(permutation) == list(range(len(permutation))):
        return value
    if isinstance(value, np.ndarray):
        return value.transpose(permutation)
    result, sizes = array.transpose(value, list(permutation)), dims_if_known(value)
    return result if sizes is None else sized(result, [sizes[i] for i in permutation])


def broadcast(value: Any, shape: Sequence[int]) -> Any:
    """Return a value broadcast to a shape; arrays become views, and open sizes remain to be repeated."""
    if dims(value) == tuple(shape):
        return value
    if is_open(shape):
        return Repeated(reshape(value, [*[1] * (len(shape) - len(dims(value))), *dims(value)]), shape)
    if isinstance(value, np.ndarray):
        return np.broadcast_to(value, shape)
    return array.broadcast_to(value, list(shape))


def shaped(value: Any, shape: Sequence[Any]) -> Any:
    """Return the result of an element-wise operator broadcast to a shape; open sizes are those of its operands."""
    return sized(value, shape) if is_open(shape) else broadcast(value, shape)
