"""`keras.utils`: one-hot labels, seeds, batch sources, datasets of windows.

Lives here: `to_categorical`, `normalize`, `set_random_seed`, `PyDataset`, `timeseries_dataset_from_array`, registration
of user classes.
Not here: the progress bar (callbacks/base.py).
"""

from __future__ import annotations

import random as python_random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..core.lazy_imports import MissingNameError, import_module
from ..data import AUTOTUNE, Dataset
from ..data import experimental as data_experimental
from ..ops import array, dispatch, linalg, math
from ..ops import random as random_ops
from ..ops.tensor import TensorLike
from . import bounding_boxes
from .attribute_maps import Config
from .backend import clear_session, standardize_dtype
from .callbacks.base import Progbar
from .configuration import CUSTOM, CustomObjectScope, registered_name
from .directories import (
    audio_dataset_from_directory,
    check_format,
    image_dataset_from_directory,
    text_dataset_from_directory,
)
from .file_archives import get_file
from .function_code import SafeModeScope, scoped
from .image_files import array_to_img, img_to_array, load_img, save_img
from .keras_tensor import KerasTensor, find
from .messages import disable_interactive_logging, enable_interactive_logging, is_interactive_logging_enabled
from .model_config import deserialize, plain_value
from .model_pictures import model_to_dot, plot_model
from .training.batches import pack as pack_x_y_sample_weight
from .training.batches import unpack as unpack_x_y_sample_weight

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "Config",
    "CustomObjectScope",
    "FeatureSpace",  # noqa: F822  by __getattr__
    "Progbar",
    "PyDataset",
    "Sequence",
    "array_to_img",
    "audio_dataset_from_directory",
    "bounding_boxes",
    "clear_session",
    "custom_object_scope",
    "deserialize_keras_object",
    "disable_interactive_logging",
    "enable_interactive_logging",
    "get_custom_objects",
    "get_file",
    "get_registered_name",
    "get_registered_object",
    "get_source_inputs",
    "image_dataset_from_directory",
    "img_to_array",
    "is_interactive_logging_enabled",
    "is_keras_tensor",
    "load_img",
    "model_to_dot",
    "normalize",
    "pack_x_y_sample_weight",
    "pad_sequences",
    "plot_model",
    "register_keras_serializable",
    "save_img",
    "serialize_keras_object",
    "set_random_seed",
    "split_dataset",
    "standardize_dtype",
    "text_dataset_from_directory",
    "timeseries_dataset_from_array",
    "to_categorical",
    "unpack_x_y_sample_weight",
]


class PyDataset:
    """Base class of Python batch sources: override `__getitem__(index)` and `__len__` or `num_batches`.

    workers, use_multiprocessing, max_queue_size: stored, but without effect; batches are computed on demand.
    """

    def __init__(self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10) -> None:
        self.workers, self.use_multiprocessing, self.max_queue_size = workers, use_multiprocessing, max_queue_size

    def __getitem__(self, index: int) -> Any:
        """Return a batch: x, (x, y) or (x, y, sample_weight)."""
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(index)")

    @property
    def num_batches(self) -> int | None:
        """Number of batches; None if there is no end, where `fit` needs `steps_per_epoch`."""
        if type(self).__len__ is PyDataset.__len__:
            raise NotImplementedError(f"{type(self).__name__} must define __len__() or num_batches")
        return len(self)

    def __len__(self) -> int:
        number = self.num_batches
        if number is None:
            raise TypeError(f"{type(self).__name__} has no end")
        return number

    def on_epoch_begin(self) -> None:
        """Handle the begin of an epoch."""

    def on_epoch_end(self) -> None:
        """Handle the end of an epoch."""


Sequence = PyDataset


