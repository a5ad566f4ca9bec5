"""Images in other dtypes and colour spaces.

Lives here: convert_image_dtype, grey images, YUV and YIQ.  Not here: hue, saturation and value (colours.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import DType, as_dtype, float32
from ...core.errors import InvalidArgumentError
from .. import dispatch
from ..array import cast, concat, expand_dims, identity, ones, rank, saturate_cast, tile
from ..linalg import tensordot
from ..math import floordiv, reduce_sum


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Any:
    """An image in another dtype, with its range of values: floats are in [0, 1], integers from 0 to their largest.

    saturate: clip what the dtype does not hold, where else it wraps round.
    raises AttributeError for dtypes that are neither floating nor integer
    """
    image, wanted = dispatch.to_tensor(image), as_dtype(dtype)
    for found, what in ((wanted, "dtype"), (image.dtype, "image dtype")):
        if not found.is_floating and not found.is_integer:
            raise AttributeError(f"{what} must be either floating point or integer; found {found.name}")
    if image.dtype is wanted:
        return identity(image, name=name)
    to = saturate_cast if saturate else cast
    if wanted.is_floating:
        made = cast(image, wanted, name=name)
        return made if image.dtype.is_floating else made * (1.0 / int(image.dtype.max))
    if image.dtype.is_floating:
        with np.errstate(over="ignore"):  # float16 does not hold the largest int32
            return to(image * (float(int(wanted.max)) + 0.5), wanted, name=name)
    top, new_top = int(image.dtype.max), int(wanted.max)
    if top > new_top:
        return to(floordiv(image, (top + 1) // (new_top + 1)), wanted, name=name)
    return to(image, wanted, name=name) * ((new_top + 1) // (top + 1))


def as_floats(image: Any) -> tuple[Any, DType]:
    """The image with floating values, and the dtype it had."""
    image = dispatch.to_tensor(image)
    return image if image.dtype.is_floating else convert_image_dtype(image, float32), image.dtype


GREY = np.array([0.2989, 0.587, 0.114])  # how bright red, green and blue are


def rgb_to_grayscale(images: Any, name: str | None = None) -> Any:
    """Brightness: [..., 3] to [..., 1] in the same dtype.

    .. math:: 0.2989\\,R + 0.587\\,G + 0.114\\,B
    """
    floats, dtype = as_floats(images)
    grey = reduce_sum(floats * cast(GREY.astype(np.float32), floats.dtype), axis=-1, keepdims=True)
    return convert_image_dtype(grey, dtype, name=name)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Any:
    """Grey as red, green and blue alike: [..., 1] to [..., 3].

    raises InvalidArgumentError unless the last dimension is 1
    """
    images = dispatch.to_tensor(images)
    shape = images.shape
    if shape.rank == 0 or (shape.rank is not None and shape[-1] not in (1, None)):
        raise InvalidArgumentError(op="grayscale_to_rgb", what="Last dimension of a grayscale image should be size 1.",
                                   found=images.spec.short())  # fmt: skip
    if shape.rank is None:
        times = concat([ones(expand_dims(rank(images) - 1, 0), "int32"), dispatch.to_tensor([3])], 0)
        return tile(images, times, name=name)
    return tile(images, [*[1] * (shape.rank - 1), 3], name=name)


# The columns are what each new channel takes of the old ones.
RGB_TO_YIQ = np.array([[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617],
                       [0.114, -0.32134392, 0.31119955]])  # fmt: skip
YIQ_TO_RGB = np.array([[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]])
RGB_TO_YUV = np.array([[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512],
                       [0.114, 0.43601035, -0.10001026]])  # fmt: skip
YUV_TO_RGB = np.array([[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]])


def _mixed(images: Any, matrix: np.ndarray) -> Any:
    images = dispatch.to_tensor(images)
    return tensordot(images, dispatch.to_tensor(matrix.astype(images.dtype.np), images.dtype), [[-1], [0]])


def rgb_to_yiq(images: Any) -> Any:
    """Red, green and blue as luma and the chroma of the NTSC standard: [..., 3], in [0, 1]."""
    return _mixed(images, RGB_TO_YIQ)


def yiq_to_rgb(images: Any) -> Any:
    """Luma and chroma of the NTSC standard as red, green and blue: [..., 3]."""
    return _mixed(images, YIQ_TO_RGB)


def rgb_to_yuv(images: Any) -> Any:
    """Red, green and blue as luma and the chroma of the PAL standard: [..., 3], in [0, 1]."""
    return _mixed(images, RGB_TO_YUV)


def yuv_to_rgb(images: Any) -> Any:
    """Luma and chroma of the PAL standard as red, green and blue: [..., 3]."""
    return _mixed(images, YUV_TO_RGB)
