"""Users' computations keep the floating dtype that their definition promises.

Lives here: `narrowed`.  Not here: the catalogue's computations, which mind it themselves.
NumPy widens bfloat16 and float16 beside Python numbers and other types. Whoever writes `compute` for an output that is
`like` an input need not think of that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes

if TYPE_CHECKING:
    from .definition import Operator

@functools.cache
def _floats() -> frozenset[np.dtype[Any]]:
    return frozenset(d.np for d in dtypes.floating)


def narrowed(op: Operator, reference: Callable[..., Any]) -> Callable[..., Any]:
    """`reference`, its floating results cast to the dtype of the inputs they are `like`."""
    several_in = {i.name for i in op.inputs if i.repeated}
    likes = [
        None if o.like is None or o.repeated or o.like in several_in else op.input_names.index(o.like)
        for o in op.outputs
    ]
    if all(i is None for i in likes):
        return reference

    def single(*arrays: Any, **out: Any) -> Any:
        result, source = reference(*arrays, **out), arrays[likes[0]]
        return result if getattr(result, "dtype", None) is source.dtype else _as_float_of(source, result)

    def several(*arrays: Any) -> Any:
        results = reference(*arrays)
        if not isinstance(results, (tuple, list)) or len(results) != len(likes):
            return results  # whoever runs it says so
        return tuple(r if i is None else _as_float_of(arrays[i], r) for i, r in zip(likes, results))

    return single if len(likes) == 1 else several


def _as_float_of(source: Any, result: Any) -> Any:
    """`result` in the dtype of array `source` where both are floating and differ."""
    found, wanted = getattr(result, "dtype", None), getattr(source, "dtype", None)
    if found is None or wanted is None or found == wanted:
        return result
    return result.astype(wanted) if _floats().issuperset((found, wanted)) else result
