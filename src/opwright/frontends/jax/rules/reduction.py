"""Rules of reductions over axes.

Lives here: sums, products, extrema, logic, positions of extrema, reductions by a jaxpr. Not here: windows (windows.py),
running reductions (cumulative.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.dtypes import as_dtype
from ....ops import array, bitwise, math
from ...importing import tensor_of
from ..execution import RULES, JaxprContext
from ..operands import cast, dims, like
from .arrays import part


def _reduction(name: str, function: Any, of_bool: Any = None) -> None:
    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        x, axes = tensor_of(inputs[0]), list(params["axes"])
        if not axes:
            return x
        return of_bool(x, axes) if of_bool is not None and x.dtype.is_bool else function(x, axes)


def fold(values: Sequence[Any], axis: int, combine: Callable[..., Sequence[Any]]) -> list[Any]:
    """Return an axis reduced by an associative function of two tuples of tensors: halves are combined."""
    while (size := dims(values[0])[axis]) > 1:
        half = size // 2
        results = combine([part(v, axis, 0, half) for v in values], [part(v, axis, half, 2 * half) for v in values])
        if size % 2:
            rest = [part(v, axis, size - 1, size) for v in values]
            results = [array.concat([tensor_of(r), tensor_of(v)], axis) for r, v in zip(results, rest)]
        values = results
    return list(values)


def _bitwise(function: Any, neutral: int) -> Any:
    def reduce(x: Any, axes: Sequence[int]) -> Any:
        for axis in axes:
            if dims(x)[axis] == 0:
                sizes = [1 if i == axis else s for i, s in enumerate(dims(x))]
                x = array.broadcast_to(like(neutral, x) if neutral >= 0 else bitwise.invert(like(0, x)), sizes)
            (x,) = fold([x], axis, lambda a, b: [function(tensor_of(a[0]), tensor_of(b[0]))])
        return array.squeeze(x, list(axes))

    return reduce


_reduction("reduce_sum", math.reduce_sum)
_reduction("reduce_prod", math.reduce_prod)
_reduction("reduce_max", math.reduce_max, math.reduce_any)
_reduction("reduce_min", math.reduce_min, math.reduce_all)
_reduction("reduce_and", _bitwise(bitwise.bitwise_and, -1), math.reduce_all)
_reduction("reduce_or", _bitwise(bitwise.bitwise_or, 0), math.reduce_any)
_reduction("reduce_xor", _bitwise(bitwise.bitwise_xor, 0), _bitwise(math.logical_xor, 0))


@RULES.rule("reduce")
def reduce(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return values reduced over axes by a jaxpr of scalars, starting from the initial values."""
    half = len(inputs) // 2
    values, initial = [tensor_of(v) for v in inputs[:half]], inputs[half:]
    jaxpr = params.get("jaxpr", params.get("computation"))

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        return context.mapped(jaxpr, [*a, *b], dims(a[0]))

    for axis in sorted(params["dimensions"], reverse=True):
        starts = [
            array.broadcast_to(tensor_of(i), [1 if k == axis else s for k, s in enumerate(dims(v))])
            for i, v in zip(initial, values)
        ]
        joined = [array.concat([s, v], axis) for s, v in zip(starts, values)]
        values = [array.squeeze(v, [axis]) for v in fold(joined, axis, combine)]
    return values


def _position(name: str, function: Any, largest: bool) -> None:
    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        x, (axis,) = tensor_of(inputs[0]), params["axes"]
        target = as_dtype(params["index_dtype"])
        if x.dtype.is_bool:
            x = cast(x, np.int32)
        elif x.dtype.is_floating:  # the first NaN, if there is one
            x = array.where(math.is_nan(x), like(np.inf if largest else -np.inf, x), x)
        index = np.int64 if target.size == 8 else np.int32
        return cast(function(x, axis, output_type=as_dtype(index)), target)


_position("argmax", math.argmax, largest=True)
_position("argmin", math.argmin, largest=False)
