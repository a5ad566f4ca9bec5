"""Resampling of images: source positions of output pixels, and the bilinear mean of four pixels in fixed point.

Lives here: `Sampling`, `FixedMean`.
Not here: operators (lite/ops/images.py, ops/image), other weights (ops/image/resize_weights.py), kernels
(compiler/kernels/resize.py).

Pixel i of n is at position

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


class FixedMean(FixedPointInt32):
    """Weighted means of integers, in steps of 2^-20."""

    def of_four(self, four: Any, across: Any, down: Any) -> Any:
        """Compute the mean, halves away from zero. four: above left, above right, below left, below right."""
        a, b, c, d = four
        above, below = (p * (ONE - across) + q * across for p, q in ((a, b), (c, d)))
        return self.shifted_right(above * (ONE - down) + below * down, 20)
