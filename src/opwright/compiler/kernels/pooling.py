"""Pooling: extremes and sums of windows, of images and along one axis; max pooling with argmax and its inverse.

Lives here: the selectors of Pool, MaxPlaces, PutInWindows and ReduceWindow, their families.
Not here: reductions over whole axes (reductions.py), updates at coordinates (scatter.py).

Vectors span channels, several in registers; loops over a window visit only pixels inside the image, so padding is never
read. Sums of bytes are int32; extremes of bytes remain bytes, 64 per vector.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, float32
from .. import language as kl
from ..language import f32, i32, i64, ptr, u8
from ..loops.expressions import parametrised
from ..loops.indexing_ops import MaxPlaces, PutInWindows
from ..loops.ops import Move, Pool, ReduceWindow
from ..loops.plans import word
from ..target import host
from . import NoKernel, selector
from .epilogue import epilogue_of, number
from .expression import check, evaluate
from .moves import select_move
from .reductions import neutral
from .tiling import ImageWords, TapWords, grain, image_words, tap_words, vector_lanes

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

VECTORS = 4  # accumulators in registers
DTYPES = (dtypes.float32, dtypes.int8, dtypes.uint8, dtypes.int16)


@kl.family
def pool(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    images: ImageWords,
    taps: TapWords,
    *more: i64,
    kind: str,
    dtype: Any,
    lanes: int,
    vectors: int,
    expr: Any,
    params: tuple[DType, ...],
    propagates_nan: bool,
) -> None:
    """Pool images. A work item is `vectors` vectors of channels of a row of outputs."""
    numbers = [number(v, d) for v, d in zip(more, params)]
    image, out = x.cast(dtype), y.cast(expr.dtype)
    accumulator = i32 if kind == "sum" and not dtype.is_floating else dtype
    span = lanes * vectors
    blocks = (images.channels + (span - 1)) // span
    for item in work.items():
        c = kl.minimum((item % blocks) * span, images.channels - span)
        row = item // blocks
        first_row = (row % images.out_height) * taps.step_down - taps.top
        rows = _inside(first_row, taps.high, taps.down, images.height)
        first_line = (row // images.out_height) * images.height + first_row
        line = image + (first_line * images.width * images.pitch + c)
        for ox in range(images.out_width):
            first_column = ox * taps.step_across - taps.left
            columns = _inside(first_column, taps.wide, taps.across, images.width)
            total = kl.registers(accumulator, lanes, vectors)
            for v in range(vectors):
                total[v] = kl.full(accumulator, lanes, 0 if kind == "sum" else neutral("max", dtype))
            for i in range(*rows):
                for j in range(*columns):
                    pixel = line + (i * taps.down * images.width + first_column + j * taps.across) * images.pitch
                    for v in range(vectors):
                        element = pixel.load(v * lanes, lanes)
                        if kind == "sum":
                            total[v] = total[v] + element.to(accumulator)
                        elif propagates_nan:
                            total[v] = combine("max", element, total[v])
                        else:
                            total[v] = kl.maximum(element, total[v])
            count = (kl.maximum(rows[1] - rows[0], 0) * kl.maximum(columns[1] - columns[0], 0)).to(f32)
            for v in range(vectors):
                y_vector = evaluate(expr, [total[v], count], numbers).splat(lanes)
                out.store(y_vector, (row * images.out_width + ox) * images.out_pitch + c + v * lanes)


def _inside(first: Value, size: Value, step: Value, extent: Value) -> tuple[Value, Value]:
    """Return the range of the taps i of a window for which first + i step is within an extent."""
    start = (kl.maximum(-first, 0) + (step - 1)) // step
    return start, kl.minimum(size, (extent - first + (step - 1)) // step)


@selector(Pool)
def select_pool(form: Pool, build: Builder) -> None:
    """Select for float32, bytes and int16."""
    x, out, window = form.input, form.output, form.window
    if x.dtype not in DTYPES:
        raise NoKernel(f"a pool of {x.dtype.name}")
    check(form.expr)
    n, out_height, out_width, channels = out.shape
    lanes = vector_lanes(channels, x.dtype.size if form.kind == "max" else 4)
    vectors = max(v for v in (1, 2, VECTORS) if v * lanes <= channels or v == 1)
    expr, scalars = parametrised(form.expr)
    code = pool.code(
        kind=form.kind,
        dtype=x.dtype,
        lanes=lanes,
        vectors=vectors,
        expr=expr,
        params=tuple(d for _, d in scalars),
        propagates_nan=form.propagates_nan and x.dtype.is_floating,
        more=len(scalars),
    )
    numbers = (word(value, d) for value, d in scalars)
    words = [build.pointer(x), build.pointer(out), *image_words(x, out), *tap_words(window), *numbers]
    items = n * out_height * -(-channels // (lanes * vectors))
    work = out_width * lanes * vectors * x.dtype.size * (window.size[0] * window.size[1] + 4)
    build.step(code, words, items, chunk=grain(work, items))


FLOAT_MIN = float(np.finfo(np.float32).min)


@kl.family
def max_places(
    work: Work,
    x: ptr[f32],
    y: ptr[f32],
    indices: ptr[f32],
    height: i64,
    width: i64,
    channels: i64,
    high: i64,
    wide: i64,
    kernel_h: i64,
    kernel_w: i64,
    step_h: i64,
    step_w: i64,
    top: i64,
    left: i64,
    added: f32,
    *more: i64,
    epilogue: Any,
) -> None:
    """Compute the maximum of each window and its index, offset by `added`. A work item is a row of windows."""
    lanes, finish = work.lanes(f32), epilogue.bind(more)
    for item in work.items():
        image = x + item // high * height * width * channels
        first = item % high * step_h - top
        for column in range(wide):
            start, out = column * step_w - left, (item * wide + column) * channels
            for c in range(0, channels, lanes):
                mask = kl.tail_mask(channels - c, lanes)
                best, index = kl.full(f32, lanes, FLOAT_MIN), kl.zeros(f32, lanes)
                for i in range(kl.maximum(0, -first), kl.minimum(kernel_h, height - first)):
                    for j in range(kl.maximum(0, -start), kl.minimum(kernel_w, width - start)):
                        v = (image + ((first + i) * width + start + j) * channels).load(c, lanes, mask)
                        better = v > best
                        best = kl.select(better, v, best)
                        index = kl.select(better, kl.splat((i * kernel_w + j).to(f32), lanes), index)
                y.store(finish(best, item * wide + column, c, lanes, mask), out + c, mask)
                indices.store(index + added, out + c, mask)


@selector(MaxPlaces)
def select_max_places(form: MaxPlaces, build: Builder) -> None:
    """Select for float32 images."""
    x, window = form.input, form.window
    (y, first), (indices, second) = form.results
    if any(b.dtype is not float32 for b in (x, y, indices)) or x.parent is not None or len(x.shape) != 4 or not x.size:
        raise NoKernel(f"windows of {x!r}")
    n, high, wide, channels = y.shape
    epilogue, more = epilogue_of(form.expr, (), y, build)
    out = build.pointer(form.output)
    words = [
        build.pointer(x),
        out.moved(first),
        out.moved(second),
        *x.shape[1:],
        high,
        wide,
        *window.size,
        *window.strides,
        window.padding[0],
        window.padding[2],
        form.more,
        *more,
    ]
    build.step(
        max_places.code(more=len(more), epilogue=epilogue),
        words,
        n * high,
        chunk=grain(4 * wide * channels * math.prod(window.size), n * high),
    )


@kl.family
def put_in_windows(
    work: Work,
    x: ptr[f32],
    indices: ptr[f32],
    y: ptr[f32],
    high: i64,
    wide: i64,
    channels: i64,
    height: i64,
    width: i64,
    kernel_w: i64,
    step_h: i64,
    step_w: i64,
    top: i64,
    left: i64,
) -> None:
    """Write elements at their indices within windows. A work item is an image, in the order of its elements."""
    for item in work.items():
        image = y + item * height * width * channels
        for p in range(high):
            for q in range(wide):
                offset = ((item * high + p) * wide + q) * channels
                for c in range(channels):
                    index = indices[offset + c]
                    tap = kl.to_int(kl.clamp(kl.select(index > -1.0, index, -1.0), -1.0, 1e9)).to(i64)
                    i, j = p * step_h - top + tap // kernel_w, q * step_w - left + tap % kernel_w
                    if (index > -1.0) & (i >= 0) & (i < height) & (j >= 0) & (j < width):
                        image[(i * width + j) * channels + c] = x[offset + c]


@selector(PutInWindows)
def select_put(form: PutInWindows, build: Builder) -> None:
    """Select for float32 images; fill the output with zeros first."""
    x, indices, y, window = form.input, form.places, form.output, form.window
    if any(b.dtype is not float32 or b.parent is not None or len(b.shape) != 4 for b in (x, indices, y)):
        raise NoKernel(f"elements {x!r} at {indices!r}")
    if x.shape != indices.shape or (x.shape[0], x.shape[3]) != (y.shape[0], y.shape[3]):
        raise NoKernel(f"elements {x!r} at {indices!r} to {y!r}")
    select_move(Move(y, (), (), 0.0), build)
    words = [
        build.pointer(x),
        build.pointer(indices),
        build.pointer(y),
        *x.shape[1:],
        *y.shape[1:3],
        window.size[1],
        *window.strides,
        window.padding[0],
        window.padding[2],
    ]
    build.step(put_in_windows.code(), words, x.shape[0], chunk=1)


def combine(kind: str, a: Value, b: Value) -> Value:
    """Combine two elements by a reduction with NaN propagation; reductions.combine_ignoring_nan has none."""
    if kind == "sum":
        return a + b
    if kind == "prod":
        return a * b
    first = a > b if kind == "max" else a < b
    return kl.select(first | (a != a) if a.dtype.is_floating else first, a, b)


@kl.family
def reduce_windows(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    start: ptr[u8],
    n: i64,
    m: i64,
    inner: i64,
    size: i64,
    stride: i64,
    dilation: i64,
    *,
    source: DType,
    kind: str,
    starts: bool,
    along: bool,
    apart: bool,
    lanes: int,
) -> None:
    """Reduce windows of arrays [outer, n, inner] to [outer, m, inner].

    A work item is a row of inner elements of the output or, if `along`, all windows of an array [n], in vectors; apart:
    the elements of these vectors are not adjacent.
    """
    x, y, start = (p.cast(source, source.size) for p in (x, y, start))
    first = kl.splat(start[0], lanes) if starts else None
    for item in work.items():
        count = m if along else inner
        source_row = x + (item * n if along else (item // m * n + item % m * stride) * inner)
        target = y + item * count
        step = dilation if along else dilation * inner
        for c in range(0, count, lanes):
            mask = kl.tail_mask(count - c, lanes)
            total = _load(source_row, c, stride, lanes, mask, apart)
            if first is not None:
                total = combine(kind, first, total)
            for k in range(1, size):
                total = combine(kind, total, _load(source_row + k * step, c, stride, lanes, mask, apart))
            target.store(total, c, mask)


def _load(row: Pointer, c: Any, stride: Value, lanes: int, mask: Value, apart: bool) -> Value:
    """Load a vector of adjacent elements, or of elements `stride` apart."""
    if not apart:
        return row.load(c, lanes, mask)
    return kl.gather(row, (kl.iota(i64, lanes) + c) * stride, mask)


@selector(ReduceWindow)
def select_reduce_window(form: ReduceWindow, build: Builder) -> None:
    """Select for dtypes with arithmetic. Vectors are no longer than the axis, as gathers load single elements."""
    x, y, axis = form.input, form.output, form.axis
    dtype = x.dtype
    if dtype.is_bool or dtype.is_complex or dtype.size > 8 or (dtype.is_floating and dtype.size < 4):
        raise NoKernel(f"windows of {x!r}")
    if dtype is not y.dtype or any(b.parent is not None for b in (x, y)) or len(x.shape) != len(y.shape):
        raise NoKernel(f"windows of {x!r} to {y!r}")
    last = (y.shape[axis] - 1) * form.stride + (form.size - 1) * form.dilation
    if x.shape[:axis] != y.shape[:axis] or x.shape[axis + 1 :] != y.shape[axis + 1 :] or last >= x.shape[axis]:
        raise NoKernel(f"windows of {x!r} to {y!r}")
    if min(form.size, form.stride, form.dilation) < 1:
        raise NoKernel(f"windows of {form.size}, {form.stride} apart")
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    m, along = y.shape[axis], inner == 1
    start: Any = build.pointer(form.start[0]) if form.start else 0
    words = [build.pointer(x), build.pointer(y), start, n, m, inner, form.size, form.stride, form.dilation]
    items = outer if along else outer * m
    lanes = min(host().lanes(dtype.size), 1 << max((m if along else inner) - 1, 1).bit_length())
    code = reduce_windows.code(
        source=dtype, kind=form.kind, starts=bool(form.start), along=along, apart=along and form.stride > 1, lanes=lanes
    )
    build.step(code, words, items, chunk=grain(form.size * (m if along else inner) * dtype.size, items))
