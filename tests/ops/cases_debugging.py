"""Rows for checks of finiteness.

Lives here: rows for ops/debugging that are operators of tensors.  Not here: assertions (tests/effects).
"""

from __future__ import annotations

import numpy as np
from harness import bad, case, f32, f64, i32

# fmt: off
CASES = {
    "CheckNumerics": [
        case(f64(2, 3), message="m", expect=lambda x: x),
        case(f32(0), message="m", expect=lambda x: x),
        bad(np.array([1.0, np.nan]), message="mine", says=("mine", "Tensor had NaN values")),
        bad(np.array([-np.inf, 1.0], np.float32), message="mine", says="Tensor had Inf values"),
        bad(np.array([np.inf, np.nan]), message="mine", says="Tensor had Inf and NaN values"),
        bad(i32(2), message="m", says="dtype"),
    ],
    "debugging.assert_all_finite": [
        case(f64(3), "mine", expect=lambda x, m: x),
        bad(np.array([np.nan]), "mine", says=("mine", "NaN")),
    ],
}
