"""Image warping: affine maps of points, images and crops, and bilinear sampling at computed positions.

Lives here: the selectors of AffinePoints, AffineImage, CropMatrix and PixelsAt, their families.
Not here: resizing (resize.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float32, int64
from .. import language as kl
from ..language import f32, f64, i64, ptr
from ..loops.domain_ops import AffineImage, AffinePoints, CropMatrix, PixelsAt
from . import NoKernel, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder


@kl.family
def affine_points(work: Work, x: ptr[f32], matrix: ptr[f32], y: ptr[f32], scale: f32, *, numbers: int) -> None:
    """Map points. A work item is a point of `numbers` coordinates."""
    for item in work.items():
        a, b = x[item * numbers], x[item * numbers + 1]
        for i in range(2):
            moved = a * matrix[4 * i] + b * matrix[4 * i + 1]
            y[item * numbers + i] = moved + matrix[4 * i + 3] * scale
        if numbers == 3:
            y[item * 3 + 2] = x[item * 3 + 2]


@selector(AffinePoints)
def select_points(form: AffinePoints, build: Builder) -> None:
    """Select for float32 points, one per work item: models have a few hundred."""
    x, y = form.input, form.output
    if any(b.parent is not None or b.dtype is not float32 for b in (x, y, form.matrix)) or form.matrix.size != 16:
        raise NoKernel(f"points {x!r}")
    if len(x.shape) != 2 or x.shape != y.shape or x.shape[1] not in (2, 3):
        raise NoKernel(f"points {x!r} to {y!r}")
    words = [build.pointer(x), build.pointer(form.matrix), build.pointer(y), form.scale]
    build.step(affine_points.code(numbers=x.shape[1]), words, x.shape[0], chunk=grain(64, x.shape[0]))


@kl.family
def affine_image(
    work: Work,
    x: ptr[f32],
    matrix: ptr[f32],
    y: ptr[f32],
    height: i64,
    width: i64,
    channels: i64,
    wide: i64,
    *,
    centred: bool,
) -> None:
    """Sample an image by an affine map. A work item is a line of the output."""
    lanes = work.lanes(f32)
    rows = [[matrix[4 * i + j] for j in (0, 1, 3)] for i in range(2)]
    if centred:
        rows = [[a, b, c + (a * 0.5 + b * 0.5 - 0.5)] for a, b, c in rows]
    (xx, xy, xt), (yx, yy, yt) = rows
    bottom_edge, right_edge = (height - 1).to(f32), (width - 1).to(f32)
    for item in work.items():
        line = item.to(f32)
        for column in kl.loop(wide):
            across = column.to(f32)
            sample_x, sample_y = xx * across + xy * line + xt, yx * across + yy * line + yt
            inside = (sample_x >= 0.0) & (sample_x <= right_edge) & (sample_y >= 0.0) & (sample_y <= bottom_edge)
            sample_x, sample_y = kl.select(inside, sample_x, 0.0), kl.select(inside, sample_y, 0.0)
            left, top = kl.floor(sample_x), kl.floor(sample_y)
            b, a = sample_x - left, sample_y - top
            j, i = left.to(i64), top.to(i64)
            out = y + (item * wide + column) * channels
            upper, right = x + (i * width + j) * channels, j + 1 < width
            below = i + 1 < height
            lower = upper + kl.select(below, width * channels, 0)
            next_pixel = kl.select(right, channels, 0)
            for c in range(0, channels, lanes):
                mask = kl.tail_mask(channels - c, lanes)
                first = _lerp_inside(upper, upper + next_pixel, inside, right & inside, b, c, lanes, mask)
                second = _lerp_inside(
                    lower, lower + next_pixel, below & inside, right & below & inside, b, c, lanes, mask
                )
                out.store(kl.select(inside.splat(lanes), a * second + (1.0 - a) * first, 0.0), c, mask)


def _lerp_inside(
    left: Pointer, right: Pointer, has_left: Value, has_right: Value, weight: Value, c: Any, lanes: int, mask: Value
) -> Value:
    """Interpolate between two pixels; pixels outside the image are 0."""
    first = kl.select(has_left.splat(lanes), left.load(c, lanes, mask), 0.0)
    second = kl.select(has_right.splat(lanes), right.load(c, lanes, mask), 0.0)
    return (1.0 - weight) * first + weight * second


@selector(AffineImage)
def select_image(form: AffineImage, build: Builder) -> None:
    """Select for single float32 images."""
    x, y = form.input, form.output
    if any(b.parent is not None or b.dtype is not float32 for b in (x, y, form.matrix)) or form.matrix.size != 16:
        raise NoKernel(f"an image {x!r} read by {form.matrix!r}")
    if (
        len(x.shape) != 4
        or len(y.shape) != 4
        or x.shape[0] != 1
        or y.shape[0] != 1
        or x.shape[3] != y.shape[3]
        or not x.size
    ):
        raise NoKernel(f"an image {x!r} to {y!r}")
    words = [build.pointer(x), build.pointer(form.matrix), build.pointer(y), *x.shape[1:], y.shape[2]]
    build.step(
        affine_image.code(centred=form.centred),
        words,
        y.shape[1],
        chunk=grain(20 * y.shape[2] * (x.shape[3] + 4), y.shape[1]),
    )


@kl.family
def crop_matrix(
    work: Work,
    x: ptr[f32],
    subset: ptr[i64],
    numbers: ptr[f64],
    y: ptr[f32],
    count: i64,
    left: i64,
    right: i64,
    *,
    half_turn: bool,
) -> None:
    """Compute the matrix of a rotated crop; one work item.

    numbers: cosine and sine of the rotation, then rows, columns, middles, halves, two each.
    """
    for _ in work.items():
        dx, dy = (x[3 * right + k].to(f64) - x[3 * left + k].to(f64) for k in range(2))
        length = kl.sqrt(dx * dx + dy * dy)
        cos, sin = dx / length, dy / length
        if half_turn:  # toward the right: opposite angles have the same tangent
            sign = kl.select(dx < 0.0, kl.full(f64, 0, -1.0), kl.full(f64, 0, 1.0))
            cos, sin = cos * sign, -(sin * sign)
        else:
            cos, sin = kl.select(length == 0.0, kl.full(f64, 0, 1.0), cos), kl.select(length == 0.0, kl.zeros(f64), sin)
            cos, sin = numbers[0] * cos + numbers[1] * sin, numbers[1] * cos - numbers[0] * sin
        infinity = kl.full(f64, 0, math.inf)
        low_x, high_x, low_y, high_y = infinity, -infinity, infinity, -infinity
        for k in range(count):
            p = 3 * subset[k]
            a, b = x[p].to(f64), x[p + 1].to(f64)
            u, v = cos * a - sin * b, sin * a + cos * b
            low_x, high_x = _min_of(u, low_x), -_min_of(-u, -high_x)
            low_y, high_y = _min_of(v, low_y), -_min_of(-v, -high_y)
        u, v = (low_x + high_x) * 0.5, (low_y + high_y) * 0.5
        size, middle = (high_x - low_x, high_y - low_y), (cos * u + sin * v, cos * v - sin * u)
        rotation = ((cos, sin), (-sin, cos))
        for i in range(4):
            for j in range(4):
                y[4 * i + j] = 1.0 if i == j else 0.0
        for i in range(2):
            shift = numbers[6 + i] * middle[i]
            for j in range(2):
                m = numbers[2 + i] * rotation[i][j] * size[j] * numbers[4 + j]
                shift = shift - m * numbers[8 + j]
                y[4 * i + j] = m.to(f32)
            y[4 * i + 3] = shift.to(f32)


def _min_of(a: Value, b: Value) -> Value:
    """Return the smaller operand; NaN if a is NaN."""
    return kl.select((a < b) | (a != a), a, b)


@selector(CropMatrix)
def select_crop(form: CropMatrix, build: Builder) -> None:
    """Select for float32 points; the kernel computes in float64."""
    x, y, subset = form.input, form.output, form.subset
    if any(b.parent is not None or b.dtype is not float32 for b in (x, y)) or subset.dtype is not int64 or y.size != 16:
        raise NoKernel(f"a crop of {x!r}")
    if len(x.shape) != 2 or x.shape[1] != 3 or not subset.size or subset.constant is None:
        raise NoKernel(f"a crop of {x!r}")
    if min(*form.ends, subset.constant.min()) < 0 or max(*form.ends, subset.constant.max()) >= x.shape[0]:
        raise NoKernel("indices of points out of range")
    numbers = [math.cos(form.turn), math.sin(form.turn), *form.rows, *form.columns, *form.middles, *form.halves]
    words = [
        build.pointer(x),
        build.pointer(subset),
        build.constant(np.array(numbers, np.float64)),
        build.pointer(y),
        subset.size,
        *form.ends,
    ]
    build.step(crop_matrix.code(half_turn=form.half_turn), words, 1)


@kl.family
def pixels_at(
    work: Work,
    x: ptr[f32],
    positions: ptr[f32],
    y: ptr[f32],
    height: i64,
    width: i64,
    channels: i64,
    high: i64,
    wide: i64,
    *,
    flow: bool,
) -> None:
    """Sample images bilinearly at positions. A work item is a line of the output, of `high` x `wide` pixels."""
    lanes = work.lanes(f32)
    for item in work.items():
        image = x + item // high * height * width * channels
        for column in kl.loop(wide):
            pixel = item * wide + column
            u, v = positions[2 * pixel], positions[2 * pixel + 1]
            out = y + pixel * channels
            if flow:
                _sample_clamped(
                    image, out, (item % high).to(f32) - u, column.to(f32) - v, height, width, channels, lanes
                )
            else:
                _sample_zero_padded(image, out, v, u, height, width, channels, lanes)


def _sample_clamped(
    image: Pointer, out: Pointer, row: Value, column: Value, height: Value, width: Value, channels: Value, lanes: int
) -> None:
    """Sample a pixel at a position that is clamped to the image."""
    (i, a), (j, b) = (_split_position(x, size) for x, size in ((row, height), (column, width)))
    upper = image + (i * width + j) * channels
    lower = upper + width * channels
    for c in range(0, channels, lanes):
        mask = kl.tail_mask(channels - c, lanes)
        first, second = (_lerp(p.load(c, lanes, mask), (p + channels).load(c, lanes, mask), b) for p in (upper, lower))
        out.store(_lerp(first, second, a), c, mask)


def _split_position(x: Value, size: Value) -> tuple[Value, Value]:
    """Return the pixel before a position, at most the last but one, and the fraction, within [0, 1]."""
    first = kl.floor(x)
    first = kl.clamp(kl.select(first == first, first, 0.0), 0.0, (size - 2).to(f32))
    fraction = x - first
    return first.to(i64), kl.select(fraction < 0.0, 0.0, kl.select(fraction > 1.0, 1.0, fraction))


def _lerp(a: Value, b: Value, weight: Value) -> Value:
    return (b - a) * weight + a


def _sample_zero_padded(
    image: Pointer, out: Pointer, row: Value, column: Value, height: Value, width: Value, channels: Value, lanes: int
) -> None:
    """Sample a pixel of an image with zeros outside."""
    inside = (column > -1.0) & (row > -1.0) & (column < width.to(f32)) & (row < height.to(f32))
    row, column = kl.select(inside, row, 0.0), kl.select(inside, column, 0.0)
    top, left = kl.floor(row), kl.floor(column)
    dy, dx = top + 1.0 - row, left + 1.0 - column
    i, j = top.to(i64), left.to(i64)
    corners = (
        (dx * dy, i, j),
        ((1.0 - dx) * (1.0 - dy), i + 1, j + 1),
        (dx * (1.0 - dy), i + 1, j),
        ((1.0 - dx) * dy, i, j + 1),
    )
    for c in range(0, channels, lanes):
        mask = kl.tail_mask(channels - c, lanes)
        total = kl.zeros(f32, lanes)
        for weight, p, q in corners:
            is_inside = inside & (p >= 0) & (q >= 0) & (p < height) & (q < width)
            pixel = image + kl.select(is_inside, p * width + q, 0) * channels
            total = total + kl.select(is_inside.splat(lanes), pixel.load(c, lanes, mask), 0.0) * weight
        out.store(kl.select(inside.splat(lanes), total, 0.0), c, mask)


@selector(PixelsAt)
def select_pixels(form: PixelsAt, build: Builder) -> None:
    """Select for float32 images."""
    x, positions, y = form.input, form.places, form.output
    if any(b.parent is not None or b.dtype is not float32 for b in (x, positions, y)) or not x.size:
        raise NoKernel(f"{x!r} read at {positions!r}")
    if (
        len(x.shape) != 4
        or len(y.shape) != 4
        or positions.shape != (*y.shape[:3], 2)
        or x.shape[0] != y.shape[0]
        or x.shape[3] != y.shape[3]
        or (form.flow and min(x.shape[1:3]) < 2)
    ):
        raise NoKernel(f"{x!r} read at {positions!r} to {y!r}")
    words = [build.pointer(x), build.pointer(positions), build.pointer(y), *x.shape[1:], *y.shape[1:3]]
    lines = y.shape[0] * y.shape[1]
    build.step(pixels_at.code(flow=form.flow), words, lines, chunk=grain(20 * y.shape[2] * (x.shape[3] + 4), lines))
