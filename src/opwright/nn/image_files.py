"""`keras.utils` on single image files: `load_img`, `save_img`, `img_to_array`, `array_to_img`, by Pillow.

Lives here: the functions.  Not here: image files as tensors (io/images.py), datasets of images (directories.py).
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.extras import optional_module
from .backend import floatx, image_data_format

_COLOR_MODES = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}


def _is_channels_first(data_format: str | None) -> bool:
    name = image_data_format() if data_format is None else data_format
    if name not in ("channels_first", "channels_last"):
        raise ValueError(f"Unknown data_format: {name}")
    return name == "channels_first"


def load_img(
    path: Any,
    color_mode: str = "rgb",
    target_size: tuple[int, int] | None = None,
    interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Any:
    """Return an image file as a PIL image.

    path: a path or a file object. color_mode: "grayscale", "rgb" or "rgba". target_size: (height, width).
    interpolation: "nearest", "bilinear", "bicubic", "hamming", "box" or "lanczos". keep_aspect_ratio: crop the centre
    before resizing.
    raises ValueError for other arguments, FailedPreconditionError without Pillow
    """
    pillow = optional_module("PIL.Image")
    if color_mode not in _COLOR_MODES:
        raise ValueError('color_mode must be "grayscale", "rgb", or "rgba"')
    filters = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")
    if interpolation not in filters:
        raise ValueError(f"Invalid interpolation method {interpolation} specified. Supported methods are {filters}")
    if isinstance(path, io.BytesIO):
        image = pillow.open(path)
    else:
        with open(path, "rb") as file:
            image = pillow.open(io.BytesIO(file.read()))
    if image.mode != _COLOR_MODES[color_mode] and not (color_mode == "grayscale" and image.mode.startswith("I")):
        image = image.convert(_COLOR_MODES[color_mode])
    if target_size is None or image.size == (target_size[1], target_size[0]):
        return image
    box = None
    if keep_aspect_ratio:
        width, height = image.size
        target_height, target_width = target_size
        crop_height = min((width * target_height) // target_width, height)
        crop_width = min((height * target_width) // target_height, width)
        top, left = (height - crop_height) // 2, (width - crop_width) // 2
        box = (left, top, left + crop_width, top + crop_height)
    size = (target_size[1], target_size[0])
    return image.resize(size, getattr(pillow.Resampling, interpolation.upper()), box=box)


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> np.ndarray:
    """Return a PIL image, or an array of rank 2 or 3, as an array of rank 3, [height, width, channels] by default.

    dtype: of the array, `backend.floatx()` by default. raises ValueError for another rank
    """
    array = np.asarray(img, as_dtype(floatx() if dtype is None else dtype).np)
    first = _is_channels_first(data_format)
    if array.ndim == 2:
        return array[None] if first else array[..., None]
    if array.ndim != 3:
        raise ValueError(f"Unsupported image shape: {array.shape}")
    return array.transpose(2, 0, 1) if first else array


def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Any:
    """Return an array of rank 3 as a PIL image. scale: map the least value to 0 and the greatest to 255.

    raises ValueError for another rank, or other than 1, 3 or 4 channels; FailedPreconditionError without Pillow
    """
    pillow = optional_module("PIL.Image")
    array = np.asarray(x, as_dtype(floatx() if dtype is None else dtype).np)
    if array.ndim != 3:
        raise ValueError(
            "Expected image array to have rank 3 (single image). Got array with shape: " + str(array.shape)
        )
    if _is_channels_first(data_format):
        array = array.transpose(1, 2, 0)
    if scale:
        array = array - array.min()
        largest = array.max()
        array = array / largest * 255 if largest != 0 else array
    channels = array.shape[2]
    if channels not in (1, 3, 4):
        raise ValueError(f"Unsupported channel number: {channels}")
    if channels == 1 and array.max() > 255:
        return pillow.fromarray(array[..., 0].astype(np.int32))
    pixels = array.astype(np.uint8)
    return pillow.fromarray(pixels[..., 0] if channels == 1 else pixels)


def save_img(
    path: Any, x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True, **kwargs: Any
) -> None:
    """Write an array of rank 3 as an image file. file_format: by the suffix by default. kwargs: of PIL's save."""
    image = array_to_img(x, data_format, scale)
    if image.mode == "RGBA" and (file_format in ("jpg", "jpeg") or str(path).lower().endswith((".jpg", ".jpeg"))):
        image = image.convert("RGB")
    image.save(path, format="jpeg" if file_format == "jpg" else file_format, **kwargs)
