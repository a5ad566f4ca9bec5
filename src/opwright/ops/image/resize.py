"""Resize functions; scaling and translation by sampling kernels.

Lives here: ScaleAndTranslate and its gradient; ResizeMethod, resize, resize_with_pad.
Not here: the operators of single methods (resize_operators.py), cropping and padding (geometry.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import float32, float64, floating, int32
from ...core.errors import InvalidArgumentError
from .. import dispatch, math
from ..array import cast, expand_dims, squeeze, stack
from ..array.shape_operators import dims_tensor, shape_op
from ..attributes import Attr, one_of
from ..definition import operator
from ..slots import Input, OperatorDefinition, Output
from . import resize_weights
from .geometry import batched, dims_of, is_known, larger, pad_to_bounding_box, require, static_or_tensor
from .resize_operators import (
    PIXELS,
    ResizeArea,
    ResizeBicubic,
    ResizeBilinear,
    ResizeNearestNeighbor,
    check_sizes,
    gradient_dtype,
    resized_spec,
)

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..tensor import Tensor

KERNELS = tuple(resize_weights.KERNELS)


def _check(op: Any) -> None:
    """Check that scale and translation are two numbers each, scales positive. Raises InvalidArgumentError."""
    for name in ("scale", "translation"):
        spec = getattr(op, name).spec
        if not spec.shape.is_compatible_with([2]):
            raise InvalidArgumentError(what=f"{name} must be a 1-D tensor of 2 elements", found=spec.short())
    if op.scale.constant is not None:
        _check_scale(op.scale.constant)


def _check_scale(scale: np.ndarray) -> None:
    if not (scale > 0).all():
        raise InvalidArgumentError(what="Scale must be greater than zero.", found=f"scale {scale.tolist()}")


def _taps(op: Any, image: Any, out: Any, scale: Any, translation: Any) -> list[resize_weights.Taps]:
    check_sizes(image, out)
    _check_scale(scale)
    return [
        resize_weights.scaled(n, m, factor, shift, op.kernel_type, op.antialias)
        for n, m, factor, shift in zip(image, out, scale.tolist(), translation.tolist())
    ]


@operator
class ScaleAndTranslate(OperatorDefinition):
    """Scale and translate images by a sampling kernel; return a window of `size` from the origin.

    .. math:: resized\\_images_{p,q} = \\sum_{i,j} \\bar k\\left(\\frac{i + 1/2 - u_p}{s}\\right)
              \\bar k\\left(\\frac{j + 1/2 - u_q}{s}\\right) images_{i,j}, \\quad
              u_p = \\frac{p + 1/2 - translation}{scale}

    k: the kernel with normalized weights; s: with antialias max(1, 1 / scale), else 1. Output pixels whose center u is
    outside the image are 0. images: [n, h, w, c] of any real dtype; the result is float32.
    raises InvalidArgumentError for an empty image or size, or a scale that is not positive
    """

    images = Input(PIXELS, rank=4)
    size = Input(int32, rank=1)
    scale = Input((float32, float64), rank=1)
    translation = Input((float32, float64), like="scale", rank=1)
    resized_images = Output(dtype=float32)
    kernel_type = Attr(str, default="lanczos3", check=one_of(*KERNELS))
    antialias = Attr(bool, default=True)
    no_need_buffer = ("images",)
    lod = "as images"

    def infer(op) -> TensorSpec:
        _check(op)
        return resized_spec(op, op.images.spec, op.size, float32)

    def compute(op, images: Any, size: Any, scale: Any, translation: Any) -> np.ndarray:
        taps = _taps(op, images.shape[1:3], size.tolist(), scale, translation)
        return resize_weights.applied(images.astype(np.float32, copy=False), *taps)

    def gradient(op, doutput: Any) -> tuple[None, None, None, None] | tuple[Tensor, None, None, None]:
        if not op.images.dtype.is_floating:
            return None, None, None, None
        kind: Any = {"kernel_type": op.kernel_type, "antialias": op.antialias}
        return ScaleAndTranslateGrad(doutput, op.images, op.scale, op.translation, **kind), None, None, None


@operator
class ScaleAndTranslateGrad(OperatorDefinition):
    """Compute the gradient of ScaleAndTranslate with respect to its images.

    .. math:: output_{i,j} = \\sum_{p,q} \\bar k\\left(\\frac{i + 1/2 - u_p}{s}\\right)
              \\bar k\\left(\\frac{j + 1/2 - u_q}{s}\\right) grads_{p,q}

    original_image: determines shape and dtype of the output.
    """

    grads = Input((float32, float64), rank=4)
    original_image = Input(floating, rank=4)
    scale = Input((float32, float64), rank=1)
    translation = Input((float32, float64), like="scale", rank=1)
    output = Output(like="original_image")
    kernel_type = Attr(str, default="lanczos3", check=one_of(*KERNELS))
    antialias = Attr(bool, default=True)
    shape_only = ("original_image",)
    no_need_buffer = ("grads", "original_image")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        _check(op)
        return op.original_image.spec

    def compute(op, grads: Any, original_image: Any, scale: Any, translation: Any) -> np.ndarray:
        image = original_image.shape[1:3]
        taps = _taps(op, image, grads.shape[1:3], scale, translation)
        dy = grads.astype(gradient_dtype(grads), copy=False)
        dx = resize_weights.transposed(dy, *(resize_weights.matrix(t, n) for t, n in zip(taps, image)))
        return dx.astype(original_image.dtype, copy=False)

    def gradient(op, doutput: Any) -> tuple[Any, None, None, None]:
        kind: Any = {"kernel_type": op.kernel_type, "antialias": op.antialias}
        dgrads = ScaleAndTranslate(doutput, shape_op(op.grads)[1:3], op.scale, op.translation, **kind)
        return cast(dgrads, op.grads.dtype), None, None, None


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


_NUMBERED = ("bilinear", "nearest", "bicubic", "area")  # method numbers of TensorFlow 1
_DIRECT: dict[str, Callable[..., Tensor]] = {  # half-pixel centers
    "bilinear": lambda x, size: ResizeBilinear(x, size, half_pixel_centers=True),
    "bicubic": lambda x, size: ResizeBicubic(x, size, half_pixel_centers=True),
    "nearest": lambda x, size: ResizeNearestNeighbor(x, size, half_pixel_centers=True),
    "area": ResizeArea,
}
_KERNELS = {
    "bilinear": "triangle",
    "bicubic": "keyscubic",
    "lanczos3": "lanczos3",
    "lanczos5": "lanczos5",
    "gaussian": "gaussian",
    "mitchellcubic": "mitchellcubic",
}


def _method(method: Any) -> str:
    if isinstance(method, int) and 0 <= method < len(_NUMBERED):
        return _NUMBERED[method]
    if method in _DIRECT or method in _KERNELS:
        return str(method)
    raise ValueError(f"Resize method is not implemented: {method}; wanted one of {', '.join({**_DIRECT, **_KERNELS})}")


def _scaled(images: Any, size: Any, kernel: str, antialias: bool) -> Tensor:
    _, high, wide, _ = dims_of(images)
    scale = cast(size, dtypes.float32) / cast(dims_tensor([high, wide]), dtypes.float32)
    return ScaleAndTranslate(images, size, scale, [0.0, 0.0], kernel_type=kernel, antialias=antialias)


def _preserve_aspect_ratio(images: Any, size: Any) -> Tensor:
    """Return the largest size within `size` that has the aspect ratio of the images."""
    sides = [cast(d, dtypes.float32) for d in dims_of(images)[1:3]]
    limits = cast(size, dtypes.float32)
    factor = math.minimum(limits[0] / sides[0], limits[1] / sides[1])
    return stack([cast(math.round(factor * side), dtypes.int32) for side in sides])


def resize(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resize images [n, h, w, c] or [h, w, c] to [(n,) *size, c].

    size: two integers or an int32 tensor of two, height and width. method: of ResizeMethod: "bilinear", "nearest",
    "bicubic", "area", "lanczos3", "lanczos5", "gaussian" or "mitchellcubic". preserve_aspect_ratio: resize to the
    largest size within `size`. antialias: apply an anti-aliasing filter when downscaling; ignored by "nearest" and
    "area". The result is float32; for "nearest", the dtype of the images.
    raises InvalidArgumentError for images of another rank, ValueError for another method
    """
    images = dispatch.to_tensor(images)
    if images.shape.rank is None:
        raise InvalidArgumentError(
            op="resize", node=name, what="'images' contains no shape.", do="images.set_shape([None, None, None, None])"
        )
    method = _method(method)
    is_single = images.shape.rank == 3
    if not is_single and images.shape.rank != 4:
        raise InvalidArgumentError(
            op="resize", node=name, what="'images' must have either 3 or 4 dimensions.", found=images.spec.short()
        )
    images = expand_dims(images, 0) if is_single else images
    size = _size(size, name)
    if preserve_aspect_ratio:
        size = _preserve_aspect_ratio(images, size)
    if method in _DIRECT and not (antialias and method in _KERNELS):
        images = _DIRECT[method](images, size)
    else:
        images = _scaled(images, size, _KERNELS[method], antialias)
    return squeeze(images, [0], name=name) if is_single else images


