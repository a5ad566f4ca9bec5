"""Sound as pictures: AudioSpectrogram, Mfcc.

Lives here: the two operators.  Not here: Fourier transforms of images (math.py), the catalogue's (ops/signal/).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...core.dtypes import float32, float64, int32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from ..ops.definition import LiteDefinition
from ..ops.shapes import bounded, refuse, same, spec, text
from .definition import custom_operator


@custom_operator("AudioSpectrogram")
class AudioSpectrogramOp(LiteDefinition):
    """Spectrogram of sound: the squared magnitude, or the magnitude, of each window's transform.

    .. math:: y_{ctf} = |\\sum_j h_j x_{s t + j, c} e^{-2 \\pi i f j / n}|^2,
              \\quad h_j = (1 - \\cos(2 \\pi j / window\\_size)) / 2

    x: [samples, channels]; y: [channels, windows, n / 2 + 1]; n: the next power of 2 from window_size on; s: stride
    """

    x = Input((float32,), rank=2)
    y = Output(dtype=float32)
    window_size = Attr(int, default=0)
    stride = Attr(int, default=0)
    magnitude_squared = Attr(bool, default=False)

    def transform_length(op: Any) -> int:
        """Return the least power of two that is not below the size of a window."""
        result: int = 1 << (op.window_size - 1).bit_length()
        return result

    def hann_window(op: Any) -> np.ndarray:
        """Return the factors of a window's samples, float64."""
        result: np.ndarray = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(op.window_size) / op.window_size)
        return result

    def infer(op: Any) -> TensorSpec:
        if op.window_size < 2:
            raise refuse("window_size is too short", found=op.window_size, wanted="at least 2")
        if op.stride < 1:
            raise refuse("stride is not positive", found=op.stride, wanted="at least 1")
        samples, channels = op.x.spec.shape.dims or (None, None)
        bins = op.transform_length() // 2 + 1
        bounded((op.window_size,), float64, "the window")
        if samples is None:
            return spec((channels, None, bins), float32)
        windows = 0 if samples < op.window_size else 1 + (samples - op.window_size) // op.stride
        if channels is not None:
            bounded((channels, windows, bins), float32, "the spectrogram")
        return spec((channels, windows, bins), float32)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        size, n, hann = op.window_size, op.transform_length(), op.hann_window()
        windows = max(0, 1 + (len(x) - size) // op.stride)
        y = np.empty((x.shape[1], windows, n // 2 + 1), np.float32)
        for channel in range(x.shape[1]):
            for t in range(windows):  # one at a time: overlapping windows take many times the samples' memory
                part = x[t * op.stride : t * op.stride + size, channel]
                bins = np.fft.rfft(part * hann, n)
                y[channel, t] = bins.real * bins.real + bins.imag * bins.imag
        return y if op.magnitude_squared else np.sqrt(y)


@custom_operator("Mfcc")
class MfccOp(LiteDefinition):
    """Coefficients of sound as ears hear it: the cosine transform of the logarithm of energies in mel bands.

    .. math:: y_k = \\sqrt{2 / b} \\sum_j \\cos(\\pi k (j + 1/2) / b) \\log \\max(10^{-12}, \\sum_f w_{jf} \\sqrt{x_f})

    x: squared magnitudes [channels, windows, bins]; sample_rate: int32, one number; b: filterbank_channel_count;
    w: triangles whose corners lie evenly on the mel scale, 1127 log(1 + f / 700). Limits are cut to whole Hertz.
    y: [channels, windows, dct_coefficient_count], all 0 where the upper limit is beyond the input's frequencies
    """

    x = Input((float32,), rank=3)
    sample_rate = Input((int32,))
    y = Output(dtype=float32)
    upper_frequency_limit = Attr(int, default=0)
    lower_frequency_limit = Attr(int, default=0)
    filterbank_channel_count = Attr(int, default=0)
    dct_coefficient_count = Attr(int, default=0)

    def mel_weights(op: Any, bins: int, rate: int) -> np.ndarray | None:
        """Return the weights of the bands, float64 [bands, bins]; None if the limits are beyond the frequencies."""
        bands = op.filterbank_channel_count
        return _mel_weights(bins, rate, bands, op.lower_frequency_limit, op.upper_frequency_limit)

    def least_energy(op: Any) -> float:
        """Return the least energy of a band of which the logarithm is taken."""
        return 1e-12

    def cosines(op: Any) -> np.ndarray:
        """Return the matrix of the cosine transform, float64 [bands, coefficients]."""
        bands, count = op.filterbank_channel_count, op.dct_coefficient_count
        angles = np.multiply.outer(np.arange(count) * (np.pi / bands), np.arange(bands) + 0.5)
        result: np.ndarray = (np.sqrt(2.0 / bands) * np.cos(angles)).T
        return result

    def infer(op: Any) -> TensorSpec:
        bands, count = op.filterbank_channel_count, op.dct_coefficient_count
        if not same(op.sample_rate.spec.shape.num_elements(), 1):
            raise refuse("sample_rate is not one number", found=text(op.sample_rate.spec.shape), wanted="one number")
        if not 1 <= count <= bands:
            raise refuse(
                "dct_coefficient_count is out of its range",
                found=count,
                wanted=f"1 to filterbank_channel_count, {bands}",
            )
        if not 0 <= op.lower_frequency_limit < op.upper_frequency_limit:
            raise refuse(
                "the frequency limits are not a range",
                found=f"{op.lower_frequency_limit} to {op.upper_frequency_limit}",
                wanted="0 <= lower_frequency_limit < upper_frequency_limit",
            )
        channels, windows, bins = op.x.spec.shape.dims or (None,) * 3
        if bins is not None and bins < 2:
            raise refuse("too few frequencies", found=bins, wanted="at least 2")
        bounded((max(bins or 0, bands), bands), float64, "the bands' weights")
        return spec((channels, windows, count), float32)

    def compute(op: Any, x: np.ndarray, sample_rate: np.ndarray) -> np.ndarray:
        rate = int(sample_rate.reshape(-1)[0])
        if rate <= 0:
            raise refuse("sample_rate is not positive", found=rate, wanted="a number above 0")
        weights = op.mel_weights(x.shape[2], rate)
        if weights is None:
            return np.zeros((*x.shape[:2], op.dct_coefficient_count), np.float32)
        energies = np.sqrt(x.astype(np.float64)) @ weights.T
        result: np.ndarray = (np.log(np.maximum(energies, op.least_energy())) @ op.cosines()).astype(np.float32)
        return result


@functools.lru_cache(maxsize=8)
def _mel_weights(bins: int, rate: int, bands: int, low: int, high: int) -> np.ndarray | None:
    """Return the weight of each frequency in each band, float64 [bands, bins]; None if `high` exceeds the frequencies.

    Frequency 0 counts nowhere. A frequency lies on the falling side of one triangle and the rising one of the next.
    """
    spacing = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + low / spacing), int(high / spacing)
    weights = np.zeros((bands, bins))
    if last >= bins:
        return None
    bottom = _mel(low)
    centres = bottom + (_mel(high) - bottom) / (bands + 1) * np.arange(bands + 2)
    bins_in_range = np.arange(first, last + 1)
    mels = _mel(bins_in_range * spacing)
    band = (
        np.searchsorted(centres[1:-1], mels) - 1 if len(bins_in_range) else bins_in_range
    )  # the triangle it falls in; -1: before the first
    band = np.minimum(band, bands - 1)
    falls = (centres[band + 2] - mels) / (centres[band + 2] - centres[band + 1])
    weights[band[band >= 0], bins_in_range[band >= 0]] = falls[band >= 0]
    rising = band + 1 < bands
    weights[band[rising] + 1, bins_in_range[rising]] = 1.0 - falls[rising]
    weights.flags.writeable = False  # one for all who ask
    return weights


def _mel(frequency: float | np.ndarray) -> np.ndarray:
    return 1127.0 * np.log1p(np.asarray(frequency, np.float64) / 700.0)
