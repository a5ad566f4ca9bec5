"""Fourier transforms of images and volumes: FFT to IRFFTND, and RFFT2D, IRFFT2D of files.

Lives here: these rules, axis by axis; transforms whose length is no power of two.
Not here: transforms of rows (../kernels/fourier.py), complex numbers as pairs of floats (spectral.py).

A length of many factors but 2 is Bluestein's: with w[j] = exp(-pi i j^2 / n), as j k = (j^2 + k^2 - (k - j)^2) / 2,

    y[k] = w[k] sum_j (x[j] w[j]) conj w[k - j]

a convolution, computed by transforms of a power of two, m >= 2 n - 1. The transform of conj w is a constant.
Source: Bluestein, A linear filtering approach to the computation of discrete Fourier transform (1970).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...core.dtypes import DType, complex64, complex128, float32, float64
from ..loops.buffers import Buffer, IndexMap, row_major
from ..loops.domain_ops import Fourier
from ..loops.expressions import apply, arg
from ..loops.ops import Map, Move
from .context import LoweringContext, NoLowering, RuleOperand
from .registry import rule
from .spectral import as_output, as_pairs, pairs, part

MOST_BY_MATRIX = 64
"""Greatest length in float32 that is a product with a matrix, unless it is a power of two that has stages."""
FEWEST_BY_STAGES = 64
"""Least power of two that is computed by stages for every target, whose vectors have up to 16 elements."""


@rule("FFT", "FFT2D", "FFT3D", "FFTND", "IFFT", "IFFT2D", "IFFT3D", "IFFTND", of_complex=True)
def complex_transform(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    lengths, axes = _lengths_and_axes(ctx, x)
    y = _output(ctx, x, lengths, axes, x.dtype)
    values = pairs(ctx, x)
    for axis, length in zip(axes, lengths):
        values = _along(ctx, values, axis, length, ctx.operator.startswith("I"))
    as_output(ctx, y, values)


@rule("RFFT", "RFFT2D", "RFFT3D", "RFFTND", lite=("RFFT2D",), custom=("RFFT2D", "Rfft2d"), of_complex=True)
def real_transform(ctx: LoweringContext) -> None:
    """Lower a real transform of rows, then complex ones along the other axes."""
    x = ctx.operand(0)
    lengths, axes = _lengths_and_axes(ctx, x)
    if x.dtype not in (float32, float64):
        raise NoLowering(f"a transform of {x}")
    dtype = complex64 if x.dtype is float32 else complex128
    y = _output(ctx, x, (*lengths[:-1], lengths[-1] // 2 + 1), axes, dtype)
    values = _along(ctx, ctx.viewed(x.buffer, (*x.shape, 1)), axes[-1], lengths[-1], False)
    for axis, length in zip(axes[:-1], lengths[:-1]):
        values = _along(ctx, values, axis, length, False)
    as_output(ctx, y, values)


@rule("IRFFT", "IRFFT2D", "IRFFT3D", "IRFFTND", custom=("IRFFT2D", "Irfft2d"), of_complex=True)
def inverse_real_transform(ctx: LoweringContext) -> None:
    """Lower an inverse transform along all axes but the last, then of rows completed by symmetry."""
    x = ctx.operand(0)
    lengths, axes = _lengths_and_axes(ctx, x)
    if not x.dtype.is_complex:
        raise NoLowering(f"a transform of {x}")
    y = _output(ctx, x, lengths, axes, x.dtype.real_dtype)
    values = pairs(ctx, x)
    for axis, length in zip(axes[:-1], lengths[:-1]):
        values = _along(ctx, values, axis, length, True)
    axis, length = axes[-1], lengths[-1]
    outer, _, inner, _ = _around(values, axis)
    rows = _rows(ctx, _completed(ctx, _as_rows(ctx, values, axis, length // 2 + 1), length), length, True)
    real = part(ctx, rows, 0)
    if inner == 1:
        ctx.add(Map, y.buffer, (ctx.viewed(real, y.shape),), arg(0, y.dtype))
        return
    with ctx.reshaped(y, (outer, length, inner)) as out:
        steps = (inner * length, 1, length)
        ctx.add(Move, out, (real,), (IndexMap((0,) * 3, out.shape, 0, steps),))


def _lengths_and_axes(ctx: LoweringContext, x: RuleOperand) -> tuple[Sequence[int], Sequence[int]]:
    """Return the lengths of a transform and the axes that have them. Raises NoLowering for unknown or empty ones."""
    rank = len(x.shape)
    given = ctx.attr("axes")
    if len(ctx.node.inputs) > 1:
        lengths = [int(n) for n in ctx.constant(1).reshape(-1)]
        axes = [int(a) % rank for a in given] if given else list(range(rank - len(lengths), rank))
    else:
        axes = list(range(rank - int(ctx.operator[-2]) if ctx.operator.endswith("D") else rank - 1, rank))
        lengths = [x.shape[a] for a in axes]
    fits = len(axes) == len(lengths) == len(set(axes)) and min(axes, default=-1) >= 0
    if not fits or min(lengths, default=0) < 1 or not x.size:
        raise NoLowering(f"a transform of {x} by {lengths}")
    return lengths, axes


def _shape(shape: Sequence[int], lengths: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return a shape with these lengths along axes."""
    by_axis = dict(zip(axes, lengths))
    return tuple([by_axis.get(axis, n) for axis, n in enumerate(shape)])


