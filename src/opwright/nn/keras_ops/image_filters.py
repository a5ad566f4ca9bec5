"""Images sampled at positions, filtered and compared: a part of `keras.ops.image`.

Lives here: `map_coordinates` and transformations by it, blurs, edges, structural similarity.
Not here: sizes and colors (image.py), the sampling of layers of augmentation (layers/image_layer.py).
"""

from __future__ import annotations

import functools
import itertools
import operator
from typing import TYPE_CHECKING, Any

from ...core.dtypes import as_dtype
from ...core.lazy_imports import later
from ...ops import array, dispatch, linalg, math
from ...ops import image as ops_image
from ...ops import nn as ops_nn
from .. import random
from ..layers.configurable_layer import data_format_name
from ..layers.image_layer import FILL_MODES, INTERPOLATIONS, projected, warp
from .arrays import moveaxis

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

ml_dtypes: Any = later("ml_dtypes", "")
COORDINATE_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def in_batches(images: Any, data_format: Any, function: Any) -> Tensor:
    """Apply a function of images [batch, height, width, channels] to one image or several, of either format.

    raises ValueError for other ranks
    """
    x, first = dispatch.to_tensor(images), data_format_name(data_format) == "channels_first"
    if x.shape.rank not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). Received input with "
            f"shape: images.shape={x.shape}"
        )
    single = x.shape.rank == 3
    x = moveaxis(x, -3, -1) if first else x
    y = function(array.expand_dims(x, 0) if single else x)
    y = array.squeeze(y, [0]) if single else y
    return moveaxis(y, -1, -3) if first else y


def _check_member(name: str, value: Any, members: tuple[str, ...]) -> None:
    if value not in members:
        raise ValueError(
            f"Invalid value for argument `{name}`. Expected of one {set(members)}. Received: {name}={value}"
        )


# ---- positions -----------------------------------------------------------------------------------------------------


def _placed(index: Any, size: int, fill_mode: str) -> Any:
    """Return indices within a side for those beyond its ends."""
    if fill_mode == "wrap":
        return math.floormod(index, size)
    if fill_mode == "mirror":  # ends are not repeated
        period = max(2 * (size - 1), 1)
        return math.abs(math.floormod(index + (size - 1), period) - (size - 1)) if size > 1 else index * 0
    if fill_mode == "reflect":  # ends are repeated
        inside = math.floormod(index, 2 * size)
        return math.minimum(inside, 2 * size - 1 - inside)
    return math.minimum(math.maximum(index, 0), size - 1)


def map_coordinates(
    inputs: Any, coordinates: Any, order: int, fill_mode: str = "constant", fill_value: Any = 0.0
) -> Tensor:
    """Return elements at positions, by linear interpolation (order 1) or the nearest one (order 0).

    coordinates: [rank of inputs, ...], a row of positions for each dimension. fill_mode: beyond the ends "constant"
    values, the "nearest" element, or the array again: "wrap", "mirror" without and "reflect" with its ends repeated.
    raises ValueError for other modes and ranks, NotImplementedError for higher orders
    """
    x, places = dispatch.to_tensor(inputs), dispatch.to_tensor(coordinates)
    if places.shape.rank is None or places.shape.rank < 2:
        raise ValueError(
            f"Invalid coordinates rank: expected at least rank 2. Received input with shape: {places.shape}"
        )
    if places.shape[0] != x.shape.rank:
        raise ValueError(
            "First dim of `coordinates` must be the same as the rank of `inputs`. Received inputs with shape: "
            f"{x.shape} and coordinate leading dim of {places.shape[0]}"
        )
    _check_member("fill_mode", fill_mode, COORDINATE_MODES)
    if order not in (0, 1):
        raise NotImplementedError("map_coordinates currently requires order<=1")
    dtype = places.dtype if places.dtype.is_floating else as_dtype("float32")
    sides = []
    for axis, place in enumerate(array.unstack(array.cast(places, dtype))):
        size = x.shape[axis]
        if size is None:
            raise ValueError(f"map_coordinates needs known sizes. Received inputs with shape: {x.shape}")
        if order == 0:
            parts: list[tuple[Any, Any]] = [(math.round(place), None)]
        else:
            low = math.floor(place)
            parts = [(low, 1.0 - (place - low)), (low + 1.0, place - low)]
        ends = []
        for index, weight in parts:
            whole = array.cast(index, "int32")
            ends.append((_placed(whole, size, fill_mode), (whole >= 0) & (whole < size), weight))
        sides.append(ends)
    terms = []
    for corner in itertools.product(*sides):
        value = array.cast(array.gather_nd(x, array.stack([index for index, _, _ in corner], axis=-1)), dtype)
        if fill_mode == "constant":
            inside = functools.reduce(math.logical_and, [within for _, within, _ in corner])
            value = array.where(inside, value, array.cast(fill_value, dtype))
        weights = [weight for _, _, weight in corner if weight is not None]
        terms.append(functools.reduce(operator.mul, weights) * value if weights else value)
    result = functools.reduce(operator.add, terms)
    return array.cast(math.round(result) if x.dtype.is_integer else result, x.dtype)


