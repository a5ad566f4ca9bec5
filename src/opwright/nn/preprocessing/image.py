"""`keras.preprocessing.image`: images as files and arrays.

Lives here: re-exports, `smart_resize`.  Not here: augmentation (nn/layers/geometric_augmentation.py and its siblings).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...ops import array, dispatch, image
from ...ops.tensor import TensorLike
from ..backend import image_data_format
from ..utils import array_to_img, img_to_array, load_img, save_img

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

__all__ = ["array_to_img", "img_to_array", "load_img", "save_img", "smart_resize"]


def smart_resize(
    x: Any,
    size: tuple[int, int],
    interpolation: str = "bilinear",
    data_format: str | None = None,
    backend_module: Any = None,
) -> Tensor | np.ndarray:
    """Return images cropped in the middle to the aspect ratio of a size, and resized to it: no distortion.

    x: [height, width, channels] or [batch, ...], a tensor or an array, as which the result comes; size: (height, width)
    raises ValueError for other ranks and for channels first, which NumPy's transpose changes
    """
    if (data_format or image_data_format()) != "channels_last":
        raise ValueError("smart_resize takes images with their channels last; transpose them")
    height, width = size
    images = dispatch.to_tensor(x)
    if images.shape.rank not in (3, 4):
        raise ValueError(f"Expected an image array of 3 or 4 axes, but got input with shape {images.shape}")
    rows, columns = (int(n) for n in array.shape(images).numpy()[-3:-1])
    crop_rows, crop_columns = min(rows, int(columns * height / width)), min(columns, int(rows * width / height))
    top, left = int((rows - crop_rows) / 2), int((columns - crop_columns) / 2)
    cropped = images[..., top : top + crop_rows, left : left + crop_columns, :]
    resized = image.resize(cropped, size, interpolation)
    return resized if isinstance(x, TensorLike) else resized.numpy()
