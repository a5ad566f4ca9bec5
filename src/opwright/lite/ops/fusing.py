"""Activations fused into an operator: the values of `fused_activation_function` and what they do.

Lives here: the table and `fuse`.  Not here: activations that are operators themselves (activation.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

BOUNDS: dict[str, tuple[int, int | None]] = {"RELU": (0, None), "RELU_N1_TO_1": (-1, 1), "RELU6": (0, 6)}


def fuse(op: Any, y: Any) -> Any:
    """`y` within the bounds of the operator's fused activation; `y` is overwritten where it is an array."""
    bounds = BOUNDS.get(op.fused_activation_function)
    if bounds is None:
        return y
    low, high = bounds
    if y.dtype.kind == "u":
        low = 0
    out = y if isinstance(y, np.ndarray) else None
    y = np.maximum(y, y.dtype.type(low), out=out)
    return y if high is None else np.minimum(y, y.dtype.type(high), out=out)
