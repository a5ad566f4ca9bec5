"""Signals: Fourier and cosine transforms, frames, windows, spectra. Public names as in `ow.signal`."""

from .fourier import (
    fft,
    fft2d,
    fft3d,
    ifft,
    ifft2d,
    ifft3d,
    irfft,
    irfft2d,
    irfft3d,
    rfft,
    rfft2d,
    rfft3d,
)
from .fourier_nd import fftnd, fftshift, ifftnd, ifftshift, irfftnd, rfftnd
from .frames import (
    frame,
    hamming_window,
    hann_window,
    kaiser_bessel_derived_window,
    kaiser_window,
    overlap_and_add,
    vorbis_window,
)
from .spectra import (
    dct,
    idct,
    inverse_mdct,
    inverse_stft,
    inverse_stft_window_fn,
    linear_to_mel_weight_matrix,
    mdct,
    mfccs_from_log_mel_spectrograms,
    stft,
)

__all__ = [
    "dct", "fft", "fft2d", "fft3d", "fftnd", "fftshift", "frame", "hamming_window", "hann_window", "idct", "ifft",
    "ifft2d", "ifft3d", "ifftnd", "ifftshift", "inverse_mdct", "inverse_stft", "inverse_stft_window_fn", "irfft",
    "irfft2d", "irfft3d", "irfftnd", "kaiser_bessel_derived_window", "kaiser_window", "linear_to_mel_weight_matrix",
    "mdct", "mfccs_from_log_mel_spectrograms", "overlap_and_add", "rfft", "rfft2d", "rfft3d", "rfftnd", "stft",
    "vorbis_window",
]