def to_categorical(x: Any, num_classes: int | None = None) -> Tensor | np.ndarray:
    """Return class indices one-hot encoded: [...] -> [..., num_classes], by default the largest index + 1.

    raises ValueError for an index out of range

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
            f"to_categorical: class indices are from {labels.min()} to {labels.max()}, num_classes is {count}"
        )
    rows = np.zeros((labels.size, count))
    rows[np.arange(labels.size), labels.reshape(-1)] = 1.0
    encoded = rows.reshape(*labels.shape, count)
    return dispatch.to_tensor(encoded) if isinstance(x, TensorLike) else encoded


def normalize(x: Any, axis: int = -1, order: int = 2) -> Any:
    """Scale the vectors along `axis` to norm 1; zero vectors stay zero. Returns a tensor of a tensor, else an array."""
    if isinstance(x, TensorLike):
        lengths = linalg.norm(x, order, axis, keepdims=True)
        return x / array.where(math.equal(lengths, 0), array.ones_like(lengths), lengths)
    a = np.atleast_1d(np.asarray(x))
    norms = np.atleast_1d(np.linalg.norm(a, order, axis))
    norms[norms == 0] = 1
    return a / np.expand_dims(norms, axis)


def pad_sequences(
    sequences: Any,
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> np.ndarray:
    """Return lists of different lengths as one array, [sequences, maxlen, ...], padded with `value`.

    maxlen: the longest length by default; longer sequences are cut. padding, truncating: where, "pre" or "post".
    dtype: of the array; object or str for text
    raises ValueError for sequences that are not lists, whose items differ in shape, or other arguments

    >>> ow.keras.utils.pad_sequences([[1], [2, 3]])
    array([[0, 1],
           [2, 3]], dtype=int32)
    """
    for label, place in (("padding", padding), ("truncating", truncating)):
        if place not in ("pre", "post"):
            raise ValueError(f'{label.capitalize()} type "{place}" not understood')
    if not hasattr(sequences, "__len__"):
        raise ValueError("`sequences` must be iterable.")
    for sequence in sequences:
        if not hasattr(sequence, "__len__"):
            raise ValueError(f"`sequences` must be a list of iterables. Found non-iterable: {sequence}")
    if isinstance(value, str) and not (dtype is object or np.issubdtype(dtype, np.str_)):
        raise ValueError(
            f"`dtype` {dtype} is not compatible with `value`'s type: {type(value)}\nYou should set `dtype=object`"
        )
    longest = max(map(len, sequences), default=0) if maxlen is None else maxlen
    item_shape = next((np.asarray(s).shape[1:] for s in sequences if len(s)), ())
    result = np.full((len(sequences), longest, *item_shape), value, dtype)
    for row, sequence in zip(result, sequences):
        kept = sequence[max(len(sequence) - longest, 0) :] if truncating == "pre" else sequence[:longest]
        items = np.asarray(kept, dtype)
        if not len(items):
            continue
        if items.shape[1:] != item_shape:
            raise ValueError(
                f"Shape of sample {items.shape[1:]} of sequence is different from expected shape {item_shape}"
            )
        row[len(row) - len(items) if padding == "pre" else 0 :][: len(items)] = items
    return result


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


def get_source_inputs(tensor: KerasTensor) -> list[KerasTensor]:
    """Return the inputs of a functional model on which a symbolic tensor depends, itself if it is one."""
    sources: dict[int, KerasTensor] = {}
    pending: list[KerasTensor] = [tensor]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        inputs = [] if current.history is None else find((current.node.args, current.node.kwargs))
        if inputs:
            pending.extend(inputs)
        else:
            sources[id(current)] = current
    return list(sources.values())


def serialize_keras_object(obj: Any) -> Any:
    """Return an object as plain values: itself if it is one; structures, tensors, functions, objects with `get_config`.

    raises TypeError for other objects

    >>> serialize_keras_object((1, "a"))
    {'class_name': '__tuple__', 'items': [1, 'a']}
    """
    return plain_value(obj)


def deserialize_keras_object(
    config: Any, custom_objects: dict[str, Any] | None = None, safe_mode: bool = True, **kwargs: Any
) -> Any:
    """Return the object of plain values. custom_objects: classes and functions of users by name.

    safe_mode: whether Python code in configurations raises ValueError, in place of being loaded.
    raises TypeError for an unknown class

    >>> deserialize_keras_object({"class_name": "__tuple__", "items": [1, "a"]})
    (1, 'a')
    """
    if kwargs:
        raise ValueError(f"The following argument(s) are not supported: {sorted(kwargs)}")
    with SafeModeScope(scoped(safe_mode)):
        return _deserialized(config, custom_objects)


def _deserialized(config: Any, custom_objects: dict[str, Any] | None) -> Any:
    if isinstance(config, list):
        return [_deserialized(part, custom_objects) for part in config]
    if isinstance(config, dict) and "class_name" not in config:
        return {key: _deserialized(part, custom_objects) for key, part in config.items()}
    return deserialize(config, custom_objects)


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Callable[[F], F]:
    """Decorate a class or function to be found by configurations as `package>name`.

    raises ValueError for a class without `get_config`
    """

    def register(thing: F) -> F:
        if isinstance(thing, type) and not hasattr(thing, "get_config"):
            raise ValueError(f"Cannot register a class that does not have a get_config() method: {thing.__name__}.")
        CUSTOM[f"{package}>{name or thing.__name__}"] = thing
        CUSTOM.setdefault(name or thing.__name__, thing)
        return thing

    return register


def get_custom_objects() -> dict[str, Any]:
    """Return the mutable registry of user classes and functions."""
    return CUSTOM


def get_registered_name(obj: Any) -> str:
    """Return the name under which a class or function is registered, "package>name"; otherwise its own name."""
    own_name: str = obj.__name__
    return registered_name(obj) or next((name for name, thing in CUSTOM.items() if thing is obj), own_name)


def get_registered_object(
    name: str, custom_objects: dict[str, Any] | None = None, module_objects: dict[str, Any] | None = None
) -> Any:
    """Return the class or function of a name: registered, or in one of the dictionaries; None for others."""
    for objects in (CUSTOM, custom_objects or {}, module_objects or {}):
        if name in objects:
            return objects[name]
    return None


custom_object_scope = CustomObjectScope


def timeseries_dataset_from_array(
    data: Any,
    targets: Any,
    sequence_length: int,
    sequence_stride: int = 1,
    sampling_rate: int = 1,
    batch_size: int | None = 128,
    shuffle: bool = False,
    seed: int | None = None,
    start_index: int | None = None,
    end_index: int | None = None,
    format: str = "tf",
) -> Dataset:
    """Return a dataset of batches of sliding windows [batch, sequence_length, ...] and their targets, if any.

    Window i consists of the rows i * sequence_stride + k * sampling_rate for k < sequence_length; its target is row
    i * sequence_stride. start_index, end_index: the range of rows. batch_size: None for unbatched windows. shuffle:
    whether to shuffle windows. raises ValueError for numbers below 1 and indices out of range

    >>> next(iter(ow.keras.utils.timeseries_dataset_from_array([0, 1, 2, 3], None, 3))).numpy()
    array([[0, 1, 2],
           [1, 2, 3]], dtype=int32)
    """
    check_format(format)
    for name, value in (
        ("sequence_length", sequence_length),
        ("sequence_stride", sequence_stride),
        ("sampling_rate", sampling_rate),
    ):
        if value <= 0:
            raise ValueError(f"`{name}` must be higher than 0. Received: {name}={value}")
    count = len(data)
    for name, index in (("start_index", start_index), ("end_index", end_index)):
        if index is not None and not 0 <= index <= count:
            raise ValueError(
                f"`{name}` must be from 0 to the length of the data. Received: {name}={index}, for data "
                f"of length {count}"
            )
    begin, end = start_index or 0, count if end_index is None else end_index
    if end <= begin:
        raise ValueError(f"`end_index` must be higher than `start_index`. Received: {begin} and {end}")
    windows = end - begin - (sequence_length - 1) * sampling_rate
    if targets is not None:
        windows = min(windows, len(targets))
    starts = np.arange(0, max(windows, 0), sequence_stride)
    if shuffle:
        seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        np.random.RandomState(seed).shuffle(starts)
    rows = dispatch.to_tensor(data)[begin:end]
    steps = np.arange(sequence_length) * sampling_rate
    dataset: Any = Dataset.from_tensor_slices(starts).map(lambda start: array.gather(rows, start + steps))
    if targets is not None:
        target_rows = dispatch.to_tensor(targets)[begin:end]
        dataset = Dataset.zip(
            (dataset, Dataset.from_tensor_slices(starts).map(lambda start: array.gather(target_rows, start)))
        )
    if shuffle:
        dataset = dataset.shuffle(1024 if batch_size is None else batch_size * 8, seed=seed)
    if batch_size is not None:
        dataset = dataset.batch(batch_size)
    result: Dataset = dataset.prefetch(AUTOTUNE)
    return result


def __getattr__(name: str) -> object:
    if name == "FeatureSpace":  # made of layers, which import this module
        return import_module(".feature_space", __package__).FeatureSpace
    raise MissingNameError(__name__, name)


def split_dataset(
    dataset: Any,
    left_size: Any = None,
    right_size: Any = None,
    shuffle: bool = False,
    seed: int | None = None,
    preferred_backend: str | None = None,
) -> tuple[Dataset, Dataset]:
    """Return two datasets with the first and last elements of a dataset, an array, or a list or tuple of arrays.

    left_size, right_size: numbers of elements, or fractions; one may be left out. shuffle: whether elements are in
    random order, by seed. All elements are held in memory. preferred_backend: of the kind of dataset: "tensorflow".
    raises ValueError for sizes that do not fit, TypeError for others than numbers
    """
    if left_size is None and right_size is None:
        raise ValueError("At least one of `left_size` or `right_size` must be specified. Received: both None")
    if preferred_backend not in (None, "tensorflow", "opwright"):
        raise ValueError(f"datasets are those of `ow.data`. Received: preferred_backend={preferred_backend!r}")
    source = dataset if isinstance(dataset, Dataset) else None
    if source is None:
        arrays = isinstance(dataset, list) and bool(dataset) and all(isinstance(a, np.ndarray) for a in dataset)
        source = Dataset.from_tensor_slices(
            tuple(dataset) if arrays or isinstance(dataset, tuple) else np.asarray(dataset)
        )
    items = list(source)
    for name, size in ("left_size", left_size), ("right_size", right_size):
        if size is not None and (isinstance(size, bool) or not isinstance(size, (int, float))):
            raise TypeError(f"Invalid `{name}` type. Expected: integer or float or None. Received: {size!r}")
        if size is not None and not (0 < size < 1 if isinstance(size, float) else 0 < size < len(items)):
            raise ValueError(
                f"`{name}` should be positive and smaller than {len(items)}, or a fraction between 0 and 1. Received: "
                f"{name}={size}"
            )
    count = len(items)
    left, right = (round(s * count) if isinstance(s, float) else s for s in (left_size, right_size))
    left = count - (right or 0) if left is None else left
    right = count - left if right is None else right
    if left + right > count or not left or not right:
        raise ValueError(f"parts of {left} and {right} do not fit a dataset of {count} elements")
    if shuffle:
        python_random.Random(seed).shuffle(items)
    spec = source.element_spec

    def part(elements: list[Any]) -> Any:
        chosen: Any = Dataset.from_generator(lambda: iter(elements), output_signature=spec)
        counted: Any = chosen.apply(data_experimental.assert_cardinality(len(elements)))
        return counted.prefetch(AUTOTUNE)

    return part(items[:left]), part(items[-right:])
