"""Resize operators: bilinear, nearest neighbor, bicubic, area; their gradients.

Lives here: the operators, and the checks and inference rules shared with ScaleAndTranslate. Not here: pixel indices and
weights (resize_weights.py), `resize` and ScaleAndTranslate (resize.py).

Images are [batch, height, width, channels], size int32 [height, width]. In the formulas S_p is the coordinate in the
image of output pixel p: with half_pixel_centers (p + 1/2) n / m - 1/2, with align_corners p (n - 1) / (m - 1), else
p n / m. The taps of a method are two arrays [out, k]: indices and weights of the k source pixels of each output pixel.
All coordinates are float32, as in TensorFlow, so that ties are resolved identically.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import bfloat16, float16, float32, float64, floating, int8, int16, int32, int64, uint8, uint16
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...scalar.fixed_point_layers import Sampling
from .. import like_device
from ..array import cast
from ..array.shape_operators import shape_op
from ..attributes import Attr
from ..definition import operator
from ..shape_inference import elements_of
from ..slots import Input, OperatorDefinition, Output
from .resize_weights import applied, area, bicubic, bilinear, matrix, transposed

if TYPE_CHECKING:
    from ..tensor import Tensor


PIXELS = (int8, uint8, int16, uint16, int32, int64, bfloat16, float16, float32, float64)


def check_sizes(image: Any, size: Any) -> None:
    """Raise InvalidArgumentError for an empty image or result."""
    if any(n is not None and n < 1 for n in size):
        raise InvalidArgumentError(what="output dimensions must be positive", found=f"size {list(size)}")
    if any(n == 0 for n in image):
        raise InvalidArgumentError(what="input image must be of non-zero size", found=f"{list(image)} pixels")


def check_centres(op: Any) -> None:
    """Raise InvalidArgumentError if both conventions of coordinates are requested."""
    if getattr(op, "half_pixel_centers", False) and op.align_corners:
        raise InvalidArgumentError(
            what="If half_pixel_centers is True, align_corners must be False.", found="both are True"
        )


def resized_spec(op: Any, images: TensorSpec, size: Any, dtype: Any) -> TensorSpec:
    """Infer the spec of images [n, *size, c]. Raises InvalidArgumentError unless size is two positive numbers."""
    sizes = elements_of(size)
    if not size.spec.shape.is_compatible_with([2]):
        raise InvalidArgumentError(
            what="size must be a 1-D tensor of 2 elements: new_height, new_width", found=size.spec.short()
        )
    sizes = [None, None] if sizes is None else sizes
    n, height, width, depth = [None] * 4 if images.shape.rank is None else images.shape.as_list()
    check_sizes((height, width), sizes)
    return TensorSpec([n, *sizes, depth], dtype)


def infer_resized(op: Any, dtype: Any = None) -> TensorSpec:
    """Infer the output of a resize operator. dtype: by default the images'."""
    check_centres(op)
    return resized_spec(op, op.images.spec, op.size, dtype or op.images.spec.dtype)


def infer_gradient(op: Any) -> TensorSpec:
    """Infer the output of a gradient operator: the image's spec, consistent with grads in batch and channels."""
    check_centres(op)
    image, grads = op.original_image.spec, op.grads.spec.shape
    if grads.rank is not None and not image.shape.is_compatible_with([grads[0], None, None, grads[3]]):
        raise InvalidArgumentError(
            what="grads and original_image differ in batch or channels",
            found={"grads": op.grads.spec.short(), "original_image": image.short()},
        )
    n, height, width, depth = [None] * 4 if image.shape.rank is None else image.shape.dims
    grad_dims = grads.dims or [None] * 4
    result: TensorSpec = image.with_shape(
        [grad_dims[0] if n is None else n, height, width, grad_dims[3] if depth is None else depth]
    )
    return result


