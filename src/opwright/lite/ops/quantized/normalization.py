"""Integer rule of L2_NORMALIZATION.

Lives here: this rule.  Not here: the inverse square root in fixed point (fixed_point.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .fixed_point import INT32
from .operand import Operand, check_output, check_scaled, check_types


def l2_normalization(op: Any, x: Operand, y: Operand) -> Any:
    """.. math:: q_y = z_y + 128 (q_x - z_x) / \\sqrt{\\sum (q_x - z_x)^2}"""
    check_types(op, ("INT8 INT8", "UINT8 UINT8"), x, y)
    check_scaled(x, y)
    check_output(y, 1 / 128, 0 if y.type == "INT8" else 128)

    def run(q: Any) -> Any:
        v = x.centred(q)
        root, shift = INT32.inverse_root(np.square(v).sum(-1, keepdims=True))
        # 128 times: of int8 in the multiplier, of uint8 in the number, which rounds otherwise
        out = INT32.rescale(v, root, shift + 7) if y.type == "INT8" else INT32.rescale(v * 128, root, shift)
        return np.clip(out + y.zero_point, y.low, y.high)

    return run
