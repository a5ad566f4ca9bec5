"""Resizing of images, and sampling of them at positions.

Lives here: rules of ATen's upsampling and grid_sampler. Not here: pools (pooling.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.dtypes import float64, int32, int64
from ....ops import array, math, registry
from ....ops.image.resize_weights import keys_far, keys_near
from .pooling import along
from .table import AtenCall, aten, dim_size, is_dynamic, rank_of, sizes, tensor, to_nchw, to_nhwc, vector

# ---- resizing ---------------------------------------------------------------------------------------------------


def _target(x: Any, n: int, output_size: Any, scales: Any) -> list[Any]:
    if output_size is not None:
        return list(output_size)
    return [_times(dim_size(x, axis), s) for axis, s in enumerate(scales, 2)]


def _times(size: Any, factor: float) -> Any:
    """Return a size times a factor, rounded down."""
    if isinstance(size, int):
        return int(size * factor)
    if float(factor).is_integer():
        return size * tensor(int(factor), int64)
    return array.cast(array.cast(size, float64) * tensor(factor, float64), int64)


def _upsample(name: str, n: int, weights: Callable[..., np.ndarray]) -> None:
    corners = name in ("linear", "bilinear", "trilinear", "bicubic")

    def rule(op: AtenCall, x: Any, output_size: Any = None, *rest: Any, **options: Any) -> Any:
        x = tensor(x)
        more = list(rest)
        align = bool(more.pop(0) if more else options.get("align_corners", False)) if corners else False
        if len(more) == 1 and (more[0] is None or isinstance(more[0], (list, tuple))):
            more = list(more[0] or ())
        factors = more or None
        if factors is None:
            factors = options.get("scale_factors") or [
                options[k] for k in ("scales_d", "scales_h", "scales_w", "scales") if options.get(k) is not None
            ]
        target = _target(x, n, output_size, factors)
        before = sizes(x)[2:]
        exact = [
            (f if f and not is_dynamic([t]) and b is not None and int(b * f) == t and f * b != t else None)
            for f, b, t in zip(factors or [None] * n, before, target)
        ]
        if n == 2 and name in ("bilinear", "nearest", "nearest_exact") and not any(exact):
            return _native(x, name, target, align)
        if None in before or is_dynamic(target):
            raise ValueError(f"upsample_{name}{n}d of an unknown size")
        for axis, (size, count, factor) in enumerate(zip(before, target, exact), 2):
            if size != count or factor:
                x = along(x, weights(size, count, align, factor), axis)
        return x

    aten(f"upsample_{name}{n}d" if name != "nearest_exact" else f"_upsample_nearest_exact{n}d")(rule)


def _native(x: Any, name: str, target: list[Any], align: bool) -> Any:
    operator = registry.get("ResizeBilinear" if name == "bilinear" else "ResizeNearestNeighbor")
    size = vector(target) if is_dynamic(target) else tensor(np.array(target, np.int32))
    half = not align if name == "bilinear" else name == "nearest_exact"
    y = operator(to_nhwc(x), size, align_corners=align, half_pixel_centers=half)
    return to_nchw(array.cast(y, x.dtype))


def _sources(size: int, count: int, align: bool, factor: float | None) -> np.ndarray:
    if align:
        return np.arange(count) * ((size - 1) / (count - 1) if count > 1 else 0.0)
    scale = 1.0 / factor if factor else size / count
    return (np.arange(count) + 0.5) * scale - 0.5


def linear_weights(size: int, count: int, align: bool, factor: float | None = None) -> np.ndarray:
    """Return the matrix [count, size] of linear interpolation."""
    places = np.maximum(_sources(size, count, align, factor), 0.0)
    low = np.minimum(places.astype(int), size - 1)
    high = np.minimum(low + 1, size - 1)
    weights = np.zeros((count, size))
    rows = np.arange(count)
    np.add.at(weights, (rows, low), 1.0 - (places - low))
    np.add.at(weights, (rows, high), places - low)
    return weights


def cubic_weights(size: int, count: int, align: bool, factor: float | None = None) -> np.ndarray:
    """Return the matrix [count, size] of cubic convolution with a = -0.75 (Keys 1981), as PyTorch has it."""
    a = -0.75
    places = _sources(size, count, align, factor)
    base = np.floor(places).astype(int)
    t = places - base
    weights = np.zeros((count, size))
    rows = np.arange(count)
    for offset in (-1, 0, 1, 2):
        x = np.abs(t - offset)
        weight = np.where(x <= 1, keys_near(x, a), keys_far(x, a))
        np.add.at(weights, (rows, np.clip(base + offset, 0, size - 1)), weight)
    return weights


def nearest_weights(size: int, count: int, align: bool, factor: float | None = None) -> np.ndarray:
    """Return the matrix [count, size] that chooses the element at floor(i * size / count)."""
    scale = np.float32(1.0 / factor if factor else size / count)
    places = np.minimum(np.floor(np.arange(count, dtype=np.float32) * scale).astype(int), size - 1)
    matrix: np.ndarray = np.eye(size)[places]
    return matrix


def exact_weights(size: int, count: int, align: bool, factor: float | None = None) -> np.ndarray:
    """Return the matrix [count, size] that chooses the element whose centre is nearest."""
    scale = 1.0 / factor if factor else size / count
    places = np.minimum(np.floor((np.arange(count) + 0.5) * scale).astype(int), size - 1)
    matrix: np.ndarray = np.eye(size)[places]
    return matrix


for _name, _n, _weights in (
    ("linear", 1, linear_weights),
    ("bilinear", 2, linear_weights),
    ("trilinear", 3, linear_weights),
    ("bicubic", 2, cubic_weights),
    *((name, n, w) for n in (1, 2, 3) for name, w in (("nearest", nearest_weights), ("nearest_exact", exact_weights))),
):
    _upsample(_name, _n, _weights)


# ---- antialiased resizing ---------------------------------------------------------------------------------------


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(1.0 - np.abs(x), 0.0))


def _cubic(x: np.ndarray) -> np.ndarray:
    """Return Keys' kernel with a = -0.5, that of antialiased resizing."""
    a, x = -0.5, np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.asarray(np.where(x < 1, near, np.where(x < 2, far, 0.0)))


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0.0))