def _output(
    ctx: LoweringContext, x: RuleOperand, lengths: Sequence[int], axes: Sequence[int], dtype: DType
) -> RuleOperand:
    """Return the output, of these lengths. Raises NoLowering if it is declared otherwise."""
    y = ctx.output()
    if y.dtype is not dtype or y.shape != _shape(x.shape, lengths, axes):
        raise NoLowering(f"a transform of {x} to {y}")
    return y


def _around(values: Buffer, axis: int) -> tuple[int, int, int, int]:
    """Return the numbers of elements before an axis, along it and behind it, and of parts of one element."""
    *shape, parts = values.shape
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]), parts


def _along(ctx: LoweringContext, values: Buffer, axis: int, length: int, inverse: bool) -> Buffer:
    """Transform complex numbers [..., 2], or real ones [..., 1], along an axis, cropped or padded to the length."""
    outer, _, inner, _ = _around(values, axis)
    rows = _rows(ctx, _as_rows(ctx, values, axis, length), length, inverse)
    size = rows.shape[1]
    shape = (*values.shape[:axis], size, *values.shape[axis + 1 : -1], 2)
    if inner == 1:
        return ctx.viewed(rows, shape)
    result = ctx.new(rows.dtype, (outer, size, inner, 2))
    _move(ctx, result, rows, (inner * size * 2, 2, size * 2, 1))
    return ctx.viewed(result, shape)


def _as_rows(ctx: LoweringContext, values: Buffer, axis: int, length: int) -> Buffer:
    """Return the elements along an axis as rows [rows, at most length, parts]."""
    outer, n, inner, parts = _around(values, axis)
    kept = min(n, length)
    if inner == 1 and kept == n:
        return ctx.viewed(values, (outer, n, parts))
    rows = ctx.new(values.dtype, (outer, inner, kept, parts))
    _move(ctx, rows, values, (n * inner * parts, parts, inner * parts, 1))
    return ctx.viewed(rows, (outer * inner, kept, parts))


def _move(ctx: LoweringContext, out: Buffer, source: Buffer, steps: tuple[int, ...]) -> None:
    ctx.add(Move, out, (source,), (IndexMap((0,) * len(out.shape), out.shape, 0, steps),))


