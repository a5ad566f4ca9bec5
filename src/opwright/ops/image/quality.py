"""Image gradients and quality metrics.

Lives here: image_gradients, sobel_edges, total_variation, psnr, ssim, ssim_multiscale.
Not here: convolutions and pools (nn/).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float32
from ...core.errors import InvalidArgumentError
from .. import array, dispatch, math
from ..array.shape_operators import dims_tensor, shape_op
from ..nn import avg_pool, depthwise_conv2d, relu, softmax
from .color_spaces import convert_image_dtype
from .geometry import is_known

if TYPE_CHECKING:
    from ..tensor import Tensor


def _check_rank(image: Any, op: str, *ranks: int) -> Tensor:
    tensor = dispatch.to_tensor(image)
    if tensor.shape.rank not in ranks:
        raise InvalidArgumentError(
            op=op, what=f"the image must have {' or '.join(map(str, ranks))} dimensions", found=tensor.spec.short()
        )
    return tensor


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """Return the forward differences (dy, dx) of an image; 0 in the last row and column.

    .. math:: dy_{i,j} = image_{i+1,j} - image_{i,j}, \\quad dx_{i,j} = image_{i,j+1} - image_{i,j}

    image, dy, dx: [n, h, w, c]. raises InvalidArgumentError for another rank
    """
    image = _check_rank(image, "image_gradients", 4)
    dy, dx = image[:, 1:] - image[:, :-1], image[:, :, 1:] - image[:, :, :-1]
    return array.pad(dy, [[0, 0], [0, 1], [0, 0], [0, 0]]), array.pad(dx, [[0, 0], [0, 0], [0, 1], [0, 0]])


SOBEL = np.array([[[-1, -2, -1], [0, 0, 0], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]])


def sobel_edges(image: Any) -> Tensor:
    """Apply the Sobel filters: [n, h, w, c] to [n, h, w, c, 2], vertical and horizontal. The border is reflected.

    raises InvalidArgumentError for another rank
    """
    image = _check_rank(image, "sobel_edges", 4)
    shape = shape_op(image)
    filters = array.cast(SOBEL.transpose(1, 2, 0)[:, :, None].astype(np.float32), image.dtype)
    filters = array.tile(filters, dims_tensor([1, 1, shape[3], 1]))
    padded = array.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = depthwise_conv2d(padded, filters, [1, 1, 1, 1], "VALID")
    edges = array.reshape(edges, array.concat([shape, dispatch.to_tensor([2])], 0))
    edges.set_shape([*image.shape.dims, 2])
    return edges


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """Compute the total variation of images: [n, h, w, c] to [n], or [h, w, c] to a scalar.

    .. math:: \\sum_{i,j} |images_{i+1,j} - images_{i,j}| + |images_{i,j+1} - images_{i,j}|

    raises InvalidArgumentError for another rank
    """
    images = _check_rank(images, "total_variation", 3, 4)
    down = images[..., 1:, :, :] - images[..., :-1, :, :]
    right = images[..., 1:, :] - images[..., :-1, :]
    rows, columns = (math.reduce_sum(math.abs(d), axis=[-3, -2, -1]) for d in (down, right))
    return math.add(rows, columns, name=name)


# ---- two images ---------------------------------------------------------------------------------------------------


def _pair(first: Any, second: Any, op: str) -> tuple[Any, Any]:
    """Convert two images [..., h, w, c] to tensors. Raises InvalidArgumentError for incompatible sizes."""
    first, second = dispatch.to_tensor(first), dispatch.to_tensor(second)
    a, b = first.shape.dims, second.shape.dims
    for x in (first, second):
        if x.shape.rank is not None and x.shape.rank < 3:
            raise InvalidArgumentError(op=op, what="images have at least three dimensions", found=x.spec.short())
    if a is None or b is None:
        return first, second
    same = all(None in (m, n) or m == n for m, n in zip(a[-3:], b[-3:]))
    if not same or any(m != n and not {1, None} & {m, n} for m, n in zip(a[-4::-1], b[-4::-1])):
        raise InvalidArgumentError(
            op=op,
            what="Two images are not compatible",
            found={"first": first.spec.short(), "second": second.spec.short()},
        )
    return first, second


def _in_float32(first: Any, second: Any, max_val: Any) -> tuple[Any, Any, Any]:
    peak = array.cast(max_val, first.dtype)
    return convert_image_dtype(first, float32), convert_image_dtype(second, float32), convert_image_dtype(peak, float32)


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """Compute the peak signal-to-noise ratio of images [..., h, w, c] in decibels, [...], float32.

    .. math:: 20 \\log_{10} max\\_val - 10 \\log_{10} \\overline{(a - b)^2}

    max_val: the largest possible value. raises InvalidArgumentError for images of different sizes
    """
    a, b, peak = _in_float32(*_pair(a, b, "psnr"), max_val)
    error = math.reduce_mean(math.squared_difference(a, b), axis=[-3, -2, -1])
    ten = np.log(np.float32(10))
    return math.subtract(20.0 * math.log(peak) / ten, np.float32(10 / np.log(10)) * math.log(error), name=name)


def _gaussian_kernel(size: int, sigma: float) -> Tensor:
    """Return a normalized Gaussian kernel [size, size, 1, 1]."""
    offsets = np.arange(size, dtype=np.float32) - np.float32(size - 1) / np.float32(2)
    g = offsets * offsets * (np.float32(-0.5) / np.float32(sigma) ** 2)
    total = (g[None, :] + g[:, None]).reshape(1, -1)
    return array.reshape(softmax(dispatch.to_tensor(total)), [size, size, 1, 1])


def _ssim_terms(
    first: Any, second: Any, max_val: Any, size: int, sigma: float, k1: float, k2: float
) -> tuple[Any, Any]:
    """Return the luminance term, and the product of contrast and structure terms, per pixel, [..., h', w', c] each."""
    shape = shape_op(first)
    for x in (first, second):
        if x.shape.rank is not None and any(d is not None and d < size for d in x.shape.dims[-3:-1]):
            raise InvalidArgumentError(
                op="ssim",
                what="an image is smaller than the filter",
                found={"image": x.spec.short(), "filter_size": size},
                do="filter_size=",
            )
    kernel = array.tile(_gaussian_kernel(size, sigma), dims_tensor([1, 1, shape[-1], 1]))

    def mean(x: Any) -> Tensor:
        sizes = shape_op(x)
        flat = array.reshape(x, array.concat([dispatch.to_tensor([-1]), sizes[-3:]], 0))
        y = depthwise_conv2d(flat, kernel, [1, 1, 1, 1], "VALID")
        return array.reshape(y, array.concat([sizes[:-3], shape_op(y)[1:]], 0))

    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    a, b = mean(first), mean(second)
    product, squares = a * b * 2.0, math.square(a) + math.square(b)
    products, all_squares = mean(first * second) * 2.0, mean(math.square(first) + math.square(second))
    return (product + c1) / (squares + c1), (products - product + c2) / (all_squares - squares + c2)


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """Compute the structural similarity index of images [..., h, w, c] (Wang et al. 2004), [...], float32.

    .. math:: \\frac{(2 \\mu_a \\mu_b + c_1)(2 \\sigma_{ab} + c_2)}
              {(\\mu_a^2 + \\mu_b^2 + c_1)(\\sigma_a^2 + \\sigma_b^2 + c_2)}, \\quad c_i = (k_i\\, max\\_val)^2

    averaged over pixels and channels, with means and variances over a Gaussian window of filter_size pixels and
    filter_sigma. return_index_map: return the index of each pixel, [..., h', w'].
    raises InvalidArgumentError for images of different sizes, or smaller than the window
    """
    first, second, peak = _in_float32(*_pair(img1, img2, "ssim"), max_val)
    luminance, structure = _ssim_terms(first, second, peak, filter_size, filter_sigma, k1, k2)
    return math.reduce_mean(luminance * structure, axis=[-1] if return_index_map else [-3, -2, -1])


MSSSIM_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # Wang, Simoncelli and Bovik 2003, empirical


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = MSSSIM_WEIGHTS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Compute the multi-scale structural similarity index of images (Wang et al. 2003), float32.

    .. math:: l_M^{p_M} \\prod_{j=1}^{M} (c\\,s)_j^{p_j}

    l, c s: luminance and structure terms as in `ssim`, clipped at 0; p: power_factors, one per scale; each scale halves
    the size. raises InvalidArgumentError for images of different sizes, or smaller than the window at some scale
    """
    images = list(_in_float32(*_pair(img1, img2, "ssim_multiscale"), max_val))
    peak = images.pop()
    similar = []
    luminance: Any = None
    structure: Any = None
    for k in range(len(power_factors)):
        if k:
            images = [_downsample(x) for x in images]
        first, second = images
        luminance, structure = _ssim_terms(first, second, peak, filter_size, filter_sigma, k1, k2)
        similar.append(relu(math.reduce_mean(structure, axis=[-3, -2])))
    similar[-1] = relu(math.reduce_mean(luminance * structure, axis=[-3, -2]))
    powers = dispatch.to_tensor(np.array(power_factors, np.float32))
    return math.reduce_mean(math.reduce_prod(array.stack(similar, axis=-1) ** powers, axis=-1), axis=-1)


def _downsample(x: Any) -> Tensor:
    """Average two by two pixels; the last row or column of an odd number is repeated."""
    shape = shape_op(x)
    flat = array.reshape(x, array.concat([dispatch.to_tensor([-1]), shape[-3:]], 0))
    extra: list[Any] = [_parity(x, shape, i) for i in (-3, -2)]
    if not (is_known(*extra) and max(extra) == 0):
        ends = array.reshape(dims_tensor([0, 0, 0, extra[0], 0, extra[1], 0, 0]), [4, 2])
        flat = array.pad(flat, ends, mode="SYMMETRIC")
    small = avg_pool(flat, 2, 2, "VALID")
    return array.reshape(small, array.concat([shape[:-3], shape_op(small)[1:]], 0))


def _parity(x: Any, shape: Any, axis: int) -> int | Tensor:
    size = x.shape[axis] if x.shape.rank is not None else None
    return math.floormod(shape[axis], 2) if size is None else size % 2
