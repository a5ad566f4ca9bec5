"""Image resizing: bilinear and nearest neighbor, and their gradients.

Lives here: the selectors of Resize and ResizeGradient, their families.
Not here: the definitions of the operators (lite/ops), sampling positions (opwright/scalar), dilation by zeros
(moves.py).

Positions are constants of a plan: kernels read the indices of adjacent pixels, and their weights, from tables. Where
the result has more rows than the image, `bilinear_lines` interpolates each row of the image once along itself, and the
rows of the result between two of those, in whole vectors however few channels there are; the arithmetic is the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...scalar.fixed_point_layers import FixedMean, Sampling
from .. import language as kl
from ..language import f32, i32, i64, ptr, u8
from ..loops.domain_ops import Resize, ResizeGradient
from ..loops.expressions import Expr, parametrised
from ..loops.plans import word
from ..target import host
from . import NoKernel, selector
from .epilogue import number
from .expression import check, evaluate
from .tiling import ImageWords, grain, image_words, vector_lanes

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

MEAN = FixedMean(kl)
BILINEAR = (dtypes.float32, dtypes.int8, dtypes.uint8, dtypes.int16)
FIXED = {dtypes.int8: i32, dtypes.int16: i64}
"""Integers that are interpolated in fixed point, with the type of their sums: a pixel with 20 more bits."""
KEPT_BYTES = 1 << 16
"""Bytes of two interpolated rows up to which they are kept: they are read again from the first or second cache."""
UNITS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


@kl.family
def bilinear(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    rows: ptr[i32],
    columns: ptr[i32],
    images: ImageWords,
    *more: i64,
    dtype: Any,
    lanes: int,
    expr: Any,
    params: tuple[DType, ...],
    differences: bool,
) -> None:
    """Interpolate bilinearly. A work item is a row of the result.

    rows, columns: indices of the pixels before and after each position, weights of the latter. differences: see Resize.
    """
    numbers = [number(v, d) for v, d in zip(more, params)]
    image, out = x.cast(dtype), y.cast(expr.dtype)
    sums = FIXED.get(dtype)
    for item in work.items():
        n, row = item // images.out_height, item % images.out_height
        lines = (n * images.height + rows[row + k * images.out_height].to(dtypes.int64) for k in (0, 1))
        above, below = (image + line * images.width * images.pitch for line in lines)
        down = _weight(rows, row + 2 * images.out_height, sums)
        for column in range(images.out_width):
            left, right = (columns[column + k * images.out_width].to(dtypes.int64) * images.pitch for k in (0, 1))
            across = _weight(columns, column + 2 * images.out_width, sums)
            into = out + (item * images.out_width + column) * images.out_pitch
            for block in range(0, images.channels, lanes):
                c = kl.minimum(block, images.channels - lanes)
                four = [line.load(side + c, lanes) for line in (above, below) for side in (left, right)]
                if sums is not None:
                    mean = MEAN.of_four([v.to(sums) for v in four], across, down).to(i32).to(f32)
                else:
                    mean = _interpolate(four, across, down, dtype, differences)
                into.store(evaluate(expr, [mean], numbers).splat(lanes), c)


def _weight(table: Pointer, i: Value, sums: DType | None) -> Value:
    """Return a weight: an integer of the type of sums in fixed point, else float32."""
    weight = table[i]
    return kl.bitcast(weight, dtypes.float32) if sums is None else weight.to(sums)


def _interpolate(four: list[Value], across: Value, down: Value, dtype: DType, differences: bool) -> Value:
    """Return the weighted mean of four pixels in float32, rounded half up for integers."""
    a, b, c, d = (v.to(f32) for v in four)
    above, below = (_between(p, q, across, differences) for p, q in ((a, b), (c, d)))
    return _rounded(_between(above, below, down, differences), dtype)


def _between(p: Value, q: Value, weight: Value, differences: bool) -> Value:
    return p + (q - p) * weight if differences else p * (1.0 - weight) + q * weight


def _rounded(mean: Value, dtype: DType) -> Value:
    return mean if dtype.is_floating else kl.trunc(mean + 0.5)


@kl.family
def bilinear_lines(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    rows: ptr[i32],
    columns: ptr[i32],
    images: ImageWords,
    *more: i64,
    dtype: Any,
    lanes: int,
    expr: Any,
    params: tuple[DType, ...],
    differences: bool,
) -> None:
    """Interpolate bilinearly, each row of the image along itself first. A work item is a row of the result.

    rows, columns: as of `bilinear`. Rows of the result are dense. Scratch: two lines of a row of the result.
    """
    numbers = [number(v, d) for v, d in zip(more, params)]
    image, out = x.cast(dtype), y.cast(expr.dtype)
    sums = FIXED.get(dtype)
    size = images.out_width * images.channels
    vector = work.target.lanes(4 if sums is None else sums.size)
    line = work.scratch(f32 if sums is None else sums)
    held = kl.registers(i64, 0, 2)
    held[0], held[1] = kl.value(-1), kl.value(-1)
    for item in work.items():
        n, row = item // images.out_height, item % images.out_height
        wanted = [n * images.height + rows[row + k * images.out_height].to(i64) for k in (0, 1)]
        for k in (0, 1):  # a line lies where its number's parity says
            slot = wanted[k] % 2
            if kl.select(slot == 0, held[0], held[1]) != wanted[k]:
                source = image + wanted[k] * images.width * images.pitch
                _stretch(source, line + slot * (size + vector), columns, images, dtype, lanes, differences)
                held[0] = kl.select(slot == 0, wanted[k], held[0])
                held[1] = kl.select(slot == 0, held[1], wanted[k])
        above, below = (line + wanted[k] % 2 * (size + vector) for k in (0, 1))
        down = _weight(rows, row + 2 * images.out_height, sums)
        into = out + item * size
        for start in range(0, size, vector):
            c = kl.minimum(start, size - vector)
            pair = above.load(c, vector), below.load(c, vector)
            if sums is not None:
                mean = MEAN.of_lines(*pair, down).to(i32).to(f32)
            else:
                mean = _rounded(_between(*pair, down, differences), dtype)
            into.store(evaluate(expr, [mean], numbers).splat(vector), c)


def _stretch(
    source: Pointer, line: Pointer, columns: Pointer, images: Any, dtype: DType, lanes: int, differences: bool
) -> None:
    """Write a row of the image interpolated along itself."""
    sums = FIXED.get(dtype)
    for column in range(images.out_width):
        left, right = (columns[column + k * images.out_width].to(i64) * images.pitch for k in (0, 1))
        across = _weight(columns, column + 2 * images.out_width, sums)
        into = line + column * images.channels
        for block in range(0, images.channels, lanes):
            c = kl.minimum(block, images.channels - lanes)
            p, q = ((source + side).load(c, lanes).to(f32 if sums is None else sums) for side in (left, right))
            into.store(MEAN.between(p, q, across) if sums is not None else _between(p, q, across, differences), c)


@kl.family
def nearest(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    rows: ptr[i32],
    columns: ptr[i32],
    images: ImageWords,
    *more: i64,
    dtype: Any,
    lanes: int,
    expr: Any,
    params: tuple[DType, ...],
) -> None:
    """Resize to the nearest pixels. A work item is a row of the result.

    rows, columns: the pixel of each position. expr: None to copy elements.
    """
    numbers = [number(v, d) for v, d in zip(more, params)]
    image, out = x.cast(dtype), y.cast(dtype if expr is None else expr.dtype)
    for item in work.items():
        row = item // images.out_height * images.height + rows[item % images.out_height].to(dtypes.int64)
        line = image + row * images.width * images.pitch
        for column in range(images.out_width):
            pixel = line + columns[column].to(dtypes.int64) * images.pitch
            into = out + (item * images.out_width + column) * images.out_pitch
            for block in range(0, images.channels, lanes):
                c = kl.minimum(block, images.channels - lanes)
                element = pixel.load(c, lanes)
                into.store(element if expr is None else evaluate(expr, [element], numbers).splat(lanes), c)


def _bilinear_table(positions: Sampling) -> np.ndarray:
    """Return int32[3, out]: the pixels before and after each position, and the bits of the latter's float32 weight."""
    before, after, weight = positions.between()
    return np.stack([before.astype(np.int32), after.astype(np.int32), weight.view(np.int32)])


