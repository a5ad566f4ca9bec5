"""Weights of resized images: which pixels of each dimension a pixel of the result reads, and how much of each.

Lives here: the kernels of every method, positions and weights as NumPy arrays, separable by dimension, and their
application to images. Not here: operators (resize_operators.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...scalar.fixed_point_layers import Sampling
from .. import like_device

if TYPE_CHECKING:
    pass

Taps = tuple[np.ndarray, np.ndarray]

F = np.float32

TINY = F(1000.0) * np.finfo(F).tiny  # weights with a smaller sum are not normalized

TABLE = 1024  # resolution of bicubic weights between two pixels


def bilinear(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> tuple[Any, Any, Any]:
    """Return the indices of the pixels before and after each output pixel, and its distance from the first, [out]."""
    positions = Sampling(size, out, align_corners, half_pixel_centers).positions()
    low = np.floor(positions)
    return (
        np.maximum(low, 0).astype(np.intp),
        np.minimum(np.ceil(positions), size - 1).astype(np.intp),
        positions - low,
    )


def keys_near(x: Any, a: Any) -> Any:
    """Return Keys' cubic convolution kernel (1981) with parameter a, at distances x up to 1."""
    return ((a + 2) * x - (a + 3)) * x * x + 1


def keys_far(x: Any, a: Any) -> Any:
    """Return Keys' cubic convolution kernel (1981) with parameter a, at distances x from 1 to 2."""
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def keys_weights(part: Any, a: Any) -> list[Any]:
    """Return Keys' weights of two pixels before and two after a position, which is `part` behind the second."""
    return [keys_far(part + 1, a), keys_near(part, a), keys_near(1 - part, a), keys_far(2 - part, a)]


def bicubic(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """Return the taps of Keys's cubic: a = -1/2 without border pixels for half-pixel centers; else a = -3/4 with a
    repeated border.
    """
    a = F(-0.5 if half_pixel_centers else -0.75)
    positions = Sampling(size, out, align_corners, half_pixel_centers).positions()
    floor = np.floor(positions)
    offset = np.rint((positions - floor) * F(TABLE)) / F(TABLE)
    weights = np.stack(keys_weights(offset, a), 1)
    indices = floor[:, None].astype(np.intp) + np.arange(-1, 3)
    clipped = np.clip(indices, 0, size - 1)
    if half_pixel_centers:
        weights = _normalized(np.where(clipped == indices, weights, F(0)))
    return clipped, weights


def area(size: int, out: int, align_corners: bool) -> Taps:
    """Return the taps of area interpolation: the fraction of each pixel that an output pixel covers."""
    step = Sampling(size, out, align_corners, False).scale
    if step == 0:  # one pixel with its corner aligned to that of many
        return np.zeros((out, 1), np.intp), np.ones((out, 1), F)
    start = np.arange(out, dtype=F) * step
    end = np.arange(1, out + 1, dtype=F) * step
    first, last = np.floor(start).astype(np.intp), np.ceil(end).astype(np.intp)
    indices = first[:, None] + np.arange(int((last - first).max()))
    covered = np.minimum((indices + 1).astype(F), end[:, None]) - np.maximum(indices.astype(F), start[:, None])
    return np.clip(indices, 0, size - 1), np.maximum(covered, F(0)) / step


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def weight(x: Any) -> np.ndarray:
        angle = F(np.pi) * np.maximum(x, F(1e-3))
        wave = F(radius) * np.sin(angle) * np.sin(angle / F(radius)) / (angle * angle)
        return np.where(x <= F(1e-3), F(1), np.where(x > F(radius), F(0), wave))

    return weight


def _gaussian(x: Any) -> np.ndarray:
    return np.where(x >= F(1.5), F(0), np.exp(-x * x / F(2 * 0.5 * 0.5)))


def _box(x: Any) -> np.ndarray:
    return np.where(x < F(0.5), F(1), np.where(x == F(0.5), F(0.5), F(0)))


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(F(1) - x, F(0))


def _keys_cubic(x: Any) -> np.ndarray:
    near, far = keys_near(x, F(-0.5)), keys_far(x, F(-0.5))
    return np.where(x >= F(2), F(0), np.where(x >= F(1), far, near))


def _mitchell_cubic(x: Any) -> np.ndarray:
    near = (F(7 / 6) * x - F(2)) * x * x + F(8 / 9)
    far = ((F(-7 / 18) * x + F(2)) * x - F(10 / 3)) * x + F(16 / 9)
    return np.where(x >= F(2), F(0), np.where(x >= F(1), far, near))


KERNELS: dict[str, tuple[float, Callable[[Any], Any]]] = {  # radius, and weight as a function of distance
    "lanczos1": (1.0, _lanczos(1.0)),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, _gaussian),
    "box": (1.0, _box),
    "triangle": (1.0, _triangle),
    "keyscubic": (2.0, _keys_cubic),
    "mitchellcubic": (2.0, _mitchell_cubic),
}


