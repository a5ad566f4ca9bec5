"""SVDF on integers: int8 features, int16 filters over time and state.

Lives here: this rule.  Not here: float activations (ops/rnn.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....scalar.quantization import multiplier
from .fixed_point import INT32
from .operand import Operand, check_scaled, check_symmetric, check_types, present


def svdf(op: Any, operands: Mapping[str, Operand | None], y: Operand) -> Any:
    x, feature, time, state = present(operands, "input", "weights_feature", "weights_time", "state")
    check_types(op, ("INT8 INT8 INT16 INT16 INT8",), x, feature, time, state, y)
    if operands["bias"] is not None:
        check_types(op, ("INT32",), operands["bias"])
    check_scaled(x, feature, time, state, y)
    check_symmetric(feature, time)
    to_state = multiplier(float(x.scale * feature.scale / state.scale))  # in float32
    to_output = multiplier(float(state.scale * time.scale / y.scale))
    batch, filters = x.shape[0], feature.shape[0]

    def run(arrays: Mapping[str, Any]) -> Any:
        sums = np.matmul(x.centred(arrays["input"], np.float64), arrays["weights_feature"].T.astype(np.float64))
        past = arrays["state"].reshape(batch, filters, -1)
        past[:, :, :-1] = past[:, :, 1:].copy()
        past[:, :, -1] = np.clip(INT32.rescale(sums.astype(np.int64), *to_state) + state.zero_point, -32768, 32767)
        # sums of int32, which wrap around
        now = (past.astype(np.int32) * arrays["weights_time"].astype(np.int32)).sum(2, dtype=np.int32)
        total = now.reshape(batch, -1, op.rank).sum(2, dtype=np.int32)
        if arrays["bias"] is not None:
            total = total + arrays["bias"]
        return (np.clip(INT32.rescale(total.astype(np.int64), *to_output) + y.zero_point, -128, 127).astype(np.int8),)

    return run
