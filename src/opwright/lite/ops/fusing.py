"""Apply the activation that an operator's option `fused_activation_function` names.

Lives here: `fuse`.  Not here: the bounds (core/constants.py), activations that are operators (activation.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.constants import CLAMPS, FUSED_CLAMPS


def fuse(op: Any, y: Any) -> Any:
    """`y` within the bounds of the operator's fused activation; `y` is overwritten where it is an array."""
    if op.fused_activation_function not in FUSED_CLAMPS:
        return y
    low, high = CLAMPS[op.fused_activation_function]
    if y.dtype.kind == "u":
        low = 0
    out = y if isinstance(y, np.ndarray) else None
    y = np.maximum(y, y.dtype.type(low), out=out)
    return y if high is None else np.minimum(y, y.dtype.type(high), out=out)
