"""Complex numbers and Fourier transforms: RFFT2D, IRFFT2D, REAL, IMAG, COMPLEX_ABS, Complex; AudioSpectrogram, Mfcc;
aeq.hadamard_rotation.

Lives here: these rules; complex numbers as pairs of floats (`parts_of`, `join`), products of complex numbers.
Not here: row transforms (../kernels/fourier.py), moves of complex numbers, which are 8 bytes (views.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtypes import DType, complex64, complex128, float32, float64
from ...core.dtypes import bool as bool_
from ..loops.buffers import Buffer, IndexMap, row_major
from ..loops.domain_ops import Fourier, Hadamard
from ..loops.expressions import Expr, apply, arg, const, convert, scalar
from ..loops.ops import Map, MatMul, Move, Reinterpret
from .context import LoweringContext, NoLowering, RuleOperand
from .operand_expressions import broadcast, truth
from .registry import rule


def pairs(ctx: LoweringContext, x: RuleOperand) -> Buffer:
    """Return complex numbers as floats [..., 2]. Raises NoLowering for other types."""
    if not x.dtype.is_complex:
        raise NoLowering(f"elements of type {x.dtype.name}")
    return ctx.bits(x.buffer, x.dtype.real_dtype, (*x.shape, 2))


def parts_of(ctx: LoweringContext, x: RuleOperand) -> tuple[Buffer, Buffer]:
    """Return real and imaginary parts. Raises NoLowering for other types."""
    both = pairs(ctx, x)
    return part(ctx, both, 0), part(ctx, both, 1)


def part(ctx: LoweringContext, interleaved: Buffer, index: int) -> Buffer:
    """Extract one of two interleaved values: [..., 2] to [...]."""
    extracted = ctx.new(interleaved.dtype, interleaved.shape[:-1], f".{interleaved.name}.{index}")
    _extract(ctx, extracted, interleaved, index)
    return extracted


def _extract(ctx: LoweringContext, out: Buffer, interleaved: Buffer, index: int) -> None:
    ctx.add(
        Move,
        out,
        (interleaved,),
        (IndexMap((0,) * len(out.shape), out.shape, index, row_major(interleaved.shape)[:-1]),),
    )


def join(ctx: LoweringContext, y: RuleOperand, real: Buffer, imaginary: Buffer) -> None:
    """Write complex numbers from parts of the output's shape. Raises NoLowering for other types."""
    if y.dtype is not complex64:
        raise NoLowering(f"elements of type {y.dtype.name}")
    interleaved = ctx.new(float32, (*y.shape, 2), ".pairs")
    steps = (*row_major(y.shape), 1)
    boxes = tuple(IndexMap((*(0,) * len(y.shape), k), (*y.shape, 1), 0, steps) for k in range(2))
    ctx.add(Move, interleaved, (real, imaginary), boxes)
    as_output(ctx, y, interleaved)


def as_output(ctx: LoweringContext, y: RuleOperand, interleaved: Buffer) -> None:
    """Write interleaved pairs to the output."""
    ctx.add(Reinterpret, y.buffer, interleaved)


