"""Images brought to another size, under TensorFlow's names.

Lives here: ResizeMethod, resize, resize_with_pad.
Not here: the operators (resizing.py, scaling.py), cropping and padding without resizing (framing.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from .. import dispatch, math
from ..array import cast, expand_dims, squeeze, stack
from ..array.shaping import dims_tensor
from .framing import pad_to_bounding_box
from .resizing import ResizeArea, ResizeBicubic, ResizeBilinear, ResizeNearestNeighbor
from .scaling import ScaleAndTranslate
from .sizes import batched, dims_of, is_known, known, larger, require


class ResizeMethod:
    """The names of `resize`'s methods."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


_NUMBERED = ("bilinear", "nearest", "bicubic", "area")  # as older programs give them
_DIRECT = {  # half-pixel centres
    "bilinear": lambda x, size: ResizeBilinear(x, size, half_pixel_centers=True),
    "bicubic": lambda x, size: ResizeBicubic(x, size, half_pixel_centers=True),
    "nearest": lambda x, size: ResizeNearestNeighbor(x, size, half_pixel_centers=True),
    "area": ResizeArea,
}
_KERNELS = {
    "bilinear": "triangle", "bicubic": "keyscubic", "lanczos3": "lanczos3", "lanczos5": "lanczos5",
    "gaussian": "gaussian", "mitchellcubic": "mitchellcubic",
}  # fmt: skip


def _method(method: Any) -> str:
    if isinstance(method, int) and 0 <= method < len(_NUMBERED):
        return _NUMBERED[method]
    if method in _DIRECT or method in _KERNELS:
        return str(method)
    raise ValueError(f"Resize method is not implemented: {method}; wanted one of {', '.join({**_DIRECT, **_KERNELS})}")


def _scaled(images: Any, size: Any, kernel: str, antialias: bool) -> Any:
    _, high, wide, _ = dims_of(images)
    scale = cast(size, dtypes.float32) / cast(dims_tensor([high, wide]), dtypes.float32)
    return ScaleAndTranslate(images, size, scale, [0.0, 0.0], kernel_type=kernel, antialias=antialias)


def _keeping_ratio(images: Any, size: Any) -> Any:
    """The largest size of the image's own ratio of sides within `size`."""
    sides = [cast(d, dtypes.float32) for d in dims_of(images)[1:3]]
    wanted = cast(size, dtypes.float32)
    factor = math.minimum(wanted[0] / sides[0], wanted[1] / sides[1])
    return stack([cast(math.round(factor * side), dtypes.int32) for side in sides])


def resize(images: Any, size: Any, method: Any = ResizeMethod.BILINEAR, preserve_aspect_ratio: bool = False,
           antialias: bool = False, name: str | None = None) -> Any:  # fmt: skip
    """Images of another size: [n, h, w, c] or [h, w, c] to [(n,) *size, c].

    size: two integers or an int32 tensor of two, height and width. method: of ResizeMethod: "bilinear", "nearest",
    "bicubic", "area", "lanczos3", "lanczos5", "gaussian" or "mitchellcubic". preserve_aspect_ratio: as large as fits
    into `size` instead. antialias: average over what a new pixel covers where the image gets smaller; "nearest" and
    "area" do not mind it. The result is float32, of "nearest" of the images' dtype.
    raises InvalidArgumentError for images of another rank, ValueError for another method
    """
    images = dispatch.to_tensor(images)
    if images.shape.rank is None:
        raise InvalidArgumentError(op="resize", node=name, what="'images' contains no shape.",
                                   do="images.set_shape([None, None, None, None])")  # fmt: skip
    method = _method(method)
    alone = images.shape.rank == 3
    if not alone and images.shape.rank != 4:
        raise InvalidArgumentError(op="resize", node=name, what="'images' must have either 3 or 4 dimensions.",
                                   found=images.spec.short())  # fmt: skip
    images = expand_dims(images, 0) if alone else images
    size = _size(size, name)
    if preserve_aspect_ratio:
        size = _keeping_ratio(images, size)
    if method in _DIRECT and not (antialias and method in _KERNELS):
        images = _DIRECT[method](images, size)
    else:
        images = _scaled(images, size, _KERNELS[method], antialias)
    return squeeze(images, [0], name=name) if alone else images


def _size(size: Any, name: str | None) -> Any:
    if isinstance(size, (list, tuple)):
        size = dims_tensor(list(size))
    size = dispatch.to_tensor(size)
    if not size.shape.is_compatible_with([2]) or not size.dtype.is_integer:
        raise InvalidArgumentError(op="resize", node=name, found=size.spec.short(), what="'size' must be a 1-D int32 "
                                   "Tensor of 2 elements: new_height, new_width")  # fmt: skip
    return cast(size, dtypes.int32)


def resize_with_pad(image: Any, target_height: Any, target_width: Any, method: Any = ResizeMethod.BILINEAR,
                    antialias: bool = False) -> Any:  # fmt: skip
    """Images as large as fit into the target with their ratio of sides, in the middle of zeros.

    image: [n, h, w, c] or [h, w, c]; method, antialias: as `resize` has them.
    raises InvalidArgumentError for another rank or a target that is not positive
    """
    op = "resize_with_pad"
    image, unbatched = batched(image, op)
    target = [known(target_height), known(target_width)]
    require(op, target[1] > 0, "target_width must be > 0.", target_width=target[1])
    require(op, target[0] > 0, "target_height must be > 0.", target_height=target[0])
    sides = [_float(d) for d in dims_of(image)[1:3]]
    wanted = [_float(t) for t in target]
    ratio = larger(sides[1] / wanted[1], sides[0] / wanted[0])
    exact = [side / ratio for side in sides]
    before = [larger(0, _whole((t - e) / 2)) for t, e in zip(wanted, exact)]
    resized = resize(image, [_whole(e) for e in exact], method, antialias=antialias)
    return unbatched(pad_to_bounding_box(resized, *before, *target))


def _float(value: Any) -> Any:
    """As float32, a NumPy number where it is known, so that rounding is the same either way."""
    return np.float32(value) if is_known(value) else cast(value, dtypes.float32)


def _whole(value: Any) -> Any:
    return int(np.floor(value)) if isinstance(value, np.floating) else cast(math.floor(value), dtypes.int32)