FILTERS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], int]] = {
    "bilinear": (_triangle, 1),
    "bicubic": (_cubic, 2),
    "lanczos": (_lanczos, 3),
}


def antialiased_weights(name: str, size: int, count: int, align: bool, factor: float | None) -> np.ndarray:
    """Return the matrix [count, size] of a filter that is as wide as a new element, normalised."""
    kernel, radius = FILTERS[name]
    scale = (
        (size - 1) / (count - 1) if align and count > 1 else 0.0 if align else 1.0 / factor if factor else size / count
    )
    wide = max(scale, 1.0)
    centres = scale * (np.arange(count) + 0.5)
    first = np.maximum((centres - radius * wide + 0.5).astype(int), 0)
    last = np.minimum((centres + radius * wide + 0.5).astype(int), size)
    places = np.arange(size)
    weights = kernel((places[None] - centres[:, None] + 0.5) / wide)
    weights = np.where((places >= first[:, None]) & (places < last[:, None]), weights, 0.0)
    return np.asarray(weights / weights.sum(1, keepdims=True))


def _antialiased(name: str) -> None:
    def rule(op: AtenCall, x: Any, output_size: Any, align: bool = False, *factors: Any) -> Any:
        x = tensor(x)
        if len(factors) == 1:
            factors = tuple(factors[0] or ())
        before = sizes(x)[2:]
        target = _target(x, 2, output_size, factors)
        if None in before or is_dynamic(target):
            raise ValueError(f"_upsample_{name}2d_aa of an unknown size")
        for axis, (size, count, factor) in enumerate(zip(before, target, factors or (None, None)), 2):
            if size != count or factor not in (None, 1.0):
                x = along(x, antialiased_weights(name, size, count, align, factor), axis)  # type: ignore[arg-type]
        return x

    aten(f"_upsample_{name}2d_aa")(rule)


for _name in FILTERS:
    _antialiased(_name)


# ---- samples at positions ---------------------------------------------------------------------------------------


def _place(position: Any, size: int, mode: int, padding: int, corners: bool) -> Any:
    """Return where a coordinate in [-1, 1] lies among the elements of a dimension: outside, by the padding."""
    dtype = position.dtype
    one, half = tensor(1, dtype), tensor(0.5, dtype)
    if corners:
        at = (position + one) * tensor((size - 1) / 2, dtype)
    else:
        at = (position + one) * tensor(size / 2, dtype) - half
    return at if mode == 2 else _bounded(at, size, padding, corners)