def _rows(ctx: LoweringContext, rows: Buffer, size: int, inverse: bool) -> Buffer:
    """Transform rows [rows, n, 2], or [rows, n, 1] of real numbers: [rows, size or size / 2 + 1, 2]."""
    count, n, parts = rows.shape
    is_power, is_short = not size & (size - 1), size <= MOST_BY_MATRIX and rows.dtype is float32
    if not is_short and not (is_power and size >= FEWEST_BY_STAGES):
        return _by_chirp(ctx, rows, size, inverse)
    if parts == 1:
        spectra = ctx.new(rows.dtype, (count, size // 2 + 1, 2))
        ctx.add(Fourier, spectra, ctx.viewed(rows, (count, n)), size)
        return spectra
    spectra = ctx.new(rows.dtype, (count, size, 2))
    ctx.add(Fourier, spectra, rows, size, True, inverse)
    return spectra


def _by_chirp(ctx: LoweringContext, rows: Buffer, size: int, inverse: bool) -> Buffer:
    """Transform rows by Bluestein's algorithm; of real ones, return the first half of the spectrum."""
    count, n, parts = rows.shape
    m = max(1 << (2 * size - 2).bit_length(), FEWEST_BY_STAGES)
    half_turns = np.arange(size, dtype=np.int64) ** 2 % (2 * size)
    chirp = np.exp((1j if inverse else -1j) * np.pi / size * half_turns)
    wave = np.zeros(m, np.complex128)
    wave[:size] = chirp.conj()
    wave[m - size + 1 :] = chirp[:0:-1].conj()
    kept = size if parts == 2 else size // 2 + 1
    weighted = _times(ctx, rows, chirp[:n])
    spectra, convolved = (ctx.new(rows.dtype, (count, m, 2), f".{name}") for name in ("spectra", "convolved"))
    ctx.add(Fourier, spectra, weighted, m, True)
    ctx.add(Fourier, convolved, _times(ctx, spectra, np.fft.fft(wave)), m, True, True)
    first = ctx.new(rows.dtype, (count, kept, 2), ".first")
    _move(ctx, first, convolved, row_major(convolved.shape))
    return _times(ctx, first, chirp[:kept] / (size if inverse else 1))


def _times(ctx: LoweringContext, rows: Buffer, factors: np.ndarray) -> Buffer:
    """Multiply numbers [rows, n, 2], or real ones [rows, n, 1], by a complex constant [n]."""
    dtype, shape = rows.dtype, rows.shape[:-1]
    c, d = (
        Buffer(f"{rows.name}.{name}", dtype, (1, len(factors)), np.ascontiguousarray(v[None], dtype.np))
        for name, v in (("cosines", factors.real), ("sines", factors.imag))
    )
    a = part(ctx, rows, 0) if rows.shape[-1] == 2 else ctx.viewed(rows, shape)
    results = []
    for name, op, (p, q) in (("real", "sub", (c, d)), ("imaginary", "add", (d, c))):
        results.append(ctx.new(dtype, shape, f".{rows.name}.{name}"))
        product = apply("mul", arg(0, dtype), arg(1, dtype))
        if rows.shape[-1] == 1:
            ctx.add(Map, results[-1], (a, p), product)
        else:
            other = apply("mul", arg(2, dtype), arg(3, dtype))
            ctx.add(Map, results[-1], (a, p, part(ctx, rows, 1), q), apply(op, product, other))
    return as_pairs(ctx, *results)


def _completed(ctx: LoweringContext, rows: Buffer, length: int) -> Buffer:
    """Return spectra of real rows with the second half, the conjugates of the first; what is missing is 0."""
    count, available, _ = rows.shape
    half = length // 2 + 1
    mirrored = [q for q in range(half, length) if length - q < available]  # whose counterparts are available
    completed, steps = ctx.new(rows.dtype, (count, length, 2), ".completed"), row_major(rows.shape)
    boxes = [IndexMap((0, 0, 0), rows.shape, 0, steps)]
    if mirrored:
        first = mirrored[0]
        begin = (length - first) * steps[1]
        boxes.append(IndexMap((0, first, 0), (count, len(mirrored), 2), begin, (steps[0], -steps[1], 1)))
    ctx.add(Move, completed, (rows,) * len(boxes), tuple(boxes), 0)
    signs = np.ones((length, 2), rows.dtype.np)
    signs[half:, 1] = -1
    spectra = ctx.new(rows.dtype, completed.shape, ".spectrum")
    factors = Buffer(f"{completed.name}.signs", rows.dtype, signs.shape, signs)
    ctx.add(Map, spectra, (completed, factors), apply("mul", arg(0, rows.dtype), arg(1, rows.dtype)))
    return spectra
