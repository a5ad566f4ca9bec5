"""Operands of functions on files and formats: strings, eager or symbolic.

Lives here: conversion and checks of operands, their elements.
Not here: calls of functions on arrays, the limit of what they may ask for (eager/python_functions.py).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..eager.python_functions import check_size as check_size
from ..ops import dispatch
from ..ops.tensor import Tensor


def string_operand(value: Any, op: str, rank: int | None = None) -> Tensor:
    """Return a string tensor; paths are converted, too. Raises InvalidArgumentError for another dtype or rank."""
    if hasattr(value, "__fspath__"):
        value = os.fspath(value)
    tensor = dispatch.to_tensor(value)
    if tensor.dtype is not dtypes.string and tensor.shape.num_elements() == 0:
        tensor = dispatch.to_tensor(np.zeros(tensor.shape.as_list(), object), dtypes.string)
    if tensor.dtype is not dtypes.string:
        raise InvalidArgumentError(op=op, what="the operand is not a string tensor", found=tensor.dtype.name)
    if rank is not None and tensor.shape.rank not in (rank, None):
        raise InvalidArgumentError(
            op=op,
            what=f"the operand must have rank {rank}",
            found=f"shape {tensor.shape}",
            do="Dataset.map or map_fn over several strings" if rank == 0 else None,
        )
    return tensor


def scalar(array: np.ndarray, op: str) -> bytes:
    """Return the string of an array of shape (). Raises InvalidArgumentError for another shape."""
    if array.ndim:
        raise InvalidArgumentError(op=op, what="the operand must have rank 0", found=f"shape {array.shape}")
    value: Any = array[()]
    return bytes(value)


def strings(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of strings in a shape."""
    return np.fromiter(values, object, len(values)).reshape(shape)


def string_spec(shape: Any = ()) -> TensorSpec:
    """Return the type of strings."""
    return TensorSpec(TensorShape(shape), dtypes.string)
