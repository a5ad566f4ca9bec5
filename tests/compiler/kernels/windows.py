"""Windows over images in NumPy: what convolutions and pools of every kind are made of.

Lives here: `output_size`, `patches`, `correlated`.  Not here: what is done to a pixel (the tests).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from opwright.compiler.loops.buffers import Window


def output_size(shape: Sequence[int], window: Window) -> tuple[int, int]:
    """Rows and columns of the output of a window over NHWC of this shape."""
    (kh, kw), (sh, sw), (dh, dw), (top, bottom, left, right) = (
        window.size,
        window.strides,
        window.dilations,
        window.padding,
    )
    return (
        (shape[1] + top + bottom - (kh - 1) * dh - 1) // sh + 1,
        (shape[2] + left + right - (kw - 1) * dw - 1) // sw + 1,
    )


def patches(x: np.ndarray, window: Window, fill: float) -> Iterator[tuple[int, int, np.ndarray]]:
    """For each tap its place in the window and the pixels it sees, of the output's size; `fill` stands outside."""
    top, bottom, left, right = window.padding
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    height, width = output_size(x.shape, window)
    (kh, kw), (sh, sw), (dh, dw) = window.size, window.strides, window.dilations
    for i in range(kh):
        for j in range(kw):
            y0, x0 = i * dh, j * dw
            yield i, j, padded[:, y0 : y0 + (height - 1) * sh + 1 : sh, x0 : x0 + (width - 1) * sw + 1 : sw]


def correlated(
    x: np.ndarray, window: Window, tap: Callable[[np.ndarray, int, int], np.ndarray], fill: float = 0
) -> np.ndarray:
    """The sum over taps (i, j) of tap(pixels, i, j)."""
    return sum(tap(pixels, i, j) for i, j, pixels in patches(x, window, fill))
