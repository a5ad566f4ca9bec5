"""`keras.datasets.cifar10`: small color pictures of ten classes."""

from __future__ import annotations

import os

import numpy as np

from .. import config
from ..file_archives import get_file
from .restricted_pickle import load_pickle
from .tables import Table

__all__ = ["load_data"]
ORIGIN = "https://www.cs.toronto.edu/~kriz/"


def load_data() -> Table:
    """Return (x_train, y_train), (x_test, y_test): uint8 [50000, 32, 32, 3] and [10000, 32, 32, 3], labels [n, 1]."""
    folder = get_file("cifar-10-batches-py-target", origin=ORIGIN + "cifar-10-python.tar.gz", extract=True)
    folder = os.path.join(folder, "cifar-10-batches-py")
    parts = [load_batch(os.path.join(folder, f"data_batch_{i}"), "labels") for i in range(1, 6)]
    train = np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])
    return train, load_batch(os.path.join(folder, "test_batch"), "labels")


def load_batch(path: str, labels: str) -> tuple[np.ndarray, np.ndarray]:
    """Return pictures and labels [n, 1] of one file. labels: their key in the file."""
    with open(path, "rb") as file:
        batch = load_pickle(file)
    images = np.asarray(batch[b"data"], np.uint8).reshape(-1, 3, 32, 32)
    if config.image_data_format() == "channels_last":
        images = images.transpose(0, 2, 3, 1)
    return images, np.reshape(np.asarray(batch[labels.encode()], np.uint8), (-1, 1))
