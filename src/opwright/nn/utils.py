"""Helpers of `keras.utils`: labels as rows, seeds.

Lives here: `to_categorical`, `normalize`, `set_random_seed`, `PyDataset`, packing of batches, the user's own classes.
Not here: the progress bar (training/progress.py).
"""

from __future__ import annotations

import random as python_random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ops import dispatch
from ..ops import random as random_ops
from ..ops.tensor import TensorLike
from .backend import clear_session
from .keras_tensor import KerasTensor
from .model_config import deserialize as deserialize_keras_object
from .model_config import serialize as serialize_keras_object
from .named import CUSTOM, CustomObjectScope
from .timeseries import timeseries_dataset_from_array
from .training.batches import pack as pack_x_y_sample_weight
from .training.batches import unpack as unpack_x_y_sample_weight
from .training.progress import Progbar

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

__all__ = [
    "CustomObjectScope",
    "Progbar",
    "PyDataset",
    "Sequence",
    "clear_session",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "is_keras_tensor",
    "normalize",
    "pack_x_y_sample_weight",
    "register_keras_serializable",
    "serialize_keras_object",
    "set_random_seed",
    "timeseries_dataset_from_array",
    "to_categorical",
    "unpack_x_y_sample_weight",
]


class PyDataset:
    """Base class of Python batch sources: override `__getitem__(index)` and `__len__` or `num_batches`.

    workers, use_multiprocessing, max_queue_size: kept; batches are made one after another where they are used.
    """

    def __init__(self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10) -> None:
        self.workers, self.use_multiprocessing, self.max_queue_size = workers, use_multiprocessing, max_queue_size

    def __getitem__(self, index: int) -> Any:
        """Return a batch: x, (x, y) or (x, y, sample_weight)."""
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(index)")

    @property
    def num_batches(self) -> int:
        """Number of batches."""
        raise NotImplementedError(f"{type(self).__name__} must define __len__() or num_batches")

    def __len__(self) -> int:
        return self.num_batches

    def on_epoch_end(self) -> None:
        """Handle the end of an epoch."""


Sequence = PyDataset


def to_categorical(x: Any, num_classes: int | None = None) -> Tensor | np.ndarray:
    """Return class indices one-hot encoded: [...] -> [..., num_classes], by default the largest index + 1.

    raises ValueError for a number that is out of range

    >>> ow.keras.utils.to_categorical([0, 2])
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    labels = np.asarray(x.numpy() if isinstance(x, TensorLike) else x).astype(np.int64)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    count = int(labels.max()) + 1 if num_classes is None else int(num_classes)
    if labels.size and (labels.min() < 0 or labels.max() >= count):
        raise ValueError(
            f"to_categorical: class numbers are from {labels.min()} to {labels.max()}, num_classes is {count}"
        )
    rows = np.zeros((labels.size, count))
    rows[np.arange(labels.size), labels.reshape(-1)] = 1.0
    found = rows.reshape(*labels.shape, count)
    return dispatch.to_tensor(found) if isinstance(x, TensorLike) else found


def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """Scale the vectors along `axis` to norm 1; zero vectors stay zero."""
    a = np.atleast_1d(np.asarray(x))
    norms = np.atleast_1d(np.linalg.norm(a, order, axis))
    norms[norms == 0] = 1
    array: np.ndarray = a / np.expand_dims(norms, axis)
    return array


def set_random_seed(seed: int) -> None:
    """Seed Python, NumPy and this package. Raises ValueError unless `seed` is an integer."""
    if not isinstance(seed, int):
        raise ValueError(f"Expected `seed` argument to be an integer. Received: seed={seed} (of type {type(seed)})")
    python_random.seed(seed)
    np.random.seed(seed % 2**32)
    random_ops.set_seed(seed)


def is_keras_tensor(x: Any) -> bool:
    """Return whether x is a KerasTensor."""
    return isinstance(x, KerasTensor)


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Callable[[Any], Any]:
    """Decorate a class or function to be found by configurations as `package>name`."""

    def register(thing: Any) -> Any:
        CUSTOM[f"{package}>{name or thing.__name__}"] = thing
        CUSTOM.setdefault(name or thing.__name__, thing)
        return thing

    return register


def get_custom_objects() -> dict[str, Any]:
    """Return the mutable registry of user classes and functions."""
    return CUSTOM


custom_object_scope = CustomObjectScope
