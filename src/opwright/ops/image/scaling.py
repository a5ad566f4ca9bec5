"""Images enlarged and shifted, with a kernel of one's choice.

Lives here: ScaleAndTranslate and the operator of its gradient.  Not here: resizing by size alone (resizing.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, float64, int32
from ...core.errors import InvalidArgumentError
from ..array import cast
from ..array.shaping import shape_op
from ..attributes import Attr, one_of
from ..definition import Input, Output, operator
from . import weights
from .resized import FLOATS, PIXELS, check_sizes, gradient_dtype, resized_spec

KERNELS = tuple(weights.KERNELS)


def _check(op: Any) -> None:
    """scale and translation are two numbers each, scales positive. Raises InvalidArgumentError."""
    for name in ("scale", "translation"):
        spec = getattr(op, name).spec
        if not spec.shape.is_compatible_with([2]):
            raise InvalidArgumentError(what=f"{name} must be a 1-D tensor of 2 elements", found=spec.short())
    if op.scale.constant is not None:
        _check_scale(op.scale.constant)


def _check_scale(scale: np.ndarray) -> None:
    if not (scale > 0).all():
        raise InvalidArgumentError(what="Scale must be greater than zero.", found=f"scale {scale.tolist()}")


def _taps(op: Any, image: Any, out: Any, scale: Any, translation: Any) -> list[weights.Taps]:
    check_sizes(image, out)
    _check_scale(scale)
    return [weights.scaled(n, m, factor, shift, op.kernel_type, op.antialias)
            for n, m, factor, shift in zip(image, out, scale.tolist(), translation.tolist())]  # fmt: skip


@operator
class ScaleAndTranslate:
    """Images enlarged by `scale`, shifted by `translation`, and of that a window of `size` from the origin.

    .. math:: resized\\_images_{p,q} = \\sum_{i,j} \\bar k\\left(\\frac{i + 1/2 - u_p}{s}\\right)
              \\bar k\\left(\\frac{j + 1/2 - u_q}{s}\\right) images_{i,j}, \\quad
              u_p = \\frac{p + 1/2 - translation}{scale}

    k: the kernel, scaled so that weights add up to 1; s: with antialias max(1, 1 / scale), else 1. New pixels whose
    centre u lies outside the image are 0. images: [n, h, w, c] of any real dtype; the result is float32.
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

    def infer(op) -> Any:
        _check(op)
        return resized_spec(op, op.images.spec, op.size, float32)

    def compute(op, images, size, scale, translation) -> Any:
        taps = _taps(op, images.shape[1:3], size.tolist(), scale, translation)
        return weights.applied(images.astype(np.float32, copy=False), *taps)

    def gradient(op, doutput) -> Any:
        if not op.images.dtype.is_floating:
            return None, None, None, None
        kind = {"kernel_type": op.kernel_type, "antialias": op.antialias}
        return ScaleAndTranslateGrad(doutput, op.images, op.scale, op.translation, **kind), None, None, None


@operator
class ScaleAndTranslateGrad:
    """The gradient of ScaleAndTranslate by its images.

    .. math:: output_{i,j} = \\sum_{p,q} \\bar k\\left(\\frac{i + 1/2 - u_p}{s}\\right)
              \\bar k\\left(\\frac{j + 1/2 - u_q}{s}\\right) grads_{p,q}

    original_image: gives the sizes and the dtype.
    """

    grads = Input((float32, float64), rank=4)
    original_image = Input(FLOATS, rank=4)
    scale = Input((float32, float64), rank=1)
    translation = Input((float32, float64), like="scale", rank=1)
    output = Output(like="original_image")
    kernel_type = Attr(str, default="lanczos3", check=one_of(*KERNELS))
    antialias = Attr(bool, default=True)
    shape_only = ("original_image",)
    no_need_buffer = ("grads", "original_image")
    lod = "vanishes"

    def infer(op) -> Any:
        _check(op)
        return op.original_image.spec

    def compute(op, grads, original_image, scale, translation) -> Any:
        image = original_image.shape[1:3]
        taps = _taps(op, image, grads.shape[1:3], scale, translation)
        dy = grads.astype(gradient_dtype(grads), copy=False)
        found = weights.transposed(dy, *(weights.matrix(t, n) for t, n in zip(taps, image)))
        return found.astype(original_image.dtype, copy=False)

    def gradient(op, doutput) -> Any:
        kind = {"kernel_type": op.kernel_type, "antialias": op.antialias}
        found = ScaleAndTranslate(doutput, shape_op(op.grads)[1:3], op.scale, op.translation, **kind)
        return cast(found, op.grads.dtype), None, None, None
