"""`keras.datasets.mnist`: pictures of handwritten digits."""

from __future__ import annotations

from ..file_archives import get_file
from .restricted_pickle import load_npz
from .tables import ORIGIN, Table

__all__ = ["load_data"]


def load_data(path: str = "mnist.npz") -> Table:
    """Return (x_train, y_train), (x_test, y_test): uint8 [60000, 28, 28] and [10000, 28, 28], labels 0 to 9."""
    arrays = load_npz(get_file(path, origin=ORIGIN + "mnist.npz"))
    return (arrays["x_train"], arrays["y_train"]), (arrays["x_test"], arrays["y_test"])