def _difference_table(positions: Sampling) -> np.ndarray:
    """Return `_bilinear_table` where the pixel after a position on a pixel is that pixel."""
    before, after, weight = _bilinear_table(positions)
    return np.stack([before, np.where(weight == 0, before, after), weight])


def _fixed_bilinear_table(positions: Sampling) -> np.ndarray:
    """Return int32[3, out]: as `_bilinear_table`, with fixed-point weights."""
    return np.stack(positions.between_steps()).astype(np.int32)


def _nearest_table(positions: Sampling) -> np.ndarray:
    """Return int32[1, out]: the nearest pixel of each position."""
    return positions.nearest().astype(np.int32)[None]


def _fill(table: Callable[[Sampling], np.ndarray], positions: Sampling, into: np.ndarray) -> None:
    into[...] = table(positions)


@selector(Resize)
def select_resize(form: Resize, build: Builder) -> None:
    """Select bilinear for float32, bytes and int16, nearest for elements of 1, 2, 4 or 8 bytes."""
    x, out = form.input, form.output
    check(form.expr)
    n, out_height, out_width, channels = out.shape
    expr: Expr | None
    expr, scalars = parametrised(form.expr)
    dtype, table, constants = x.dtype, _nearest_table, dict[str, bool]()
    if form.kind == "bilinear":
        if dtype not in BILINEAR:
            raise NoKernel(f"a bilinear resize of {dtype.name}")
        size = 8 if FIXED.get(dtype) is i64 else 4
        family, table = bilinear, _fixed_bilinear_table if dtype in FIXED else _bilinear_table
        constants["differences"] = form.differences
        if form.differences:
            table = _difference_table
    else:
        if form.expr.op == "arg":
            expr, dtype = None, UNITS.get(dtype.size, dtype)
        if dtype.size not in UNITS or dtype.is_bool:
            raise NoKernel(f"a nearest resize of {dtype.name}")
        family, size = nearest, dtype.size
    tables = []
    for extent, count in ((x.shape[1], out_height), (x.shape[2], out_width)):
        positions = Sampling(extent, count, form.align_corners, form.half_pixel_centers)
        key = ("resize", table.__name__, *positions)
        shape = (1 if form.kind == "nearest" else 3, count)
        fill = functools.partial(_fill, table, positions)
        tables.append(build.packed(shape, np.int32, fill, key))
    scratch = 0
    if family is bilinear and out_height > x.shape[1] and out.pitch == channels and FIXED.get(dtype) is not i64:
        line = 4 * (out_width * channels + host().lanes(4))
        if 1 < host().lanes(4) <= out_width * channels and 2 * line <= KEPT_BYTES:
            family, scratch = bilinear_lines, 2 * line
    code = family.code(
        dtype=dtype,
        lanes=vector_lanes(channels, size),
        expr=expr,
        params=tuple(d for _, d in scalars),
        more=len(scalars),
        **constants,
    )
    numbers = (word(value, d) for value, d in scalars)
    words = [build.pointer(x), build.pointer(out), *tables, *image_words(x, out), *numbers]
    items = n * out_height
    build.step(code, words, items, scratch, chunk=grain(out_width * (40 + 4 * channels), items))


