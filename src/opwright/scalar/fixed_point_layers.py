"""Fixed-point arithmetic of layers over an array namespace: softmax of int16, LSTM cells, resampling of images.

Lives here: `SoftmaxOfInt16` and `tables_of`; `IntegerCells`, `GateNormalization`; `Sampling`, `FixedMean`.
Not here: loops over rows (lite/ops/quantized, compiler/kernels), the sums of gates and the scales of a file
(lite/ops/quantized), other resampling weights (ops/image/resize_operators.py).

Softmax: differences to the maximum of a row are rescaled to steps of 10 / 65535 and looked up in a table of exp; the
reciprocal of the sum is looked up in a table of 1 / (1 + x), after normalization by the sum's greatest power of two.

LSTM: gates are int16 without integer bits, their sums have GATE integer bits; cells are int16 of scale 2^power.

Resampling: pixel i of n is at position

    align_corners:       i (size - 1) / (n - 1)      (n > 1)
    half_pixel_centers:  (i + 1/2) size / n - 1/2
    neither:             i size / n

of an image of that size: in float32, for integers in steps of 1/1024, as the official kernels compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np

from ..core.forks import once
from .fixed_point import FixedPoint, FixedPointInt32, Values, interpolation_table, multiplier

if TYPE_CHECKING:
    from .namespace import Namespace


class SoftmaxOfInt16(Generic[Values]):
    """Softmax arithmetic of one row of int16, computed in int64."""

    def __init__(self, namespace: Namespace[Values]) -> None:
        self.namespace = namespace
        self.int16, self.int32 = FixedPoint(namespace, 16), FixedPointInt32(namespace)

    def exponential(self, table: Any, difference: Values, factor: Values | int, e: Values | int) -> Values:
        """Compute e^difference without integer bits. factor, e: the multiplier to the table's steps."""
        steps = self.int32.rescale(difference, factor, e)
        return self.int16.interpolated(table, self.int16.saturated(steps + self.int16.greatest))

    def reciprocal(self, table: Any, total: Values) -> tuple[Values, Values]:
        """Compute (R, k) with 1 / total = R 2^-k. total: the sum of a row's exponentials, below 2^31."""
        k = self.int32.floor_log2(total)
        fraction = ((total << (30 - k)) + (1 << 13)) >> 14  # of [1, 2), 16 bits behind the point
        return self.int16.interpolated(table, self.int16.saturated(fraction - (1 << 15) - (1 << 16))), k

    def share(self, exponential: Values, reciprocal: Values, k: Values) -> Values:
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


NARROW_SCALE = 2.0**-12
"""The scale of the sums of gates of int8."""


@once
def narrow_table(function: str, scale: float) -> np.ndarray:
    """Return logistic or tanh of all int16 of a scale, in float32, truncated to int16 with 15 fraction bits, from that
    of -32768 on. Official kernels of LSTMs with gates of int8 compute these in float32."""
    x = np.arange(-(1 << 15), 1 << 15).astype(np.float32) * np.float32(scale)
    y = np.tanh(x) if function == "tanh" else np.float32(1) / (np.float32(1) + np.exp(-x))
    table: np.ndarray = np.clip(np.trunc(y.astype(np.float64) * 32768), -32768, 32767).astype(np.int16)
    return table


class IntegerCells(FixedPoint[Values]):
    """LSTM cells of scale 2^power."""

    def __init__(self, namespace: Namespace[Values], power: int) -> None:
        super().__init__(namespace, 16)
        self.power = power

    def after(self, forget: Values, before: Values, let_in: Values, new: Values) -> Values:
        """Compute the new state: forget gate times the old state plus input gate times the candidate."""
        fresh = self.shifted_right(let_in * new, 30 + self.power)
        if self.power < -15:  # else it fits
            fresh = self.wrapped(fresh)
        return self.saturated(self.shifted_right(forget * before, 15) + fresh)

    def squashed(self, state: Values, let_in: Values, coupled: bool) -> Values:
        """Compute tanh of the state. coupled: whether the layer has no input gate.

        The official kernel computes no tanh for cells finer than 2^-15, whose values are all near 0: it reads its
        scratch buffer, which holds the input gate if there is one.
        """
        if self.power >= -15:
            return self.tanh(state, 15 + self.power)
        return self.tanh(self.shifted_right(state, -15 - self.power), 0) if coupled else let_in

    def basic(self, sums: Sequence[Values], before: Values) -> tuple[Values, Values]:
        """Compute a step of kernel_type BASIC from the sums of i, g, f, o: the new state, and uint8 of scale 1/128."""
        let_in, new, forget, let_out = sums
        bits = 15 + self.power
        fresh = self.high_product(self.logistic(let_in, GATE), self.tanh(new, GATE))
        retained = self.high_product(self.logistic(forget, GATE), before)
        state = self.saturated(self.shifted_right(fresh, bits) + retained)
        out = self.shifted_right(self.high_product(self.logistic(let_out, GATE), self.tanh(state, bits)), 8)
        return state, self.namespace.clamp(out, -BYTE_ZERO, BYTE_ZERO - 1) + BYTE_ZERO


