"""What windows sliding over images see: shared by convolutions and pools, of floats and of integers.

Lives here: windows from an operator's options, combining what each position sees.
Not here: operators (convolution.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.nn.windows import Window, window


def windows_of(op: Any, image: Any, kernel: Any) -> list[Window]:
    """The windows over h and w. image, kernel: (h, w) sizes."""
    steps = ((op.stride_h, getattr(op, "dilation_h_factor", 1)), (op.stride_w, getattr(op, "dilation_w_factor", 1)))
    return [window(size, k, s, d, op.padding) for size, k, (s, d) in zip(image, kernel, steps)]


def counts(w: Window, dtype: Any = np.float32) -> np.ndarray:
    """How many elements of the image each position of a window sees."""
    first = np.arange(w.out) * w.stride - w.before
    return (np.minimum(first + w.kernel, w.size) - np.maximum(first, 0)).astype(dtype)


def along(x: Any, w: Window, axis: int, combine: np.ufunc, initial: float) -> np.ndarray:
    """Combine what each position of a window sees along one axis; what lies outside the image is left out."""
    before = (slice(None),) * axis
    y = np.full((*x.shape[:axis], w.out, *x.shape[axis + 1 :]), initial, x.dtype)
    for i in range(max(0, w.before - (w.out - 1) * w.stride), min(w.kernel, w.before + w.size)):
        first = max(0, -((i - w.before) // w.stride))
        last = min(w.out - 1, (w.size - 1 + w.before - i) // w.stride)
        if first <= last:
            pixel = first * w.stride + i - w.before
            target = y[(*before, slice(first, last + 1))]
            seen = x[(*before, slice(pixel, pixel + (last - first) * w.stride + 1, w.stride))]
            combine(target, seen, out=target)
    return y
