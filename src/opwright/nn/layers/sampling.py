"""Images at other places than their pixels': one matrix for each dimension.

Lives here: `resize`, the weights of each method.  Not here: the layers that use it (upsampling.py).

Pixel j covers [j, j + 1]; new pixel i has its centre at (i + 1/2) n / m. Its value is a mean of pixels near it with
weights by distance, which add up to 1 at the borders too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ops import array, linalg, math


def _triangle(x: Any) -> Any:
    return math.maximum(1.0 - x, 0.0)


def _cubic(x: Any) -> Any:
    """Keys's, with a = -1/2."""
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return array.where(x < 1.0, near, array.where(x < 2.0, far, array.zeros_like(x)))


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def weight(x: Any) -> Any:
        angle = np.float32(np.pi) * math.maximum(x, 1e-3)
        wave = radius * math.sin(angle) * math.sin(angle / radius) / (angle * angle)
        return array.where(x <= 1e-3, array.ones_like(x), array.where(x < radius, wave, array.zeros_like(x)))

    return weight


METHODS: dict[str, tuple[float, Callable[[Any], Any]]] = {  # how far pixels matter, and how much by distance
    "bilinear": (1.0, _triangle),
    "bicubic": (2.0, _cubic),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
}


def check(method: str, allowed: Sequence[str]) -> None:
    """Raises ValueError for a method that is not among these."""
    if method not in allowed:
        raise ValueError(f"`interpolation` argument should be one of {', '.join(map(repr, allowed))}. Received: "
                         f"interpolation={method!r}")  # fmt: skip


def _centres(wanted: Any, size: Any, dtype: str = "float32") -> tuple[Any, Any]:
    scale = array.cast(size, dtype) / array.cast(wanted, dtype)
    return (array.cast(array.range(wanted), dtype) + 0.5) * scale, scale


def _matrix(wanted: Any, size: Any, method: str, antialias: bool) -> Any:
    """[wanted, size]: the weight of each pixel in each new one."""
    _, kernel = METHODS[method]
    centre, scale = _centres(wanted, size)
    stretch = math.maximum(scale, 1.0) if antialias else 1.0
    if method == "bicubic" and not antialias:  # the field's kernels take weights from a table of 1024 offsets
        whole = math.floor(centre - 0.5)
        centre = whole + math.round((centre - 0.5 - whole) * 1024.0) / 1024.0 + 0.5
    pixel = array.cast(array.range(size), "float32") + 0.5
    weights = kernel(math.abs(array.expand_dims(centre, 1) - array.expand_dims(pixel, 0)) / stretch)
    return weights / math.reduce_sum(weights, axis=1, keepdims=True)


def resize(x: Any, wanted: Sequence[Any], method: str, first: int, antialias: bool = False) -> Any:
    """Images with two dimensions, `first` and the one after, brought to other sizes."""
    for axis, m in enumerate(wanted, first):
        n = x.shape[axis]
        if n is not None and isinstance(m, int) and n == m:
            continue
        size = array.shape(x)[axis] if n is None else n
        if method == "nearest":
            at, _ = _centres(m, size)
            x = array.gather(x, math.minimum(array.cast(at, "int32"), size - 1), axis=axis)
            continue
        weights = array.cast(_matrix(m, size, method, antialias), x.dtype)
        rank = x.shape.rank
        y = linalg.tensordot(x, weights, [[axis], [1]])  # the new axis comes last
        x = array.transpose(y, [*range(axis), rank - 1, *range(axis, rank - 1)])
    return x