class GateNormalization(FixedPointInt32[Values]):
    """Layer normalization of a gate's sums: mean 0 and variance 1 with 10 bits, times coefficients, plus a bias."""

    def moments(self, total: Values, squares: Values, n: Values | int) -> tuple[Values, Values]:
        """Compute the mean, times 1024, and the variance of n numbers from their sum and sum of squares, int64."""
        m = self.namespace
        mean = m.truncated_quotient(total * 1024, n)
        share = m.truncated_quotient(m.value(1 << 20), n)
        variance = m.truncated_quotient(squares * share - mean * mean, 1 << 20)
        return mean, self.wrapped(variance)

    def deviation(self, variance: Values, minimum: Values | int) -> tuple[Values, Values]:
        """Return the multiplier that divides by the standard deviation. minimum: replaces variances below 1."""
        return self.inverse_root(self.namespace.select(variance < 1, minimum, variance))

    def normalized(
        self,
        x: Values,
        mean: Values,
        by: tuple[Values, Values],
        coefficient: Values,
        bias: Values,
        scale: tuple[Values | int, Values | int],
    ) -> Values:
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


_f = np.float32
ONE = 1 << 10
"""A pixel, in the steps of integers' positions."""

Places = tuple[Any, Any, Any]
"""For each position along a dimension: the pixel before, the pixel after, the weight of the latter."""


class Sampling(NamedTuple):
    """Source positions along one dimension of an image. size: pixels of the image; out: of the result."""

    size: int
    out: int
    align_corners: bool
    half_pixel_centers: bool

    @property
    def scale(self) -> np.float32:
        """The number of source pixels per pixel of the result."""
        if self.align_corners and self.out > 1:
            return _f(self.size - 1) / _f(self.out - 1)
        return _f(self.size) / _f(max(self.out, 1))

    def positions(self) -> np.ndarray:
        """Return the position of each pixel of the result, in float32."""
        indices = np.arange(self.out, dtype=_f)
        return (indices + _f(0.5)) * self.scale - _f(0.5) if self.half_pixel_centers else indices * self.scale

    def nearest(self) -> np.ndarray:
        """Return the nearest pixel of each position."""
        positions = np.arange(self.out, dtype=_f)
        positions = (positions + _f(0.5) if self.half_pixel_centers else positions) * self.scale
        pixel = np.floor(positions + _f(0.5)) if self.align_corners else np.floor(positions)
        return np.clip(pixel.astype(np.int64), 0, self.size - 1)

    def between(self) -> Places:
        """Return the pixels around each position and float32 weights."""
        positions = self.positions()
        before = np.maximum(np.floor(positions).astype(np.int64), 0)
        after = np.minimum(np.ceil(positions).astype(np.int64), self.size - 1)
        return np.minimum(before, self.size - 1), after, positions - before.astype(_f)

    def between_steps(self) -> Places:
        """Return the pixels around each position and integral weights in steps; divisions truncate."""
        scale = (ONE * self.size + self.out // 2) // self.out
        if self.align_corners and self.out > 1:
            scale = (ONE * (self.size - 1) + (self.out - 1) // 2) // (self.out - 1)
        positions = np.arange(self.out, dtype=np.int64) * scale
        if self.half_pixel_centers:
            positions += scale // 2 - ONE // 2
        before = np.maximum(_pixels(positions), 0)
        after = np.maximum(np.minimum(_pixels(positions + ONE - 1), self.size - 1), 0)
        return np.minimum(before, self.size - 1), after, positions - ONE * before


def _pixels(steps: np.ndarray) -> np.ndarray:
    """Truncate positions in steps to pixels."""
    array: np.ndarray = np.sign(steps) * (np.abs(steps) // ONE)
    return array


class FixedMean(FixedPointInt32[Values]):
    """Weighted means of integers, in steps of 2^-20."""

    def of_four(self, four: Sequence[Values], across: Values, down: Values) -> Values:
        """Compute the mean, halves away from zero. four: above left, above right, below left, below right."""
        a, b, c, d = four
        return self.of_lines(self.between(a, b, across), self.between(c, d, across), down)

    def between(self, before: Values, after: Values, weight: Values) -> Values:
        """Compute the weighted sum of two pixels, with 10 more bits."""
        return before * (ONE - weight) + after * weight

    def of_lines(self, above: Values, below: Values, down: Values) -> Values:
        """Compute the mean of sums of two lines, halves away from zero."""
        return self.shifted_right(self.between(above, below, down), 20)