def scaled(size: int, out: int, factor: float, shift: float, kernel: str, antialias: bool) -> Taps:
    """Return the taps of an image scaled by `factor`, then shifted; output pixels centered outside the image are 0."""
    radius, weight = KERNELS[kernel]
    step = F(1) / F(factor)
    stretch = max(step, F(1)) if antialias else F(1)
    center = (np.arange(out, dtype=F) + F(0.5)) * step - step * F(shift)
    support = F(radius) * stretch
    last = np.clip(np.floor(center + support - F(0.5)), 0, size - 1).astype(np.intp)
    first = np.clip(np.ceil(center - support - F(0.5)), 0, size - 1).astype(np.intp)
    indices = first[:, None] + np.arange(int((last - first).max()) + 1)
    weights = weight(np.abs(indices.astype(F) + F(0.5) - center[:, None]) / stretch).astype(F)
    weights = _normalized(np.where(indices <= last[:, None], weights, F(0)))
    inside = (center >= 0) & (center <= size)
    return np.minimum(indices, size - 1), np.where(inside[:, None], weights, F(0))


def _normalized(weights: np.ndarray) -> np.ndarray:
    total = weights.sum(1, keepdims=True, dtype=F)
    array: np.ndarray = np.divide(weights, total, out=weights.copy(), where=np.abs(total) >= TINY)
    return array


def applied(x: np.ndarray, rows: Taps, columns: Taps) -> np.ndarray:
    """Resample images [n, h, w, c] in float32 or float64 by taps of rows and columns."""
    for axis, taps in ((1, rows), (2, columns)):
        indices, weights = (like_device.array(x, part) for part in taps)
        weight_shape = (-1, 1, 1) if axis == 1 else (-1, 1)
        total = np.take(x, indices[:, 0], axis) * weights[:, 0].reshape(weight_shape)
        for k in range(1, indices.shape[1]):
            total += np.take(x, indices[:, k], axis) * weights[:, k].reshape(weight_shape)
        x = total
    return x


def matrix(taps: Taps, size: int) -> np.ndarray:
    """Return taps as a dense matrix [out, size]."""
    indices, weights = taps
    dense = np.zeros((len(indices), size), weights.dtype)
    np.add.at(dense, (np.arange(len(indices))[:, None], indices), weights)
    return dense


def transposed(dy: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Apply the transposed matrices: compute the gradient of images from the gradient of the resampled ones."""
    n, height, width, depth = dy.shape
    rows, columns = like_device.array(dy, rows), like_device.array(dy, columns)
    up = rows.T.astype(dy.dtype) @ dy.reshape(n, height, width * depth)
    up = columns.T.astype(dy.dtype) @ up.reshape(n * rows.shape[1], width, depth)
    array: np.ndarray = up.reshape(n, rows.shape[1], columns.shape[1], depth)
    return array
