"""Spectra as they are heard: the mel scale.

Lives here: linear_to_mel_weight_matrix, mfccs_from_log_mel_spectrograms.  Not here: spectra themselves (spectra.py).
"""

from __future__ import annotations

import math
from typing import Any

from ...core import dtypes
from ...core.dtypes import as_dtype
from .. import array, dispatch
from ..math.arithmetic import maximum, minimum
from ..math.elementary import log, rsqrt
from .cosine import dct

# The mel scale of the Hidden Markov Model Toolkit: mel(f) = 1127 ln(1 + f / 700)
_BREAK_HERTZ, _MELS = 700.0, 1127.0


def linear_to_mel_weight_matrix(num_mel_bins: int = 20, num_spectrogram_bins: Any = 129, sample_rate: Any = 8000,
                                lower_edge_hertz: float = 125.0, upper_edge_hertz: float = 3800.0,
                                dtype: Any = dtypes.float32, name: str | None = None) -> Any:  # fmt: skip
    """The matrix that takes a spectrum over frequencies to the mel scale: [num_spectrogram_bins, num_mel_bins].

    .. math:: A_{ij} = \\max\\left(0, \\min\\left(\\frac{m(f_i) - e_j}{e_{j+1} - e_j},
        \\frac{e_{j+2} - m(f_i)}{e_{j+2} - e_{j+1}}\\right)\\right), \\quad m(f) = 1127 \\ln(1 + f / 700)

    f_i: num_spectrogram_bins frequencies from 0 to sample_rate / 2, of which the first has no weight; e_j:
    num_mel_bins + 2 points on the mel scale from lower_edge_hertz to upper_edge_hertz, a triangle over each three.
    raises ValueError for bins or a rate below 0, edges in the wrong order or above sample_rate / 2, a dtype that is not
    floating
    """
    dtype = as_dtype(dtype)
    rate = dispatch.to_tensor(sample_rate)
    known = None if rate.constant is None else rate.constant.item()
    if num_mel_bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {num_mel_bins}")
    if lower_edge_hertz < 0.0:
        raise ValueError(f"lower_edge_hertz must be non-negative. Got: {lower_edge_hertz}")
    if lower_edge_hertz >= upper_edge_hertz:
        raise ValueError(f"lower_edge_hertz {lower_edge_hertz:.1f} >= upper_edge_hertz {upper_edge_hertz:.1f}")
    if known is not None and known <= 0.0:
        raise ValueError(f"sample_rate must be positive. Got: {known}")
    if known is not None and upper_edge_hertz > known / 2:
        raise ValueError("upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). "
                         f"Got {upper_edge_hertz} for sample_rate: {known}")  # fmt: skip
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Got: {dtype}")
    zero = array.zeros([], dtype)
    frequencies = array.linspace(zero, array.cast(rate, dtype) / 2, num_spectrogram_bins)[1:]
    mels = array.expand_dims(log(1 + frequencies / _BREAK_HERTZ) * _MELS, 1)
    low, high = (dispatch.to_tensor(_MELS * math.log1p(f / _BREAK_HERTZ), dtype)
                 for f in (lower_edge_hertz, upper_edge_hertz))  # fmt: skip
    edges = array.expand_dims(array.linspace(low, high, num_mel_bins + 2), 0)
    begin, middle, end = edges[:, :-2], edges[:, 1:-1], edges[:, 2:]
    weights = maximum(zero, minimum((mels - begin) / (middle - begin), (end - mels) / (end - middle)))
    return array.pad(weights, [[1, 0], [0, 0]], name=name)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Any:
    """Mel-frequency cepstral coefficients: the cosine transform of type 2, scaled as the HTK does.

    .. math:: c_k = \\sqrt{\\frac{2}{N}} \\sum_j x_j \\cos \\frac{\\pi (2 j + 1) k}{2 N}

    log_mel_spectrograms: [..., N], float32 or float64. See `dct`.
    raises ValueError where N is 0
    """
    x = dispatch.to_tensor(log_mel_spectrograms)
    bins = x.shape.dims[-1] if x.shape.dims else None
    if bins == 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {x}")
    found = dct(x, type=2)
    size = array.cast(dispatch.to_tensor(array.shape_op(x)[-1] if bins is None else bins), found.dtype)
    return array.identity(found * rsqrt(size * 2), name=name)
