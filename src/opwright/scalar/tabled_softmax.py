"""Softmax of int16 by tables of exp and of 1 / (1 + x), over a namespace.

Lives here: `SoftmaxOfInt16`: what each element and each row's sum become; `tables_of`.
Not here: going over rows (lite/ops/quantized/normalization.py, compiler/kernels/tabled_softmax.py).

Differences to a row's greatest are brought to steps of 10 / 65535 and looked up; the sum's reciprocal comes from the
other table, at what the sum is beyond its greatest power of two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .fixed_point import FixedPoint, interpolation_table
from .fixed_point_int32 import FixedPointInt32
from .multipliers import multiplier


class SoftmaxOfInt16:
    """The arithmetic of a row, of int64 that hold int16."""

    def __init__(self, namespace: Any) -> None:
        self.namespace = namespace
        self.int16, self.int32 = FixedPoint(namespace, 16), FixedPointInt32(namespace)

    def exponential(self, table: Any, difference: Any, factor: Any, e: Any) -> Any:
        """e^(difference) without integer bits. factor, e: the multiplier to the table's steps."""
        steps = self.int32.rescale(difference, factor, e)
        return self.int16.interpolated(table, self.int16.saturated(steps + self.int16.greatest))

    def reciprocal(self, table: Any, total: Any) -> tuple[Any, Any]:
        """(R, k): 1 / total is R 2^-k. total: of a row's exponentials, below 2^31."""
        k = self.int32.floor_log2(total)
        fraction = ((total << (30 - k)) + (1 << 13)) >> 14  # of [1, 2), 16 bits behind the point
        return self.int16.interpolated(table, self.int16.saturated(fraction - (1 << 15) - (1 << 16))), k

    def share(self, exponential: Any, reciprocal: Any, k: Any) -> Any:
        """An element of the result: an exponential over the sum of them."""
        half = (self.namespace.value(1) << k) >> 1
        return self.namespace.clamp((exponential * reciprocal + half) >> k, 0, self.int16.greatest)


def tables_of(scale: Any, beta: float) -> tuple[tuple[int, int], np.ndarray, np.ndarray]:
    """Return the multiplier that takes differences to steps of 10 / 65535, the tables of exp and of 1 / (1 + x)."""
    factor = multiplier(float(np.float32(np.float32(scale) * np.float32(beta))) / (10.0 / 65535.0))
    exp_table = interpolation_table(np.exp, -10.0, 0.0, -1.0, 1.0, np.float64)
    inverse_table = interpolation_table(lambda v: 1.0 / (1.0 + v), 0.0, 1.0, -1.0, 1.0, np.float64)
    return factor, exp_table, inverse_table
