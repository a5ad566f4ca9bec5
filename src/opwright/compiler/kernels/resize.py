"""Images of another size: bilinear and nearest.

Lives here: the maker of Resize, its two families, where pixels of the result lie on the image.
Not here: the operators' own meaning (lite/ops), enlarging by zeros (moves.py).

Pixel i of n lies at position

    align_corners:       i (size - 1) / (n - 1)      (n > 1)
    half_pixel_centers:  (i + 1/2) size / n - 1/2
    neither:             i size / n

of an image of that size: in float32, for int8 in steps of 1/1024 as the file format's kernels have it. That is known
when a plan is made: a kernel reads the pixels on both sides of each position, and a weight, from tables.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from .. import language as kl
from ..language import f32, i32, i64, ptr, u8
from ..loops.expressions import Expr, parametrised
from ..loops.forms import Resize
from ..loops.plans import word
from . import Unmade, maker
from .depthwise_f32 import vector_lanes
from .epilogue import number
from .expression import check, evaluate
from .grains import grain

if TYPE_CHECKING:
    from ..language import Value
    from ..loops.planning import Builder

ONE = 1 << 10
"""A pixel, in the steps of int8's positions."""
BILINEAR = (dtypes.float32, dtypes.int8, dtypes.uint8)
UNITS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


@kl.family
def bilinear(work, x: ptr[u8], y: ptr[u8], rows: ptr[i32], columns: ptr[i32], height: i64, width: i64, in_pitch: i64,
             out_height: i64, out_width: i64, out_pitch: i64, channels: i64, *more: i64, dtype: Any, lanes: int,
             expr: Any, params: tuple):  # fmt: skip
    """An item: a row of the result. rows, columns: pixels before, pixels after, weights of the latter."""
    numbers = [number(v, d) for v, d in zip(more, params)]
    image, out = x.cast(dtype), y.cast(expr.dtype)
    fixed = dtype is dtypes.int8
    for item in work.items():
        n, row = item // out_height, item % out_height
        above, below = (image + (n * height + rows[row + k * out_height].to(dtypes.int64)) * width * in_pitch
                        for k in (0, 1))  # fmt: skip
        down = _weight(rows, row + 2 * out_height, fixed)
        for column in range(out_width):
            left, right = (columns[column + k * out_width].to(dtypes.int64) * in_pitch for k in (0, 1))
            across = _weight(columns, column + 2 * out_width, fixed)
            into = out + (item * out_width + column) * out_pitch
            for block in range(0, channels, lanes):
                c = kl.minimum(block, channels - lanes)
                four = [line.load(side + c, lanes) for line in (above, below) for side in (left, right)]
                mean = _fixed(four, across, down) if fixed else _floating(four, across, down, dtype)
                into.store(evaluate(expr, [mean], numbers).splat(lanes), c)


def _weight(table: Any, at: Value, fixed: bool) -> Value:
    found: Value = table[at]
    return found if fixed else kl.bitcast(found, dtypes.float32)


def _floating(four: list[Value], across: Value, down: Value, dtype: Any) -> Value:
    """The mean of four in float32; of uint8 cut off after adding a half."""
    a, b, c, d = (v.to(f32) for v in four)
    above, below = (p * (1.0 - across) + q * across for p, q in ((a, b), (c, d)))
    mean = above * (1.0 - down) + below * down
    return mean if dtype.is_floating else kl.trunc(mean + 0.5)


def _fixed(four: list[Value], across: Value, down: Value) -> Value:
    """The mean of four in steps of 2^-20, rounded, halves away from zero."""
    a, b, c, d = (v.to(i32) for v in four)
    above, below = (p * (ONE - across) + q * across for p, q in ((a, b), (c, d)))
    total = above * (ONE - down) + below * down
    size = (kl.abs(total) + (1 << 19)) >> 20
    return kl.select(total < 0, -size, size).to(f32)


