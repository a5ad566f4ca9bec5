"""Complex numbers and signals: Real, Imag, ComplexAbs, Complex and their builtins; AudioSpectrogram, Mfcc;
aeq.hadamard_rotation.

Lives here: these rules; complex numbers as pairs of floats (`parts_of`, `join`), products of complex numbers.
Not here: Fourier transforms (fourier.py), their rows (../kernels/fourier.py), moves of complex numbers, which are 8
bytes (views.py), complex arithmetic of the catalogue (../complex_parts.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import complex128, float32, float64
from ..loops.buffers import Buffer, IndexMap, row_major
from ..loops.domain_ops import Fourier, Hadamard
from ..loops.expressions import Expr, apply, arg, const, convert
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
    if not y.dtype.is_complex or real.dtype is not y.dtype.real_dtype:
        raise NoLowering(f"elements of type {y.dtype.name} of parts of {real.dtype.name}")
    as_output(ctx, y, as_pairs(ctx, real, imaginary))


def as_pairs(ctx: LoweringContext, real: Buffer, imaginary: Buffer) -> Buffer:
    """Return pairs [..., 2] of two parts of one shape."""
    shape = real.shape
    result = ctx.new(real.dtype, (*shape, 2), f".{len(ctx.ops)}.pairs")
    steps = (*row_major(shape), 1)
    boxes = tuple(IndexMap((*(0,) * len(shape), k), (*shape, 1), 0, steps) for k in range(2))
    ctx.add(Move, result, (real, imaginary), boxes)
    return result


def as_output(ctx: LoweringContext, y: RuleOperand, interleaved: Buffer) -> None:
    """Write interleaved pairs to the output."""
    ctx.add(Reinterpret, y.buffer, interleaved)


@rule("REAL", "IMAG", "Real", "Imag", of_complex=True)
def real_or_imaginary(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if not x.dtype.is_complex or y.dtype is not x.dtype.real_dtype:
        raise NoLowering(f"parts of {x.dtype.name} of type {y.dtype.name}")
    _extract(ctx, y.buffer, pairs(ctx, x), int(ctx.operator in ("IMAG", "Imag")))


@rule("COMPLEX_ABS", "ComplexAbs", of_complex=True)
def magnitude(ctx: LoweringContext) -> None:
    """Lower magnitudes, in float64 so that no square overflows; the magnitude is infinite if a part is."""
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


@rule("Complex", custom=("Complex",), of_complex=True)
def complex_(ctx: LoweringContext) -> None:
    a, b = ctx.operand(0), ctx.operand(1)
    y = ctx.output(broadcast(a, b))
    if a.dtype is not b.dtype or a.dtype not in (float32, float64):
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
