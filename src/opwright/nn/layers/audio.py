"""Layers of sound.

Lives here: MelSpectrogram, STFTSpectrogram.  Not here: transforms (../keras_ops/signal.py, ../../ops/signal).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...ops import array, linalg, math
from ...ops import signal as ops_signal
from .. import backend, initializers
from ..keras_ops import nn as nn_ops
from ..keras_ops import signal
from ..layer_calls import InputSpec
from .configurable_layer import ConfigurableLayer, data_format_name, padding_name

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


MODES = ("log", "magnitude", "psd", "real", "imag", "angle", "stft")


class STFTSpectrogram(ConfigurableLayer):
    """Short-time Fourier transforms of signals by convolutions, whose kernels are weights.

    mode: "log" or "magnitude" of the transform, "psd", its power with that of the other half, "real", "imag", "angle",
    or "stft", real and imaginary parts one after another. frame_step: half of frame_length by default; fft_length: the
    next power of two. window, periodic, scaling: see `keras.initializers.STFT`. padding: "valid" or "same".
    inputs: [batch, samples, channels] to [batch, frames, channels * bins], with expand_dims [batch, frames, bins,
    channels]; or channels first by data_format.
    raises ValueError for other values, TypeError for integers
    """

    def __init__(
        self,
        mode: str = "log",
        frame_length: int = 256,
        frame_step: int | None = None,
        fft_length: int | None = None,
        window: Any = "hann",
        periodic: bool = False,
        scaling: str | None = "density",
        padding: str = "valid",
        expand_dims: bool = False,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if frame_step is not None and not 1 <= frame_step <= frame_length:
            raise ValueError(
                "`frame_step` should be a positive integer not greater than `frame_length`. Received "
                f"frame_step={frame_step}, frame_length={frame_length}"
            )
        if fft_length is not None and fft_length < frame_length:
            raise ValueError(
                "`fft_length` should be not less than `frame_length`. Received "
                f"fft_length={fft_length}, frame_length={frame_length}"
            )
        if mode not in MODES:
            raise ValueError(f"Output mode is invalid, it must be one of {', '.join(MODES)}. Received: mode={mode}")
        self._kernels = {side: initializers.STFT(side, window, scaling, periodic) for side in ("real", "imag")}
        self._set_arguments(locals(), padding=padding_name(padding), data_format=data_format_name(data_format))
        self._step = frame_step or frame_length // 2
        self._bins = (fft_length or 1 << (frame_length - 1).bit_length()) // 2 + 1
        self.input_spec = InputSpec(ndim=3)

    def build(self, input_shape: Any) -> None:
        """Create the kernels that the mode takes."""
        for side, other in (("real", "imag"), ("imag", "real")):
            if self.mode != other:
                shape = (self.frame_length, 1, self._bins)
                kernel = self.add_weight(name=f"{side}_kernel", shape=shape, initializer=self._kernels[side])
                setattr(self, f"{side}_kernel", kernel)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the spectra."""
        if not inputs.dtype.is_floating:
            raise TypeError(f"Invalid input type. Expected a floating-point one. Received: input type={inputs.dtype}")
        x = inputs if self.data_format == "channels_first" else array.transpose(inputs, [0, 2, 1])
        if self.mode in ("real", "imag"):
            return self._arranged(self._parts(x, self.mode))
        real, imaginary = self._parts(x, "real"), self._parts(x, "imag")
        if self.mode == "stft":
            return self._arranged(array.concat([real, imaginary], -1))
        if self.mode == "angle":
            return self._arranged(math.atan2(imaginary, real))
        power = math.square(real) + math.square(imaginary)
        if self.mode == "psd":
            return self._arranged(power + array.pad(power[..., 1:-1], [[0, 0], [0, 0], [0, 0], [1, 1]]))
        least = array.cast(backend.epsilon(), power.dtype)
        magnitude = self._arranged(math.sqrt(math.maximum(power, least)))
        return magnitude if self.mode == "magnitude" else math.log(math.maximum(magnitude, least))

    def _parts(self, x: Tensor, side: str) -> Tensor:
        """Return products of the frames of [batch, channels, samples] and a kernel: [batch, channels, frames, bins]."""
        shape = array.shape(x)
        channels = shape[1] if x.shape[1] is None else x.shape[1]
        rows = array.reshape(x, [-1, shape[2] if x.shape[2] is None else x.shape[2], 1])
        kernel = array.cast(self._cast(getattr(self, f"{side}_kernel")), x.dtype)
        products = nn_ops.conv(rows, kernel, self._step, self.padding, "channels_last")
        frames = array.shape(products)[1] if products.shape[1] is None else products.shape[1]
        return array.reshape(products, [-1, channels, frames, self._bins])

    def _arranged(self, y: Tensor) -> Tensor:
        """Return [batch, channels, frames, bins] in the order of the outputs."""
        last = self.data_format == "channels_last"
        if self.expand_dims:
            return array.transpose(y, [0, 2, 3, 1]) if last else y
        y = array.transpose(y, [0, 2, 1, 3] if last else [0, 1, 3, 2])
        dims, sizes = y.shape.as_list(), array.shape(y)
        known: list[Any] = [sizes[i] if dims[i] is None else dims[i] for i in range(4)]
        merged = [-1, known[1], known[2] * known[3]] if last else [-1, known[1] * known[2], known[3]]
        return array.reshape(y, merged)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape."""
        last = self.data_format == "channels_last"
        batch, samples, channels = (input_shape[i] for i in ((0, 1, 2) if last else (0, 2, 1)))
        bins = self._bins * (2 if self.mode == "stft" else 1)
        frames = None
        if samples is not None:
            ends = samples if self.padding == "same" else samples - self.frame_length + 1
            frames = -(-ends // self._step)
        if self.expand_dims:
            return (batch, frames, bins, channels) if last else (batch, channels, frames, bins)
        merged = None if channels is None else channels * bins
        return (batch, frames, merged) if last else (batch, merged, frames)
