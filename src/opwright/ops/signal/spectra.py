"""Spectral analysis: discrete cosine transforms, short-time transforms, the mel scale.

Lives here: dct and idct, by Fourier transforms of double length; stft, inverse_stft, inverse_stft_window_fn, mdct,
inverse_mdct; linear_to_mel_weight_matrix, mfccs_from_log_mel_spectrograms.
Not here: frames and windows (frames.py), Fourier transforms (fourier.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...core.dtypes import as_dtype
from .. import array, dispatch
from ..math.arithmetic import maximum, minimum
from ..math.complex_numbers import complex, real
from ..math.elementary import cos, log, rsqrt, sin, square
from ..math.reduction import Sum
from .fourier import check_min_rank, irfft, rfft
from .frames import crop_or_pad_last, frame, hann_window, overlap_and_add, vorbis_window

if TYPE_CHECKING:
    from ..tensor import Tensor


def dct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Tensor:
    """Compute the discrete cosine transform of the last dimension, of size N.

    .. math::
        X_k = x_0 + (-1)^k x_{N-1} + 2 \\sum_{j=1}^{N-2} x_j \\cos \\frac{\\pi j k}{N - 1} \\quad (type\\ 1)
        X_k = 2 \\sum_j x_j \\cos \\frac{\\pi (2 j + 1) k}{2 N} \\quad (type\\ 2)
        X_k = x_0 + 2 \\sum_{j \\ge 1} x_j \\cos \\frac{\\pi j (2 k + 1)}{2 N} \\quad (type\\ 3)
        X_k = 2 \\sum_j x_j \\cos \\frac{\\pi (2 j + 1) (2 k + 1)}{4 N} \\quad (type\\ 4)

    input: [..., N], float32 or float64. n: crop the input or pad it with zeros to this size first. norm: "ortho" for
    the orthonormal transform, unsupported for type 1.
    raises ValueError for other types and norms, an n below 1, or type 1 of fewer than 2 samples; NotImplementedError
    for an axis other than the last
    """
    return array.identity(_dct(_check_arguments(input, type, n, axis, norm), type, norm), name=name)


def idct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Tensor:
    """Compute the inverse of `dct` of the same type, up to scale.

    Types 2 and 3 are inverses of each other, 1 and 4 of themselves.
    Without norm="ortho" the result is scaled by 2 N, for type 1 by 2 (N - 1).

    .. math:: y = dct(input, \\{1: 1, 2: 3, 3: 2, 4: 4\\}[type])

    n, errors: as in `dct`.
    """
    x = _check_arguments(input, type, n, axis, norm)
    return array.identity(_dct(x, {1: 1, 2: 3, 3: 2, 4: 4}[type], norm), name=name)


def _check_arguments(input: Any, type: int, n: int | None, axis: int, norm: str | None) -> Tensor:
    """Check the arguments of a cosine transform; return the input as a tensor with n samples."""
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if type not in (1, 2, 3, 4):
        raise ValueError("Types I, II, III and IV (I)DCT are supported.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")
    x = dispatch.to_tensor(input)
    if not x.dtype.is_floating:
        raise TypeError(f"dct takes float32 or float64; found {x.dtype.name}")
    x = x if n is None else crop_or_pad_last(x, n)
    if type == 1:
        if norm == "ortho":
            raise ValueError("Normalization is not supported for the Type-I DCT.")
        if x.shape.dims and x.shape.dims[-1] is not None and x.shape.dims[-1] < 2:
            raise ValueError("Type-I DCT requires the dimension to be greater than one.")
    return x


def _phase_factors(size: Any, samples: Any, sign: int) -> Tensor:
    """Return e^(i sign pi k / 2N) for k from 0 to N - 1."""
    angle = array.cast(array.range(samples), size.dtype) * (math.pi / 2) / size
    return complex(cos(angle), sin(angle) * sign)


def _weights(size: Any, samples: Any, first: float) -> Tensor:
    """Return N weights 1 / sqrt(2N), the first multiplied by `first`."""
    k = array.range(samples)
    scale = rsqrt(size * 2)
    return array.where(k == 0, scale * first, scale)


def _dct(x: Tensor, type: int, norm: str | None) -> Tensor:
    samples: Any = x.shape.dims[-1] if x.shape.dims else None
    if samples == 0:
        return x
    if samples is None:
        samples = array.shape_op(x)[-1]
    size = array.cast(dispatch.to_tensor(samples), x.dtype)
    if type == 1:
        spectrum: Tensor = real(rfft(array.concat([x, array.reverse(x[..., 1:-1], [-1])], -1)))
    elif type == 2:
        spectrum = real(rfft(x, [2 * samples])[..., :samples] * _phase_factors(size, samples, -1)) * 2
        spectrum = spectrum if norm is None else spectrum * _weights(size, samples, math.sqrt(0.5))
    elif type == 3:
        x = x if norm is None else x * _weights(size, samples, math.sqrt(2))
        phased = complex(x, array.zeros_like(x)) * _phase_factors(size, samples, 1)
        spectrum = irfft(phased, [2 * samples])[..., :samples] * (size * 2)
    else:
        spectrum = _dct(crop_or_pad_last(x, 2 * samples), 2, None)[..., 1::2]
        spectrum = spectrum if norm is None else spectrum * rsqrt(size * 2)
    return spectrum


WindowFn = Callable[..., Any]


def _scalar(value: Any, name: str) -> Tensor | int:
    """Return an int if the value is known, else a tensor. Raises ValueError for values that are not scalars."""
    tensor = dispatch.to_tensor(value)
    if tensor.shape.rank not in (0, None):
        raise ValueError(f"{name} is a scalar; found one of shape {tensor.shape}")
    return tensor if tensor.constant is None else int(tensor.constant)


def _transform_length(frame_length: Any, fft_length: Any) -> Tensor | int:
    """Return fft_length, by default the smallest power of 2 not less than frame_length."""
    if fft_length is not None:
        return _scalar(fft_length, "fft_length")
    if isinstance(frame_length, int):
        return 1 << max(frame_length - 1, 0).bit_length()
    powers = array.cast([1 << i for i in range(31)], frame_length.dtype)
    return powers[array.searchsorted(powers, array.reshape(frame_length, [1]))[0]]


def _window(window_fn: WindowFn | None, length: Any, dtype: Any) -> Tensor | None:
    return None if window_fn is None else window_fn(length, dtype=dtype)


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: WindowFn | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """Compute the short-time Fourier transform: the transform of windowed frames.

    .. math:: X_{f, k} = \\sum_j w_j x_{f \\cdot frame\\_step + j} e^{-2 \\pi i j k / fft\\_length}

    signals: [..., samples]; result: complex [..., frames, fft_length / 2 + 1]. fft_length: by default the smallest
    power of 2 not less than frame_length. window_fn: returns the w_j for frame_length and dtype=; None for no window.
    pad_end: as in `frame`.
    raises ValueError for signals of rank 0, or lengths that are not scalars
    """
    signals = dispatch.to_tensor(signals)
    length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
    frames = frame(signals, length, step, pad_end=pad_end)
    window = _window(window_fn, length, frames.dtype)
    if window is not None:
        frames = frames * window
    return rfft(frames, [_transform_length(length, fft_length)], name=name)


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: WindowFn = hann_window, name: str | None = None
) -> Callable[..., Any]:
    """Return the window_fn with which `inverse_stft` inverts `stft` with forward_window_fn.

    .. math:: v_j = w_j / \\sum_i w_{j + i \\cdot frame\\_step}^2

    The result is a function of frame_length and dtype=, which returns a window [frame_length], 0 where the sum is 0.
    """

    def window_fn(frame_length: Any, dtype: Any) -> Tensor:
        step, length = _scalar(frame_step, "frame_step"), _scalar(frame_length, "frame_length")
        window = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        parts = array.reshape(crop_or_pad_last(square(window), overlaps * step), array.stack([overlaps, step]))
        sums = array.tile(Sum(parts, axis=(0,)), array.reshape(overlaps, [1]))[:length]
        nonzero = sums != 0
        normalized = window / array.where(nonzero, sums, array.ones_like(sums))
        return array.where(nonzero, normalized, array.zeros_like(window), name=name)

    return window_fn


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: WindowFn | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """Reconstruct signals from the result of `stft`. window_fn: for exact inversion, from `inverse_stft_window_fn`.

    .. math:: x_t = \\sum_{f, j : f \\cdot frame\\_step + j = t} v_j \\, irfft(stfts_f)_j

    stfts: complex [..., frames, fft_length / 2 + 1]; result: [..., (frames - 1) frame_step + frame_length].
    fft_length: as in `stft`.
    raises InvalidArgumentError for a rank below 2, ValueError for lengths that are not scalars
    """
    stfts = dispatch.to_tensor(stfts)
    check_min_rank(stfts.spec, 2)
    length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
    frames = crop_or_pad_last(irfft(stfts, [_transform_length(length, fft_length)]), length)
    window = _window(window_fn, length, frames.dtype)
    return overlap_and_add(frames if window is None else frames * window, step, name=name)


def mdct(
    signals: Any,
    frame_length: Any,
    window_fn: WindowFn | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the modified discrete cosine transform of frames that overlap by half.

    .. math:: X_{f, k} = 2 \\sum_{j=0}^{2N-1} w_j x_{f N + j}
        \\cos\\left(\\frac{\\pi}{N} (j + \\frac{1}{2} + \\frac{N}{2}) (k + \\frac{1}{2})\\right)

    signals: [..., samples]; 2 N: frame_length; result: [..., frames, N]. window_fn: returns the w_j, as in `stft`; None
    for sqrt(1/2). norm: "ortho" divides by sqrt(2 N). pad_end: as in `frame`.
    raises ValueError for a frame_length that is not a multiple of 4
    """
    signals = dispatch.to_tensor(signals)
    length = _scalar(frame_length, "frame_length")
    if isinstance(length, int) and length % 4:
        raise ValueError("The frame length must be a multiple of 4.")
    frames = frame(signals, length, length // 2, pad_end=pad_end)
    window = _window(window_fn, length, frames.dtype)
    frames = frames * (math.sqrt(0.5) if window is None else window)
    quarter = length // 4
    a, b = frames[..., :quarter], frames[..., quarter : 2 * quarter]
    c, d = frames[..., 2 * quarter : 3 * quarter], frames[..., 3 * quarter :]
    folded = array.concat([-array.reverse(c, [-1]) - d, a - array.reverse(b, [-1])], -1)
    return dct(folded, type=4, norm=norm, name=name)


def inverse_mdct(
    mdcts: Any, window_fn: WindowFn | None = vorbis_window, norm: str | None = None, name: str | None = None
) -> Tensor:
    """Reconstruct signals from the result of `mdct` with the same window_fn and norm.

    .. math:: x_t = \\sum_{f, j : f N + j = t} \\frac{w_j}{N} \\sum_k mdcts_{f, k}
        \\cos\\left(\\frac{\\pi}{N} (j + \\frac{1}{2} + \\frac{N}{2}) (k + \\frac{1}{2})\\right)

    mdcts: [..., frames, N]; result: [..., (frames + 1) N]. The first and last N samples, which belong to one
    frame only, are not restored. window_fn, norm: as in `mdct`.
    raises InvalidArgumentError for a rank below 2
    """
    mdcts = dispatch.to_tensor(mdcts)
    check_min_rank(mdcts.spec, 2)
    half = mdcts.shape.dims[-1] if mdcts.shape.dims else None
    if half is None:
        half = array.shape_op(mdcts)[-1]
    folded = dct(mdcts, type=4, norm=norm)
    if norm is None:
        folded = folded * (0.5 / array.cast(dispatch.to_tensor(half), folded.dtype))
    quarter = half // 2
    first, second = folded[..., :quarter], folded[..., quarter:]
    unfolded = array.concat([second, -array.reverse(second, [-1]), -array.reverse(first, [-1]), -first], -1)
    window = _window(window_fn, 2 * half, folded.dtype)
    return overlap_and_add(unfolded * (math.sqrt(0.5) if window is None else window), half, name=name)


# The mel scale of the Hidden Markov Model Toolkit: mel(f) = 1127 ln(1 + f / 700)
_BREAK_HERTZ, _MELS = 700.0, 1127.0


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Return the matrix that maps linear-frequency spectra to the mel scale: [num_spectrogram_bins, num_mel_bins].

    .. math:: A_{ij} = \\max\\left(0, \\min\\left(\\frac{m(f_i) - e_j}{e_{j+1} - e_j},
        \\frac{e_{j+2} - m(f_i)}{e_{j+2} - e_{j+1}}\\right)\\right), \\quad m(f) = 1127 \\ln(1 + f / 700)

    f_i: num_spectrogram_bins frequencies from 0 to sample_rate / 2, the first with weight 0; e_j: num_mel_bins + 2
    points on the mel scale from lower_edge_hertz to upper_edge_hertz, the corners of triangular filters.
    raises ValueError for nonpositive bins or rate, edges in the wrong order or above sample_rate / 2, or a dtype that
    is not floating
    """
    dtype = as_dtype(dtype)
    rate = dispatch.to_tensor(sample_rate)
    static_rate = None if rate.constant is None else rate.constant.item()
    if num_mel_bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {num_mel_bins}")
    if lower_edge_hertz < 0.0:
        raise ValueError(f"lower_edge_hertz must be non-negative. Got: {lower_edge_hertz}")
    if lower_edge_hertz >= upper_edge_hertz:
        raise ValueError(f"lower_edge_hertz {lower_edge_hertz:.1f} >= upper_edge_hertz {upper_edge_hertz:.1f}")
    if static_rate is not None and static_rate <= 0.0:
        raise ValueError(f"sample_rate must be positive. Got: {static_rate}")
    if static_rate is not None and upper_edge_hertz > static_rate / 2:
        raise ValueError(
            "upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). "
            f"Got {upper_edge_hertz} for sample_rate: {static_rate}"
        )
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Got: {dtype}")
    zero = array.zeros([], dtype)
    frequencies = array.linspace(zero, array.cast(rate, dtype) / 2, num_spectrogram_bins)[1:]
    mels = array.expand_dims(log(1 + frequencies / _BREAK_HERTZ) * _MELS, 1)
    low, high = (
        dispatch.to_tensor(_MELS * math.log1p(f / _BREAK_HERTZ), dtype) for f in (lower_edge_hertz, upper_edge_hertz)
    )
    edges = array.expand_dims(array.linspace(low, high, num_mel_bins + 2), 0)
    begin, middle, end = edges[:, :-2], edges[:, 1:-1], edges[:, 2:]
    weights = maximum(zero, minimum((mels - begin) / (middle - begin), (end - mels) / (end - middle)))
    return array.pad(weights, [[1, 0], [0, 0]], name=name)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Compute mel-frequency cepstral coefficients: the type-2 cosine transform, scaled as in HTK.

    .. math:: c_k = \\sqrt{\\frac{2}{N}} \\sum_j x_j \\cos \\frac{\\pi (2 j + 1) k}{2 N}

    log_mel_spectrograms: [..., N], float32 or float64.
    raises ValueError if N is 0
    """
    x = dispatch.to_tensor(log_mel_spectrograms)
    bins = x.shape.dims[-1] if x.shape.dims else None
    if bins == 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {x}")
    coefficients = dct(x, type=2)
    size = array.cast(dispatch.to_tensor(array.shape_op(x)[-1] if bins is None else bins), coefficients.dtype)
    return array.identity(coefficients * rsqrt(size * 2), name=name)
