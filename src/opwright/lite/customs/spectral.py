"""Fourier transforms of images under TensorFlow's names, and what makes their input: RFFT2D, IRFFT2D, Complex.

Lives here: these operators.  Not here: the builtin RFFT2D (lite/ops/spectral.py), sound (audio.py).

Unlike the builtin one these take lengths that are no powers of 2, as TensorFlow's own do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import complex64, complex128, float32, int32
from ...core.specs import TensorSpec
from ...ops.definition import Input, Output
from ..ops.shapes import bounded, broadcast, ints, refuse, same, spec, text
from .definition import custom_operator


def _shape(op: Any, dtype: Any, columns: Any) -> TensorSpec:
    """The output's spec. columns: from the second length, the last size."""
    dims, lengths = op.x.spec.shape.dims, ints(op.fft_length)
    if not same(op.fft_length.spec.shape[0], 2):
        raise refuse("fft_length is not two numbers", found=text(op.fft_length.spec.shape), wanted="[h, w]")
    if dims is not None and len(dims) < 2:
        raise refuse("no image", found=text(dims), wanted="two dimensions or more")
    if lengths is not None and min(lengths) < 1:
        raise refuse("an fft_length is not positive", found=lengths, wanted="at least 1")
    if dims is None or lengths is None:
        return spec(None if dims is None else (*dims[:-2], None, None), dtype)
    if None not in dims:
        bounded((*dims[:-2], *lengths), complex128, "the padded image")
    return spec((*dims[:-2], lengths[0], columns(lengths[1])), dtype)


@custom_operator("Complex")
class Complex:
    """Complex numbers of their two parts.

    .. math:: y = real + i \\cdot imag

    real, imag: of shapes that broadcast
    """

    real = Input((float32,))
    imag = Input((float32,))
    y = Output(dtype=complex64)

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(broadcast(op.real, op.imag), complex64)

    def compute(op: Any, real: Any, imag: Any) -> Any:
        y = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.complex64)
        y.real, y.imag = real, imag
        return y


@custom_operator("RFFT2D", "Rfft2d")
class RFFT2D:
    """The Fourier transform of real images; the last half of what is symmetric is left out.

    .. math:: y_{pq} = \\sum_{jk} x_{jk} e^{-2 \\pi i (j p / h + k q / w)}

    x: [..., m, n], cut or filled with zeros to [..., h, w]; fft_length: int32 [2], h and w;
    y: complex64 [..., h, w / 2 + 1]
    """

    x = Input((float32,))
    fft_length = Input((int32,), rank=1)
    y = Output(dtype=complex64)

    def infer(op: Any) -> TensorSpec:
        return _shape(op, complex64, lambda w: w // 2 + 1)

    def compute(op: Any, x: Any, fft_length: Any) -> Any:
        h, w = (int(n) for n in fft_length)
        if 0 in x.shape:
            return np.zeros((*x.shape[:-2], h, w // 2 + 1), np.complex64)
        return np.fft.rfft2(x.astype(np.float64), (h, w)).astype(np.complex64)


@custom_operator("IRFFT2D", "Irfft2d")
class IRFFT2D:
    """The real image of which x is the first half of the Fourier transform.

    .. math:: y_{jk} = (h w)^{-1} \\sum_{pq} x_{pq} e^{2 \\pi i (j p / h + k q / w)}

    x: complex64 [..., m, n], cut or filled with zeros to [..., h, w / 2 + 1]; fft_length: int32 [2], h and w;
    y: float32 [..., h, w]
    """

    x = Input((complex64,))
    fft_length = Input((int32,), rank=1)
    y = Output(dtype=float32)

    def infer(op: Any) -> TensorSpec:
        return _shape(op, float32, lambda w: w)

    def compute(op: Any, x: Any, fft_length: Any) -> Any:
        h, w = (int(n) for n in fft_length)
        if 0 in x.shape:
            return np.zeros((*x.shape[:-2], h, w), np.float32)
        return np.fft.irfft2(x.astype(np.complex128), (h, w)).astype(np.float32)