def _bounded(at: Any, size: int, padding: int, corners: bool) -> Any:
    """Return a place among the elements of a dimension, by the padding."""
    dtype = at.dtype
    if padding == 2:  # reflection at the first and last element, or at their outer edges
        low, span = (0.0, float(size - 1)) if corners else (-0.5, float(size))
        if not span:
            return array.zeros_like(at)
        away = math.abs(at - tensor(low, dtype))
        extra = math.truncatemod(away, tensor(span, dtype))
        even = math.equal(math.floormod(math.floor(away / tensor(span, dtype)), tensor(2, dtype)), tensor(0, dtype))
        at = array.where(even, extra + tensor(low, dtype), tensor(span + low, dtype) - extra)
    if padding:
        at = math.minimum(math.maximum(at, tensor(0, dtype)), tensor(float(size - 1), dtype))
    return at


def _cubic_parts(t: Any) -> list[Any]:
    """Return the weights of Keys' kernel with a = -0.75 for the elements around a position."""
    a, one = -0.75, tensor(1, t.dtype)

    def near(x: Any) -> Any:
        return ((tensor(a + 2, x.dtype) * x - tensor(a + 3, x.dtype)) * x) * x + one

    def far(x: Any) -> Any:
        return ((x - tensor(5, x.dtype)) * x + tensor(8, x.dtype)) * x * tensor(a, x.dtype) - tensor(4 * a, x.dtype)

    return [far(t + one), near(t), near(one - t), far(one + one - t)]


def _axis_samples(at: Any, size: int, mode: int, padding: int, corners: bool) -> list[tuple[Any, Any]]:
    """Return the places of elements along a dimension, and their weights; 0 outside."""
    dtype = at.dtype
    if mode == 2:
        low = math.floor(at)
        pairs = [
            (math.floor(_bounded(low + tensor(float(k), dtype), size, padding, corners) + tensor(0.5, dtype)), w)
            for k, w in zip((-1, 0, 1, 2), _cubic_parts(at - low))
        ]
    elif mode == 1:
        pairs = [(math.round(at), array.ones_like(at))]
    else:
        low = math.floor(at)
        pairs = [(low, tensor(1, dtype) - (at - low)), (low + tensor(1, dtype), at - low)]
    samples = []
    for place, weight in pairs:
        inside = math.logical_and(place >= tensor(0, dtype), place <= tensor(float(size - 1), dtype))
        kept = array.where(inside, place, array.zeros_like(place))
        samples.append((array.cast(kept, int32), array.where(inside, weight, array.zeros_like(weight))))
    return samples


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(op: AtenCall, x: Any, grid: Any, mode: int = 0, padding: int = 0, corners: bool = False) -> Any:
    """Return images or volumes [n, c, ...] at positions [n, ..., axes] in [-1, 1], the last axis first.

    mode: 0 linear, 1 nearest, 2 cubic. padding: 0 zeros, 1 the border, 2 reflection
    """
    x, grid = tensor(x), tensor(grid)
    n = rank_of(x) - 2
    dims = sizes(x)
    if None in dims[2:]:
        raise ValueError("grid_sampler of an unknown size")
    extents = [int(d or 0) for d in dims[2:]]
    flat = array.reshape(to_nhwc(x), [-1 if dims[0] is None else dims[0], int(np.prod(extents)), int(dims[1] or 0)])
    axes = [
        _axis_samples(_place(grid[..., n - 1 - i], size, mode, padding, corners), size, mode, padding, corners)
        for i, size in enumerate(extents)
    ]
    total: Any = None
    for choice in np.ndindex(*(len(a) for a in axes)):
        place: Any = None
        weight: Any = None
        for i, (k, size) in enumerate(zip(choice, extents)):
            at, own = axes[i][k]
            place = at if place is None else place * tensor(size, int32) + at
            weight = own if weight is None else weight * own
        part = array.gather(flat, place, axis=1, batch_dims=1) * array.expand_dims(weight, -1)
        total = part if total is None else total + part
    return to_nchw(total)
