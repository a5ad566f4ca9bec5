"""What the operators that resize images share: which sizes and dtypes they take and give.

Lives here: checks, inference, and the gradients that lead from one operator to another.
Not here: the operators (resizing.py, scaling.py), the weights (weights.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import bfloat16, float16, float32, float64, int8, int16, int32, int64, uint8, uint16
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ..array import cast
from ..array.shaping import shape_op
from ..inference import elements_of

PIXELS = (int8, uint8, int16, uint16, int32, int64, bfloat16, float16, float32, float64)
FLOATS = (bfloat16, float16, float32, float64)


def check_sizes(image: Any, wanted: Any) -> None:
    """Neither the image nor the result may be without pixels. Raises InvalidArgumentError."""
    if any(n is not None and n < 1 for n in wanted):
        raise InvalidArgumentError(what="output dimensions must be positive", found=f"size {list(wanted)}")
    if any(n == 0 for n in image):
        raise InvalidArgumentError(what="input image must be of non-zero size", found=f"{list(image)} pixels")


def check_centres(op: Any) -> None:
    """Raises InvalidArgumentError where new pixels are to lie at two places."""
    if getattr(op, "half_pixel_centers", False) and op.align_corners:
        raise InvalidArgumentError(what="If half_pixel_centers is True, align_corners must be False.",
                                   found="both are True")  # fmt: skip


def resized_spec(op: Any, images: TensorSpec, size: Any, dtype: Any) -> TensorSpec:
    """The spec of images [n, *size, c]. Raises InvalidArgumentError for a size that is not two positive numbers."""
    wanted = elements_of(size)
    if not size.spec.shape.is_compatible_with([2]):
        raise InvalidArgumentError(what="size must be a 1-D tensor of 2 elements: new_height, new_width",
                                   found=size.spec.short())  # fmt: skip
    wanted = [None, None] if wanted is None else wanted
    n, high, wide, depth = [None] * 4 if images.shape.rank is None else images.shape.dims
    check_sizes((high, wide), wanted)
    return TensorSpec([n, *wanted, depth], dtype)


def of_size(op: Any, dtype: Any = None) -> TensorSpec:
    """The spec of the resized images of an operator, by default of their own dtype."""
    check_centres(op)
    return resized_spec(op, op.images.spec, op.size, dtype or op.images.spec.dtype)


def of_image(op: Any) -> TensorSpec:
    """The spec of a gradient: the image's, whose batch and channels must be those of grads."""
    check_centres(op)
    image, grads = op.original_image.spec, op.grads.spec.shape
    if grads.rank is not None and not image.shape.is_compatible_with([grads[0], None, None, grads[3]]):
        raise InvalidArgumentError(what="grads and original_image differ in batch or channels",
                                   found={"grads": op.grads.spec.short(), "original_image": image.short()})  # fmt: skip
    n, high, wide, depth = [None] * 4 if image.shape.rank is None else image.shape.dims
    known = grads.dims or [None] * 4
    return image.with_shape([known[0] if n is None else n, high, wide, known[3] if depth is None else depth])


def arguments(op: Any, images: np.ndarray, out: tuple[int, int]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What the functions of weights.py take, for rows and for columns."""
    check_sizes(images.shape[1:3], out)
    flags = (op.align_corners, op.half_pixel_centers) if hasattr(op, "half_pixel_centers") else (op.align_corners,)
    return (images.shape[1], out[0], *flags), (images.shape[2], out[1], *flags)


def gradient_dtype(grads: np.ndarray) -> Any:
    """What gradients are added up in."""
    return np.float64 if grads.dtype == np.float64 else np.float32


def gradient_of(op: Any, grad: Any, doutput: Any) -> Any:
    """The gradients of images and size, by the operator of the gradient; none of integers."""
    if not op.images.dtype.is_floating:
        return None, None
    flags = {"align_corners": op.align_corners, "half_pixel_centers": op.half_pixel_centers}
    return grad(doutput, op.images, **flags), None


def gradient_of_gradient(op: Any, forward: Any, doutput: Any) -> Any:
    """The gradient of grads: `forward` applied to that of the image."""
    flags = {"align_corners": op.align_corners, "half_pixel_centers": op.half_pixel_centers}
    return cast(forward(doutput, shape_op(op.grads)[1:3], **flags), op.grads.dtype)
