"""FULLY_CONNECTED with weights in blocks of 4 rows by 16 columns (weights_format SHUFFLED4x16INT8), as the first
quantised recurrent networks have it.

Lives here: its integer rule.  Not here: how the node's second output is known (runtime/builtin_registrations.py).

.. math:: q_y = clamp(M (b + \\sum w (q_x - 128))),   M = s_x s_w / s_y

The file holds weights less their zero point 128, as int8. The workspace takes the input less its zero point, of four
rows in blocks of 16 columns. Zero points in the file are not looked at: they are 128, and 0 for the output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....scalar.quantization import multiplier
from .fixed_point import INT32
from .operand import Operand, check_scaled, check_types, fused_bounds

TYPES = ("UINT8 UINT8 INT32 INT16 UINT8",)
ROWS, COLUMNS = 4, 16  # of a block


def fully_connected(op: Any, x: Operand, weights: Operand, bias: Operand | None, y: Operand, workspace: Operand) -> Any:
    check_types(op, TYPES, x, weights, bias, y, workspace)
    check_scaled(x, weights, y)
    n, k = weights.shape
    m, e = multiplier(float(x.scale * weights.scale) / float(y.scale))
    low, high = fused_bounds(op.fused_activation_function, y)

    def run(q: Any, w: Any, b: Any) -> Any:
        rows = (q.reshape(-1, k) ^ np.uint8(128)).view(np.int8)
        if rows.size > np.prod(workspace.shape, dtype=np.int64):
            raise workspace.wrong("is too small", list(workspace.shape), f"{rows.size} elements")
        blocks = w.view(np.int8).reshape(n // ROWS, k // COLUMNS, ROWS, COLUMNS)
        matrix = blocks.transpose(0, 2, 1, 3).reshape(n, k)
        acc = np.matmul(rows.astype(np.float64), matrix.T.astype(np.float64)).astype(np.int64) + b.reshape(-1)
        scratch = np.zeros(workspace.shape, np.uint8)
        by_block = rows.reshape(-1, k // COLUMNS, COLUMNS).swapaxes(0, 1) if len(rows) == ROWS else rows
        scratch.reshape(-1)[: rows.size] = by_block.reshape(-1).view(np.uint8)
        out = np.clip(INT32.rescale(acc, m, e), low, high)
        return out.reshape((*q.shape[:-1], n)) if op.keep_num_dims else out, scratch

    return run
