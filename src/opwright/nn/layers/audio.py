"""Layers of sound.

Lives here: MelSpectrogram.  Not here: transforms (../keras_ops/signal.py, ../../ops/signal).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...ops import array, linalg, math
from ...ops import signal as ops_signal
from ..keras_ops import signal
from .configurable_layer import ConfigurableLayer

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class MelSpectrogram(ConfigurableLayer):
    """Spectra of windows of sound by mel bands: [..., samples] to [..., num_mel_bins, windows].

    .. math:: y = 10 \\log_{10} \\frac{\\max(|stft(x)|^{mag\\_exp} A, min\\_power)}{\\max(|ref\\_power|, min\\_power)}

    fft_length: points of a transform; sequence_stride: samples between windows; sequence_length: samples of a window,
    fft_length by default. min_freq, max_freq: Hz, max_freq half of sampling_rate by default. power_to_db: False returns
    powers. top_db: the least value is this much below the greatest of the call.
    raises ValueError if windows are longer than transforms
    """

    def __init__(
        self,
        fft_length: int = 2048,
        sequence_stride: int = 512,
        sequence_length: int | None = None,
        window: Any = "hann",
        sampling_rate: float = 16000,
        num_mel_bins: int = 128,
        min_freq: float = 20.0,
        max_freq: float | None = None,
        power_to_db: bool = True,
        top_db: float = 80.0,
        mag_exp: float = 2.0,
        min_power: float = 1e-10,
        ref_power: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        length, highest = sequence_length or fft_length, max_freq or int(sampling_rate / 2)
        if fft_length < length:
            raise ValueError(
                "`fft_length` must be greater than or equal to `sequence_length`. Received: "
                f"`sequence_length`={length}, `fft_length`={fft_length}."
            )
        self._set_arguments(locals(), sequence_length=length, max_freq=highest)
        self._build_at_init()

    def call(self, inputs: Tensor) -> Tensor:
        """Return the spectra, in float32 at least."""
        dtype = self.compute_dtype if self.compute_dtype in ("float32", "float64") else "float32"
        real, imaginary = signal.stft(
            array.cast(inputs, dtype), self.sequence_length, self.sequence_stride, self.fft_length, self.window
        )
        power = math.pow(math.sqrt(math.square(real) + math.square(imaginary)), array.cast(self.mag_exp, real.dtype))
        bands = ops_signal.linear_to_mel_weight_matrix(
            self.num_mel_bins,
            self.fft_length // 2 + 1,
            self.sampling_rate,
            self.min_freq,
            self.max_freq,
            dtypes.float64,
        )
        spectra = linalg.tensordot(power, array.cast(bands, power.dtype), 1)
        if self.power_to_db:
            spectra = self._decibels(spectra)
        rank = int(spectra.shape.rank or 0)
        order = [*range(rank - 2), rank - 1, rank - 2]
        return array.cast(array.transpose(spectra, order), self.compute_dtype)

    def _decibels(self, power: Tensor) -> Tensor:
        least = array.cast(self.min_power, power.dtype)
        reference = math.maximum(math.abs(array.cast(self.ref_power, power.dtype)), least)
        ten = array.cast(10.0, power.dtype)
        scale = ten / math.log(ten)
        values = scale * (math.log(math.maximum(power, least)) - math.log(reference))
        return math.maximum(values, math.reduce_max(values) - array.cast(self.top_db, power.dtype))
