"""`keras.datasets.cifar100`: small color pictures of a hundred classes."""

from __future__ import annotations

import os

from ..file_archives import get_file
from .cifar10 import ORIGIN, load_batch
from .tables import Table

__all__ = ["load_data"]


def load_data(label_mode: str = "fine") -> Table:
    """Return (x_train, y_train), (x_test, y_test) as cifar10. label_mode: "coarse" for the 20 groups of classes."""
    if label_mode not in ("fine", "coarse"):
        raise ValueError(f'`label_mode` must be one of "fine", "coarse". Received: label_mode={label_mode}.')
    folder = get_file("cifar-100-python-target", origin=ORIGIN + "cifar-100-python.tar.gz", extract=True)
    files = (os.path.join(folder, "cifar-100-python", name) for name in ("train", "test"))
    train, test = (load_batch(file, f"{label_mode}_labels") for file in files)
    return train, test