@rule("REAL", "IMAG")
def real_or_imaginary(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if not x.dtype.is_complex or y.dtype is not x.dtype.real_dtype:
        raise NoLowering(f"parts of {x.dtype.name} of type {y.dtype.name}")
    _extract(ctx, y.buffer, pairs(ctx, x), int(ctx.operator == "IMAG"))


@rule("COMPLEX_ABS")
def magnitude(ctx: LoweringContext) -> None:
    """Lower COMPLEX_ABS, in float64 so that no square overflows; the magnitude is infinite if a part is."""
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if not x.dtype.is_complex or y.dtype is not x.dtype.real_dtype:
        raise NoLowering(f"magnitudes of {x.dtype.name} of type {y.dtype.name}")
    if x.dtype is complex128:
        _wide_magnitude(ctx, x, y)
        return
    a, b = (convert(arg(i, float32), float64) for i in range(2))
    value = convert(apply("sqrt", apply("fma", a, a, apply("mul", b, b))), float32)
    infinity = const(float("inf"), float32)
    for i in range(2):
        is_infinite = Expr("equal", bool_, (apply("abs", arg(i, float32)), infinity))
        value = Expr("select", float32, (is_infinite, infinity, value))
    ctx.add(Map, y.buffer, parts_of(ctx, x), value)


def _wide_magnitude(ctx: LoweringContext, x: RuleOperand, y: RuleOperand) -> None:
    """Compute h sqrt(1 + (l / h)^2) from the longer part h and the shorter l."""
    a, b = (apply("abs", arg(i, float64)) for i in range(2))
    longer, shorter = apply("maximum", a, b), apply("minimum", a, b)
    zero, infinity = const(0.0, float64), const(float("inf"), float64)
    ratio = Expr("select", float64, (truth("equal", longer, zero), zero, apply("div", shorter, longer)))
    value = apply("mul", longer, apply("sqrt", apply("fma", ratio, ratio, const(1.0, float64))))
    value = apply("add", value, apply("sub", apply("sub", a, a), apply("sub", b, b)))  # NaN of one part is NaN
    for part in (a, b):
        value = Expr("select", float64, (truth("equal", part, infinity), infinity, value))
    ctx.add(Map, y.buffer, parts_of(ctx, x), value)


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
    spread = ctx.new(b.dtype, shape, f".{b.name}.spread")
    ctx.add(Map, spread, (b,), arg(0, b.dtype))
    return spread


def product(ctx: LoweringContext, x: RuleOperand, y: RuleOperand, z: RuleOperand) -> None:
    """Lower a broadcast complex product: (a + i b) (c + i d) = a c - b d + i (a d + b c)."""
    operands = (*parts_of(ctx, x), *parts_of(ctx, y))
    a, b, c, d = (arg(i, float32) for i in range(4))
    parts = []
    for name, sign, (p, q), (r, s) in (("real", "sub", (a, c), (b, d)), ("imaginary", "add", (a, d), (b, c))):
        parts.append(ctx.new(float32, z.shape, f".{name}"))
        ctx.add(Map, parts[-1], operands, apply(sign, apply("mul", p, q), apply("mul", r, s)))
    join(ctx, z, *parts)


def _image(ctx: LoweringContext, dtype: DType) -> tuple[RuleOperand, int, int]:
    """Return the operand and the transform's lengths. Raises NoLowering if it is not an image of this dtype."""
    x, lengths = ctx.operand(0), [int(n) for n in ctx.constant(1).reshape(-1)]
    if x.dtype is not dtype or len(x.shape) < 2 or len(lengths) != 2 or min(lengths) < 1 or not x.size:
        raise NoLowering(f"a transform of {x} by {lengths}")
    return x, lengths[0], lengths[1]


def _result(ctx: LoweringContext, shape: tuple[int, ...], dtype: DType) -> RuleOperand:
    """Return the output. Raises NoLowering if it has another dtype."""
    y = ctx.output(shape)
    if y.dtype is not dtype:
        raise NoLowering(f"a transform to {y.dtype.name}")
    return y


@rule(lite=("RFFT2D",), custom=("RFFT2D", "Rfft2d"))
def rfft2d(ctx: LoweringContext) -> None:
    """Lower a real transform of rows, then of columns as rows of the transposed image."""
    x, height, width = _image(ctx, float32)
    half = width // 2 + 1
    y = _result(ctx, (*x.shape[:-2], height, half), complex64)
    image = _cropped(ctx, x.buffer, height, width)
    outer, lines = math.prod(image.shape[:-2]), image.shape[-2]
    rows = ctx.new(float32, (outer, lines, half, 2), ".rows")
    ctx.add(Fourier, rows, ctx.viewed(image, (outer, *image.shape[-2:])), width)
    if height == 1:
        as_output(ctx, y, rows)
        return
    transposed = ctx.new(float32, (outer, half, lines, 2), ".turned")
    _transpose(ctx, transposed, rows)
    columns = ctx.new(float32, (outer, half, height, 2), ".columns")
    ctx.add(Fourier, columns, transposed, height, True)
    spectrum = ctx.new(float32, (outer, height, half, 2), ".spectrum")
    _transpose(ctx, spectrum, columns)
    as_output(ctx, y, spectrum)


@rule(custom=("IRFFT2D", "Irfft2d"))
def irfft2d(ctx: LoweringContext) -> None:
    """Lower an inverse transform by forward transforms of conjugates: of columns, then of rows completed by
    symmetry."""
    x, height, width = _image(ctx, complex64)
    y = _result(ctx, (*x.shape[:-2], height, width), float32)
    outer, (m, n) = math.prod(x.shape[:-2]), x.shape[-2:]
    lines, half = min(m, height), width // 2 + 1
    source, available = ctx.viewed(pairs(ctx, x), (outer, m, n, 2)), min(n, half)
    steps = row_major(source.shape)
    transposed = ctx.new(float32, (outer, available, lines, 2), ".turned")
    ctx.add(Move, transposed, (source,), (IndexMap((0,) * 4, transposed.shape, 0, (steps[0], 2, steps[1], 1)),))
    conjugate = ctx.new(float32, transposed.shape, ".conjugate")
    product = apply("mul", arg(0, float32), arg(1, float32))
    ctx.add(Map, conjugate, (transposed, _signs(y, np.array([1, -1], np.float32))), product)
    columns = ctx.new(float32, (outer, available, height, 2), ".columns")
    ctx.add(Fourier, columns, conjugate, height, True)
    mirrored = [q for q in range(half, width) if width - q < available]  # columns whose counterparts are available
    completed, steps = ctx.new(float32, (outer, height, width, 2), ".completed"), row_major(columns.shape)
    boxes = [IndexMap((0,) * 4, (outer, height, available, 2), 0, (steps[0], 2, steps[1], 1))]
    if mirrored:
        first = mirrored[0]
        boxes.append(
            IndexMap(
                (0, 0, first, 0),
                (outer, height, len(mirrored), 2),
                (width - first) * steps[1],
                (steps[0], 2, -steps[1], 1),
            )
        )
    ctx.add(Move, completed, (columns,) * len(boxes), tuple(boxes), 0)
    signs = np.ones((width, 2), np.float32)
    signs[half:, 1] = -1
    spectrum, rows = (ctx.new(float32, completed.shape, f".{name}") for name in ("spectrum", "rows"))
    ctx.add(Map, spectrum, (completed, _signs(y, signs)), product)
    ctx.add(Fourier, rows, spectrum, width, True)
    real = ctx.viewed(part(ctx, rows, 0), y.shape)
    ctx.add(Map, y.buffer, (real,), apply("mul", arg(0, float32), scalar(1.0 / (height * width), float32)))


def _signs(y: RuleOperand, signs: np.ndarray) -> Buffer:
    return Buffer(f"{y.buffer.name}.signs{signs.ndim}", float32, signs.shape, signs)


def _cropped(ctx: LoweringContext, b: Buffer, height: int, width: int) -> Buffer:
    """Crop images to the lines and columns that the transform reads."""
    shape = (*b.shape[:-2], min(b.shape[-2], height), min(b.shape[-1], width))
    if shape == b.shape:
        return b
    cropped = ctx.new(float32, shape, ".cut")
    ctx.add(Move, cropped, (b,), (IndexMap((0,) * len(shape), shape, 0, row_major(b.shape)),))
    return cropped


def _transpose(ctx: LoweringContext, out: Buffer, b: Buffer) -> None:
    """Transpose complex images [n, h, w, 2]."""
    n, h, w, _ = row_major(b.shape)
    ctx.add(Move, out, (b,), (IndexMap((0,) * 4, out.shape, 0, (n, w, h, 1)),))


@rule(custom=("AudioSpectrogram",))
def spectrogram(ctx: LoweringContext) -> None:
    """Lower a spectrogram: windows are gathered as rows, weighted and transformed."""
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
    """Lower mel-frequency cepstral coefficients to two matrix products, mel bands and cosines, with a logarithm
    between."""
    x, rate = ctx.operand(0), int(ctx.constant(1).reshape(-1)[0])
    call: Any = ctx.node.call
    bands, count = int(call.filterbank_channel_count), int(call.dct_coefficient_count)
    if x.dtype is not float32 or len(x.shape) != 3 or not x.size or rate <= 0:
        raise NoLowering(f"coefficients of {x} at {rate} Hz")
    weights = call.mel_weights(x.shape[2], rate)
    if weights is None:
        raise NoLowering("the upper limit exceeds the frequencies")
    y = ctx.output((*x.shape[:2], count))
    roots = ctx.new(float32, x.shape, ".magnitudes")
    ctx.add(Map, roots, (x.buffer,), apply("sqrt", arg(0, float32)))
    energies = ctx.new(float32, (*x.shape[:2], bands), ".energies")
    log_energy = apply("log", apply("maximum", arg(0, float32), const(call.least_energy(), float32)))
    ctx.add(MatMul, energies, roots, _matrix(f"{y.buffer.name}.bands", weights.T), (), log_energy)
    cosines = _matrix(f"{y.buffer.name}.cosines", call.cosines())
    ctx.add(MatMul, y.buffer, energies, cosines, (), arg(0, float32))


def _matrix(name: str, matrix: np.ndarray) -> Buffer:
    return Buffer(name, float32, matrix.shape, np.ascontiguousarray(matrix, np.float32))


@rule(custom=("aeq.hadamard_rotation",))
def rotate(ctx: LoweringContext) -> None:
    """Lower a Hadamard rotation."""
    x, n = ctx.operand(0), int(ctx.node.call.hadamard_size)
    if x.dtype is not float32 or not x.size:
        raise NoLowering(f"{x} rotated by runs of {n}")
    ctx.add(Hadamard, ctx.output(x.shape).buffer, x.buffer, n)