def affine_transform(
    images: Any,
    transform: Any,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: Any = 0,
    data_format: Any = None,
) -> Tensor:
    """Return images whose pixel at (x, y) is that of the input at (a0 x + a1 y + a2, b0 x + b1 y + b2).

    transform: (a0, a1, a2, b0, b1, b2, 0, 0), one for all or one for each image. fill_mode: "constant", "nearest",
    "wrap", "mirror" or "reflect"
    raises ValueError for other modes, interpolations and ranks
    """
    _check_member("interpolation", interpolation, INTERPOLATIONS)
    _check_member("fill_mode", fill_mode, (*FILL_MODES, "mirror"))
    matrix = dispatch.to_tensor(transform)
    if matrix.shape.rank not in (1, 2):
        raise ValueError(
            "Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of transforms). Received "
            f"input with shape: transform.shape={matrix.shape}"
        )
    if fill_mode == "mirror":  # which the sampling of layers lacks
        return in_batches(images, data_format, lambda x: _mirrored(x, matrix, int(interpolation == "bilinear")))
    return in_batches(
        images, data_format, lambda x: array.cast(warp(x, matrix, interpolation, fill_mode, fill_value), x.dtype)
    )


def _mirrored(x: Tensor, matrix: Tensor, order: int) -> Tensor:
    """Return images [batch, height, width, channels] at transformed positions, mirrored beyond their ends."""
    shape = array.shape(x)
    number, height, width, channels = (array.cast(array.range(size), "float32") for size in array.unstack(shape, 4))
    a = array.reshape(array.cast(matrix, "float32"), [-1, 8, 1, 1, 1])
    across, down = array.reshape(width, [1, 1, -1, 1]), array.reshape(height, [1, -1, 1, 1])
    columns, rows = projected(a, across, down)
    places = (array.reshape(number, [-1, 1, 1, 1]), rows, columns, channels)
    return map_coordinates(x, array.stack([array.broadcast_to(p, shape) for p in places]), order, "mirror")


def perspective_transform(
    images: Any,
    start_points: Any,
    end_points: Any,
    interpolation: str = "bilinear",
    fill_value: Any = 0,
    data_format: Any = None,
) -> Tensor:
    """Return images in which four points (x, y) moved from start_points to end_points, [4, 2] or [batch, 4, 2].

    raises ValueError for other shapes and interpolations
    """
    _check_member("interpolation", interpolation, INTERPOLATIONS)
    start, end = (array.cast(dispatch.to_tensor(p), "float32") for p in (start_points, end_points))
    for name, points in (("start_points", start), ("end_points", end)):
        if points.shape.rank not in (2, 3) or points.shape[-2:] != (4, 2):
            raise ValueError(
                f"Invalid {name} shape: expected (4,2) for a single image or (N,4,2) for a batch. Received shape: "
                f"{points.shape}"
            )
    if start.shape != end.shape:
        raise ValueError(f"start_points and end_points differ in shape: {start.shape} and {end.shape}")
    matrix = homography(start, end)
    return in_batches(
        images, data_format, lambda x: array.cast(warp(x, matrix, interpolation, "constant", fill_value), x.dtype)
    )


def homography(start_points: Any, end_points: Any) -> Tensor:
    """Return the projective transformations that map four points, end_points [batch, 4, 2], to start_points.

    returns the coefficients of `warp`, [batch, 8]
    """
    start, end = (
        array.reshape(array.cast(dispatch.to_tensor(p), "float32"), [-1, 4, 2]) for p in (start_points, end_points)
    )
    ones, zeros = array.ones_like(end[..., :1]), array.zeros_like(end)
    plane = array.concat([end, ones], -1)  # [batch, 4, 3]
    rows = [
        array.concat([plane, zeros, zeros[..., :1], -start[..., :1] * end], -1),
        array.concat([zeros, zeros[..., :1], plane, -start[..., 1:] * end], -1),
    ]
    targets = array.concat([start[..., 0], start[..., 1]], -1)
    solution = linalg.solve(array.concat(rows, 1), array.expand_dims(targets, -1))
    return array.reshape(solution, [-1, 8])