@kl.family
def nearest(work, x: ptr[u8], y: ptr[u8], rows: ptr[i32], columns: ptr[i32], height: i64, width: i64, in_pitch: i64,
            out_height: i64, out_width: i64, out_pitch: i64, channels: i64, *more: i64, dtype: Any, lanes: int,
            expr: Any, params: tuple):  # fmt: skip
    """An item: a row of the result. rows, columns: the pixel of each. expr: None for elements as they are."""
    numbers = [number(v, d) for v, d in zip(more, params)]
    image, out = x.cast(dtype), y.cast(dtype if expr is None else expr.dtype)
    for item in work.items():
        line = image + (item // out_height * height + rows[item % out_height].to(dtypes.int64)) * width * in_pitch
        for column in range(out_width):
            pixel = line + columns[column].to(dtypes.int64) * in_pitch
            into = out + (item * out_width + column) * out_pitch
            for block in range(0, channels, lanes):
                c = kl.minimum(block, channels - lanes)
                element = pixel.load(c, lanes)
                into.store(element if expr is None else evaluate(expr, [element], numbers).splat(lanes), c)


def _scale(form: Resize, size: int, out: int) -> np.float32:
    """Pixels of the image that a pixel of the result steps over."""
    if form.align_corners and out > 1:
        return np.float32(size - 1) / np.float32(out - 1)
    return np.float32(size) / np.float32(out)


def _between(form: Resize, size: int, out: int) -> np.ndarray:
    """int32[3, out]: the pixels before and after each position, and the bits of the latter's weight, float32."""
    at, half = np.arange(out, dtype=np.float32), np.float32(0.5)
    scale = _scale(form, size, out)
    at = (at + half) * scale - half if form.half_pixel_centers else at * scale
    before = np.maximum(np.floor(at), 0).astype(np.int32)
    after = np.minimum(np.ceil(at), size - 1).astype(np.int32)
    return np.stack([np.minimum(before, size - 1), after, (at - before.astype(np.float32)).view(np.int32)])


def _between_steps(form: Resize, size: int, out: int) -> np.ndarray:
    """As _between in steps of 1/1024, the weights too; divisions cut off toward 0."""
    scale = (ONE * size + out // 2) // out
    if form.align_corners and out > 1:
        scale = (ONE * (size - 1) + (out - 1) // 2) // (out - 1)
    at = np.arange(out, dtype=np.int64) * scale
    if form.half_pixel_centers:
        at += scale // 2 - ONE // 2
    before = np.maximum(np.trunc(at / ONE), 0).astype(np.int64)
    after = np.maximum(np.minimum(np.trunc((at + ONE - 1) / ONE), size - 1), 0)
    return np.stack([np.minimum(before, size - 1), after.astype(np.int64), at - ONE * before]).astype(np.int32)


def _nearest(form: Resize, size: int, out: int) -> np.ndarray:
    """int32[1, out]: the pixel that each position falls on."""
    at = np.arange(out, dtype=np.float32)
    at = (at + np.float32(0.5) if form.half_pixel_centers else at) * _scale(form, size, out)
    pixel = np.floor(at + np.float32(0.5)) if form.align_corners else np.floor(at)
    return np.clip(pixel, 0, size - 1).astype(np.int32)[None]


def _fill(table: Callable[[Resize, int, int], np.ndarray], form: Resize, size: int, out: int, into: np.ndarray) -> None:
    into[...] = table(form, size, out)


@maker(Resize)
def make_resize(form: Resize, build: Builder) -> None:
    """Bilinear of float32 and bytes, nearest of all elements of 1, 2, 4 or 8 bytes."""
    x, out = form.input, form.output
    check(form.expr)
    n, out_height, out_width, channels = out.shape
    expr: Expr | None
    expr, scalars = parametrised(form.expr)
    dtype, table = x.dtype, _nearest
    if form.kind == "bilinear":
        if dtype not in BILINEAR:
            raise Unmade(f"a bilinear resize of {dtype.name}")
        family, table, size = bilinear, _between_steps if dtype is dtypes.int8 else _between, 4
    else:
        if form.expr.op == "arg":
            expr, dtype = None, UNITS.get(dtype.size, dtype)
        if dtype.size not in UNITS or dtype.is_bool:
            raise Unmade(f"a nearest resize of {dtype.name}")
        family, size = nearest, dtype.size
    tables = []
    for extent, count in ((x.shape[1], out_height), (x.shape[2], out_width)):
        key = ("resize", table.__name__, extent, count, form.align_corners, form.half_pixel_centers)
        shape = (1 if form.kind == "nearest" else 3, count)
        fill = functools.partial(_fill, table, form, extent, count)
        tables.append(build.packed(shape, np.int32, fill, key))
    code = family.code(dtype=dtype, lanes=vector_lanes(channels, size), expr=expr,
                       params=tuple(d for _, d in scalars), more=len(scalars))  # fmt: skip
    words = [build.pointer(x), build.pointer(out), *tables, x.shape[1], x.shape[2], x.pitch, out_height, out_width,
             out.pitch, channels, *(word(value, d) for value, d in scalars)]  # fmt: skip
    items = n * out_height
    build.step(code, words, items, chunk=grain(out_width * (40 + 4 * channels), items))
