"""LSTMs on integers: what becomes of the sums of their gates, over a namespace.

Lives here: `IntegerCells`, `LayerNormalization`.  Not here: the sums, the scales that a file says (lite/ops/quantized).

Gates are int16 without integer bits, their sums have GATE of them; cells are int16 of the scale 2^power.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .fixed_point import FixedPoint
from .fixed_point_int32 import FixedPointInt32
from .multipliers import multiplier

GATE = 3
"""Integer bits of what goes into gates."""
BYTE_ZERO = 128
"""The zero point of the uint8 that a BASIC LSTM gives."""


class IntegerCells(FixedPoint):
    """Cells of the scale 2^power."""

    def __init__(self, namespace: Any, power: int) -> None:
        super().__init__(namespace, 16)
        self.power = power

    def after(self, forget: Any, before: Any, let_in: Any, new: Any) -> Any:
        """The new state: what is kept of the one before, plus what the input gate lets in."""
        fresh = self.shifted_right(let_in * new, 30 + self.power)
        if self.power < -15:  # else it fits
            fresh = self.wrapped(fresh)
        return self.saturated(self.shifted_right(forget * before, 15) + fresh)

    def squashed(self, state: Any, let_in: Any, coupled: bool) -> Any:
        """tanh of the state. coupled: whether the layer has no input gate.

        The official kernel has none for cells finer than 2^-15, whose values all lie near 0: it takes what its scratch
        holds, and that is the input gate where there is one.
        """
        if self.power >= -15:
            return self.tanh(state, 15 + self.power)
        return self.tanh(self.shifted_right(state, -15 - self.power), 0) if coupled else let_in

    def basic(self, sums: Sequence[Any], before: Any) -> tuple[Any, Any]:
        """A step of kernel_type BASIC, of the sums of i, g, f, o: the new state, and uint8 of the scale 1/128."""
        let_in, new, forget, let_out = sums
        bits = 15 + self.power
        fresh = self.high_product(self.logistic(let_in, GATE), self.tanh(new, GATE))
        kept = self.high_product(self.logistic(forget, GATE), before)
        state = self.saturated(self.shifted_right(fresh, bits) + kept)
        out = self.shifted_right(self.high_product(self.logistic(let_out, GATE), self.tanh(state, bits)), 8)
        return state, self.namespace.clamp(out, -BYTE_ZERO, BYTE_ZERO - 1) + BYTE_ZERO


class LayerNormalization(FixedPointInt32):
    """A gate's sums at mean 0 and variance 1 with 10 bits, times coefficients, plus a bias."""

    def moments(self, total: Any, squares: Any, n: Any) -> tuple[Any, Any]:
        """Mean, times 1024, and variance of n numbers, of their sum and that of their squares, int64."""
        m = self.namespace
        mean = m.truncated_quotient(total * 1024, n)
        share = m.truncated_quotient(m.value(1 << 20), n)
        variance = m.truncated_quotient(squares * share - mean * mean, 1 << 20)
        return mean, self.wrapped(variance)

    def deviation(self, variance: Any, least: Any) -> tuple[Any, Any]:
        """The multiplier that divides by the standard deviation. least: what variances below 1 count as."""
        return self.inverse_root(self.namespace.select(variance < 1, least, variance))

    def normalized(
        self, x: Any, mean: Any, by: tuple[Any, Any], coefficient: Any, bias: Any, scale: tuple[Any, Any]
    ) -> Any:
        """A gate's sum as int16. by: of `deviation`; scale: the multiplier of the coefficients' scale times 2^12."""
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
