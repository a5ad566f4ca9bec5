"""Rules of running reductions along an axis.

Lives here: cumsum, cumprod, cummax, cummin, cumlogsumexp. Not here: reductions over axes (reduction.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ops import math
from ...importing import tensor_of
from ..execution import RULES, JaxprContext
from ..operands import dims
from .arrays import padded, part


def lowest(dtype: Any) -> Any:
    """Return the least value of a dtype."""
    kind = dtype.as_numpy_dtype
    if dtype.is_bool:
        return np.asarray(False)
    return np.asarray(-np.inf, kind) if dtype.is_floating else np.asarray(np.iinfo(kind).min, kind)


def highest(dtype: Any) -> Any:
    """Return the greatest value of a dtype."""
    kind = dtype.as_numpy_dtype
    if dtype.is_bool:
        return np.asarray(True)
    return np.asarray(np.inf, kind) if dtype.is_floating else np.asarray(np.iinfo(kind).max, kind)


def _running(name: str, function: Any) -> None:
    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        return function(tensor_of(inputs[0]), axis=params["axis"], reverse=bool(params["reverse"]))


_running("cumsum", math.cumsum)
_running("cumprod", math.cumprod)
_running("cumlogsumexp", math.cumulative_logsumexp)


def _extremum(name: str, function: Any, neutral: Any) -> None:
    """Add a running extremum: after the step of distance 2^k each element covers 2^(k + 1) of them."""

    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        x, axis = tensor_of(inputs[0]), params["axis"]
        size, distance = dims(x)[axis], 1
        while distance < size:
            shift = (0, distance, 0) if params["reverse"] else (distance, 0, 0)
            moved = padded(x, neutral(x.dtype), [shift if i == axis else (0, 0, 0) for i in range(len(dims(x)))])
            moved = part(moved, axis, distance if params["reverse"] else 0, size + (shift[1]))
            x = function(x, tensor_of(moved))
            distance *= 2
        return x


_extremum("cummax", math.maximum, lowest)
_extremum("cummin", math.minimum, highest)