def _size(size: Any, name: str | None) -> Tensor:
    if isinstance(size, (list, tuple)):
        size = dims_tensor(list(size))
    size = dispatch.to_tensor(size)
    if not size.shape.is_compatible_with([2]) or not size.dtype.is_integer:
        raise InvalidArgumentError(
            op="resize",
            node=name,
            found=size.spec.short(),
            what="'size' must be a 1-D int32 Tensor of 2 elements: new_height, new_width",
        )
    result: Tensor = cast(size, dtypes.int32)
    return result


def resize_with_pad(
    image: Any, target_height: Any, target_width: Any, method: Any = ResizeMethod.BILINEAR, antialias: bool = False
) -> Tensor:
    """Resize images to the largest size within the target that preserves their aspect ratio; pad with zeros.

    image: [n, h, w, c] or [h, w, c]; method, antialias: as in `resize`.
    raises InvalidArgumentError for another rank or a target that is not positive
    """
    op = "resize_with_pad"
    image, unbatched = batched(image, op)
    target = [static_or_tensor(target_height), static_or_tensor(target_width)]
    require(op, target[1] > 0, "target_width must be > 0.", target_width=target[1])
    require(op, target[0] > 0, "target_height must be > 0.", target_height=target[0])
    sides = [_as_float32(d) for d in dims_of(image)[1:3]]
    limits = [_as_float32(t) for t in target]
    ratio = larger(sides[1] / limits[1], sides[0] / limits[0])
    exact = [side / ratio for side in sides]
    before = [larger(0, _floor((t - e) / 2)) for t, e in zip(limits, exact)]
    resized = resize(image, [_floor(e) for e in exact], method, antialias=antialias)
    result: Tensor = unbatched(pad_to_bounding_box(resized, *before, *target))
    return result


def _as_float32(value: Any) -> np.float32 | Tensor:
    """Convert to float32; static numbers to NumPy's, so that rounding is the same as for tensors."""
    return np.float32(value) if is_known(value) else cast(value, dtypes.float32)


def _floor(value: Any) -> int | Tensor:
    return int(np.floor(value)) if isinstance(value, np.floating) else cast(math.floor(value), dtypes.int32)
