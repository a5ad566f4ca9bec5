"""Shape inference helpers: shapes given as tensors, axes, numbers of steps, and the error for values out of range.

Lives here: helpers of `infer` rules.  Not here: any operator's rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.shapes import UNKNOWN, TensorShape


def shape_from(operand: Any) -> TensorShape:
    """Return the shape that a 1-D integer tensor specifies, as far as it is known; a size of -1 is unknown.

    raises InvalidArgumentError for sizes below -1
    """
    constant = operand.constant
    if constant is not None:
        sizes: Iterable[Any] = constant.reshape(-1).tolist()
    else:
        partial = getattr(operand, "partial", None)  # traced tensors know what of a shape is known
        if partial is None:
            length = operand.spec.shape
            if length.rank == 1 and length[0] is not None:
                return TensorShape([None] * length[0])
            return UNKNOWN
        sizes = partial
    dims = []
    for size in sizes:
        if size is not None and size < -1:
            raise InvalidArgumentError(what=f"Dimension {size} must be >= 0", found=list(sizes))
        dims.append(None if size is None or size == -1 else int(size))
    return TensorShape(dims)


def elements_of(operand: Any) -> list[int | None] | None:
    """Return the elements of a 1-D integer tensor, None for unknown ones; None if their number is unknown."""
    constant = operand.constant
    if constant is not None:
        result: list[int | None] | None = constant.reshape(-1).tolist()
        return result
    partial = getattr(operand, "partial", None)
    if partial is not None:
        return list(partial)
    length = operand.spec.shape
    return [None] * length[0] if length.rank == 1 and length[0] is not None else None


def axis_in(axis: int, rank: int, what: str = "axis") -> int:
    """Return `axis` counted from the front. Raises InvalidArgumentError unless it is in [-rank, rank)."""
    if not -rank <= axis < rank:
        raise InvalidArgumentError(what=f"{what} {axis} is out of range", wanted=f"in [{-rank}, {rank})")
    return axis + rank if axis < 0 else axis


def axes_in(axes: Any, rank: int) -> tuple[int, ...]:
    """Return axes counted from the front, each once; None means all. Raises InvalidArgumentError."""
    if axes is None:
        return tuple(range(rank))
    normalized = tuple(axis_in(a, rank) for a in axes)
    if len(set(normalized)) != len(normalized):
        raise InvalidArgumentError(what="an axis is given twice", found=list(axes), wanted="each axis once")
    return normalized


def static_axes(axis: Any, what: str = "axis") -> tuple[int, ...] | None:
    """Return constant axes: from None, an int, a sequence, or a tensor or array whose value is known.

    raises TypeError for a tensor whose value is known only when the graph runs
    """
    if axis is None:
        return None
    value = known_value(axis)
    if hasattr(value, "reshape"):
        value = value.reshape(-1).tolist()
    several = isinstance(value, Iterable)
    values = [known_value(a) for a in value] if several else [value]
    if any(a is None for a in values):
        raise TypeError(f"{what} must be known while tracing; found {axis!r}. Pass Python integers")
    return tuple(map(int, values)) if several else (values[0].__index__(),)


def known_value(value: Any) -> Any:
    """Return the value of a tensor if it is known without running, else None; other objects as they are.

    Known are constants, and in a trace small tensors that follow from constants, shapes and ranks.
    """
    constant = getattr(value, "constant", value)
    return constant if constant is not None else getattr(value, "static_value", None)


def is_static(axis: Any) -> bool:
    """Return whether `static_axes` and `static_int` accept an argument: no part is a tensor of unknown value."""
    if axis is None or isinstance(axis, int):
        return True
    value = known_value(axis)
    if isinstance(value, (list, tuple)):
        return all(known_value(a) is not None for a in value)
    return value is not None


def static_int(value: Any, what: str) -> int:
    """Return one integer from an int or a tensor whose value is known. Raises TypeError otherwise."""
    axes = static_axes(value, what)
    if axes is None or len(axes) != 1:
        raise TypeError(f"{what} is one integer; found {value!r}")
    return axes[0]


def number_of_steps(start: Any, limit: Any, delta: Any) -> int | None:
    """Return ceil((limit - start) / delta) of NumPy scalars, delta of the right sign; None if not finite.

    The quotient of floats is rounded to their dtype first, as in TensorFlow: in float32 range(0.1, 1.1, 0.1) has 10
    numbers, though the quotient of these three numbers is 10.00000007.
    """
    if start.dtype.kind in "iu":
        return -((int(start) - int(limit)) // int(delta))
    with np.errstate(all="ignore"):
        count = float((limit - start) / delta)
    return math.ceil(count) if math.isfinite(count) and count < 2**62 else None
