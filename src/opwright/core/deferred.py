"""Arrays that are computed where they are read.

Lives here: `DeferredArray`. Not here: which constants of a model are such (lite/convert/rewriter.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


class DeferredArray:
    """An array that each reader computes: large weights that are read once, when their file is written.

    compute: returns the array, always the same. It is read-only from then on.
    """

    __slots__ = ("_compute", "dtype", "shape")

    def __init__(self, compute: Callable[[], np.ndarray], shape: tuple[int, ...], dtype: np.dtype) -> None:
        self._compute, self.shape, self.dtype = compute, shape, dtype

    @property
    def nbytes(self) -> int:
        """The bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    def compute(self) -> np.ndarray:
        """Return the array."""
        array = self._compute()
        array.flags.writeable = False
        return array
