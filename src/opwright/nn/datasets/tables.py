"""Tables of numbers with a target, shuffled by a seed and split.

Lives here: `load_table`.  Not here: which files there are (the modules of the data sets).
"""

from __future__ import annotations

import numpy as np

from ..file_archives import get_file
from .restricted_pickle import load_npz

ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
Table = tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def load_table(path: str, name: str, test_split: float, seed: int, rows: int | None = None) -> Table:
    """Return (x_train, y_train), (x_test, y_test) of an .npz file with x and y. rows: how many of the file count.

    raises ValueError for a test_split outside [0, 1), FileNotFoundError
    """
    if not 0 <= test_split < 1:
        raise ValueError(f"Invalid `test_split` argument: {test_split}. It must be between 0 and 1 (exclusive of 1).")
    arrays = load_npz(get_file(path, origin=ORIGIN + name))
    x, y = arrays["x"][:rows], arrays["y"][:rows]
    order = np.arange(len(x))
    np.random.RandomState(seed).shuffle(order)
    x, y, count = x[order], y[order], int(len(x) * (1 - test_split))
    return (x[:count], y[:count]), (x[count:], y[count:])
