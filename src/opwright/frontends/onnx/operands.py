"""Questions that rules ask about values: dtype, shape, axes.

Lives here: functions of values, which are arrays or tensors. Not here: the table of rules (execution.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, as_dtype, int64, string
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...ops import array
from ...ops.tensor import TensorLike


def dtype_of(value: Any) -> DType:
    """Return the dtype of an array or tensor. Raises UnimplementedError for one that the catalogue lacks."""
    if isinstance(value, TensorLike):
        return value.dtype
    kind = np.asarray(value).dtype
    try:
        return string if kind.kind == "O" else as_dtype(kind)
    except TypeError as error:
        raise UnimplementedError(op="from_onnx", what="the catalogue has no such dtype", found=kind.name) from error


def dims(value: Any) -> tuple[Any, ...]:
    """Return the sizes of a value, None where unknown. Raises InvalidArgumentError for an unknown rank."""
    if not isinstance(value, TensorLike):
        return tuple(np.shape(value))
    sizes = value.shape.dims
    if sizes is None:
        raise InvalidArgumentError(what="the rank must be known at import", found=str(value.shape))
    return tuple(sizes)


def static_dims(value: Any, what: str) -> tuple[int, ...]:
    """Return the sizes of a value. Raises InvalidArgumentError if one is unknown; what: the purpose, for it."""
    sizes = dims(value)
    if None in sizes:
        raise InvalidArgumentError(what=f"{what} needs all sizes at import", found=sizes)
    return sizes


def rank_of(value: Any) -> int:
    """Return the number of dimensions."""
    return len(dims(value))


def shape_of(value: Any) -> Any:
    """Return the shape as an int64 array where it is known, else as a tensor."""
    sizes = dims(value)
    return array.shape(value, int64) if None in sizes else np.asarray(sizes, np.int64)


def axis_of(axis: int, rank: int) -> int:
    """Return an axis >= 0. Raises InvalidArgumentError for one that the rank does not have."""
    if not -rank <= axis < max(rank, 1):
        raise InvalidArgumentError(what="no such axis", found=axis, wanted=f"{-rank} to {rank - 1}")
    return axis % max(rank, 1)


def axes_of(context: Any, inputs: Sequence[Any], attributes: Any, position: int) -> list[int] | None:
    """Return the axes of an operator, which older versions have as an attribute and newer ones as an input."""
    axes = attributes.get("axes")
    if axes is None and len(inputs) > position and inputs[position] is not None:
        axes = context.required(inputs[position], "axes").reshape(-1).tolist()
    return None if axes is None else [int(a) for a in axes]


def at(inputs: Sequence[Any], position: int) -> Any:
    """Return an input, None if it is absent."""
    return inputs[position] if position < len(inputs) else None


def scalar(context: Any, value: Any, what: str) -> Any:
    """Return a value of one element that must be known at import, as a Python number or bytes."""
    return context.required(value, what).reshape(-1)[0].item() if not isinstance(value, bytes) else value
