"""Images of another size: which pixels a position lies between, and the mean of four in fixed point.

Lives here: `Sampling`, `FixedMean`.
Not here: operators (lite/ops/images.py, ops/image), other weights (ops/image/resize_weights.py), kernels
(compiler/kernels/resize.py).

Pixel i of n lies at position

    align_corners:       i (size - 1) / (n - 1)      (n > 1)
    half_pixel_centers:  (i + 1/2) size / n - 1/2
    neither:             i size / n

of an image of that size: in float32, for integers in steps of 1/1024, as the official kernels compute it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .fixed_point import FixedPointInt32

_f = np.float32
ONE = 1 << 10
"""A pixel, in the steps of integers' positions."""

Places = tuple[Any, Any, Any]
"""For each position along a dimension: the pixel before, the pixel after, the weight of the latter."""


class Sampling(NamedTuple):
    """Positions along one dimension of an image. size: its pixels there; out: those of the result."""

    size: int
    out: int
    align_corners: bool
    half_pixel_centers: bool

    @property
    def scale(self) -> np.float32:
        """Pixels of the image that a pixel of the result steps over."""
        if self.align_corners and self.out > 1:
            return _f(self.size - 1) / _f(self.out - 1)
        return _f(self.size) / _f(max(self.out, 1))

    def positions(self) -> np.ndarray:
        """Return the position of each pixel of the result, in float32."""
        at = np.arange(self.out, dtype=_f)
        return (at + _f(0.5)) * self.scale - _f(0.5) if self.half_pixel_centers else at * self.scale

    def nearest(self) -> np.ndarray:
        """Return the pixel that each position falls on."""
        at = np.arange(self.out, dtype=_f)
        at = (at + _f(0.5) if self.half_pixel_centers else at) * self.scale
        pixel = np.floor(at + _f(0.5)) if self.align_corners else np.floor(at)
        return np.clip(pixel.astype(np.int64), 0, self.size - 1)

    def between(self) -> Places:
        """Weights are float32."""
        at = self.positions()
        before = np.maximum(np.floor(at).astype(np.int64), 0)
        after = np.minimum(np.ceil(at).astype(np.int64), self.size - 1)
        return np.minimum(before, self.size - 1), after, at - before.astype(_f)

    def between_steps(self) -> Places:
        """Weights are whole numbers of steps; divisions are cut off toward 0."""
        scale = (ONE * self.size + self.out // 2) // self.out
        if self.align_corners and self.out > 1:
            scale = (ONE * (self.size - 1) + (self.out - 1) // 2) // (self.out - 1)
        at = np.arange(self.out, dtype=np.int64) * scale
        if self.half_pixel_centers:
            at += scale // 2 - ONE // 2
        before = np.maximum(_pixels(at), 0)
        after = np.maximum(np.minimum(_pixels(at + ONE - 1), self.size - 1), 0)
        return np.minimum(before, self.size - 1), after, at - ONE * before


def _pixels(steps: np.ndarray) -> np.ndarray:
    """Whole pixels, toward 0."""
    array: np.ndarray = np.sign(steps) * (np.abs(steps) // ONE)
    return array


class FixedMean(FixedPointInt32):
    """Weighted means of integers, in steps of 2^-20."""

    def of_four(self, four: Any, across: Any, down: Any) -> Any:
        """The mean, halves away from zero. four: above left, above right, below left, below right."""
        a, b, c, d = four
        above, below = (p * (ONE - across) + q * across for p, q in ((a, b), (c, d)))
        return self.shifted_right(above * (ONE - down) + below * down, 20)
