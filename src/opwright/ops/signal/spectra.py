"""Spectra of a signal as they change in time: transforms of its frames.

Lives here: stft, inverse_stft, inverse_stft_window_fn, mdct, inverse_mdct.
Not here: frames (frames.py), windows (windowing.py), the transforms (fourier.py, cosine.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import array, dispatch
from ..math.elementary import square
from ..math.reduction import Sum
from .cosine import dct
from .fourier import at_least, irfft, rfft
from .frames import frame, overlap_and_add, resized
from .windowing import hann_window, vorbis_window

WindowFn = Callable[..., Any]


def _scalar(value: Any, name: str) -> Any:
    """An int where the value is known, else the tensor. Raises ValueError for what is no scalar."""
    tensor = dispatch.to_tensor(value)
    if tensor.shape.rank not in (0, None):
        raise ValueError(f"{name} is a scalar; found one of shape {tensor.shape}")
    return tensor if tensor.constant is None else int(tensor.constant)


def _transform_length(frame_length: Any, fft_length: Any) -> Any:
    """fft_length, by default the least power of 2 that is not less than frame_length."""
    if fft_length is not None:
        return _scalar(fft_length, "fft_length")
    if isinstance(frame_length, int):
        return 1 << max(frame_length - 1, 0).bit_length()
    powers = array.cast([1 << i for i in range(31)], frame_length.dtype)
    return powers[array.searchsorted(powers, array.reshape(frame_length, [1]))[0]]


def _window(window_fn: WindowFn | None, length: Any, dtype: Any) -> Any:
    return None if window_fn is None else window_fn(length, dtype=dtype)


def stft(signals: Any, frame_length: Any, frame_step: Any, fft_length: Any = None,
         window_fn: WindowFn | None = hann_window, pad_end: bool = False, name: str | None = None) -> Any:  # fmt: skip
    """Short-time Fourier transform: that of windowed frames.

    .. math:: X_{f, k} = \\sum_j w_j x_{f \\cdot frame\\_step + j} e^{-2 \\pi i j k / fft\\_length}

    signals: [..., samples]; result: complex [..., frames, fft_length / 2 + 1]. fft_length: by default the least power
    of 2 that is not less than frame_length. window_fn: makes the w_j, called with frame_length and dtype=; None for
    none. pad_end: as in `frame`. See Frame, RFFT.
    raises ValueError for signals of rank 0, or lengths that are no scalars
    """
    signals = dispatch.to_tensor(signals)
    length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
    frames = frame(signals, length, step, pad_end=pad_end)
    window = _window(window_fn, length, frames.dtype)
    if window is not None:
        frames = frames * window
    return rfft(frames, [_transform_length(length, fft_length)], name=name)


def inverse_stft_window_fn(frame_step: Any, forward_window_fn: WindowFn = hann_window, name: str | None = None
                           ) -> Callable[..., Any]:  # fmt: skip
    """The window_fn with which `inverse_stft` undoes `stft` with forward_window_fn.

    .. math:: v_j = w_j / \\sum_i w_{j + i \\cdot frame\\_step}^2

    The result takes a frame_length and dtype=, and gives a window [frame_length], 0 where the sum is.
    """

    def window_fn(frame_length: Any, dtype: Any) -> Any:
        step, length = _scalar(frame_step, "frame_step"), _scalar(frame_length, "frame_length")
        window = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        parts = array.reshape(resized(square(window), overlaps * step), array.stack([overlaps, step]))
        sums = array.tile(Sum(parts, axis=(0,)), array.reshape(overlaps, [1]))[:length]
        some = sums != 0
        found = window / array.where(some, sums, array.ones_like(sums))
        return array.where(some, found, array.zeros_like(window), name=name)

    return window_fn


def inverse_stft(stfts: Any, frame_length: Any, frame_step: Any, fft_length: Any = None,
                 window_fn: WindowFn | None = hann_window, name: str | None = None) -> Any:  # fmt: skip
    """Signals of which `stft` gave these spectra, if window_fn is `inverse_stft_window_fn` of the frame_step there.

    .. math:: x_t = \\sum_{f, j : f \\cdot frame\\_step + j = t} v_j \\, irfft(stfts_f)_j

    stfts: complex [..., frames, fft_length / 2 + 1]; result: [..., (frames - 1) frame_step + frame_length].
    fft_length, window_fn: as in `stft`. See IRFFT, OverlapAndAdd.
    raises ValueError for a rank below 2, or lengths that are no scalars
    """
    stfts = dispatch.to_tensor(stfts)
    at_least(stfts.spec, 2)
    length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
    frames = resized(irfft(stfts, [_transform_length(length, fft_length)]), length)
    window = _window(window_fn, length, frames.dtype)
    return overlap_and_add(frames if window is None else frames * window, step, name=name)


def mdct(signals: Any, frame_length: Any, window_fn: WindowFn | None = vorbis_window, pad_end: bool = False,
         norm: str | None = None, name: str | None = None) -> Any:  # fmt: skip
    """Modified discrete cosine transform: that of frames which overlap by half, to half as many numbers.

    .. math:: X_{f, k} = 2 \\sum_{j=0}^{2N-1} w_j x_{f N + j}
        \\cos\\left(\\frac{\\pi}{N} (j + \\frac{1}{2} + \\frac{N}{2}) (k + \\frac{1}{2})\\right)

    signals: [..., samples]; 2 N: frame_length; result: [..., frames, N]. window_fn: makes the w_j, as in `stft`; None
    for sqrt(1/2). norm: "ortho" divides by sqrt(2 N). pad_end: as in `frame`. See Frame and `dct`.
    raises ValueError for a frame_length that is no multiple of 4
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


def inverse_mdct(mdcts: Any, window_fn: WindowFn | None = vorbis_window, norm: str | None = None,
                 name: str | None = None) -> Any:  # fmt: skip
    """Signals of which `mdct` with this window_fn and norm gave these numbers.

    .. math:: x_t = \\sum_{f, j : f N + j = t} \\frac{w_j}{N} \\sum_k mdcts_{f, k}
        \\cos\\left(\\frac{\\pi}{N} (j + \\frac{1}{2} + \\frac{N}{2}) (k + \\frac{1}{2})\\right)

    mdcts: [..., frames, N]; result: [..., (frames + 1) N]. The first and last N samples, of one frame alone, are not
    restored. window_fn, norm: as in `mdct`.
    raises ValueError for a rank below 2
    """
    mdcts = dispatch.to_tensor(mdcts)
    at_least(mdcts.spec, 2)
    half = mdcts.shape.dims[-1] if mdcts.shape.dims else None
    if half is None:
        half = array.shape_op(mdcts)[-1]
    found = dct(mdcts, type=4, norm=norm)
    if norm is None:
        found = found * (0.5 / array.cast(dispatch.to_tensor(half), found.dtype))
    quarter = half // 2
    first, second = found[..., :quarter], found[..., quarter:]
    unfolded = array.concat([second, -array.reverse(second, [-1]), -array.reverse(first, [-1]), -first], -1)
    window = _window(window_fn, 2 * half, found.dtype)
    return overlap_and_add(unfolded * (math.sqrt(0.5) if window is None else window), half, name=name)
