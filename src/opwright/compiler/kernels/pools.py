"""Pools: the largest element of a window, or the sum of those inside the image.

Lives here: the maker of Pool, its family.  Not here: reductions over whole axes (reductions.py).

Vectors lie along the channels, several of them in registers; the window is loops over the pixels inside the image, so
that padding is never read. Bytes are summed in int32; their largest is found as bytes, 64 at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import dtypes
from .. import language as kl
from ..language import f32, i32, i64, ptr, u8
from ..loops.expressions import parametrised
from ..loops.forms import Pool
from ..loops.plans import word
from . import Unmade, maker
from .depthwise_f32 import vector_lanes
from .epilogue import number
from .expression import check, evaluate
from .grains import grain
from .reductions import neutral

if TYPE_CHECKING:
    from ..loops.planning import Builder

VECTORS = 4  # accumulators in registers
DTYPES = (dtypes.float32, dtypes.int8, dtypes.uint8, dtypes.int16)


@kl.family
def pool(work, x: ptr[u8], y: ptr[u8], height: i64, width: i64, in_pitch: i64, out_height: i64, out_width: i64,
         out_pitch: i64, channels: i64, top: i64, left: i64, high: i64, wide: i64, step_down: i64, step_across: i64,
         down: i64, across: i64, *more: i64, kind: str, dtype: Any, lanes: int, vectors: int, expr: Any,
         params: tuple):  # fmt: skip
    """An item: `vectors` vectors of channels, of a row of outputs. down, across: dilations."""
    numbers = [number(v, d) for v, d in zip(more, params)]
    image, out = x.cast(dtype), y.cast(expr.dtype)
    held = i32 if kind == "sum" and not dtype.is_floating else dtype
    span = lanes * vectors
    blocks = (channels + (span - 1)) // span
    for item in work.items():
        c = kl.minimum((item % blocks) * span, channels - span)
        row = item // blocks
        first_row = (row % out_height) * step_down - top
        rows = _inside(first_row, high, down, height)
        line = image + (((row // out_height) * height + first_row) * width * in_pitch + c)
        for ox in range(out_width):
            first_column = ox * step_across - left
            columns = _inside(first_column, wide, across, width)
            total = kl.registers(held, lanes, vectors)
            for v in range(vectors):
                total[v] = kl.full(held, lanes, 0 if kind == "sum" else neutral("max", dtype))
            for i in range(*rows):
                for j in range(*columns):
                    pixel = line + (i * down * width + first_column + j * across) * in_pitch
                    for v in range(vectors):
                        element = pixel.load(v * lanes, lanes)
                        if kind == "sum":
                            total[v] = total[v] + element.to(held)
                        else:
                            total[v] = kl.maximum(element, total[v])
            count = (kl.maximum(rows[1] - rows[0], 0) * kl.maximum(columns[1] - columns[0], 0)).to(f32)
            for v in range(vectors):
                found = evaluate(expr, [total[v], count], numbers).splat(lanes)
                out.store(found, (row * out_width + ox) * out_pitch + c + v * lanes)


def _inside(first: Any, size: Any, step: Any, extent: Any) -> tuple[Any, Any]:
    """Which taps i of a window, at first + i step, are within an extent: from, to."""
    start = (kl.maximum(-first, 0) + (step - 1)) // step
    return start, kl.minimum(size, (extent - first + (step - 1)) // step)


@maker(Pool)
def make_pool(form: Pool, build: Builder) -> None:
    """Of floats, bytes and int16."""
    x, out, window = form.input, form.output, form.window
    if x.dtype not in DTYPES:
        raise Unmade(f"a pool of {x.dtype.name}")
    check(form.expr)
    n, out_height, out_width, channels = out.shape
    lanes = vector_lanes(channels, x.dtype.size if form.kind == "max" else 4)
    vectors = max(v for v in (1, 2, VECTORS) if v * lanes <= channels or v == 1)
    expr, scalars = parametrised(form.expr)
    code = pool.code(kind=form.kind, dtype=x.dtype, lanes=lanes, vectors=vectors, expr=expr,
                     params=tuple(d for _, d in scalars), more=len(scalars))  # fmt: skip
    top, _, left, _ = window.padding
    words = [build.pointer(x), build.pointer(out), x.shape[1], x.shape[2], x.pitch, out_height, out_width, out.pitch,
             channels, top, left, *window.size, *window.strides, *window.dilations,
             *(word(value, d) for value, d in scalars)]  # fmt: skip
    items = n * out_height * -(-channels // (lanes * vectors))
    work = out_width * lanes * vectors * x.dtype.size * (window.size[0] * window.size[1] + 4)
    build.step(code, words, items, chunk=grain(work, items))
