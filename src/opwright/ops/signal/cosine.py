"""Discrete cosine transforms, by Fourier transforms of twice the length.

Lives here: dct, idct.  Not here: those of frames (spectra.py).
"""

from __future__ import annotations

import math
from typing import Any

from .. import array, dispatch
from ..math.complexes import complex, real
from ..math.elementary import cos, rsqrt, sin
from .fourier import irfft, rfft
from .frames import resized


def dct(input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
        name: str | None = None) -> Any:  # fmt: skip
    """Discrete cosine transform of the last dimension of size N.

    .. math::
        X_k = x_0 + (-1)^k x_{N-1} + 2 \\sum_{j=1}^{N-2} x_j \\cos \\frac{\\pi j k}{N - 1} \\quad (type\\ 1)
        X_k = 2 \\sum_j x_j \\cos \\frac{\\pi (2 j + 1) k}{2 N} \\quad (type\\ 2)
        X_k = x_0 + 2 \\sum_{j \\ge 1} x_j \\cos \\frac{\\pi j (2 k + 1)}{2 N} \\quad (type\\ 3)
        X_k = 2 \\sum_j x_j \\cos \\frac{\\pi (2 j + 1) (2 k + 1)}{4 N} \\quad (type\\ 4)

    input: [..., N], float32 or float64. n: the size to which it is cut or padded with zeros first. norm: "ortho" for
    the orthonormal transform, which type 1 has not. See RFFT.
    raises ValueError for other types and norms, an n below 1, or type 1 of less than 2 samples; NotImplementedError for
    another axis than the last
    """
    return array.identity(_dct(_checked(input, type, n, axis, norm), type, norm), name=name)


def idct(input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
         name: str | None = None) -> Any:  # fmt: skip
    """What undoes `dct` of the same type: types 2 and 3 undo each other, 1 and 4 themselves.

    Without norm="ortho" the result is 2 N times too large, of type 1 2 (N - 1) times.

    .. math:: y = dct(input, \\{1: 1, 2: 3, 3: 2, 4: 4\\}[type])

    n, errors: as in `dct`.
    """
    x = _checked(input, type, n, axis, norm)
    return array.identity(_dct(x, {1: 1, 2: 3, 3: 2, 4: 4}[type], norm), name=name)


def _checked(input: Any, type: int, n: int | None, axis: int, norm: str | None) -> Any:
    """The input as a tensor with n samples."""
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
    x = x if n is None else resized(x, n)
    if type == 1:
        if norm == "ortho":
            raise ValueError("Normalization is not supported for the Type-I DCT.")
        if x.shape.dims and x.shape.dims[-1] is not None and x.shape.dims[-1] < 2:
            raise ValueError("Type-I DCT requires the dimension to be greater than one.")
    return x


def _turned(size: Any, samples: Any, sign: int) -> Any:
    """e^(i sign pi k / 2N), for k from 0 to N - 1."""
    angle = array.cast(array.range(samples), size.dtype) * (math.pi / 2) / size
    return complex(cos(angle), sin(angle) * sign)


def _weights(size: Any, samples: Any, first: float) -> Any:
    """1 / sqrt(2N), the first of them times `first`."""
    k = array.range(samples)
    scale = rsqrt(size * 2)
    return array.where(k == 0, scale * first, scale)


def _dct(x: Any, type: int, norm: str | None) -> Any:
    samples = x.shape.dims[-1] if x.shape.dims else None
    if samples == 0:
        return x
    if samples is None:
        samples = array.shape_op(x)[-1]
    size = array.cast(dispatch.to_tensor(samples), x.dtype)
    if type == 1:
        return real(rfft(array.concat([x, array.reverse(x[..., 1:-1], [-1])], -1)))
    if type == 2:
        found = real(rfft(x, [2 * samples])[..., :samples] * _turned(size, samples, -1)) * 2
        return found if norm is None else found * _weights(size, samples, math.sqrt(0.5))
    if type == 3:
        x = x if norm is None else x * _weights(size, samples, math.sqrt(2))
        turned = complex(x, array.zeros_like(x)) * _turned(size, samples, 1)
        return irfft(turned, [2 * samples])[..., :samples] * (size * 2)
    found = _dct(resized(x, 2 * samples), 2, None)[..., 1::2]
    return found if norm is None else found * rsqrt(size * 2)
