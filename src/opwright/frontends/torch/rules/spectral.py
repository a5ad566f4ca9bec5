"""Complex numbers and Fourier transforms.

Lives here: rules of ATen's transforms, parts and conjugates. Not here: arithmetic, which is that of real numbers
(elementwise.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ops import array, math, signal
from ....ops.array_shapes import axes_last
from .table import AtenCall, aten, rank_of, sizes, tensor

# ---- complex numbers --------------------------------------------------------------------------------------------


@aten("_conj", "conj", "_conj_copy", "_conj_physical", "conj_physical")
def conj(op: AtenCall, x: Any) -> Any:
    x = tensor(x, op.dtype)
    return math.conj(x) if x.dtype.is_complex else x


@aten("_neg_view", "_neg_view_copy")
def negative_view(op: AtenCall, x: Any) -> Any:
    return math.negative(tensor(x))


@aten("real")
def real(op: AtenCall, x: Any) -> Any:
    return math.real(tensor(x))


@aten("imag")
def imag(op: AtenCall, x: Any) -> Any:
    return math.imag(tensor(x))


@aten("angle")
def angle(op: AtenCall, x: Any) -> Any:
    """Return the angle in radians: 0 or pi for real numbers, NaN for NaN."""
    x = tensor(x)
    if x.dtype.is_complex:
        return math.angle(x)
    x = array.cast(x, op.dtype)
    flat = array.where(x < tensor(0, op.dtype), tensor(np.pi, op.dtype), tensor(0, op.dtype))
    return array.where(math.is_nan(x), x, flat)


@aten("complex")
def complex_(op: AtenCall, re: Any, im: Any) -> Any:
    part = op.dtype.real_dtype
    return math.complex(tensor(re, part), tensor(im, part))


@aten("polar")
def polar(op: AtenCall, size: Any, angle: Any) -> Any:
    part = op.dtype.real_dtype
    size, angle = tensor(size, part), tensor(angle, part)
    return math.complex(size * math.cos(angle), size * math.sin(angle))


@aten("view_as_complex", "view_as_complex_copy")
def view_as_complex(op: AtenCall, x: Any) -> Any:
    x = tensor(x)
    return math.complex(x[..., 0], x[..., 1])


@aten("view_as_real", "view_as_real_copy")
def view_as_real(op: AtenCall, x: Any) -> Any:
    x = tensor(x)
    return array.stack([math.real(x), math.imag(x)], axis=-1)


# ---- transforms -------------------------------------------------------------------------------------------------

NONE, BY_ROOT, BY_SIZE = range(3)  # ATen's fft_norm_mode


def _normalized(op: AtenCall, y: Any, lengths: Sequence[int], normalization: int, inverse: bool) -> Any:
    """Scale a transform of the catalogue, which divides by the size of the signal if it is an inverse one."""
    size = float(np.prod(lengths))
    own = {NONE: 1.0, BY_ROOT: size**-0.5, BY_SIZE: 1.0 / size}[normalization]
    factor = own * (size if inverse else 1.0)
    return y if abs(factor - 1.0) < 1e-15 else y * tensor(factor, y.dtype)


def _lengths(x: Any, axes: Sequence[int]) -> list[int]:
    dims = sizes(x)
    if any(dims[a] is None for a in axes):
        raise ValueError("a Fourier transform over a dimension of unknown size")
    return [int(dims[a] or 0) for a in axes]


def _axes(x: Any, dims: Sequence[int]) -> list[int]:
    return [d % rank_of(x) for d in dims]


def _at_end(x: Any, axes: list[int]) -> tuple[Any, list[int]]:
    """Return a tensor with these axes last, and the order that undoes it."""
    order, back = axes_last(axes, rank_of(x))
    return _back(x, order), back


def _back(x: Any, order: list[int]) -> Any:
    return x if order == list(range(len(order))) else array.transpose(x, order)


def _complex_transform(x: Any, count: int, forward: bool) -> Any:
    """Transform the last `count` dimensions."""
    one = signal.fft if forward else signal.ifft
    last = rank_of(x) - 1
    for i in range(count):
        if i:
            order = list(range(rank_of(x)))
            order[last - i], order[last] = last, last - i
            x = array.transpose(one(array.transpose(x, order)), order)
        else:
            x = one(x)
    return x


@aten("_fft_c2c")
def fft_c2c(op: AtenCall, x: Any, dims: Sequence[int], normalization: int, forward: bool) -> Any:
    x = tensor(x, op.dtype)
    axes = _axes(x, dims)
    lengths = _lengths(x, axes)
    moved, back = _at_end(x, axes)
    y = _complex_transform(moved, len(axes), forward)
    return _back(_normalized(op, y, lengths, normalization, not forward), back)


@aten("_fft_r2c")
def fft_r2c(op: AtenCall, x: Any, dims: Sequence[int], normalization: int, onesided: bool) -> Any:
    x = tensor(x, op.dtype.real_dtype)
    axes = _axes(x, dims)
    lengths = _lengths(x, axes)
    if not onesided:
        return fft_c2c(op, array.cast(x, op.dtype), dims, normalization, True)
    moved, back = _at_end(x, axes)
    y = signal.rfft(moved)
    if len(axes) > 1:
        order = [*range(rank_of(y) - len(axes)), rank_of(y) - 1, *range(rank_of(y) - len(axes), rank_of(y) - 1)]
        y = _complex_transform(array.transpose(y, order), len(axes) - 1, True)
        y = array.transpose(y, np.argsort(order).tolist())
    return _back(_normalized(op, y, lengths, normalization, False), back)


@aten("_fft_c2r")
def fft_c2r(op: AtenCall, x: Any, dims: Sequence[int], normalization: int, last: int) -> Any:
    x = tensor(x)
    axes = _axes(x, dims)
    lengths = [*_lengths(x, axes)[:-1], int(last)]
    moved, back = _at_end(x, axes)
    if len(axes) > 1:
        order = [*range(rank_of(x) - len(axes)), rank_of(x) - 1, *range(rank_of(x) - len(axes), rank_of(x) - 1)]
        moved = _complex_transform(array.transpose(moved, order), len(axes) - 1, False)
        moved = array.transpose(moved, np.argsort(order).tolist())
    y = signal.irfft(moved, [int(last)])
    return _back(_normalized(op, y, lengths, normalization, True), back)
