"""Training or not: the choice that some layers make at each call.

Lives here: `in_training`.  Not here: where a call's mode comes from (../layer.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ops import array, dispatch
from ...ops.tensor import TensorLike


def in_training(training: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """`then()` where training is true, else `otherwise()`; both as branches of the graph where it is known later.

    training: a bool, None (false), or a scalar tensor or variable.
    """
    if not isinstance(training, TensorLike):
        return then() if training else otherwise()
    if dispatch.state.trace is None:
        return then() if bool(training) else otherwise()
    from ...tracing.control import cond

    return cond(array.cast(training, "bool"), then, otherwise)
