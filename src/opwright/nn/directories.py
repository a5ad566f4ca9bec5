"""Datasets of folders whose subfolders are classes: images, texts and sounds.

Lives here: `image_dataset_from_directory`, `text_dataset_from_directory`, `audio_dataset_from_directory`, the order of
their files.
Not here: reading of files (io/), resizing (ops/image).

Files, their order and the parts of a validation split are those of Keras for the same seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..data import AUTOTUNE, Dataset
from ..io.audio import decode_wav
from ..io.files import read_file
from ..io.images import decode_image
from ..ops import array, image, math, strings
from ..ops.tensor import Tensor
from . import backend

_IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
_CHANNELS = {"grayscale": 1, "rgb": 3, "rgba": 4}
_LABEL_MODES = ("int", "categorical", "binary", None)


def _class_folders(directory: str, class_names: Any) -> list[str]:
    """Return the names of the classes. Raises ValueError if `class_names` are not those of the subfolders."""
    names = sorted(name for name in os.listdir(directory) if os.path.isdir(os.path.join(directory, name)))
    names = [name for name in names if not name.startswith(".")]
    if class_names is None:
        return names
    if not set(class_names) <= set(names):
        raise ValueError(
            "The `class_names` passed did not match the names of the subdirectories of the target directory. "
            f"Expected: {names} (or a subset of it), but received: class_names={list(class_names)}"
        )
    return list(class_names)


def _files_of(directory: str, endings: tuple[str, ...], follow_links: bool) -> list[str]:
    walk = sorted(os.walk(directory, followlinks=follow_links), key=lambda entry: entry[0])
    return [os.path.join(root, n) for root, _, names in walk for n in sorted(names) if n.lower().endswith(endings)]


class _ClassFiles:
    """The files of a dataset and their labels, shuffled and split."""

    def __init__(
        self,
        directory: Any,
        labels: Any,
        label_mode: Any,
        class_names: Any,
        endings: tuple[str, ...],
        follow_links: bool,
    ) -> None:
        if label_mode not in _LABEL_MODES:
            raise ValueError(f"`label_mode` argument must be one of {_LABEL_MODES}. Received: label_mode={label_mode}")
        self.directory = os.fspath(directory)
        if not os.path.isdir(self.directory):
            raise ValueError(f"the folder {self.directory!r} does not exist")
        if label_mode is None:  # all files, those outside of the folders of classes too
            labels = class_names = None
        self.label_mode = None if labels is None else label_mode
        self.class_names: list[str] | None = None
        self.labels = np.zeros(0, np.int32)
        if isinstance(labels, str) and labels == "inferred":
            self.class_names = _class_folders(self.directory, class_names)
            by_class = [_files_of(os.path.join(self.directory, n), endings, follow_links) for n in self.class_names]
            self.paths = [path for paths in by_class for path in paths]
            self.labels = np.repeat(np.arange(len(by_class), dtype=np.int32), [len(paths) for paths in by_class])
        else:
            if class_names is not None:
                raise ValueError("You can only pass `class_names` if `labels` is 'inferred'")
            self.paths = _files_of(self.directory, endings, follow_links)
            if labels is not None:
                self.labels = np.asarray(labels, np.int32)
                if len(self.labels) != len(self.paths):
                    raise ValueError(
                        f"Expected the lengths of `labels` to match the number of files in the target directory. "
                        f"len(labels) is {len(self.labels)} while we found {len(self.paths)} files in {self.directory}."
                    )
                self.class_names = [str(label) for label in sorted(set(self.labels.tolist()))]
        if not self.paths:
            raise ValueError(f"no files in {self.directory!r} end in {', '.join(endings)}")
        if self.label_mode == "binary" and len(self.class_names or ()) != 2:
            raise ValueError(
                "When passing `label_mode='binary'`, there must be exactly 2 class_names. "
                f"Received: class_names={self.class_names}"
            )

    def shuffle(self, seed: int) -> None:
        """Order files and labels by a seed, as Keras does."""
        np.random.RandomState(seed).shuffle(self.paths)
        np.random.RandomState(seed).shuffle(self.labels)

    def part(self, validation_split: float | None, subset: str | None) -> tuple[list[str], np.ndarray]:
        """Return the files and labels of a part: the last are those of validation."""
        if not validation_split:
            return self.paths, self.labels
        count = len(self.paths) - int(validation_split * len(self.paths))
        chosen = slice(None, count) if subset == "training" else slice(count, None)
        return self.paths[chosen], self.labels[chosen]

    def dataset(
        self,
        read: Callable[[Any], Any],
        batch_size: int | None,
        shuffle: bool,
        seed: int | None,
        validation_split: float | None,
        subset: str | None,
        verbose: bool,
        padded: bool = False,
    ) -> Any:
        """Return the dataset, or a pair of both parts. Raises ValueError for arguments that do not fit together."""
        if (subset is None) != (validation_split is None):
            raise ValueError("If `subset` is set, `validation_split` must be set, and inversely.")
        if subset not in (None, "training", "validation", "both"):
            raise ValueError(f'`subset` must be either "training", "validation" or "both", received: {subset}')
        if validation_split is not None and not 0 < validation_split < 1:
            raise ValueError(f"`validation_split` must be between 0 and 1, received: {validation_split}")
        if validation_split and shuffle and seed is None:
            raise ValueError(
                "If using `validation_split` and shuffling the data, you must provide a `seed` argument, to make sure "
                "that there is no overlap between the training and validation subset."
            )
        if verbose:
            classes = f" belonging to {len(self.class_names)} classes" if self.class_names is not None else ""
            print(f"Found {len(self.paths)} files{classes}.")
        if shuffle:
            seed = int(np.random.default_rng().integers(1_000_000)) if seed is None else seed
            self.shuffle(seed)
        parts = []
        for name in ("training", "validation") if subset == "both" else (subset,):
            paths, labels = self.part(validation_split, name)
            if not paths:
                raise ValueError(f"No files found in the {name} subset of {self.directory}: {validation_split}")
            if verbose and name:
                print(f"Using {len(paths)} files for {name}.")
            mixed = shuffle and (subset, name) != ("both", "validation")
            parts.append(self._pipeline(read, paths, labels, batch_size, mixed, seed, padded))
        return tuple(parts) if len(parts) > 1 else parts[0]

    def _pipeline(
        self,
        read: Any,
        paths: list[str],
        labels: np.ndarray,
        batch_size: int | None,
        shuffle: bool,
        seed: Any,
        padded: bool,
    ) -> Dataset:
        names = np.array([os.fsencode(path) for path in paths], object)
        mode, classes = self.label_mode, len(self.class_names or ())
        source: Any = Dataset.from_tensor_slices(names if mode is None else (names, labels))
        if shuffle:
            source = source.shuffle(1024 if batch_size is None else batch_size * 8, seed=seed)

        def load(path: Any, label: Any = None) -> Any:
            if mode is None:
                return read(path)
            if mode == "categorical":
                label = array.one_hot(label, classes)
            elif mode == "binary":
                label = array.expand_dims(array.cast(label, "float32"), -1)
            return read(path), label

        dataset: Any = source.map(load, num_parallel_calls=AUTOTUNE)
        if batch_size is not None:
            dataset = dataset.padded_batch(batch_size) if padded else dataset.batch(batch_size)
        dataset = dataset.prefetch(AUTOTUNE)
        dataset.class_names, dataset.file_paths = self.class_names, paths
        result: Dataset = dataset
        return result


def image_dataset_from_directory(
    directory: Any,
    labels: Any = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    color_mode: str = "rgb",
    batch_size: int | None = 32,
    image_size: tuple[int, int] = (256, 256),
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    interpolation: str = "bilinear",
    follow_links: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    data_format: str | None = None,
    format: str = "tf",
    verbose: bool = True,
) -> Any:
    """Return a dataset of the images in a folder: float32[batch, height, width, channels] in [0, 255], and labels.

    labels: "inferred" from the subfolders, sorted or in the order of class_names; a list in the order of files; None
    for images alone. label_mode: "int", "categorical" (one-hot), "binary" (float32[batch, 1]) or None. color_mode:
    "rgb", "rgba" or "grayscale". batch_size: None for single images. validation_split: the fraction of the last files,
    in shuffled order; subset: "training", "validation" or "both", for a pair. crop_to_aspect_ratio: cut images in the
    middle to the ratio of image_size before they are resized; pad_to_aspect_ratio: or add black borders. data_format:
    "channels_first" for [batch, channels, height, width]. Attributes of the dataset: `class_names`, `file_paths`.
    PNG, JPEG and GIF files need `opwright[image]`.
    raises ValueError for arguments that do not fit together and for folders without files
    """
    if color_mode not in _CHANNELS:
        raise ValueError(f"`color_mode` must be one of {set(_CHANNELS)}. Received: color_mode={color_mode}")
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError("Only one of `pad_to_aspect_ratio`, `crop_to_aspect_ratio` can be set to `True`.")
    check_format(format)
    channels, size = _CHANNELS[color_mode], list(image_size)
    is_first = (data_format or backend.image_data_format()) == "channels_first"

    def read(path: Any) -> Any:
        pixels = decode_image(read_file(path), channels, expand_animations=False)
        if pad_to_aspect_ratio:
            resized = image.resize_with_pad(pixels, size[0], size[1], method=interpolation)
        else:
            pixels = _cut_to_ratio(pixels, size) if crop_to_aspect_ratio else pixels
            resized = image.resize(pixels, size, method=interpolation)
        resized = array.cast(resized, "float32")
        resized.set_shape((*size, channels))
        return array.transpose(resized, (2, 0, 1)) if is_first else resized

    index = _ClassFiles(directory, labels, label_mode, class_names, _IMAGES, follow_links)
    return index.dataset(read, batch_size, shuffle, seed, validation_split, subset, verbose)


def check_format(format: str) -> None:
    """Check that a dataset is to be one of `ow.data`. Raises ValueError."""
    if format != "tf":
        raise ValueError(f"datasets are those of `ow.data`, format='tf'. Received: format={format!r}")


def _cut_to_ratio(pixels: Tensor, size: Sequence[int]) -> Tensor:
    """Return an image that is cut in the middle to the ratio of a size."""
    height, width = size
    sizes = array.shape(pixels)
    rows, columns = sizes[0], sizes[1]
    new_rows = math.minimum(rows, array.cast(array.cast(columns * height, "float32") / width, "int32"))
    new_columns = math.minimum(columns, array.cast(array.cast(rows * width, "float32") / height, "int32"))
    begin = [(rows - new_rows) // 2, (columns - new_columns) // 2, 0]
    return array.slice(pixels, begin, [new_rows, new_columns, -1])


def text_dataset_from_directory(
    directory: Any,
    labels: Any = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    max_length: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
    format: str = "tf",
    verbose: bool = True,
) -> Any:
    """Return a dataset of the .txt files in a folder: strings[batch], and labels.

    max_length: bytes that are kept of each file. Others: as of `image_dataset_from_directory`.
    """

    check_format(format)

    def read(path: Any) -> Any:
        text = read_file(path)
        return text if max_length is None else strings.substr(text, 0, max_length)

    index = _ClassFiles(directory, labels, label_mode, class_names, (".txt",), follow_links)
    return index.dataset(read, batch_size, shuffle, seed, validation_split, subset, verbose)


def audio_dataset_from_directory(
    directory: Any,
    labels: Any = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    sampling_rate: int | None = None,
    output_sequence_length: int | None = None,
    ragged: bool = False,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
    verbose: bool = True,
) -> Any:
    """Return a dataset of the .wav files in a folder: float32[batch, samples, channels] in [-1, 1], and labels.

    output_sequence_length: samples at which sounds are padded with zeros or cut; by default those of a batch are padded
    to its longest. Others: as of `image_dataset_from_directory`.
    raises ValueError for ragged, and for sampling_rate: sounds have the rate of their files
    """
    if ragged or sampling_rate is not None:
        raise ValueError(
            "Sounds are dense and have the rate of their files. Received: "
            f"ragged={ragged}, sampling_rate={sampling_rate}"
        )

    def read(path: Any) -> Any:
        length = -1 if output_sequence_length is None else output_sequence_length
        return decode_wav(read_file(path), desired_samples=length).audio

    index = _ClassFiles(directory, labels, label_mode, class_names, (".wav",), follow_links)
    padded = output_sequence_length is None and batch_size is not None
    return index.dataset(read, batch_size, shuffle, seed, validation_split, subset, verbose, padded)
