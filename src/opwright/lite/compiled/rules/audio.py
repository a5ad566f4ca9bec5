"""Sound as pictures: AudioSpectrogram, Mfcc.

Lives here: their rules.  Not here: the operators (lite/customs/audio.py), transforms of images
(compiler/lowering/spectral.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiler.loops.expressions import apply, arg, const
from ....compiler.loops.forms import Buffer, IndexMap, Map, MatMul, Move
from ....compiler.loops.numeric_forms import Fourier
from ....compiler.lowering.context import LoweringContext, NoLowering
from ....compiler.lowering.registry import rule
from ....compiler.lowering.spectral import part
from ....core.dtypes import float32
from ...customs.audio import FLOOR, length_of, mel_weights


@rule("AudioSpectrogram")
def spectrogram(ctx: LoweringContext) -> None:
    """Windows are rows of their own, times the window, transformed."""
    x = ctx.operand(0)
    call: Any = ctx.node.call
    size, stride = int(call.window_size), int(call.stride)
    if x.dtype is not float32 or len(x.shape) != 2 or x.shape[0] < size or not x.shape[1]:
        raise NoLowering(f"windows of {size} samples of {x}")
    samples, channels = x.shape
    count, length = 1 + (samples - size) // stride, length_of(size)
    y = ctx.output((channels, count, length // 2 + 1))
    shape = (channels, count, size)
    rows, shaped = ctx.new(float32, shape, ".windows"), ctx.new(float32, shape, ".shaped")
    ctx.form(Move, rows, (x.buffer,), (IndexMap((0, 0, 0), shape, 0, (1, stride * channels, channels)),))
    hann = (0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(size) / size)).astype(np.float32)
    window = Buffer(f"{y.buffer.name}.hann", float32, hann.shape, hann)
    ctx.form(Map, shaped, (rows, window), apply("mul", arg(0, float32), arg(1, float32)))
    waves = ctx.new(float32, (*y.shape, 2), ".spectrum")
    ctx.form(Fourier, waves, shaped, length)
    a, b = arg(0, float32), arg(1, float32)
    power = apply("fma", a, a, apply("mul", b, b))
    ctx.form(
        Map,
        y.buffer,
        (part(ctx, waves, 0), part(ctx, waves, 1)),
        power if call.magnitude_squared else apply("sqrt", power),
    )


@rule("Mfcc")
def mfcc(ctx: LoweringContext) -> None:
    """Two products with matrices, of the bands and of cosines; a logarithm between."""
    x, rate = ctx.operand(0), int(ctx.constant(1).reshape(-1)[0])
    call: Any = ctx.node.call
    bands, count = int(call.filterbank_channel_count), int(call.dct_coefficient_count)
    if x.dtype is not float32 or len(x.shape) != 3 or not x.size or rate <= 0:
        raise NoLowering(f"coefficients of {x} at {rate} Hz")
    weights = mel_weights(x.shape[2], rate, bands, call.lower_frequency_limit, call.upper_frequency_limit)
    if weights is None:
        raise NoLowering("the upper limit is beyond the frequencies")
    y = ctx.output((*x.shape[:2], count))
    roots = ctx.new(float32, x.shape, ".magnitudes")
    ctx.form(Map, roots, (x.buffer,), apply("sqrt", arg(0, float32)))
    energies = ctx.new(float32, (*x.shape[:2], bands), ".energies")
    loud = apply("log", apply("maximum", arg(0, float32), const(FLOOR, float32)))
    ctx.form(MatMul, energies, roots, _matrix(f"{y.buffer.name}.bands", weights.T), (), loud)
    angles = np.multiply.outer(np.arange(count) * (np.pi / bands), np.arange(bands) + 0.5)
    cosines = _matrix(f"{y.buffer.name}.cosines", (np.sqrt(2.0 / bands) * np.cos(angles)).T)
    ctx.form(MatMul, y.buffer, energies, cosines, (), arg(0, float32))


def _matrix(name: str, matrix: np.ndarray) -> Buffer:
    return Buffer(name, float32, matrix.shape, np.ascontiguousarray(matrix, np.float32))
