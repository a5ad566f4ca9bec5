"""Depthwise convolution of float32: each channel by itself.

Lives here: the maker of Depthwise on floats and its two families.
Not here: int8 (depthwise_int8.py), convolutions that mix channels (convolution_f32.py), epilogues (epilogue.py).

Vectors lie along the channels. The kernel goes along a row of the image, and each pixel it loads is added to all the
outputs that see it, which are in registers: as many as the window is wide, in strides. So every pixel of a row of
outputs is loaded once a row of the window, and padding costs a test: what lies outside is added to nothing. Two rows
of outputs at a time share what they load. The filter is read where it lies in the file.

The last channels are done by a vector that overlaps the one before it, so that no lane is masked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import dtypes
from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.forms import Depthwise, Ring, Window
from ..target import host
from ..tuning.choices import DEPTHWISE_ROWS
from . import Unmade, maker
from .depthwise_tiles import Slide, lane_bytes, slide_of
from .epilogue import epilogue_of, without_bias
from .gemm_widened import LINE
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Value
    from ..loops.planning import Builder

LARGEST = 64
"""Taps of a window whose code is unrolled; larger ones are loops."""
BAND = 8
"""Rows of outputs that a work item does, where there are enough items."""


@kl.family
def depthwise_f32(
    work,
    x: ptr[f32],
    filter: ptr[f32],
    bias: ptr[f32],
    y: ptr[f32],
    height: i64,
    width: i64,
    in_pitch: i64,
    out_height: i64,
    out_width: i64,
    out_pitch: i64,
    channels: i64,
    top: i64,
    left: i64,
    down: i64,
    across: i64,
    bands: i64,
    band: i64,
    ring: i64,
    shift: i64,
    *more: i64,
    size: tuple,
    strides: tuple,
    rows: int,
    lanes: int,
    has_bias: bool,
    dilated: bool,
    epilogue: Any,
):
    """An item: `lanes` channels of a band of rows. down, across: dilations; rows > 1 is for down = 1. ring, shift:
    where rows of the image lie, see `line_of`.

    dilated: across may be above 1, with a stride of 1: columns with equal remainders by it are one row of an image
    without dilation.
    """
    finish, unrolled = epilogue.bind(more), work.target.is_aarch64
    blocks = (channels + (lanes - 1)) // lanes
    for item in work.items():
        rest = item // blocks
        n = rest // bands
        c = kl.minimum((item % blocks) * lanes, channels - lanes)
        tap = _taps(work, filter + c, channels, size, lanes)
        start = (bias + c).load(0, lanes) if has_bias else kl.zeros(f32, lanes)
        first = (rest % bands) * band
        for row in range(first, kl.minimum(first + band, out_height), rows):
            oy = kl.minimum(row, out_height - rows)
            lines = []  # the rows of the image that these rows of outputs see: whether there is one, and where
            for i in range((rows - 1) * strides[0] + size[0]):
                iy = oy * strides[0] - top + i * down
                line = line_of(n * height + iy, ring, shift)
                lines.append((within(iy, height), x + (line * width * in_pitch + c)))
            at = (n * out_height + oy) * out_width
            if dilated:
                for phase in range(across):
                    count = (out_width - phase + (across - 1)) // across
                    _along(
                        lines,
                        tap,
                        start,
                        finish,
                        y,
                        at + phase,
                        c,
                        count,
                        phase - left,
                        across,
                        width,
                        in_pitch,
                        out_width,
                        out_pitch,
                        size,
                        strides,
                        rows,
                        lanes,
                        unrolled,
                    )
            else:
                _along(
                    lines,
                    tap,
                    start,
                    finish,
                    y,
                    at,
                    c,
                    out_width,
                    -left,
                    1,
                    width,
                    in_pitch,
                    out_width,
                    out_pitch,
                    size,
                    strides,
                    rows,
                    lanes,
                    unrolled,
                )


def within(at: Value, extent: Value) -> Value:
    """0 <= at < extent, in one comparison."""
    found: Value = at.to(dtypes.uint64) < extent.to(dtypes.uint64)
    return found


def line_of(row: Value, ring: Value, shift: Value) -> Value:
    """Where a row of the images lies: `shift` on, and where that is beyond the ring, at its beginning."""
    line = row + shift
    return kl.select(line < ring, line, line - ring)


def ring_of(form: Depthwise) -> tuple[int, int]:
    """The words of `line_of` for the rows that a form sees."""
    x, first = form.input, max(0, -form.window.padding[0])
    if not isinstance(x, Ring):
        return x.shape[0] * x.shape[1], 0
    return x.lines, (first + x.shift) % x.lines - first


def _taps(work: Any, filter: Any, channels: Any, size: tuple[int, int], lanes: int) -> Any:
    """A function (i, j) that gives the filter's vector there: from registers, where there are enough of them, or from
    a copy on the stack, which addresses known to the code reach."""
    n = size[0] * size[1]
    if n * -(-lanes // work.lanes(f32)) <= work.target.registers // 2:
        vectors = [filter.load(i * channels, lanes) for i in range(n)]
        return lambda i, j: vectors[i * size[1] + j]
    near = kl.stack(f32, n * lanes)
    for i in range(n):
        near.store(filter.load(i * channels, lanes), i * lanes)
    return lambda i, j: near.load((i * size[1] + j) * lanes, lanes)


def _along(
    lines: Any,
    tap: Any,
    start: Any,
    finish: Any,
    y: Any,
    at: Any,
    c: Any,
    count: Any,
    base: Any,
    across: Any,
    width: Any,
    in_pitch: Any,
    out_width: Any,
    out_pitch: Any,
    size: tuple[int, int],
    strides: tuple[int, int],
    rows: int,
    lanes: int,
    unrolled: bool,
) -> None:
    """`count` columns of outputs, `across` apart, `rows` rows of them, from row `at` of the output on.

    The turn that loads the last column that an output sees finishes it. unrolled: whether turns are as many as outputs
    that a column is seen by, so that no sums move.
    """
    depth = -(-size[1] // strides[1])
    sums = kl.registers(f32, lanes, rows, depth)
    for r in range(rows):
        for d in range(depth):
            sums[r, d] = start
    turns, end = depth if unrolled else 1, count + (depth - 1)
    for first in range(0, end, turns):
        for turn in range(turns):
            t = kl.value(first) + turn
            if t < end if turn else True:
                for j in range(min(strides[1], size[1])):  # columns beyond the window are in none
                    column = (t * strides[1] + j) * across + base
                    if within(column, width):
                        for i in range(len(lines)):
                            inside, line = lines[i]
                            if inside:
                                pixel = line.load(column * in_pitch, lanes)
                                for d in range(depth):
                                    slot = slot_of(d, turn, depth, turns)
                                    for r in range(rows):
                                        ky, kx = i - r * strides[0], d * strides[1] + j
                                        if 0 <= ky < size[0] and kx < size[1]:
                                            sums[r, slot] = kl.fma(pixel, tap(ky, kx), sums[r, slot])
                last = slot_of(depth - 1, turn, depth, turns)
                if t >= depth - 1:
                    for r in range(rows):
                        row = at + r * out_width + (t - (depth - 1)) * across
                        (y + row * out_pitch).store(finish(sums[r, last], row, c, lanes), c)
                for r in range(rows):
                    if turns == 1:
                        for d in range(depth - 1, 0, -1):
                            sums[r, d] = sums[r, d - 1]
                    sums[r, last if turns > 1 else 0] = start


def slot_of(d: int, turn: int, depth: int, turns: int) -> int:
    """Where the sums of the output d columns back are. turns: columns after which that is as before; with one the sums
    move instead, which costs a move each."""
    return d if turns == 1 else (turn - d) % depth


@kl.family
def depthwise_any_f32(
    work,
    x: ptr[f32],
    filter: ptr[f32],
    y: ptr[f32],
    height: i64,
    width: i64,
    in_pitch: i64,
    out_height: i64,
    out_width: i64,
    out_pitch: i64,
    channels: i64,
    top: i64,
    left: i64,
    high: i64,
    wide: i64,
    step_down: i64,
    step_across: i64,
    down: i64,
    across: i64,
    multiplier: i64,
    *more: i64,
    lanes: int,
    source: str,
    epilogue: Any,
):
    """Any window. An item: `lanes` channels of a row. source: which channel an output's is of: the "same", the "only"
    one there is, or its own by the "multiplier"."""
    finish = epilogue.bind(more)
    blocks = (channels + (lanes - 1)) // lanes
    for item in work.items():
        c = kl.minimum((item % blocks) * lanes, channels - lanes)
        row = item // blocks
        n = row // out_height
        y0 = (row % out_height) * step_down - top
        from_channel = (kl.iota(dtypes.int32, lanes) + c.to(dtypes.int32)) // multiplier.to(dtypes.int32)
        for ox in range(out_width):
            x0 = ox * step_across - left
            total = kl.zeros(f32, lanes)
            for i in range(high):
                iy = y0 + i * down
                if within(iy, height):
                    for j in range(wide):
                        ix = x0 + j * across
                        if within(ix, width):
                            p = x + ((n * height + iy) * width + ix) * in_pitch
                            if source == "same":
                                pixel = p.load(c, lanes)
                            elif source == "only":
                                pixel = p[0].splat(lanes)
                            else:
                                pixel = kl.gather(p, from_channel)
                            total = kl.fma(pixel, filter.load((i * wide + j) * channels + c, lanes), total)
            at = row * out_width + ox
            (y + at * out_pitch).store(finish(total, at, c, lanes), c)


def vector_lanes(channels: int, size: int = 4) -> int:
    """Lanes of a vector of this processor, or fewer: a power of two that is no more than the channels."""
    return min(host().vector_bytes // size, 1 << (channels.bit_length() - 1))


def _lanes(channels: int, window: Window) -> int:
    """Channels of an item: those of a vector; where columns are strided on x86, those of a cache line.

    Few outputs see a pixel there, so that loads are most of the work. To fetch each line again for its other half takes
    1.3 to 1.5 times as long as this.
    """
    target = host()
    size = lane_bytes(target)
    if window.strides[1] > 1 and target.is_x86:
        size = size * min(target.vector_bytes, LINE) // LINE
    return vector_lanes(channels, size)


def rows_together(out_height: int, several: bool = False) -> int:
    """Rows of outputs that are computed at a time by default: one where the last would be done twice, and that
    counts. several: whether registers are taken by items of several vectors."""
    return 1 if several or out_height == 1 or (out_height % 2 and out_height < 2 * BAND) else 2


def _rows(slide: Slide, n: int, channels: int, lanes: int, build: Builder) -> int:
    """Rows of outputs that are computed at a time: together they read each line between them."""
    out_height, out_width, window = slide[2:]
    if window.dilations[0] > 1 or window.strides[0] > window.size[0]:
        return 1
    ways = [rows for rows in (1, 2, 4) if rows <= out_height]
    default = rows_together(out_height, lanes > vector_lanes(channels, lane_bytes(host())))
    return build.choose(
        DEPTHWISE_ROWS, ways, default, n, out_height, out_width, channels, *window.size, window.strides[0]
    )


@maker(Depthwise)
def make_depthwise_f32(form: Depthwise, build: Builder) -> None:
    """Of float32."""
    x, out = form.input, form.output
    if (x.dtype, form.filter.dtype) != (dtypes.float32, dtypes.float32):
        raise Unmade(f"depthwise convolution of {x.dtype.name} with {form.filter.dtype.name}")
    if form.filter.parent is not None:
        raise Unmade("a filter that is a slice")
    slide = slide_of(form)
    height, width, out_height, out_width, window = slide
    n, channels, wide = x.shape[0], x.shape[3], out.shape[3]
    (kh, kw), (sh, sw), (down, across), (top, _, left, _) = (
        window.size,
        window.strides,
        window.dilations,
        window.padding,
    )
    if form.multiplier != 1 or kh * kw > LARGEST or (across > 1 and sw > 1):
        if isinstance(x, Ring):
            raise Unmade("any window over a ring")
        lanes = vector_lanes(wide)
        epilogue, more = epilogue_of(form.expr, form.operands, out, build)
        source = "same" if form.multiplier == 1 else "only" if channels == 1 else "multiplier"
        code = depthwise_any_f32.code(lanes=lanes, source=source, more=len(more), epilogue=epilogue)
        words = [
            build.pointer(x),
            build.pointer(form.filter),
            build.pointer(out),
            height,
            width,
            x.pitch,
            out_height,
            out_width,
            out.pitch,
            wide,
            top,
            left,
            kh,
            kw,
            sh,
            sw,
            down,
            across,
            form.multiplier,
        ]
        items = n * out_height * -(-wide // lanes)
        build.step(code, [*words, *more], items, chunk=grain(out_width * lanes * 4 * kh * kw, items))
        return
    bias, expr, operands = without_bias(form.expr, form.operands)
    epilogue, more = epilogue_of(expr, operands, out, build)
    lanes = _lanes(wide, window)
    blocks = -(-wide // lanes)
    rows = _rows(slide, n, wide, lanes, build)
    code = depthwise_f32.code(
        size=(kh, kw),
        strides=(sh, sw),
        rows=rows,
        lanes=lanes,
        has_bias=bias is not None,
        dilated=across > 1,
        more=len(more),
        epilogue=epilogue,
    )
    band = BAND if n * blocks * -(-out_height // BAND) >= BAND else rows
    bands = -(-out_height // band)
    words = [
        build.pointer(x),
        build.pointer(form.filter),
        0 if bias is None else build.pointer(bias),
        build.pointer(out),
        height,
        width,
        x.pitch,
        out_height,
        out_width,
        out.pitch,
        wide,
        top,
        left,
        down,
        across,
        bands,
        band,
        *ring_of(form),
    ]
    items = n * blocks * bands
    build.step(code, [*words, *more], items, chunk=grain((width * sh + out_width) * band * lanes * 4, items))
