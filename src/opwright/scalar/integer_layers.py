"""Integer arithmetic of layers: softmax of int16 by lookup tables, and LSTM cells, over an array namespace.

Lives here: `SoftmaxOfInt16` and `tables_of`; `IntegerCells`, `GateNormalization`.
Not here: loops over rows (lite/ops/quantized/normalization.py, compiler/kernels/tabled_softmax.py), the sums of gates
and the scales of a file (lite/ops/quantized).

Softmax: differences to the maximum of a row are rescaled to steps of 10 / 65535 and looked up in a table of exp; the
reciprocal of the sum is looked up in a table of 1 / (1 + x), after normalization by the sum's greatest power of two.

LSTM: gates are int16 without integer bits, their sums have GATE integer bits; cells are int16 of scale 2^power.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .fixed_point import FixedPoint, FixedPointInt32, interpolation_table
from .quantization import multiplier


class SoftmaxOfInt16:
    """Softmax arithmetic of one row of int16, computed in int64."""

    def __init__(self, namespace: Any) -> None:
        self.namespace = namespace
        self.int16, self.int32 = FixedPoint(namespace, 16), FixedPointInt32(namespace)

    def exponential(self, table: Any, difference: Any, factor: Any, e: Any) -> Any:
        """Compute e^difference without integer bits. factor, e: the multiplier to the table's steps."""
        steps = self.int32.rescale(difference, factor, e)
        return self.int16.interpolated(table, self.int16.saturated(steps + self.int16.greatest))

    def reciprocal(self, table: Any, total: Any) -> tuple[Any, Any]:
        """Compute (R, k) with 1 / total = R 2^-k. total: the sum of a row's exponentials, below 2^31."""
        k = self.int32.floor_log2(total)
        fraction = ((total << (30 - k)) + (1 << 13)) >> 14  # of [1, 2), 16 bits behind the point
        return self.int16.interpolated(table, self.int16.saturated(fraction - (1 << 15) - (1 << 16))), k

    def share(self, exponential: Any, reciprocal: Any, k: Any) -> Any:
        """Compute an element of the result: an exponential over their sum."""
        half = (self.namespace.value(1) << k) >> 1
        return self.namespace.clamp((exponential * reciprocal + half) >> k, 0, self.int16.greatest)


def tables_of(scale: Any, beta: float) -> tuple[tuple[int, int], np.ndarray, np.ndarray]:
    """Return the multiplier that takes differences to steps of 10 / 65535, the tables of exp and of 1 / (1 + x)."""
    factor = multiplier(float(np.float32(np.float32(scale) * np.float32(beta))) / (10.0 / 65535.0))
    exp_table = interpolation_table(np.exp, -10.0, 0.0, -1.0, 1.0, np.float64)
    inverse_table = interpolation_table(lambda v: 1.0 / (1.0 + v), 0.0, 1.0, -1.0, 1.0, np.float64)
    return factor, exp_table, inverse_table


GATE = 3
"""Integer bits of the inputs of gates."""
BYTE_ZERO = 128
"""The zero point of the uint8 output of a BASIC LSTM."""


class IntegerCells(FixedPoint):
    """LSTM cells of scale 2^power."""

    def __init__(self, namespace: Any, power: int) -> None:
        super().__init__(namespace, 16)
        self.power = power

    def after(self, forget: Any, before: Any, let_in: Any, new: Any) -> Any:
        """Compute the new state: forget gate times the old state plus input gate times the candidate."""
        fresh = self.shifted_right(let_in * new, 30 + self.power)
        if self.power < -15:  # else it fits
            fresh = self.wrapped(fresh)
        return self.saturated(self.shifted_right(forget * before, 15) + fresh)

    def squashed(self, state: Any, let_in: Any, coupled: bool) -> Any:
        """Compute tanh of the state. coupled: whether the layer has no input gate.

        The official kernel computes no tanh for cells finer than 2^-15, whose values are all near 0: it reads its
        scratch buffer, which holds the input gate if there is one.
        """
        if self.power >= -15:
            return self.tanh(state, 15 + self.power)
        return self.tanh(self.shifted_right(state, -15 - self.power), 0) if coupled else let_in

    def basic(self, sums: Sequence[Any], before: Any) -> tuple[Any, Any]:
        """Compute a step of kernel_type BASIC from the sums of i, g, f, o: the new state, and uint8 of scale 1/128."""
        let_in, new, forget, let_out = sums
        bits = 15 + self.power
        fresh = self.high_product(self.logistic(let_in, GATE), self.tanh(new, GATE))
        retained = self.high_product(self.logistic(forget, GATE), before)
        state = self.saturated(self.shifted_right(fresh, bits) + retained)
        out = self.shifted_right(self.high_product(self.logistic(let_out, GATE), self.tanh(state, bits)), 8)
        return state, self.namespace.clamp(out, -BYTE_ZERO, BYTE_ZERO - 1) + BYTE_ZERO


class GateNormalization(FixedPointInt32):
    """Layer normalization of a gate's sums: mean 0 and variance 1 with 10 bits, times coefficients, plus a bias."""

    def moments(self, total: Any, squares: Any, n: Any) -> tuple[Any, Any]:
        """Compute the mean, times 1024, and the variance of n numbers from their sum and sum of squares, int64."""
        m = self.namespace
        mean = m.truncated_quotient(total * 1024, n)
        share = m.truncated_quotient(m.value(1 << 20), n)
        variance = m.truncated_quotient(squares * share - mean * mean, 1 << 20)
        return mean, self.wrapped(variance)

    def deviation(self, variance: Any, minimum: Any) -> tuple[Any, Any]:
        """Return the multiplier that divides by the standard deviation. minimum: replaces variances below 1."""
        return self.inverse_root(self.namespace.select(variance < 1, minimum, variance))

    def normalized(
        self, x: Any, mean: Any, by: tuple[Any, Any], coefficient: Any, bias: Any, scale: tuple[Any, Any]
    ) -> Any:
        """Compute a gate's sum as int16. by: of `deviation`; scale: the multiplier of the coefficients' scale times
        2^12.
        """
        m = self.namespace
        wide = self.rescale(x * 1024 - mean, *by) * coefficient + bias
        rounded = m.truncated_quotient(m.select(wide > 0, wide + 512, wide - 512), 1024)
        return m.clamp(self.rescale(rounded, *scale), -(1 << 15), (1 << 15) - 1)


def least_variance(scale: Any) -> int:
    """Return the value that replaces variances below 1 in layer normalization. scale: of the coefficients."""
    return min(max(1, int(10000 * float(scale))), 2**31 - 1)


def normalization_factor(scale: Any) -> tuple[int, int]:
    """Return the multiplier that takes normalised sums times coefficients to gates. scale: of the coefficients."""
    m, e = multiplier(float(scale))
    return m, e + 12
