"""Numbers in the other byte order, for targets whose order is not this machine's.

Lives here: `in_other_order`. Not here: which constants are numbers (loops/plan_builder.py), who writes them (../aot/).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


def in_other_order(
    array: np.ndarray, numbers: Callable[[np.ndarray], Sequence[np.ndarray]] | None = None
) -> np.ndarray:
    """Return a copy whose numbers have their bytes reversed; complex ones part by part.

    numbers: returns views of the parts of an array that are numbers of their dtypes; by default all is
    """
    copy = np.array(array, order="C")
    for view in (copy,) if numbers is None else numbers(copy):
        size = view.dtype.itemsize // (2 if view.dtype.kind == "c" else 1)
        if size > 1:
            parts = view.view(f"u{size}")  # bfloat16 is not a type that NumPy swaps
            parts.byteswap(inplace=True)
    return copy