@kl.family
def sum_readers(
    work: Work,
    dy: ptr[f32],
    dx: ptr[f32],
    rows: ptr[i32],
    row_weights: ptr[f32],
    columns: ptr[i32],
    column_weights: ptr[f32],
    images: ImageWords,
    most_rows: i64,
    most_columns: i64,
    *,
    lanes: int,
) -> None:
    """Sum the pixels that read each pixel. A work item is a row of the result.

    rows, columns: the first reader of each position, and their number; their weights, up to `most` of them each.
    """
    for item in work.items():
        n, row = item // images.out_height, item % images.out_height
        top = n * images.height + rows[row].to(dtypes.int64)
        for column in range(images.out_width):
            left = columns[column].to(dtypes.int64)
            into = dx + (item * images.out_width + column) * images.out_pitch
            for block in range(0, images.channels, lanes):
                c = kl.minimum(block, images.channels - lanes)
                total = kl.zeros(f32, lanes)
                for i in range(rows[images.out_height + row].to(dtypes.int64)):
                    line = dy + ((top + i) * images.width + left) * images.pitch
                    across = kl.zeros(f32, lanes)
                    for j in range(columns[images.out_width + column].to(dtypes.int64)):
                        weight = column_weights[column * most_columns + j].splat(lanes)
                        across = kl.fma(weight, (line + j * images.pitch).load(c, lanes), across)
                    total = kl.fma(row_weights[row * most_rows + i].splat(lanes), across, total)
                into.store(total, c)


def _readers(kind: str, positions: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """Return int32[2, size], the first position that reads each pixel and how many do; their weights, float32[size,
    most]."""
    if kind == "nearest":
        pixels, weights = positions.nearest()[None], np.ones((1, positions.out), np.float32)
    else:
        before, after, weight = positions.between()
        pixels, weights = np.stack([before, after]), np.stack([1 - weight, weight])
    dense = np.zeros((positions.size, positions.out), np.float32)
    np.add.at(dense, (pixels, np.arange(positions.out)), weights)
    reads = dense != 0
    first = np.argmax(reads, 1)
    count = np.where(reads.any(1), positions.out - np.argmax(reads[:, ::-1], 1) - first, 0)
    each = np.arange(max(1, count.max()))
    readers = np.take_along_axis(dense, (first[:, None] + each) % positions.out, 1)
    return np.stack([first, count]).astype(np.int32), np.where(each < count[:, None], readers, np.float32(0))


def _fill_readers(kind: str, part: int, positions: Sampling, into: np.ndarray) -> None:
    into[...] = _readers(kind, positions)[part]


@selector(ResizeGradient)
def select_resize_gradient(form: ResizeGradient, build: Builder) -> None:
    dy, dx = form.input, form.output
    if dy.dtype is not dtypes.float32 or dx.dtype is not dtypes.float32:
        raise NoKernel(f"the gradient of a resize of {dx!r}")
    n, height, width, channels = dx.shape
    tables, most = [], []
    for extent, count in ((height, dy.shape[1]), (width, dy.shape[2])):
        positions = Sampling(extent, count, form.align_corners, form.half_pixel_centers)
        for part, table in enumerate(_readers(form.kind, positions)):
            fill = functools.partial(_fill_readers, form.kind, part, positions)
            key = ("readers of pixels", form.kind, part, *positions)
            tables.append(build.packed(table.shape, table.dtype.type, fill, key))
        most.append(table.shape[1])
    code = sum_readers.code(lanes=vector_lanes(channels))
    words = [build.pointer(dy), build.pointer(dx), *tables, *image_words(dy, dx), *most]
    build.step(code, words, n * height, chunk=grain(width * (40 + 16 * channels), n * height))