def elastic_transform(
    images: Any,
    alpha: Any = 20.0,
    sigma: Any = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: Any = 0.0,
    seed: Any = None,
    data_format: Any = None,
) -> Tensor:
    """Return images whose pixels are moved at random, by alpha times noise that is smooth over sigma pixels.

    raises ValueError for other modes, interpolations and ranks
    """
    _check_member("interpolation", interpolation, INTERPOLATIONS)
    _check_member("fill_mode", fill_mode, FILL_MODES)
    size = int(6 * sigma) | 1

    def move(x: Any) -> Any:
        batch, height, width, channels = x.shape.as_list()
        batch = 1 if batch is None else batch
        noise = [random.normal((batch, height, width, 1), 0.0, sigma, "float32", seed) for _ in range(2)]
        rows, columns = (
            array.squeeze(gaussian_blur(n, (size, size), (sigma, sigma), "channels_last"), [-1]) * float(alpha)
            for n in noise
        )
        y, x0 = array.meshgrid(array.range(height), array.range(width), indexing="ij")
        planes = [array.cast(v, "float32") for v in (y, x0)]
        pictures = []
        for i in range(batch):
            place = array.stack([planes[0] + rows[i], planes[1] + columns[i]])
            parts = [
                map_coordinates(x[i, ..., c], place, INTERPOLATIONS.index(interpolation), fill_mode, fill_value)
                for c in range(channels)
            ]
            pictures.append(array.stack(parts, axis=-1))
        return array.stack(pictures)

    return in_batches(images, data_format, move)


def _kernel_weights(distance: Any, method: str) -> Any:
    """Return the weights of pixels at distances, by a method of `scale_and_translate`."""
    x = math.abs(distance)
    if method in ("linear", "bilinear", "trilinear", "triangle"):
        return math.maximum(1.0 - x, 0.0)
    if method in ("cubic", "bicubic", "tricubic"):
        near = ((1.5 * x - 2.5) * x) * x + 1.0
        far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
        return array.where(x >= 2.0, array.zeros_like(x), array.where(x >= 1.0, far, near))
    radius = {"lanczos3": 3.0, "lanczos5": 5.0}[method]
    angle = x * 3.141592653589793
    waves = radius * math.sin(angle) * math.sin(angle / radius)
    weights = array.where(x > 1e-3, waves / array.where(x > 1e-3, angle * angle, 1.0 + 0.0 * x), 1.0 + 0.0 * x)
    return array.where(x > radius, array.zeros_like(x), weights)


METHODS = ("linear", "bilinear", "trilinear", "triangle", "cubic", "bicubic", "tricubic", "lanczos3", "lanczos5")


def scale_and_translate(
    images: Any, output_shape: Any, scale: Any, translation: Any, spatial_dims: Any, method: str, antialias: bool = True
) -> Tensor:
    """Return images resampled along spatial_dims: the position p of the input goes to p scale + translation.

    method: "linear", "bilinear", "trilinear", "cubic", "bicubic", "tricubic", "lanczos3" or "lanczos5". antialias:
    whether smaller results are averages. raises ValueError for another method
    """
    if method not in METHODS:
        raise ValueError(f"Invalid value for argument `method`. Expected of one {set(METHODS)}. Received: {method=}")
    x = dispatch.to_tensor(images)
    dtype = x.dtype if x.dtype.is_floating else as_dtype("float32")
    y = array.cast(x, dtype)
    scales, shifts = (array.cast(dispatch.to_tensor(v), dtype) for v in (scale, translation))
    for i, axis in enumerate(spatial_dims):
        size, axis = x.shape[axis], axis % x.shape.rank
        step = 1.0 / scales[i]
        width = math.maximum(step, array.ones_like(step)) if antialias else array.ones_like(step)
        centers = array.range(int(output_shape[axis]))
        place = (array.cast(centers, dtype) + 0.5) * step - shifts[i] * step - 0.5
        distance = (array.expand_dims(place, 0) - array.expand_dims(array.cast(array.range(size), dtype), 1)) / width
        weights = _kernel_weights(distance, method)
        total = math.reduce_sum(weights, axis=0, keepdims=True)
        small = 1000.0 * float(ml_dtypes.finfo(dtype.np).eps)
        weights = array.where(math.abs(total) > small, math.divide_no_nan(weights, total), array.zeros_like(weights))
        inside = (place >= -0.5) & (place <= size - 0.5)
        weights = array.where(inside, weights, array.zeros_like(weights))
        y = moveaxis(linalg.tensordot(y, weights, [[axis], [0]]), -1, axis)
    return array.cast(math.round(y) if x.dtype.is_integer else y, x.dtype)


# ---- filters -------------------------------------------------------------------------------------------------------


def _bell(size: int, sigma: Any, dtype: Any) -> Any:
    """Return the weights of a normal distribution, which sum to one."""
    x = array.cast(array.range(int(size)), dtype) - (int(size) - 1) / 2.0
    weights = math.exp(-0.5 * math.square(x / array.cast(sigma, dtype)))
    return weights / math.reduce_sum(weights)


