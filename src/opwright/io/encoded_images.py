"""Images as encoded files: PNG and JPEG, and random qualities of JPEG.

Not here: decoding (images.py), operators on images (ops/image).
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.extras import optional_module
from ..core.specs import TensorSpec
from ..eager.python_functions import call_on_arrays
from ..ops import dispatch, random
from ..ops.image import convert_image_dtype
from ..ops.tensor import Tensor
from . import png_samples
from .host_calls import string_spec
from .images import MODES, read_pixels


def _image_of(array: np.ndarray, op: str, channels: tuple[int, ...]) -> Any:
    if array.ndim != 3 or array.dtype != np.uint8 or array.shape[2] not in channels or not array.size:
        raise InvalidArgumentError(
            op=op,
            what="cannot write these pixels",
            found=f"{array.dtype} {list(array.shape)}",
            wanted=f"uint8[height, width, channels], channels in {channels}",
        )
    mode = MODES[array.shape[2]]
    return optional_module("PIL.Image").fromarray(array[..., 0] if mode == "L" else array, mode)


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """Return the bytes of a PNG file: a string of shape (), or strings[batch] of a batch.

    image: uint8 or uint16 [height, width, channels], 1 to 4 channels: gray, gray and alpha, RGB, RGBA; or a batch.
    compression: 0 to 9, -1 for zlib's default
    raises InvalidArgumentError for other images
    """
    op = "io.encode_png"
    if not -1 <= compression <= 9:
        raise InvalidArgumentError(op=op, what="compression is out of range", found=compression, wanted="-1 to 9")

    def write(array: np.ndarray) -> Any:
        if array.ndim == 4:
            return np.fromiter((png_samples.write(each, compression) for each in array), object, len(array))
        return png_samples.write(array, compression)

    operand = dispatch.to_tensor(image)
    rank = operand.shape.rank
    spec = string_spec(None if rank is None else operand.shape.as_list()[: rank - 3])
    result: Tensor = call_on_arrays(write, [operand], spec, name)
    return result


def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: Any = "",
    name: str | None = None,
) -> Tensor:
    """Return the bytes of a JPEG file, a string of shape ().

    image: uint8[height, width, channels], 1 or 3 channels. format: "", "grayscale" or "rgb". quality: 0 to 100.
    chroma_downsampling: halve the resolution of colours. density_unit, x_density, y_density: pixels per "in" or "cm".
    xmp_metadata: bytes of XMP
    raises InvalidArgumentError for other images and arguments, FailedPreconditionError without Pillow
    """
    op = "io.encode_jpeg"
    if format not in ("", "grayscale", "rgb") or not 0 <= quality <= 100 or density_unit not in ("in", "cm"):
        found = f"format={format!r}, quality={quality}, density_unit={density_unit!r}"
        raise InvalidArgumentError(op=op, what="arguments are out of range", found=found)
    channels = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}[format]
    scale = 1.0 if density_unit == "in" else 2.54  # Pillow's are per inch

    def write(array: np.ndarray) -> bytes:
        file, picture = io.BytesIO(), _image_of(array, op, channels)
        xmp = xmp_metadata.encode() if isinstance(xmp_metadata, str) else bytes(xmp_metadata)
        try:
            picture.save(
                file,
                "JPEG",
                quality=quality,
                progressive=progressive,
                optimize=optimize_size,
                subsampling="4:2:0" if chroma_downsampling else "4:4:4",
                dpi=(round(x_density * scale), round(y_density * scale)),
                **({"xmp": xmp} if xmp else {}),
            )
        except (OSError, ValueError) as error:
            raise InvalidArgumentError(op=op, what=f"cannot write the image: {error}") from error
        return file.getvalue()

    result: Tensor = call_on_arrays(write, [dispatch.to_tensor(image)], string_spec(), name)
    return result


def adjust_jpeg_quality(image: Any, jpeg_quality: Any, dct_method: str = "", name: str | None = None) -> Tensor:
    """Return an image with the artefacts of JPEG at a quality of 0 to 100, in its dtype.

    image: [height, width, channels], 1 or 3 channels; floats are in [0, 1]. dct_method: the accurate one is used.
    raises InvalidArgumentError for other images, FailedPreconditionError without Pillow
    """
    op = "image.adjust_jpeg_quality"
    operand = dispatch.to_tensor(image)

    def write_and_read(array: np.ndarray, quality: np.ndarray) -> np.ndarray:
        if not 0 <= int(quality) <= 100:
            raise InvalidArgumentError(op=op, what="the quality is out of range", found=int(quality), wanted="0 to 100")
        file = io.BytesIO()
        _image_of(array, op, (1, 3)).save(file, "JPEG", quality=int(quality), subsampling="4:2:0")
        return read_pixels(file.getvalue(), array.shape[2], op)

    pixels = convert_image_dtype(operand, dtypes.uint8, saturate=True)
    spec = TensorSpec(operand.shape, dtypes.uint8)
    result: Tensor = call_on_arrays(write_and_read, [pixels, dispatch.to_tensor(jpeg_quality)], spec, name)
    return convert_image_dtype(result, operand.dtype, saturate=True)


def _checked_qualities(least: Any, most: Any) -> None:
    if not 0 <= least < most <= 100:
        raise ValueError(f"qualities of JPEG are 0 <= min_jpeg_quality < max_jpeg_quality <= 100, not {least}, {most}")


def random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any = None) -> Tensor:
    """Apply `adjust_jpeg_quality` with a random quality in [min_jpeg_quality, max_jpeg_quality). Raises ValueError
    unless 0 <= min_jpeg_quality < max_jpeg_quality <= 100."""
    _checked_qualities(min_jpeg_quality, max_jpeg_quality)
    return adjust_jpeg_quality(image, random.uniform([], min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed))


def stateless_random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any) -> Tensor:
    """Apply `random_jpeg_quality`, as a function of `seed`, two integers."""
    _checked_qualities(min_jpeg_quality, max_jpeg_quality)
    return adjust_jpeg_quality(
        image, random.stateless_uniform([], seed, min_jpeg_quality, max_jpeg_quality, dtypes.int32)
    )
