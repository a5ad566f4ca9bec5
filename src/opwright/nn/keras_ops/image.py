"""`keras.ops.image`: images [..., height, width, channels] resized, cropped, padded, and their colors.

Lives here: functions of sizes and colors.
Not here: positions and filters (image_filters.py), the operators (ops/image/), layers of augmentation.
With data_format "channels_first" images are [..., channels, height, width].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ops import array, dispatch, math
from ...ops import image as ops_image
from ..layers.configurable_layer import data_format_name
from .arrays import moveaxis
from .image_filters import affine_transform as affine_transform
from .image_filters import elastic_transform as elastic_transform
from .image_filters import extract_patches_3d as extract_patches_3d
from .image_filters import gaussian_blur as gaussian_blur
from .image_filters import map_coordinates as map_coordinates
from .image_filters import perspective_transform as perspective_transform
from .image_filters import scale_and_translate as scale_and_translate
from .image_filters import sobel_edges as sobel_edges
from .image_filters import ssim as ssim
from .promotion import convert

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def _last(images: Any, data_format: Any) -> tuple[Any, bool]:
    """Return images with channels last, and whether they were first."""
    first = data_format_name(data_format) == "channels_first"
    x = dispatch.to_tensor(images)
    return (moveaxis(x, -3, -1), True) if first else (x, False)


def _pictures(images: Any, data_format: Any) -> tuple[Any, bool]:
    """Return images with channels last, and whether they were first. Raises ValueError for other ranks than 3 and 4."""
    shape = getattr(images, "shape", ())
    if len(shape) not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received: images.shape={shape}"
        )
    return _last(images, data_format)


def _back(images: Any, first: bool) -> Tensor:
    return moveaxis(images, -1, -3) if first else images


def resize(
    images: Any,
    size: Any,
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: Any = None,
) -> Tensor:
    """Resize images to (height, width).

    interpolation: "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5". crop_to_aspect_ratio,
    pad_to_aspect_ratio: keep the ratio by cutting the longer side, or by filling the shorter one with `fill_value`
    raises ValueError for another interpolation or fill mode, or both ways of keeping the ratio
    """
    if interpolation not in ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"):
        raise ValueError(f"Invalid `interpolation` argument. Received: interpolation={interpolation}")
    if fill_mode != "constant":
        raise ValueError(f"Invalid `fill_mode` argument. Only `'constant'` is supported. Received: {fill_mode=}")
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError("Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`.")
    x, first = _last(images, data_format)
    dtype, (height, width) = x.dtype, size
    if crop_to_aspect_ratio or pad_to_aspect_ratio:
        rows, columns = int(x.shape[-3]), int(x.shape[-2])
        wide, high = int(float(rows * width) / height), int(float(columns * height) / width)
        if crop_to_aspect_ratio:
            wide, high = max(min(columns, wide), 1), max(min(rows, high), 1)
            x = x[..., (rows - high) // 2 :, :, :][..., :high, :, :]
            x = x[..., (columns - wide) // 2 :, :][..., :wide, :]
        else:
            wide, high = max(columns, wide), max(rows, high)
            top, left = (high - rows) // 2, (wide - columns) // 2
            widths = [[0, 0]] * (x.shape.rank - 3) + [[top, high - rows - top], [left, wide - columns - left], [0, 0]]
            x = array.pad(x, widths, "CONSTANT", array.cast(dispatch.to_tensor(fill_value), x.dtype))
    y = ops_image.resize(x, [height, width], interpolation, antialias=antialias)
    return _back(_as(y, dtype), first)


def _as(x: Any, dtype: Any) -> Tensor:
    """Return images in a dtype; integers are rounded and within its range."""
    if dtype.is_floating or x.dtype == dtype:
        return convert(x, dtype)
    return array.saturate_cast(math.round(x), dtype)


def rgb_to_grayscale(images: Any, data_format: Any = None) -> Tensor:
    """Convert RGB images to one channel of luma. Raises ValueError for other ranks than 3 and 4."""
    x, first = _pictures(images, data_format)
    return _back(ops_image.rgb_to_grayscale(x), first)


def rgb_to_hsv(images: Any, data_format: Any = None) -> Tensor:
    """Convert RGB images in [0, 1] to hue, saturation and value. Raises ValueError for integers."""
    return _color(images, data_format, ops_image.rgb_to_hsv)


def hsv_to_rgb(images: Any, data_format: Any = None) -> Tensor:
    """Convert images of hue, saturation and value to RGB in [0, 1]. Raises ValueError for integers."""
    return _color(images, data_format, ops_image.hsv_to_rgb)


def _color(images: Any, data_format: Any, convert_color: Any) -> Tensor:
    x, first = _pictures(images, data_format)
    if not x.dtype.is_floating:
        raise ValueError(f"Invalid images dtype: expected float dtype. Received: images.dtype={x.dtype.name}")
    return _back(convert_color(x), first)


def _margins(total: Any, before: Any, after: Any, target: Any, names: str, sign: int) -> tuple[int, int]:
    """Return both margins of a side from two of (before, after, target size). Raises ValueError for others."""
    if [before, after, target].count(None) != 1:
        raise ValueError(f"Must specify exactly two of {names}.")
    if target is None:
        return before, after
    rest = sign * (target - total)
    before, after = (rest - after, after) if before is None else (before, rest - before)
    if before < 0 or after < 0:
        raise ValueError(f"The target size {target} does not fit a side of {total} with {names}.")
    return before, after


def pad_images(
    images: Any,
    top_padding: int | None = None,
    left_padding: int | None = None,
    bottom_padding: int | None = None,
    right_padding: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: Any = None,
) -> Tensor:
    """Extend images with zeros; of each side's two paddings and target size, two are given.

    raises ValueError for more or fewer, or a target below the size
    """
    x, first = _last(images, data_format)
    rows = _margins(
        x.shape[-3], top_padding, bottom_padding, target_height, "top_padding, bottom_padding, target_height", 1
    )
    columns = _margins(
        x.shape[-2], left_padding, right_padding, target_width, "left_padding, right_padding, target_width", 1
    )
    widths = [[0, 0]] * (x.shape.rank - 3) + [list(rows), list(columns), [0, 0]]
    return _back(array.pad(x, widths), first)


def crop_images(
    images: Any,
    top_cropping: int | None = None,
    left_cropping: int | None = None,
    bottom_cropping: int | None = None,
    right_cropping: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: Any = None,
) -> Tensor:
    """Cut margins of images; of each side's two margins and target size, two are given.

    raises ValueError for more or fewer, or a target above the size
    """
    x, first = _last(images, data_format)
    top, bottom = _margins(
        x.shape[-3], top_cropping, bottom_cropping, target_height, "top_cropping, bottom_cropping, target_height", -1
    )
    left, right = _margins(
        x.shape[-2], left_cropping, right_cropping, target_width, "left_cropping, right_cropping, target_width", -1
    )
    return _back(x[..., top : x.shape[-3] - bottom, left : x.shape[-2] - right, :], first)


def extract_patches(
    images: Any, size: Any, strides: Any = None, dilation_rate: Any = 1, padding: str = "valid", data_format: Any = None
) -> Tensor:
    """Return patches of images [batch, rows, columns, height * width * channels]; strides: by default the size.

    size: of images one number or two, of volumes three
    """
    if not isinstance(size, int) and len(size) == 3:
        return extract_patches_3d(images, size, strides, dilation_rate, padding, data_format)
    x, first = _last(images, data_format)
    window = (size, size) if isinstance(size, int) else tuple(size)
    steps = window if strides is None else (strides, strides) if isinstance(strides, int) else tuple(strides)
    rates = (dilation_rate, dilation_rate) if isinstance(dilation_rate, int) else tuple(dilation_rate)
    single = x.shape.rank == 3
    x = array.expand_dims(x, 0) if single else x
    y = ops_image.extract_patches(x, [1, *window, 1], [1, *steps, 1], [1, *rates, 1], padding.upper())
    y = array.squeeze(y, [0]) if single else y
    return _back(y, first)
