"""Complex numbers and Fourier transforms: RFFT2D, IRFFT2D, REAL, IMAG, COMPLEX_ABS, Complex; AudioSpectrogram, Mfcc.

Lives here: these rules; complex numbers as pairs of floats (`parts_of`, `join`), products of complex numbers.
Not here: row transforms (../kernels/fourier.py), moves of complex numbers, which are 8 bytes (views.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtypes import DType, complex64, complex128, float32, float64
from ...core.dtypes import bool as bool_
from ..loops.buffers import Buffer, IndexMap
from ..loops.expressions import Expr, apply, arg, const, convert, scalar
from ..loops.numeric_ops import Fourier
from ..loops.ops import Bitcast, Map, MatMul, Move
from .context import LoweringContext, NoLowering, RuleOperand
from .data_movement import row_major
from .elementwise import broadcast, truth
from .registry import rule

PARTS = {complex64: float32, complex128: float64}
"""Of what type both parts of complex numbers are."""


def pairs(ctx: LoweringContext, x: RuleOperand) -> Buffer:
    """Complex numbers as floats [..., 2]. Raises NoLowering for other types."""
    if x.dtype not in PARTS:
        raise NoLowering(f"elements of type {x.dtype.name}")
    return ctx.bits(x.buffer, PARTS[x.dtype], (*x.shape, 2))


def parts_of(ctx: LoweringContext, x: RuleOperand) -> tuple[Buffer, Buffer]:
    """Real and imaginary parts. Raises NoLowering for other types."""
    both = pairs(ctx, x)
    return part(ctx, both, 0), part(ctx, both, 1)


def part(ctx: LoweringContext, both: Buffer, which: int) -> Buffer:
    """One of two neighbours: [..., 2] to [...]."""
    made = ctx.new(both.dtype, both.shape[:-1], f".{both.name}.{which}")
    _take(ctx, made, both, which)
    return made


def _take(ctx: LoweringContext, out: Buffer, both: Buffer, which: int) -> None:
    ctx.add(Move, out, (both,), (IndexMap((0,) * len(out.shape), out.shape, which, row_major(both.shape)[:-1]),))


def join(ctx: LoweringContext, y: RuleOperand, real: Buffer, imaginary: Buffer) -> None:
    """Complex numbers of two parts of the output's shape. Raises NoLowering for other types."""
    if y.dtype is not complex64:
        raise NoLowering(f"elements of type {y.dtype.name}")
    made = ctx.new(float32, (*y.shape, 2), ".pairs")
    steps = (*row_major(y.shape), 1)
    boxes = tuple(IndexMap((*(0,) * len(y.shape), k), (*y.shape, 1), 0, steps) for k in range(2))
    ctx.add(Move, made, (real, imaginary), boxes)
    as_output(ctx, y, made)


def as_output(ctx: LoweringContext, y: RuleOperand, made: Buffer) -> None:
    """Let pairs be the output."""
    ctx.add(Bitcast, y.buffer, made)


