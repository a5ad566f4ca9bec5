"""Windows: weights that let a frame begin and end softly.

Lives here: hann_window, hamming_window, kaiser_window, kaiser_bessel_derived_window, vorbis_window.
Not here: cutting frames (frames.py).

Those of 16-bit floats are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

from ...core import dtypes
from ...core.dtypes import DType, as_dtype
from .. import array, dispatch
from ..math.arithmetic import maximum
from ..math.bessel import bessel_i0e
from ..math.cumulative import cumsum
from ..math.elementary import cos, exp, sin, sqrt, square


def _asked(window_length: Any, dtype: Any) -> tuple[Any, DType, DType]:
    """The length, an int where it is known; the dtype; the one to compute in."""
    dtype = as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {dtype}")
    length = dispatch.to_tensor(window_length, dtypes.int32)
    if length.shape.rank not in (0, None):
        raise ValueError(f"window_length is a scalar; found one of shape {length.shape}")
    known = length.constant
    return (length if known is None else int(known)), dtype, dtypes.float32 if dtype.size < 4 else dtype


def _samples(length: Any, dtype: DType) -> Any:
    """0, 1, ..., length - 1"""
    return array.cast(array.range(length), dtype)


def _number(value: Any, dtype: DType) -> Any:
    return array.cast(value, dtype) if hasattr(value, "dtype") else dispatch.to_tensor(value, dtype)


def _one_if_alone(window: Any, length: Any) -> Any:
    """A window of one sample is 1, whatever the formula says."""
    return window if isinstance(length, int) else array.where(length == 1, array.ones_like(window), window)


def _raised_cosine(window_length: Any, periodic: Any, dtype: Any, base: float, swing: float, name: str | None) -> Any:
    length, dtype, within = _asked(window_length, dtype)
    if isinstance(length, int) and length == 1:
        return array.ones([1], dtype, name=name)
    even = 1 - length % 2
    more = int(periodic) if isinstance(periodic, bool) else array.cast(dispatch.to_tensor(periodic), dtypes.int32)
    period = _number(length + more * even - 1, within)
    angle = _samples(length, within) * (2 * math.pi) / maximum(period, _number(1, within))
    return array.cast(_one_if_alone(base - swing * cos(angle), length), dtype, name=name)


def hann_window(window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None) -> Any:
    """Hann's window, [window_length]; of one sample it is 1.

    .. math:: w_n = \\frac{1}{2} - \\frac{1}{2} \\cos(2 \\pi n / N)

    periodic: N is the length if that is even, as transforms want; else, and for odd ones, the length less 1.
    raises ValueError for a dtype that is not floating, or a length that is no scalar
    """
    return _raised_cosine(window_length, periodic, dtype, 0.5, 0.5, name)


def hamming_window(window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
                   ) -> Any:  # fmt: skip
    """Hamming's window, [window_length]; of one sample it is 1. periodic, errors: as in `hann_window`.

    .. math:: w_n = 0.54 - 0.46 \\cos(2 \\pi n / N)
    """
    return _raised_cosine(window_length, periodic, dtype, 0.54, 0.46, name)


def kaiser_window(window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None) -> Any:
    """Kaiser's window, [window_length]; of one sample it is 1.

    .. math:: w_n = I_0\\left(\\beta \\sqrt{1 - \\left(\\frac{2 n}{N - 1} - 1\\right)^2}\\right) / I_0(\\beta)

    beta: how narrow it is. raises ValueError as `hann_window` does
    """
    length, dtype, within = _asked(window_length, dtype)
    if isinstance(length, int) and length == 1:
        return array.ones([1], dtype, name=name)
    middle = (_number(length, within) - 1) / 2
    place = (_samples(length, within) - middle) / maximum(middle, _number(0.5, within))
    beta = _number(beta, within)
    x = beta * sqrt(maximum(1 - square(place), _number(0, within)))
    window = exp(x - beta) * (bessel_i0e(x) / bessel_i0e(beta))
    return array.cast(_one_if_alone(window, length), dtype, name=name)


def kaiser_bessel_derived_window(window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32,
                                 name: str | None = None) -> Any:  # fmt: skip
    """Roots of the running sums of Kaiser's window of half the length, up and down again: [window_length], even.

    .. math:: w_n = \\sqrt{\\sum_{j=0}^n k_j / \\sum_{j=0}^{N/2} k_j}, \\quad w_{N-1-n} = w_n

    Of an odd length it has one sample less. beta, errors: as in `kaiser_window`.
    """
    length, dtype, within = _asked(window_length, dtype)
    sums = cumsum(kaiser_window(length // 2 + 1, beta, within))
    rising = sqrt(sums[:-1] / sums[-1])
    return array.cast(array.concat([rising, array.reverse(rising, [0])], 0), dtype, name=name)


def vorbis_window(window_length: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Any:
    """Vorbis's window, [window_length], whose squares add up to 1 with those half a length away.

    .. math:: w_n = \\sin\\left(\\frac{\\pi}{2} \\sin^2\\left(\\frac{\\pi}{N} (n + \\frac{1}{2})\\right)\\right)

    raises ValueError as `hann_window` does
    """
    length, dtype, within = _asked(window_length, dtype)
    angle = (_samples(length, within) + 0.5) * math.pi / _number(length, within)
    return array.cast(sin(square(sin(angle)) * (math.pi / 2)), dtype, name=name)