def arguments(op: Any, images: np.ndarray, out: tuple[int, int]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the arguments of the functions of resize_operators.py, for rows and for columns."""
    check_sizes(images.shape[1:3], out)
    flags = (op.align_corners, op.half_pixel_centers) if hasattr(op, "half_pixel_centers") else (op.align_corners,)
    return (images.shape[1], out[0], *flags), (images.shape[2], out[1], *flags)


def gradient_dtype(grads: np.ndarray) -> type[np.floating]:
    """Return the dtype in which gradients accumulate."""
    return np.float64 if grads.dtype == np.float64 else np.float32


def forward_gradient(op: Any, grad: Any, doutput: Any) -> tuple[None, None] | tuple[Any, None]:
    """Compute the gradients of images and size by the gradient operator; None for integer images."""
    if not op.images.dtype.is_floating:
        return None, None
    flags: Any = {"align_corners": op.align_corners, "half_pixel_centers": op.half_pixel_centers}
    return grad(doutput, op.images, **flags), None


def gradient_of_gradient(op: Any, forward: Any, doutput: Any) -> Tensor:
    """Compute the gradient of grads by the forward operator."""
    flags: Any = {"align_corners": op.align_corners, "half_pixel_centers": op.half_pixel_centers}
    result: Tensor = cast(forward(doutput, shape_op(op.grads)[1:3], **flags), op.grads.dtype)
    return result


class _FloatResize(OperatorDefinition):
    """Base of resizes whose result is float32."""

    images = Input(PIXELS, rank=4)
    size = Input(int32, rank=1)
    resized_images = Output(dtype=float32)
    align_corners = Attr(bool, default=False)
    half_pixel_centers = Attr(bool, default=False)
    no_need_buffer = ("images",)
    lod = "as images"

    def infer(op) -> TensorSpec:
        return infer_resized(op, float32)


class _ResizeGradient(OperatorDefinition):
    """Base of their gradients."""

    grads = Input((float32, float64), rank=4)
    original_image = Input(floating, rank=4)
    output = Output(like="original_image")
    align_corners = Attr(bool, default=False)
    half_pixel_centers = Attr(bool, default=False)
    shape_only = ("original_image",)
    no_need_buffer = ("grads", "original_image")
    lod = "vanishes"

    infer = infer_gradient


@operator
class ResizeBilinear(_FloatResize):
    """Resize images by bilinear interpolation.

    .. math:: resized\\_images_{p,q} = \\sum_{i,j} \\max(0, 1 - |S_p - i|) \\max(0, 1 - |S_q - j|)\\, images_{i,j}

    images: [n, h, w, c] of any real dtype; the result is float32. Border pixels are replicated.
    raises InvalidArgumentError for an empty image or size, or align_corners with half_pixel_centers
    """

    def compute(op, images: Any, size: Any) -> np.ndarray:
        rows, columns = arguments(op, images, tuple(size.tolist()))
        x = images.astype(np.float32, copy=False)
        low, high, part = (like_device.array(x, a) for a in bilinear(*columns))
        top = np.take(x, low, 2)
        x = top + (np.take(x, high, 2) - top) * part[:, None]
        low, high, part = (like_device.array(x, a) for a in bilinear(*rows))
        top = np.take(x, low, 1)
        resized_images: np.ndarray = top + (np.take(x, high, 1) - top) * part[:, None, None]
        return resized_images

    def gradient(op, doutput: Any) -> tuple[None, None] | tuple[Any, None]:
        return forward_gradient(op, ResizeBilinearGrad, doutput)


def _bilinear_matrix(size: int, *options: Any) -> np.ndarray:
    low, high, part = bilinear(size, *options)
    return matrix((np.stack([low, high], 1), np.stack([1 - part, part], 1)), size)


@operator
class ResizeBilinearGrad(_ResizeGradient):
    """Compute the gradient of ResizeBilinear.

    .. math:: output_{i,j} = \\sum_{p,q} \\max(0, 1 - |S_p - i|) \\max(0, 1 - |S_q - j|)\\, grads_{p,q}

    original_image: determines shape and dtype of the output.
    """

    def compute(op, grads: Any, original_image: Any) -> np.ndarray:
        rows, columns = arguments(op, original_image, grads.shape[1:3])
        dy = grads.astype(gradient_dtype(grads), copy=False)
        dx = transposed(dy, _bilinear_matrix(*rows), _bilinear_matrix(*columns))
        return dx.astype(original_image.dtype, copy=False)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        return gradient_of_gradient(op, ResizeBilinear, doutput), None


@operator
class ResizeNearestNeighbor(OperatorDefinition):
    """Resize images by nearest-neighbor interpolation.

    .. math:: resized\\_images_{p,q} = images_{\\lfloor p\\,h/m \\rfloor, \\lfloor q\\,w/n \\rfloor}

    With half_pixel_centers, the coordinate is (p + 1/2) h / m; with align_corners, it is rounded. Preserves the dtype.
    raises InvalidArgumentError for an empty image or size, or align_corners with half_pixel_centers
    """

    images = Input(PIXELS, rank=4)
    size = Input(int32, rank=1)
    resized_images = Output(like="images")
    align_corners = Attr(bool, default=False)
    half_pixel_centers = Attr(bool, default=False)
    no_need_buffer = ("images",)
    lod = "as images"

    infer = infer_resized

    def compute(op, images: np.ndarray, size: np.ndarray) -> np.ndarray:
        rows, columns = arguments(op, images, tuple(size.tolist()))
        return images[:, Sampling(*rows).nearest()[:, None], Sampling(*columns).nearest()]

    def gradient(op, doutput: Any) -> tuple[None, None] | tuple[Tensor, None]:
        if not op.images.dtype.is_floating:
            return None, None
        flags: Any = {"align_corners": op.align_corners, "half_pixel_centers": op.half_pixel_centers}
        return ResizeNearestNeighborGrad(doutput, shape_op(op.images)[1:3], **flags), None


@operator
class ResizeNearestNeighborGrad(OperatorDefinition):
    """Compute the gradient of ResizeNearestNeighbor: sum over all copies of each pixel.

    .. math:: output_{i,j} = \\sum_{p,q \\text{ copied from } i,j} grads_{p,q}

    size: height and width of the image.
    """

    grads = Input(PIXELS, rank=4)
    size = Input(int32, rank=1)
    output = Output(like="grads")
    align_corners = Attr(bool, default=False)
    half_pixel_centers = Attr(bool, default=False)
    no_need_buffer = ("grads",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        check_centres(op)
        return resized_spec(op, op.grads.spec, op.size, op.grads.spec.dtype)

    def compute(op, grads: Any, size: Any) -> np.ndarray:
        image = tuple(size.tolist())
        check_sizes(image, grads.shape[1:3])
        flags = op.align_corners, op.half_pixel_centers
        total = like_device.zeros(grads, (len(grads), *image, grads.shape[3]), np.result_type(grads.dtype, np.float32))
        rows, columns = (Sampling(n, m, *flags).nearest() for n, m in zip(image, grads.shape[1:3]))
        key: Any = (slice(None), like_device.array(grads, rows[:, None]), like_device.array(grads, columns))
        np.add.at(total, key, grads)
        return total.astype(grads.dtype, copy=False)

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        flags: Any = {"align_corners": op.align_corners, "half_pixel_centers": op.half_pixel_centers}
        return ResizeNearestNeighbor(doutput, shape_op(op.grads)[1:3], **flags), None


@operator
class ResizeBicubic(_FloatResize):
    """Resize images by bicubic interpolation (Keys 1981).

    .. math:: resized\\_images_{p,q} = \\sum_{i,j} K(S_p - i)\\, K(S_q - j)\\, images_{i,j}, \\quad K(x) =
              \\begin{cases} (a + 2)|x|^3 - (a + 3) x^2 + 1 & |x| \\le 1 \\\\
              a|x|^3 - 5a x^2 + 8a|x| - 4a & 1 < |x| < 2 \\end{cases}

    With half_pixel_centers a = -1/2, and weights are normalized over the pixels inside the image; else a = -3/4, and
    border pixels are replicated. Distances are rounded to 1/1024. The result is float32.
    raises InvalidArgumentError for an empty image or size, or align_corners with half_pixel_centers
    """

    def compute(op, images: Any, size: Any) -> np.ndarray:
        rows, columns = arguments(op, images, tuple(size.tolist()))
        x = images.astype(np.float32, copy=False)
        return applied(x, bicubic(*rows), bicubic(*columns))

    def gradient(op, doutput: Any) -> tuple[None, None] | tuple[Any, None]:
        return forward_gradient(op, ResizeBicubicGrad, doutput)


@operator
class ResizeBicubicGrad(_ResizeGradient):
    """Compute the gradient of ResizeBicubic.

    .. math:: output_{i,j} = \\sum_{p,q} K(S_p - i)\\, K(S_q - j)\\, grads_{p,q}

    original_image: determines shape and dtype of the output.
    """

    def compute(op, grads: Any, original_image: Any) -> np.ndarray:
        rows, columns = arguments(op, original_image, grads.shape[1:3])
        dy = grads.astype(gradient_dtype(grads), copy=False)
        matrices = [matrix(bicubic(*a), a[0]) for a in (rows, columns)]
        return transposed(dy, *matrices).astype(original_image.dtype, copy=False)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        return gradient_of_gradient(op, ResizeBicubic, doutput), None


@operator
class ResizeArea(OperatorDefinition):
    """Resize images by area interpolation: average over the area that each output pixel covers.

    .. math:: resized\\_images_{p,q} = \\frac{1}{A} \\sum_{i,j} |R_{p,q} \\cap P_{i,j}|\\, images_{i,j}

    R: the rectangle of an output pixel in the image, of area A; P: of an image pixel. The result is float32. Not
    differentiable, as in TensorFlow.
    raises InvalidArgumentError for an empty image or size
    """

    images = Input(PIXELS, rank=4)
    size = Input(int32, rank=1)
    resized_images = Output(dtype=float32)
    align_corners = Attr(bool, default=False)
    lod = "as images"
    gradient = None

    def infer(op) -> TensorSpec:
        return infer_resized(op, float32)

    def compute(op, images: Any, size: Any) -> np.ndarray:
        rows, columns = arguments(op, images, tuple(size.tolist()))
        x = images.astype(np.float32, copy=False)
        return applied(x, area(*rows), area(*columns))