@rule("REAL", "IMAG")
def real_or_imaginary(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if y.dtype is not PARTS.get(x.dtype):
        raise NoLowering(f"parts of {x.dtype.name} of type {y.dtype.name}")
    _take(ctx, y.buffer, pairs(ctx, x), int(ctx.operator == "IMAG"))


@rule("COMPLEX_ABS")
def magnitude(ctx: LoweringContext) -> None:
    """In float64, where no square overflows; an infinity is infinitely long, whatever the other part is."""
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if y.dtype is not PARTS.get(x.dtype):
        raise NoLowering(f"magnitudes of {x.dtype.name} of type {y.dtype.name}")
    if x.dtype is complex128:
        _wide_magnitude(ctx, x, y)
        return
    a, b = (convert(arg(i, float32), float64) for i in range(2))
    found = convert(apply("sqrt", apply("fma", a, a, apply("mul", b, b))), float32)
    endless = const(float("inf"), float32)
    for i in range(2):
        is_infinite = Expr("equal", bool_, (apply("abs", arg(i, float32)), endless))
        found = Expr("select", float32, (is_infinite, endless, found))
    ctx.add(Map, y.buffer, parts_of(ctx, x), found)


def _wide_magnitude(ctx: LoweringContext, x: RuleOperand, y: RuleOperand) -> None:
    """h sqrt(1 + (l / h)^2) of the longer part h and the shorter l."""
    a, b = (apply("abs", arg(i, float64)) for i in range(2))
    longer, shorter = apply("maximum", a, b), apply("minimum", a, b)
    none, endless = const(0.0, float64), const(float("inf"), float64)
    ratio = Expr("select", float64, (truth("equal", longer, none), none, apply("div", shorter, longer)))
    found = apply("mul", longer, apply("sqrt", apply("fma", ratio, ratio, const(1.0, float64))))
    found = apply("add", found, apply("sub", apply("sub", a, a), apply("sub", b, b)))  # NaN of one part is NaN
    for part in (a, b):
        found = Expr("select", float64, (truth("equal", part, endless), endless, found))
    ctx.add(Map, y.buffer, parts_of(ctx, x), found)


@rule(custom=("Complex",))
def complex_(ctx: LoweringContext) -> None:
    a, b = ctx.operand(0), ctx.operand(1)
    y = ctx.output(broadcast(a, b))
    if a.dtype is not float32 or b.dtype is not float32:
        raise NoLowering(f"parts of type {a.dtype.name} and {b.dtype.name}")
    join(ctx, y, *(_spread(ctx, o.buffer, y.shape) for o in (a, b)))


def _spread(ctx: LoweringContext, b: Buffer, shape: tuple[int, ...]) -> Buffer:
    if b.shape == shape:
        return b
    made = ctx.new(b.dtype, shape, f".{b.name}.spread")
    ctx.add(Map, made, (b,), arg(0, b.dtype))
    return made


def product(ctx: LoweringContext, x: RuleOperand, y: RuleOperand, z: RuleOperand) -> None:
    """Complex products, broadcast: (a + i b) (c + i d) = a c - b d + i (a d + b c)."""
    operands = (*parts_of(ctx, x), *parts_of(ctx, y))
    a, b, c, d = (arg(i, float32) for i in range(4))
    made = []
    for name, sign, (p, q), (r, s) in (("real", "sub", (a, c), (b, d)), ("imaginary", "add", (a, d), (b, c))):
        made.append(ctx.new(float32, z.shape, f".{name}"))
        ctx.add(Map, made[-1], operands, apply(sign, apply("mul", p, q), apply("mul", r, s)))
    join(ctx, z, *made)


def _image(ctx: LoweringContext, dtype: DType) -> tuple[RuleOperand, int, int]:
    """What is transformed, and by which lengths. Raises NoLowering if it is no image of this dtype."""
    x, lengths = ctx.operand(0), [int(n) for n in ctx.constant(1).reshape(-1)]
    if x.dtype is not dtype or len(x.shape) < 2 or len(lengths) != 2 or min(lengths) < 1 or not x.size:
        raise NoLowering(f"a transform of {x} by {lengths}")
    return x, lengths[0], lengths[1]


def _result(ctx: LoweringContext, shape: tuple[int, ...], dtype: DType) -> RuleOperand:
    """The transform. Raises NoLowering for an output of another dtype."""
    y = ctx.output(shape)
    if y.dtype is not dtype:
        raise NoLowering(f"a transform to {y.dtype.name}")
    return y


@rule(lite=("RFFT2D",), custom=("RFFT2D", "Rfft2d"))
def rfft2d(ctx: LoweringContext) -> None:
    """Rows, then columns as rows of the transposed image."""
    x, high, wide = _image(ctx, float32)
    half = wide // 2 + 1
    y = _result(ctx, (*x.shape[:-2], high, half), complex64)
    image = _cut(ctx, x.buffer, high, wide)
    outer, lines = math.prod(image.shape[:-2]), image.shape[-2]
    rows = ctx.new(float32, (outer, lines, half, 2), ".rows")
    ctx.add(Fourier, rows, ctx.viewed(image, (outer, *image.shape[-2:])), wide)
    if high == 1:
        as_output(ctx, y, rows)
        return
    turned = ctx.new(float32, (outer, half, lines, 2), ".turned")
    _turn(ctx, turned, rows)
    columns = ctx.new(float32, (outer, half, high, 2), ".columns")
    ctx.add(Fourier, columns, turned, high, True)
    made = ctx.new(float32, (outer, high, half, 2), ".spectrum")
    _turn(ctx, made, columns)
    as_output(ctx, y, made)


@rule(custom=("IRFFT2D", "Irfft2d"))
def irfft2d(ctx: LoweringContext) -> None:
    """By forward transforms of conjugates: of columns, then of rows that are completed by what is symmetric."""
    x, high, wide = _image(ctx, complex64)
    y = _result(ctx, (*x.shape[:-2], high, wide), float32)
    outer, (m, n) = math.prod(x.shape[:-2]), x.shape[-2:]
    lines, half = min(m, high), wide // 2 + 1
    given, known = ctx.viewed(pairs(ctx, x), (outer, m, n, 2)), min(n, half)
    steps = row_major(given.shape)
    turned = ctx.new(float32, (outer, known, lines, 2), ".turned")
    ctx.add(Move, turned, (given,), (IndexMap((0,) * 4, turned.shape, 0, (steps[0], 2, steps[1], 1)),))
    conjugate = ctx.new(float32, turned.shape, ".conjugate")
    product = apply("mul", arg(0, float32), arg(1, float32))
    ctx.add(Map, conjugate, (turned, _signs(y, np.array([1, -1], np.float32))), product)
    columns = ctx.new(float32, (outer, known, high, 2), ".columns")
    ctx.add(Fourier, columns, conjugate, high, True)
    mirrored = [q for q in range(half, wide) if wide - q < known]  # those whose counterparts there are
    completed, steps = ctx.new(float32, (outer, high, wide, 2), ".completed"), row_major(columns.shape)
    boxes = [IndexMap((0,) * 4, (outer, high, known, 2), 0, (steps[0], 2, steps[1], 1))]
    if mirrored:
        first = mirrored[0]
        boxes.append(
            IndexMap(
                (0, 0, first, 0),
                (outer, high, len(mirrored), 2),
                (wide - first) * steps[1],
                (steps[0], 2, -steps[1], 1),
            )
        )
    ctx.add(Move, completed, (columns,) * len(boxes), tuple(boxes), 0)
    signs = np.ones((wide, 2), np.float32)
    signs[half:, 1] = -1
    spectrum, rows = (ctx.new(float32, completed.shape, f".{name}") for name in ("spectrum", "rows"))
    ctx.add(Map, spectrum, (completed, _signs(y, signs)), product)
    ctx.add(Fourier, rows, spectrum, wide, True)
    real = ctx.viewed(part(ctx, rows, 0), y.shape)
    ctx.add(Map, y.buffer, (real,), apply("mul", arg(0, float32), scalar(1.0 / (high * wide), float32)))


def _signs(y: RuleOperand, signs: np.ndarray) -> Buffer:
    return Buffer(f"{y.buffer.name}.signs{signs.ndim}", float32, signs.shape, signs)


def _cut(ctx: LoweringContext, b: Buffer, high: int, wide: int) -> Buffer:
    """The first lines and columns of images, as many as the transform reads."""
    shape = (*b.shape[:-2], min(b.shape[-2], high), min(b.shape[-1], wide))
    if shape == b.shape:
        return b
    made = ctx.new(float32, shape, ".cut")
    ctx.add(Move, made, (b,), (IndexMap((0,) * len(shape), shape, 0, row_major(b.shape)),))
    return made


def _turn(ctx: LoweringContext, out: Buffer, b: Buffer) -> None:
    """Complex images [n, h, w, 2] transposed."""
    n, h, w, _ = row_major(b.shape)
    ctx.add(Move, out, (b,), (IndexMap((0,) * 4, out.shape, 0, (n, w, h, 1)),))


@rule(custom=("AudioSpectrogram",))
def spectrogram(ctx: LoweringContext) -> None:
    """Windows are rows of their own, times the window, transformed."""
    x = ctx.operand(0)
    call: Any = ctx.node.call
    size, stride = int(call.window_size), int(call.stride)
    if x.dtype is not float32 or len(x.shape) != 2 or x.shape[0] < size or not x.shape[1]:
        raise NoLowering(f"windows of {size} samples of {x}")
    samples, channels = x.shape
    count, length = 1 + (samples - size) // stride, call.transform_length()
    y = ctx.output((channels, count, length // 2 + 1))
    shape = (channels, count, size)
    rows, shaped = ctx.new(float32, shape, ".windows"), ctx.new(float32, shape, ".shaped")
    ctx.add(Move, rows, (x.buffer,), (IndexMap((0, 0, 0), shape, 0, (1, stride * channels, channels)),))
    hann = call.hann_window().astype(np.float32)
    window = Buffer(f"{y.buffer.name}.hann", float32, hann.shape, hann)
    ctx.add(Map, shaped, (rows, window), apply("mul", arg(0, float32), arg(1, float32)))
    waves = ctx.new(float32, (*y.shape, 2), ".spectrum")
    ctx.add(Fourier, waves, shaped, length)
    a, b = arg(0, float32), arg(1, float32)
    power = apply("fma", a, a, apply("mul", b, b))
    ctx.add(
        Map,
        y.buffer,
        (part(ctx, waves, 0), part(ctx, waves, 1)),
        power if call.magnitude_squared else apply("sqrt", power),
    )


@rule(custom=("Mfcc",))
def mfcc(ctx: LoweringContext) -> None:
    """Two products with matrices, of the bands and of cosines; a logarithm between."""
    x, rate = ctx.operand(0), int(ctx.constant(1).reshape(-1)[0])
    call: Any = ctx.node.call
    bands, count = int(call.filterbank_channel_count), int(call.dct_coefficient_count)
    if x.dtype is not float32 or len(x.shape) != 3 or not x.size or rate <= 0:
        raise NoLowering(f"coefficients of {x} at {rate} Hz")
    weights = call.mel_weights(x.shape[2], rate)
    if weights is None:
        raise NoLowering("the upper limit is beyond the frequencies")
    y = ctx.output((*x.shape[:2], count))
    roots = ctx.new(float32, x.shape, ".magnitudes")
    ctx.add(Map, roots, (x.buffer,), apply("sqrt", arg(0, float32)))
    energies = ctx.new(float32, (*x.shape[:2], bands), ".energies")
    loud = apply("log", apply("maximum", arg(0, float32), const(call.least_energy(), float32)))
    ctx.add(MatMul, energies, roots, _matrix(f"{y.buffer.name}.bands", weights.T), (), loud)
    cosines = _matrix(f"{y.buffer.name}.cosines", call.cosines())
    ctx.add(MatMul, y.buffer, energies, cosines, (), arg(0, float32))


def _matrix(name: str, matrix: np.ndarray) -> Buffer:
    return Buffer(name, float32, matrix.shape, np.ascontiguousarray(matrix, np.float32))