def _filtered(x: Any, kernel: Any, padding: str) -> Any:
    """Return images of which each channel is filtered by a kernel [height, width]."""
    sizes = array.tile(array.reshape(kernel, [*kernel.shape.as_list(), 1, 1]), [1, 1, x.shape[-1], 1])
    return ops_nn.depthwise_conv2d(x, sizes, [1, 1, 1, 1], padding)


def gaussian_blur(images: Any, kernel_size: Any = (3, 3), sigma: Any = (1.0, 1.0), data_format: Any = None) -> Tensor:
    """Blur images by a bell, with zeros beyond the edges.

    kernel_size, sigma: sizes and deviations along width and height, in this order. raises ValueError for other ranks
    """

    def blur(x: Any) -> Any:
        columns, rows = (_bell(size, s, x.dtype) for size, s in zip(kernel_size, sigma))
        return _filtered(x, array.expand_dims(rows, 1) * array.expand_dims(columns, 0), "SAME")

    return in_batches(images, data_format, blur)


def sobel_edges(images: Any, data_format: Any = None) -> Tensor:
    """Return differences along height and width by Sobel's kernels, as a last dimension of 2."""
    x, first = dispatch.to_tensor(images), data_format_name(data_format) == "channels_first"
    edges = ops_image.sobel_edges(moveaxis(x, -3, -1) if first else x)
    return moveaxis(edges, -2, -4) if first else edges


def ssim(
    image1: Any,
    image2: Any,
    max_val: float = 1.0,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_format: Any = None,
) -> Tensor:
    """Return the structural similarity of images, averaged over windows and channels (Wang et al., 2004).

    raises ValueError for other ranks than 3 and 4
    """
    pair = [dispatch.to_tensor(x) for x in (image1, image2)]
    for i, x in enumerate(pair, 1):
        if x.shape.rank not in (3, 4):
            raise ValueError(
                f"Invalid image{i} rank: expected rank 3 (single image) or rank 4 (batch of images). Received input "
                f"with shape: image{i}.shape={x.shape}"
            )
    dtype = pair[0].dtype
    compute = dtype if dtype.is_floating else as_dtype("float32")
    first, single = data_format_name(data_format) == "channels_first", pair[0].shape.rank == 3
    a, b = (array.cast(moveaxis(x, -3, -1) if first else x, compute) for x in pair)
    if single:
        a, b = array.expand_dims(a, 0), array.expand_dims(b, 0)
    bell = _bell(filter_size, filter_sigma, compute)
    kernel = array.expand_dims(bell, 1) * array.expand_dims(bell, 0)
    mean_a, mean_b, squares_a, squares_b, products = (
        _filtered(x, kernel, "VALID") for x in (a, b, a * a, b * b, a * b)
    )
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    covariance = products - mean_a * mean_b
    variances = squares_a - mean_a * mean_a + squares_b - mean_b * mean_b
    similarity = (2.0 * mean_a * mean_b + c1) * (2.0 * covariance + c2)
    similarity = similarity / ((mean_a * mean_a + mean_b * mean_b + c1) * (variances + c2))
    result = math.reduce_mean(similarity, axis=[1, 2, 3])
    return array.cast(array.squeeze(result, [0]) if single else result, dtype)


def extract_patches_3d(
    volumes: Any,
    size: Any,
    strides: Any = None,
    dilation_rate: Any = 1,
    padding: str = "valid",
    data_format: Any = None,
) -> Tensor:
    """Return patches of volumes [batch, depth, height, width, channels], elements of each in one dimension.

    strides: by default the size. raises TypeError for another size than an integer or three
    """
    window = (size,) * 3 if isinstance(size, int) else tuple(size)
    if len(window) != 3:
        raise TypeError(f"Invalid `size` argument. Expected an int or a tuple of length 3. Received: size={size}")
    steps = window if strides is None else (strides,) * 3 if isinstance(strides, int) else tuple(strides)
    if len(steps) != 3:
        raise ValueError(f"Invalid `strides` argument. Got: {strides}")
    rates = (dilation_rate,) * 3 if isinstance(dilation_rate, int) else tuple(dilation_rate)
    x, first = dispatch.to_tensor(volumes), data_format_name(data_format) == "channels_first"
    single = x.shape.rank == 4
    x = moveaxis(x, -4, -1) if first else x
    x = array.expand_dims(x, 0) if single else x
    count = window[0] * window[1] * window[2] * x.shape[-1]
    kernel = array.reshape(linalg.eye(count, dtype=x.dtype), [*window, x.shape[-1], count])
    y = ops_nn.convolution(x, kernel, list(steps), padding.upper(), dilations=list(rates))
    y = array.squeeze(y, [0]) if single else y
    return moveaxis(y, -1, -4) if first else y
