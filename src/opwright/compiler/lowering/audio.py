"""Spectra of sound: AudioSpectrogram, Mfcc.

Lives here: their rules.  Not here: transforms of images (spectral.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ..loops.expressions import apply, arg, const
from ..loops.forms import Buffer, IndexMap, Map, MatMul, Move
from ..loops.numeric_forms import Fourier
from .context import LoweringContext, NoLowering
from .registry import rule
from .spectral import part


@rule("AudioSpectrogram")
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
    ctx.form(Move, rows, (x.buffer,), (IndexMap((0, 0, 0), shape, 0, (1, stride * channels, channels)),))
    hann = call.hann_window().astype(np.float32)
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
    weights = call.mel_weights(x.shape[2], rate)
    if weights is None:
        raise NoLowering("the upper limit is beyond the frequencies")
    y = ctx.output((*x.shape[:2], count))
    roots = ctx.new(float32, x.shape, ".magnitudes")
    ctx.form(Map, roots, (x.buffer,), apply("sqrt", arg(0, float32)))
    energies = ctx.new(float32, (*x.shape[:2], bands), ".energies")
    loud = apply("log", apply("maximum", arg(0, float32), const(call.least_energy(), float32)))
    ctx.form(MatMul, energies, roots, _matrix(f"{y.buffer.name}.bands", weights.T), (), loud)
    cosines = _matrix(f"{y.buffer.name}.cosines", call.cosines())
    ctx.form(MatMul, y.buffer, energies, cosines, (), arg(0, float32))


def _matrix(name: str, matrix: np.ndarray) -> Buffer:
    return Buffer(name, float32, matrix.shape, np.ascontiguousarray(matrix, np.float32))
