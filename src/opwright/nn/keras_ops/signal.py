"""Fourier transforms, frames, segments and special numbers in `keras.ops`.

Lives here: functions of sequences.  Not here: the operators (ops/signal/, ops/math/segment.py).
Complex tensors are pairs (real, imaginary).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ops import array, dispatch, math
from ...ops import signal as ops_signal
from .promotion import as_floating, as_tensor, convert, promote

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

Pair = tuple["Tensor", "Tensor"]


def _complex(x: Any) -> Tensor:
    """Return a complex tensor from a pair. Raises ValueError for another argument."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"Input `x` should be a tuple of two tensors - real and imaginary. Received: x={x}")
    re, im = promote(*x, floating=True)
    return math.complex(re, im)


def _pair(x: Tensor) -> Pair:
    return math.real(x), math.imag(x)


def fft(x: Any) -> Pair:
    """Compute the Fourier transform along the last axis."""
    return _pair(ops_signal.fft(_complex(x)))


def fft2(x: Any) -> Pair:
    """Compute the Fourier transform along the last two axes."""
    return _pair(ops_signal.fft2d(_complex(x)))


def ifft2(x: Any) -> Pair:
    """Compute the inverse Fourier transform along the last two axes."""
    return _pair(ops_signal.ifft2d(_complex(x)))


def rfft(x: Any, fft_length: int | None = None) -> Pair:
    """Compute the Fourier transform of real numbers along the last axis, cut or extended to a length."""
    return _pair(ops_signal.rfft(as_floating(x), None if fft_length is None else [fft_length]))


def irfft(x: Any, fft_length: int | None = None) -> Tensor:
    """Compute the real inverse of `rfft`. fft_length: by default 2 (n - 1) for n frequencies."""
    return ops_signal.irfft(_complex(x), None if fft_length is None else [fft_length])


def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> Tensor:
    """Return overlapping parts [..., parts, sequence_length] of the last axis."""
    return ops_signal.frame(dispatch.to_tensor(x), sequence_length, sequence_stride)


def _window(window: Any, length: int, fft_length: int, dtype: Any) -> Tensor:
    """Return a window of `length` points, "hann", "hamming", points or None for ones, in the middle of `fft_length`."""
    if window is None:
        points = array.ones([length], dtype)
    elif isinstance(window, str):
        if window not in ("hann", "hamming"):
            raise ValueError(f"The window must be hann or hamming. Received: window={window}")
        create = ops_signal.hann_window if window == "hann" else ops_signal.hamming_window
        points = create(length, periodic=True, dtype=dtype)
    else:
        points = convert(window, dtype)
        if points.shape.rank != 1 or points.shape[0] != length:
            raise ValueError(f"The shape of `window` must be equal to [sequence_length]. Received: {points.shape}")
    before = (fft_length - length) // 2
    return array.pad(points, [[before, fft_length - length - before]])


def stft(
    x: Any, sequence_length: int, sequence_stride: int, fft_length: int, window: Any = "hann", center: bool = True
) -> Pair:
    """Compute Fourier transforms of windows along the last axis: [..., windows, fft_length // 2 + 1].

    window: "hann", "hamming" (periodic), points [sequence_length], or None for ones. center: windows are centred at
    multiples of the stride, the ends reflected
    """
    x = as_floating(x)
    points = _window(window, sequence_length, fft_length, x.dtype)
    if center:
        widths = [[0, 0]] * (x.shape.rank - 1) + [[fft_length // 2, fft_length // 2]]
        x = array.pad(x, widths, "REFLECT")
    return _pair(ops_signal.rfft(ops_signal.frame(x, fft_length, sequence_stride) * points))


def istft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: Any = "hann",
    center: bool = True,
) -> Tensor:
    """Compute the inverse of `stft`, divided by the sum of squared windows. length: of the result."""
    frames = ops_signal.irfft(_complex(x), [fft_length])
    points = _window(window, sequence_length, fft_length, frames.dtype)
    y = ops_signal.overlap_and_add(frames * points, sequence_stride)
    weights = array.zeros_like(frames) + points * points
    y = math.divide_no_nan(y, ops_signal.overlap_and_add(weights, sequence_stride))
    start = fft_length // 2 if center else 0
    if length is not None:
        return y[..., start : start + length]
    return y[..., start : array.shape(y)[-1] - start] if start else y


def _segments(data: Any, segment_ids: Any, num_segments: Any, reduce: Any) -> Tensor:
    ids = dispatch.to_tensor(segment_ids)
    count = math.reduce_max(ids) + 1 if num_segments is None else num_segments
    ids = array.where(math.less(ids, convert(count, ids.dtype)), ids, convert(-1, ids.dtype))  # dropped
    return as_tensor(reduce(dispatch.to_tensor(data), ids, count))


def segment_sum(data: Any, segment_ids: Any, num_segments: Any = None, sorted: bool = False) -> Tensor:
    """Sum rows of one segment; ids beyond the number of segments are dropped. sorted: has no effect."""
    return _segments(data, segment_ids, num_segments, math.unsorted_segment_sum)


def segment_max(data: Any, segment_ids: Any, num_segments: Any = None, sorted: bool = False) -> Tensor:
    """Compute the largest element of rows of one segment. Arguments: see `segment_sum`."""
    return _segments(data, segment_ids, num_segments, math.unsorted_segment_max)


def segment_min(data: Any, segment_ids: Any, num_segments: Any = None, sorted: bool = False) -> Tensor:
    """Compute the smallest element of rows of one segment. Arguments: see `segment_sum`."""
    return _segments(data, segment_ids, num_segments, math.unsorted_segment_min)


def segment_prod(data: Any, segment_ids: Any, num_segments: Any = None, sorted: bool = False) -> Tensor:
    """Multiply rows of one segment. Arguments: see `segment_sum`."""
    return _segments(data, segment_ids, num_segments, math.unsorted_segment_prod)


def cdist(x: Any, y: Any) -> Tensor:
    """Compute Euclidean distances of rows of x [..., n, d] and of y [..., m, d]: [..., n, m]."""
    a, b = promote(x, y, floating=True)
    difference = array.expand_dims(a, -2) - array.expand_dims(b, -3)
    return math.sqrt(math.reduce_sum(math.square(difference), -1))
