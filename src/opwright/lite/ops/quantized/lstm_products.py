"""What LSTMs on integers share: products of rows by weights, the order of gates, clips.

Lives here: `Product`, `GATES`, `clip_of`.  Not here: the rules (lstm.py, lstm_narrow.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....scalar.multipliers import multiplier
from .fixed_point import INT32, exact_float
from .operand import Operand, check_scaled, check_symmetric, check_types

GATES = ("input", "forget", "cell", "output")


class Product:
    """Rows of int8 times weights, brought to another scale: x W^T m 2^e, with a bias of int32 before that."""

    def __init__(self, name: str, weights: Operand, x: Operand, out_scale: float, bias: str = "") -> None:
        check_types(_Named(name), ("INT8",), weights)
        check_scaled(weights, x)
        check_symmetric(weights)
        self.name, self.bias, self.zero_point = name, bias, x.zero_point
        self.m, self.e = multiplier(float(weights.scale * x.scale / np.float32(out_scale)))  # as float32 has it

    def ready(self, arrays: Mapping[str, Any]) -> tuple[Any, Any]:
        """The matrix, and the bias with what the zero point adds."""
        w = arrays[self.name]
        exact = exact_float(w.shape[1] * 128 * 128)
        offset = -self.zero_point * w.sum(1, dtype=np.int64)
        if self.bias and arrays[self.bias] is not None:
            offset += arrays[self.bias]
        return w.astype(exact).T, offset

    def times(self, x: Any, ready: tuple[Any, Any]) -> Any:
        sums = np.matmul(x.astype(ready[0].dtype), ready[0]).astype(np.int64)
        return INT32.rescale(sums + ready[1], self.m, self.e)


class _Named:
    """What errors about types call the operator."""

    def __init__(self, name: str) -> None:
        self.name, self.operator = name, self


def clip_of(most: float, o: Operand, high: int) -> int:
    """An option of a clip as an integer of o's scale, which is float32's arithmetic."""
    return int(np.minimum(np.float32(most) / o.scale, high))
