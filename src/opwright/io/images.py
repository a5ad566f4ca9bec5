"""Image files as tensors: PNG, JPEG, GIF, BMP and WebP, by Pillow (`opwright[image]`).

Lives here: `decode_image`, `decode_png` and so on. Not here: encoding (encoded_images.py), PNG files of 16 bits
(png_samples.py), which Pillow reads with 8; operators on images (ops/image).

Pillow and TensorFlow both use libjpeg-turbo with smooth upsampling, so pixels of JPEG files are those of TensorFlow
with dct_method="INTEGER_ACCURATE". Its default, the fast transform, differs by up to 13 levels at quality 95.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, as_dtype
from ..core.errors import InvalidArgumentError
from ..core.extras import optional_module
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..eager.python_functions import call_on_arrays
from ..ops import dispatch
from ..ops.image import convert_image_dtype
from ..ops.tensor import Tensor
from . import png_samples
from .host_calls import scalar, string_operand

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "PNG"), (b"\xff\xd8\xff", "JPEG"), (b"GIF8", "GIF"), (b"BM", "BMP"))
_RATIOS = (1, 2, 4, 8)
_CHANNELS = {"JPEG": (0, 1, 3), "PNG": (0, 1, 2, 3, 4), "BMP": (0, 1, 3, 4), "GIF": (0, 3), "WEBP": (0, 3, 4)}


def _format_of(data: bytes) -> str | None:
    return next((name for signature, name in _SIGNATURES if data.startswith(signature)), None)


def _open(data: bytes, op: str) -> Any:
    """Open an image file. Raises InvalidArgumentError for damaged and for too large ones."""
    pillow = optional_module("PIL.Image")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            return pillow.open(io.BytesIO(data), formats=["PNG", "JPEG", "GIF", "BMP", "WEBP"])
    except Exception as error:  # Pillow's readers raise many classes for damaged files
        raise _damaged(op, error) from error


def _damaged(op: str, error: Any) -> InvalidArgumentError:
    if isinstance(error, InvalidArgumentError):
        return error
    return InvalidArgumentError(
        op=op, what=f"cannot decode the image: {error}", wanted="a PNG, JPEG, GIF, BMP or WebP file"
    )


def _pixels(image: Any, channels: int, op: str) -> np.ndarray:
    """Return uint8[height, width, channels] of the current frame."""
    mode = image.mode
    if mode == "1":
        image = image.convert("L")
    elif mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif mode not in MODES.values():  # CMYK and others
        image = image.convert("RGB")
    elif "transparency" in image.info:  # a transparent colour of a gray or RGB image
        image = image.convert("LA" if mode == "L" else "RGBA")
    array = np.asarray(image)
    array = array[..., None] if array.ndim == 2 else array
    return png_samples.with_channels(array, channels) if channels else array


def read_pixels(data: bytes, channels: int, op: str, ratio: int = 1) -> np.ndarray:
    """Return uint8[height, width, channels], or uint8[frames, height, width, 3] of a GIF."""
    image = _open(data, op)
    try:
        if image.format == "GIF":
            return _read_frames(image)
        if image.format == "JPEG":
            return _read_jpeg(image, channels, ratio)
        image.load()
        return np.array(_pixels(image, channels, op))
    except Exception as error:  # as above: the pixels are read here
        raise _damaged(op, error) from error


def _read_jpeg(image: Any, channels: int, ratio: int) -> np.ndarray:
    mode = {1: "L", 3: "RGB"}.get(channels) or ("L" if image.mode == "L" else "RGB")
    width, height = image.size
    if ratio > 1 or mode != image.mode:  # libjpeg scales, and returns the luma, without further rounding
        image.draft(mode, (max(width // ratio, 1), max(height // ratio, 1)))
    image.load()
    array = np.asarray(image if image.mode == mode else image.convert(mode))
    return array[..., None] if array.ndim == 2 else array


def _read_frames(image: Any, mode: str = "RGB") -> np.ndarray:
    frames, count = [], getattr(image, "n_frames", 1)
    width, height = image.size
    limit = optional_module("PIL.Image").MAX_IMAGE_PIXELS or 0
    if limit and count * width * height > limit:
        raise ValueError(f"{count} frames of {width} x {height} pixels exceed the limit of {limit} pixels")
    for i in range(count):
        image.seek(i)
        frames.append(np.asarray(image.convert(mode)))
    return np.stack(frames)


def _checked_channels(channels: Any, kind: str, op: str) -> int:
    number = int(channels or 0)
    if number not in _CHANNELS[kind]:
        raise InvalidArgumentError(
            op=op, what=f"a {kind} file cannot be decoded to these channels", found=number, wanted=_CHANNELS[kind]
        )
    return number


def _decode(contents: Any, op: str, read: Any, spec: TensorSpec, name: str | None) -> Tensor:
    def call(array: np.ndarray) -> np.ndarray:
        result: np.ndarray = read(scalar(array, op))
        return result

    result: Tensor = call_on_arrays(call, [string_operand(contents, op, 0)], spec, name)
    return result


def _image_spec(channels: int, dtype: DType = dtypes.uint8) -> TensorSpec:
    return TensorSpec(TensorShape([None, None, channels or None]), dtype)


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Return a JPEG's pixels, uint8[height, width, channels].

    contents: the file's bytes, a string of shape (). channels: 0 for the file's, 1 for gray, 3 for RGB. ratio: 1, 2, 4
    or 8, by which the size is divided, rounded up. dct_method: a hint, "INTEGER_FAST" or "INTEGER_ACCURATE", which is
    used in any case. fancy_upscaling, try_recover_truncated, acceptable_fraction: True, False and 1 only.
    raises InvalidArgumentError for damaged files and other arguments, FailedPreconditionError without Pillow
    """
    op = "io.decode_jpeg"
    channels = _checked_channels(channels, "JPEG", op)
    if ratio not in _RATIOS:
        raise InvalidArgumentError(op=op, what="ratio must be 1, 2, 4 or 8", found=ratio)
    if dct_method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise InvalidArgumentError(op=op, what="unknown dct_method", found=repr(dct_method))
    if not fancy_upscaling or try_recover_truncated or acceptable_fraction != 1:
        raise InvalidArgumentError(
            op=op, what="only fancy_upscaling=True, try_recover_truncated=False, acceptable_fraction=1 exist"
        )
    return _decode(contents, op, lambda data: read_pixels(data, channels, op, ratio), _image_spec(channels), name)


