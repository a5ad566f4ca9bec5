"""Resize operators: bilinear, nearest neighbor, bicubic, area; their gradients and interpolation weights.

Lives here: the operators, and the checks and inference rules shared with ScaleAndTranslate; pixel indices and weights
of every method, as NumPy arrays, separable by dimension, and their application to images.
Not here: `resize` and ScaleAndTranslate (resize.py).

Images are [batch, height, width, channels], size int32 [height, width]. In the formulas S_p is the coordinate in the
image of output pixel p: with half_pixel_centers (p + 1/2) n / m - 1/2, with align_corners p (n - 1) / (m - 1), else
p n / m. The taps of a method are two arrays [out, k]: indices and weights of the k source pixels of each output pixel.
All coordinates are float32, as in TensorFlow, so that ties are resolved identically.
"""

from __future__ import annotations

from collections.abc import Callable
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

if TYPE_CHECKING:
    from ..tensor import Tensor

Taps = tuple[np.ndarray, np.ndarray]
F = np.float32
TINY = F(1000.0) * np.finfo(F).tiny  # weights with a smaller sum are not normalized
TABLE = 1024  # resolution of bicubic weights between two pixels


def bilinear(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> tuple[Any, Any, Any]:
    """Return the indices of the pixels before and after each output pixel, and its distance from the first, [out]."""
    positions = Sampling(size, out, align_corners, half_pixel_centers).positions()
    low = np.floor(positions)
    return (
        np.maximum(low, 0).astype(np.intp),
        np.minimum(np.ceil(positions), size - 1).astype(np.intp),
        positions - low,
    )


def bicubic(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """Return the taps of Keys's cubic: a = -1/2 without border pixels for half-pixel centers; else a = -3/4 with a
    repeated border.
    """
    a = F(-0.5 if half_pixel_centers else -0.75)
    positions = Sampling(size, out, align_corners, half_pixel_centers).positions()
    floor = np.floor(positions)
    offset = np.rint((positions - floor) * F(TABLE)) / F(TABLE)

    def near(x: np.ndarray) -> np.ndarray:
        result: np.ndarray = ((a + F(2)) * x - (a + F(3))) * x * x + F(1)
        return result

    def far(x: np.ndarray) -> np.ndarray:
        x = x + F(1)
        result: np.ndarray = ((a * x - F(5) * a) * x + F(8) * a) * x - F(4) * a
        return result

    weights = np.stack([far(offset), near(offset), near(F(1) - offset), far(F(1) - offset)], 1)
    indices = floor[:, None].astype(np.intp) + np.arange(-1, 3)
    clipped = np.clip(indices, 0, size - 1)
    if half_pixel_centers:
        weights = _normalized(np.where(clipped == indices, weights, F(0)))
    return clipped, weights


def area(size: int, out: int, align_corners: bool) -> Taps:
    """Return the taps of area interpolation: the fraction of each pixel that an output pixel covers."""
    step = Sampling(size, out, align_corners, False).scale
    if step == 0:  # one pixel with its corner aligned to that of many
        return np.zeros((out, 1), np.intp), np.ones((out, 1), F)
    start = np.arange(out, dtype=F) * step
    end = np.arange(1, out + 1, dtype=F) * step
    first, last = np.floor(start).astype(np.intp), np.ceil(end).astype(np.intp)
    indices = first[:, None] + np.arange(int((last - first).max()))
    covered = np.minimum((indices + 1).astype(F), end[:, None]) - np.maximum(indices.astype(F), start[:, None])
    return np.clip(indices, 0, size - 1), np.maximum(covered, F(0)) / step


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def weight(x: Any) -> np.ndarray:
        angle = F(np.pi) * np.maximum(x, F(1e-3))
        wave = F(radius) * np.sin(angle) * np.sin(angle / F(radius)) / (angle * angle)
        return np.where(x <= F(1e-3), F(1), np.where(x > F(radius), F(0), wave))

    return weight


def _gaussian(x: Any) -> np.ndarray:
    return np.where(x >= F(1.5), F(0), np.exp(-x * x / F(2 * 0.5 * 0.5)))


def _box(x: Any) -> np.ndarray:
    return np.where(x < F(0.5), F(1), np.where(x == F(0.5), F(0.5), F(0)))


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(F(1) - x, F(0))


def _keys_cubic(x: Any) -> np.ndarray:
    near, far = (F(1.5) * x - F(2.5)) * x * x + F(1), ((F(-0.5) * x + F(2.5)) * x - F(4)) * x + F(2)
    return np.where(x >= F(2), F(0), np.where(x >= F(1), far, near))


def _mitchell_cubic(x: Any) -> np.ndarray:
    near = (F(7 / 6) * x - F(2)) * x * x + F(8 / 9)
    far = ((F(-7 / 18) * x + F(2)) * x - F(10 / 3)) * x + F(16 / 9)
    return np.where(x >= F(2), F(0), np.where(x >= F(1), far, near))


KERNELS: dict[str, tuple[float, Callable[[Any], Any]]] = {  # radius, and weight as a function of distance
    "lanczos1": (1.0, _lanczos(1.0)),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, _gaussian),
    "box": (1.0, _box),
    "triangle": (1.0, _triangle),
    "keyscubic": (2.0, _keys_cubic),
    "mitchellcubic": (2.0, _mitchell_cubic),
}


def scaled(size: int, out: int, factor: float, shift: float, kernel: str, antialias: bool) -> Taps:
    """Return the taps of an image scaled by `factor`, then shifted; output pixels centered outside the image are 0."""
    radius, weight = KERNELS[kernel]
    step = F(1) / F(factor)
    stretch = max(step, F(1)) if antialias else F(1)
    center = (np.arange(out, dtype=F) + F(0.5)) * step - step * F(shift)
    support = F(radius) * stretch
    last = np.clip(np.floor(center + support - F(0.5)), 0, size - 1).astype(np.intp)
    first = np.clip(np.ceil(center - support - F(0.5)), 0, size - 1).astype(np.intp)
    indices = first[:, None] + np.arange(int((last - first).max()) + 1)
    weights = weight(np.abs(indices.astype(F) + F(0.5) - center[:, None]) / stretch).astype(F)
    weights = _normalized(np.where(indices <= last[:, None], weights, F(0)))
    inside = (center >= 0) & (center <= size)
    return np.minimum(indices, size - 1), np.where(inside[:, None], weights, F(0))


def _normalized(weights: np.ndarray) -> np.ndarray:
    total = weights.sum(1, keepdims=True, dtype=F)
    array: np.ndarray = np.divide(weights, total, out=weights.copy(), where=np.abs(total) >= TINY)
    return array


def applied(x: np.ndarray, rows: Taps, columns: Taps) -> np.ndarray:
    """Resample images [n, h, w, c] in float32 or float64 by taps of rows and columns."""
    for axis, taps in ((1, rows), (2, columns)):
        indices, weights = (like_device.array(x, part) for part in taps)
        weight_shape = (-1, 1, 1) if axis == 1 else (-1, 1)
        total = np.take(x, indices[:, 0], axis) * weights[:, 0].reshape(weight_shape)
        for k in range(1, indices.shape[1]):
            total += np.take(x, indices[:, k], axis) * weights[:, k].reshape(weight_shape)
        x = total
    return x


def matrix(taps: Taps, size: int) -> np.ndarray:
    """Return taps as a dense matrix [out, size]."""
    indices, weights = taps
    dense = np.zeros((len(indices), size), weights.dtype)
    np.add.at(dense, (np.arange(len(indices))[:, None], indices), weights)
    return dense


def transposed(dy: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Apply the transposed matrices: compute the gradient of images from the gradient of the resampled ones."""
    n, height, width, depth = dy.shape
    rows, columns = like_device.array(dy, rows), like_device.array(dy, columns)
    up = rows.T.astype(dy.dtype) @ dy.reshape(n, height, width * depth)
    up = columns.T.astype(dy.dtype) @ up.reshape(n * rows.shape[1], width, depth)
    array: np.ndarray = up.reshape(n, rows.shape[1], columns.shape[1], depth)
    return array


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
