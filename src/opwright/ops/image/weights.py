"""Which pixels a resized image takes, and how much of each: along one dimension at a time.

Lives here: the places and weights of every method, as NumPy arrays, and their application to images.
Not here: the operators (resize_operators.py).

A method's taps are two arrays [out, k]: of each new pixel k pixels of the image and their weights. Everything is
counted in float32, as the field does, so that pixels on a border between two fall to the same side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...scalar.resampling import Sampling
from .. import like_device

Taps = tuple[np.ndarray, np.ndarray]
F = np.float32
TINY = F(1000.0) * np.finfo(F).tiny  # weights that add up to less are left as they are
TABLE = 1024  # bicubic weights are taken at this many places between two pixels


def bilinear(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> tuple[Any, Any, Any]:
    """The pixels below and above each new one, and how far it is from the one below, [out] each."""
    at = Sampling(size, out, align_corners, half_pixel_centers).positions()
    low = np.floor(at)
    return (np.maximum(low, 0).astype(np.intp), np.minimum(np.ceil(at), size - 1).astype(np.intp), at - low)


def bicubic(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """Keys's cubic: a = -1/2 and nothing beyond the border with half-pixel centres, else a = -3/4 and the border
    repeated."""
    a = F(-0.5 if half_pixel_centers else -0.75)
    at = Sampling(size, out, align_corners, half_pixel_centers).positions()
    whole = np.floor(at)
    offset = np.rint((at - whole) * F(TABLE)) / F(TABLE)

    def near(x: np.ndarray) -> np.ndarray:
        result: np.ndarray = ((a + F(2)) * x - (a + F(3))) * x * x + F(1)
        return result

    def far(x: np.ndarray) -> np.ndarray:
        x = x + F(1)
        result: np.ndarray = ((a * x - F(5) * a) * x + F(8) * a) * x - F(4) * a
        return result

    weights = np.stack([far(offset), near(offset), near(F(1) - offset), far(F(1) - offset)], 1)
    wanted = whole[:, None].astype(np.intp) + np.arange(-1, 3)
    inside = np.clip(wanted, 0, size - 1)
    if half_pixel_centers:
        weights = _normalized(np.where(inside == wanted, weights, F(0)))
    return inside, weights


def area(size: int, out: int, align_corners: bool) -> Taps:
    """The share of each pixel that a new one covers."""
    step = Sampling(size, out, align_corners, False).scale
    if step == 0:  # one pixel with its corner aligned to that of many
        return np.zeros((out, 1), np.intp), np.ones((out, 1), F)
    start = np.arange(out, dtype=F) * step
    end = np.arange(1, out + 1, dtype=F) * step
    first, last = np.floor(start).astype(np.intp), np.ceil(end).astype(np.intp)
    at = first[:, None] + np.arange(int((last - first).max()))
    covered = np.minimum((at + 1).astype(F), end[:, None]) - np.maximum(at.astype(F), start[:, None])
    return np.clip(at, 0, size - 1), np.maximum(covered, F(0)) / step


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
    near, far = (F(1.5) * x - F(2.5)) * x * x + F(1), ((F(-0.5) * x + F(2.5)) * x - F(4)) * x + F(2)
    return np.where(x >= F(2), F(0), np.where(x >= F(1), far, near))


def _mitchell_cubic(x: Any) -> np.ndarray:
    near = (F(7 / 6) * x - F(2)) * x * x + F(8 / 9)
    far = ((F(-7 / 18) * x + F(2)) * x - F(10 / 3)) * x + F(16 / 9)
    return np.where(x >= F(2), F(0), np.where(x >= F(1), far, near))


KERNELS: dict[str, tuple[float, Callable[[Any], Any]]] = {  # how far pixels matter, and how much by distance
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
    """Of the image enlarged by `factor` and then shifted; new pixels whose centre lies outside the image are 0."""
    radius, weight = KERNELS[kernel]
    step = F(1) / F(factor)
    stretch = max(step, F(1)) if antialias else F(1)
    centre = (np.arange(out, dtype=F) + F(0.5)) * step - step * F(shift)
    reach = F(radius) * stretch
    last = np.clip(np.floor(centre + reach - F(0.5)), 0, size - 1).astype(np.intp)
    first = np.clip(np.ceil(centre - reach - F(0.5)), 0, size - 1).astype(np.intp)
    at = first[:, None] + np.arange(int((last - first).max()) + 1)
    weights = weight(np.abs(at.astype(F) + F(0.5) - centre[:, None]) / stretch).astype(F)
    weights = _normalized(np.where(at <= last[:, None], weights, F(0)))
    inside = (centre >= 0) & (centre <= size)
    return np.minimum(at, size - 1), np.where(inside[:, None], weights, F(0))


def _normalized(weights: np.ndarray) -> np.ndarray:
    total = weights.sum(1, keepdims=True, dtype=F)
    array: np.ndarray = np.divide(weights, total, out=weights.copy(), where=np.abs(total) >= TINY)
    return array


def applied(x: np.ndarray, rows: Taps, columns: Taps) -> np.ndarray:
    """Images [n, h, w, c] in float32 or float64 at other places: [n, out rows, out columns, c]."""
    for axis, taps in ((1, rows), (2, columns)):
        at, weights = (like_device.array(x, part) for part in taps)
        form = (-1, 1, 1) if axis == 1 else (-1, 1)
        total = np.take(x, at[:, 0], axis) * weights[:, 0].reshape(form)
        for k in range(1, at.shape[1]):
            total += np.take(x, at[:, k], axis) * weights[:, k].reshape(form)
        x = total
    return x


def matrix(taps: Taps, size: int) -> np.ndarray:
    """[out, size]: the weight of each pixel in each new one."""
    at, weights = taps
    dense = np.zeros((len(at), size), weights.dtype)
    np.add.at(dense, (np.arange(len(at))[:, None], at), weights)
    return dense


def transposed(dy: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """What matrices of weights did to the images, backwards: the gradient of the images from that of the result."""
    n, high, wide, depth = dy.shape
    rows, columns = like_device.array(dy, rows), like_device.array(dy, columns)
    up = rows.T.astype(dy.dtype) @ dy.reshape(n, high, wide * depth)
    up = columns.T.astype(dy.dtype) @ up.reshape(n * rows.shape[1], wide, depth)
    array: np.ndarray = up.reshape(n, rows.shape[1], columns.shape[1], depth)
    return array