def decode_and_crop_jpeg(
    contents: Any, crop_window: Any, channels: int = 0, ratio: int = 1, *args: Any, name: str | None = None
) -> Tensor:
    """Return a part of a JPEG's pixels, uint8[crop_height, crop_width, channels].

    crop_window: int32[4]: y, x, height, width, within the image. Others: as of `decode_jpeg`.
    raises InvalidArgumentError for a window outside of the image
    """
    op = "io.decode_and_crop_jpeg"
    whole = decode_jpeg(contents, channels, ratio, *args)

    def crop(image: np.ndarray, window: np.ndarray) -> np.ndarray:
        y, x, height, width = map(int, window)
        if min(y, x) < 0 or min(height, width) < 1 or y + height > image.shape[0] or x + width > image.shape[1]:
            raise InvalidArgumentError(
                op=op,
                what="Invalid JPEG data or crop window",
                found=window.tolist(),
                wanted=f"within {image.shape[:2]}",
            )
        return image[y : y + height, x : x + width].copy()

    operands = [whole, dispatch.to_tensor(crop_window, dtypes.int32)]
    result: Tensor = call_on_arrays(crop, operands, _image_spec(int(channels or 0)), name)
    return result


def extract_jpeg_shape(contents: Any, output_type: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """Return the shape of a JPEG's pixels, [height, width, channels], from its header. output_type: int32 or int64."""
    op, dtype = "io.extract_jpeg_shape", as_dtype(output_type)

    def read(data: bytes) -> np.ndarray:
        image = _open(data, op)
        return np.array([image.size[1], image.size[0], len(image.getbands())], dtype.np)

    return _decode(contents, op, read, TensorSpec([3], dtype), name)


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Return whether strings begin as JPEG files do, bool in their shape."""

    def read(array: np.ndarray) -> np.ndarray:
        starts = [value[:3] == b"\xff\xd8\xff" for value in array.reshape(-1).tolist()]
        return np.array(starts, np.bool_).reshape(array.shape)

    operand = string_operand(contents, "io.is_jpeg")
    result: Tensor = call_on_arrays(read, [operand], TensorSpec(operand.shape, dtypes.bool), name)
    return result


def _read_png(data: bytes, channels: int, dtype: DType, op: str) -> np.ndarray:
    narrow = dtype is dtypes.uint8
    if png_samples.bits(data) != 16:
        pixels = read_pixels(data, channels, op)
        return pixels if narrow else pixels.astype(np.uint16) * np.uint16(257)  # 255 becomes 65535
    stored = png_samples.channels_of(data)
    if narrow and stored in (3, 4) and channels in (0, 3, 4):
        return read_pixels(data, channels, op)  # Pillow reads the high bytes
    if stored == 1:
        image = _open(data, op)
        try:
            wide = np.asarray(image).astype(np.uint16)[..., None]
        except Exception as error:
            raise _damaged(op, error) from error
        wide = png_samples.with_channels(wide, channels)
    else:
        wide = png_samples.read(data, channels)
    return (wide >> 8).astype(np.uint8) if narrow else wide


def decode_png(contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None) -> Tensor:
    """Return a PNG's pixels, [height, width, channels] of uint8 or uint16.

    contents: the file's bytes, a string of shape (). channels: 0 for the file's, 1 gray, 2 gray and alpha, 3 RGB, 4
    RGBA. dtype: uint8 (of 16-bit files the high bytes) or uint16
    raises InvalidArgumentError for damaged files and other arguments, FailedPreconditionError without Pillow
    """
    op, kind = "io.decode_png", as_dtype(dtype)
    channels = _checked_channels(channels, "PNG", op)
    if kind not in (dtypes.uint8, dtypes.uint16):
        raise InvalidArgumentError(op=op, what="dtype must be uint8 or uint16", found=kind.name)
    return _decode(contents, op, lambda data: _read_png(data, channels, kind, op), _image_spec(channels, kind), name)


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """Return a BMP's pixels, uint8[height, width, channels]. channels: 0 for the file's, 1, 3 or 4.

    raises InvalidArgumentError for damaged and compressed files
    """
    channels = _checked_channels(channels, "BMP", "io.decode_bmp")
    return _decode(
        contents, "io.decode_bmp", lambda data: png_samples.read_bmp(data, channels), _image_spec(channels), name
    )


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """Return the frames of a GIF, uint8[frames, height, width, 3].

    raises InvalidArgumentError for damaged files, FailedPreconditionError without Pillow
    """
    op = "io.decode_gif"

    def read(data: bytes) -> np.ndarray:
        if _format_of(data) != "GIF":
            raise InvalidArgumentError(op=op, what="the file is not a GIF")
        return read_pixels(data, 0, op)

    return _decode(contents, op, read, TensorSpec([None, None, None, 3], dtypes.uint8), name)


def decode_webp(contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None) -> Tensor:
    """Return the frames of a WebP file, uint8[frames, height, width, channels]; a picture is one frame.

    channels: 0 for the file's, else 3 or 4, which the file must have. dtype: uint8.
    raises InvalidArgumentError for damaged files and other arguments, FailedPreconditionError without Pillow
    """
    op = "io.decode_webp"
    channels = _checked_channels(channels, "WEBP", op)
    if as_dtype(dtype) is not dtypes.uint8:
        raise InvalidArgumentError(op=op, what="WebP files have uint8 samples", found=as_dtype(dtype).name)

    def read(data: bytes) -> np.ndarray:
        image = _open(data, op)
        try:
            if image.format != "WEBP":
                raise InvalidArgumentError(op=op, what="the file is not a WebP", found=image.format)
            frames = _read_frames(image, image.mode)
        except Exception as error:
            raise _damaged(op, error) from error
        if channels not in (0, frames.shape[-1]):
            raise InvalidArgumentError(
                op=op, what="Number of channels requested does not match input", found=frames.shape[-1], wanted=channels
            )
        return frames

    return _decode(contents, op, read, TensorSpec([None, None, None, channels or None], dtypes.uint8), name)


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """Return the pixels of a PNG, JPEG, GIF or BMP file: [height, width, channels], of a GIF [frames, ...].

    contents: the file's bytes, a string of shape (). channels: None or 0 for the file's, else 1, 3 or 4.
    dtype: uint8; uint16 (of PNG files), float32 and others by `image.convert_image_dtype`. expand_animations: False for
    the first frame of a GIF without the dimension of frames; the result has rank 3 then, otherwise none that is known
    raises InvalidArgumentError for damaged files and other formats, FailedPreconditionError without Pillow
    """
    op, target, number = "io.decode_image", as_dtype(dtype), int(channels or 0)
    stored = dtypes.uint16 if target is dtypes.uint16 else dtypes.uint8

    def read(data: bytes) -> np.ndarray:
        kind = _format_of(data)
        if kind is None:
            raise InvalidArgumentError(op=op, what="Unknown image file format. One of JPEG, PNG, GIF, BMP required.")
        _checked_channels(number, kind, op)
        if kind == "PNG":
            return _read_png(data, number, stored, op)
        if stored is dtypes.uint16:
            raise InvalidArgumentError(op=op, what=f"a {kind} file has no uint16 samples")
        if kind == "BMP":
            return png_samples.read_bmp(data, number)
        pixels = read_pixels(data, number, op)
        return pixels[0] if kind == "GIF" and not expand_animations else pixels

    spec = TensorSpec(None, stored) if expand_animations else _image_spec(number, stored)
    pixels = _decode(contents, op, read, spec, name)
    return pixels if target is stored else convert_image_dtype(pixels, target)
