"""Rules of sorting.

Lives here: sort of several operands by several keys, top_k. Not here: positions of extrema (reduction.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import as_dtype
from ....ops import array, math
from ...importing import tensor_of
from ..execution import RULES, JaxprContext
from ..operands import cast, dims, dtype_of, transpose


def along_last(x: Any, indices: Any) -> Any:
    """Return the elements at indices along the last axis: x [..., n], indices [..., k]."""
    rank = len(dims(x))
    return array.gather(tensor_of(x), indices, axis=rank - 1, batch_dims=rank - 1)


def _key(x: Any) -> Any:
    return cast(x, np.uint8) if dtype_of(x).is_bool else tensor_of(x)


@RULES.rule("sort")
def sort(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the operands in ascending order of the first `num_keys` of them along an axis."""
    axis, rank = params["dimension"], len(dims(inputs[0]))
    if len(inputs) == 1 and not dtype_of(inputs[0]).is_bool:
        return math.sort(tensor_of(inputs[0]), axis)
    order = [i for i in range(rank) if i != axis] + [axis]
    back = list(np.argsort(order))
    rows = [tensor_of(transpose(v, order)) for v in inputs]
    indices = None
    for key in reversed(rows[: params["num_keys"]]):
        current = _key(key) if indices is None else along_last(_key(key), indices)
        step = math.argsort(current, axis=rank - 1, stable=True)
        indices = step if indices is None else along_last(indices, step)
    return [transpose(along_last(v, indices), back) for v in rows]


@RULES.rule("top_k", "approx_top_k")
def top_k(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the k greatest elements along an axis and their positions; approx_top_k may return the exact ones."""
    x = tensor_of(inputs[0])
    rank = len(dims(x))
    axis = params.get("axis", params.get("operand_axis", params.get("reduction_dimension", rank - 1))) % rank
    order = [i for i in range(rank) if i != axis] + [axis]
    back = list(np.argsort(order))
    rows = transpose(x, order)
    if params.get("is_max_k", True):
        values, indices = math.top_k(rows, params["k"])
    else:
        indices = math.argsort(rows, axis=rank - 1, stable=True)[..., : params["k"]]
        values = along_last(rows, indices)
    return [transpose(values, back), transpose(cast(indices, as_dtype(np.int32)), back)]
