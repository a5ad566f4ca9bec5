"""`keras.datasets.fashion_mnist`: pictures of clothes."""

from __future__ import annotations

import gzip

import numpy as np

from ...core.errors import DataLossError
from ..file_archives import get_file
from .tables import ORIGIN, Table

__all__ = ["load_data"]


def load_data() -> Table:
    """Return (x_train, y_train), (x_test, y_test): uint8 [60000, 28, 28] and [10000, 28, 28], labels 0 to 9."""
    labels, images = ("train-labels-idx1", "t10k-labels-idx1"), ("train-images-idx3", "t10k-images-idx3")
    y_train, y_test = (_read(name, 8) for name in labels)
    x_train, x_test = (_read(name, 16).reshape(-1, 28, 28) for name in images)
    return (x_train, y_train), (x_test, y_test)


def _read(name: str, header: int) -> np.ndarray:
    """Return the bytes of a file behind its header. Raises DataLossError if it is damaged."""
    file = f"{name}-ubyte.gz"
    path = get_file(file, origin=ORIGIN + file, cache_subdir="datasets/fashion-mnist")
    try:
        with gzip.open(path) as stream:
            return np.frombuffer(stream.read(), np.uint8, offset=header)
    except (OSError, EOFError, ValueError) as error:
        raise DataLossError(op="keras.datasets", what=f"{path} is damaged: {error}") from None
